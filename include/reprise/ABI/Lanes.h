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

#endif /* REPRISE_ABI_LANES_H */
