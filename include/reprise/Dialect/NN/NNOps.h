//===- NNOps.h - Ops and attributes of the nn dialect -----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_NN_NNOPS_H
#define REPRISE_DIALECT_NN_NNOPS_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "reprise/Dialect/NN/NNDialect.h"
#include "reprise/Interfaces/CostModel.h"
#include "reprise/Interfaces/Differentiable.h"

namespace mlir {
class PatternRewriter;
class RewritePatternSet;
} // namespace mlir

#include "reprise/Dialect/NN/NNEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "reprise/Dialect/NN/NNAttributes.h.inc"

namespace reprise::nn {
/// Element i of the results depends on element i of the operands alone.
template <typename ConcreteOp>
class Pointwise : public mlir::OpTrait::TraitBase<ConcreteOp, Pointwise> {};

/// Row r of the results depends on row r of the operands that have the type of
/// the first result alone, and on operands of other shapes.
template <typename ConcreteOp>
class Rowwise : public mlir::OpTrait::TraitBase<ConcreteOp, Rowwise> {};

/// Done once, and not again in a replay.
template <typename ConcreteOp>
class NeverReplayed
    : public mlir::OpTrait::TraitBase<ConcreteOp, NeverReplayed> {};

/// Launched together with others of its kind that follow each other.
template <typename ConcreteOp>
class OneOfMany : public mlir::OpTrait::TraitBase<ConcreteOp, OneOfMany> {};

/// Whether a replay of `op` makes what `op` has made, and nothing else; other
/// ranks that `op` meets replay it, too.
bool mayBeReplayed(mlir::Operation *op);

/// Where ranks meet: collectives have effects on it, which keep their order.
struct NetworkResource
    : public mlir::SideEffects::Resource::Base<NetworkResource> {
  llvm::StringRef getName() final { return "network"; }
};

//===----------------------------------------------------------------------===//
// Names of attributes that say what an argument or result of @step is
//===----------------------------------------------------------------------===//

inline constexpr llvm::StringLiteral kInputAttr = "nn.input";
inline constexpr llvm::StringLiteral kParameterAttr = "nn.parameter";
inline constexpr llvm::StringLiteral kRotaryAttr = "nn.rotary";
inline constexpr llvm::StringLiteral kGradientAttr = "nn.gradient";
inline constexpr llvm::StringLiteral kPartialAttr = "nn.partial";
inline constexpr llvm::StringLiteral kMoment1Attr = "nn.moment1";
inline constexpr llvm::StringLiteral kMoment2Attr = "nn.moment2";
inline constexpr llvm::StringLiteral kWorkingAttr = "nn.working";
/// On an argument and what replaces it, on a result of `@forward` what is
/// added: the name of numbers that are shown.
inline constexpr llvm::StringLiteral kMeasureAttr = "nn.measure";
/// On a bias that is no variable of the optimizer: the measure that it follows.
inline constexpr llvm::StringLiteral kFollowsAttr = "nn.follows";
inline constexpr llvm::StringLiteral kRowsAttr = "nn.rows";
/// On an argument that ranks have parts of: the elements of the whole in the
/// dimension that is cut, where parts of equal size have more.
inline constexpr llvm::StringLiteral kWholeAttr = "nn.whole";
inline constexpr llvm::StringLiteral kOutputAttr = "nn.output";
inline constexpr llvm::StringLiteral kScopeAttr = "nn.scope";
inline constexpr llvm::StringLiteral kMicroBatchesAttr = "nn.micro_batches";
/// Beside that, and on sums over ranks: groups of a rank's, added up by a tree.
inline constexpr llvm::StringLiteral kReductionGroupsAttr =
    "nn.reduction_groups";
inline constexpr llvm::StringLiteral kModelAttr = "nn.model";
inline constexpr llvm::StringLiteral kTrainAttr = "nn.train";
/// In `nn.train`, where the description says so: rows of a chunk of the head.
inline constexpr llvm::StringLiteral kHeadChunkRows = "head_chunk_rows";
/// In `nn.train`: by how much a bias changes that follows a measure.
inline constexpr llvm::StringLiteral kBiasUpdateRate =
    "moe_router_bias_update_rate";
/// In `nn.train` of what was planned for a budget of all memory: its bytes.
inline constexpr llvm::StringLiteral kMemoryBudget = "memory_budget";
inline constexpr llvm::StringLiteral kHubConfigAttr = "nn.hub_config";
inline constexpr llvm::StringLiteral kTrainJsonAttr = "nn.train_json";
inline constexpr llvm::StringLiteral kMeshAttr = "nn.mesh";
inline constexpr llvm::StringLiteral kLayoutAttr = "nn.layout";

/// The axis of a mesh along which ranks have samples of their own.
inline constexpr llvm::StringLiteral kDataAxis = "dp";
/// The axis along which ranks have parts of the same parameters.
inline constexpr llvm::StringLiteral kTensorAxis = "tp";
/// The axis of the stages of a pipeline.
inline constexpr llvm::StringLiteral kPipeAxis = "pp";
/// Where there are fewer heads of keys and values than ranks along `tp`, two
/// parts of that axis: ranks with other heads, and ranks with the same ones.
inline constexpr llvm::StringLiteral kHeadsAxis = "kv";
inline constexpr llvm::StringLiteral kHeadCopiesAxis = "kv_copies";

/// On a module: the layers of each chunk of a pipeline, and the name of its
/// schedule.
inline constexpr llvm::StringLiteral kChunkLayersAttr = "nn.chunk_layers";
inline constexpr llvm::StringLiteral kScheduleAttr = "nn.schedule";
/// Beside that: micro-batches that go through a stage's chunks before others.
inline constexpr llvm::StringLiteral kMicroBatchGroupAttr =
    "nn.micro_batch_group";
/// On a module of one stage: its number along `pp`.
inline constexpr llvm::StringLiteral kStageAttr = "nn.stage";
/// On an input of a step of many micro-batches: of which it is.
inline constexpr llvm::StringLiteral kMicroBatchAttr = "nn.micro_batch";
/// On a parameter of a chunk or of a stage: its number among all of the model,
/// and that of its gradient among those of its kind; -1 for one that is not
/// trained, or that another stage counts.
inline constexpr llvm::StringLiteral kOrderAttr = "nn.order";
/// On a module of those: how many gradients the model has that are whole, and
/// how many of each other `CutKind`, that ranks have parts of.
inline constexpr llvm::StringLiteral kGradientCountsAttr = "nn.gradient_counts";

/// On a module: ranks along `tp` have parts of the positions between layers.
inline constexpr llvm::StringLiteral kSequenceParallelAttr =
    "nn.sequence_parallel";
/// On a module: ranks along `dp` are to have shares of the optimizer's state.
inline constexpr llvm::StringLiteral kDistributedOptimizerAttr =
    "nn.distributed_optimizer";
/// On an argument that such ranks have shares of: the shape of the whole.
inline constexpr llvm::StringLiteral kShareOfAttr = "nn.share_of";

/// The function of a step, before and after differentiation.
inline constexpr llvm::StringLiteral kForwardFunction = "forward";
inline constexpr llvm::StringLiteral kStepFunction = "step";
/// What only goes forward beside the step: the loss without dropout, and the
/// logits of one position.
inline constexpr llvm::StringLiteral kEvaluateFunction = "evaluate";
inline constexpr llvm::StringLiteral kSampleFunction = "sample";
/// What the names of functions begin with that put sums of groups of
/// micro-batches aside, `push_level_0` and so on.
inline constexpr llvm::StringLiteral kPushFunction = "push_level_";

/// The ranks along an axis of the module's mesh; 1 without one.
int64_t getAxisSize(mlir::Operation *module, llvm::StringRef axis);

/// Along which of `kCutAxes` ranks have parts of what `layout` is of, by its
/// index; -1 if they have all of it.
int64_t getPartAxis(mlir::Operation *module, LayoutAttr layout);

/// Whether ranks meet in `op`.
bool isCollective(mlir::Operation *op);

/// The axis along which what `op` does depends on the rank's number, or null.
mlir::StringAttr getCoordinateAxis(mlir::Operation *op);

/// The scope of `op`, or null.
ScopeAttr getScope(mlir::Operation *op);

/// "layer3.mlp.u", "loss.losses"; empty without a scope.
std::string getScopeName(ScopeAttr scope);

/// How far each pair of a head's columns turns from one position to the next,
/// and what cosine and sine are multiplied with.
struct RotaryFrequencies {
  llvm::SmallVector<float> frequencies;
  float scale;
};

/// What `rotary` means for heads of `headWidth` columns, an even number. The
/// formulas are those of the attribute's description, in f64; what comes out is
/// rounded. `table[t, j]` is `cos(a) * scale` and `table[t, headWidth/2 + j]`
/// is `sin(a) * scale`, in f64, with the product `a = t * frequencies[j]` in
/// f32.
RotaryFrequencies getRotaryFrequencies(RotaryAttr rotary, int64_t headWidth);
} // namespace reprise::nn

#define GET_OP_CLASSES
#include "reprise/Dialect/NN/NNOps.h.inc"

#endif // REPRISE_DIALECT_NN_NNOPS_H
