//===- CheckExchanges.cpp - What stages do with each other ----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScheduleChecks.h"

#include <algorithm>
#include <map>

using namespace reprise::solver;

using Kind = ScheduleEntry::Kind;
using Fault = std::optional<ScheduleFault>;

static std::string count(int64_t number) { return std::to_string(number); }

namespace {
/// An entry of a stage.
struct Place {
  int64_t stage = 0;
  size_t entry = 0;
};
} // namespace

static const ScheduleEntry &entryOf(const ScheduleTable &table,
                                    const Place &place) {
  return table.stages[place.stage].entries[place.entry];
}

/// The chunk that what `entry` moves is made by.
static int64_t getMaker(const ScheduleEntry &entry) {
  return entry.kind == Kind::Send ? entry.chunk
         : entry.isGradient       ? entry.chunk + 1
                                  : entry.chunk - 1;
}

static std::string describeParcel(const ScheduleEntry &entry) {
  return count(entry.bytes) + " bytes of micro-batch " +
         count(entry.microBatch) + " from chunk " + count(getMaker(entry));
}

/// What is received is what was sent, in this order.
static Fault checkChannels(const ScheduleTable &table) {
  std::map<Channel, std::pair<std::vector<Place>, std::vector<Place>>> channels;
  for (int64_t stage = 0; stage < table.shape.stages; ++stage) {
    const std::vector<ScheduleEntry> &entries = table.stages[stage].entries;
    for (size_t i = 0; i < entries.size(); ++i) {
      if (entries[i].kind == Kind::Send)
        channels[channelOf(stage, entries[i])].first.push_back({stage, i});
      if (entries[i].kind == Kind::Receive)
        channels[channelOf(stage, entries[i])].second.push_back({stage, i});
    }
  }
  for (const auto &[channel, ends] : channels) {
    const auto &[sends, receives] = ends;
    for (size_t i = 0; i < std::max(sends.size(), receives.size()); ++i) {
      if (i >= sends.size())
        return ScheduleFault{receives[i].stage, int64_t(receives[i].entry),
                             "needs a send of stage " +
                                 count(std::get<0>(channel)) +
                                 ", but that has no more"};
      if (i >= receives.size())
        return ScheduleFault{sends[i].stage, int64_t(sends[i].entry),
                             "needs a receive of stage " +
                                 count(std::get<1>(channel)) +
                                 ", but that has no more"};
      const ScheduleEntry &send = entryOf(table, sends[i]),
                          &receive = entryOf(table, receives[i]);
      if (std::tuple(send.bytes, send.microBatch, getMaker(send)) !=
          std::tuple(receive.bytes, receive.microBatch, getMaker(receive)))
        return ScheduleFault{receives[i].stage, int64_t(receives[i].entry),
                             "needs " + describeParcel(receive) +
                                 ", but entry " + count(sends[i].entry) +
                                 " of stage " + count(sends[i].stage) +
                                 " sends " + describeParcel(send)};
    }
  }
  return std::nullopt;
}

/// What a stage does with a group, in order.
static std::vector<Place> listGroup(const ScheduleTable &table, int64_t group,
                                    int64_t stage) {
  std::vector<Place> places;
  const std::vector<ScheduleEntry> &entries = table.stages[stage].entries;
  for (size_t i = 0; i < entries.size(); ++i)
    if (isTogether(entries[i]) && entries[i].group == group)
      places.push_back({stage, i});
  return places;
}

/// All members of a group do the same in one order.
static Fault checkGroups(const ScheduleTable &table) {
  auto fail = [](const Place &place, const std::string &text) {
    return ScheduleFault{place.stage, int64_t(place.entry), text};
  };
  for (size_t group = 0; group < table.groups.size(); ++group) {
    const std::vector<int64_t> &members = table.groups[group].stages;
    std::vector<Place> first = listGroup(table, group, members.front());
    for (int64_t stage : members) {
      std::vector<Place> own = listGroup(table, group, stage);
      for (size_t i = 0; i < std::max(first.size(), own.size()); ++i) {
        if (i >= own.size() || i >= first.size())
          return fail(i >= own.size() ? first[i] : own[i],
                      "needs stage " +
                          count(i >= own.size() ? stage : members.front()) +
                          " to take part, but that does not");
        const ScheduleEntry &a = entryOf(table, own[i]),
                            &b = entryOf(table, first[i]);
        if (a.kind != b.kind || a.bytes != b.bytes)
          return fail(
              own[i],
              "needs to do what entry " + count(first[i].entry) + " of stage " +
                  count(members.front()) + " does, the " + describe(table, b) +
                  " with " + count(b.bytes) + " bytes, but is the " +
                  describe(table, a) + " with " + count(a.bytes) + " bytes");
      }
    }
  }
  return std::nullopt;
}

std::optional<ScheduleFault>
reprise::solver::checkExchanges(const ScheduleTable &table) {
  if (Fault fault = checkChannels(table))
    return fault;
  return checkGroups(table);
}
