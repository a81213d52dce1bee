//===- Segments.cpp - Arrays of different lengths in one kernel -*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel of several pointwise loops over arrays of their own. Loops of one
// body share its code: a family. A task is a block of one array, as in a kernel
// of that loop alone; buffers and lengths come from tables.
//
//===----------------------------------------------------------------------===//

#include "Segments.h"
#include "Kernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "reprise/ABI/Gemm.h"
#include "reprise/Codegen/Common/Expressions.h"
#include "reprise/Codegen/Common/Families.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

Value codegen::constantTable(Code &code, Kernel &kernel, StringRef suffix,
                             ArrayRef<int64_t> values) {
  std::string name = (kernel.function.getName() + suffix).str();
  {
    OpBuilder::InsertionGuard guard(code);
    code.setInsertionPoint(kernel.function);
    auto type = LLVM::LLVMArrayType::get(code.getI64Type(), values.size());
    LLVM::GlobalOp::create(code, type, /*isConstant=*/true,
                           LLVM::Linkage::Internal, name,
                           code.getI64TensorAttr(values));
  }
  return LLVM::AddressOfOp::create(
      code, LLVM::LLVMPointerType::get(code.getContext()), name);
}

/// Entry 0 is 0, entry i the number of tasks of the arrays before array i; what
/// pads the table comes after every task.
TaskTable::TaskTable(Code &code, Kernel &kernel, ArrayRef<int64_t> counts)
    : padded(llvm::bit_ceil(counts.size() + 1)) {
  SmallVector<int64_t> begins = {0};
  for (int64_t count : counts)
    begins.push_back(numTasks += count);
  begins.resize(padded, INT64_MAX);
  ends = constantTable(code, kernel, ".tasks", begins);
}

