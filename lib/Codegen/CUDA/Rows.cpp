//===- Rows.cpp - Kernels that walk rows ------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A row belongs to a power of 2 of threads, as few as can keep its chunks in
// registers from phase to phase; rows of less than a block's threads share a
// block. Longer rows wait in shared memory, or are read again in each phase if
// there is no room. A sum over a row is one for
// each lane of each thread, over its chunks in order, then halves: lanes,
// threads of a warp, warps of the block. So it depends on the length of the
// row, on types and on how many values it is made of.
//
// A chunk or a row that is not there is one that is, and is not stored.
//
//===----------------------------------------------------------------------===//

#include "DeviceKernels.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;
using namespace reprise::cuda;

/// Threads of a block whose rows take fewer.
static constexpr int64_t kThreads = 128;
/// Threads of a row that is too long for registers, and how many elements of
/// each are under way at once: with two such rows on a multiprocessor, 32 KiB
/// of bf16. That is more than the 27 KB that each of 132 gets in 700 ns of a
/// memory of 5 TB/s; both figures are assumed, not measured. Twice as many
/// would not fit into 64 registers.
static constexpr int64_t kStreamThreads = 512, kSideBySide = 16;
/// Shared memory that such a row may take: what all chips have for a block, but
/// for the words of reductions.
static constexpr int64_t kRowBytes = (99 << 10) - 512;

namespace {
struct Layout {
  int64_t threads; ///< of a row, a power of 2
  int64_t chunks;  ///< of a thread, in registers; 0 for a loop over them
  int64_t rowsOfBlock;
};

/// Inputs of a row too long for registers that wait in shared memory, from the
/// phase on that reads them first.
class WaitingInputs {
public:
  /// Takes room for those that have an element for each column, if there is
  /// enough for all of them and a phase that reads them again.
  void makeRoom(DeviceCode &code, const LoopNest &nest, DeviceKernel &kernel);
  /// Of the chunk at `column`, lets `here` have those that are there.
  void provide(DeviceCode &code, Expressions &here, Value column) const;
  /// And keeps those that it has read.
  void keep(DeviceCode &code, Expressions &here, Value column);
  /// What this phase has read is there in the next one.
  void finishPhase() {
    for (Waiting &input : all)
      input.isThere |= isRead.contains(input.root);
  }

private:
  struct Waiting {
    Value root, place;
    bool isThere;
  };
  SmallVector<Waiting> all;
  llvm::SmallDenseSet<Value> isRead;
};

class RowEmitter {
public:
  RowEmitter(DeviceCode &code, const LoopNest &nest, DeviceKernel &kernel)
      : code(code), nest(nest), kernel(kernel), here(code, nest, kernel) {
    here.setAligned();
  }

  LogicalResult emit();

private:
  void enter();
  void walk(int64_t phase);
  void walkRegisters(ArrayRef<linalg::GenericOp> reductions,
                     ArrayRef<const LoopNest::Output *> outputs);
  void walkMemory(ArrayRef<linalg::GenericOp> reductions,
                  ArrayRef<const LoopNest::Output *> outputs);
  SmallVector<Value> walkChunks(ArrayRef<Value> columns, ValueRange sums,
                                ArrayRef<linalg::GenericOp> reductions,
                                ArrayRef<const LoopNest::Output *> outputs);
  void complete(ArrayRef<linalg::GenericOp> reductions,
                ArrayRef<Value> accumulators);
  SmallVector<Value> combineWarps(ArrayRef<Value> values,
                                  ArrayRef<linalg::GenericOp> reductions);
  void takeRowOutputs(int64_t phase);
  void storeRowOutputs();
  void whenThere(Value isThere, function_ref<void()> body);

  DeviceCode &code;
  const LoopNest &nest;
  DeviceKernel &kernel;
  Expressions here;
  Layout layout;

