//===- BufferForm.cpp - A schedule on planned bytes -------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Planner.h"

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

void Planner::rewrite() {
  OpBuilder builder(function.getContext());
  DenseMap<Value, Value> view;
  builder.setInsertionPointToStart(&block);
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
    view[argument] = value;
  }
  if (batches >= 0) {
    Value further = createBuffer(
        builder, function.getLoc(),
        MemRefType::get({buffers[batches].bytes}, builder.getI8Type()),
        buffers[batches]);
    further.getDefiningOp()->setAttr(rt::kRoleAttr, buffers[batches].role);
  }
  SmallVector<Operation *> schedule;
  for (Operation &op : block)
    if (isa<rt::LaunchOp, rt::GemmOp, rt::CollectiveOp, rt::ViewOp, rt::JoinOp>(
            op))
      schedule.push_back(&op);
  auto createWhole = [&](Value value) {
    const Buffer &buffer = buffers[bufferOf.lookup(value)];
    Value whole =
        createBuffer(builder, value.getLoc(), value.getType(), buffer);
    if (buffer.output == value)
      whole.getDefiningOp()->setAttr(rt::kRoleAttr, buffer.role);
    return whole;
  };
  for (Operation *op : schedule) {
    builder.setInsertionPoint(op);
    if (isa<rt::JoinOp>(op))
      continue;
    if (auto part = dyn_cast<rt::ViewOp>(op)) {
      view[part] = createPart(builder, part, view.lookup(part.getInput()));
      continue;
    }
    for (Value result : op->getResults()) {
      // What says whose gradient this is comes with its address.
      if (BlockArgument argument = argumentOf.lookup(result)) {
        view[result] = view.lookup(argument);
        continue;
      }
      rt::JoinOp join = joinOf.lookup(result);
      if (!join) {
        view[result] = createWhole(result);
        continue;
      }
      if (!view.count(join))
        view[join] = createWhole(join);
      view[result] = createPart(builder, result, view.lookup(join));
    }
    Operation *planned = nullptr;
    auto get = [&](Value value) {
      return value ? view.lookup(value) : Value();
    };
    auto createWorkspace = [&]() {
      const Buffer &scratch = buffers[workspaceOf.lookup(op)];
      return createBuffer(
          builder, op->getLoc(),
          MemRefType::get({scratch.bytes / 4}, builder.getF32Type()), scratch);
    };
    if (auto launch = dyn_cast<rt::LaunchOp>(op)) {
      SmallVector<Value> inputs, written;
      for (Value input : launch.getInputs())
        inputs.push_back(get(input));
      for (Value result : launch.getResults())
        written.push_back(get(result));
      planned = rt::LaunchOp::create(
          builder, op->getLoc(), TypeRange(), launch.getKernelAttr(), inputs,
          written, launch.getIdsAttr(), launch.getFlopsAttr());
    } else if (auto collective = dyn_cast<rt::CollectiveOp>(op)) {
      planned = rt::CollectiveOp::create(
          builder, op->getLoc(), TypeRange(), collective.getKindAttr(),
          llvm::map_to_vector(collective.getInputs(), get),
          llvm::map_to_vector(collective.getResults(),
                              [&](Value value) { return get(value); }),
          createWorkspace(), collective.getAxisAttr(),
          collective.getRanksAttr());
    } else {
      auto gemm = cast<rt::GemmOp>(op);
      Value workspace = createWorkspace();
      planned = rt::GemmOp::create(
          builder, op->getLoc(), TypeRange(), get(gemm.getA()),
          get(gemm.getB()), get(gemm.getBias()), /*addend=*/Value(),
          get(gemm.getResult()), get(gemm.getAuxiliary()), workspace,
          gemm.getMAttr(), gemm.getNAttr(), gemm.getKAttr(), gemm.getLdaAttr(),
          gemm.getLdbAttr(), gemm.getLdcAttr(), gemm.getBatchAttr(),
          gemm.getStrideAAttr(), gemm.getStrideBAttr(), gemm.getStrideCAttr(),
          gemm.getAlphaAttr(), gemm.getTransposeAAttr(),
          gemm.getTransposeBAttr(),
          gemm.getAddend() ? builder.getUnitAttr() : UnitAttr(),
          gemm.getEpilogueAttr(), gemm.getPackedBAttr());
    }
    planned->setDiscardableAttrs(op->getDiscardableAttrDictionary());
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
