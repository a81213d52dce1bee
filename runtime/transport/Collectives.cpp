//===- Collectives.cpp - Sums over ranks in a fixed order -----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Collectives.h"

#include "runtime/base/BF16.h"
#include "runtime/base/List.h"

#include "reprise/ABI/Model.h"

#include <algorithm>
#include <cstring>

using namespace reprise::runtime;

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// Elements that are summed while they are in L1, with a temporary row for
/// each level of the tree.
static constexpr int64_t kRow = 512;

static void load(float *out, const float *from, int64_t count) {
  memcpy(out, from, size_t(count) * sizeof(float));
}
static void load(float *out, const uint16_t *from, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    out[i] = fromBF16(from[i]);
}
static void store(float *out, const float *from, int64_t count) {
  memcpy(out, from, size_t(count) * sizeof(float));
}
static void store(uint16_t *out, const float *from, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    out[i] = roundToBF16(from[i]);
}

int reprise::runtime::countRuns(int64_t groups) {
  int runs = 0;
  for (; groups > 0; groups &= groups - 1) // Without its lowest bit.
    ++runs;
  return runs;
}

namespace {
/// The parts of a sum, each of so many groups that it says.
struct Parts {
  const void *const *parts;
  int ranks;
  int64_t groups; ///< Of a rank.

  int64_t groupsOf(int part) const {
    int64_t left = groups, run = 0;
    for (int i = part / ranks; i >= 0; --i) {
      run = 1;
      while (2 * run <= left)
        run *= 2;
      left -= run;
    }
    return run;
  }
  /// Where the second branch of the tree over parts [begin, end) begins.
  int splitOf(int begin, int end) const {
    int64_t all = 0, before = 0, half = 1;
    for (int part = begin; part < end; ++part)
      all += groupsOf(part);
    while (2 * half < all)
      half *= 2;
    while (before < half)
      before += groupsOf(begin++);
    return begin;
  }
};
} // namespace

/// One row of `sumTree`, of parts [begin, end).
template <typename T>
static void sumRow(float *out, const Parts &parts, int begin, int end,
                   int64_t first, int64_t count) {
  if (end - begin == 1)
    return load(out, static_cast<const T *>(parts.parts[begin]) + first, count);
  const int middle = parts.splitOf(begin, end);
  float left[kRow], right[kRow];
  sumRow<T>(left, parts, begin, middle, first, count);
  sumRow<T>(right, parts, middle, end, first, count);
  for (int64_t i = 0; i < count; ++i)
    out[i] = left[i] + right[i];
}

template <typename T>
static void sumRows(void *out, const Parts &parts, int numParts,
                    int64_t count) {
  float row[kRow];
  for (int64_t first = 0; first < count; first += kRow) {
    const int64_t some = std::min(kRow, count - first);
    sumRow<T>(row, parts, 0, numParts, first, some);
    store(static_cast<T *>(out) + first, row, some);
  }
}

void reprise::runtime::sumTree(Number number, void *out,
                               const void *const *parts, int numParts,
                               int64_t groups, int64_t count) {
  const Parts all = {parts, numParts / countRuns(groups), groups};
  if (number == Number::F32)
    sumRows<float>(out, all, numParts, count);
  else
    sumRows<uint16_t>(out, all, numParts, count);
}

//===----------------------------------------------------------------------===//
// The host's memory
//===----------------------------------------------------------------------===//

bool HostMemory::exchange(const char *what, const Parcel *sends, int numSends,
                          const Parcel *receives, int numReceives,
                          Error &error) {
  return transport.exchange(what, Patience::Limited, sends, numSends, receives,
                            numReceives, error);
}

bool HostMemory::sum(Number number, void *out, const void *const *parts,
                     int numParts, int64_t groups, int64_t count,
                     Error & /*error*/) {
  sumTree(number, out, parts, numParts, groups, count);
  return true;
}

bool HostMemory::copy(void *to, const void *from, size_t size,
                      Error & /*error*/) {
  if (to != from)
    memcpy(to, from, size);
  return true;
}

bool HostMemory::clear(void *bytes, size_t size, Error & /*error*/) {
  memset(bytes, 0, size);
  return true;
}

