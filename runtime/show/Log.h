//===- Log.h - What a training run shows ------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_SHOW_LOG_H
#define REPRISE_RUNTIME_SHOW_LOG_H

#include "Metrics.h"
#include "RankReport.h"
#include "ShowOptions.h"
#include "runtime/checkpoint/CheckpointWriter.h"
#include "runtime/checkpoint/Resume.h"
#include "runtime/checkpoint/Weights.h"
#include "runtime/data/Data.h"
#include "runtime/device/Arena.h"
#include "runtime/device/DeviceReports.h"

#include "reprise/ABI/Model.h"

#include <optional>
#include <string_view>

namespace reprise::runtime {

/// The mean loss of data that is not trained on, after so many steps.
struct ValidationReport {
  int64_t step;
  double loss;
  int64_t batches;
  double seconds;
};

/// What the model wrote behind a prompt, after so many steps.
struct SampleReport {
  int64_t step;
  const char *prompt;
  std::string_view text; ///< Bytes; perhaps no UTF-8.
  const int32_t *tokens;
  int64_t count;
  double seconds;
};

/// Writes a run's story to standard output, as text or as JSON lines, and a
/// progress bar to standard error if that is a terminal. What returns false
/// could not be written.
class Log {
public:
  /// \param engine  what moves bytes between ranks.
  Log(const RepriseModel &model, const ShowOptions &options,
      const char *engine = "");

  /// What GEMMs of this micro-kernel need; of null, what all need.
  static const char *isaName(const RepriseMicroKernel *kernel);

  /// What is about to happen. `kernel` may be null; `peakFlops` is 0 if it is
  /// not known. `gpu` says which one it happens on; empty: the CPU.
  bool plan(const TrainingData &data, const RepriseMicroKernel *kernel,
            double peakFlops, const char *gpu, Error &error);
  /// The first sign of life: steps begin.
  void begin(int64_t stepsDone) { showProgress(stepsDone); }
  /// Within a step, so many micro-batches are done.
  void microBatch(int64_t stepsDone, int done);
  /// Shown at the interval that the options say.
  bool step(const StepReport &report, Error &error);
  void interrupted(int64_t stepsDone);
  /// Their time counts for what is left and at the end.
  bool validation(const ValidationReport &report, Error &error);
  bool sample(const SampleReport &report, Error &error);
  /// Something that the user should know, at the start.
  void note(const char *text);
  /// Something that the user should not miss: on standard error, unless the log
  /// is for programs.
  void warning(const char *text);
  /// Weights that were read from options.initFrom; `isText`: the data.
  void weights(const WeightsReport &report, const DataMark &data, bool isText);
  /// Where the run goes on.
  void resumed(const Resumed &resumed);
  /// With what else than before, if anything.
  void changed(const Resumed &resumed, const DataMark &data);
  /// Checkpoints that will be written, and from what.
  void saving(const SavedStates &source);
  /// A checkpoint that was written.
  void saved(const SaveReport &report);
  /// Seconds per launch, by its number (`forEachLaunch`), over so many
  /// steps; launches that differ only in numbers in their names are one line.
  void profile(const double *seconds, int64_t steps);
  /// Plan against measurement, category by category.
  /// \param gpu        what that has in use; null: the CPU.
  /// \param copyBytes  of the copy that saves are written from.
  void memory(const Arena &arena, const DeviceMemory *gpu,
              int64_t copyBytes) const;
  /// Time and memory of all ranks: the least, the median, the most, and whose.
  void ranks(const List<RankReport> &reports) const;
  /// `writtenBytes` is negative when memory was not checked. The time is that
  /// of steps, validation and sampling.
  bool end(int64_t stepsDone, int64_t highWaterBytes, int64_t writtenBytes,
           Error &error);

  /// Hands all that was printed to the system.
  static bool flush(Error &error);

  /// What a step takes, going by those before; 0 before the first.
  double expectedSeconds() const { return secondsPerStep; }

  bool hasProgress() const { return hasBar; }
  /// Takes the progress bar off the screen.
  void clearProgress();

private:
  void printData(const TrainingData &data) const;
  void printStep(const StepReport &report) const;
  /// \param microBatches  of the step that runs, those that are done.
  void showProgress(int64_t stepsDone, int microBatches = 0);

  const RepriseModel &model;
  const ShowOptions &options;
  const char *engine;
  int64_t tokensPerStep;
  bool hasBar;
  std::optional<StepReport> unshown; ///< The last step, if it is between two
                                     ///< that are shown.
  /// Of the steps of this run so far.
  double trainedSeconds = 0, secondsPerStep = 0;
  double inferredSeconds = 0; ///< Of validation and sampling.
  DeviceTimes gpuTimes = {};  ///< Sums over the steps that have all three.
  int64_t stepsTimed = 0;
  int64_t stepsHere = 0;
  double shownAt = 0; ///< When the bar was.
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_SHOW_LOG_H
