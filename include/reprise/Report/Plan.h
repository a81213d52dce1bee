//===- Plan.h - What a step keeps, replays and needs ------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_REPORT_PLAN_H
#define REPRISE_REPORT_PLAN_H

#include "mlir/IR/BuiltinOps.h"
#include "reprise/Interfaces/CostTable.h"
#include "reprise/Remat/Summary.h"
#include "reprise/Report/Budget.h"
#include "reprise/Report/ExpertRows.h"
#include "reprise/Report/Megatron.h"
#include "reprise/Report/MemoryProfile.h"
#include "reprise/Report/Pipeline.h"
#include "reprise/Report/StepTime.h"
#include <map>
#include <optional>
#include <set>

namespace reprise::report {
/// What planning made of the decisions.
struct MemoryPlan {
  int64_t arenaBytes = 0; ///< all that the program allocates: its peak
  int64_t boundBytes = 0; ///< no packing of these values takes less
  int64_t stepBytes = 0;  ///< of the arena, behind what outlives a step
  std::vector<std::pair<std::string, int64_t>> categories; ///< of the arena
  MemoryProfile profile;
  ExpertRows experts;

  /// Gradients of parameters that a step makes in bytes where activations have
  /// been: they count as activations, and those beside them as gradients.
  int64_t getGradientsInActivations() const;
};

/// Parameters of a whole model.
struct ModelSize {
  int64_t parameters = 0;
  int64_t activeParameters = 0; ///< of these, what one token meets
};

/// What Megatron would keep, for comparison.
struct Reference {
  megatron::Parallelism parallelism;
  std::map<int64_t, megatron::Part> layers; ///< on one rank, by number
  std::vector<megatron::Rank> ranks;        ///< one of each pipeline stage
  std::optional<ModelSize> model;           ///< of one with experts
};

/// What is known of an op of the forward pass beside what is decided.
struct ForwardOp {
  std::string scope;       ///< "layer3.mlp.u", by which a schedule names it
  int64_t reader = -1;     ///< first op of the forward pass that reads it
  double seconds = 0;      ///< of running it alone
  bool isMeasured = false; ///< on the machine, and not from rates
  /// For each result the label of `recompute_modules` that would drop it; empty
  /// if none would.
  std::vector<std::string> labels;
};

/// The position of an op in the forward pass, and the number of a result.
using Place = std::pair<int64_t, unsigned>;

/// Another plan for the same step, or the plan itself among others.
struct Alternative {
  std::string name;    ///< "selective mlp,layernorm"
  std::string change;  ///< how it differs, "with mlp", or else its name
  std::string command; ///< that makes a program of it; may be empty
  bool isChosen = false;
  bool isNear = false; ///< differs by one label
  int64_t peakBytes = 0;
  uint64_t replayFlops = 0; ///< of a step
  double replaySeconds = 0; ///< of a step
  std::set<Place> kept, replayed;
};

/// What a page tells of where it comes from.
struct PageInfo {
  std::string model;     ///< "gpt2 12x768"
  std::string recompute; ///< "selective mlp"
  std::string command;   ///< that made it
  std::vector<std::pair<std::string, std::string>> environment;
};

/// The plan of a step. FLOPs and seconds are those of a whole step, all
/// micro-batches; FLOPs are the numbers that the training program shows too.
struct Plan {
  remat::Summary decisions;
  CostTable costs;
  std::vector<ForwardOp> forward; ///< in order
  int64_t numMicroBatches = 1;
  uint64_t stepFlops = 0; ///< without replays
  uint64_t replayFlops = 0;
  double stepSeconds = 0; ///< estimated, without replays
  double replaySeconds = 0;
  /// Kernels and GEMMs of the schedule, by where their times come from.
  std::vector<std::string> measured, modelled;
  std::optional<MemoryPlan> memory;
  std::optional<Reference> reference;
  std::optional<Budget> budget;
  /// If there is a pipeline, and its stages were asked about.
  std::optional<PipelineNeed> pipeline;
  std::vector<Alternative> alternatives;
  /// Of ranks, if there are several or they are asked about: Megatron's time
  /// of a step, if that is asked for, and this plan's.
  std::vector<StepTime> stepTimes;
  std::string ranks; ///< "64 ranks: pp 8, tp 8"

  /// Object of the keys in docs/report.md. Needs `memory`.
  void writeJSON(llvm::raw_ostream &os) const;

  /// A table for each class of equal layers, why a value is kept or replayed,
  /// and which labels buy nothing. Leaves out what `memory`, `reference` and
  /// `alternatives` tell if they are not there.
  void explain(llvm::raw_ostream &os) const;

  /// The planned step as Chrome's trace format has it, for one micro-batch and
  /// the update. Needs `memory`.
  void writeTrace(llvm::raw_ostream &os) const;

  /// A page of HTML that shows all of this, pictures included; it fetches
  /// nothing and needs no script. Needs `memory`.
  void writePage(llvm::raw_ostream &os, const PageInfo &info) const;

  /// This plan as one among others. Needs `memory`.
  Alternative asAlternative() const;
};

/// The decisions in `step`, made of nn ops, decided or applied; times are those
/// of `costs`.
mlir::FailureOr<Plan> readDecisions(mlir::func::FuncOp step,
                                    const CostTable &costs);

/// The ops of layer `layer` of the forward pass of `step`, made of nn ops, as
/// a graph in DOT, coloured by what `plan` decides on their results. Fails with
/// a diagnostic if there is no such layer.
mlir::LogicalResult writeDot(const Plan &plan, mlir::func::FuncOp step,
                             int64_t layer, llvm::raw_ostream &os);

/// What Megatron would keep of the layers of `step`, made of nn ops. Fails with
/// a diagnostic if the ranks cannot divide a layer.
mlir::FailureOr<Reference>
computeReference(mlir::func::FuncOp step, const megatron::Options &options,
                 const megatron::Parallelism &parallelism);

/// Adds what a rank of each of `stages` has of `step`, made of nn ops.
void countRanks(mlir::func::FuncOp step,
                llvm::ArrayRef<remat::StagePlan> stages, Reference &reference);

/// Adds what is known of the step of `module` in buffer form. Fails with a
/// diagnostic if memory is not planned.
mlir::LogicalResult readSchedule(Plan &plan, mlir::ModuleOp module);
} // namespace reprise::report

#endif // REPRISE_REPORT_PLAN_H
