//===- Timeline.h - When launches of all ranks ran --------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_SHOW_TIMELINE_H
#define REPRISE_RUNTIME_SHOW_TIMELINE_H

#include "runtime/base/ReplacedFile.h"
#include "runtime/device/LaunchTimes.h"
#include "runtime/transport/Transport.h"

#include "reprise/ABI/Model.h"

namespace reprise::runtime {

/// Writes a step as a timeline in Chrome's trace format, with a track for each
/// rank: its launches, and what it waits for other stages.
class Timeline {
public:
  explicit Timeline(const RepriseModel &model) : model(model) {}

  /// Finds out whether `path` can be written.
  bool start(const char *path, Error &error) { return file.start(path, error); }

  /// Rank 0 writes what all of them bring; `begin` is that of step `step`, from
  /// 1, on the clock of `spans`.
  bool write(const List<LaunchSpan> &spans, double begin, int64_t step,
             Transport &ranks, Error &error);

private:
  bool describe(const List<LaunchSpan> &spans, double begin, int rank,
                FILE *out);
  bool bring(List<char> &text, Transport &ranks, FILE *out, Error &error);

  const RepriseModel &model;
  ReplacedFile file;
};

/// Whether a launch receives what another stage sends, and so may wait for it.
inline bool waitsForStage(const RepriseModel &model,
                          const RepriseLaunch &launch) {
  return launch.kind == REPRISE_LAUNCH_COLLECTIVE &&
         model.collectives[launch.callee].operation ==
             REPRISE_COLLECTIVE_RECEIVE;
}

/// Of the seconds spent in each launch, those of receives from other stages.
double stageSeconds(const RepriseModel &model, const double *seconds);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_SHOW_TIMELINE_H
