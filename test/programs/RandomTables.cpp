//===- RandomTables.cpp - Schedules that nobody has named -----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RandomTables.h"

#include <deque>
#include <map>

using namespace reprise::solver;
using reprise::test::Draw;

namespace {
/// Of each stage.
using Lists = std::vector<std::vector<StageTask>>;

/// Runs the tasks of a pipeline in an order by chance. What is sent to a stage
/// is received in the order in which it was sent.
class RandomRun {
public:
  RandomRun(const PipelineShape &shape, Draw &draw)
      : shape(shape), draw(draw), chunks(shape.stages * shape.virtualStages),
        splits(draw.oneIn(2)), lists(shape.stages), forward(chunks),
        backward(chunks), weights(chunks) {
    for (int64_t &weight : likely)
      weight = draw.pick<int64_t>({1, 3, 20});
  }

  Lists run() {
    for (std::vector<Ready> ready; !(ready = find()).empty();) {
      int64_t sum = 0;
      for (const Ready &task : ready)
        sum += likely[int(task.kind)];
      int64_t left = draw.number(1, sum);
      size_t index = 0;
      while ((left -= likely[int(ready[index].kind)]) > 0)
        ++index;
      take(ready[index]);
    }
    return lists;
  }

private:
  struct Ready {
    TaskKind kind;
    int64_t chunk, batch;
  };
  using Channel = std::tuple<int64_t, int64_t, bool>; ///< gradients apart

  std::vector<Ready> find() const;
  void findOf(int64_t chunk, std::vector<Ready> &ready) const;
  void take(const Ready &task);
  Channel channel(int64_t from, int64_t to, bool isGradient) const {
    return {from % shape.stages, to % shape.stages, isGradient};
  }
  /// Whether this is what the stage gets next on a channel.
  bool isNext(const Channel &channel, int64_t chunk, int64_t batch) const {
    auto found = sent.find(channel);
    return found != sent.end() && !found->second.empty() &&
           found->second.front() == std::pair(chunk, batch);
  }

  const PipelineShape &shape;
  Draw &draw;
  int64_t chunks;
  bool splits;
  int64_t likely[3]; ///< By kinds of tasks.
  Lists lists;
  /// How many micro-batches each chunk has done.
  std::vector<int64_t> forward, backward, weights;
  /// By channels: the chunk that it is for, and the micro-batch.
  std::map<Channel, std::deque<std::pair<int64_t, int64_t>>> sent;
};
} // namespace

void RandomRun::findOf(int64_t chunk, std::vector<Ready> &ready) const {
  int64_t next = forward[chunk], batch = backward[chunk];
  if (next < shape.microBatches &&
      (chunk == 0 || isNext(channel(chunk - 1, chunk, false), chunk, next)))
    ready.push_back({TaskKind::Forward, chunk, next});
  if (batch < next && (chunk + 1 == chunks ||
                       isNext(channel(chunk + 1, chunk, true), chunk, batch)))
    ready.push_back({TaskKind::Backward, chunk, batch});
  if (splits && weights[chunk] < batch)
    ready.push_back({TaskKind::Weight, chunk, weights[chunk]});
}

std::vector<RandomRun::Ready> RandomRun::find() const {
  std::vector<Ready> ready;
  for (int64_t chunk = 0; chunk < chunks; ++chunk)
    findOf(chunk, ready);
  return ready;
}

void RandomRun::take(const Ready &task) {
  auto [kind, chunk, batch] = task;
  lists[chunk % shape.stages].push_back({kind, chunk / shape.stages, batch});
  switch (kind) {
  case TaskKind::Forward:
    ++forward[chunk];
    if (chunk > 0)
      sent[channel(chunk - 1, chunk, false)].pop_front();
    if (chunk + 1 < chunks)
      sent[channel(chunk, chunk + 1, false)].push_back({chunk + 1, batch});
    return;
  case TaskKind::Backward:
    ++backward[chunk];
    if (chunk + 1 < chunks)
      sent[channel(chunk + 1, chunk, true)].pop_front();
    if (chunk > 0)
      sent[channel(chunk, chunk - 1, true)].push_back({chunk - 1, batch});
    return;
  case TaskKind::Weight:
    ++weights[chunk];
    return;
  }
}

/// Schedules are functions without data of their own.
static const Lists *current = nullptr;

static std::vector<StageTask> listCurrent(const PipelineShape &,
                                          int64_t stage) {
  return (*current)[stage];
}

ScheduleTable reprise::test::drawTable(const PipelineShape &shape,
                                       const ScheduleFacts &facts, Draw &draw) {
  Lists lists = RandomRun(shape, draw).run();
  current = &lists;
  NamedSchedule schedule = {"random", listCurrent, true, true};
  ScheduleTable table = makeTable(schedule, shape, facts);
  current = nullptr;
  return table;
}

ScheduleFacts reprise::test::getFacts(const ScheduleTable &table) {
  ScheduleFacts facts;
  for (const StageTable &stage : table.stages)
    for (const ScheduleEntry &entry : stage.entries) {
      if (entry.kind == ScheduleEntry::Send)
        facts.borderBytes = entry.bytes;
      if (entry.kind == ScheduleEntry::Reduce &&
          table.groups[entry.group].name == "ends")
        facts.tiedBytes = entry.bytes;
    }
  return facts;
}
