//===- VerifyPlan.cpp - Proof of a memory plan from its bytes ---*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Interfaces/CostModel.h"
#include "reprise/Memory/Passes.h"
#include <map>

namespace reprise::memory {
#define GEN_PASS_DEF_VERIFYPLAN
#include "reprise/Memory/Passes.h.inc"
} // namespace reprise::memory

using namespace mlir;
using namespace reprise;

namespace {
/// Which rt.buffer the bytes of the arena were last written through. Ranges are
/// disjoint; their number stays that of the live buffers.
class ByteMap {
public:
  void write(int64_t begin, int64_t end, rt::BufferOp writer) {
    split(begin);
    split(end);
    ranges.erase(ranges.lower_bound(begin), ranges.lower_bound(end));
    ranges[begin] = {end, writer};
  }

  /// The first writer of a byte in [begin, end) other than `expected`, null for
  /// bytes that nothing has written; none if all are by `expected`.
  std::optional<rt::BufferOp> findOther(int64_t begin, int64_t end,
                                        rt::BufferOp expected) {
    int64_t at = begin;
    auto it = ranges.upper_bound(begin);
    if (it != ranges.begin())
      --it;
    for (; it != ranges.end() && it->first < end; ++it) {
      if (it->second.first <= begin)
        continue;
      if (it->first > at)
        return rt::BufferOp();
      if (it->second.second != expected)
        return it->second.second;
      at = it->second.first;
    }
    if (at < end)
      return rt::BufferOp();
    return std::nullopt;
  }

private:
  /// Makes `at` a border between ranges.
  void split(int64_t at) {
    auto it = ranges.upper_bound(at);
    if (it == ranges.begin())
      return;
    --it;
    if (it->first < at && at < it->second.first) {
      ranges[at] = it->second;
      it->second.first = at;
    }
  }

  std::map<int64_t, std::pair<int64_t, rt::BufferOp>> ranges;
};

struct VerifyPlan : public memory::impl::VerifyPlanBase<VerifyPlan> {
  void runOnOperation() override;

  LogicalResult verifySizes(func::FuncOp step);
  LogicalResult verifyLives(func::FuncOp step);
};
} // namespace

static int64_t getEnd(rt::BufferOp buffer) {
  return int64_t(buffer.getOffset()) + getTypeBytes(buffer.getType());
}

/// A buffer whose bytes outlive the step, or come from outside it.
static bool isPersistent(rt::BufferOp buffer) {
  return buffer->hasAttr(rt::kStateAttr) || buffer->hasAttr(rt::kRoleAttr);
}

LogicalResult VerifyPlan::verifySizes(func::FuncOp step) {
  auto plan = getOperation()->getAttrOfType<DictionaryAttr>(rt::kPlanAttr);
  auto arena = plan ? plan.getAs<IntegerAttr>("arena") : IntegerAttr();
  auto categories =
      plan ? plan.getAs<DictionaryAttr>("categories") : DictionaryAttr();
  if (!arena || !categories)
    return step.emitError("needs 'rt.plan' with 'arena' and 'categories' on "
                          "the module");
  int64_t sum = 0;
  for (NamedAttribute category : categories)
    sum += cast<IntegerAttr>(category.getValue()).getInt();
  if (sum != arena.getInt())
    return step.emitError("needs categories that add up to the arena of ")
           << arena.getInt() << " bytes, but got " << sum;
  int64_t end = 0;
  for (auto buffer : step.getOps<rt::BufferOp>()) {
    if (getEnd(buffer) > arena.getInt())
      return buffer.emitOpError("needs to end within the arena of ")
             << arena.getInt() << " bytes, but ends at " << getEnd(buffer);
    end = std::max(end, getEnd(buffer));
  }
  constexpr int64_t kMostAlignment = 4096;
  if (arena.getInt() - end >= kMostAlignment)
    return step.emitError("needs an arena that ends with its last buffer, at ")
           << end << ", but it has " << arena.getInt() << " bytes";
  return success();
}

