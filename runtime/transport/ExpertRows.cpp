//===- ExpertRows.cpp - Rows go to their experts and back -----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ExpertRows.h"

#include "runtime/base/List.h"

#include <cinttypes>

using namespace reprise::runtime;

bool reprise::runtime::gatherOffsets(RankMemory &memory, const Group &group,
                                     const char *what, int64_t experts,
                                     const int32_t *offsets, int32_t *all,
                                     int32_t *own, Error &error) {
  // Moved as numbers of as many bytes.
  if (!allGather(memory, group, what, Number::F32, {1, experts + 1}, offsets,
                 all, error))
    return false;
  return memory.findOwnOffsets(all, experts, group.size,
                               group.memberOf(memory.rank()), own, error);
}

namespace {
/// Bytes of rows in two places: at home, and with their experts.
class Rows {
public:
  Rows(RankMemory &memory, const Group &group, const char *what, Number number,
       const ExpertRows &rows, Span home, Span there, Error &error)
      : memory(memory), group(group), what(what), rows(rows), error(error),
        bytes(rows.rowElements * sizeOf(number)),
        self(group.memberOf(memory.rank())), home(split(home, number)),
        there(split(there, number)) {}

  /// From home to the experts, or back.
  bool exchange(bool areSent) {
    if (!check())
      return false;
    for (int member = 0; member < group.size; ++member)
      if (!addParcels(member, areSent))
        return false;
    const Place &to = areSent ? there : home;
    const int64_t filled = areSent ? numThere : at(self, rows.experts);
    return memory.clear(to.bytes + filled * bytes,
                        size_t((to.count - filled) * bytes), error) &&
           memory.exchange(what, sends.begin(), int(sends.size()),
                           receives.begin(), int(receives.size()), error);
  }

private:
  struct Place {
    char *bytes;
    int64_t count;
  };
  Place split(Span span, Number number) const {
    return {static_cast<char *>(span.values),
            span.count * sizeOf(number) / bytes};
  }
  int32_t at(int member, int64_t expert) const {
    return rows.offsets[member * (rows.experts + 1) + expert];
  }
  int64_t perMember() const { return rows.experts / group.size; }

  bool fits(int64_t count, const Place &place, const char *whose) {
    return count <= place.count ||
           error.set("%s: %" PRId64 " rows %s, but there is room for %" PRId64,
                     what, count, whose, place.count);
  }

  /// That offsets ascend from zero, and that all rows have room.
  bool check() {
    for (int member = 0; member < group.size; ++member)
      for (int64_t e = 0; e <= rows.experts; ++e)
        if (e == 0 ? at(member, 0) != 0 : at(member, e) < at(member, e - 1))
          return error.set("%s: rows of experts are not in order", what);
    const int64_t first = self * perMember();
    for (int member = 0; member < group.size; ++member)
      numThere += at(member, first + perMember()) - at(member, first);
    return fits(numThere, there, "for experts of this rank") &&
           fits(at(self, rows.experts), home, "of this rank's tokens");
  }

  /// The first row of member `from` for an expert of member `to`, there.
  int64_t placeOf(int from, int64_t expert, int to) const {
    const int64_t first = to * perMember();
    int64_t place = 0;
    for (int member = 0; member < group.size; ++member) {
      place += at(member, expert) - at(member, first);
      if (member < from)
        place += at(member, expert + 1) - at(member, expert);
    }
    return place;
  }

  /// What goes to `member` and comes from it: a parcel for each expert of the
  /// two that has rows of the other.
  bool addParcels(int member, bool areSent) {
    for (int64_t e = 0; e < perMember(); ++e) {
      const int64_t theirs = member * perMember() + e;
      const int64_t own = self * perMember() + e;
      const Place ofTokens = {home.bytes + at(self, theirs) * bytes,
                              at(self, theirs + 1) - at(self, theirs)};
      const Place ofExpert = {there.bytes + placeOf(member, own, self) * bytes,
                              at(member, own + 1) - at(member, own)};
      if (member == self) {
        const Place &from = areSent ? ofTokens : ofExpert;
        const Place &to = areSent ? ofExpert : ofTokens;
        if (!memory.copy(to.bytes, from.bytes, size_t(from.count * bytes),
                         error))
          return false;
        continue;
      }
      if (!add(areSent ? sends : receives, member, ofTokens) ||
          !add(areSent ? receives : sends, member, ofExpert))
        return error.set("no memory left for the parcels of %s", what);
    }
    return true;
  }
  bool add(List<Parcel> &list, int member, const Place &place) {
    return place.count == 0 || list.push({group.rankOf(member), place.bytes,
                                          size_t(place.count * bytes)});
  }

