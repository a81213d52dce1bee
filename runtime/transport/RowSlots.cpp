//===- RowSlots.cpp - Rows of experts in slots of one size ----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowSlots.h"

#include <cstring>

using namespace reprise::runtime;

namespace {
/// What offsets say of slots.
struct Offsets {
  const RowSlots &slots;

  int64_t at(int64_t member, int64_t expert) const {
    return slots.offsets[member * (slots.experts + 1) + expert];
  }
  /// Rows of an expert from a member.
  int64_t count(int64_t member, int64_t expert) const {
    return at(member, expert + 1) - at(member, expert);
  }
  int64_t ownFirst() const { return slots.self * slots.perMember(); }
  /// Whose offsets a slot's rows stand in, and from which expert on.
  int64_t whose(int64_t slot) const {
    return slots.areOfTokens ? slots.self : slot;
  }
  int64_t firstOf(int64_t slot) const {
    return slots.areOfTokens ? slot * slots.perMember() : ownFirst();
  }
  int64_t beginOf(int64_t slot) const { return at(whose(slot), firstOf(slot)); }
  int64_t countOf(int64_t slot) const {
    return at(whose(slot), firstOf(slot) + slots.perMember()) - beginOf(slot);
  }
  int64_t placeAtExperts(int64_t slot, int64_t i) const;
};
} // namespace

/// Of row `i` of a member's: behind all rows of lower experts, and those of
/// lower members for its own.
int64_t Offsets::placeAtExperts(int64_t slot, int64_t i) const {
  const int64_t first = ownFirst();
  int64_t expert = 0;
  while (expert + 1 < slots.perMember() &&
         at(slot, first + expert + 1) - at(slot, first) <= i)
    ++expert;
  int64_t place = i - (at(slot, first + expert) - at(slot, first));
  for (int64_t member = 0; member < slots.members; ++member)
    place += at(member, first + expert) - at(member, first) +
             (member < slot ? count(member, first + expert) : 0);
  return place;
}

RowPlace reprise::runtime::placeOf(const RowSlots &slots, int64_t block) {
  const Offsets offsets = {slots};
  const int64_t slot = block / slots.slotRows, i = block % slots.slotRows;
  int64_t all = 0, below = 0;
  for (int64_t member = 0; member < slots.members; ++member) {
    all += offsets.countOf(member);
    below += member < slot ? offsets.countOf(member) : 0;
  }
  const int64_t count = slot < slots.members ? offsets.countOf(slot) : 0;
  if (i >= count)
    return {all + block - below - count, false};
  return {slots.areOfTokens ? offsets.beginOf(slot) + i
                            : offsets.placeAtExperts(slot, i),
          true};
}

void reprise::runtime::fillSlots(const RowSlots &slots) {
  const int64_t bytes = slots.rowBytes;
  for (int64_t block = 0; block < slots.members * slots.slotRows; ++block)
    if (RowPlace place = placeOf(slots, block);
        place.isFilled && place.row < slots.numRows)
      memcpy(slots.slots + block * bytes, slots.rows + place.row * bytes,
             size_t(bytes));
}

void reprise::runtime::emptySlots(const RowSlots &slots) {
  const int64_t bytes = slots.rowBytes;
  for (int64_t block = 0; block < slots.numBlocks(); ++block) {
    const RowPlace place = placeOf(slots, block);
    if (place.row >= slots.numRows)
      continue;
    char *row = slots.rows + place.row * bytes;
    if (place.isFilled)
      memcpy(row, slots.slots + block * bytes, size_t(bytes));
    else
      memset(row, 0, size_t(bytes));
  }
}

void reprise::runtime::findOwnOffsets(const int32_t *all, int64_t experts,
                                      int64_t members, int64_t self,
                                      int32_t *own) {
  const int64_t some = experts / members, first = self * some;
  for (int64_t e = 0; e <= some; ++e) {
    own[e] = 0;
    for (int64_t member = 0; member < members; ++member) {
      const int32_t *from = all + member * (experts + 1) + first;
      own[e] += from[e] - from[0];
    }
  }
}
