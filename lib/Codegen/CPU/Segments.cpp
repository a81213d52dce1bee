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
  llvm::SaveAndRestore lanes(code.lanes, kernel.wide ? 2 * kLanes : kLanes);
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

LogicalResult codegen::emitSegments(Code &code, Kernel &kernel) {
  FailureOr<std::vector<Family>> families = getFamilies(kernel.source);
  if (failed(families))
    return failure();
  SegmentTables tables(*families, kFlatBlock);
  TaskTable tasks(code, kernel, tables.blocks);
  Value lengthTable = constantTable(code, kernel, ".lengths", tables.lengths);
  Value bufferTable = constantTable(code, kernel, ".buffers", tables.buffers);
  const bool packs = llvm::any_of(*families, [](const Family &family) {
    return family.segments.front().packed.has_value();
  });
  Value pairsTable, colsTable;
  if (packs) {
    pairsTable = constantTable(code, kernel, ".pairs", tables.pairsOfBlock);
    colsTable = constantTable(code, kernel, ".cols", tables.cols);
  }
  kernel.function->setAttr(rt::kTasksAttr,
                           code.getI64IntegerAttr(tasks.numTasks));

  LogicalResult result = success();
  Type i64 = code.getI64Type();
  kernel.tasks(code, [&](Value task) {
    std::pair<Value, Value> place = tasks.find(code, task);
    Value segment = place.first;
    Value length = code.load(i64, lengthTable, segment);
    auto emitPart = [&](Kernel &part, std::optional<unsigned> packed) {
      Value block = code.i64(kFlatBlock), end = length, cols;
      if (packed) {
        block = code.load(i64, pairsTable, segment);
        cols = code.load(i64, colsTable, segment);
        end = arith::DivUIOp::create(code, length, code.mul(cols, 2));
      }
      Value from = code.mul(place.second, block);
      Value to = code.min(code.add(from, block), end);
      return packed ? emitRowPairs(code, part, *packed, from, to, cols, end)
                    : emitBlock(code, part, from, to);
    };
    Value row = code.mul(segment, tables.width);
    auto addressOf = [&](int64_t index) {
      Value buffer = code.load(i64, bufferTable, code.add(row, index));
      return code.load(LLVM::LLVMPointerType::get(code.getContext()),
                       kernel.buffers, buffer);
    };
    int64_t last = 0;
    for (Family &family : *families) {
      int64_t first = last;
      last += family.segments.size();
      linalg::GenericOp loop = family.segments.front().loop;
      func::FuncOp alone = outline(code, loop, kernel.source);
      auto compare = [&](arith::CmpIPredicate predicate, int64_t bound) {
        return arith::CmpIOp::create(code, predicate, segment, code.i64(bound));
      };
      Value isOfFamily =
          arith::AndIOp::create(code, compare(arith::CmpIPredicate::sge, first),
                                compare(arith::CmpIPredicate::slt, last));
      code.when(isOfFamily, [&] {
        Kernel part = kernel;
        part.source = alone;
        part.inputs.clear(), part.outputs.clear();
        int64_t numInputs = loop.getNumDpsInputs();
        for (int64_t index = 0; index < numInputs + loop.getNumResults();
             ++index)
          (index < numInputs ? part.inputs : part.outputs)
              .push_back(addressOf(index));
        if (failed(emitPart(part, family.segments.front().packed)))
          result = failure();
      });
      alone.erase();
    }
  });
  // Whoever waits for this kernel sees what it has put past the caches.
  if (packs)
    code.fence();
  return result;
}
