//===- PipeDialect.cpp - Registration of the pipe dialect -------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"
#include "reprise/Dialect/Pipe/PipeOps.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::pipe;

#include "reprise/Dialect/Pipe/PipeDialect.cpp.inc"
#include "reprise/Dialect/Pipe/PipeEnums.cpp.inc"
#define GET_OP_CLASSES
#include "reprise/Dialect/Pipe/PipeOps.cpp.inc"

void PipeDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "reprise/Dialect/Pipe/PipeOps.cpp.inc"
      >();
}

/// What members do together names one of the schedule's groups.
static LogicalResult verifyGroup(Operation &op,
                                 const llvm::StringSet<> &groups) {
  StringRef group;
  if (auto reduce = dyn_cast<ReduceOp>(op))
    group = reduce.getGroup();
  else if (auto gather = dyn_cast<GatherOp>(op))
    group = gather.getGroup();
  else
    return success();
  if (groups.contains(group))
    return success();
  return op.emitOpError("needs a group of its schedule, but there is none with "
                        "the name '")
         << group << "'";
}

/// Groups come first, then the stages, in the order of their numbers.
LogicalResult ScheduleOp::verifyRegions() {
  int64_t stages = 0;
  llvm::StringSet<> groups;
  for (auto group : getBody().getOps<GroupOp>())
    if (!groups.insert(group.getName()).second)
      return group.emitOpError(
                 "needs a name of its own, but another group is '")
             << group.getName() << "' too";
  for (Operation &op : getBody().front()) {
    auto stage = dyn_cast<StageOp>(op);
    if (!stage && !isa<GroupOp>(op))
      return op.emitOpError("needs to be in a stage of the schedule");
    if (!stage && stages > 0)
      return op.emitOpError("needs to be before the stages");
    if (stage && int64_t(stage.getNumber()) != stages++)
      return stage.emitOpError("needs to be stage ")
             << stages - 1 << ", the next of its schedule, but is stage "
             << stage.getNumber();
  }
  for (auto stage : getBody().getOps<StageOp>())
    for (Operation &op : stage.getBody().front())
      if (failed(verifyGroup(op, groups)))
        return failure();
  if (stages == 0)
    return emitOpError("needs at least 1 stage, but has none");
  return success();
}

LogicalResult StageOp::verifyRegions() {
  for (Operation &op : getBody().front())
    if (isa<ScheduleOp, StageOp, GroupOp>(op) ||
        !isa_and_present<PipeDialect>(op.getDialect()))
      return op.emitOpError("needs to be no part of a stage's list");
  return success();
}
