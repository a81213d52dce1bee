//===- Charts.cpp - What the pictures of the page show ----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Charts.h"
#include "LinkClock.h"
#include "reprise/Report/Decisions.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <array>

using namespace reprise;
using namespace reprise::report;
using namespace llvm;

static constexpr double kWidth = 1000, kHeight = 300;

/// With one decimal: a tenth of a thousandth of the width is no pixel.
static std::string formatLength(double length) {
  std::string text;
  raw_string_ostream(text) << format("%.1f", length);
  return StringRef(text).ends_with(".0") ? text.substr(0, text.size() - 2)
                                         : text;
}

namespace {
/// Where the positions of a schedule begin, from 0 to `kWidth`.
struct TimeAxis {
  explicit TimeAxis(const Plan &plan);

  double getX(int64_t position) const {
    return kWidth * begins[position] / begins.back();
  }

  std::vector<double> begins; // In seconds; one more than positions.
};
} // namespace

TimeAxis::TimeAxis(const Plan &plan) {
  begins.push_back(0);
  for (const PositionTime &time :
       timeMicroBatch(plan.memory->profile, plan.costs, /*isLast=*/true))
    begins.push_back(begins.back() + time.seconds);
}

//===----------------------------------------------------------------------===//
// Memory over the step
//===----------------------------------------------------------------------===//

/// Bytes alive at each position, for each role.
static std::array<std::vector<int64_t>, kNumRoles>
getLiveByRole(const MemoryProfile &profile) {
  std::array<std::vector<int64_t>, kNumRoles> live;
  for (std::vector<int64_t> &bytes : live)
    bytes.resize(profile.getNumPositions() + 1);
  for (const Block &block : profile.getBlocks()) {
    live[size_t(block.role)][block.first] += block.bytes;
    live[size_t(block.role)][block.last + 1] -= block.bytes;
  }
  for (std::vector<int64_t> &bytes : live)
    for (size_t position = 1; position < bytes.size(); ++position)
      bytes[position] += bytes[position - 1];
  return live;
}

/// For each of `count` columns of equal width the position that needs most in
/// it: nothing of the outline is lost that can be seen.
static std::vector<int64_t> getColumns(const MemoryProfile &profile,
                                       const TimeAxis &axis, int64_t count) {
  std::vector<int64_t> columns;
  int64_t position = 0, last = profile.getNumPositions() - 1;
  for (int64_t column = 0; column < count; ++column) {
    double end = kWidth * (column + 1) / count;
    int64_t most = position;
    while (position < last && axis.getX(position + 1) < end)
      if (profile.getLive()[++position] > profile.getLive()[most])
        most = position;
    columns.push_back(most);
  }
  return columns;
}

/// The columns that memory is drawn in.
static constexpr int64_t kNumColumns = 400;

namespace {
/// The outline of what a role has in each column, upon what others have there.
struct Area {
  std::vector<int64_t> below, above; // In bytes.
};
} // namespace

/// As a path of SVG, in which bytes up to `peak` take all of the height.
static std::string drawArea(const Area &area, int64_t peak) {
  auto getY = [&](int64_t bytes) {
    return formatLength(kHeight * (1 - double(bytes) / peak));
  };
  std::string path = "M0," + getY(area.below[0]);
  auto trace = [&](int64_t bytes, int64_t to) {
    path += "V" + getY(bytes) + "H" + formatLength(kWidth * to / kNumColumns);
  };
  for (int64_t column = 0; column < kNumColumns; ++column)
    trace(area.above[column], column + 1);
  for (int64_t column = kNumColumns; column-- > 0;)
    trace(area.below[column], column);
  return path + "Z";
}

/// The areas of all roles that have bytes in a column, upon each other.
static json::Array drawAreas(const MemoryProfile &profile,
                             ArrayRef<int64_t> columns) {
  auto live = getLiveByRole(profile);
  json::Array areas;
  Area area;
  area.above.resize(columns.size());
  for (size_t role = 0; role < kNumRoles; ++role) {
    area.below = area.above;
    int64_t most = 0;
    for (auto [column, position] : enumerate(columns)) {
      area.above[column] += live[role][position];
      most = std::max(most, live[role][position]);
    }
    if (most > 0)
      areas.push_back(json::Object{
          {"role", int64_t(role)},
          {"name", stringifyRole(Role(role))},
          {"most", remat::formatBytes(most)},
          {"path", drawArea(area, profile.getPeak())},
      });
  }
  return areas;
}