bool HostMemory::fillSlots(const RowSlots &slots, Error & /*error*/) {
  reprise::runtime::fillSlots(slots);
  return true;
}

bool HostMemory::emptySlots(const RowSlots &slots, Error & /*error*/) {
  reprise::runtime::emptySlots(slots);
  return true;
}

bool HostMemory::findOwnOffsets(const int32_t *all, int64_t experts,
                                int64_t members, int64_t self, int32_t *own,
                                Error & /*error*/) {
  reprise::runtime::findOwnOffsets(all, experts, members, self, own);
  return true;
}

//===----------------------------------------------------------------------===//
// Pieces
//===----------------------------------------------------------------------===//

/// Elements of several spans, as if one followed the other.
using Pieces = List<Span>;

static bool noMemory(Error &error) {
  return error.set("no memory left for the parcels of an exchange");
}

static char *at(const void *values, int64_t index, Number number) {
  return static_cast<char *>(const_cast<void *>(values)) +
         index * sizeOf(number);
}

/// Appends to `pieces` the elements [begin, end) of the spans.
static bool cut(const Span *spans, int numSpans, int64_t begin, int64_t end,
                Number number, Pieces &pieces) {
  for (int i = 0; i < numSpans && begin < end; ++i) {
    const int64_t count = spans[i].count;
    if (begin < count && !pieces.push({at(spans[i].values, begin, number),
                                       std::min(end, count) - begin}))
      return false;
    begin = std::max<int64_t>(begin - count, 0);
    end -= count;
  }
  return true;
}

/// Appends the elements [begin, end) of the part of `member` of `size` in a
/// whole.
static bool cutPart(const void *whole, Blocks blocks, int member, int size,
                    int64_t begin, int64_t end, Number number, Pieces &pieces) {
  while (begin < end) {
    const int64_t block = begin / blocks.elements;
    const int64_t inside = begin % blocks.elements;
    const int64_t count = std::min(blocks.elements - inside, end - begin);
    const int64_t first = (block * size + member) * blocks.elements + inside;
    if (!pieces.push({at(whole, first, number), count}))
      return false;
    begin += count;
  }
  return true;
}

namespace {
/// The ranks of a group in one operation.
class Operation {
public:
  Operation(RankMemory &memory, const Group &group, const char *what,
            Number number, Error &error)
      : number(number), group(group), self(group.memberOf(memory.rank())),
        terms(countRuns(group.groups)), error(error), memory(memory),
        what(what) {}

  bool send(int member, const Pieces &pieces) {
    return add(sends, member, pieces);
  }
  bool receive(int member, const Pieces &pieces) {
    return add(receives, member, pieces);
  }
  bool exchange() {
    bool good = memory.exchange(what, sends.begin(), int(sends.size()),
                                receives.begin(), int(receives.size()), error);
    sends.clear();
    receives.clear();
    return good;
  }
  bool fail() { return noMemory(error); }
  bool copy(void *to, const void *from, int64_t count) {
    return memory.copy(to, from, size_t(count * sizeOf(number)), error);
  }
  bool clear(void *values, int64_t count) {
    return memory.clear(values, size_t(count * sizeOf(number)), error);
  }
  /// Of terms of so many members, in the order of the runs.
  bool sum(void *out, const void *const *parts, int members, int64_t count) {
    return memory.sum(number, out, parts, members * terms, group.groups, count,
                      error);
  }

  const Number number;
  const Group group;
  const int self, terms; ///< Of each member, one for each run.
  Error &error;

private:
  bool add(List<Parcel> &list, int member, const Pieces &pieces) {
    for (const Span &piece : pieces)
      if (!list.push({group.rankOf(member), static_cast<char *>(piece.values),
                      size_t(piece.count * sizeOf(number))}))
        return noMemory(error);
    return true;
  }

  RankMemory &memory;
  const char *what;
  List<Parcel> sends, receives;
};

/// Sums of pieces that each member makes for itself: what the others have of
/// them goes through a workspace, a place for each term of each member.
class Sums {
public:
  Sums(Operation &all, Span workspace)
      : all(all), workspace(workspace),
        perTerm(workspace.count / (int64_t(all.group.size) * all.terms)) {}

