//===- Step.h - The phases of a step, and what replays need -----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_REMAT_STEP_H
#define REPRISE_LIB_REMAT_STEP_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/Remat/RematOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace reprise::remat {
/// The ops of a step, by phase. Stays valid while ops are only added below
/// `nn.backward`.
struct Step {
  mlir::Operation *backward = nullptr; // Null: the function is not a step.
  mlir::Operation *update = nullptr;   // Or null.
  llvm::SmallVector<mlir::Operation *> forward, below;   // In order.
  llvm::DenseMap<mlir::Operation *, unsigned> positions; // Of `forward`.

  bool isForward(mlir::Operation *op) const { return positions.contains(op); }

  /// Whether `op` is below `nn.backward` and computes.
  bool isBelow(mlir::Operation *op) const {
    return !isForward(op) && !op->hasTrait<mlir::OpTrait::IsTerminator>();
  }

  /// Whether `op` comes when no backward phase follows, so that it can only
  /// read kept values: it returns them, or is of the update.
  bool isLate(mlir::Operation *op) const {
    return op->hasTrait<mlir::OpTrait::IsTerminator>() ||
           (update && update->isBeforeInBlock(op));
  }

  /// Whether `value` is a result of the forward phase that is decided as
  /// recompute.
  bool isDropped(mlir::Value value) const;

  /// The decision that ranks keep parts of `value`, a result of the forward
  /// phase or an argument; or null.
  ShareAttr getShare(mlir::Value value) const;

  /// The first result of `op` that is dropped; one must be.
  mlir::OpResult getFirstDropped(mlir::Operation *op) const;

  /// Whether an op with `isBelow` reads `value`.
  bool isReadBelow(mlir::Value value) const;

  /// The forward ops that rebuild the dropped values which `reader` reads,
  /// without those in `replayed`, in order. Adds them to `replayed`.
  llvm::SmallVector<mlir::Operation *>
  takeReplay(mlir::Operation *reader,
             llvm::DenseSet<mlir::Operation *> &replayed) const;

  /// The forward ops that backward has to replay.
  llvm::DenseSet<mlir::Operation *> getReplayed() const;

  /// The first op of backward that reads what `op` makes; null if there is
  /// none, or an op with `isLate` reads it.
  mlir::Operation *findFirstReader(mlir::Operation *op) const;

  /// The gradient that can make the value of `op`, a pointwise op of the
  /// forward phase, on its way, before backward reads it; null if there is
  /// none. With `hoisted`, the ops that have to come before the first reader
  /// for that, in order, and that reader. A wider copy is made right in front
  /// of the first reader itself.
  mlir::Operation *findSharedGradient(
      mlir::Operation *op,
      llvm::SmallVectorImpl<mlir::Operation *> *hoisted = nullptr,
      mlir::Operation **reader = nullptr) const;

  /// Whether `op` is decided as free, and is.
  bool isFree(mlir::Operation *op) const;

  /// Checks that decisions are where they can be applied.
  llvm::LogicalResult verifyDecisions() const;
};

/// The phases of `function`; without `backward` if it has no `nn.backward`.
/// Fails, with a diagnostic, if it has several, or more blocks than one.
mlir::FailureOr<Step> getStep(mlir::func::FuncOp function);

/// Hands the phases of `function` to `run`, their decisions checked; does
/// nothing where there is no backward pass to decide for.
llvm::LogicalResult
onStep(mlir::func::FuncOp function,
       llvm::function_ref<llvm::LogicalResult(Step &step)> run);

/// How the layers of a step are spread over pipeline stages.
struct Chunks {
  int64_t stages = 1;
  llvm::SmallVector<int64_t> layers; ///< of each chunk

  int64_t getNumVirtualStages() const { return layers.size() / stages; }
  /// The chunk that has `layer`.
  int64_t getChunkOf(int64_t layer) const;
};

/// One chunk, unless the function of `step` says otherwise. Fails, with a
/// diagnostic, if that is about another number of layers.
mlir::FailureOr<Chunks> getChunks(mlir::func::FuncOp function,
                                  const Step &step);

/// Layers of the forward phase, from 0 to the last one that an op is in.
int64_t countLayers(const Step &step);

/// The layer of an op, -1 if it is in none, and its module, which may be empty.
int64_t getLayer(mlir::Operation *op);
llvm::StringRef getModule(mlir::Operation *op);

/// The name of a value in its layer, "u", and in the model, "layer3.mlp.u".
std::string getValueName(mlir::OpResult result);
std::string getFullName(mlir::OpResult result);

/// The layer that a kept value is listed in, and its name there: that of the
/// one layer that reads it in the forward phase, or else its own. The residual
/// stream is what a layer calls x0.
std::pair<int64_t, std::string> getHome(const Step &step, mlir::OpResult value);

int64_t getFlops(mlir::Operation *op);

/// Whether `op` replays one of the forward phase.
bool isReplay(mlir::Operation *op);

/// Finds what replays are replays of. To be asked in the order of the ops.
class Originals {
public:
  explicit Originals(const Step &step);

  /// The forward op with the name, attributes and, behind fences and replays,
  /// operands of `replay`; null if there is none.
  mlir::Operation *find(mlir::Operation *replay);

  /// The forward ops with the name and scope of `replay`.
  llvm::ArrayRef<mlir::Operation *> getCandidates(mlir::Operation *replay);

  /// The shared value that `gather` makes whole again of its parts; null if it
  /// is none that does.
  mlir::Value findShared(mlir::Operation *gather);

  /// The value of the forward phase that `value` stands for.
  mlir::Value trace(mlir::Value value) const;

private:
  using Key = std::pair<mlir::Attribute, mlir::OperationName>;
  llvm::DenseMap<Key, llvm::SmallVector<mlir::Operation *, 1>> candidates;
  llvm::DenseMap<mlir::Operation *, mlir::Operation *> found;
  llvm::DenseMap<mlir::Value, mlir::Value> shared; ///< by what is gathered
};

/// The attributes of `op` without those of this dialect.
llvm::SmallVector<mlir::NamedAttribute> getOwnAttributes(mlir::Operation *op);
} // namespace reprise::remat

#endif // REPRISE_LIB_REMAT_STEP_H
