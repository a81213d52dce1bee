//===- RTExpertRankOps.cpp - Rows of experts on their way -----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Dialect/RT/RTExpertRankOps.h"
#include "Forms.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "reprise/Dialect/RT/ScheduledOp.h"
#include "reprise/Interfaces/CostModel.h"
#include "reprise/Interfaces/EvenRows.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::rt;

using Effects =
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>;

/// What an op makes: its results, or its outputs.
template <typename OpTy>
static SmallVector<Value> getMade(OpTy op) {
  SmallVector<Value> made(op.getResults());
  llvm::append_range(made, op.getOutputs());
  return made;
}

/// Ranks meet in it: it is never dropped, nor merged with another.
template <typename OpTy>
static void addRowEffects(OpTy op, Effects &effects) {
  for (OpOperand &operand : op->getOpOperands())
    if (isa<MemRefType>(operand.get().getType())) {
      bool isInput = operand.getOperandNumber() < op.getInputs().size();
      if (isInput)
        effects.emplace_back(MemoryEffects::Read::get(), &operand);
      else
        effects.emplace_back(MemoryEffects::Write::get(), &operand);
    }
  effects.emplace_back(MemoryEffects::Write::get());
}

void GatherOffsetsOp::getEffects(Effects &effects) {
  addRowEffects(*this, effects);
}
void SendRowsOp::getEffects(Effects &effects) { addRowEffects(*this, effects); }
void ReturnRowsOp::getEffects(Effects &effects) {
  addRowEffects(*this, effects);
}

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

static ArrayRef<int64_t> getShape(Value value) {
  return cast<ShapedType>(value.getType()).getShape();
}

/// C1, and so many inputs and values that are made.
template <typename OpTy>
static LogicalResult verifyCounts(OpTy op, size_t inputs, size_t made) {
  bool isOnTensors = op->getNumResults() != 0;
  if (isOnTensors == op.getOutputs().empty() &&
      op.getInputs().size() == inputs && getMade(op).size() == made)
    return verifyForm(op, /*buffers=*/!isOnTensors);
  return op.emitOpError("needs ")
         << inputs << (inputs == 1 ? " input" : " inputs") << " and either "
         << made << (made == 1 ? " result or output" : " results or outputs")
         << ", but got " << op.getInputs().size() << " and "
         << getMade(op).size();
}

static LogicalResult verifyOffsets(Operation *op, Value all, int64_t ranks) {
  ArrayRef<int64_t> shape = getShape(all);
  if (ranks >= 1 && shape.size() == 2 && shape[0] == ranks &&
      shape[1] > ranks && (shape[1] - 1) % ranks == 0)
    return success();
  return op->emitOpError("needs offsets of ")
         << ranks << " ranks, which divide the experts, but got "
         << all.getType();
}

LogicalResult GatherOffsetsOp::verify() {
  if (failed(verifyCounts(*this, 1, 2)))
    return failure();
  SmallVector<Value> made = getMade(*this);
  int64_t ranks = getRanks();
  if (failed(verifyOffsets(*this, made[0], ranks))) // C2
    return failure();
  int64_t size = getShape(made[0])[1];
  ArrayRef<int64_t> own = getShape(made[1]);
  if (getShape(getInputs()[0]) == ArrayRef<int64_t>{size} &&
      own.size() == (getRows() ? 2 : 1) && own[0] >= 1 && !getRound() &&
      (!getRows() || int64_t(*getRows()) >= 1) && !getKeeps() &&
      own.back() == (size - 1) / ranks + 1) // C2
    return success();
  return emitOpError("needs offsets of ")
         << size - 1 << " experts, and of those of a rank, but got "
         << getInputs()[0].getType() << " and " << made[1].getType();
}

/// What rows that are not of the round are, if the op keeps them.
template <typename OpTy>
static Value getKept(OpTy op) {
  return op.getKeeps() ? op.getInputs().back() : Value();
}

template <typename OpTy>
static LogicalResult verifyRows(OpTy op) {
  bool isRound = op.getRound() && op.getRows() &&
                 int64_t(*op.getRound()) >= 0 && int64_t(*op.getRows()) >= 1;
  if (!isRound && (op.getRound() || op.getRows() || op.getKeeps()))
    return op.emitOpError("needs 'round' of at least 0 together with 'rows' of "
                          "at least 1, and 'keeps' with these only"); // C4
  if (failed(verifyCounts(op, op.getKeeps() ? 3 : 2, 1)) ||
      failed(verifyOffsets(op, op.getInputs()[1], op.getRanks())))
    return failure();
  Value from = op.getInputs()[0], to = getMade(op)[0];
  if (Value kept = getKept(op); kept && kept.getType() != to.getType()) // C4
    return op.emitOpError("needs to keep rows of ")
           << to.getType() << ", but got " << kept.getType();
  if (!getShape(from).empty() && !getShape(to).empty() &&
      getShape(from).drop_front() == getShape(to).drop_front() &&
      getElementTypeOrSelf(from) == getElementTypeOrSelf(to)) // C2
    return success();
  return op.emitOpError("needs rows of equal sizes, but got ")
         << from.getType() << " and " << to.getType();
}

/// The rows of the experts of a rank: what is sent, or what comes back.
static Value getThere(SendRowsOp op) { return getMade(op)[0]; }
static Value getThere(ReturnRowsOp op) { return op.getInputs()[0]; }

