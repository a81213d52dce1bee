//===- NcclSums.cpp - Sums that NCCL makes --------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NcclSums.h"

#include "CollectiveLaunch.h"
#include "runtime/base/Program.h"
#include "runtime/transport/Mesh.h"

#include <algorithm>
#include <tuple>

using namespace reprise::runtime;

static bool noMemory(Error &error) {
  return error.set("no memory left for sums by NCCL");
}

/// The row of a launch that begins a sum of f32; null for other launches, and
/// for damaged ones, which are refused later.
static const RepriseCollective *sumOf(const RepriseModel &model,
                                      const RepriseLaunch &launch) {
  if (!isTogether(launch) || launch.kind == REPRISE_LAUNCH_WAIT ||
      launch.callee < 0 || launch.callee >= model.numCollectives)
    return nullptr;
  const RepriseCollective &row = model.collectives[launch.callee];
  const bool isSum = row.operation == REPRISE_COLLECTIVE_ALL_REDUCE ||
                     row.operation == REPRISE_COLLECTIVE_REDUCE_SCATTER ||
                     row.operation == REPRISE_COLLECTIVE_REDUCE_SHARES;
  const bool isKnown = row.elementType == REPRISE_F32 && row.axis >= 0 &&
                       row.axis < model.numAxes;
  return isSum && isKnown ? &row : nullptr;
}

/// The number of the connection that a group has; that of all ranks for none.
int NcclSums::find(const Group &group, bool isBeside) const {
  for (int i = 0; i < countGroups(); ++i) {
    const Connected &each = groups[size_t(i)];
    if (each.group.first == group.first && each.group.stride == group.stride &&
        each.group.size == group.size && each.isBeside == isBeside)
      return i;
  }
  return Nccl::kAllRanks;
}

bool NcclSums::add(const Group &group, bool isBeside, Error &error) {
  return group.size == 1 || group.size == numRanks ||
         find(group, isBeside) != Nccl::kAllRanks ||
         groups.push({group, isBeside}) || noMemory(error);
}

bool NcclSums::findGroups(int rank, Error &error) {
  numRanks = int(countRanks(model));
  for (int i = 0; i < model.numSchedules; ++i)
    for (int j = 0; j < model.schedules[i].numLaunches; ++j) {
      const RepriseLaunch &launch = model.schedules[i].launches[j];
      const RepriseCollective *row = sumOf(model, launch);
      if (row && !add(groupOfRow(model, *row, rank),
                      launch.kind == REPRISE_LAUNCH_BEGIN, error))
        return false;
    }
  std::sort(groups.begin(), groups.end(),
            [](const Connected &a, const Connected &b) {
              auto key = [](const Connected &each) {
                return std::make_tuple(each.isBeside, each.group.stride,
                                       each.group.size, each.group.first);
              };
              return key(a) < key(b);
            });
  return true;
}

bool NcclSums::connect(Transport &ranks, Error &error) {
  for (const Connected &each : groups) {
    NcclId id = {};
    const Group &group = each.group;
    if ((ranks.rank() == group.first && !nccl.makeId(id, error)) ||
        !broadcast(ranks, group, "the number of NCCL's sums", &id, sizeof(id),
                   error) ||
        !nccl.connectGroup(id, group.size, group.memberOf(ranks.rank()), error))
      return false;
  }
  for (int number = Nccl::kAllRanks; number < countGroups(); ++number)
    if (!nccl.greetGroup(number, error))
      return false;
  return true;
}

/// Begins what is in `sums`.
bool NcclSums::begin(const Group &group, const char *what, Error &error) {
  return nccl.sum(what, find(group, nccl.isBeside()), sums.begin(),
                  int(sums.size()), error);
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
