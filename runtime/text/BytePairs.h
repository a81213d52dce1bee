//===- BytePairs.h - Bytes merged to tokens ---------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_TEXT_BYTEPAIRS_H
#define REPRISE_RUNTIME_TEXT_BYTEPAIRS_H

#include "runtime/base/List.h"

#include <cstdint>
#include <string_view>

namespace reprise::runtime {

static constexpr uint32_t kNoToken = UINT32_MAX;

/// The tokens of a vocabulary by their bytes, and back. Ids may have holes.
class TokenTable {
public:
  ~TokenTable() { free(slots); }

  /// False if there is no memory left.
  bool reserve(size_t tokens);
  /// Gives `id`, which nobody has, these bytes. Only what `isText` is found by
  /// its bytes; nothing else may have them. False if there is no memory left.
  bool add(std::string_view bytes, uint32_t id, bool isText);

  /// kNoToken if no token has these bytes.
  uint32_t find(std::string_view bytes) const;
  /// Whether some token has this id.
  bool has(uint32_t id) const {
    return id < tokens.size() && tokens[id].offset != kHole;
  }
  std::string_view bytesOf(uint32_t id) const {
    return {bytes.begin() + tokens[id].offset, tokens[id].length};
  }
  /// One more than the largest id.
  size_t size() const { return tokens.size(); }

private:
  static constexpr uint64_t kHole = UINT64_MAX;
  struct Token {
    uint64_t offset; ///< In `bytes`.
    uint64_t length;
  };

  List<Token> tokens;
  List<char> bytes;
  uint32_t *slots = nullptr; ///< Ids in the order of their hashes.
  size_t mask = 0;
};

/// Which two tokens become which one, and what goes first.
class MergeTable {
public:
  struct Merge {
    uint32_t rank, result;
  };

  ~MergeTable() { free(slots); }

  /// False if there is no memory left.
  bool reserve(size_t merges);
  /// A pair that is there already gets this merge instead.
  void add(uint32_t left, uint32_t right, Merge merge);
  /// Null if the two are not merged.
  const Merge *find(uint32_t left, uint32_t right) const {
    const Slot &slot = slots[slotOf(uint64_t(left) << 32 | right)];
    return slot.key == kFree ? nullptr : &slot.merge;
  }

private:
  static constexpr uint64_t kFree = UINT64_MAX;
  struct Slot {
    uint64_t key; ///< Left in the high half.
    Merge merge;
  };

  /// Where the pair is, or a free slot.
  size_t slotOf(uint64_t key) const {
    size_t slot = size_t((key * 0x9E3779B97F4A7C15u) >> 20) & mask;
    while (slots[slot].key != key && slots[slot].key != kFree)
      slot = (slot + 1) & mask;
    return slot;
  }

  Slot *slots = nullptr;
  size_t mask = 0;
};

/// What a byte-level byte-pair encoding knows.
struct BytePairs {
  TokenTable vocabulary;
  MergeTable merges;
  uint32_t byteTokens[256];  ///< kNoToken where there is none.
  bool ignoreMerges = false; ///< A piece that is a token stays whole.
};

/// Encodes pieces one after the other; each thread needs one of its own.
/// Remembers short pieces, of which a text has few different ones.
class PieceEncoder {
public:
  ~PieceEncoder() { free(cache); }

  /// Appends the tokens of a piece whose bytes all have one: the pair of the
  /// lowest rank is merged first, among equals the leftmost, until there is
  /// none. Takes O(n log n). False if there is no memory left.
  bool encode(const BytePairs &pairs, std::string_view piece,
              List<uint32_t> &result);

private:
  /// A part of the piece, in a list linked both ways.
  struct Symbol {
    uint32_t token;
    int32_t previous, next; ///< -1 at the ends.
    bool isGone;
  };
  struct Candidate {
    uint32_t rank, result;
    int32_t left; ///< The first of the two symbols.

    /// The least comes to the top of a heap of the standard library.
    bool operator<(const Candidate &other) const {
      return rank != other.rank ? rank > other.rank : left > other.left;
    }
  };
  struct CacheEntry {
    uint8_t length, numTokens; ///< Of a free one, 0.
    char bytes[22];
    uint32_t tokens[6];
  };
  static constexpr size_t kCacheEntries = 1 << 14;

  bool merge(const BytePairs &pairs, std::string_view piece);
  bool consider(const BytePairs &pairs, int32_t left, int32_t right);

  List<Symbol> symbols;
  List<Candidate> heap;
  CacheEntry *cache = nullptr;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_TEXT_BYTEPAIRS_H
