//===- VerifyPlan.cpp - Proof of a memory plan from its bytes ---*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"
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
/// The bytes from `begin` up to `end` of the arena.
struct Range {
  int64_t begin, end;

  bool operator==(Range other) const {
    return begin == other.begin && end == other.end;
  }
  bool overlaps(Range other) const {
    return begin < other.end && other.begin < end;
  }
};

Diagnostic &operator<<(Diagnostic &diagnostic, Range range) {
  return diagnostic << "[" << range.begin << ", " << range.end << ")";
}

/// Which rt.buffer each byte of the arena was last written through. Pieces are
/// disjoint; their number stays that of the live buffers.
class ByteMap {
public:
  struct Piece {
    int64_t end;
    rt::BufferOp writer;
  };

  void write(Range range, rt::BufferOp writer) {
    if (range.begin == range.end)
      return;
    split(range.begin);
    split(range.end);
    pieces.erase(pieces.lower_bound(range.begin),
                 pieces.lower_bound(range.end));
    pieces[range.begin] = {range.end, writer};
  }

  /// Who wrote `range`, piece by piece; null where nobody did.
  SmallVector<rt::BufferOp, 2> getWriters(Range range) const {
    SmallVector<rt::BufferOp, 2> writers;
    int64_t at = range.begin;
    auto it = pieces.upper_bound(at);
    if (it != pieces.begin() && std::prev(it)->second.end > at)
      --it;
    for (; at < range.end; ++it) {
      if (it == pieces.end() || it->first > at)
        writers.push_back({});
      if (it == pieces.end() || it->first >= range.end)
        break;
      writers.push_back(it->second.writer);
      at = it->second.end;
    }
    return writers;
  }

  const std::map<int64_t, Piece> &getPieces() const { return pieces; }

private:
  /// Makes `at` a border between pieces.
  void split(int64_t at) {
    auto it = pieces.upper_bound(at);
    if (it == pieces.begin())
      return;
    --it;
    if (it->first < at && at < it->second.end) {
      pieces[at] = it->second;
      it->second.end = at;
    }
  }

  std::map<int64_t, Piece> pieces;
};

/// The buffers that an op of the schedule touches, and which of its reads each
/// write may replace or has to.
struct Access {
  SmallVector<rt::BufferOp> reads, writes;
  /// For every read the write that has its bytes, or that may have them; -1
  /// for none.
  SmallVector<int64_t> inPlace, mayAlias;
};

class Verifier {
public:
  Verifier(ModuleOp module, func::FuncOp step)
      : module(module), step(step), symbols(module) {}

  LogicalResult verifySizes();
  LogicalResult verifyCategories();
  LogicalResult verifyPersistent();
  LogicalResult verifySchedule();

private:
  FailureOr<Access> getAccess(Operation *op);
  LogicalResult verifyReads(Operation *op, const Access &access);
  LogicalResult verifySharing(Operation *op, const Access &access);
  LogicalResult verifyWrites(Operation *op, const Access &access);

  ModuleOp module;
  func::FuncOp step;
  SymbolTable symbols;
  DictionaryAttr categories;
  int64_t arena = 0;
  /// Buffers whose bytes outlive the step or come from outside it.
  ByteMap persistent;
  ByteMap bytes;
  /// Whether the schedule has passed rt.update.
  bool isUpdate = false;
};

struct VerifyPlan : public memory::impl::VerifyPlanBase<VerifyPlan> {
  void runOnOperation() override;
};
} // namespace

static Range getRange(rt::BufferOp buffer) {
  int64_t begin = buffer.getOffset();
  return {begin, begin + getTypeBytes(buffer.getType())};
}

static rt::StateAttr getState(rt::BufferOp buffer) {
  return buffer->getAttrOfType<rt::StateAttr>(rt::kStateAttr);
}

static StringRef getRole(rt::BufferOp buffer) {
  auto role = buffer->getAttrOfType<StringAttr>(rt::kRoleAttr);
  return role ? role.getValue() : "";
}

