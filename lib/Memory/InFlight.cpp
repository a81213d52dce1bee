//===- InFlight.cpp - Proof of what ranks have begun ----------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InFlight.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/RT/ScheduledOp.h"
#include "reprise/Interfaces/CostModel.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::memory;

static SmallVector<rt::BufferOp> getBuffers(ArrayRef<Value> values) {
  SmallVector<rt::BufferOp> buffers;
  for (Value value : values)
    if (auto buffer = value.getDefiningOp<rt::BufferOp>())
      buffers.push_back(buffer);
  return buffers;
}

InFlight::Begun InFlight::getBegun(Operation *op) {
  Begun begun = {op, {}, {}, {}};
  auto scheduled = dyn_cast<rt::ScheduledOp>(op);
  if (!scheduled)
    return begun;
  begun.reads = getBuffers(scheduled.getReads());
  begun.writes = getBuffers(scheduled.getWrites());
  if (Value workspace = scheduled.getWorkspaceBuffer())
    begun.workspace = workspace.getDefiningOp<rt::BufferOp>();
  return begun;
}

/// The first of `buffers` with bytes of `range`, or null.
static rt::BufferOp findOverlap(ArrayRef<rt::BufferOp> buffers,
                                ByteRange range) {
  auto found = llvm::find_if(buffers, [&](rt::BufferOp buffer) {
    return getRange(buffer).overlaps(range);
  });
  return found == buffers.end() ? rt::BufferOp() : *found;
}

static InFlightDiagnostic refuse(Operation *op, StringRef does, ByteRange range,
                                 Operation *begun, StringRef why) {
  InFlightDiagnostic error = op->emitOpError(does)
                             << " bytes " << range << ", " << why;
  error.attachNote(begun->getLoc()) << "which is begun here";
  return error;
}

/// What `op` touches against what `begun` reads, makes and works in. All that
/// is begun runs one after another, and may work in the same bytes.
LogicalResult InFlight::checkBytes(Operation *op, const Begun &begun) const {
  Begun own = getBegun(op);
  rt::BufferOp workspace = begun.workspace;
  SmallVector<rt::BufferOp> closed = begun.writes, writes = own.writes;
  bool sharesWorkspace = isa<rt::WaitOp>(op) || rt::getBegun(op);
  if (workspace)
    closed.push_back(workspace);
  if (own.workspace && !sharesWorkspace)
    writes.push_back(own.workspace);
  for (rt::BufferOp read : own.reads)
    if (findOverlap(closed, getRange(read)))
      return refuse(op, "reads", getRange(read), begun.op,
                    "before the wait for what is made there");
  for (rt::BufferOp write : writes) {
    if (findOverlap(closed, getRange(write)))
      return refuse(op, "writes", getRange(write), begun.op,
                    "before the wait for what is made there");
    if (findOverlap(begun.reads, getRange(write)))
      return refuse(op, "writes", getRange(write), begun.op,
                    "before the wait for what still reads them");
  }
  if (!own.workspace || !sharesWorkspace)
    return success();
  SmallVector<rt::BufferOp> values = begun.writes;
  llvm::append_range(values, begun.reads);
  if (findOverlap(values, getRange(own.workspace)))
    return refuse(op, "works in", getRange(own.workspace), begun.op,
                  "before the wait for what has them");
  return success();
}

/// What runs once is there in the last micro-batch alone.
LogicalResult InFlight::checkOnce(Operation *op) const {
  if (op->hasAttr(rt::kOnceAttr)) {
    auto function = op->getParentOfType<func::FuncOp>();
    if (isUpdate || function.getName() != nn::kStepFunction)
      return op->emitOpError("needs to be above rt.update of @")
             << nn::kStepFunction << " to have 'rt.once', but is in @"
             << function.getName() << (isUpdate ? " below it" : "");
    return success();
  }
  Begun own = getBegun(op);
  for (ArrayRef<rt::BufferOp> buffers :
       {ArrayRef<rt::BufferOp>(own.reads), ArrayRef<rt::BufferOp>(own.writes)})
    for (rt::BufferOp buffer : buffers)
      if (rt::BufferOp other = findOverlap(made, getRange(buffer))) {
        InFlightDiagnostic error =
            op->emitOpError("needs 'rt.once' to touch bytes ")
            << getRange(buffer) << " above rt.update: the last micro-batch "
            << "alone has what is there";
        error.attachNote(other.getLoc()) << "this is there";
        return error;
      }
  return success();
}

LogicalResult InFlight::begin(Operation *op, int64_t number) {
  if (!all.try_emplace(number, getBegun(op)).second)
    return op->emitOpError("needs a number of its own, but ")
           << number << " is under way";
  return success();
}

/// Without those of no bytes, which share bytes with nothing, nor with what is
/// made in place of them.
static SmallVector<rt::BufferOp> withBytes(ArrayRef<rt::BufferOp> buffers) {
  SmallVector<rt::BufferOp> some(buffers);
  llvm::erase_if(some, [](rt::BufferOp buffer) {
    return getTypeBytes(buffer.getType()) == 0;
  });
  return some;
}

/// The wait names what is made, and keeps what is read and not written over.
LogicalResult InFlight::end(rt::WaitOp wait) {
  auto found = all.find(wait.getNumber());
  if (found == all.end())
    return wait.emitOpError("needs something that is begun with number ")
           << wait.getNumber() << " above it, but there is nothing";
  const Begun &begun = found->second;
  if (begun.op->hasAttr(rt::kOnceAttr) != wait->hasAttr(rt::kOnceAttr))
    return wait.emitOpError("needs 'rt.once' where what is begun has it, and "
                            "only there");
  SmallVector<rt::BufferOp> kept;
  for (rt::BufferOp read : withBytes(begun.reads))
    if (!findOverlap(begun.writes, getRange(read)))
      kept.push_back(read);
  if (getBuffers(SmallVector<Value>(wait.getMade())) != begun.writes ||
      withBytes(getBuffers(SmallVector<Value>(wait.getKept()))) != kept) {
    InFlightDiagnostic error =
        wait.emitOpError("needs the ")
        << begun.writes.size() << " buffers that are made, and to keep the "
        << kept.size() << " that are read and not written over";
    error.attachNote(begun.op->getLoc()) << "which is begun here";
    return error;
  }
  all.erase(found);
  return success();
}

LogicalResult InFlight::visit(Operation *op) {
  auto wait = dyn_cast<rt::WaitOp>(op);
  if (wait && failed(end(wait)))
    return failure();
  if (failed(checkOnce(op)))
    return failure();
  for (const auto &[number, begun] : all)
    if (failed(checkBytes(op, begun)))
      return failure();
  if (op->hasAttr(rt::kOnceAttr))
    llvm::append_range(made, getBegun(op).writes);
  if (std::optional<int64_t> number = rt::getBegun(op))
    return begin(op, *number);
  return success();
}

LogicalResult InFlight::endPart(StringRef what) {
  made.clear();
  isUpdate = true;
  if (all.empty())
    return success();
  return all.begin()->second.op->emitOpError("needs a wait for number ")
         << all.begin()->first << " above " << what;
}
