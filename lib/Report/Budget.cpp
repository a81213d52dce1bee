//===- Budget.cpp - What a budget of bytes bought -------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Budget.h"
#include "Charts.h"
#include "TextTable.h"
#include "reprise/Report/Decisions.h"
#include "llvm/Support/Format.h"
#include <algorithm>

using namespace mlir;
using namespace reprise;
using namespace reprise::report;
namespace json = llvm::json;

using remat::formatBytes;

const Budget::Scenario *Budget::getWorst() const {
  auto worst = llvm::max_element(
      scenarios, [](const Scenario &left, const Scenario &right) {
        return left.replaySeconds - left.bestSeconds <
               right.replaySeconds - right.bestSeconds;
      });
  return worst == scenarios.end() ? nullptr : &*worst;
}

static std::string formatPart(double part, double whole) {
  std::string text;
  llvm::raw_string_ostream(text)
      << llvm::format("%.3g %%", whole > 0 ? 100 * part / whole : 0.0);
  return text;
}

/// "23.9 GiB of 24.0 GiB for activations"
static std::string formatUse(const Budget &budget) {
  return formatBytes(budget.peakBytes) + " of " + formatBytes(budget.bytes) +
         (budget.isOfActivations ? " for activations" : " in all");
}

static std::string formatGap(const Plan &plan) {
  const Budget &budget = *plan.budget;
  return formatPart(budget.replaySeconds - budget.boundSeconds,
                    plan.stepSeconds) +
         " of a step";
}

static std::string formatRegret(const Plan &plan) {
  const Budget::Scenario *worst = plan.budget->getWorst();
  if (!worst)
    return "";
  double regret = worst->replaySeconds - worst->bestSeconds;
  if (regret <= 1e-9 * worst->replaySeconds) // But for rounding.
    return "the same plan is chosen, or one as good, with costs 20 % up or "
           "down";
  return "with " + worst->name + " another plan would save " +
         formatSeconds(regret) + ", " + formatPart(regret, plan.stepSeconds) +
         " of a step";
}

void report::printBudget(raw_ostream &os, const Plan &plan) {
  const Budget &budget = *plan.budget;
  if (budget.bytes > 0) {
    os << "budget: " << formatUse(budget) << "\n";
    printText(os,
              "replays " + formatSeconds(budget.replaySeconds) + ", " +
                  formatPart(budget.replaySeconds, plan.stepSeconds) +
                  " of a step; any plan at least " +
                  formatSeconds(budget.boundSeconds) + ", gap " +
                  formatGap(plan),
              /*indent=*/2);
    os << "price of memory: " << formatSecondsPerGiB(budget.secondsPerByte)
       << "\n";
    if (std::string regret = formatRegret(plan); !regret.empty())
      printText(os, "regret: " + regret);
  }
  for (const Budget::Rival &rival : budget.rivals)
    if (rival.peakBytes <= budget.bytes)
      printText(os, "within the same budget: " + rival.name + ", peak " +
                        formatBytes(rival.peakBytes) + ", replays " +
                        formatSeconds(rival.replaySeconds) + ", " +
                        formatPart(rival.replaySeconds, plan.stepSeconds) +
                        " of a step");
}

void report::writeBudget(json::OStream &json, const Plan &plan) {
  const Budget &budget = *plan.budget;
  json.attributeObject("budget", [&] {
    json.attribute("kind", budget.isOfActivations ? "activations" : "memory");
    if (budget.bytes > 0) {
      json.attribute("bytes", budget.bytes);
      json.attribute("peak_bytes", budget.peakBytes);
      json.attribute("replay_seconds", budget.replaySeconds);
      json.attribute("lower_bound_seconds", budget.boundSeconds);
      json.attribute("seconds_per_byte", budget.secondsPerByte);
    }
    json.attributeArray("curve", [&] {
      for (const Budget::Point &point : budget.curve)
        json.object([&] {
          json.attribute("peak_bytes", point.peakBytes);
          json.attribute("replay_seconds", point.replaySeconds);
        });
    });
    json.attributeArray("scenarios", [&] {
      for (const Budget::Scenario &scenario : budget.scenarios)
        json.object([&] {
          json.attribute("costs", scenario.name);
          json.attribute("replay_seconds", scenario.replaySeconds);
          json.attribute("best_seconds", scenario.bestSeconds);
        });
    });
    json.attributeArray("rivals", [&] {
      for (const Budget::Rival &rival : budget.rivals)
        json.object([&] {
          json.attribute("recompute", rival.name);
          json.attribute("peak_bytes", rival.peakBytes);
          json.attribute("replay_seconds", rival.replaySeconds);
          if (!rival.command.empty())
            json.attribute("command", rival.command);
        });
    });
  });
}