/// "the moment1 of 'wte.weight'", "'tokens'".
static std::string describe(rt::BufferOp persistent) {
  if (rt::StateAttr state = getState(persistent))
    return ("the " + rt::stringifyStateKind(state.getKind()) + " of '" +
            state.getParameter() + "'")
        .str();
  return ("'" + getRole(persistent) + "'").str();
}

static StringRef getCategory(rt::BufferOp buffer) {
  if (rt::StateAttr state = getState(buffer))
    switch (state.getKind()) {
    case rt::StateKind::Parameter:
      return "parameters";
    case rt::StateKind::Gradient:
      return "gradients";
    case rt::StateKind::Moment1:
    case rt::StateKind::Moment2:
      return "optimizer state";
    }
  return getRole(buffer).empty() ? "activations" : "inputs and outputs";
}

//===----------------------------------------------------------------------===//
// The arena
//===----------------------------------------------------------------------===//

LogicalResult Verifier::verifySizes() {
  auto plan = module->getAttrOfType<DictionaryAttr>(rt::kPlanAttr);
  auto size = plan ? plan.getAs<IntegerAttr>("arena") : IntegerAttr();
  categories =
      plan ? plan.getAs<DictionaryAttr>("categories") : DictionaryAttr();
  if (!size || !categories)
    return step.emitError("needs 'rt.plan' with 'arena' and 'categories' on "
                          "the module");
  arena = size.getInt();
  int64_t end = 0;
  for (auto buffer : step.getOps<rt::BufferOp>()) {
    Type type = buffer.getType().getElementType();
    if (!type.isIntOrFloat())
      return buffer.emitOpError(
                 "needs elements of integers or floats, but got ")
             << type;
    int64_t offset = buffer.getOffset(), bytes = getTypeBytes(buffer.getType());
    if (bytes > arena || offset > arena - bytes)
      return buffer.emitOpError("needs to lie within the arena of ")
             << arena << " bytes, but has " << bytes << " bytes from " << offset
             << " on";
    int64_t element = (type.getIntOrFloatBitWidth() + 7) / 8;
    if (offset % element != 0)
      return buffer.emitOpError("needs an offset that is a multiple of its "
                                "element's ")
             << element << " bytes, but got " << offset;
    end = std::max(end, offset + bytes);
  }
  // Past the last buffer there is at most what rounds its size up.
  constexpr int64_t kMostAlignment = 4096;
  if (arena - end >= kMostAlignment)
    return step.emitError("needs an arena that ends with its last buffer, at ")
           << end << ", but it has " << arena << " bytes";
  return success();
}

LogicalResult Verifier::verifyCategories() {
  int64_t sum = 0;
  for (NamedAttribute category : categories) {
    auto bytes = dyn_cast<IntegerAttr>(category.getValue());
    if (!bytes || bytes.getInt() < 0 || bytes.getInt() > arena)
      return step.emitError("needs a number of bytes from 0 to ")
             << arena << " for the category " << category.getName()
             << ", but got " << category.getValue();
    sum += bytes.getInt();
  }
  if (sum != arena)
    return step.emitError("needs categories that add up to the arena of ")
           << arena << " bytes, but got " << sum;

  ByteMap all;
  for (auto buffer : step.getOps<rt::BufferOp>())
    all.write(getRange(buffer), buffer);
  for (auto &[begin, piece] : persistent.getPieces())
    all.write({begin, piece.end}, piece.writer);
  std::map<StringRef, int64_t> used;
  for (auto &[begin, piece] : all.getPieces())
    used[getCategory(piece.writer)] += piece.end - begin;
  for (auto [name, bytes] : used) {
    auto category = categories.getAs<IntegerAttr>(name);
    int64_t counted = category ? category.getInt() : 0;
    if (counted < bytes)
      return step.emitError("needs the bytes of all its buffers, ")
             << bytes << ", in the category '" << name << "', but got "
             << counted;
  }
  return success();
}

