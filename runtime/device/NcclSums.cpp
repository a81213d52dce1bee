//===- NcclSums.cpp - Sums that NCCL makes --------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NcclSums.h"

using namespace reprise::runtime;

static bool noMemory(Error &error) {
  return error.set("no memory left for sums by NCCL");
}

int NcclSums::findGroup(const Group &group) const {
  for (size_t i = 0; i < known.size() && group.isApart; ++i)
    if (known[i].first == group.first && known[i].stride == group.stride &&
        known[i].size == group.size)
      return int(i);
  return Nccl::kAll;
}

bool NcclSums::connect(Transport &ranks, const Group *groups, int numGroups,
                       Error &error) {
  known.clear();
  for (int i = 0; i < numGroups; ++i) {
    const Group &group = groups[i];
    NcclId id = {};
    if (group.first == nccl.rank() && !nccl.makeId(id, error))
      return false;
    if (!broadcast(ranks, group, "the number of NCCL's run of a group", &id,
                   sizeof(id), error) ||
        !nccl.connectGroup(id, group.memberOf(nccl.rank()), group.size,
                           error) ||
        !nccl.greetSums(i, error))
      return false;
    if (!known.push(group))
      return noMemory(error);
  }
  return true;
}

/// Begins what is in `sums`.
bool NcclSums::begin(const Group &group, const char *what, Error &error) {
  const int number = group.size == nccl.size() ? Nccl::kAll : findGroup(group);
  return nccl.sum(what, number, sums.begin(), int(sums.size()), error);
}

bool NcclSums::allReduce(const Group &group, const char *what,
                         const Span *spans, int numSpans, Error &error) {
  sums.clear();
  for (int i = 0; i < numSpans; ++i)
    if (spans[i].count > 0 &&
        !sums.push({NcclSum::Whole, spans[i].values, spans[i].values,
                    size_t(spans[i].count), 0}))
      return noMemory(error);
  return begin(group, what, error);
}

bool NcclSums::reduceScatter(const Group &group, const char *what,
                             Blocks blocks, const void *whole, void *part,
                             Error &error) {
  sums.clear();
  for (int64_t block = 0; block < blocks.count; ++block) {
    const auto *from = static_cast<const float *>(whole) +
                       block * group.size * blocks.elements;
    float *to = static_cast<float *>(part) + block * blocks.elements;
    if (!sums.push({NcclSum::Part, from, to, size_t(blocks.elements), 0}))
      return noMemory(error);
  }
  return begin(group, what, error);
}

/// Shares are of unequal sizes, so each is a sum for the member that has it.
bool NcclSums::reduceShares(const Group &group, const char *what,
                            const Span *spans, int numSpans, Error &error) {
  sums.clear();
  for (int i = 0; i < numSpans; ++i)
    for (int member = 0; member < group.size; ++member) {
      const Share share = shareOf(spans[i].count, member, group.size);
      float *values = static_cast<float *>(spans[i].values) + share.begin;
      if (share.begin < share.end &&
          !sums.push({NcclSum::ToRoot, values, values,
                      size_t(share.end - share.begin), member}))
        return noMemory(error);
    }
  return begin(group, what, error);
}
