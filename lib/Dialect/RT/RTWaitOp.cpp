//===- RTWaitOp.cpp - The end of what ranks have begun --------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Dialect/RT/RTWaitOp.h"
#include "Forms.h"
#include "mlir/IR/BuiltinOps.h"
#include "reprise/Dialect/RT/RTExpertRankOps.h"
#include "reprise/Dialect/RT/ScheduledOp.h"
#include "reprise/Interfaces/CostModel.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::rt;

bool rt::isMeeting(Operation *op) {
  return isa<CollectiveOp, GatherOffsetsOp, SendRowsOp, ReturnRowsOp>(op);
}

std::optional<int64_t> rt::getBegun(Operation *op) {
  auto number = op->getAttrOfType<IntegerAttr>(kBegunAttr);
  return number ? std::optional(number.getInt()) : std::nullopt;
}

LogicalResult rt::verifyOverlapForm(Operation *op, StringRef name,
                                    Attribute value) {
  bool meets = isMeeting(op);
  if (name == kBegunAttr) {
    auto number = dyn_cast<IntegerAttr>(value);
    if (meets && number && number.getType().isSignlessInteger(64) &&
        llvm::isUInt<31>(number.getInt()))
      return success();
    return op->emitOpError("needs 'rt.begun' to be a number from 0 to "
                           "2147483647, of type i64, on an op in which ranks "
                           "meet, but got ")
           << value;
  }
  bool isPlace =
      name == kNoOverlapAttr ? isa<ModuleOp>(op) : meets || isa<WaitOp>(op);
  if (isPlace && isa<UnitAttr>(value))
    return success();
  return op->emitOpError("needs '")
         << name << "' without a value, on "
         << (name == kNoOverlapAttr ? "a module"
                                    : "an op in which ranks meet or a wait")
         << ", but got " << value;
}

/// Other ranks may wait for this one: it is never dropped.
void WaitOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  SmallVector<Value> reads(getMade()), writes(getOutputs());
  llvm::append_range(reads, getKept());
  if (getWorkspace())
    writes.push_back(getWorkspace());
  addEffects(*this, reads, writes, effects);
  effects.emplace_back(MemoryEffects::Write::get());
}

LogicalResult WaitOp::verify() {
  bool isOnTensors = getNumResults() != 0;
  if (int64_t(getNumber()) < 0) // C3
    return emitOpError("needs a number of at least 0, but got ")
           << int64_t(getNumber());
  if (isOnTensors != getOutputs().empty() || (isOnTensors && getWorkspace()))
    return emitOpError("needs either results, or outputs"); // C1
  if (failed(verifyForm(*this, /*buffers=*/!isOnTensors)))  // C1
    return failure();
  TypeRange has = isOnTensors ? TypeRange(getResultTypes())
                              : TypeRange(getOutputs().getTypes());
  if (has == TypeRange(getMade().getTypes())) // C2
    return success();
  return emitOpError("needs ")
         << (isOnTensors ? "results" : "outputs") << " of the types "
         << getMade().getTypes() << ", but got " << has;
}

//===----------------------------------------------------------------------===//
// In schedules
//===----------------------------------------------------------------------===//

namespace {
/// It takes no time: what is begun has its own.
struct ScheduledWait : ScheduledOp::ExternalModel<ScheduledWait, WaitOp> {
  SmallVector<Value> getReads(Operation *op) const {
    auto wait = cast<WaitOp>(op);
    SmallVector<Value> reads(wait.getMade());
    llvm::append_range(reads, wait.getKept());
    return reads;
  }
  SmallVector<Value> getWrites(Operation *op) const {
    SmallVector<Value> writes(op->getResults());
    llvm::append_range(writes, cast<WaitOp>(op).getOutputs());
    return writes;
  }
  FailureOr<SmallVector<Sharing>> getSharing(Operation *op,
                                             const SymbolTable &) const {
    SmallVector<Sharing> sharing;
    for (unsigned made = 0; made < cast<WaitOp>(op).getMade().size(); ++made)
      sharing.push_back({made, int64_t(made), /*isForced=*/true});
    return sharing;
  }
  Value getWorkspaceBuffer(Operation *op) const {
    return cast<WaitOp>(op).getWorkspace();
  }
  Workload getWorkload(Operation *op, SymbolTable &) const {
    Workload load;
    load.work = Work::Exchange;
    load.key = "wait";
    return load;
  }
  Operation *createOnBuffers(Operation *op, OpBuilder &builder,
                             function_ref<Value(Value)> getBuffer,
                             Value workspace) const {
    auto wait = cast<WaitOp>(op);
    return WaitOp::create(
        builder, op->getLoc(), TypeRange(), wait.getNumberAttr(),
        llvm::map_to_vector(wait.getMade(), getBuffer),
        llvm::map_to_vector(wait.getKept(), getBuffer),
        llvm::map_to_vector(wait.getResults(), getBuffer), workspace);
  }
};
} // namespace

void rt::attachScheduledWait(MLIRContext &context) {
  WaitOp::attachInterface<ScheduledWait>(context);
}
