//===- Shard.h - One of equal parts -----------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_BASE_SHARD_H
#define REPRISE_RUNTIME_BASE_SHARD_H

#include <cstdint>

namespace reprise::runtime {

/// One of equal parts.
struct Shard {
  int64_t part = 0, of = 1;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_BASE_SHARD_H
