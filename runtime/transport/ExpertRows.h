//===- ExpertRows.h - Rows go to their experts and back ---------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_TRANSPORT_EXPERTROWS_H
#define REPRISE_RUNTIME_TRANSPORT_EXPERTROWS_H

#include "Collectives.h"

namespace reprise::runtime {

/// Rows of tokens, sorted by expert, and what all members of a group have of
/// them: member `m` has the rows `offsets[m * (experts + 1) + e]` up to the
/// next number for expert `e`. Each member has an equal number of the experts,
/// in order.
///
/// Those that move are, of an expert's rows in the order of the members, the
/// ones from number `first` on: `most` of them at most, or all if that is 0.
struct ExpertRows {
  int64_t experts, rowElements;
  const int32_t *offsets;
  int64_t first = 0, most = 0;
  bool keepsOthers = false; ///< what other rows are at home
};

/// `all` become the offsets of all members, `experts + 1` each, and `own` those
/// of the rows that this member's experts have from all of them.
bool gatherOffsets(RankMemory &memory, const Group &group, const char *what,
                   int64_t experts, const int32_t *offsets, int32_t *all,
                   int32_t *own, Error &error);

/// `own` become the offsets of the rows of each of `rounds`, in which an expert
/// has at most `most`; before, they are those of all rows. False if that takes
/// more rounds.
bool splitOffsets(const char *what, int64_t experts, int64_t most,
                  int64_t rounds, int32_t *own, Error &error);

/// `there` becomes the rows of this member's experts, for each of them those of
/// all members in their order, and zeros behind them. `home` are the rows of
/// its own tokens. False if there is no room for so many.
///
/// With a `workspace` the host looks at no offset, and rows go in slots:
/// `there` has room for a slot of each member, and the workspace for as much.
bool sendRows(RankMemory &memory, const Group &group, const char *what,
              Number number, const ExpertRows &rows, Span home, Span there,
              Span workspace, Error &error);

/// The other way: `home` becomes the rows of this member's tokens, from where
/// `sendRows` puts them, and other rows zeros, or they stay. A `workspace` has
/// room for `there` twice.
bool returnRows(RankMemory &memory, const Group &group, const char *what,
                Number number, const ExpertRows &rows, Span there, Span home,
                Span workspace, Error &error);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_TRANSPORT_EXPERTROWS_H