json::Value report::drawMemory(const Plan &plan) {
  const MemoryProfile &profile = plan.memory->profile;
  if (profile.getPeak() == 0)
    return nullptr;
  TimeAxis axis(plan);
  int64_t peak = profile.getPeakPosition();
  double x = (axis.getX(peak) + axis.getX(peak + 1)) / 2;
  return json::Object{
      {"areas", drawAreas(profile, getColumns(profile, axis, kNumColumns))},
      {"peak", remat::formatBytes(profile.getPeak())},
      {"half", remat::formatBytes(profile.getPeak() / 2)},
      {"peak_at", profile.getPeakName()},
      {"peak_percent", formatLength(100 * x / kWidth)},
      {"end", formatSeconds(axis.begins.back())},
  };
}

//===----------------------------------------------------------------------===//
// The arena
//===----------------------------------------------------------------------===//

/// What a person calls the value in `block`.
static std::string getName(const MemoryProfile &profile, const Block &block) {
  const Position &writer = profile.getPositions()[block.writer];
  if (block.role == Role::Workspace)
    return "workspace of " + writer.name;
  const std::string &maker = writer.makers[block.output];
  size_t number =
      llvm::count(ArrayRef(writer.makers).take_front(block.output), maker);
  return number == 0 ? maker : maker + "#" + std::to_string(number);
}

json::Value report::drawArena(const Plan &plan, size_t limit) {
  const MemoryPlan &memory = *plan.memory;
  const MemoryProfile &profile = memory.profile;
  if (memory.stepBytes == 0)
    return nullptr;
  TimeAxis axis(plan);
  int64_t begin = memory.arenaBytes - memory.stepBytes;
  auto getArea = [&](const Block *block) {
    return (axis.getX(block->last + 1) - axis.getX(block->first)) *
           block->bytes;
  };
  std::vector<const Block *> blocks;
  for (const Block &block : profile.getBlocks())
    blocks.push_back(&block);
  size_t numBlocks = blocks.size();
  if (numBlocks > limit) {
    llvm::sort(blocks, [&](const Block *a, const Block *b) {
      return std::pair(-getArea(a), a) < std::pair(-getArea(b), b);
    });
    blocks.resize(limit);
    llvm::sort(blocks);
  }

  json::Array rectangles;
  for (const Block *block : blocks) {
    double x = axis.getX(block->first);
    double height = kHeight * block->bytes / memory.stepBytes;
    double bottom = kHeight * (block->offset - begin) / memory.stepBytes;
    rectangles.push_back(json::Object{
        {"role", int64_t(block->role)},
        {"x", formatLength(x)},
        {"y", formatLength(kHeight - bottom - height)},
        {"width", formatLength(std::max(axis.getX(block->last + 1) - x, 0.3))},
        {"height", formatLength(std::max(height, 0.3))},
        {"name", getName(profile, *block)},
        {"bytes", remat::formatBytes(block->bytes)},
        {"offset", std::to_string(block->offset)},
    });
  }
  json::Object drawn{
      {"rectangles", std::move(rectangles)},
      {"few", blocks.size() <= 800}, // So that outlines leave room for colour.
      {"bytes", remat::formatBytes(memory.stepBytes)},
      {"half", remat::formatBytes(memory.stepBytes / 2)},
      {"end", formatSeconds(axis.begins.back())},
  };
  if (numBlocks > limit)
    drawn["omitted"] = std::to_string(numBlocks - limit);
  return drawn;
}

