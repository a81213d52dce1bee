//===- WrittenGradients.cpp - Gradients that start from nothing -*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Memory/WrittenGradients.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Dialect/RT/ScheduledOp.h"

using namespace mlir;
using namespace reprise;

/// The operand whose bytes `value` takes, if its maker works in place on it, or
/// null.
static Value getReplaced(Value value, const SymbolTable &symbols) {
  auto maker = value.getDefiningOp<rt::ScheduledOp>();
  if (!maker)
    return {};
  FailureOr<SmallVector<rt::Sharing>> sharing = maker.getSharing(symbols);
  if (failed(sharing))
    return {};
  int64_t number = cast<OpResult>(value).getResultNumber();
  for (rt::Sharing pair : *sharing)
    if (pair.isForced && pair.write == number)
      return maker.getReads()[pair.read];
  return {};
}

llvm::MapVector<Value, BlockArgument>
memory::findWrittenGradients(func::FuncOp step, const SymbolTable &symbols) {
  llvm::StringMap<BlockArgument> unread;
  for (BlockArgument argument : step.getArguments())
    if (auto name = step.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                      nn::kGradientAttr))
      if (argument.use_empty())
        unread[name.getValue()] = argument;

  llvm::MapVector<Value, BlockArgument> written;
  Operation *exit = step.getBody().front().getTerminator();
  for (auto [index, value] : llvm::enumerate(exit->getOperands())) {
    auto name = step.getResultAttrOfType<StringAttr>(index, nn::kGradientAttr);
    BlockArgument state = name ? unread.lookup(name.getValue()) : nullptr;
    if (!state)
      continue;
    Value first = value;
    while (Value replaced = getReplaced(first, symbols))
      first = replaced;
    if (isa_and_present<rt::ScheduledOp>(first.getDefiningOp()) &&
        first.getType() == state.getType())
      written.insert({first, state});
  }
  return written;
}
