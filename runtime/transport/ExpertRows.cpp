//===- ExpertRows.cpp - Rows go to their experts and back -----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ExpertRows.h"

#include "runtime/base/List.h"

#include <algorithm>
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

bool reprise::runtime::splitOffsets(const char *what, int64_t experts,
                                    int64_t most, int64_t rounds, int32_t *own,
                                    Error &error) {
  // The first round is the last to be written, as all are read of it.
  for (int64_t round = rounds; round-- > 0;) {
    int32_t *offsets = own + round * (experts + 1);
    int64_t begin = 0, end = 0;
    for (int64_t e = 0; e <= experts; ++e) {
      const int64_t count = own[e] - begin - round * most;
      begin = own[e];
      if (round == rounds - 1 && count > most)
        return error.set("%s: expert %" PRId64 " has %" PRId64
                         " rows, but %" PRId64 " rounds have %" PRId64,
                         what, e - 1, count + round * most, rounds,
                         rounds * most);
      if (e > 0 && count > 0)
        end += std::min(count, most);
      offsets[e] = int32_t(end);
    }
  }
  return true;
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
    if (!check() || !clear(areSent))
      return false;
    for (int member = 0; member < group.size; ++member)
      if (!addParcels(member, areSent))
        return false;
    return memory.exchange(what, sends.begin(), int(sends.size()),
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

  /// Rows of one expert on one member: numbers `begin` to `end` of those that
  /// it has there, of which some move.
  struct Part {
    int64_t begin, end;
    int64_t count() const { return end - begin; }
  };
  int64_t countOf(int member, int64_t expert) const {
    return at(member, expert + 1) - at(member, expert);
  }
  /// Those of a member behind `before` rows of others.
  Part partOf(int64_t count, int64_t before) const {
    if (rows.most == 0)
      return {0, count};
    const int64_t begin = rows.first - before, end = begin + rows.most;
    const Part part = {std::max<int64_t>(begin, 0), std::min(end, count)};
    return {part.begin, std::max(part.begin, part.end)};
  }

  /// That offsets ascend from zero, and that all rows have room.
  bool check() {
    for (int member = 0; member < group.size; ++member)
      for (int64_t e = 0; e <= rows.experts; ++e)
        if (e == 0 ? at(member, 0) != 0 : at(member, e) < at(member, e - 1))
          return error.set("%s: rows of experts are not in order", what);
    for (int64_t e = self * perMember(); e < (self + 1) * perMember(); ++e) {
      int64_t count = 0;
      for (int member = 0; member < group.size; ++member)
        count += countOf(member, e);
      numThere += partOf(count, 0).count();
    }
    return fits(numThere, there, "for experts of this rank") &&
           fits(at(self, rows.experts), home, "of this rank's tokens");
  }

  /// What no row comes to. A round's rows may lie anywhere at home.
  bool clear(bool areSent) {
    if (!areSent && rows.keepsOthers)
      return true;
    const Place &to = areSent ? there : home;
    const int64_t filled = areSent          ? numThere
                           : rows.most == 0 ? at(self, rows.experts)
                                            : 0;
    return memory.clear(to.bytes + filled * bytes,
                        size_t((to.count - filled) * bytes), error);
  }

  /// The rows of member `from` for an expert of member `to`: where the first of
  /// those that move lies at home, behind the expert's first one, and there.
  struct Way {
    int64_t home, there, count;
  };
  Way wayOf(int from, int64_t expert, int to) const {
    Way way = {0, 0, 0};
    for (int64_t e = to * perMember(); e <= expert; ++e) {
      int64_t before = 0;
      for (int member = 0; member < group.size; ++member) {
        const int64_t count = countOf(member, e);
        const Part part = partOf(count, before);
        if (e == expert && member == from) {
          way.home = part.begin;
          way.count = part.count();
          return way;
        }
        way.there += part.count();
        before += count;
      }
    }
    return way;
  }

  /// What goes to `member` and comes from it: a parcel for each expert of the
  /// two that has rows of the other.
  bool addParcels(int member, bool areSent) {
    for (int64_t e = 0; e < perMember(); ++e) {
      const int64_t theirs = member * perMember() + e;
      const int64_t own = self * perMember() + e;
      const Way away = wayOf(self, theirs, member);
      const Way here = wayOf(member, own, self);
      const Place ofTokens = {
          home.bytes + (at(self, theirs) + away.home) * bytes, away.count};
      const Place ofExpert = {there.bytes + here.there * bytes, here.count};
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