  Value lane;   ///< among the threads of the row
  Value isLive; ///< whether the row is there; null where it always is
  SmallVector<Expressions::Chunk> chunks;
  Value lastIsThere; ///< of the last chunk; null where it always is
  WaitingInputs waiting;
  SmallVector<std::pair<const LoopNest::Output *, Value>> rowOutputs;
};
} // namespace

/// Calls `body` for each result of `reductions`, counted through.
static void
forEach(ArrayRef<linalg::GenericOp> reductions,
        function_ref<void(linalg::GenericOp, unsigned, unsigned)> body) {
  unsigned number = 0;
  for (linalg::GenericOp op : reductions)
    for (unsigned i = 0; i < op.getNumResults(); ++i)
      body(op, i, number++);
}

//===----------------------------------------------------------------------===//
// Who does what
//===----------------------------------------------------------------------===//

/// How many numbers of each column a thread keeps: a result, and what sums over
/// the row are made of, before any sum is known. Not what that is made of in
/// turn, nor what is read when the sums are complete: with an op beside it, a
/// sum has the same order.
static int64_t countKept(const LoopNest &nest, func::FuncOp source) {
  llvm::SmallDenseSet<Value> kept;
  for (linalg::GenericOp op : nest.reductions())
    for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
      Value root = getRoot(operand);
      Role role = nest.operandRole(op, index);
      bool isFull =
          role == Role::Full || (role == Role::Column && nest.rows == 1);
      if (isFull && nest.phase(root.getDefiningOp()) == 0)
        kept.insert(root);
    }
  if (kept.empty())
    for (BlockArgument argument : source.getArguments())
      if (cast<ShapedType>(argument.getType()).getNumElements() ==
          nest.rows * nest.cols)
        kept.insert(argument);
  return kept.size() + 1;
}

/// Registers are what limits a thread's part: about 96 for what it keeps, fewer
/// where 1024 threads share those of a multiprocessor.
static Layout chooseLayout(const LoopNest &nest, func::FuncOp source,
                           int64_t lanes) {
  int64_t chunks = nest.cols / lanes, kept = countKept(nest, source);
  if (chunks <= kWarp) {
    int64_t threads = llvm::bit_ceil(uint64_t(chunks));
    return {threads, 1, kThreads / threads};
  }
  for (int64_t threads = kWarp; threads <= kMaxThreads; threads *= 2) {
    int64_t each = llvm::divideCeil(chunks, threads);
    int64_t registers = std::min<int64_t>(96, 65536 / threads - 40);
    if (each * lanes * kept <= registers)
      return {threads, each, std::max<int64_t>(1, kThreads / threads)};
  }
  return {kStreamThreads, 0, 1};
}

/// Whether a thread reads what another one may write: an element of another
/// column, of an input whose buffer an output has.
static bool isReadAcross(DeviceKernel &kernel) {
  bool found = false;
  kernel.source.walk([&](tensor::ExtractOp extract) {
    if (auto root = dyn_cast<BlockArgument>(getRoot(extract.getTensor())))
      found |= !kernel.isConstant(root.getArgNumber());
  });
  return found;
}

/// Whether a value of which a row has one is in the buffer of an input.
static bool sharesRow(const LoopNest &nest, DeviceKernel &kernel) {
  for (unsigned i = 0; i < kernel.source.getNumArguments(); ++i)
    for (const LoopNest::Output &output : nest.outputs())
      if (output.role == Role::Row &&
          mayTakePlace(kernel.source, i, output.index))
        return true;
  return false;
}

void RowEmitter::enter() {
  Value thread = code.thread();
  Value row = code.block();
  lane = thread;
  here.enterTask();
  if (layout.rowsOfBlock > 1) {
    lane = code.remainder(thread, layout.threads);
    row = code.add(code.mul(row, layout.rowsOfBlock),
                   code.divide(thread, layout.threads));
    if (nest.rows % layout.rowsOfBlock != 0) {
      isLive = code.less(row, nest.rows);
      row = code.min(row, nest.rows - 1);
    }
  }
  here.enterRow(row);
  for (int64_t k = 0; k < layout.chunks; ++k) {
    Value column = code.mul(lane, code.lanes);
    int64_t before = k * layout.threads * code.lanes;
    if (k > 0)
      column = code.add(column, before);
    if (k + 1 == layout.chunks &&
        before + layout.threads * code.lanes != nest.cols) {
      lastIsThere = code.less(column, nest.cols);
      column = code.select(lastIsThere, column, code.i64(0));
    }
    here.enterChunk(column, {});
    chunks.push_back(here.leaveChunk());
  }
}