json::Value report::drawCategories(const Plan &plan) {
  const MemoryPlan &memory = *plan.memory;
  json::Array categories;
  for (const auto &[name, bytes] : memory.categories) {
    std::string percent =
        formatLength(100.0 * bytes / std::max<int64_t>(memory.arenaBytes, 1));
    categories.push_back(json::Object{
        {"index", std::to_string(categories.size())},
        {"name", name},
        {"bytes", std::to_string(bytes)},
        {"size", remat::formatBytes(bytes)},
        {"percent", percent},
    });
  }
  return categories;
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

/// Whether another plan needs no more memory and no more time, and less of one.
static bool isDominated(const Plan &plan, const Alternative &alternative) {
  std::pair<int64_t, double> price = {alternative.peakBytes,
                                      alternative.replaySeconds};
  return llvm::any_of(plan.alternatives, [&](const Alternative &other) {
    return other.peakBytes <= price.first &&
           other.replaySeconds <= price.second &&
           std::pair(other.peakBytes, other.replaySeconds) != price;
  });
}

/// Plans are compared: nothing above GiB, where the differences are.
static std::string formatPeakBytes(int64_t bytes) {
  constexpr double gib = 1 << 30;
  if (bytes < gib)
    return remat::formatBytes(bytes);
  std::string text;
  raw_string_ostream(text) << format("%.1f GiB", bytes / gib);
  return text;
}

/// A row of the table of plans.
static json::Value describe(const Plan &plan, const Alternative &alternative,
                            const std::string &number) {
  int64_t difference = alternative.peakBytes - plan.memory->arenaBytes;
  return json::Object{
      {"number", number},
      {"name", alternative.name},
      {"chosen", alternative.isChosen},
      {"dominated", isDominated(plan, alternative)},
      {"peak", formatPeakBytes(alternative.peakBytes)},
      {"difference", difference == 0
                         ? std::string("0")
                         : (difference < 0 ? "-" : "+") +
                               remat::formatBytes(std::abs(difference))},
      {"flops", remat::formatFlops(alternative.replayFlops)},
      {"seconds", formatSeconds(alternative.replaySeconds)},
      {"command", alternative.command},
  };
}

namespace {
/// Plans that would cover each other share a dot.
struct Dot {
  bool covers(const Dot &other) const {
    return std::abs(x - other.x) < 3 && std::abs(y - other.y) < 8;
  }
  void add(const Dot &other) {
    isShared = true;
    numbers += " " + other.numbers;
    names += "; " + other.names;
    isChosen |= other.isChosen;
    isDominated &= other.isDominated;
  }

  double x, y; // In percent.
  std::string numbers, names;
  bool isChosen, isDominated, isShared = false;
};
} // namespace

static json::Value describe(const Dot &dot) {
  return json::Object{
      {"x", formatLength(dot.x)},
      {"y", formatLength(dot.y)},
      {"numbers", dot.numbers},
      {"names", dot.names},
      {"style", std::string(dot.isChosen      ? "chosen"
                            : dot.isDominated ? "dominated"
                                              : "front") +
                    (dot.isShared ? " shared" : "")},
  };
}

json::Value report::drawPlans(const Plan &plan) {
  if (plan.alternatives.size() < 2)
    return nullptr;
  auto [least, most] =
      std::minmax_element(plan.alternatives.begin(), plan.alternatives.end(),
                          [](const Alternative &a, const Alternative &b) {
                            return a.peakBytes < b.peakBytes;
                          });
  double seconds = 0;
  for (const Alternative &alternative : plan.alternatives)
    seconds = std::max(seconds, alternative.replaySeconds);
  double bytes = std::max<int64_t>(most->peakBytes - least->peakBytes, 1);

  std::vector<Dot> dots;
  json::Array rows, drawn;
  for (auto [index, alternative] : enumerate(plan.alternatives)) {
    std::string number = std::to_string(index + 1);
    rows.push_back(describe(plan, alternative, number));
    Dot dot = {100 * (alternative.peakBytes - least->peakBytes) / bytes,
               seconds > 0 ? 100 * alternative.replaySeconds / seconds : 0,
               number,
               alternative.name,
               alternative.isChosen,
               isDominated(plan, alternative)};
    auto near = llvm::find_if(
        dots, [&](const Dot &other) { return other.covers(dot); });
    if (near == dots.end())
      dots.push_back(dot);
    else
      near->add(dot);
  }
  for (const Dot &dot : dots)
    drawn.push_back(describe(dot));
  return json::Object{
      {"dots", std::move(drawn)},
      {"rows", std::move(rows)},
      {"least", formatPeakBytes(least->peakBytes)},
      {"most", formatPeakBytes(most->peakBytes)},
      {"seconds", formatSeconds(seconds)},
  };
}
