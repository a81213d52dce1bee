//===- ConnectionBlocks.cpp - Shares of a GPU for NCCL --------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ConnectionBlocks.h"

using namespace reprise::runtime;

/// Of a connection of all ranks, what NCCL takes at most before 2.25; of a
/// pair, whose bytes go to one GPU, less. On 108 multiprocessors there is room
/// for two of the one and four of the other.
static constexpr int kMostOfAll = 32, kMostOfPair = 8;

bool reprise::runtime::shareBlocks(int numAll, int numPairs,
                                   int multiprocessors,
                                   ConnectionBlocks &blocks, Error &error) {
  blocks = {};
  if (numAll + numPairs < 2)
    return true;
  if (numAll + numPairs > multiprocessors)
    return error.set("%d connections of GPUs need a multiprocessor each, but "
                     "the smallest GPU has %d: fewer stages need fewer "
                     "connections",
                     numAll + numPairs, multiprocessors);
  int ofAll = kMostOfAll, ofPair = kMostOfPair;
  while (numAll * ofAll + numPairs * ofPair > multiprocessors)
    if (ofAll > ofPair || numPairs == 0)
      ofAll /= 2;
    else
      ofPair /= 2;
  blocks = {ofAll, ofPair};
  return true;
}