  bool prepare() {
    return parts.resize(size_t(all.group.size) * size_t(all.terms)) ||
           all.fail();
  }
  /// The most elements of a member.
  int64_t most() const { return perTerm; }

  /// Sends each member its own pieces of each term, as `piecesOf(term, member,
  /// pieces)` appends them, all alike, and receives what the others have of its
  /// own, which are there to be added.
  template <typename PiecesOf>
  bool exchangeParts(PiecesOf piecesOf) {
    own.clear();
    for (int term = 0; term < all.terms; ++term)
      if (!piecesOf(term, all.self, own))
        return all.fail();
    for (int member = 0; member < all.group.size; ++member) {
      if (member == all.self)
        continue;
      pieces.clear();
      for (int term = 0; term < all.terms; ++term)
        if (!piecesOf(term, member, pieces))
          return all.fail();
      if (!all.send(member, pieces))
        return false;
      pieces.clear();
      for (int term = 0; term < all.terms; ++term) {
        int64_t done = 0;
        for (const Span &piece : ownOf(term)) {
          if (!pieces.push({placeOf(term, member, done), piece.count}))
            return all.fail();
          done += piece.count;
        }
      }
      if (!all.receive(member, pieces))
        return false;
    }
    return all.exchange();
  }

  /// The sums of the own pieces and what was received, one behind the other in
  /// `out`; in place of those of the last term if that is null.
  bool add(void *out) {
    int64_t done = 0;
    const Terms last = ownOf(all.terms - 1);
    for (const Span &piece : last) {
      const auto number = size_t(&piece - last.first);
      for (int term = 0; term < all.terms; ++term)
        for (int member = 0; member < all.group.size; ++member)
          parts[size_t(term) * size_t(all.group.size) + size_t(member)] =
              member == all.self ? ownOf(term).first[number].values
                                 : placeOf(term, member, done);
      if (!all.sum(out ? at(out, done, all.number) : piece.values,
                   parts.begin(), all.group.size, piece.count))
        return false;
      done += piece.count;
    }
    return true;
  }

private:
  struct Terms {
    const Span *first, *last;
    const Span *begin() const { return first; }
    const Span *end() const { return last; }
  };
  Terms ownOf(int term) const {
    const size_t count = own.size() / size_t(all.terms);
    const Span *first = own.begin() + size_t(term) * count;
    return {first, first + count};
  }
  char *placeOf(int term, int member, int64_t done) const {
    const int64_t place = int64_t(member) * all.terms + term;
    return at(workspace.values, place * perTerm + done, all.number);
  }

  Operation &all;
  const Span workspace;
  const int64_t perTerm;
  Pieces own, pieces;
  List<const void *> parts;
};
} // namespace

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// What sums in place of the program; null: the program does.
static EngineSums *engineSumsOf(RankMemory &memory, const Group &group,
                                Number number) {
  return group.size > 1 ? memory.engineSums(group, number) : nullptr;
}

/// Where an engine is to sum: one term of each sum, the last.
static bool addTerms(Operation &all, const Span *spans, int numSums) {
  List<const void *> parts;
  if (!parts.resize(size_t(all.terms)))
    return all.fail();
  for (int i = 0; i < numSums && all.terms > 1; ++i) {
    for (int term = 0; term < all.terms; ++term)
      parts[size_t(term)] = spans[term * numSums + i].values;
    const Span &last = spans[(all.terms - 1) * numSums + i];
    if (!all.sum(last.values, parts.begin(), 1, last.count))
      return false;
  }
  return true;
}

/// The sums of the elements from `first` on, `count` of them, of which each
/// member makes an equal share.
static bool reduceSome(Operation &all, Sums &sums, const Span *spans,
                       int numSums, int64_t first, int64_t count) {
  auto sharesOf = [&](int term, int member, Pieces &pieces) {
    const int size = all.group.size;
    return cut(spans + term * numSums, numSums, first + count * member / size,
               first + count * (member + 1) / size, all.number, pieces);
  };
  if (!sums.exchangeParts(sharesOf) || !sums.add(nullptr))
    return false;
  Pieces own, pieces;
  const int last = all.terms - 1;
  if (!sharesOf(last, all.self, own))
    return all.fail();
  for (int member = 0; member < all.group.size; ++member) {
    if (member == all.self)
      continue;
    pieces.clear();
    if (!sharesOf(last, member, pieces))
      return all.fail();
    if (!all.send(member, own) || !all.receive(member, pieces))
      return false;
  }
  return all.exchange();
}

