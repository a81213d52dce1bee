//===- NNDialect.cpp - Registration and attributes of the nn dialect ------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Facts.h"
#include "Verify.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "reprise/Dialect/NN/Axes.h"
#include "reprise/Dialect/NN/NNActivationOps.h"
#include "reprise/Dialect/NN/NNBalanceOps.h"
#include "reprise/Dialect/NN/NNExpertRankOps.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/NN/Terms.h"
#include "reprise/Interfaces/EvenRows.h"
#include "reprise/Interfaces/ExpertRounds.h"
#include "reprise/Support/Borders.h"
#include "reprise/Support/Modules.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;

#include "reprise/Dialect/NN/NNDialect.cpp.inc"
#include "reprise/Dialect/NN/NNEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "reprise/Dialect/NN/NNAttributes.cpp.inc"
#define GET_OP_CLASSES
#include "reprise/Dialect/NN/NNOps.cpp.inc"

void NNDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "reprise/Dialect/NN/NNAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "reprise/Dialect/NN/NNOps.cpp.inc"
      >();
  attachFacts(*getContext());
  attachClassFacts(*getContext());
  attachPartitionFacts(*getContext());
  attachLayerFacts(*getContext());
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

LogicalResult ScopeAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                int64_t layer, StringRef module,
                                StringRef value) {
  constexpr int64_t kMostLayers = 1 << 20; // There are tables of layers.
  if (layer < -1 || layer >= kMostLayers)
    return emitError() << "needs a layer from 0 to " << kMostLayers - 1
                       << ", but got " << layer;
  if (parseModule(module))
    return success();
  InFlightDiagnostic error = emitError() << "needs a module of ";
  ArrayRef<ModuleInfo> known(kModuleTable);
  for (const ModuleInfo &info : known.drop_back())
    error << (&info == known.begin() ? "" : ", ") << info.name;
  return error << " or " << known.back().name << ", but got '" << module << "'";
}

LogicalResult PartialAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                  StringRef name, int64_t level) {
  constexpr int64_t kMost = 20;
  if (name.empty())
    return emitError() << "needs the name of a parameter, or 'loss', but got "
                          "an empty one";
  if (level < 0 || level > kMost)
    return emitError() << "needs a level of 0 to " << kMost << ", but got "
                       << level;
  return success();
}

LogicalResult
ParameterAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                      StringRef name, Init init, FloatAttr std, bool decay,
                      bool frozen, StringRef hub, int64_t part, int64_t parts) {
  if (name.empty())
    return emitError() << "needs a parameter name, but got an empty one";
  if ((init == Init::Normal) != bool(std))
    return emitError()
           << "needs 'std' with init normal and only there, but got "
           << (std ? "one" : "none") << " with init " << stringifyInit(init);
  if (std && !(std.getValueAsDouble() >= 0 &&
               std::isfinite(float(std.getValueAsDouble()))))
    return emitError() << "needs a standard deviation of at least 0 that is "
                          "finite in f32, but got "
                       << std.getValueAsDouble();
  if (parts < 1 || part < 0 || part >= parts)
    return emitError()
           << "needs a part below the number of parts, but got part " << part
           << " of " << parts;
  if (hub.empty() && parts != 1)
    return emitError() << "needs the published tensor that it is part " << part
                       << " of " << parts << " of, but got no 'hub'";
  if (hub.count('*') > 1 || (hub.contains('*') && parts != 1))
    return emitError() << "needs one '*' in 'hub' at most, and no parts with "
                          "it, but got '"
                       << hub << "' and " << parts << " parts";
  return success();
}

ScopeAttr nn::getScope(Operation *op) {
  return op->getAttrOfType<ScopeAttr>(kScopeAttr);
}

std::string nn::getScopeName(ScopeAttr scope) {
  if (!scope)
    return "";
  std::string name;
  if (scope.getLayer() >= 0)
    name = "layer" + std::to_string(scope.getLayer()) + ".";
  name += scope.getModule();
  if (!scope.getValue().empty())
    name += "." + scope.getValue().str();
  return name;
}

//===----------------------------------------------------------------------===//
// Discardable attributes
//===----------------------------------------------------------------------===//