/// What is sent lies in the bytes of the result.
static int64_t getSlotCopies(SendRowsOp) { return 1; }
static int64_t getSlotCopies(ReturnRowsOp) { return 2; }

static bool isOnGpu(Operation *op) {
  auto module = op->getParentOfType<ModuleOp>();
  return module && module->hasAttr(kGemmWorkspaceAttr);
}

/// Bytes of slots: as many as there is room for where experts are. Offsets are
/// the same for all and move as they are.
template <typename OpTy>
static int64_t getSlotBytes(OpTy op) {
  if constexpr (std::is_same_v<OpTy, GatherOffsetsOp>)
    return 0;
  else
    return isOnGpu(op)
               ? getSlotCopies(op) *
                     llvm::alignTo<4>(getTypeBytes(getThere(op).getType()))
               : 0;
}

/// C3.
template <typename OpTy>
static LogicalResult verifySlots(OpTy op) {
  if (op->getNumResults() != 0)
    return success();
  const int64_t bytes =
      op.getWorkspace() ? getTypeBytes(op.getWorkspace().getType()) : 0;
  const int64_t needed = getSlotBytes(op);
  if (needed != 0 && op.getRound())
    return op.emitOpError("needs all rows at once on a GPU, but got round ")
           << int64_t(*op.getRound());
  if (bytes < needed)
    return op.emitOpError("needs a workspace of ")
           << needed << " bytes on a GPU, but got " << bytes;
  if (needed != 0 && getShape(getThere(op))[0] % int64_t(op.getRanks()) != 0)
    return op.emitOpError("needs rows that ")
           << op.getRanks() << " ranks divide on a GPU, but got "
           << getThere(op).getType();
  return success();
}

LogicalResult SendRowsOp::verify() {
  return failed(verifyRows(*this)) ? failure() : verifySlots(*this);
}
LogicalResult ReturnRowsOp::verify() {
  return failed(verifyRows(*this)) ? failure() : verifySlots(*this);
}

//===----------------------------------------------------------------------===//
// In schedules
//===----------------------------------------------------------------------===//

/// What is exchanged: of offsets those of all; of rows those of the rank's
/// tokens, as many as others send where experts are used evenly. On GPUs all
/// slots are.
static int64_t getExchanged(GatherOffsetsOp op) {
  return getTypeBytes(getMade(op)[0].getType());
}
template <typename OpTy>
static int64_t getExchanged(OpTy op) {
  if (isOnGpu(op))
    return getTypeBytes(getThere(op).getType());
  Type from = op.getInputs()[0].getType(), to = getMade(op)[0].getType();
  int64_t bytes = std::min(getTypeBytes(from), getTypeBytes(to));
  int64_t rows = cast<ShapedType>(from).getDimSize(0);
  int64_t even = getEvenRows(op, kEvenRTRowsAttr, rows);
  return std::min(bytes, getTypeBytes(from) / rows * even);
}

namespace {
template <typename OpTy>
struct ScheduledRows : ScheduledOp::ExternalModel<ScheduledRows<OpTy>, OpTy> {
  SmallVector<Value> getReads(Operation *op) const {
    return SmallVector<Value>(cast<OpTy>(op).getInputs());
  }
  SmallVector<Value> getWrites(Operation *op) const {
    return getMade(cast<OpTy>(op));
  }
  FailureOr<SmallVector<Sharing>> getSharing(Operation *op,
                                             const SymbolTable &) const {
    SmallVector<Sharing> sharing;
    if (getKept(cast<OpTy>(op)))
      sharing.push_back({2, 0, /*isForced=*/true});
    return sharing;
  }
  int64_t getWorkspaceBytes(Operation *op) const {
    return getSlotBytes(cast<OpTy>(op));
  }
  Value getWorkspaceBuffer(Operation *op) const {
    return cast<OpTy>(op).getWorkspace();
  }
  Workload getWorkload(Operation *op, SymbolTable &) const {
    auto rows = cast<OpTy>(op);
    Workload load;
    load.bytes = getOperandAndResultBytes(op);
    if (Value workspace = rows.getWorkspace())
      load.bytes -= getTypeBytes(workspace.getType());
    if (Value kept = getKept(rows)) // Rows of a round are written, no others.
      load.bytes -= getTypeBytes(kept.getType());
    setExchange(load, op->getName().stripDialect(), rows.getAxis(),
                rows.getRanks(), getExchanged(rows), /*hasWholeSums=*/false);
    return load;
  }
  Operation *createOnBuffers(Operation *op, OpBuilder &builder,
                             function_ref<Value(Value)> getBuffer,
                             Value workspace) const {
    auto rows = cast<OpTy>(op);
    return OpTy::create(builder, op->getLoc(), TypeRange(),
                        llvm::map_to_vector(rows.getInputs(), getBuffer),
                        llvm::map_to_vector(rows.getResults(), getBuffer),
                        workspace, rows.getAxisAttr(), rows.getRanksAttr(),
                        rows.getRoundAttr(), rows.getRowsAttr(),
                        rows.getKeepsAttr());
  }
};
} // namespace

void rt::attachScheduledRows(MLIRContext &context) {
  GatherOffsetsOp::attachInterface<ScheduledRows<GatherOffsetsOp>>(context);
  SendRowsOp::attachInterface<ScheduledRows<SendRowsOp>>(context);
  ReturnRowsOp::attachInterface<ScheduledRows<ReturnRowsOp>>(context);
}
