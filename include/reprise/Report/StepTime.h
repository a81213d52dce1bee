//===- StepTime.h - The time of a step of many ranks ------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Seconds by layer, from ops or from launches, become the tasks of chunks, and
// a schedule of stages says when the last of them ends.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_REPORT_STEPTIME_H
#define REPRISE_REPORT_STEPTIME_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "reprise/Interfaces/CostTable.h"
#include "reprise/Report/Megatron.h"
#include "reprise/Solver/StageSchedule.h"
#include "llvm/Support/JSON.h"
#include <map>
#include <set>

namespace reprise::report {
/// What exchanges of one kind take, and what launches wait for them: the rest
/// runs beside these.
struct ExchangeSeconds {
  double all = 0, exposed = 0;
};

/// By what they do, "send_rows".
using Exchanges = std::map<std::string, ExchangeSeconds>;

/// Seconds of one micro-batch on a rank.
struct TaskSeconds {
  double forward = 0;
  double backward = 0; ///< without gradients of weights
  double weight = 0;   ///< gradients of weights
  double replay = 0;
  double update = 0;   ///< of a step, not of a micro-batch
  Exchanges exchanges; ///< what is exposed is a part of all but the update

  TaskSeconds &operator+=(const TaskSeconds &other);
  double getTasks() const { return forward + backward + weight + replay; }
};

/// Of each layer; of what is before all layers and behind them; and what each
/// stage has, whichever its layers: messages of the update.
using LayerSeconds = std::map<int64_t, TaskSeconds>;
constexpr int64_t kBeforeLayers = -1, kBehindLayers = INT64_MAX,
                  kEveryStage = INT64_MIN;

/// How the stages of a pipeline run; one stage is a pipeline, too.
struct StepShape {
  solver::PipelineShape pipeline;
  std::string schedule = "1f1b"; ///< one of `solver::getSchedules`
  std::vector<int64_t> chunks;   ///< layers of each chunk of the model
  double borderSeconds = 0;      ///< of sending from a chunk to the next
};

/// A step, of the stage with the longest tasks: those of all micro-batches.
struct StepTime {
  std::string who;
  double forward = 0, backward = 0, replay = 0;
  Exchanges exchanges; ///< what is exposed is a part of these
  double waiting = 0;  ///< for other stages, sending included
  double update = 0;   ///< sums over ranks with other samples, the optimizer

  double getSeconds() const {
    return forward + backward + replay + waiting + update;
  }
  double getExposed() const;
};

/// How Megatron runs the ops of `step`, made of nn ops of one rank, undecided:
/// each as a kernel of its own, sums of gradients and of the gradients of one
/// input with the GEMMs that make them; replays of whole segments, with
/// their exchanges. In backward, what a layer's block gathers again, as it
/// keeps shards alone, and the sums of its input's gradients run beside its
/// GEMMs. `chunks` are layers, where segments begin anew.
///
/// Source: Megatron Core 0.15, tensor_parallel/layers.py,
/// LinearWithGradAccumulationAndAsyncCommunication; Korthikanti et al. 2022,
/// arXiv:2205.05198, sections 4.2 and 5.
LayerSeconds timeAsMegatron(mlir::func::FuncOp step, const CostTable &costs,
                            const megatron::Options &options,
                            llvm::ArrayRef<int64_t> chunks);

/// The layers of `step` that predict a further token.
std::set<int64_t> getFurtherLayers(mlir::func::FuncOp step);

/// How the launches of `step`, in buffer form, run one after another. Seconds
/// of the update are shared as those of `like`.
LayerSeconds timeAsPlanned(mlir::func::FuncOp step, const CostTable &costs,
                           const LayerSeconds &like);

/// Bytes that cross from a layer of `step`, made of nn ops, to the next.
int64_t getBorderBytes(mlir::func::FuncOp step);

/// The time of a step of `shape`, whose schedule can have it.
StepTime getStepTime(llvm::StringRef who, const LayerSeconds &layers,
                     const StepShape &shape);

/// The step times of a program of `ranks`, "64 ranks: pp 8, tp 8", as a table.
void printStepTimes(llvm::raw_ostream &os, llvm::ArrayRef<StepTime> times,
                    llvm::StringRef ranks, llvm::StringRef machine);

/// What lib/Report/Page.html names, or null if there are none.
llvm::json::Value describeStepTimes(llvm::ArrayRef<StepTime> times,
                                    llvm::StringRef ranks,
                                    llvm::StringRef machine);

/// The key "step_times".
void writeStepTimes(llvm::json::OStream &json, llvm::ArrayRef<StepTime> times);
} // namespace reprise::report

#endif // REPRISE_REPORT_STEPTIME_H