/// The hyper-parameters: each of its type and within its range. Which ones a
/// phase needs, that phase says.
static LogicalResult verifyTrain(Operation *op, DictionaryAttr train) {
  for (NamedAttribute entry : train) {
    StringRef name = entry.getName();
    Attribute value = entry.getValue();
    bool good = true;
    StringRef needs;
    if (name == "lr" || name == "min_lr" || name == "adam_eps" ||
        name == "weight_decay" || name == "clip_grad" ||
        name == kBiasUpdateRate) {
      auto number = dyn_cast<FloatAttr>(value);
      good = number && number.getValueAsDouble() >= 0;
      needs = "a floating-point number of at least 0";
    } else if (name == "adam_beta1" || name == "adam_beta2") {
      auto number = dyn_cast<FloatAttr>(value);
      good = number && number.getValueAsDouble() >= 0 &&
             number.getValueAsDouble() < 1;
      needs = "a floating-point number of at least 0 and below 1";
    } else if (name == "lr_warmup_iters" || name == "seed" ||
               name == kHeadChunkRows) {
      auto number = dyn_cast<IntegerAttr>(value);
      good = number && number.getInt() >= 0;
      needs = "a whole number of at least 0";
    } else if (name == "lr_decay_iters" || name == "train_iters" ||
               name == "vocab_size" || name == kMemoryBudget) {
      auto number = dyn_cast<IntegerAttr>(value);
      good = number && number.getInt() >= 1;
      needs = "a whole number of at least 1";
    } else if (name == "lr_decay_style") {
      auto word = dyn_cast<StringAttr>(value);
      good =
          word && (word == "constant" || word == "linear" || word == "cosine");
      needs = "constant, linear or cosine";
    } else {
      good = isa<StringAttr>(value);
      needs = "a word";
    }
    if (!good)
      return op->emitOpError("needs ") << needs << " for '" << name
                                       << "' in 'nn.train', but got " << value;
  }
  return success();
}

/// The dimension that is cut is one of `type`.
static LogicalResult verifyLayout(Operation *op, LayoutAttr layout, Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  for (StringAttr axis : layout.getNames())
    if (tensor && layout.getShardDim(axis) >= tensor.getRank())
      return op->emitOpError("needs a dimension below ")
             << tensor.getRank() << " for 'nn.layout', but got " << layout
             << " of " << type;
  return success();
}

/// Groups of micro-batches have equal sizes. Sums over ranks say how many each
/// rank has.
static LogicalResult verifyGroups(Operation *op, Attribute value) {
  auto groups = dyn_cast<IntegerAttr>(value);
  if (isa<AllReduceOp, ReduceSharesOp>(op)) {
    constexpr int64_t kMost = 1 << 20;
    if (groups && groups.getInt() >= 1 && groups.getInt() <= kMost)
      return success();
    return op->emitOpError("needs a number of 1 to ")
           << kMost << " for 'nn.reduction_groups', but got " << value;
  }
  auto count = op->getAttrOfType<IntegerAttr>(kMicroBatchesAttr);
  if (groups && count && groups.getInt() >= 1 &&
      count.getInt() % groups.getInt() == 0)
    return success();
  InFlightDiagnostic error =
      op->emitOpError("needs a number that divides 'nn.micro_batches' for "
                      "'nn.reduction_groups', but got ")
      << value;
  if (count)
    error << " with " << count.getInt();
  return error;
}

static LogicalResult verifyNumber(Operation *op, NamedAttribute attribute,
                                  int64_t least = 0) {
  auto number = dyn_cast<IntegerAttr>(attribute.getValue());
  if (number && number.getInt() >= least)
    return success();
  return op->emitOpError("needs a number of at least ")
         << least << " for '" << attribute.getName().getValue() << "', but got "
         << attribute.getValue();
}

/// Layers of chunks: those of embeddings or of the loss alone have none. Or
/// gradients of each kind of parts.
static LogicalResult verifyCounts(Operation *op, NamedAttribute attribute) {
  auto counts = dyn_cast<DenseI64ArrayAttr>(attribute.getValue());
  int64_t wanted =
      attribute.getName() == kGradientCountsAttr ? kNumCutKinds : 0;
  if (counts && !counts.empty() && (!wanted || counts.size() == wanted) &&
      llvm::all_of(counts.asArrayRef(), [](int64_t n) { return n >= 0; }))
    return success();
  InFlightDiagnostic error = op->emitOpError("needs ");
  if (wanted)
    error << wanted << " ";
  return error << "numbers of at least 0 for '"
               << attribute.getName().getValue() << "', but got "
               << attribute.getValue();
}

