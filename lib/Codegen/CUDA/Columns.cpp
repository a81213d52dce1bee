//===- Columns.cpp - Kernels that reduce columns ----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block has a strip of columns, 128 bytes wide, and some of the rows; its
// threads stand side by side on the columns, in groups that take the rows in
// turn. Sums are combined in one order: rows of a thread, groups of a warp,
// warps of the block, blocks of the strip. The last are added by the block that
// comes to its end last, whichever that is, from what all of them left in
// device memory. So the order depends on the shape of the kernel alone.
//
// Rows are on their way to shared memory long before they are added, as many
// bytes as the memory of the device takes to be busy: ptxas would put loads
// into registers behind what is computed of the loads before.
//
//===----------------------------------------------------------------------===//

#include "AsyncCopies.h"
#include "DeviceKernels.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;
using namespace reprise::cuda;

static constexpr int64_t kThreads = 256;
/// Four blocks for each of 132 multiprocessors.
static constexpr int64_t kBlocks = 528;
/// Vectors of a thread that are under way at once: up to 96 KiB on a
/// multiprocessor with four blocks. That is more than the 36 KB that each of
/// 132 gets in 1000 ns of a memory of 4.8 TB/s; the time is assumed, not
/// measured.
static constexpr int64_t kSideBySide = 6;
/// The fewest rows that a thread is worth.
static constexpr int64_t kLeastRows = 8;

namespace {
/// How the columns are divided, and the rows of each strip.
struct Layout {
  int64_t side, groups;   ///< threads side by side, and groups of them
  int64_t strips, splits; ///< blocks side by side, and of one strip
  int64_t rows;           ///< of a block
};

class ColumnEmitter {
public:
  ColumnEmitter(DeviceCode &code, const LoopNest &nest, DeviceKernel &kernel)
      : code(code), nest(nest), kernel(kernel), here(code, nest, kernel),
        reductions(nest.reductions()) {
    here.setAligned();
  }

  LogicalResult emit();

private:
  /// An input that is copied to shared memory before it is used, an element of
  /// a row or a vector of its columns for each thread.
  struct Ahead {
    BlockArgument root;
    Role role;
    int64_t elements, bytes; ///< of a thread
    Value place;
  };
  void findAhead();
  void copyRow(Value r, Value end, Value stage);
  Value placeOf(const Ahead &input, Value stage);
  SmallVector<Value> sumRows(Value first, Value end);
  SmallVector<Value> addRow(Value r, Value stage, ValueRange sums);
  SmallVector<Value> combineBlock(ArrayRef<Value> sums);
  void combineBlocks(ArrayRef<Value> sums);
  void finish(ArrayRef<Value> totals);
  void storeAll(Role role, Value isThere);
  void forEach(
      function_ref<void(linalg::GenericOp, unsigned, unsigned)> body) const {
    unsigned number = 0;
    for (linalg::GenericOp op : reductions)
      for (unsigned i = 0; i < op.getNumResults(); ++i)
        body(op, i, number++);
  }

  DeviceCode &code;
  const LoopNest &nest;
  DeviceKernel &kernel;
  Expressions here;
  SmallVector<linalg::GenericOp> reductions;
  Layout layout;
  Value thread, strip, split, column;
  Value isThere; ///< whether the column is; null where it always is
  Value shared;  ///< sums of warps, then a flag
  SmallVector<Ahead> ahead;
  int64_t stages; ///< rows that are under way at once
};
} // namespace

/// What a reduction leaves as it is.
static Value neutral(DeviceCode &code, linalg::GenericOp op, unsigned index) {
  Operation *combine =
      op.getBody()->getTerminator()->getOperand(index).getDefiningOp();
  return code.splat(
      arith::ConstantOp::create(code, *arith::getNeutralElement(combine)));
}

//===----------------------------------------------------------------------===//
// Rows of a thread
//===----------------------------------------------------------------------===//

