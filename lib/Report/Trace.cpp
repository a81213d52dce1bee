//===- Trace.cpp - The planned step as a timeline ---------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LinkClock.h"
#include "reprise/Report/Plan.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::report;

namespace {
/// Writes the events. Times are whole nanoseconds, so that slices nest exactly;
/// the format counts in microseconds.
class TraceWriter {
public:
  TraceWriter(const Plan &plan, llvm::raw_ostream &os)
      : plan(plan), profile(plan.memory->profile), json(os) {}
  void write();

private:
  void writeName(StringRef event, StringRef name, int64_t thread);
  void writeSlice(StringRef name, StringRef category, int64_t begin,
                  int64_t end, const Position *position = nullptr);
  void writeSlices(function_ref<std::string(const Position &)> getGroup,
                   StringRef category);
  void writeCounter(StringRef name, int64_t time, int64_t bytes);
  void writeTime(StringRef key, int64_t nanoseconds);

  const Plan &plan;
  const MemoryProfile &profile;
  llvm::json::OStream json;
  std::vector<int64_t> begins; // One for each position, and the end.
};
} // namespace

void TraceWriter::writeName(StringRef event, StringRef name, int64_t thread) {
  json.object([&] {
    json.attribute("ph", "M");
    json.attribute("name", event);
    json.attribute("pid", 1);
    json.attribute("tid", thread);
    json.attributeObject("args", [&] { json.attribute("name", name); });
  });
}

void TraceWriter::writeSlice(StringRef name, StringRef category, int64_t begin,
                             int64_t end, const Position *position) {
  json.object([&] {
    json.attribute("ph", "X");
    json.attribute("name", name);
    json.attribute("cat", category);
    json.attribute("pid", 1);
    json.attribute("tid", 1);
    writeTime("ts", begin);
    writeTime("dur", end - begin);
    if (position)
      json.attributeObject("args", [&] {
        json.attribute("flops", position->load.flops);
        json.attribute("bytes", position->load.bytes);
      });
  });
}

/// In microseconds, with all digits.
void TraceWriter::writeTime(StringRef key, int64_t nanoseconds) {
  json.attributeBegin(key);
  json.rawValue([&](llvm::raw_ostream &os) {
    os << nanoseconds / 1000 << "."
       << llvm::format("%03d", int(nanoseconds % 1000));
  });
  json.attributeEnd();
}

/// A slice around every run of positions of the same group; none around those
/// whose group is empty.
void TraceWriter::writeSlices(
    function_ref<std::string(const Position &)> getGroup, StringRef category) {
  const std::vector<Position> &positions = profile.getPositions();
  for (size_t first = 0; first < positions.size();) {
    std::string group = getGroup(positions[first]);
    size_t end = first + 1;
    while (end < positions.size() && getGroup(positions[end]) == group)
      ++end;
    if (!group.empty())
      writeSlice(group, category, begins[first], begins[end]);
    first = end;
  }
}

void TraceWriter::writeCounter(StringRef name, int64_t time, int64_t bytes) {
  json.object([&] {
    json.attribute("ph", "C");
    json.attribute("name", name);
    json.attribute("pid", 1);
    writeTime("ts", time);
    json.attributeObject("args", [&] { json.attribute("bytes", bytes); });
  });
}

/// The part of a step that a position is in; replays are part of backward.
static std::string getPart(const Position &position) {
  switch (position.phase) {
  case Phase::Forward:
    return "forward";
  case Phase::Replay:
  case Phase::Backward:
    return "backward";
  case Phase::Update:
    return "update";
  }
  llvm_unreachable("unknown phase");
}

/// "layer3" of "layer3.mlp.u"; empty for what is in no layer.
static std::string getLayer(const Position &position) {
  StringRef first = StringRef(position.name).split('.').first;
  return first.starts_with("layer") && first != "layernorm" ? first.str() : "";
}

static StringRef getCategory(Phase phase) {
  constexpr StringLiteral names[] = {"forward", "replay", "backward", "update"};
  return names[size_t(phase)];
}

void TraceWriter::write() {
  begins.push_back(0);
  for (const PositionTime &time :
       timeMicroBatch(profile, plan.costs, /*isLast=*/true))
    begins.push_back(begins.back() + std::max<int64_t>(time.seconds * 1e9, 1));

  // The update comes behind it.
  std::string count = std::to_string(plan.numMicroBatches);
  json.objectBegin();
  json.attribute("displayTimeUnit", "ms");
  json.attributeArray("traceEvents", [&] {
    writeName("process_name",
              "planned step, micro-batch " + count + " of " + count, 0);
    writeName("thread_name", "stream 0", 1);
    writeSlices(getPart, "part");
    writeSlices(
        [](const Position &position) {
          std::string layer = getLayer(position);
          return layer.empty() ? layer : layer + " " + getPart(position);
        },
        "layer");
    int64_t outlives = plan.memory->arenaBytes - plan.memory->stepBytes;
    for (auto [index, position] : llvm::enumerate(profile.getPositions())) {
      std::string name = position.name;
      std::replace(name.begin(), name.end(), '.', '/');
      writeSlice(name, getCategory(position.phase), begins[index],
                 begins[index + 1], &position);
      writeCounter("memory", begins[index],
                   outlives + profile.getLive()[index]);
    }
    writeCounter("memory", begins.back(), outlives);
  });
  json.objectEnd();
}

void Plan::writeTrace(llvm::raw_ostream &os) const {
  assert(memory && "needs a schedule");
  TraceWriter(*this, os).write();
  os << "\n";
}
