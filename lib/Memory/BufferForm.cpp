//===- BufferForm.cpp - A schedule on planned bytes -------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Planner.h"
#include "reprise/Dialect/RT/KnownOffsets.h"
#include "reprise/Dialect/RT/RTWaitOp.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::memory;

static MemRefType getBufferType(Type type) {
  auto shaped = cast<ShapedType>(type);
  return MemRefType::get(shaped.getShape(), shaped.getElementType());
}

Value Planner::createBuffer(OpBuilder &builder, Location loc, Type type,
                            const Buffer &buffer) {
  auto place =
      rt::PlaceAttr::get(builder.getContext(), buffer.space, buffer.offset);
  return rt::BufferOp::create(builder, loc, getBufferType(type), place,
                              /*whole=*/Value());
}

Value Planner::createPart(OpBuilder &builder, Value value, Value whole) {
  const Buffer &buffer = buffers[bufferOf.lookup(value)];
  auto place = rt::PlaceAttr::get(builder.getContext(), buffer.space,
                                  buffer.offset + beginOf.lookup(value));
  return rt::BufferOp::create(builder, value.getLoc(),
                              getBufferType(value.getType()), place, whole);
}

/// Of a value of the schedule, which may be an output.
Value Planner::createWhole(OpBuilder &builder, Value value) {
  const Buffer &buffer = buffers[bufferOf.lookup(value)];
  Value whole = createBuffer(builder, value.getLoc(), value.getType(), buffer);
  if (buffer.output == value)
    whole.getDefiningOp()->setAttr(rt::kRoleAttr, buffer.role);
  return whole;
}

void Planner::createArguments(OpBuilder &builder) {
  for (BlockArgument argument : block.getArguments()) {
    const Buffer &buffer = buffers[bufferOf.lookup(argument)];
    Value value =
        createBuffer(builder, argument.getLoc(), argument.getType(), buffer);
    if (buffer.state)
      value.getDefiningOp()->setAttr(rt::kStateAttr, buffer.state);
    else if (buffer.rotary)
      value.getDefiningOp()->setAttr(rt::kRotaryAttr, buffer.rotary);
    else
      value.getDefiningOp()->setAttr(rt::kRoleAttr, buffer.role);
    if (buffer.microBatch)
      value.getDefiningOp()->setAttr(rt::kMicroBatchAttr, buffer.microBatch);
    if (buffer.order)
      value.getDefiningOp()->setAttr(rt::kOrderAttr, buffer.order);
    view[argument] = value;
  }
  if (batches < 0)
    return;
  Value further = createBuffer(
      builder, function.getLoc(),
      MemRefType::get({buffers[batches].bytes}, builder.getI8Type()),
      buffers[batches]);
  further.getDefiningOp()->setAttr(rt::kRoleAttr, buffers[batches].role);
}

/// A written gradient is in the argument's buffer, which says whose it is; a
/// part of a join is in the buffer of the whole.
void Planner::createWrite(OpBuilder &builder, Value result) {
  if (BlockArgument argument = argumentOf.lookup(result)) {
    view[result] = view.lookup(argument);
    return;
  }
  rt::JoinOp join = joinOf.lookup(result);
  if (!join) {
    view[result] = createWhole(builder, result);
    return;
  }
  if (!view.count(join))
    view[join] = createWhole(builder, join);
  view[result] = createPart(builder, result, view.lookup(join));
}

void Planner::rewriteScheduled(OpBuilder &builder, rt::ScheduledOp op) {
  for (Value result : op->getResults())
    createWrite(builder, result);
  Value workspace;
  if (auto found = workspaceOf.find(op); found != workspaceOf.end()) {
    const Buffer &buffer = buffers[found->second];
    // Another one that shares it may need more.
    rt::ScheduledOp owner = op;
    if (auto wait = dyn_cast<rt::WaitOp>(op.getOperation()))
      owner = cast<rt::ScheduledOp>(wait.getMade().front().getDefiningOp());
    auto type =
        MemRefType::get({owner.getWorkspaceBytes() / 4}, builder.getF32Type());
    workspace = createBuffer(builder, op->getLoc(), type, buffer);
  }
  Operation *planned = op.createOnBuffers(
      builder, [&](Value value) { return view.lookup(value); }, workspace);
  planned->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  planned->removeDiscardableAttr(rt::kKnownOffsetsAttr);
}

void Planner::rewrite() {
  OpBuilder builder(function.getContext());
  builder.setInsertionPointToStart(&block);
  createArguments(builder);
  SmallVector<Operation *> schedule;
  for (Operation &op : block)
    if (isa<rt::ScheduledOp, rt::ViewOp, rt::JoinOp>(op))
      schedule.push_back(&op);
  for (Operation *op : schedule) {
    builder.setInsertionPoint(op);
    if (auto part = dyn_cast<rt::ViewOp>(op))
      view[part] = createPart(builder, part, view.lookup(part.getInput()));
    else if (auto scheduled = dyn_cast<rt::ScheduledOp>(op))
      rewriteScheduled(builder, scheduled);
  }
  auto exit = cast<func::ReturnOp>(block.getTerminator());
  builder.setInsertionPoint(exit);
  func::ReturnOp::create(builder, exit.getLoc());
  exit.erase();
  for (Operation *op : llvm::reverse(schedule))
    op->erase();
  block.eraseArguments(0, block.getNumArguments());
  function.setType(builder.getFunctionType({}, {}));
  function.removeArgAttrsAttr();
  function.removeResAttrsAttr();
}