/// What the sums are made of that can be copied.
void ColumnEmitter::findAhead() {
  for (linalg::GenericOp op : reductions)
    for (auto [index, operand] : llvm::enumerate(op.getInputs())) {
      auto root = dyn_cast<BlockArgument>(getRoot(operand));
      Role role = nest.operandRole(op, index);
      if (!root || (role != Role::Full && role != Role::Row) ||
          llvm::any_of(ahead, [&](const Ahead &one) {
            return one.root == root && one.role == role;
          }))
        continue;
      int64_t elements = role == Role::Full ? code.lanes : 1;
      int64_t bytes =
          elements * getElementTypeOrSelf(root).getIntOrFloatBitWidth() / 8;
      if (bytes >= 4)
        ahead.push_back({root, role, elements, bytes, {}});
    }
  int64_t vectors = llvm::count_if(
      ahead, [](const Ahead &input) { return input.role == Role::Full; });
  stages = std::max<int64_t>(2, kSideBySide / std::max<int64_t>(1, vectors));
  for (Ahead &input : ahead)
    input.place = kernel.takeShared(code, stages * kThreads * input.bytes);
}

/// Where the thread's part of `input` is in `stage`, in elements.
Value ColumnEmitter::placeOf(const Ahead &input, Value stage) {
  return code.mul(code.add(code.mul(stage, kThreads), thread), input.elements);
}

/// Begins to copy row `r`, if it comes before `end`.
void ColumnEmitter::copyRow(Value r, Value end, Value stage) {
  Value isThere = code.less(r, end);
  for (const Ahead &input : ahead) {
    Type element = getElementTypeOrSelf(input.root);
    Value from = r;
    if (input.role == Role::Full)
      from = code.add(code.mul(r, nest.cols), column);
    Value valid =
        code.select(isThere, code.scalar(code.getI32Type(), input.bytes),
                    code.scalar(code.getI32Type(), 0));
    copyAsync(
        code, code.address(input.place, element, placeOf(input, stage)),
        code.address(kernel.inputs[input.root.getArgNumber()], element, from),
        input.bytes, valid);
  }
  commitCopies(code);
}

SmallVector<Value> ColumnEmitter::addRow(Value r, Value stage,
                                         ValueRange sums) {
  here.enterRow(r);
  here.enterChunk(column, {});
  for (const Ahead &input : ahead) {
    Type type = getElementTypeOrSelf(input.root);
    here.set(input.root, input.role,
             code.load(input.role == Role::Full ? code.lanesOf(type) : type,
                       input.place, placeOf(input, stage), {}, input.elements));
  }
  SmallVector<Value> next;
  for (linalg::GenericOp op : reductions)
    llvm::append_range(
        next, here.emit(op, sums.slice(next.size(), op.getNumResults())));
  storeAll(Role::Full, isThere);
  return next;
}

/// The rows first, first + groups, … before `end`.
SmallVector<Value> ColumnEmitter::sumRows(Value first, Value end) {
  SmallVector<Value> sums;
  forEach([&](linalg::GenericOp op, unsigned i, unsigned) {
    sums.push_back(neutral(code, op, i));
  });
  if (ahead.empty()) { // Too narrow to be copied.
    sums = code.loop(
        first, end, layout.groups, sums, [&](Value r, ValueRange carried) {
          here.setTaskAnchor(code.getInsertionBlock()->getParentOp());
          return addRow(r, {}, carried);
        });
    here.setTaskAnchor(nullptr);
    here.enterTask();
    return sums;
  }
  for (int64_t k = 0; k < stages; ++k)
    copyRow(code.add(first, k * layout.groups), end, code.i64(k));
  sums.push_back(code.i64(0));
  sums = code.loop(
      first, end, layout.groups, sums, [&](Value r, ValueRange carried) {
        here.setTaskAnchor(code.getInsertionBlock()->getParentOp());
        Value stage = carried.back();
        waitForCopies(code, stages - 1);
        SmallVector<Value> next = addRow(r, stage, carried.drop_back());
        copyRow(code.add(r, stages * layout.groups), end, stage);
        Value after = code.add(stage, 1);
        next.push_back(
            code.select(code.less(after, stages), after, code.i64(0)));
        return next;
      });
  here.setTaskAnchor(nullptr);
  here.enterTask();
  sums.pop_back();
  return sums;
}

