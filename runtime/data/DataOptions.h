//===- DataOptions.h - What a run trains on ---------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DATA_DATAOPTIONS_H
#define REPRISE_RUNTIME_DATA_DATAOPTIONS_H

#include "TokenType.h"

#include <optional>

namespace reprise::runtime {

/// Files and patterns, in the order in which they were given.
struct Paths {
  static constexpr int kMost = 64;

  int size() const { return count; }
  const char *operator[](int i) const { return items[i]; }
  const char *const *begin() const { return items; }
  const char *const *end() const { return items + count; }

  const char *items[kMost] = {};
  int count = 0;
};

/// What a run trains on, in which order, and how far.
struct DataOptions {
  Paths data;
  std::optional<TokenType> dtype; ///< Of .bin files without a header.
  const char *tokenizer = nullptr;
  int64_t steps = 0;
  uint64_t seed = 0; ///< Of parameters and dropout, too.
  bool shuffled = true;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DATA_DATAOPTIONS_H