//===----------------------------------------------------------------------===//
// Phases
//===----------------------------------------------------------------------===//

void RowEmitter::whenThere(Value isThere, function_ref<void()> body) {
  if (isThere && isLive)
    isThere = code.both(isThere, isLive);
  else if (isLive)
    isThere = isLive;
  if (isThere)
    code.when(isThere, body);
  else
    body();
}

void RowEmitter::walk(int64_t phase) {
  SmallVector<linalg::GenericOp> reductions;
  for (linalg::GenericOp op : nest.reductions())
    if (nest.phase(op) == phase)
      reductions.push_back(op);
  SmallVector<const LoopNest::Output *> outputs;
  for (const LoopNest::Output &output : nest.outputs())
    if (output.role == Role::Full && output.phase == phase)
      outputs.push_back(&output);
  if (reductions.empty() && outputs.empty())
    return;
  if (layout.chunks > 0)
    walkRegisters(reductions, outputs);
  else
    walkMemory(reductions, outputs);
}

void RowEmitter::walkRegisters(ArrayRef<linalg::GenericOp> reductions,
                               ArrayRef<const LoopNest::Output *> outputs) {
  SmallVector<Value> sums;
  forEach(reductions, [&](linalg::GenericOp op, unsigned i, unsigned) {
    sums.push_back(here.initial(op, i));
  });
  SmallVector<SmallVector<Value>> stored(chunks.size());
  for (auto [k, chunk] : llvm::enumerate(chunks)) {
    here.resumeChunk(std::move(chunk));
    bool mayLack = lastIsThere && k + 1 == chunks.size();
    SmallVector<Value> next;
    for (linalg::GenericOp op : reductions) {
      ValueRange old = ValueRange(sums).slice(next.size(), op.getNumResults());
      for (auto [was, is] : llvm::zip(old, here.emit(op, old)))
        next.push_back(mayLack ? code.select(lastIsThere, is, was) : is);
    }
    sums = next;
    for (const LoopNest::Output *output : outputs)
      stored[k].push_back(here.get(output->root, Role::Full));
    chunk = here.leaveChunk();
  }
  if (!outputs.empty() && isReadAcross(kernel))
    code.barrier();
  for (size_t k = 0; !outputs.empty() && k < chunks.size(); ++k) {
    here.resumeChunk(std::move(chunks[k]));
    whenThere(k + 1 == chunks.size() ? lastIsThere : Value(), [&] {
      for (auto [output, value] : llvm::zip(outputs, stored[k]))
        here.store(*output, value);
    });
    chunks[k] = here.leaveChunk();
  }
  here.enterChunk({}, {});
  complete(reductions, sums);
}

void WaitingInputs::makeRoom(DeviceCode &code, const LoopNest &nest,
                             DeviceKernel &kernel) {
  int64_t bytes = 0;
  auto isLong = [&](BlockArgument argument) {
    return cast<ShapedType>(argument.getType()).getNumElements() ==
           nest.rows * nest.cols;
  };
  auto bytesOf = [&](BlockArgument argument) {
    return nest.cols *
           cast<ShapedType>(argument.getType()).getElementTypeBitWidth() / 8;
  };
  for (BlockArgument argument : kernel.source.getArguments())
    if (isLong(argument))
      bytes += llvm::alignTo(bytesOf(argument), 16);
  if (nest.numPhases() == 1 || bytes > kRowBytes)
    return;
  for (BlockArgument argument : kernel.source.getArguments())
    if (isLong(argument))
      all.push_back(
          {argument, kernel.takeShared(code, bytesOf(argument)), false});
}

