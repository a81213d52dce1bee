//===- Metrics.h - A run's numbers in files ---------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_SHOW_METRICS_H
#define REPRISE_RUNTIME_SHOW_METRICS_H

#include "EventFile.h"
#include "ShowOptions.h"
#include "StepTable.h"

namespace reprise::runtime {

/// Writes every step to the files of --csv and --tensorboard.
class Metrics {
public:
  explicit Metrics(const RepriseModel &model) : model(model), table(model) {}

  /// Opens what the options, which it goes by later, too, name, for a run that
  /// begins behind `stepsDone` steps. What files have of later steps does not
  /// count any more.
  bool open(const ShowOptions &options, int64_t stepsDone, Error &error);

  bool step(const StepReport &report, Error &error);

  /// No step follows the last one, though the options say so: it is shown.
  bool interrupted(Error &error);

  /// The mean loss of validation after `stepsDone` steps.
  bool validation(int64_t stepsDone, float loss, Error &error);

private:
  bool addMeasures(int64_t step, const Measures &measures, Error &error);
  /// Rows of all experts, which are many numbers.
  bool addRows(int64_t step, const Measures &measures, Error &error);

  const RepriseModel &model;
  EventFile events;
  StepTable table;
  const ShowOptions *options = nullptr;
  int64_t stepsBefore = 0; ///< This run.
  /// Of the last step, if these have rows that are not shown; they stay as they
  /// are until the next one.
  const Measures *rowsLeft = nullptr;
  int64_t lastStep = 0;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_SHOW_METRICS_H
