//===- StepTable.h - A row of numbers for each step -------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_SHOW_STEPTABLE_H
#define REPRISE_RUNTIME_SHOW_STEPTABLE_H

#include "StepReport.h"
#include "runtime/base/Error.h"

#include "reprise/ABI/Model.h"

namespace reprise::runtime {

/// The table of --csv: names of columns, and then a row for each step, whose
/// last cell is the loss of the validation behind it, if there is one.
class StepTable {
public:
  /// With a column for each number that steps of `model` measure.
  explicit StepTable(const RepriseModel &model);
  StepTable(const StepTable &) = delete;
  StepTable &operator=(const StepTable &) = delete;
  ~StepTable();

  /// Goes on with the table in `path`, or begins one. What does not begin as
  /// one of ours is refused. A run that `goesOn` behind `stepsDone` steps
  /// supersedes the rows of later steps: what the last run in the file has of
  /// them moves to `path`.old, before this run's first row.
  bool open(const char *path, bool goesOn, int64_t stepsDone, Error &error);
  bool isOpen() const { return file; }

  /// Appends the row of a step and hands it to the system.
  bool step(const StepReport &report, int64_t plannedBytes, Error &error);

  /// Completes the row of the step that was finished last. Where that is not
  /// in a plain file it is written once more, complete.
  bool validation(int64_t stepsDone, double loss, Error &error);

private:
  bool supersede(int64_t stepsDone, Error &error);
  bool findLastRow(bool &ends, Error &error);
  void printRow();
  bool flush(Error &error);

  /// The names of columns, as the first line has them.
  char columns[512];
  const char *path = nullptr;
  FILE *file = nullptr;
  bool isPlain = false; ///< And so can be changed.
  /// The last row: its step from 1, 0 if there is none; where its last cell
  /// begins; and, if this run has written it, all of it.
  int64_t lastStep = 0;
  long lastCell = 0;
  bool isOwn = false;
  StepReport last = {};
  int64_t planned = 0;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_SHOW_STEPTABLE_H
