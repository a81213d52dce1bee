//===- BytePairs.cpp - Bytes merged to tokens -----------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BytePairs.h"

#include "runtime/base/Hash.h"

#include <algorithm>

using namespace reprise::runtime;

/// At least twice as many, so that a free slot is near.
static size_t powerOfTwoFor(size_t items) {
  size_t size = 16;
  while (size < 2 * items)
    size *= 2;
  return size;
}

//===----------------------------------------------------------------------===//
// TokenTable
//===----------------------------------------------------------------------===//

bool TokenTable::reserve(size_t count) {
  size_t size = powerOfTwoFor(count);
  slots = static_cast<uint32_t *>(malloc(size * sizeof(uint32_t)));
  if (!slots)
    return false;
  std::fill_n(slots, size, kNoToken);
  mask = size - 1;
  return tokens.reserve(count);
}

bool TokenTable::add(std::string_view text, uint32_t id, bool isText) {
  while (tokens.size() <= id)
    if (!tokens.push({kHole, 0}))
      return false;
  tokens[id] = {bytes.size(), text.size()};
  if (!bytes.append(text.data(), text.size()))
    return false;
  if (!isText)
    return true;
  size_t slot = hashOf(text) & mask;
  while (slots[slot] != kNoToken)
    slot = (slot + 1) & mask;
  slots[slot] = id;
  return true;
}

uint32_t TokenTable::find(std::string_view text) const {
  size_t slot = hashOf(text) & mask;
  while (slots[slot] != kNoToken && bytesOf(slots[slot]) != text)
    slot = (slot + 1) & mask;
  return slots[slot];
}

//===----------------------------------------------------------------------===//
// MergeTable
//===----------------------------------------------------------------------===//

bool MergeTable::reserve(size_t merges) {
  size_t size = powerOfTwoFor(merges);
  slots = static_cast<Slot *>(malloc(size * sizeof(Slot)));
  if (!slots)
    return false;
  std::fill_n(slots, size, Slot{kFree, {}});
  mask = size - 1;
  return true;
}

void MergeTable::add(uint32_t left, uint32_t right, Merge merge) {
  uint64_t key = uint64_t(left) << 32 | right;
  slots[slotOf(key)] = {key, merge};
}

//===----------------------------------------------------------------------===//
// PieceEncoder
//===----------------------------------------------------------------------===//

/// Notes that the two symbols side by side may be merged.
bool PieceEncoder::consider(const BytePairs &pairs, int32_t left,
                            int32_t right) {
  const MergeTable::Merge *merge = pairs.merges.find(
      symbols[size_t(left)].token, symbols[size_t(right)].token);
  return !merge || heap.push({merge->rank, merge->result, left});
}

/// Leaves the piece's tokens in `symbols`, those that are not gone.
bool PieceEncoder::merge(const BytePairs &pairs, std::string_view piece) {
  auto length = int32_t(piece.size());
  symbols.clear();
  heap.clear();
  if (!symbols.reserve(piece.size()))
    return false;
  for (int32_t i = 0; i < length; ++i)
    symbols.push({pairs.byteTokens[uint8_t(piece[size_t(i)])], i - 1,
                  i + 1 < length ? i + 1 : -1, false});
  for (int32_t i = 0; i + 1 < length; ++i)
    if (!consider(pairs, i, i + 1))
      return false;
  std::make_heap(heap.begin(), heap.end());
  while (!heap.empty()) {
    Candidate best = heap[0];
    std::pop_heap(heap.begin(), heap.end());
    heap.resize(heap.size() - 1);
    Symbol &left = symbols[size_t(best.left)];
    if (left.isGone || left.next < 0)
      continue;
    // What is here now may be others than those that were considered. As in
    // the published library, they are merged now if they become the same token,
    // even if the rank of this pair is another one.
    Symbol &right = symbols[size_t(left.next)];
    const MergeTable::Merge *now = pairs.merges.find(left.token, right.token);
    if (!now || now->result != best.result)
      continue;
    left.token = best.result;
    left.next = right.next;
    right.isGone = true;
    for (int32_t first : {left.previous, best.left}) {
      int32_t second = first < 0 ? -1 : symbols[size_t(first)].next;
      if (second < 0)
        continue;
      symbols[size_t(second)].previous = first;
      size_t before = heap.size();
      if (!consider(pairs, first, second))
        return false;
      if (heap.size() != before)
        std::push_heap(heap.begin(), heap.end());
    }
  }
  return true;
}

bool PieceEncoder::encode(const BytePairs &pairs, std::string_view piece,
                          List<uint32_t> &result) {
  if (!cache)
    cache =
        static_cast<CacheEntry *>(calloc(kCacheEntries, sizeof(CacheEntry)));
  if (!cache)
    return false;
  CacheEntry &entry = cache[hashOf(piece) % kCacheEntries];
  if (entry.length == piece.size() &&
      !memcmp(entry.bytes, piece.data(), piece.size()))
    return result.append(entry.tokens, entry.numTokens);

  size_t first = result.size();
  uint32_t whole = pairs.ignoreMerges ? pairs.vocabulary.find(piece) : kNoToken;
  if (whole != kNoToken) {
    if (!result.push(whole))
      return false;
  } else {
    if (!merge(pairs, piece))
      return false;
    for (const Symbol &symbol : symbols)
      if (!symbol.isGone && !result.push(symbol.token))
        return false;
  }
  size_t numTokens = result.size() - first;
  if (piece.size() > sizeof(entry.bytes) || numTokens > std::size(entry.tokens))
    return true;
  entry.length = uint8_t(piece.size());
  entry.numTokens = uint8_t(numTokens);
  memcpy(entry.bytes, piece.data(), piece.size());
  std::copy(result.begin() + first, result.end(), entry.tokens);
  return true;
}
