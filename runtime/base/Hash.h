//===- Hash.h - Where a text is in a table ----------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_BASE_HASH_H
#define REPRISE_RUNTIME_BASE_HASH_H

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace reprise::runtime {

/// FNV-1a with its high bits mixed into the low ones; for short texts.
inline size_t hashOf(std::string_view text) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (char c : text)
    hash = (hash ^ uint8_t(c)) * 0x100000001B3u;
  return size_t(hash ^ hash >> 32);
}

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_BASE_HASH_H