void WaitingInputs::provide(DeviceCode &code, Expressions &here,
                            Value column) const {
  for (const Waiting &input : all)
    if (input.isThere)
      here.set(input.root, Role::Full,
               code.load(code.lanesOf(getElementTypeOrSelf(input.root)),
                         input.place, column, {}, code.lanes));
}

void WaitingInputs::keep(DeviceCode &code, Expressions &here, Value column) {
  for (const Waiting &input : all)
    if (Value value = here.lookup(input.root, Role::Full);
        value && !input.isThere) {
      code.store(value, input.place, column, {}, code.lanes);
      isRead.insert(input.root);
    }
}

/// The chunks at `columns`, which are read before any of them is written.
SmallVector<Value>
RowEmitter::walkChunks(ArrayRef<Value> columns, ValueRange carried,
                       ArrayRef<linalg::GenericOp> reductions,
                       ArrayRef<const LoopNest::Output *> outputs) {
  SmallVector<Value> sums(carried);
  SmallVector<Expressions::Chunk> walked;
  SmallVector<SmallVector<Value>> stored(columns.size());
  for (auto [k, column] : llvm::enumerate(columns)) {
    here.enterChunk(column, {});
    waiting.provide(code, here, column);
    SmallVector<Value> next;
    for (linalg::GenericOp op : reductions)
      llvm::append_range(
          next, here.emit(op, ValueRange(sums).slice(next.size(),
                                                     op.getNumResults())));
    sums = next;
    for (const LoopNest::Output *output : outputs)
      stored[k].push_back(here.get(output->root, Role::Full));
    waiting.keep(code, here, column);
    walked.push_back(here.leaveChunk());
  }
  for (size_t k = 0; k < columns.size(); ++k) {
    here.resumeChunk(std::move(walked[k]));
    for (auto [output, value] : llvm::zip(outputs, stored[k]))
      here.store(*output, value);
  }
  return sums;
}