bool reprise::runtime::allReduce(RankMemory &memory, const Group &group,
                                 const char *what, Number number,
                                 const Span *spans, int numSpans,
                                 Span workspace, Error &error) {
  Operation all(memory, group, what, number, error);
  const int numSums = numSpans / all.terms;
  EngineSums *engine = engineSumsOf(memory, group, number);
  if (group.size == 1 || engine)
    return addTerms(all, spans, numSums) &&
           (!engine ||
            engine->allReduce(group, what, spans + numSpans - numSums, numSums,
                              error));
  Sums sums(all, workspace);
  if (!sums.prepare())
    return false;
  int64_t end = 0;
  for (int i = 0; i < numSums; ++i)
    end += spans[i].count;
  for (int64_t first = 0, count; first < end; first += count) {
    count = std::min(sums.most() * group.size, end - first);
    if (!reduceSome(all, sums, spans, numSums, first, count))
      return false;
  }
  return true;
}

bool reprise::runtime::allGather(RankMemory &memory, const Group &group,
                                 const char *what, Number number, Blocks blocks,
                                 const void *part, void *whole, Error &error) {
  Operation all(memory, group, what, number, error);
  const int64_t count = blocks.count * blocks.elements;
  Pieces own, pieces;
  for (int64_t first = 0; first < count; first += blocks.elements)
    if (!own.push({at(part, first, number), blocks.elements}))
      return all.fail();
  for (int member = 0; member < group.size; ++member) {
    pieces.clear();
    if (!cutPart(whole, blocks, member, group.size, 0, count, number, pieces))
      return all.fail();
    if (member != all.self) {
      if (!all.send(member, own) || !all.receive(member, pieces))
        return false;
      continue;
    }
    const char *from = static_cast<const char *>(part);
    for (const Span &piece : pieces) {
      if (!all.copy(piece.values, from, piece.count))
        return false;
      from += piece.count * sizeOf(number);
    }
  }
  return all.exchange();
}

