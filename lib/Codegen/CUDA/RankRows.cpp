//===- RankRows.cpp - Rows of experts between ranks -------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels that no launch of the schedule names: the runtime launches them where
// ranks exchange rows of experts, before and behind what is sent in slots of
// one size. They do what placeOf of runtime/transport/RowSlots.h says, a row
// for each block: all its threads find the place of the row, by loads that they
// share, and then copy it together.
//
//===----------------------------------------------------------------------===//

#include "DeviceKernels.h"
#include "mlir/IR/BuiltinOps.h"
#include "reprise/Codegen/CUDA/Device.h"
#include "reprise/Dialect/RT/RTExpertRankOps.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;
using namespace reprise::cuda;

static constexpr int64_t kThreads = 128;

std::string cuda::getRankRowsName(int64_t unitBytes) {
  return unitBytes ? ("reprise_rows_by_" + Twine(unitBytes)).str()
                   : "reprise_rows_offsets";
}

/// The most bytes at a time that rows are multiples of, and so begin at.
static int64_t getUnit(Value rows) {
  auto type = cast<ShapedType>(rows.getType());
  int64_t bytes = type.getElementTypeBitWidth() / 8 * type.getNumElements() /
                  type.getDimSize(0);
  return bytes % 16 == 0 ? 16 : bytes % 4 == 0 ? 4 : 2;
}

SmallVector<int64_t> cuda::getRankRowsUnits(ModuleOp module) {
  llvm::SmallSetVector<int64_t, 4> units;
  module.walk([&](Operation *op) {
    if (isa<rt::GatherOffsetsOp>(op))
      units.insert(0);
    else if (isa<rt::SendRowsOp, rt::ReturnRowsOp>(op))
      units.insert(getUnit(op->getOperand(0)));
  });
  return SmallVector<int64_t>(units.getArrayRef());
}

namespace {
/// What a kernel is given, and the offsets of all members.
class RowCode {
public:
  using Values = SmallVector<Value>;

  RowCode(DeviceCode &code, DeviceKernel &kernel, Value offsets)
      : code(code), kernel(kernel), offsets(offsets), experts(id(0)),
        members(id(1)), self(id(2)), perMember(divide(experts, members)),
        ownFirst(code.mul(self, perMember)), zero(code.i64(0)) {}

  void emitMove(int64_t unitBytes);
  void emitOffsets();

private:
  Value id(int64_t number) {
    return code.load(code.getI64Type(), kernel.ids, code.i64(number));
  }
  Value divide(Value a, Value b) { return arith::DivUIOp::create(code, a, b); }
  Value at(Value member, Value expert) {
    Value place = code.add(code.mul(member, code.add(experts, 1)), expert);
    return code.cast(code.load(code.getI32Type(), offsets, place),
                     code.getI64Type());
  }
  /// The sums over all members of what `body` gives for each.
  Values sumOverMembers(unsigned numSums,
                        function_ref<Values(Value member)> body);
  Value countOf(Value slot);
  Value placeAtExperts(Value slot, Value row);
  void findPlace();
  void copyRow(int64_t unitBytes);

  DeviceCode &code;
  DeviceKernel &kernel;
  Value offsets;
  Value experts, members, self, perMember, ownFirst, zero;
  Value areOfTokens;     ///< i1
  Value place, isFilled; ///< of the block's row among those in order
};
} // namespace

RowCode::Values
RowCode::sumOverMembers(unsigned numSums,
                        function_ref<Values(Value member)> body) {
  return code.loop(zero, members, 1, Values(numSums, zero),
                   [&](Value member, ValueRange old) -> Values {
                     Values next = body(member);
                     for (auto [sum, value] : llvm::zip_equal(next, old))
                       sum = code.add(value, sum);
                     return next;
                   });
}

Value RowCode::countOf(Value slot) {
  Value whose = code.select(areOfTokens, self, slot);
  Value first = code.select(areOfTokens, code.mul(slot, perMember), ownFirst);
  return code.sub(at(whose, code.add(first, perMember)), at(whose, first));
}