static bool isListOfNames(Attribute value) {
  auto names = dyn_cast<ArrayAttr>(value);
  return names && llvm::all_of(names, llvm::IsaPred<StringAttr>);
}

LogicalResult NNDialect::verifyOperationAttribute(Operation *op,
                                                  NamedAttribute attribute) {
  StringRef name = attribute.getName();
  Attribute value = attribute.getValue();
  if (name == kScopeAttr) {
    if (!isa<ScopeAttr>(value))
      return op->emitOpError("needs #nn.scope for 'nn.scope', but got ")
             << value;
    return success();
  }
  if (name == kMicroBatchesAttr) {
    auto count = dyn_cast<IntegerAttr>(value);
    constexpr int64_t kMost = 1 << 20;
    if (!count || count.getInt() < 1 || count.getInt() > kMost)
      return op->emitOpError("needs a count of 1 to ")
             << kMost << " for 'nn.micro_batches', but got " << value;
    return success();
  }
  if (name == kReductionGroupsAttr)
    return verifyGroups(op, value);
  if ((name == kModelAttr || name == kHubConfigAttr ||
       name == kTrainJsonAttr) &&
      isa<StringAttr>(value))
    return success();
  if ((name == kMeshAttr && isa<MeshAttr>(value)) ||
      (name == kScheduleAttr && isa<StringAttr>(value)))
    return success();
  if (name == kChunkLayersAttr || name == kGradientCountsAttr)
    return verifyCounts(op, attribute);
  if (name == kMeasuresAttr && isListOfNames(value))
    return success();
  if (name == kStageAttr || name == kMicroBatchGroupAttr ||
      name == kEvenNNRowsAttr || name == kExpertRowsAttr)
    return verifyNumber(op, attribute, /*least=*/name == kExpertRowsAttr);
  if ((name == kSequenceParallelAttr || name == kDistributedOptimizerAttr) &&
      isa<UnitAttr>(value))
    return success();
  if (name == kLayoutAttr && isa<LayoutAttr>(value) && op->getNumResults() > 0)
    return verifyLayout(op, cast<LayoutAttr>(value),
                        op->getResult(0).getType());
  if (name == kSoFarAttr && isa<StringAttr>(value) && op->getNumOperands() > 0)
    return success();
  if (name == kTrainAttr && isa<DictionaryAttr>(value))
    return verifyTrain(op, cast<DictionaryAttr>(value));
  if (auto axis = dyn_cast<StringAttr>(value);
      axis && name == kSharesAttr && isa<StagesNormOp>(op))
    return verifyAxis(op, axis);
  return op->emitOpError("has no use for the attribute '")
         << name << "' with value " << value;
}

/// What `nn.input` may name, each with the element type and rank it needs.
static LogicalResult verifyInput(Operation *op, StringRef role, Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  bool ids = role == "tokens" || role == "targets" || role == "sample_tokens";
  bool position = role == "position";
  bool scalar = role == "lr" || role == "bias_correction1" ||
                role == "bias_correction2" || role == "loss_sum";
  bool border = role == kBorder || role == kBorderGradient;
  if (!ids && !position && !scalar && !border && role != "rng")
    return op->emitOpError("needs 'nn.input' to be tokens, targets, "
                           "sample_tokens, position, rng, lr, "
                           "bias_correction1, bias_correction2, loss_sum, "
                           "border or border_gradient, but got '")
           << role << "'";
  if (!tensor) // The memory plan turns tensors into views of the arena.
    return success();
  if (ids && (tensor.getRank() != 2 || !tensor.getElementType().isInteger(32)))
    return op->emitOpError("needs ids [B, T] of i32 for '")
           << role << "', but got " << type;
  if (position &&
      (tensor.getRank() != 1 || !tensor.getElementType().isInteger(32)))
    return op->emitOpError("needs a position [B] of i32 for '")
           << role << "', but got " << type;
  if (scalar && (tensor.getRank() != 0 || !tensor.getElementType().isF32()))
    return op->emitOpError("needs tensor<f32> for '")
           << role << "', but got " << type;
  if (role == "rng" && (tensor.getRank() != 1 || tensor.getDimSize(0) != 4 ||
                        !tensor.getElementType().isInteger(32)))
    return op->emitOpError("needs tensor<4xi32> for 'rng', but got ") << type;
  return success();
}