void RowEmitter::walkMemory(ArrayRef<linalg::GenericOp> reductions,
                            ArrayRef<const LoopNest::Output *> outputs) {
  SmallVector<Value> sums;
  forEach(reductions, [&](linalg::GenericOp op, unsigned i, unsigned) {
    sums.push_back(here.initial(op, i));
  });
  // What the row needs once is computed before the loops, and before anybody
  // writes what another thread may still read.
  Operation *before = nullptr;
  if (!outputs.empty() && isReadAcross(kernel))
    before = gpu::BarrierOp::create(code);
  int64_t sideBySide = std::max<int64_t>(kSideBySide / code.lanes, 1);
  sideBySide = std::min<int64_t>(sideBySide, 4);
  int64_t step = layout.threads * code.lanes, all = sideBySide * step;
  auto loop = [&](Value from, Value to, int64_t count) {
    sums = code.loop(from, to, count * step, sums,
                     [&](Value c, ValueRange carried) {
                       if (!before)
                         before = code.getInsertionBlock()->getParentOp();
                       here.setTaskAnchor(before);
                       here.setRowAnchor(before);
                       SmallVector<Value> columns = {c};
                       for (int64_t k = 1; k < count; ++k)
                         columns.push_back(code.add(c, k * step));
                       return walkChunks(columns, carried, reductions, outputs);
                     });
  };
  Value first = code.mul(lane, code.lanes);
  int64_t last = std::max<int64_t>(nest.cols - (all - step), 0);
  loop(first, code.i64(last), sideBySide);
  Value length = arith::MaxSIOp::create(
      code, code.sub(code.i64(last + all - 1), first), code.i64(0));
  if (last == 0)
    length = code.i64(0);
  loop(code.add(first, code.mul(code.divide(length, all), all)),
       code.i64(nest.cols), 1);
  waiting.finishPhase();
  here.setTaskAnchor(nullptr);
  here.setRowAnchor(nullptr);
  here.enterChunk({}, {});
  complete(reductions, sums);
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

void RowEmitter::complete(ArrayRef<linalg::GenericOp> reductions,
                          ArrayRef<Value> accumulators) {
  SmallVector<Value> totals;
  forEach(reductions, [&](linalg::GenericOp op, unsigned i, unsigned number) {
    auto combine = [&](Value a, Value b) { return here.combine(op, i, a, b); };
    Value total = code.reduce(accumulators[number], combine);
    totals.push_back(code.combineInWarp(total, std::min(layout.threads, kWarp),
                                        /*step=*/1, combine));
  });
  if (layout.threads > kWarp && !totals.empty())
    totals = combineWarps(totals, reductions);
  forEach(reductions, [&](linalg::GenericOp op, unsigned i, unsigned number) {
    here.set(op.getResult(i), Role::Row, totals[number]);
  });
}

/// Each reduction has a word of shared memory for each warp, which nobody uses
/// again: one barrier is enough for all of a phase.
SmallVector<Value>
RowEmitter::combineWarps(ArrayRef<Value> values,
                         ArrayRef<linalg::GenericOp> reductions) {
  int64_t warps = layout.threads / kWarp, all = warps * layout.rowsOfBlock;
  Value words = kernel.takeShared(code, values.size() * all * 4);
  Value thread = code.thread();
  Value warp = code.divide(thread, kWarp);
  code.when(code.equal(code.remainder(thread, kWarp), 0), [&] {
    for (auto [number, value] : llvm::enumerate(values))
      code.store(value, words, code.add(warp, number * all));
  });
  code.barrier();
  // Of the warps of this row.
  Value other = code.add(code.sub(warp, code.remainder(warp, warps)),
                         code.remainder(thread, warps));
  SmallVector<Value> totals;
  forEach(reductions, [&](linalg::GenericOp op, unsigned i, unsigned number) {
    Value value = code.load(values[number].getType(), words,
                            code.add(other, number * all));
    totals.push_back(
        code.combineInWarp(value, warps, /*step=*/1, [&](Value a, Value b) {
          return here.combine(op, i, a, b);
        }));
  });
  return totals;
}

//===----------------------------------------------------------------------===//
// Values of which a row has one
//===----------------------------------------------------------------------===//

/// Computes them before this phase overwrites what they may read.
void RowEmitter::takeRowOutputs(int64_t phase) {
  for (const LoopNest::Output &output : nest.outputs())
    if (output.role == Role::Row && output.phase == phase)
      rowOutputs.push_back({&output, here.get(output.root, Role::Row)});
}

void RowEmitter::storeRowOutputs() {
  if (rowOutputs.empty())
    return;
  if (sharesRow(nest, kernel))
    code.barrier();
  whenThere(code.equal(lane, 0), [&] {
    for (auto [output, value] : rowOutputs)
      here.store(*output, value);
  });
}

LogicalResult RowEmitter::emit() {
  for (linalg::GenericOp op : nest.reductions())
    for (Value result : op.getResults())
      if (Type type = getElementTypeOrSelf(result.getType());
          !type.isF32() && !type.isInteger(32))
        return op.emitOpError("needs row reductions of f32 or i32, but got ")
               << type;
  code.lanes = chooseLanes(nest, kernel.source, nest.cols);
  layout = chooseLayout(nest, kernel.source, code.lanes);
  kernel.setLaunch(code, llvm::divideCeil(nest.rows, layout.rowsOfBlock),
                   layout.threads * layout.rowsOfBlock);
  if (layout.chunks == 0)
    waiting.makeRoom(code, nest, kernel);
  enter();
  for (int64_t phase = 0; phase < nest.numPhases(); ++phase) {
    here.setPhase(phase);
    takeRowOutputs(phase);
    walk(phase);
  }
  here.setPhase(nest.numPhases());
  takeRowOutputs(nest.numPhases());
  storeRowOutputs();
  return success();
}

LogicalResult cuda::emitRows(DeviceCode &code, const LoopNest &nest,
                             DeviceKernel &kernel) {
  return RowEmitter(code, nest, kernel).emit();
}