std::pair<Value, Value> TaskTable::find(Code &code, Value task) const {
  // The last entry that is not above `task`.
  Value array = code.i64(0);
  for (int64_t step = padded / 2; step > 0; step /= 2) {
    Value next = code.add(array, step);
    Value begin = code.load(code.getI64Type(), ends, next);
    Value isThere =
        arith::CmpIOp::create(code, arith::CmpIPredicate::sle, begin, task);
    array = code.select(isThere, next, array);
  }
  Value begin = code.load(code.getI64Type(), ends, array);
  return {array, code.sub(task, begin)};
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

/// Emits the elements [from, to) of the loop of `kernel`, whose buffers are
/// known by now.
static LogicalResult emitBlock(Code &code, Kernel &kernel, Value from,
                               Value to) {
  FailureOr<LoopNest> nest = LoopNest::get(kernel.source);
  if (failed(nest))
    return failure();
  Expressions here(code, *nest, kernel);
  here.enterTask();
  auto chunks = [&](Value from, Value to, function_ref<Value(Value)> getMask) {
    code.loop(from, to, kLanes, [&](Value c) {
      here.setTaskAnchor(code.getInsertionBlock()->getParentOp());
      here.enterChunk(c, getMask(c));
      here.storeOutputs();
    });
    here.setTaskAnchor(nullptr);
  };
  Value rest =
      arith::RemSIOp::create(code, code.sub(to, from), code.i64(kLanes));
  Value whole = code.sub(to, rest);
  chunks(from, whole, [](Value) { return Value(); });
  // At most one more, of the lanes that are left.
  here.enterTask();
  chunks(whole, to, [&](Value c) -> Value {
    return arith::CmpIOp::create(code, arith::CmpIPredicate::slt,
                                 code.iota(code.getI64Type()),
                                 code.splat(code.sub(to, c)));
  });
  return success();
}

/// The same for pairs of rows [from, to) of matrices of `cols` columns, of
/// which result `packed` has panels of `pairs` such pairs. Rows are as long as
/// whole vectors, and read and written from one end to the other: nothing else
/// keeps memory busy.
static LogicalResult emitRowPairs(Code &code, Kernel &kernel, unsigned packed,
                                  Value from, Value to, Value cols,
                                  Value pairs) {
  FailureOr<LoopNest> nest = LoopNest::get(kernel.source);
  if (failed(nest))
    return failure();
  constexpr int64_t kCols = REPRISE_PACKED_COLS;
  llvm::SaveAndRestore lanes(code.lanes, kernel.avx512 ? 2 * kLanes : kLanes);
  Expressions here(code, *nest, kernel);
  here.enterTask();
  code.loop(from, to, 1, [&](Value pair) {
    here.setTaskAnchor(code.getInsertionBlock()->getParentOp());
    Value even = code.mul(cols, code.mul(pair, 2));
    code.loop(code.i64(0), cols, kCols, [&](Value panel) {
      Value place = code.add(code.mul(code.mul(panel, pairs), 2),
                             code.mul(pair, 2 * kCols));
      for (int64_t c = 0; c < kCols; c += code.lanes / 2) {
        Value first = code.add(even, code.add(panel, c));
        here.enterPair(
            {first, code.add(first, cols), code.add(place, 2 * c), packed});
        here.storeOutputs();
      }
    });
  });
  return success();
}

namespace {
/// Emits the tasks of a kernel of segments, each a block of one of them.
class SegmentEmitter {
public:
  SegmentEmitter(Code &code, Kernel &kernel, std::vector<Family> &families)
      : code(code), kernel(kernel), families(families),
        tables(families, kFlatBlock), tasks(code, kernel, tables.blocks),
        lengths(constantTable(code, kernel, ".lengths", tables.lengths)),
        buffers(constantTable(code, kernel, ".buffers", tables.buffers)),
        packs(llvm::any_of(families, [](const Family &family) {
          return family.segments.front().packed.has_value();
        })) {
    if (!packs)
      return;
    pairsOfBlock = constantTable(code, kernel, ".pairs", tables.pairsOfBlock);
    colsOf = constantTable(code, kernel, ".cols", tables.cols);
  }

  LogicalResult emit();

private:
  /// A task: its segment and how long that is, the block of it, and the first
  /// of the segment's buffers in their table.
  struct Place {
    Value segment, block, length, row;
  };
  LogicalResult emitFamily(const Family &family, int64_t first,
                           const Place &at);
  LogicalResult emitPart(Kernel &part, std::optional<unsigned> packed,
                         const Place &at);
  Value loadOf(Value table, Value index) {
    return code.load(code.getI64Type(), table, index);
  }

  Code &code;
  Kernel &kernel;
  std::vector<Family> &families;
  SegmentTables tables;
  TaskTable tasks;
  Value lengths, buffers;
  const bool packs;
  Value pairsOfBlock, colsOf; ///< null if nothing is packed
};
} // namespace

/// The task's block of a segment, of a kernel of its own.
LogicalResult SegmentEmitter::emitPart(Kernel &part,
                                       std::optional<unsigned> packed,
                                       const Place &at) {
  Value block = code.i64(kFlatBlock), end = at.length, cols;
  if (packed) {
    block = loadOf(pairsOfBlock, at.segment);
    cols = loadOf(colsOf, at.segment);
    end = arith::DivUIOp::create(code, at.length, code.mul(cols, 2));
  }
  Value from = code.mul(at.block, block);
  Value to = code.min(code.add(from, block), end);
  return packed ? emitRowPairs(code, part, *packed, from, to, cols, end)
                : emitBlock(code, part, from, to);
}

/// Of the segments from number `first` on, which do the same.
LogicalResult SegmentEmitter::emitFamily(const Family &family, int64_t first,
                                         const Place &at) {
  linalg::GenericOp loop = family.segments.front().loop;
  func::FuncOp alone = outline(code, loop, kernel.source);
  auto compare = [&](arith::CmpIPredicate predicate, int64_t bound) {
    return arith::CmpIOp::create(code, predicate, at.segment, code.i64(bound));
  };
  int64_t last = first + family.segments.size();
  Value isOfFamily =
      arith::AndIOp::create(code, compare(arith::CmpIPredicate::sge, first),
                            compare(arith::CmpIPredicate::slt, last));
  auto addressOf = [&](int64_t index) {
    Value buffer = loadOf(buffers, code.add(at.row, index));
    return code.load(LLVM::LLVMPointerType::get(code.getContext()),
                     kernel.buffers, buffer);
  };
  LogicalResult result = success();
  code.when(isOfFamily, [&] {
    Kernel part = kernel;
    part.source = alone;
    part.inputs.clear(), part.outputs.clear();
    int64_t numInputs = loop.getNumDpsInputs();
    for (int64_t index = 0; index < numInputs + loop.getNumResults(); ++index)
      (index < numInputs ? part.inputs : part.outputs)
          .push_back(addressOf(index));
    result = emitPart(part, family.segments.front().packed, at);
  });
  alone.erase();
  return result;
}

LogicalResult SegmentEmitter::emit() {
  kernel.function->setAttr(rt::kTasksAttr,
                           code.getI64IntegerAttr(tasks.numTasks));
  LogicalResult result = success();
  kernel.tasks(code, [&](Value task) {
    auto [segment, block] = tasks.find(code, task);
    Value length = loadOf(lengths, segment);
    Place at = {segment, block, length, code.mul(segment, tables.width)};
    int64_t first = 0;
    for (const Family &family : families) {
      if (failed(emitFamily(family, first, at)))
        result = failure();
      first += family.segments.size();
    }
  });
  // Whoever waits for this kernel sees what it has put past the caches.
  if (packs)
    code.fence();
  return result;
}

LogicalResult codegen::emitSegments(Code &code, Kernel &kernel) {
  FailureOr<std::vector<Family>> families = getFamilies(kernel.source);
  if (failed(families))
    return failure();
  return SegmentEmitter(code, kernel, *families).emit();
}
