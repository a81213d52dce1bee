//===- Rows.cpp - Kernels that walk rows ------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A task is as many rows as make about 16 Ki elements. A row is walked once for
// each phase. A sum over a row is 64 partial sums, those of the columns l,
// l + 64, ..., in four vectors, and the fixed tree at the end; lanes beyond the
// end of the row keep what they have.
//
//===----------------------------------------------------------------------===//

#include "Prefetch.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "reprise/Codegen/Common/Expressions.h"
#include "reprise/Codegen/Common/KernelBody.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;

static constexpr int64_t kTaskElements = 16384;
/// A row of so many elements is asked for while the one before is worked on.
static constexpr int64_t kLongRow = 4096;

//===----------------------------------------------------------------------===//
// What is kept from phase to phase
//===----------------------------------------------------------------------===//

namespace {
/// A value of each element that one phase computes and a later one needs again:
/// it waits where that will write a result. So an exponential is computed, and
/// a random word drawn, once.
struct Kept {
  Value root;
  const LoopNest::Output *place;
  int64_t phase; ///< which computes it
};
} // namespace

/// Whether `op` makes a value of each row that it reads across the row, not
/// element by element: it does when the row begins, before anything is written.
static bool readsAcross(const LoopNest &nest, linalg::GenericOp op) {
  return !nest.isReduction(op) && nest.phase(op) == 0 &&
         nest.resultRole(op.getResult(0)) == Role::Row &&
         !op.getBody()->getOps<tensor::ExtractOp>().empty();
}

/// Whether computing `root` in `phase` takes `what`, which may be an input, but
/// for what `kept` is made of.
static bool needs(const LoopNest &nest, Value root, Value what, int64_t phase,
                  Value kept = {}) {
  if (root == what)
    return true;
  auto op = root.getDefiningOp<linalg::GenericOp>();
  if (!op || root == kept || nest.storedBefore(root, phase) ||
      (nest.isReduction(op) && nest.phase(op) < phase) ||
      (readsAcross(nest, op) && phase > 0))
    return false;
  bool isRead = false;
  op.getBody()->walk([&](tensor::ExtractOp extract) {
    isRead |= getRoot(extract.getTensor()) == what;
  });
  return isRead || llvm::any_of(op->getOperands(), [&](Value operand) {
           return needs(nest, getRoot(operand), what, phase, kept);
         });
}

/// The same of all that is computed in `phase`.
static bool needs(const LoopNest &nest, int64_t phase, Value what,
                  Value kept = {}) {
  return llvm::any_of(nest.reductions(),
                      [&](linalg::GenericOp op) {
                        return nest.phase(op) == phase &&
                               needs(nest, op.getResult(0), what, phase, kept);
                      }) ||
         llvm::any_of(nest.outputs(), [&](const LoopNest::Output &output) {
           return output.phase == phase &&
                  needs(nest, output.root, what, phase, kept);
         });
}

/// Whether computing what `op` makes again takes longer than reading it.
static bool takesLong(linalg::GenericOp op) {
  return !op.getBody()->getOps<math::ExpOp>().empty() ||
         !op.getBody()->getOps<rt::RandomWordOp>().empty();
}

