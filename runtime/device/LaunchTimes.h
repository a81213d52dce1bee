//===- LaunchTimes.h - How long each launch takes ---------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DEVICE_LAUNCHTIMES_H
#define REPRISE_RUNTIME_DEVICE_LAUNCHTIMES_H

#include "runtime/base/Error.h"
#include "runtime/base/List.h"
#include "runtime/base/Program.h"

namespace reprise::runtime {

/// When a launch ran, by its number (`forEachLaunch`); seconds of `now`.
struct LaunchSpan {
  int64_t number;
  double begin, end;
};

/// The seconds spent in each launch, by its number, if they are measured.
class LaunchTimes {
public:
  explicit LaunchTimes(const RepriseModel &model) : model(model) {}

  /// From now on they are.
  bool start(Error &error) {
    auto launches = size_t(firstLaunch(model, model.numSchedules));
    size_t inStep = 0;
    if (!seconds.resize(launches + 1) || !isOfStep.resize(launches + 1))
      return error.set("no memory left to time %zu launches", launches);
    std::fill(isOfStep.begin(), isOfStep.end(), false);
    forEachLaunch(
        model, [&](const RepriseLaunch &, int64_t number, int64_t runs, bool) {
          isOfStep[size_t(number)] = true;
          inStep += size_t(runs);
        });
    if (!spans.reserve(inStep))
      return error.set("no memory left for %zu launches of a step", inStep);
    forget();
    return true;
  }
  /// Begins anew with them.
  void forget() { std::fill(seconds.begin(), seconds.end(), 0.0); }
  bool areMeasured() const { return !seconds.empty(); }

  /// Only spans of the step that begins are kept.
  void beginStep() { spans.clear(); }
  /// Launch `number` has run.
  void add(int64_t number, double begin, double end) {
    seconds[size_t(number)] += end - begin;
    if (isOfStep[size_t(number)])
      spans.push({number, begin, end});
  }

  /// Null unless they are measured.
  const double *all() const { return seconds.begin(); }
  /// Of the last step, one after another.
  const List<LaunchSpan> &lastStep() const { return spans; }

private:
  const RepriseModel &model;
  List<double> seconds;
  List<bool> isOfStep;
  List<LaunchSpan> spans;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DEVICE_LAUNCHTIMES_H
