//===- Lanes.h - Lanes beside those of the step -------------------*- C -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_ABI_LANES_H
#define REPRISE_ABI_LANES_H

/// Behind REPRISE_LANE_GRADIENTS: activations of one text, of `sample`.
#define REPRISE_LANE_TEXTS 2

/// Two for each further type of what crosses borders in a step: its values, and
/// their gradients.
#define REPRISE_LANE_FURTHER 3

/// Lanes in one direction between two ranks are fewer.
#define REPRISE_MOST_LANES 35

/// Whether a lane is one of gradients.
#define REPRISE_IS_GRADIENT_LANE(lane)                                         \
  ((lane) == REPRISE_LANE_GRADIENTS ||                                         \
   ((lane) >= REPRISE_LANE_FURTHER &&                                          \
    ((lane) - REPRISE_LANE_FURTHER) % 2 == 1))

#endif /* REPRISE_ABI_LANES_H */