/// What lives from step to step is f32, but for working copies.
static LogicalResult verifyState(Operation *op, StringRef role, StringRef name,
                                 Type type) {
  if (name.empty())
    return op->emitOpError("needs the name of a parameter for '")
           << role << "', but got an empty one";
  auto tensor = dyn_cast<RankedTensorType>(type);
  bool isWorking = role == kWorkingAttr;
  if (tensor && !(isWorking ? tensor.getElementType().isBF16()
                            : tensor.getElementType().isF32()))
    return op->emitOpError("needs a tensor of ")
           << (isWorking ? "bf16" : "f32") << " for '" << role << "', but got "
           << type;
  return success();
}

/// A table of angles: a row for each position, two columns for each pair.
static LogicalResult verifyRotary(Operation *op, RotaryAttr rotary, Type type) {
  constexpr int64_t kMostColumns = 1 << 20; // Soon gone through.
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor) // The memory plan turns tensors into views of the arena.
    return success();
  int64_t columns = tensor.getRank() == 2 ? tensor.getDimSize(1) : 0;
  if (!tensor.getElementType().isF32() || columns < 2 ||
      columns > kMostColumns || columns % 2 != 0)
    return op->emitOpError("needs a table [T, D] of f32 with an even D from 2 "
                           "to ")
           << kMostColumns << " for 'nn.rotary', but got " << type;
  RotaryFrequencies angles = getRotaryFrequencies(rotary, columns);
  for (float frequency : angles.frequencies)
    if (!std::isfinite(frequency))
      return op->emitOpError("needs frequencies that are finite in f32, but "
                             "gets ")
             << frequency << " from " << rotary;
  if (!std::isfinite(angles.scale))
    return op->emitOpError("needs a scale that is finite in f32, but gets ")
           << angles.scale << " from " << rotary;
  return success();
}

/// Rows that count are some of those that are there.
static LogicalResult verifyRows(Operation *op, int64_t rows, Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (tensor &&
      (tensor.getRank() < 1 || rows < 1 || rows > tensor.getDimSize(0)))
    return op->emitOpError("needs 'nn.rows' from 1 to the rows that are there, "
                           "but got ")
           << rows << " of " << type;
  return success();
}

/// The elements of a tensor of this shape, if it is one of a sensible size.
static std::optional<int64_t> countOf(ArrayRef<int64_t> shape) {
  constexpr int64_t kMost = int64_t(1) << 48;
  int64_t count = 1;
  for (int64_t size : shape) {
    if (size < 1 || size > kMost / count)
      return std::nullopt;
    count *= size;
  }
  return count;
}

/// The argument is the whole, or it is in one dimension what may be a share.
static LogicalResult verifyShareOf(Operation *op, ArrayRef<int64_t> whole,
                                   Type type) {
  std::optional<int64_t> count = countOf(whole);
  auto tensor = dyn_cast_or_null<RankedTensorType>(type);
  if (!count || (tensor && tensor.getShape() != whole &&
                 (tensor.getRank() != 1 || tensor.getNumElements() > *count)))
    return op->emitOpError("needs the shape of a whole, with ")
           << type << " or more elements, for 'nn.share_of', but got " << whole;
  return success();
}

/// Two numbers, the first at least 0, for which `fits` holds.
static LogicalResult
verifyPair(Operation *op, NamedAttribute attribute, StringRef what,
           llvm::function_ref<bool(int64_t, int64_t)> fits) {
  auto pair = dyn_cast<DenseI64ArrayAttr>(attribute.getValue());
  if (pair && pair.size() == 2 && pair[0] >= 0 && fits(pair[0], pair[1]))
    return success();
  return op->emitOpError("needs ")
         << what << " for '" << attribute.getName().getValue() << "', but got "
         << attribute.getValue();
}

static LogicalResult refuseRole(Operation *op, NamedAttribute attribute,
                                StringRef what) {
  return op->emitOpError("has ") << what << " with no use for the attribute '"
                                 << attribute.getName().getValue()
                                 << "' with value " << attribute.getValue();
}

