//===- Mpi.h - Ranks that mpirun has started --------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_TRANSPORT_MPI_H
#define REPRISE_RUNTIME_TRANSPORT_MPI_H

#include "Board.h"

namespace reprise::runtime {

/// The process of a rank whose launcher has an MPI: starts that and calls the
/// body. `work.engine` is the `Launch`.
int runMpiRank(Board &board, int rank, const RankWork &work);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_TRANSPORT_MPI_H
