//===- Summary.h - The effective recompute plan of a step -------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_REMAT_SUMMARY_H
#define REPRISE_REMAT_SUMMARY_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "reprise/Solver/Pipeline.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseSet.h"
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace reprise::remat {
/// The op of the forward pass that makes a value.
struct Origin {
  std::string scope; // "layer3.mlp.u", by which a schedule names it.
  int64_t position;  // Among the ops of the forward pass.
  unsigned number;   // Of the result.
  unsigned numResults;
};

/// A value of the forward pass that is kept until backward reads it.
struct SavedValue {
  std::string name; // As in the model: "n1", "q", ...
  int64_t bytes;
  mlir::Type type;
  Origin origin;
  bool isDecided;     // To be kept, not for want of a decision.
  std::string reason; // Of the decision, or who reads the value.
  /// Along which ranks keep parts of it, of `bytes` each; empty: all of it.
  std::string axis = "";
};

/// An op that backward runs again.
struct Replay {
  std::string name;  // Of its first result that is dropped.
  std::string op;    // "nn.linear"
  std::string label; // Which rule decided.
  int64_t segment;
  int64_t bytes; // Of the results that are read again.
  int64_t flops;
  int64_t freedBytes; // Of the results that not only replays read again.
  mlir::Type type;    // Of the first result that is dropped.
  Origin origin;      // Of the first result that is dropped.
  std::string reason; // Who reads the value.
};

/// An op that is decided to be recomputed and that backward does not need.
struct SkippedReplay {
  std::string name;
  std::string label;
};

/// What is kept and replayed of one layer, or, with `layer` -1, of what is in
/// none.
struct LayerPlan {
  int64_t layer;
  int64_t stage = 0; ///< of the pipeline
  int64_t chunk = 0; ///< of the stage: its virtual stage
  std::vector<SavedValue> saved;
  std::vector<Replay> recomputed;
  /// What is not kept, and made again by kernels of backward on their way.
  std::vector<Replay> free;
  std::vector<SkippedReplay> skipped;

  int64_t getSavedBytes() const;
  int64_t getReplayFlops() const;
};

/// What a pipeline stage keeps of one of its chunks.
struct ChunkPlan {
  int64_t firstLayer, numLayers;
  int64_t savedBytes; ///< of a micro-batch; the last chunk has the head's too
  int64_t inFlight;   ///< micro-batches, when the stage keeps most
};

/// What a pipeline stage keeps when it keeps most.
struct StagePlan {
  std::vector<ChunkPlan> chunks; ///< by virtual stage
  /// The most micro-batches between their backward task and the end of that of
  /// gradients of weights: what these read is kept beside, by the program.
  int64_t waiting = 0;

  int64_t getActivationBytes() const;
};

struct Summary {
  /// Layers in order, then what is in no layer if it keeps anything.
  std::vector<LayerPlan> layers;
  /// First and last layer of each segment, in order: those that have replays,
  /// and those that are kept whole.
  std::vector<std::pair<int64_t, int64_t>> segments;
  /// The one of them that is kept whole, if there is one.
  std::optional<std::pair<int64_t, int64_t>> idleSegment;
  /// Of the pipeline, as its schedule is simulated; one if there is no other.
  std::vector<StagePlan> stages;
  int64_t savedBytes = 0; ///< of a micro-batch, in all layers
  int64_t replayFlops = 0;
  int64_t freeBytes = 0; ///< not kept, and not replayed either

  /// A line for each class of equal layers, one with the totals, and one for
  /// each pipeline stage if there are several.
  void print(llvm::raw_ostream &os) const;
};

/// What `step` keeps from its forward for its backward phase, and what backward
/// replays: decided, or applied already. A value is listed in the layer that
/// reads it, if only one later layer does: the residual stream that enters
/// layer `i` is its `x0`. Arguments of the function are not counted. Bytes are
/// those of the types, before kernels are formed and memory is planned; FLOPs
/// are those of `CostModel`. Fails with a diagnostic if `step` is malformed.
mlir::FailureOr<Summary> summarize(mlir::func::FuncOp step);

/// The pipeline that `step` is run by, with so many stages and chunks on each:
/// its micro-batches, and the schedule that its module names, if that is one
/// for such a pipeline.
solver::PipelineShape getPipelineShape(mlir::func::FuncOp step, int64_t stages,
                                       int64_t virtualStages);

/// The ops above `nn.backward` of `step` that are decided to be recomputed, and
/// that a kernel of backward will make on its way. Fails with a diagnostic if
/// `step` is malformed.
mlir::FailureOr<llvm::DenseSet<mlir::Operation *>>
findFree(mlir::func::FuncOp step);

/// "12 B", "1.5 MiB"; "12 FLOP", "1.5 GFLOP".
std::string formatBytes(int64_t bytes);
std::string formatFlops(int64_t flops);

/// "layer 3", "layers 0-3", "layers 0, 2, 4", after a few ranges their count;
/// "outside layers" for -1, "no layers" for none.
std::string formatLayers(llvm::ArrayRef<int64_t> layers);
} // namespace reprise::remat

#endif // REPRISE_REMAT_SUMMARY_H
