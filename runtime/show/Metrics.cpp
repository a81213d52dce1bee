//===- Metrics.cpp - A run's numbers in files -----------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Metrics.h"

#include "Measures.h"

#include <cmath>
#include <utility>

using namespace reprise::runtime;

bool Metrics::open(const ShowOptions &options, int64_t stepsDone,
                   Error &error) {
  this->options = &options;
  stepsBefore = stepsDone;
  return (!options.tensorboard ||
          (events.open(options.tensorboard, error) &&
           events.beginSession(stepsDone + 1, error))) &&
         (!options.csv ||
          table.open(options.csv, options.resume, stepsDone, error));
}

bool Metrics::addMeasures(int64_t step, const Measures &measures,
                          Error &error) {
  for (const NamedNumber &number : measures.numbers()) {
    Scalar scalar = {number.name, number.value};
    if (!events.add(step, &scalar, 1, error))
      return false;
  }
  for (const Load &load : measures.loads()) {
    char least[64], most[64];
    snprintf(least, sizeof(least), "load_least/%s", load.name);
    snprintf(most, sizeof(most), "load_most/%s", load.name);
    Scalar scalars[] = {{least, float(load.least)}, {most, float(load.most)}};
    if (!events.add(step, scalars, 2, error))
      return false;
  }
  return true;
}

bool Metrics::addRows(int64_t step, const Measures &measures, Error &error) {
  for (const Load &load : measures.loads()) {
    char tag[64];
    snprintf(tag, sizeof(tag), "rows/%s", load.name);
    if (!events.add(step, {tag, load.rows, load.size}, error))
      return false;
  }
  return true;
}

bool Metrics::step(const StepReport &report, Error &error) {
  int64_t number = report.step + 1;
  if (events.isOpen()) {
    constexpr double kGiB = 1 << 30;
    Scalar scalars[] = {
        {"loss", report.loss},
        {"grad_norm", report.gradNorm},
        {"lr", report.learningRate},
        {"ms", float(report.seconds * 1e3)},
        {"tokens_per_sec", float(report.tokensPerSecond)},
        {"memory/planned_gib", float(double(model.arenaBytes) / kGiB)},
        {"memory/actual_gib", float(double(report.highWaterBytes) / kGiB)},
        {"mfu", float(report.mfu)},
        {"hfu", float(report.hfu)}};
    int count = sizeof(scalars) / sizeof(Scalar);
    if (std::isnan(report.mfu))
      count -= 2;
    if (!events.add(number, scalars, count, error) ||
        (report.measures && !addMeasures(number, *report.measures, error)))
      return false;
    const bool isShown = options->isShown(number, number - stepsBefore);
    rowsLeft = isShown ? nullptr : report.measures;
    lastStep = number;
    if (report.measures && isShown && !addRows(number, *report.measures, error))
      return false;
  }
  return !table.isOpen() || table.step(report, model.arenaBytes, error);
}

bool Metrics::interrupted(Error &error) {
  return !rowsLeft ||
         addRows(lastStep, *std::exchange(rowsLeft, nullptr), error);
}

bool Metrics::validation(int64_t stepsDone, float loss, Error &error) {
  Scalar scalar = {"val_loss", loss};
  if (events.isOpen() && !events.add(stepsDone, &scalar, 1, error))
    return false;
  return !table.isOpen() || table.validation(stepsDone, double(loss), error);
}
