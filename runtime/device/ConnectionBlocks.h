//===- ConnectionBlocks.h - Shares of a GPU for NCCL ------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DEVICE_CONNECTIONBLOCKS_H
#define REPRISE_RUNTIME_DEVICE_CONNECTIONBLOCKS_H

#include "CudaApi.h"
#include "runtime/base/Error.h"

namespace reprise::runtime {

/// How many blocks the kernels of a connection have at most; the same on all
/// ranks.
struct ConnectionBlocks {
  int ofAll = kNcclUnset;  ///< Of one of all ranks.
  int ofPair = kNcclUnset; ///< Of one of two ranks.
};

/// Shares the multiprocessors of a GPU among `numAll` connections of all ranks
/// and `numPairs` of two. Kernels of several connections may wait for other
/// ranks at a time, in an order that differs from rank to rank: so all of their
/// blocks have to be on the GPU at a time. Each may need a multiprocessor of
/// its own. The library rounds to powers of two. One connection alone has what
/// the library thinks best.
bool shareBlocks(int numAll, int numPairs, int multiprocessors,
                 ConnectionBlocks &blocks, Error &error);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DEVICE_CONNECTIONBLOCKS_H
