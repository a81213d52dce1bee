//===- AttributeRules.cpp - What attributes of rt have to be ----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Forms.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "reprise/Dialect/RT/GroupSums.h"
#include "reprise/Dialect/RT/KnownOffsets.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Dialect/RT/RTWaitOp.h"
#include "reprise/Dialect/RT/ScheduledOp.h"
#include "reprise/Interfaces/EvenRows.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::rt;

//===----------------------------------------------------------------------===//
// Rules with a sentence of their own
//===----------------------------------------------------------------------===//

/// A rotary table has a cosine and a sine for each frequency.
static LogicalResult verifyRotary(Operation *op, StringRef, Attribute value) {
  auto rotary = dyn_cast<RotaryAttr>(value);
  auto buffer = dyn_cast<BufferOp>(op);
  if (!rotary || !buffer)
    return op->emitOpError("needs 'rt.rotary' to be an #rt.rotary of an "
                           "rt.buffer, but got ")
           << value;
  for (StringRef other : {kStateAttr, kRoleAttr})
    if (op->hasAttr(other))
      return op->emitOpError("needs to be one thing, but has 'rt.rotary' and '")
             << other << "'";
  int64_t width = 2 * rotary.getFrequencies().size();
  MemRefType type = buffer.getType();
  if (!type.getElementType().isF32() || type.getRank() != 2 ||
      type.getDimSize(1) != width)
    return op->emitOpError("needs a table of f32 [T, ")
           << width << "] for " << width / 2 << " frequencies, but got "
           << type;
  return success();
}

/// A form of a kernel stands beside the kernel whose place it takes, which is
/// no form itself. What chips there are, is known where code is made for them.
static LogicalResult verifyChipForm(Operation *op, StringRef name,
                                    Attribute value) {
  StringRef other = name == kInsteadAttr ? kChipAttr : kInsteadAttr;
  if (!isa<StringAttr>(value) || !op->getAttrOfType<StringAttr>(other))
    return op->emitOpError("needs 'rt.instead' and 'rt.chip' to be the names "
                           "of a kernel and of a chip, but got ")
           << value;
  if (name == kChipAttr)
    return success();
  auto kernel = SymbolTable::lookupNearestSymbolFrom<FunctionOpInterface>(
      op->getParentOp(), cast<StringAttr>(value));
  if (kernel && !kernel->hasAttr(kInsteadAttr))
    return success();
  return op->emitOpError("needs 'rt.instead' to be the name of a kernel "
                         "beside it that is there for all chips, but got ")
         << value;
}

/// Each output of a launch has a name.
static LogicalResult verifyMadeBy(Operation *op, StringRef, Attribute value) {
  auto launch = dyn_cast<LaunchOp>(op);
  auto names = dyn_cast<ArrayAttr>(value);
  size_t numOutputs =
      launch ? launch.getResults().size() + launch.getOutputs().size() : 0;
  if (launch && names && names.size() == numOutputs &&
      llvm::all_of(names, llvm::IsaPred<StringAttr>))
    return success();
  return op->emitOpError("needs 'rt.made_by' to be a name for each of ")
         << numOutputs << " outputs of a launch, but got " << value;
}

/// One for each result, then that of the workspace.
static LogicalResult verifyKnownOffsets(Operation *op, StringRef,
                                        Attribute value) {
  auto places = dyn_cast<DenseI64ArrayAttr>(value);
  size_t numPlaces = op->getNumResults() + 1;
  if (isa<ScheduledOp>(op) && places && size_t(places.size()) == numPlaces &&
      llvm::all_of(places.asArrayRef(), [](int64_t place) {
        return place >= kNoOffset && place <= kMostOffset;
      }))
    return success();
  return op->emitOpError("needs 'rt.known_offsets' to be ")
         << numPlaces << " numbers from -1 to " << kMostOffset
         << ", for each result and the workspace of a launch or a GEMM, "
            "but got "
         << value;
}

//===----------------------------------------------------------------------===//
// All rules
//===----------------------------------------------------------------------===//

/// Whether `value` is an integer of up to 64 bits, not below `least`.
static bool isAtLeast(Attribute value, int64_t least) {
  auto number = dyn_cast<IntegerAttr>(value);
  return number && number.getType().isSignlessIntOrIndex() &&
         number.getValue().isSignedIntN(64) && number.getInt() >= least;
}

static bool isRole(Operation *, Attribute value) {
  static constexpr StringLiteral kRoles[] = {
      "tokens",           "targets",          "rng",    "lr",
      "bias_correction1", "bias_correction2", "loss",   "grad_norm",
      "sample_tokens",    "position",         "logits", "eval_loss",
      "batches"};
  auto word = dyn_cast<StringAttr>(value);
  return word && llvm::is_contained(kRoles, word.getValue());
}

/// Another form of the code of a kernel that is cut into tasks.
static bool isFormOfTasks(Operation *op, Attribute value) {
  return op->hasAttr(kTasksAttr) && isa<FlatSymbolRefAttr>(value);
}