LogicalResult VerifyPlan::verifyLives(func::FuncOp step) {
  ByteMap bytes;
  std::map<int64_t, rt::BufferOp> persistent;
  for (auto buffer : step.getOps<rt::BufferOp>()) {
    if (!isPersistent(buffer))
      continue;
    if (auto other = bytes.findOther(buffer.getOffset(), getEnd(buffer), {});
        other && *other) {
      InFlightDiagnostic error = buffer.emitOpError("needs bytes of its own");
      error.attachNote(other->getLoc()) << "which this one has too";
      return error;
    }
    bytes.write(buffer.getOffset(), getEnd(buffer), buffer);
    persistent[buffer.getOffset()] = buffer;
  }

  // Bytes that outlive the step change only as a whole.
  auto checkWrite = [&](Operation *op, rt::BufferOp buffer) {
    int64_t begin = buffer.getOffset(), end = getEnd(buffer);
    auto it = persistent.upper_bound(begin);
    if (it != persistent.end() && it->first < end)
      return LogicalResult(op->emitOpError("writes bytes ")
                           << begin << " to " << end
                           << ", which hold something that outlives the step");
    if (it == persistent.begin())
      return success();
    --it;
    if (getEnd(it->second) > begin &&
        (it->first != begin || getEnd(it->second) != end))
      return LogicalResult(op->emitOpError("writes bytes ")
                           << begin << " to " << end << ", a part of ["
                           << it->first << ", " << getEnd(it->second)
                           << "), which outlives the step");
    return success();
  };

  for (Operation &op : step.getBody().front()) {
    SmallVector<Value> reads, writes;
    if (auto launch = dyn_cast<rt::LaunchOp>(op)) {
      reads = launch.getInputs();
      writes = launch.getOutputs();
    } else if (auto gemm = dyn_cast<rt::GemmOp>(op)) {
      reads = {gemm.getA(), gemm.getB()};
      if (gemm.getBias())
        reads.push_back(gemm.getBias());
      writes = {gemm.getOutput(), gemm.getWorkspace()};
    } else if (!isa<rt::BufferOp, rt::UpdateOp, func::ReturnOp>(op)) {
      return op.emitOpError("needs to be in buffer form by now");
    }
    for (Value value : reads) {
      auto buffer = value.getDefiningOp<rt::BufferOp>();
      if (auto other =
              bytes.findOther(buffer.getOffset(), getEnd(buffer), buffer)) {
        InFlightDiagnostic error = op.emitOpError("reads bytes ")
                                   << int64_t(buffer.getOffset()) << " to "
                                   << getEnd(buffer)
                                   << ", which do not hold this value any more";
        error.attachNote(buffer.getLoc()) << "the value that is read";
        if (*other)
          error.attachNote(other->getLoc()) << "the value that is there";
        return error;
      }
    }
    for (auto [index, value] : llvm::enumerate(writes)) {
      auto buffer = value.getDefiningOp<rt::BufferOp>();
      if (failed(checkWrite(&op, buffer)))
        return failure();
      for (Value earlier : ArrayRef(writes).take_front(index)) {
        auto other = earlier.getDefiningOp<rt::BufferOp>();
        if (other.getOffset() < uint64_t(getEnd(buffer)) &&
            buffer.getOffset() < uint64_t(getEnd(other)))
          return op.emitOpError("writes two outputs to the same bytes, from ")
                 << int64_t(buffer.getOffset()) << " on";
      }
    }
    for (Value value : writes) {
      auto buffer = value.getDefiningOp<rt::BufferOp>();
      bytes.write(buffer.getOffset(), getEnd(buffer), buffer);
    }
  }
  return success();
}

void VerifyPlan::runOnOperation() {
  func::FuncOp step;
  for (auto function : getOperation().getOps<func::FuncOp>())
    if (!function.isExternal() && !function->hasAttr(rt::kKernelAttr))
      step = function;
  if (!step) {
    getOperation().emitError("needs a schedule to verify");
    return signalPassFailure();
  }
  if (failed(verifySizes(step)) || failed(verifyLives(step)))
    signalPassFailure();
}