//===----------------------------------------------------------------------===//
// Sums of threads
//===----------------------------------------------------------------------===//

/// The sums of the block for the columns of this thread, in all groups.
SmallVector<Value> ColumnEmitter::combineBlock(ArrayRef<Value> sums) {
  int64_t warps = kThreads / kWarp, width = layout.side * code.lanes;
  Value place = code.mul(code.remainder(thread, layout.side), code.lanes);
  Value warp = code.divide(thread, kWarp);
  SmallVector<Value> ofWarp(sums);
  forEach([&](linalg::GenericOp op, unsigned i, unsigned number) {
    SmallVector<Value> lanes;
    for (int64_t lane = 0; lane < code.lanes; ++lane)
      lanes.push_back(code.combineInWarp(
          vector::ExtractOp::create(code, sums[number], lane),
          kWarp / layout.side, layout.side,
          [&](Value a, Value b) { return here.combine(op, i, a, b); }));
    ofWarp[number] = vector::FromElementsOp::create(
        code, cast<VectorType>(sums[number].getType()), lanes);
  });
  auto at = [&](unsigned number, Value ofWarp) {
    return code.add(code.mul(code.add(ofWarp, number * warps), width), place);
  };
  code.when(code.less(code.remainder(thread, kWarp), layout.side), [&] {
    for (auto [number, value] : llvm::enumerate(ofWarp))
      code.store(value, shared, at(number, warp), {}, code.lanes);
  });
  code.barrier();
  SmallVector<Value> totals;
  forEach([&](linalg::GenericOp op, unsigned i, unsigned number) {
    Value total;
    for (int64_t other = 0; other < warps; ++other) {
      Value value = code.load(sums[number].getType(), shared,
                              at(number, code.i64(other)), {}, code.lanes);
      total = total ? here.combine(op, i, total, value) : value;
    }
    totals.push_back(total);
  });
  return totals;
}

/// Leaves the block's sums in device memory; the last block of the strip goes
/// on with those of all.
void ColumnEmitter::combineBlocks(ArrayRef<Value> sums) {
  Type f32 = code.getF32Type(), i32 = code.getI32Type();
  Value scratch =
      kernel.takeScratch(code, sums.size() * layout.splits * nest.cols * 4);
  Value counters = kernel.takeCounters(code, layout.strips);
  auto at = [&](unsigned number, Value part) {
    return code.add(code.mul(code.add(part, number * layout.splits), nest.cols),
                    column);
  };
  Value isFirst = code.less(thread, layout.side);
  code.when(isThere ? code.both(isFirst, isThere) : isFirst, [&] {
    for (auto [number, value] : llvm::enumerate(sums))
      code.store(value, scratch, at(number, split), {}, code.lanes);
  });
  code.barrier();
  // The counter starts over by itself after the last of them. What all threads
  // wrote before the barrier is visible before this one counts.
  Value flag = code.i64(0);
  code.when(code.equal(thread, 0), [&] {
    code.fence();
    Value most = code.scalar(i32, layout.splits - 1);
    Value before = LLVM::AtomicRMWOp::create(
        code, LLVM::AtomicBinOp::uinc_wrap, code.address(counters, i32, strip),
        most, LLVM::AtomicOrdering::monotonic, "device");
    code.store(before, shared, flag);
  });
  code.barrier();
  Value before = code.load(i32, shared, flag);
  code.when(code.equal(before, code.scalar(i32, layout.splits - 1)), [&] {
    code.fence();
    code.barrier(); // the flag has been read
    SmallVector<Value> parts;
    forEach([&](linalg::GenericOp op, unsigned i, unsigned) {
      parts.push_back(neutral(code, op, i));
    });
    parts = code.loop(
        code.divide(thread, layout.side), code.i64(layout.splits),
        layout.groups, parts, [&](Value part, ValueRange carried) {
          SmallVector<Value> next;
          forEach([&](linalg::GenericOp op, unsigned i, unsigned number) {
            Value value = code.load(code.lanesOf(f32), scratch,
                                    at(number, part), {}, code.lanes);
            next.push_back(here.combine(op, i, carried[number], value));
          });
          return next;
        });
    finish(combineBlock(parts));
  });
}