static bool areThreeSizes(Operation *, Attribute value) {
  auto sizes = dyn_cast<DenseI64ArrayAttr>(value);
  return sizes && sizes.size() == 3 &&
         llvm::all_of(sizes.asArrayRef(), [](int64_t n) { return n >= 1; });
}

/// A workspace is seen as f32.
static bool areBytesOfF32(Operation *, Attribute value) {
  return isAtLeast(value, 4) && cast<IntegerAttr>(value).getInt() % 4 == 0;
}

static bool isPowerOfTwo(Operation *, Attribute value) {
  return isAtLeast(value, 1) &&
         llvm::isPowerOf2_64(cast<IntegerAttr>(value).getInt());
}

static bool isNotNegative(Operation *, Attribute value) {
  return isAtLeast(value, 0);
}

static bool isPositive(Operation *, Attribute value) {
  return isAtLeast(value, 1);
}

template <typename T>
static bool isA(Operation *, Attribute value) {
  return isa<T>(value);
}

namespace {
/// An attribute that some ops may have: what holds for it, in code and in the
/// words behind "needs 'NAME' ". `verify`, if there, says all by itself.
struct Rule {
  StringLiteral name;
  bool (*holds)(Operation *op, Attribute value);
  StringLiteral needs;
  LogicalResult (*verify)(Operation *op, StringRef name,
                          Attribute value) = nullptr;
};
} // namespace

static constexpr StringLiteral kNotNegative = "of at least 0";
static constexpr StringLiteral kForm =
    "to be the name of a function, beside 'rt.tasks'";
static constexpr StringLiteral kSizes = "to be three numbers of at least 1";
static constexpr StringLiteral kUnit = "to be a unit";

static constexpr Rule kRules[] = {
    {kRoleAttr, isRole,
     "to be tokens, targets, rng, lr, bias_correction1, bias_correction2, "
     "loss, grad_norm, sample_tokens, position, logits, eval_loss or batches"},
    {kMicroBatchAttr,
     [](Operation *op, Attribute value) {
       return isAtLeast(value, 0) && op->hasAttr(kRoleAttr);
     },
     "of at least 0 beside 'rt.role'"},
    {kOrderAttr,
     [](Operation *op, Attribute value) {
       return isAtLeast(value, 0) && op->hasAttr(kStateAttr);
     },
     "of at least 0 beside 'rt.state'"},
    {kTasksAttr, isPositive, "of at least 1"},
    {kEvenRTRowsAttr, isPositive, "of at least 1"},
    {kCoordinateAttr, isNotNegative, kNotNegative},
    {kAVX512Attr, isFormOfTasks, kForm},
    {kAVX512BF16Attr, isFormOfTasks, kForm},
    {kAmxAttr, isFormOfTasks, kForm},
    {kGridAttr, areThreeSizes, kSizes},
    {kBlockAttr, areThreeSizes, kSizes},
    {kGemmWorkspaceAttr, areBytesOfF32, "to be a multiple of 4 bytes"},
    {kBiasKernelsAttr, isA<UnitAttr>, kUnit},
    {kActivationsFirstAttr, isA<UnitAttr>, kUnit},
    {kKernelAttr, isA<UnitAttr>, kUnit},
    {kMostLaunchesAttr, isPositive, "of at least 1"},
    {kAlignmentAttr, isPowerOfTwo, "to be a power of two"},
    {kSharedAttr, isNotNegative, kNotNegative},
    {kBytesAttr, isNotNegative, kNotNegative},
    {kPlanAttr, isA<PlanAttr>, "to be an #rt.plan"},
    {kStateAttr, isA<StateAttr>, "to be an #rt.state"},
    {kNameAttr, isA<StringAttr>, "to be a string"},
    {kRotaryAttr, nullptr, "", verifyRotary},
    {kMadeByAttr, nullptr, "", verifyMadeBy},
    {kKnownOffsetsAttr, nullptr, "", verifyKnownOffsets},
    {kInsteadAttr, nullptr, "", verifyChipForm},
    {kChipAttr, nullptr, "", verifyChipForm},
    {kBegunAttr, nullptr, "", verifyOverlapForm},
    {kOnceAttr, nullptr, "", verifyOverlapForm},
    {kNoOverlapAttr, nullptr, "", verifyOverlapForm},
    {kGroupsAttr, nullptr, "", verifyGroups},
};

LogicalResult RTDialect::verifyOperationAttribute(Operation *op,
                                                  NamedAttribute attribute) {
  StringRef name = attribute.getName();
  Attribute value = attribute.getValue();
  const Rule *rule = llvm::find_if(
      kRules, [&](const Rule &known) { return known.name == name; });
  if (rule == std::end(kRules))
    return op->emitOpError("has no use for the attribute '")
           << name << "' with value " << value;
  if (rule->verify)
    return rule->verify(op, name, value);
  if (rule->holds(op, value))
    return success();
  return op->emitOpError("needs '")
         << name << "' " << rule->needs << ", but got " << value;
}