  RankMemory &memory;
  const Group group;
  const char *what;
  const ExpertRows rows;
  Error &error;
  const int64_t bytes; ///< of a row
  const int self;
  const Place home, there;
  int64_t numThere = 0;
  List<Parcel> sends, receives;
};
} // namespace

/// Rows of equal numbers go to all members, and come from them, in `sent` and
/// `received`, and from there to where they belong.
static bool exchangeSlots(RankMemory &memory, const Group &group,
                          const char *what, RowSlots from, RowSlots to,
                          char *sent, char *received, Error &error) {
  const int64_t bytes = from.slotRows * from.rowBytes;
  from.slots = sent;
  to.slots = received;
  if (!memory.fillSlots(from, error) ||
      !memory.copy(received + from.self * bytes, sent + from.self * bytes,
                   size_t(bytes), error))
    return false;
  List<Parcel> sends, receives;
  for (int member = 0; member < group.size; ++member) {
    const int rank = group.rankOf(member);
    if (rank != memory.rank() &&
        !(sends.push({rank, sent + member * bytes, size_t(bytes)}) &&
          receives.push({rank, received + member * bytes, size_t(bytes)})))
      return error.set("no memory left for the parcels of %s", what);
  }
  return memory.exchange(what, sends.begin(), int(sends.size()),
                         receives.begin(), int(receives.size()), error) &&
         memory.emptySlots(to, error);
}

/// In slots of as many rows as there is room for in `there`.
static bool moveInSlots(RankMemory &memory, const Group &group,
                        const char *what, Number number, const ExpertRows &rows,
                        Span home, Span there, Span workspace, bool areSent,
                        Error &error) {
  const int64_t size = sizeOf(number);
  RowSlots atHome = {rows.offsets,
                     rows.experts,
                     group.size,
                     group.memberOf(memory.rank()),
                     rows.rowElements * size,
                     /*areOfTokens=*/true,
                     static_cast<char *>(home.values),
                     home.count / rows.rowElements,
                     nullptr,
                     there.count / rows.rowElements / group.size};
  RowSlots atExperts = atHome;
  atExperts.areOfTokens = false;
  atExperts.rows = static_cast<char *>(there.values);
  atExperts.numRows = there.count / rows.rowElements;
  const int64_t bytes = atHome.slotRows * group.size * rows.rowElements * size;
  const int64_t copies = areSent ? 1 : 2;
  if (atHome.slotRows < 1 || workspace.count * size < copies * bytes)
    return error.set("%s: %" PRId64 " rows in slots of %d ranks need a "
                     "workspace of %" PRId64 " bytes, but got %" PRId64,
                     what, atExperts.numRows, group.size, copies * bytes,
                     workspace.count * size);
  auto *space = static_cast<char *>(workspace.values);
  // What is sent lies where what is made will be, as long as there is room.
  return areSent ? exchangeSlots(memory, group, what, atHome, atExperts,
                                 atExperts.rows, space, error)
                 : exchangeSlots(memory, group, what, atExperts, atHome, space,
                                 space + bytes, error);
}

bool reprise::runtime::sendRows(RankMemory &memory, const Group &group,
                                const char *what, Number number,
                                const ExpertRows &rows, Span home, Span there,
                                Span workspace, Error &error) {
  if (workspace.values)
    return moveInSlots(memory, group, what, number, rows, home, there,
                       workspace, /*areSent=*/true, error);
  return Rows(memory, group, what, number, rows, home, there, error)
      .exchange(/*areSent=*/true);
}

bool reprise::runtime::returnRows(RankMemory &memory, const Group &group,
                                  const char *what, Number number,
                                  const ExpertRows &rows, Span there, Span home,
                                  Span workspace, Error &error) {
  if (workspace.values)
    return moveInSlots(memory, group, what, number, rows, home, there,
                       workspace, /*areSent=*/false, error);
  return Rows(memory, group, what, number, rows, home, there, error)
      .exchange(/*areSent=*/false);
}