//===----------------------------------------------------------------------===//
// The picture
//===----------------------------------------------------------------------===//

namespace {
/// Bytes to the right and seconds upwards, in a picture of 1000 by 300.
class Scale {
public:
  explicit Scale(const Budget &budget) {
    auto add = [&](int64_t bytes, double seconds) {
      least = std::min(least, bytes);
      most = std::max(most, bytes);
      top = std::max(top, seconds);
    };
    for (const Budget::Point &point : budget.curve)
      add(point.peakBytes, point.replaySeconds);
    for (const Budget::Rival &rival : budget.rivals)
      add(rival.peakBytes, rival.replaySeconds);
    if (budget.bytes > 0)
      add(budget.peakBytes, budget.replaySeconds);
  }

  /// Both in parts of 100.
  double getX(int64_t bytes) const {
    double width = std::max<double>(most - least, 1);
    return std::clamp(100 * (bytes - least) / width, 0.0, 100.0);
  }
  double getY(double seconds) const {
    return top > 0 ? std::clamp(100 * seconds / top, 0.0, 100.0) : 0;
  }

  int64_t least = INT64_MAX, most = 0;
  double top = 0;
};
} // namespace

static std::string formatLength(double length) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.2f", length);
  return text;
}

/// Stairs: a plan is the best one up to the peak of the next.
static std::string drawStairs(const Budget &budget, const Scale &scale) {
  std::string path;
  for (const Budget::Point &point : budget.curve) {
    std::string x = formatLength(10 * scale.getX(point.peakBytes));
    path += path.empty() ? "M" + x + " " : "H" + x;
    std::string y = formatLength(300 - 3 * scale.getY(point.replaySeconds));
    path += path.back() == ' ' ? y : "V" + y;
  }
  return path;
}

/// The bound is one for the budget, and for all that are smaller.
static std::string drawBound(const Budget &budget, const Scale &scale) {
  if (budget.bytes == 0 || budget.boundSeconds <= 0)
    return "";
  std::string y = formatLength(300 - 3 * scale.getY(budget.boundSeconds));
  return "M0.00 " + y + "L" + formatLength(10 * scale.getX(budget.bytes)) +
         " " + y;
}

json::Value report::drawBudget(const Plan &plan) {
  if (!plan.budget || plan.budget->curve.empty())
    return nullptr;
  const Budget &budget = *plan.budget;
  Scale scale(budget);
  json::Array dots, rows;
  for (auto [index, rival] : llvm::enumerate(budget.rivals)) {
    std::string number = std::to_string(index + 1);
    dots.push_back(
        json::Object{{"x", formatLength(scale.getX(rival.peakBytes))},
                     {"y", formatLength(scale.getY(rival.replaySeconds))},
                     {"number", number},
                     {"name", rival.name}});
    rows.push_back(json::Object{
        {"number", number},
        {"name", rival.name},
        {"peak", formatBytes(rival.peakBytes)},
        {"seconds", formatSeconds(rival.replaySeconds)},
        {"part", formatPart(rival.replaySeconds, plan.stepSeconds)},
        {"command", rival.command}});
  }
  json::Object drawn{
      {"stairs", drawStairs(budget, scale)},
      {"bound", asSection(drawBound(budget, scale))},
      {"least", formatBytes(scale.least)},
      {"most", formatBytes(scale.most)},
      {"seconds", formatSeconds(scale.top)},
      {"points", int64_t(budget.curve.size())},
      {"kind",
       budget.isOfActivations ? "what lives within a step" : "all memory"},
      {"dots", std::move(dots)},
      {"rivals", rows.empty()
                     ? json::Value(nullptr)
                     : json::Value(json::Object{{"rows", std::move(rows)}})},
  };
  if (budget.bytes > 0)
    drawn["chosen"] = json::Object{
        {"line", formatLength(scale.getX(budget.bytes))},
        {"x", formatLength(scale.getX(budget.peakBytes))},
        {"y", formatLength(scale.getY(budget.replaySeconds))},
        {"use", formatUse(budget)},
        {"replay", formatSeconds(budget.replaySeconds)},
        {"part", formatPart(budget.replaySeconds, plan.stepSeconds)},
        {"floor", formatSeconds(budget.boundSeconds)},
        {"gap", formatGap(plan)},
        {"price", formatSecondsPerGiB(budget.secondsPerByte)},
        {"regret", asSection(formatRegret(plan))},
    };
  return drawn;
}