static SmallVector<Kept> findKept(const LoopNest &nest, func::FuncOp kernel) {
  SmallVector<Kept> all;
  auto isTaken = [&](const LoopNest::Output &output) {
    return llvm::any_of(
        all, [&](const Kept &kept) { return kept.place == &output; });
  };
  // Whether an input in the buffer of `output` is read after `phase`, other
  // than for what is kept.
  auto isReadLater = [&](const LoopNest::Output &output, int64_t phase,
                         Value kept) {
    for (BlockArgument argument : kernel.getArguments())
      if (mayTakePlace(kernel, argument.getArgNumber(), output.index))
        for (int64_t later = phase + 1; later <= nest.numPhases(); ++later)
          if (needs(nest, later, argument, kept))
            return true;
    return false;
  };
  for (auto op : kernel.getOps<linalg::GenericOp>()) {
    if (nest.isReduction(op) || op.getNumResults() != 1 ||
        nest.resultRole(op.getResult(0)) != Role::Full || !takesLong(op))
      continue;
    Value root = op.getResult(0);
    int64_t phase = 0;
    while (phase < nest.numPhases() && !needs(nest, phase, root))
      ++phase;
    for (const LoopNest::Output &output : nest.outputs())
      if (output.role == Role::Full && output.phase > phase &&
          output.root != root && !isTaken(output) &&
          output.phase + 1 == nest.numPhases() &&
          !nest.storedBefore(root, output.phase) &&
          getElementTypeOrSelf(output.root) == getElementTypeOrSelf(root) &&
          needs(nest, output.phase, root) &&
          !isReadLater(output, phase, root)) {
        all.push_back({root, &output, phase});
        break;
      }
  }
  return all;
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

namespace {
/// Emits one row, phase by phase.
class RowEmitter {
public:
  RowEmitter(Code &code, const LoopNest &nest, Kernel &kernel,
             Expressions &here, ArrayRef<Kept> kept, Value row)
      : code(code), nest(nest), kernel(kernel), here(here), kept(kept),
        row(row), drawsWords(drawsRandomWords(kernel.source)),
        fetchesRows(nest.cols >= kLongRow || movesPastCaches(nest, kernel)) {}

  void emit() {
    for (auto op : kernel.source.getOps<linalg::GenericOp>())
      if (readsAcross(nest, op))
        here.get(op.getResult(0));
    for (int64_t phase = 0; phase < nest.numPhases(); ++phase) {
      here.setPhase(phase);
      takeRowOutputs(phase);
      walk(phaseOf(phase));
    }
    here.setPhase(nest.numPhases());
    takeRowOutputs(nest.numPhases());
    for (auto [output, value] : rowOutputs)
      here.store(*output, value);
  }

private:
  /// Computes the outputs of which a row has one, before this phase overwrites
  /// what they may read.
  void takeRowOutputs(int64_t phase) {
    for (const LoopNest::Output &output : nest.outputs())
      if (output.role == Role::Row && output.phase == phase)
        rowOutputs.push_back({&output, here.get(output.root, Role::Row)});
  }

  /// What one walk over the row computes.
  struct Phase {
    int64_t number;
    SmallVector<linalg::GenericOp> reductions;
    SmallVector<const LoopNest::Output *> outputs;

    size_t countResults() const {
      size_t count = 0;
      for (linalg::GenericOp op : reductions)
        count += op->getNumResults();
      return count;
    }
  };
  Phase phaseOf(int64_t number) const;

  void walk(const Phase &phase);
  SmallVector<Value> walkWhole(const Phase &phase, int64_t inTurn,
                               int64_t whole, SmallVector<Value> sums);
  void walkRest(const Phase &phase, int64_t whole, MutableArrayRef<Value> sums);
  SmallVector<Value> emitChunk(const Phase &phase, Value c, Value mask,
                               ValueRange accumulators);
  SmallVector<Value> startSums(const Phase &phase, int64_t inTurn);
  SmallVector<Value> orderSums(const Phase &phase, ArrayRef<Value> sums,
                               int64_t lanes);
  void setTotals(const Phase &phase, ArrayRef<Value> sums);

  Code &code;
  const LoopNest &nest;
  Kernel &kernel;
  Expressions &here;
  ArrayRef<Kept> kept;
  Value row;
  bool drawsWords, fetchesRows;
  SmallVector<std::pair<const LoopNest::Output *, Value>> rowOutputs;
};
} // namespace

RowEmitter::Phase RowEmitter::phaseOf(int64_t number) const {
  Phase phase = {number, {}, {}};
  for (linalg::GenericOp op : nest.reductions())
    if (nest.phase(op) == number)
      phase.reductions.push_back(op);
  for (const LoopNest::Output &output : nest.outputs())
    if (output.role == Role::Full && output.phase == number)
      phase.outputs.push_back(&output);
  return phase;
}

void RowEmitter::walk(const Phase &phase) {
  if (phase.reductions.empty() && phase.outputs.empty())
    return;
  // Partial sums: of each vector in turn, those of every reduction. As many
  // vectors share the blocks that their random words are of.
  int64_t lanes = code.lanes, vectors = llvm::divideCeil(nest.cols, lanes);
  int64_t inTurn = phase.reductions.empty() && !drawsWords
                       ? 1
                       : std::min(vectors, kSumVectors * kLanes / lanes);
  SmallVector<Value> sums = startSums(phase, inTurn);
  int64_t step = inTurn * lanes, whole = nest.cols / step * step;
  if (whole > 0)
    sums = walkWhole(phase, inTurn, whole, sums);
  here.setRowAnchor(nullptr);
  // What is left, and sums of sums, are in the order of columns.
  llvm::SaveAndRestore keepLanes(code.lanes, kLanes);
  llvm::SaveAndRestore keepOrder(code.evenFirst, false);
  if (lanes != kLanes)
    sums = orderSums(phase, sums, lanes);
  walkRest(phase, whole, sums);
  here.enterChunk({}, {});
  setTotals(phase, sums);
}

/// The columns before `whole`: vectors that take the sums in turn.
SmallVector<Value> RowEmitter::walkWhole(const Phase &phase, int64_t inTurn,
                                         int64_t whole,
                                         SmallVector<Value> sums) {
  const int64_t lanes = code.lanes;
  const size_t number = phase.countResults();
  bool isRun = inTurn == kSumVectors && nest.cols % 4 == 0;
  return code.loop(code.i64(0), code.i64(whole), inTurn * lanes, sums,
                   [&](Value c, ValueRange carried) {
                     here.setRowAnchor(code.getInsertionBlock()->getParentOp());
                     SmallVector<Value> next;
                     for (int64_t v = 0; v < inTurn; ++v) {
                       if (isRun)
                         here.enterRun(c, v);
                       else
                         here.enterChunk(code.add(c, v * lanes), {});
                       llvm::append_range(
                           next, emitChunk(phase, code.add(c, v * lanes), {},
                                           carried.slice(v * number, number)));
                     }
                     return next;
                   });
}

/// The columns from `whole` on.
void RowEmitter::walkRest(const Phase &phase, int64_t whole,
                          MutableArrayRef<Value> sums) {
  const size_t number = phase.countResults();
  for (int64_t c = whole, v = 0; c < nest.cols; c += kLanes, ++v) {
    int64_t left = nest.cols - c;
    Value mask = left < kLanes ? code.maskOf(left) : Value();
    here.enterChunk(code.i64(c), mask);
    MutableArrayRef<Value> ofVector = sums.slice(v * number, number);
    llvm::copy(emitChunk(phase, code.i64(c), mask,
                         ValueRange(ArrayRef<Value>(ofVector))),
               ofVector.begin());
  }
}

/// The sums behind the vector of column `c`.
SmallVector<Value> RowEmitter::emitChunk(const Phase &phase, Value c,
                                         Value mask, ValueRange accumulators) {
  for (const Kept &each : kept)
    if (each.phase < phase.number)
      here.setToOutput(each.root, *each.place);
  // The first pass over a row waits for memory, the second computes.
  if (phase.number == 1 && fetchesRows)
    prefetchInputs(code, kernel, nest.rows * nest.cols,
                   code.add(code.mul(code.add(row, 1), nest.cols), c),
                   /*bytes=*/0);
  SmallVector<Value> next, stored;
  for (linalg::GenericOp op : phase.reductions) {
    ValueRange old = accumulators.slice(next.size(), op.getNumResults());
    for (auto [was, is] : llvm::zip(old, here.emit(op, old)))
      next.push_back(mask ? code.select(mask, is, was) : is);
  }
  for (const LoopNest::Output *output : phase.outputs)
    stored.push_back(here.get(output->root, Role::Full));
  for (auto [output, value] : llvm::zip(phase.outputs, stored))
    here.store(*output, value);
  for (const Kept &each : kept)
    if (each.phase == phase.number)
      here.store(*each.place, here.get(each.root, Role::Full));
  return next;
}

SmallVector<Value> RowEmitter::startSums(const Phase &phase, int64_t inTurn) {
  SmallVector<Value> sums;
  for (int64_t v = 0; v < inTurn; ++v)
    for (linalg::GenericOp op : phase.reductions)
      for (unsigned i = 0; i < op->getNumResults(); ++i)
        sums.push_back(here.initial(op, i));
  return sums;
}

/// Sums of vectors of `lanes`, as those of vectors of 16 columns in order.
SmallVector<Value> RowEmitter::orderSums(const Phase &phase,
                                         ArrayRef<Value> sums, int64_t lanes) {
  const size_t number = phase.countResults();
  SmallVector<Value> ordered;
  for (size_t v = 0; number > 0 && v < sums.size() / number; ++v)
    for (int64_t first = 0; first < lanes; first += kLanes)
      for (Value sum : sums.slice(v * number, number))
        ordered.push_back(code.inOrder(sum, first, kLanes));
  return ordered;
}

void RowEmitter::setTotals(const Phase &phase, ArrayRef<Value> sums) {
  const size_t number = phase.countResults();
  unsigned next = 0;
  for (linalg::GenericOp op : phase.reductions)
    for (unsigned i = 0; i < op.getNumResults(); ++i, ++next) {
      SmallVector<Value> partial;
      for (size_t v = 0; v < sums.size() / number; ++v)
        partial.push_back(sums[v * number + next]);
      Value total = code.reduce(
          partial, [&](Value a, Value b) { return here.combine(op, i, a, b); });
      here.set(op.getResult(i), Role::Row, total);
    }
}

LogicalResult codegen::emitRows(Code &code, const LoopNest &nest,
                                Kernel &kernel) {
  int64_t perTask =
      std::clamp<int64_t>(kTaskElements / nest.cols, 1, nest.rows);
  int64_t tasks = llvm::divideCeil(nest.rows, perTask);
  kernel.function->setAttr(rt::kTasksAttr, code.getI64IntegerAttr(tasks));

  chooseLanes(code, nest, kernel);
  SmallVector<Kept> kept = findKept(nest, kernel.source);
  SmallVector<unsigned> streamed = findStreamed(nest, kernel);
  // What is kept there is read again.
  for (const Kept &each : kept)
    llvm::erase(streamed, each.place->index);
  Expressions here(code, nest, kernel);
  here.setStreamed(streamed);
  kernel.tasks(code, [&](Value task) {
    here.enterTask();
    Value from = code.mul(task, perTask);
    Value to = code.min(code.add(from, perTask), code.i64(nest.rows));
    code.loop(from, to, 1, [&](Value r) {
      here.setTaskAnchor(code.getInsertionBlock()->getParentOp());
      here.enterRow(r);
      RowEmitter(code, nest, kernel, here, kept, r).emit();
    });
  });
  if (!streamed.empty())
    code.fence();
  return success();
}