/// Adds what the reductions start from, and writes what is made of them.
void ColumnEmitter::finish(ArrayRef<Value> totals) {
  here.enterTask();
  here.enterChunk(column, {});
  forEach([&](linalg::GenericOp op, unsigned i, unsigned number) {
    here.set(op.getResult(i), Role::Column,
             here.combine(op, i, here.initial(op, i), totals[number]));
  });
  Value isFirst = code.less(thread, layout.side);
  storeAll(Role::Column, isThere ? code.both(isFirst, isThere) : isFirst);
}

void ColumnEmitter::storeAll(Role role, Value condition) {
  SmallVector<std::pair<const LoopNest::Output *, Value>> stored;
  for (const LoopNest::Output &output : nest.outputs())
    if (output.role == role)
      stored.push_back({&output, here.get(output.root, role)});
  auto store = [&] {
    for (auto [output, value] : stored)
      here.store(*output, value);
  };
  if (stored.empty())
    return;
  if (condition)
    code.when(condition, store);
  else
    store();
}

/// Fails for what is not summed in one order here.
static LogicalResult verify(linalg::GenericOp op) {
  for (auto [index, result] : llvm::enumerate(op.getResults())) {
    Operation *combine =
        op.getBody()->getTerminator()->getOperand(index).getDefiningOp();
    if (!getElementTypeOrSelf(result.getType()).isF32() ||
        !arith::getNeutralElement(combine))
      return op.emitOpError("needs column reductions of f32 by an op with a "
                            "neutral element, but got '")
             << combine->getName() << "' of "
             << getElementTypeOrSelf(result.getType());
  }
  return success();
}

static Layout chooseLayout(const LoopNest &nest, int64_t lanes) {
  int64_t chunks = nest.cols / lanes;
  int64_t side = std::min<int64_t>(llvm::bit_ceil(uint64_t(chunks)),
                                   lanes >= 4 ? 8 : kWarp / lanes);
  int64_t groups = kThreads / side;
  int64_t strips = llvm::divideCeil(chunks, side);
  int64_t splits = std::max<int64_t>(
      1, std::min(kBlocks / strips, nest.rows / (groups * kLeastRows)));
  int64_t rows = llvm::alignTo(llvm::divideCeil(nest.rows, splits), groups);
  return {side, groups, strips, int64_t(llvm::divideCeil(nest.rows, rows)),
          rows};
}

LogicalResult ColumnEmitter::emit() {
  for (linalg::GenericOp op : reductions)
    if (failed(verify(op)))
      return failure();
  code.lanes = chooseLanes(nest, kernel.source, nest.cols);
  layout = chooseLayout(nest, code.lanes);
  kernel.setLaunch(code, layout.strips * layout.splits, kThreads);
  unsigned results = 0;
  forEach([&](linalg::GenericOp, unsigned, unsigned) { ++results; });
  shared = kernel.takeShared(code, results * (kThreads / kWarp) * layout.side *
                                       code.lanes * 4);

  thread = code.thread();
  Value block = code.block();
  strip = code.remainder(block, layout.strips);
  split = code.divide(block, layout.strips);
  column = code.mul(code.add(code.mul(strip, layout.side),
                             code.remainder(thread, layout.side)),
                    code.lanes);
  if (layout.strips * layout.side * code.lanes != nest.cols) {
    isThere = code.less(column, nest.cols);
    column = code.select(isThere, column, code.i64(0));
  }
  findAhead();
  here.enterTask();
  Value from = code.mul(split, layout.rows);
  Value end = code.min(code.add(from, layout.rows), nest.rows);
  SmallVector<Value> sums = combineBlock(
      sumRows(code.add(from, code.divide(thread, layout.side)), end));
  if (layout.splits > 1)
    combineBlocks(sums);
  else
    finish(sums);
  return success();
}

LogicalResult cuda::emitColumns(DeviceCode &code, const LoopNest &nest,
                                DeviceKernel &kernel) {
  return ColumnEmitter(code, nest, kernel).emit();
}
