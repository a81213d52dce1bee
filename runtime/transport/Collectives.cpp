//===- Collectives.cpp - Sums over ranks in a fixed order -----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Collectives.h"

#include "runtime/base/List.h"

#include <algorithm>
#include <cstring>

using namespace reprise::runtime;

/// Elements that are summed while they are in L1, with a temporary row for
/// each level of the tree.
static constexpr int64_t kRow = 512;

/// One row of `sumTree`.
static void sumRow(float *out, const float *const *parts, int numParts,
                   int64_t first, int64_t count) {
  if (numParts == 1) {
    if (out != parts[0] + first)
      memcpy(out, parts[0] + first, size_t(count) * sizeof(float));
    return;
  }
  int half = 1;
  while (2 * half < numParts)
    half *= 2;
  float left[kRow], right[kRow];
  sumRow(left, parts, half, first, count);
  sumRow(right, parts + half, numParts - half, first, count);
  for (int64_t i = 0; i < count; ++i)
    out[i] = left[i] + right[i];
}

void reprise::runtime::sumTree(float *out, const float *const *parts,
                               int numParts, int64_t count) {
  for (int64_t first = 0; first < count; first += kRow)
    sumRow(out + first, parts, numParts, first, std::min(kRow, count - first));
}

/// Elements of several spans, as if one followed the other.
using Pieces = List<Span>;

static bool noMemory(Error &error) {
  return error.set("no memory left for the parcels of an exchange");
}

/// Appends to `pieces` the elements [begin, end) of the spans.
static bool cut(const Span *spans, int numSpans, int64_t begin, int64_t end,
                Pieces &pieces) {
  for (int i = 0; i < numSpans && begin < end; ++i) {
    const int64_t count = spans[i].count;
    if (begin < count &&
        !pieces.push({spans[i].values + begin, std::min(end, count) - begin}))
      return false;
    begin = std::max<int64_t>(begin - count, 0);
    end -= count;
  }
  return true;
}

namespace {
/// An all-reduce: blocks of the spans, one after another.
class AllReduce {
public:
  AllReduce(Transport &transport, const Group &group, const char *what,
            const Span *spans, int numSpans, Span workspace)
      : transport(transport), group(group), what(what), spans(spans),
        numSpans(numSpans), workspace(workspace),
        self(group.memberOf(transport.rank())),
        perMember(workspace.count / group.size) {}

  bool run(Error &error);

private:
  /// The share of a block that a member sums begins here.
  int64_t begin(int member) const {
    return first + count * member / group.size;
  }
  bool runBlock(Error &error);
  bool exchangeParts(Error &error);
  bool exchangeSums(Error &error);
  void sumOwn();
  bool sharesOf(int member, Pieces &pieces) const {
    pieces.clear();
    return cut(spans, numSpans, begin(member), begin(member + 1), pieces);
  }
  static bool add(List<Parcel> &list, int rank, float *values, int64_t count) {
    return list.push({rank, reinterpret_cast<char *>(values),
                      size_t(count) * sizeof(float)});
  }
  bool exchange(Error &error);

  Transport &transport;
  const Group group;
  const char *what;
  const Span *spans;
  int numSpans;
  const Span workspace;
  const int self;
  const int64_t perMember;
  int64_t first = 0, count = 0; ///< Of the block.
  Pieces own, pieces;
  List<Parcel> sends, receives;
  List<const float *> parts;
};
} // namespace

bool AllReduce::exchange(Error &error) {
  bool good = transport.exchange(what, Patience::Limited, sends.begin(),
                                 int(sends.size()), receives.begin(),
                                 int(receives.size()), error);
  sends.clear();
  receives.clear();
  return good;
}

/// Every member gets what the others have of its share, one place of the
/// workspace for each of them.
bool AllReduce::exchangeParts(Error &error) {
  for (int member = 0; member < group.size; ++member) {
    if (member == self)
      continue;
    const int rank = group.rankOf(member);
    if (!sharesOf(member, pieces))
      return noMemory(error);
    for (const Span &piece : pieces)
      if (!add(sends, rank, piece.values, piece.count))
        return noMemory(error);
    float *place = workspace.values + member * perMember;
    for (const Span &piece : own) {
      if (!add(receives, rank, place, piece.count))
        return noMemory(error);
      place += piece.count;
    }
  }
  return exchange(error);
}

void AllReduce::sumOwn() {
  int64_t at = 0;
  for (const Span &piece : own) {
    for (int member = 0; member < group.size; ++member)
      parts[size_t(member)] = member == self
                                  ? piece.values
                                  : workspace.values + member * perMember + at;
    sumTree(piece.values, parts.begin(), group.size, piece.count);
    at += piece.count;
  }
}

/// Every member gets the sums of the others.
bool AllReduce::exchangeSums(Error &error) {
  for (int member = 0; member < group.size; ++member) {
    if (member == self)
      continue;
    const int rank = group.rankOf(member);
    for (const Span &piece : own)
      if (!add(sends, rank, piece.values, piece.count))
        return noMemory(error);
    if (!sharesOf(member, pieces))
      return noMemory(error);
    for (const Span &piece : pieces)
      if (!add(receives, rank, piece.values, piece.count))
        return noMemory(error);
  }
  return exchange(error);
}

bool AllReduce::runBlock(Error &error) {
  if (!sharesOf(self, own))
    return noMemory(error);
  if (!exchangeParts(error))
    return false;
  sumOwn();
  return exchangeSums(error);
}

bool AllReduce::run(Error &error) {
  if (!parts.resize(size_t(group.size)))
    return noMemory(error);
  int64_t all = 0;
  for (int i = 0; i < numSpans; ++i)
    all += spans[i].count;
  for (first = 0; first < all; first += count) {
    count = std::min(perMember * group.size, all - first);
    if (!runBlock(error))
      return false;
  }
  return true;
}

bool reprise::runtime::allReduce(Transport &transport, const Group &group,
                                 const char *what, const Span *spans,
                                 int numSpans, Span workspace, Error &error) {
  if (group.size == 1)
    return true;
  return AllReduce(transport, group, what, spans, numSpans, workspace)
      .run(error);
}

bool reprise::runtime::broadcast(Transport &transport, const char *what,
                                 void *bytes, size_t size, Error &error) {
  List<Parcel> parcels;
  bool isRoot = transport.rank() == 0;
  for (int peer = 0; peer < transport.size(); ++peer)
    if (isRoot ? peer != 0 : peer == 0)
      if (!parcels.push({peer, static_cast<char *>(bytes), size}))
        return noMemory(error);
  const int count = int(parcels.size());
  return transport.exchange(what, Patience::Endless, parcels.begin(),
                            isRoot ? count : 0, parcels.begin(),
                            isRoot ? 0 : count, error);
}
