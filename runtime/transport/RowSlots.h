//===- RowSlots.h - Rows of experts in slots of one size --------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where the host does not know how many rows go from one rank to another, all
// parcels have one size, and each member of a group has a slot of as many rows
// as can go at most. The rows of a slot are its first ones, and those behind
// them have any value.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_TRANSPORT_ROWSLOTS_H
#define REPRISE_RUNTIME_TRANSPORT_ROWSLOTS_H

#include <cstdint>

namespace reprise::runtime {

/// Rows in the order of their experts, and a slot for each member. Rows of
/// tokens are those of a member's own, as `ExpertRows` has them, and slot `m`
/// has those for experts of member `m`. The others are rows of its experts,
/// with those of all members, in order, for each; slot `m` has those of member
/// `m`.
struct RowSlots {
  const int32_t *offsets; ///< Of all members: see `ExpertRows`.
  int64_t experts, members, self;
  int64_t rowBytes;
  bool areOfTokens;
  char *rows;
  int64_t numRows; ///< That there is room for.
  char *slots;
  int64_t slotRows;

  int64_t perMember() const { return experts / members; }
  /// Blocks of a launch with one for each row of a slot, and for each row that
  /// is none of a slot's.
  int64_t numBlocks() const {
    const int64_t inSlots = members * slotRows;
    return inSlots > numRows ? inSlots : numRows;
  }
};

/// Where a row of a slot lies among the others: the one that defines what
/// kernels for rows do. With `isFilled` it is a row of somebody; without, one
/// that nobody has, which is to be zero, if there is room for it.
struct RowPlace {
  int64_t row;
  bool isFilled;
};

/// The place of row `block % slotRows` of slot `block / slotRows`. Blocks
/// behind all slots are of rows that nobody has.
RowPlace placeOf(const RowSlots &slots, int64_t block);

/// Copies rows to their slots, on the host.
void fillSlots(const RowSlots &slots);
/// Copies the rows of slots to where they belong, on the host, and makes the
/// others zero.
void emptySlots(const RowSlots &slots);

/// The offsets of the rows that a member's experts have from all members.
void findOwnOffsets(const int32_t *all, int64_t experts, int64_t members,
                    int64_t self, int32_t *own);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_TRANSPORT_ROWSLOTS_H