LogicalResult Verifier::verifyPersistent() {
  for (auto buffer : step.getOps<rt::BufferOp>()) {
    if (!getState(buffer) && getRole(buffer).empty())
      continue;
    for (rt::BufferOp other : persistent.getWriters(getRange(buffer))) {
      if (!other)
        continue;
      InFlightDiagnostic error =
          buffer.emitOpError("needs bytes of its own for ")
          << describe(buffer) << ", but shares some with " << describe(other);
      error.attachNote(other.getLoc()) << "which is here";
      return error;
    }
    persistent.write(getRange(buffer), buffer);
  }
  bytes = persistent;
  return success();
}

//===----------------------------------------------------------------------===//
// The schedule
//===----------------------------------------------------------------------===//

FailureOr<Access> Verifier::getAccess(Operation *op) {
  Access access;
  auto add = [&](SmallVector<rt::BufferOp> &list, Value value) {
    list.push_back(value.getDefiningOp<rt::BufferOp>());
  };
  auto launch = dyn_cast<rt::LaunchOp>(op);
  auto gemm = dyn_cast<rt::GemmOp>(op);
  if (launch) {
    for (Value input : launch.getInputs())
      add(access.reads, input);
    for (Value output : launch.getOutputs())
      add(access.writes, output);
  } else if (gemm) {
    for (Value input : {gemm.getA(), gemm.getB(), gemm.getBias()})
      if (input)
        add(access.reads, input);
    for (Value output : {Value(gemm.getOutput()), Value(gemm.getWorkspace())})
      if (output)
        add(access.writes, output);
  }
  if ((!launch && !gemm) || op->getNumResults() != 0 ||
      llvm::is_contained(access.reads, rt::BufferOp()) ||
      llvm::is_contained(access.writes, rt::BufferOp()))
    return op->emitOpError("needs to be a launch or a product on rt.buffers "
                           "by now");

  access.inPlace.resize(access.reads.size(), -1);
  access.mayAlias.resize(access.reads.size(), -1);
  if (!launch)
    return access;
  auto kernel = symbols.lookup<func::FuncOp>(launch.getKernel());
  if (!kernel)
    return op->emitOpError("needs its kernel to be a func.func still");
  for (unsigned index = 0; index < access.reads.size(); ++index)
    for (auto [name, numbers] :
         {std::pair(StringRef(rt::kInPlaceAttr), &access.inPlace),
          std::pair(StringRef(rt::kMayAliasAttr), &access.mayAlias)})
      if (auto number = kernel.getArgAttrOfType<IntegerAttr>(index, name)) {
        (*numbers)[index] = number.getInt();
        if (number.getInt() < 0 ||
            number.getInt() >= int64_t(access.writes.size()))
          return op->emitOpError("needs '")
                 << name << "' of its kernel to be one of "
                 << access.writes.size() << " outputs, but got "
                 << number.getInt();
      }
  return access;
}

LogicalResult Verifier::verifyReads(Operation *op, const Access &access) {
  for (rt::BufferOp buffer : access.reads)
    for (rt::BufferOp writer : bytes.getWriters(getRange(buffer))) {
      if (writer == buffer)
        continue;
      InFlightDiagnostic error = op->emitOpError("reads bytes ")
                                 << getRange(buffer)
                                 << (writer ? ", which do not hold this value "
                                              "any more"
                                            : ", which nothing has written");
      error.attachNote(buffer.getLoc()) << "the value that is read";
      if (writer)
        error.attachNote(writer.getLoc()) << "the value that is there";
      return error;
    }
  auto gemm = dyn_cast<rt::GemmOp>(op);
  if (!gemm || !gemm.getAccumulate())
    return success();
  Range sum = getRange(access.writes[0]);
  SmallVector<rt::BufferOp, 2> writers = bytes.getWriters(sum);
  if (writers.size() != 1 || !writers[0] || !(getRange(writers[0]) == sum))
    return op->emitOpError("adds to bytes ")
           << sum << ", which do not hold one value to add to";
  return success();
}

