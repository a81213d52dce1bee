//===- Sockets.h - Bytes between ranks over TCP -----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_TRANSPORT_SOCKETS_H
#define REPRISE_RUNTIME_TRANSPORT_SOCKETS_H

#include "Board.h"

namespace reprise::runtime {

/// The process of a rank whose launcher has no MPI: meets the others, and calls
/// the body with TCP between ranks. `work.engine` is the `Launch`.
int runSocketRank(Board &board, int rank, const RankWork &work);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_TRANSPORT_SOCKETS_H