/// Of row `row` of a member's: behind all rows of lower experts, and those of
/// lower members for its own.
Value RowCode::placeAtExperts(Value slot, Value row) {
  Value begin = at(slot, ownFirst), end = code.sub(perMember, code.i64(1));
  Value expert =
      code.loop(zero, end, 1, zero, [&](Value lower, ValueRange old) -> Values {
        Value next = at(slot, code.add(code.add(ownFirst, lower), 1));
        Value isBehind = code.less(code.sub(next, begin), code.add(row, 1));
        return {code.add(
            old[0], arith::ExtUIOp::create(code, code.getI64Type(), isBehind))};
      })[0];
  expert = code.add(ownFirst, expert);
  Value before = sumOverMembers(1, [&](Value member) -> Values {
    Value here = at(member, expert);
    Value rows = code.sub(at(member, code.add(expert, 1)), here);
    return {code.add(code.sub(here, at(member, ownFirst)),
                     code.select(code.less(member, slot), rows, zero))};
  })[0];
  return code.add(before, code.sub(row, code.sub(at(slot, expert), begin)));
}

void RowCode::findPlace() {
  Value slotRows = id(3), block = code.block();
  Value slot = divide(block, slotRows);
  Value row = code.sub(block, code.mul(slot, slotRows));
  Values sums = sumOverMembers(2, [&](Value member) -> Values {
    Value count = countOf(member);
    return {count, code.select(code.less(member, slot), count, zero)};
  });
  // Blocks behind all slots read the last one's numbers, and have none.
  Value last = code.min(slot, code.sub(members, code.i64(1)));
  Value count = code.select(code.less(slot, members), countOf(last), zero);
  isFilled = code.less(row, count);
  Value surplus = code.sub(code.add(sums[0], block), code.add(sums[1], count));
  Value filled = code.choose(
      areOfTokens,
      [&]() -> Values {
        return {code.add(at(self, code.mul(last, perMember)), row)};
      },
      [&]() -> Values { return {placeAtExperts(last, row)}; })[0];
  place = code.select(isFilled, filled, surplus);
}

void RowCode::copyRow(int64_t unitBytes) {
  Value units = id(4), toSlots = code.equal(id(7), 1);
  Value from = code.select(toSlots, place, code.block());
  Value to = code.select(toSlots, code.block(), place);
  Type word = unitBytes == 2 ? code.getI16Type() : code.getI32Type();
  code.lanes = std::max<int64_t>(unitBytes / 4, 1);
  Type unit = code.lanes > 1 ? Type(code.lanesOf(word)) : word;
  Value nothing =
      arith::ConstantOp::create(code, cast<TypedAttr>(code.getZeroAttr(unit)));
  auto offset = [&](Value row, Value number) {
    return code.mul(code.add(code.mul(row, units), number), code.lanes);
  };
  auto store = [&](Value value, Value number) {
    code.store(value, kernel.outputs[0], offset(to, number), {}, code.lanes);
  };
  code.when(
      isFilled,
      [&] {
        code.loop(code.thread(), units, kThreads, [&](Value number) {
          store(code.load(unit, kernel.inputs[0], offset(from, number), {},
                          code.lanes),
                number);
        });
      },
      [&] {
        // Slots keep what they have behind their rows.
        code.when(code.equal(id(7), 0), [&] {
          code.loop(code.thread(), units, kThreads,
                    [&](Value number) { store(nothing, number); });
        });
      });
}

void RowCode::emitMove(int64_t unitBytes) {
  areOfTokens = code.equal(id(6), 1);
  findPlace();
  code.when(code.less(place, id(5)), [&] { copyRow(unitBytes); });
}

void RowCode::emitOffsets() {
  code.loop(code.thread(), code.add(perMember, 1), kThreads, [&](Value expert) {
    Value rows = sumOverMembers(1, [&](Value member) -> Values {
      return {code.sub(at(member, code.add(ownFirst, expert)),
                       at(member, ownFirst))};
    })[0];
    code.store(code.cast(rows, code.getI32Type()), kernel.outputs[0], expert);
  });
}

void cuda::emitRankRows(DeviceCode &code, int64_t unitBytes,
                        DeviceKernel &kernel) {
  code.lanes = 1;
  kernel.setLaunch(code, 1, kThreads);
  if (unitBytes)
    RowCode(code, kernel, kernel.inputs[1]).emitMove(unitBytes);
  else
    RowCode(code, kernel, kernel.inputs[0]).emitOffsets();
}