/// Bytes that are read and written by one op, or written twice.
LogicalResult Verifier::verifySharing(Operation *op, const Access &access) {
  for (auto [number, write] : llvm::enumerate(access.writes)) {
    Range range = getRange(write);
    for (rt::BufferOp other : ArrayRef(access.writes).take_front(number))
      if (getRange(other).overlaps(range))
        return op->emitOpError("writes two outputs to the same bytes, ")
               << getRange(other) << " and " << range;
    for (auto [index, read] : llvm::enumerate(access.reads)) {
      if (!getRange(read).overlaps(range))
        continue;
      bool isAllowed = access.inPlace[index] == int64_t(number) ||
                       access.mayAlias[index] == int64_t(number);
      if (!isAllowed || !(getRange(read) == range))
        return op->emitOpError("writes output #")
               << number << " to " << range << ", over its input #" << index
               << " in " << getRange(read)
               << (isAllowed ? "; they may share all bytes or none"
                             : ", which it still reads");
    }
  }
  for (auto [index, number] : llvm::enumerate(access.inPlace))
    if (number >= 0 &&
        !(getRange(access.reads[index]) == getRange(access.writes[number])))
      return op->emitOpError("needs output #")
             << number << " in place of input #" << index << ", in "
             << getRange(access.reads[index]) << ", but it is in "
             << getRange(access.writes[number]);
  return success();
}

/// Whether `write` replaces a value of the same bytes.
static bool isInPlace(Operation *op, const Access &access, unsigned write) {
  if (auto gemm = dyn_cast<rt::GemmOp>(op))
    return write == 0 && gemm.getAccumulate();
  return llvm::is_contained(access.inPlace, int64_t(write));
}

/// What outlives the step changes as a whole, from its old value, and only
/// where no other micro-batch still needs that.
LogicalResult Verifier::verifyWrites(Operation *op, const Access &access) {
  for (auto [number, write] : llvm::enumerate(access.writes)) {
    Range range = getRange(write);
    for (rt::BufferOp state : persistent.getWriters(range)) {
      if (!state)
        continue;
      StringRef role = getRole(state);
      bool isOutput = role == "loss" || role == "grad_norm";
      bool isMadeHere = isOutput && write == state;
      if (!isMadeHere &&
          !(getRange(state) == range && isInPlace(op, access, number)))
        return op->emitOpError("writes bytes ")
               << range << " over " << describe(state) << " in "
               << getRange(state) << ", which outlives the step";
      bool isState = bool(getState(state));
      if (!isState && !isOutput)
        return op->emitOpError("writes the input ") << describe(state);
      if (isState && !isUpdate &&
          getState(state).getKind() != rt::StateKind::Gradient)
        return op->emitOpError("writes ")
               << describe(state)
               << " above rt.update, where the next micro-batch needs it";
    }
    bytes.write(range, write);
  }
  return success();
}

LogicalResult Verifier::verifySchedule() {
  for (Operation &op : step.getBody().front()) {
    if (isa<rt::BufferOp, func::ReturnOp>(op))
      continue;
    if (isa<rt::UpdateOp>(op)) {
      isUpdate = true;
      continue;
    }
    FailureOr<Access> access = getAccess(&op);
    if (failed(access) || failed(verifyReads(&op, *access)) ||
        failed(verifySharing(&op, *access)) ||
        failed(verifyWrites(&op, *access)))
      return failure();
  }
  return success();
}

void VerifyPlan::runOnOperation() {
  SmallVector<func::FuncOp> schedules;
  for (auto function : getOperation().getOps<func::FuncOp>())
    if (!function.isExternal() && !function->hasAttr(rt::kKernelAttr))
      schedules.push_back(function);
  if (schedules.size() != 1 || !schedules[0].getBody().hasOneBlock()) {
    getOperation().emitError("needs one schedule of one block to verify, but "
                             "got ")
        << schedules.size() << " functions that are no kernels";
    return signalPassFailure();
  }
  Verifier verifier(getOperation(), schedules[0]);
  if (failed(verifier.verifySizes()) || failed(verifier.verifyPersistent()) ||
      failed(verifier.verifyCategories()) || failed(verifier.verifySchedule()))
    signalPassFailure();
}