bool reprise::runtime::reduceScatter(RankMemory &memory, const Group &group,
                                     const char *what, Number number,
                                     Blocks blocks, const void *whole,
                                     void *part, Span workspace, Error &error) {
  if (EngineSums *engine = engineSumsOf(memory, group, number))
    return engine->reduceScatter(group, what, blocks, whole, part, error);
  Operation all(memory, group, what, number, error);
  Sums sums(all, workspace);
  if (!sums.prepare())
    return false;
  const int64_t end = blocks.count * blocks.elements;
  for (int64_t first = 0, count; first < end; first += count) {
    count = std::min(sums.most(), end - first);
    auto sharesOf = [&](int /*term*/, int member, Pieces &pieces) {
      return cutPart(whole, blocks, member, group.size, first, first + count,
                     number, pieces);
    };
    if (!sums.exchangeParts(sharesOf) || !sums.add(at(part, first, number)))
      return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Shares
//===----------------------------------------------------------------------===//

Share reprise::runtime::shareOf(int64_t count, int member, int size) {
  constexpr int64_t kBlock = REPRISE_SHARE_BLOCK;
  const int64_t blocks = (count + kBlock - 1) / kBlock;
  const int64_t most = (blocks + size - 1) / size * kBlock;
  return {std::min(count, member * most), std::min(count, (member + 1) * most)};
}

/// Appends to `pieces` the elements [begin, end) of the shares of `member`, as
/// if they followed each other.
static bool cutShares(const Span *spans, int numSpans, int member, int size,
                      int64_t begin, int64_t end, Number number,
                      Pieces &pieces) {
  for (int i = 0; i < numSpans && begin < end; ++i) {
    const Share share = shareOf(spans[i].count, member, size);
    const int64_t count = share.end - share.begin;
    if (begin < count &&
        !pieces.push({at(spans[i].values, share.begin + begin, number),
                      std::min(end, count) - begin}))
      return false;
    begin = std::max<int64_t>(begin - count, 0);
    end -= count;
  }
  return true;
}

/// Makes the sums of shares, by the tree.
static bool sumShares(Operation &all, const Span *spans, int numSums,
                      Span workspace) {
  const int size = all.group.size;
  Sums sums(all, workspace);
  if (!sums.prepare())
    return false;
  int64_t most = 0; // The first member has the largest shares.
  for (int i = 0; i < numSums; ++i)
    most += shareOf(spans[i].count, 0, size).end;
  for (int64_t first = 0; first < most; first += sums.most()) {
    auto sharesOf = [&](int term, int member, Pieces &pieces) {
      return cutShares(spans + term * numSums, numSums, member, size, first,
                       first + sums.most(), all.number, pieces);
    };
    if (!sums.exchangeParts(sharesOf) || !sums.add(nullptr))
      return false;
  }
  return true;
}

bool reprise::runtime::reduceShares(RankMemory &memory, const Group &group,
                                    const char *what, Number number,
                                    const Span *spans, int numSpans,
                                    Span workspace, Error &error) {
  Operation all(memory, group, what, number, error);
  EngineSums *engine = engineSumsOf(memory, group, number);
  const int numSums = numSpans / all.terms;
  const Span *last = spans + numSpans - numSums;
  if (engine ? !addTerms(all, spans, numSums) ||
                   !engine->reduceShares(group, what, last, numSums, error)
             : !sumShares(all, spans, numSums, workspace))
    return false;
  for (int i = 0; i < numSums; ++i) {
    const Share share = shareOf(last[i].count, all.self, group.size);
    if (!all.clear(last[i].values, share.begin) ||
        !all.clear(at(last[i].values, share.end, number),
                   last[i].count - share.end))
      return false;
  }
  return true;
}

bool reprise::runtime::gatherShares(RankMemory &memory, const Group &group,
                                    const char *what, Number number,
                                    const void *share, Span whole,
                                    Error &error) {
  Operation all(memory, group, what, number, error);
  auto cutOwn = [&](int member, const void *values, int64_t first,
                    Pieces &pieces) {
    const Share own = shareOf(whole.count, member, group.size);
    return own.begin == own.end ||
           pieces.push({at(values, first, number), own.end - own.begin});
  };
  Pieces own, pieces;
  if (!cutOwn(all.self, share, 0, own))
    return all.fail();
  for (int member = 0; member < group.size; ++member) {
    pieces.clear();
    const Share theirs = shareOf(whole.count, member, group.size);
    if (!cutOwn(member, whole.values, theirs.begin, pieces))
      return all.fail();
    if (member == all.self
            ? !all.copy(at(whole.values, theirs.begin, number), share,
                        theirs.end - theirs.begin)
            : !all.send(member, own) || !all.receive(member, pieces))
      return false;
  }
  return all.exchange();
}

bool reprise::runtime::broadcast(Transport &transport, const Group &group,
                                 const char *what, void *bytes, size_t size,
                                 Error &error) {
  List<Parcel> parcels;
  bool isRoot = transport.rank() == group.first;
  for (int member = 0; member < group.size; ++member)
    if (isRoot ? member != 0 : member == 0)
      if (!parcels.push(
              {group.rankOf(member), static_cast<char *>(bytes), size}))
        return noMemory(error);
  const int count = int(parcels.size());
  return transport.exchange(what, Patience::Endless, parcels.begin(),
                            isRoot ? count : 0, parcels.begin(),
                            isRoot ? 0 : count, error);
}

bool reprise::runtime::collect(Transport &transport, const char *what,
                               const void *own, void *all, size_t size,
                               Error &error) {
  if (transport.rank() != 0) {
    // What is sent is only read.
    const Parcel send = {0, static_cast<char *>(const_cast<void *>(own)), size};
    return transport.exchange(what, Patience::Endless, &send, 1, nullptr, 0,
                              error);
  }
  List<Parcel> receives;
  char *next = static_cast<char *>(all);
  memcpy(next, own, size);
  for (int rank = 1; rank < transport.size(); ++rank)
    if (!receives.push({rank, next += size, size}))
      return noMemory(error);
  return transport.exchange(what, Patience::Endless, nullptr, 0,
                            receives.begin(), int(receives.size()), error);
}
