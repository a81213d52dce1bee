//===- Planner.h - Bytes for one schedule -----------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_MEMORY_PLANNER_H
#define REPRISE_LIB_MEMORY_PLANNER_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Dialect/RT/ScheduledOp.h"
#include "llvm/ADT/StringMap.h"
#include <map>

namespace reprise::memory {

using rt::Category;
using rt::Space;

/// Bytes that one or more values take turns in.
struct Buffer {
  Space space = Space::Device;
  Category category = Category::Activations;
  /// A gradient that is written, and not added to: it lies among the
  /// activations and behind them.
  bool isWritten = false;
  int64_t bytes = 0;
  /// Positions in the schedule, for activations; written gradients stay from
  /// the first to the end.
  int64_t firstUse = 0, lastUse = 0;
  int64_t offset = 0;
  /// Its offset in a like schedule, from the beginning of activations:
  /// `kNoOffset` if it has several there.
  std::optional<int64_t> known;
  /// What the buffer is outside the schedule, if it is that.
  rt::StateAttr state;
  rt::RotaryAttr rotary;
  mlir::StringAttr role;
  /// Of the role or state, as `rt.micro_batch` or `rt.order`; null: none.
  mlir::IntegerAttr microBatch, order;
  /// The value that puts out what `role` says, if it is made within the
  /// schedule.
  mlir::Value output;
};

/// How ranks have parts of a parameter and of its other states, as #rt.state
/// says it; none if each has all.
using Cuts = llvm::SmallVector<rt::CutAttr, 0>;

/// The sizes of the arena of one space, which a schedule needs. Sizes of
/// buffers are rounded up to the alignment.
struct ArenaSizes {
  /// The categories that are there all the time, in the order of Category.
  int64_t fixed[int(Category::Activations)] = {};
  /// Where activations begin; their bytes, packed by themselves, and the most
  /// that are alive at one time.
  int64_t begin = 0, peak = 0, bound = 0;
  /// From there on, written gradients included: bytes in use, and those that no
  /// plan does without, since so many are alive at one time.
  int64_t usedWithin = 0, leastWithin = 0;
};

/// The plan of one schedule. What `@evaluate` and `@sample` share with `step`
/// lies where that has it; all else of theirs takes the place of its
/// activations, which are dead between two steps.
class Planner {
public:
  Planner(const mlir::SymbolTable &symbols, mlir::func::FuncOp function,
          int64_t alignment, const Planner *step)
      : symbols(symbols), function(function), block(function.getBody().front()),
        alignment(alignment), step(step) {}

  /// Decides; of several schedules the step comes first.
  llvm::LogicalResult plan();
  /// Decides who shares bytes, and no place.
  llvm::LogicalResult assign();
  /// After `assign`, the bytes of `space` that live within the step: before the
  /// first op of the block, at it, between it and the next, and so on.
  llvm::SmallVector<int64_t> getLive(Space space) const;
  /// After `assign`, those of the device's buffer that `value` is in; 0 where
  /// that outlives the step.
  int64_t getBytesWithin(mlir::Value value) const;
  /// Writes the decisions into the function.
  void rewrite();

  mlir::func::FuncOp getFunction() const { return function; }
  /// The spaces that the schedule has values in, and always the device.
  llvm::SmallVector<Space> getSpaces() const;
  /// All 0 for a space without values.
  ArenaSizes getSizes(Space space) const;

private:
  llvm::LogicalResult checkSizes();
  llvm::LogicalResult assignArguments();
  llvm::FailureOr<Buffer> getArgumentBuffer(mlir::BlockArgument argument);
  llvm::FailureOr<Buffer> getSharedBuffer(mlir::BlockArgument argument);
  llvm::LogicalResult assignResults(mlir::Operation *op, int64_t position);
  llvm::LogicalResult assignWorkspace(rt::ScheduledOp op, int64_t position);
  void readKnownOffsets(rt::ScheduledOp op);
  llvm::LogicalResult assignSharing(rt::ScheduledOp op, int64_t position);
  llvm::LogicalResult checkSharing(rt::ScheduledOp op,
                                   llvm::ArrayRef<rt::Sharing> sharing);
  bool diesAt(rt::ScheduledOp op, unsigned read, int64_t position);
  llvm::LogicalResult overwrite(rt::ScheduledOp op, rt::Sharing sharing,
                                int64_t position);
  void takeOver(rt::ScheduledOp op, rt::Sharing sharing, int64_t position);
  llvm::LogicalResult checkReturn();
  void placeFixed(Space space, ArenaSizes &sizes);
  int64_t placeBatches(int64_t begin);
  llvm::LogicalResult placeWithin(Space space, ArenaSizes &sizes);
  llvm::LogicalResult place();

  void findUses();
  void assignWrittenGradients();
  llvm::LogicalResult assignJoins();
  void assignView(rt::ViewOp view);

  int64_t addBuffer(Category category, mlir::Type type, int64_t position);
  mlir::Value createBuffer(mlir::OpBuilder &builder, mlir::Location loc,
                           mlir::Type type, const Buffer &buffer);
  mlir::Value createPart(mlir::OpBuilder &builder, mlir::Value value,
                         mlir::Value whole);
  mlir::Value createWhole(mlir::OpBuilder &builder, mlir::Value value);
  void createArguments(mlir::OpBuilder &builder);
  void createWrite(mlir::OpBuilder &builder, mlir::Value result);
  void rewriteScheduled(mlir::OpBuilder &builder, rt::ScheduledOp op);

  const mlir::SymbolTable &symbols;
  mlir::func::FuncOp function;
  mlir::Block &block;
  int64_t alignment;
  const Planner *step; ///< Null for the step itself.
  /// Of parameters, by their names.
  llvm::StringMap<Cuts> cuts;
  llvm::SmallVector<Buffer> buffers;
  llvm::DenseMap<mlir::Value, int64_t> bufferOf;
  /// The byte of its buffer where a view or a part of a join begins; these
  /// leave the sharing of their buffers to the whole.
  llvm::DenseMap<mlir::Value, int64_t> beginOf;
  /// The join that a value is part of.
  llvm::DenseMap<mlir::Value, rt::JoinOp> joinOf;
  /// By the attributes of an argument: what shares it has the same.
  llvm::DenseMap<mlir::Attribute, int64_t> bufferOfRole;
  llvm::DenseMap<mlir::Operation *, int64_t> workspaceOf;
  /// What is begun and not waited for yet, by its number.
  std::map<int64_t, mlir::Operation *> underWay;
  /// The argument in whose bytes a gradient starts from nothing.
  llvm::DenseMap<mlir::Value, mlir::BlockArgument> argumentOf;
  /// Places for further micro-batches' inputs; -1: none.
  int64_t batches = -1;
  llvm::DenseMap<mlir::Operation *, int64_t> positions;
  llvm::DenseMap<mlir::Value, int64_t> lastUse;
  /// The position of the return, whose values nothing may share bytes with.
  int64_t end = 0;
  std::map<Space, ArenaSizes> arenas;
  /// The buffer that a value has become.
  llvm::DenseMap<mlir::Value, mlir::Value> view;
};

} // namespace reprise::memory

#endif // REPRISE_LIB_MEMORY_PLANNER_H