/// What an argument alone may say of itself.
static LogicalResult verifyArgument(Operation *op, NamedAttribute attribute,
                                    Type type) {
  StringRef name = attribute.getName();
  Attribute value = attribute.getValue();
  if (name == kParameterAttr && isa<ParameterAttr>(value))
    return verifyState(op, name, cast<ParameterAttr>(value).getName(), type);
  if (name == kRotaryAttr && isa<RotaryAttr>(value))
    return verifyRotary(op, cast<RotaryAttr>(value), type);
  if (name == kLayoutAttr && isa<LayoutAttr>(value))
    return verifyLayout(op, cast<LayoutAttr>(value), type);
  if (name == kWholeAttr && isa<IntegerAttr>(value)) {
    if (cast<IntegerAttr>(value).getInt() >= 1)
      return success();
    return op->emitOpError("needs 'nn.whole' of at least 1, but got ") << value;
  }
  if (name == kShareOfAttr && isa<DenseI64ArrayAttr>(value))
    return verifyShareOf(op, cast<DenseI64ArrayAttr>(value), type);
  if (name == kMicroBatchAttr)
    return verifyNumber(op, attribute);
  if (name == kOrderAttr)
    return verifyPair(op, attribute,
                      "the number of a parameter and the place of its gradient",
                      [](int64_t, int64_t place) { return place >= -1; });
  if (name == kSumStagesAttr)
    return verifyPair(op, attribute, "two stages that ascend",
                      [](int64_t a, int64_t b) { return a < b; });
  if ((name == kFollowsAttr && isa<StringAttr>(value)) ||
      (name == kUntrainedAttr && isa<UnitAttr>(value)))
    return success();
  if (name == kRowsAttr && isa<IntegerAttr>(value))
    return verifyRows(op, cast<IntegerAttr>(value).getInt(), type);
  if (name == kInputAttr && isa<StringAttr>(value))
    return verifyInput(op, cast<StringAttr>(value).getValue(), type);
  return refuseRole(op, attribute, "an argument");
}

/// What a result alone may say of itself.
static LogicalResult verifyResult(Operation *op, NamedAttribute attribute,
                                  Type type) {
  StringRef name = attribute.getName();
  auto word = dyn_cast<StringAttr>(attribute.getValue());
  if (word && name == kParameterAttr)
    return verifyState(op, name, word.getValue(), type);
  if (word && name == kTermAttr &&
      type == RankedTensorType::get({}, Float32Type::get(op->getContext())))
    return success();
  if (word && name == kOutputAttr) {
    if (word == "loss" || word == "grad_norm" || word == "eval_loss" ||
        word == "logits" || word == kBorder || word == kBorderGradient)
      return success();
    return op->emitOpError("needs 'nn.output' to be loss, grad_norm, "
                           "eval_loss, logits, border or border_gradient, but "
                           "got '")
           << word.getValue() << "'";
  }
  return refuseRole(op, attribute, "a result");
}

static LogicalResult verifyRole(Operation *op, NamedAttribute attribute,
                                Type type, bool isArgument) {
  StringRef name = attribute.getName();
  // The memory plan turns tensors into views of the arena.
  auto tensor = dyn_cast_or_null<RankedTensorType>(type);
  bool isStatic = tensor && tensor.hasStaticShape();
  if (type && !isStatic && !isa<MemRefType>(type))
    return op->emitOpError("needs a tensor of a static shape for '")
           << name << "', but got " << type;
  auto partial = dyn_cast<PartialAttr>(attribute.getValue());
  if (partial && name == kPartialAttr)
    return verifyState(op, name, partial.getName(), type);
  auto word = dyn_cast<StringAttr>(attribute.getValue());
  if (word &&
      (name == kGradientAttr || name == kMoment1Attr || name == kMoment2Attr ||
       name == kWorkingAttr || name == kMeasureAttr))
    return verifyState(op, name, word.getValue(), type);
  return isArgument ? verifyArgument(op, attribute, type)
                    : verifyResult(op, attribute, type);
}

LogicalResult NNDialect::verifyRegionArgAttribute(Operation *op,
                                                  unsigned regionIndex,
                                                  unsigned argIndex,
                                                  NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  Type type = function ? function.getArgumentTypes()[argIndex] : Type();
  // A layout is that of the tensor that ranks have shares of.
  if (function && attribute.getName() == kLayoutAttr)
    if (auto whole = function.getArgAttrOfType<DenseI64ArrayAttr>(argIndex,
                                                                  kShareOfAttr);
        whole && countOf(whole))
      type = RankedTensorType::get(whole, getElementTypeOrSelf(type));
  return verifyRole(op, attribute, type, /*isArgument=*/true);
}

LogicalResult NNDialect::verifyRegionResultAttribute(Operation *op,
                                                     unsigned regionIndex,
                                                     unsigned resultIndex,
                                                     NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  Type type = function ? function.getResultTypes()[resultIndex] : Type();
  return verifyRole(op, attribute, type, /*isArgument=*/false);
}
