//===- VerifyPlan.cpp - Proof of a memory plan from its bytes ---*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InFlight.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/NN/Schedules.h"
#include "reprise/Dialect/RT/RTExpertRankOps.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Dialect/RT/ScheduledOp.h"
#include "reprise/Interfaces/CostModel.h"
#include "reprise/Memory/Passes.h"
#include "llvm/ADT/MapVector.h"
#include <deque>
#include <map>

namespace reprise::memory {
#define GEN_PASS_DEF_VERIFYPLAN
#include "reprise/Memory/Passes.h.inc"
} // namespace reprise::memory

using namespace mlir;
using namespace reprise;
using memory::ByteRange;
using memory::getRange;

namespace {
/// Which rt.buffer each byte of the arenas was last written through, or through
/// a part of which. Pieces are disjoint; their number stays that of the live
/// buffers.
class ByteMap {
public:
  void write(ByteRange range, rt::BufferOp writer) {
    if (range.begin == range.end)
      return;
    std::map<int64_t, Piece> &pieces = spaces[range.space];
    split(pieces, range.begin);
    split(pieces, range.end);
    pieces.erase(pieces.lower_bound(range.begin),
                 pieces.lower_bound(range.end));
    pieces[range.begin] = {range.end, writer};
  }

  /// Who wrote `range`, piece by piece; null where nobody did.
  SmallVector<rt::BufferOp, 2> getWriters(ByteRange range) const {
    SmallVector<rt::BufferOp, 2> writers;
    auto space = spaces.find(range.space);
    if (space == spaces.end() || range.begin == range.end)
      return SmallVector<rt::BufferOp, 2>(range.begin != range.end);
    const std::map<int64_t, Piece> &pieces = space->second;
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

  /// All that was written, and by whom.
  SmallVector<std::pair<ByteRange, rt::BufferOp>> getPieces() const {
    SmallVector<std::pair<ByteRange, rt::BufferOp>> all;
    for (auto &[space, pieces] : spaces)
      for (auto &[begin, piece] : pieces)
        all.push_back({ByteRange{space, begin, piece.end}, piece.writer});
    return all;
  }

private:
  struct Piece {
    int64_t end;
    rt::BufferOp writer;
  };

  /// Makes `at` a border between pieces.
  static void split(std::map<int64_t, Piece> &pieces, int64_t at) {
    auto it = pieces.upper_bound(at);
    if (it == pieces.begin())
      return;
    --it;
    if (it->first < at && at < it->second.end) {
      pieces[at] = it->second;
      it->second.end = at;
    }
  }

  std::map<rt::Space, std::map<int64_t, Piece>> spaces; ///< by first byte
};

/// The buffers that an op of the schedule touches, and which of its reads each
/// write may replace or has to.
struct Access {
  SmallVector<rt::BufferOp> reads, writes;
  /// For every read the write that has its bytes, or that may have them; -1
  /// for none.
  SmallVector<int64_t> inPlace, mayAlias;
};

/// The proof for one schedule. Others have a `step` beside them: what outlives
/// a schedule is as that has it. `@evaluate` and `@sample` only read it;
/// `@push_level_0` and others change sums over micro-batches.
class Verifier {
public:
  Verifier(const SymbolTable &symbols, func::FuncOp function, rt::PlanAttr plan,
           const Verifier *step)
      : symbols(symbols), function(function), plan(plan), step(step) {}

  LogicalResult verify();

  /// The end of the last buffer of `space`.
  int64_t getEnd(rt::Space space) const {
    auto found = ends.find(space);
    return found == ends.end() ? 0 : found->second;
  }

private:
  LogicalResult verifySizes();
  LogicalResult verifyCategories();
  LogicalResult verifyCategories(rt::ArenaAttr arena, const ByteMap &all);
  LogicalResult verifyPersistent();
  LogicalResult verifyShared(rt::BufferOp buffer);
  LogicalResult verifySchedule();
  LogicalResult verifyOutputs();
  FailureOr<Access> getAccess(Operation *op);
  LogicalResult verifyReads(Operation *op, const Access &access);
  LogicalResult verifySharing(Operation *op, const Access &access);
  LogicalResult verifyWrites(Operation *op, const Access &access);
  LogicalResult verifyMade(Operation *op, rt::BufferOp gradient,
                           ByteRange range);
  LogicalResult verifyGradients();
  LogicalResult verifyPartials();
  LogicalResult verifyTerm(Operation *op, const Access &access,
                           rt::BufferOp sum);
  void noteReaders(Operation *op, const Access &access);
  LogicalResult verifyTerms();
  bool isSumOfBatches(rt::StateAttr state) const;
  LogicalResult verifyPushed();
  bool mayChange(rt::BufferOp settled) const;

  const SymbolTable &symbols;
  func::FuncOp function;
  rt::PlanAttr plan;
  const Verifier *step; ///< Null for the step itself.
  std::map<rt::Space, int64_t> ends;
  /// Buffers whose bytes outlive the step or come from outside it; and with the
  /// gradients that were made up to now, all that changes in place alone.
  ByteMap persistent, settled;
  ByteMap bytes;
  /// States whose old values were read, and those written below rt.update.
  DenseSet<rt::BufferOp> readStates, updatedStates;
  memory::InFlight inFlight;
  /// What was added to a sum, by the values it was made of; its first reader.
  struct Sum {
    SmallVector<SmallVector<Operation *>> terms;
    Operation *reader = nullptr;
  };
  llvm::MapVector<Operation *, Sum> sums;
  /// Whether the schedule has passed rt.update.
  bool isUpdate = false;
};

struct VerifyPlan : public memory::impl::VerifyPlanBase<VerifyPlan> {
  void runOnOperation() override;
  FailureOr<SmallVector<func::FuncOp>> findSchedules();
};
} // namespace

static rt::StateAttr getState(rt::BufferOp buffer) {
  return buffer->getAttrOfType<rt::StateAttr>(rt::kStateAttr);
}

/// A gradient that the step makes from nothing. It does not outlive the step.
static bool isMade(rt::BufferOp buffer) {
  rt::StateAttr state = getState(buffer);
  return state && state.getInit() == rt::StateInit::None;
}

static bool isRotary(rt::BufferOp buffer) {
  return buffer->hasAttr(rt::kRotaryAttr);
}

static StringRef getRole(rt::BufferOp buffer) {
  auto role = buffer->getAttrOfType<StringAttr>(rt::kRoleAttr);
  return role ? role.getValue() : "";
}

/// Inputs and outputs of what runs between two steps alone: they lie where
/// activations of the step do.
static bool isInput(StringRef role) {
  return role == "sample_tokens" || role == "position";
}
static bool isOutput(StringRef role) {
  return role == "eval_loss" || role == "logits";
}

/// "the moment1 of 'wte.weight'", "'tokens'".
static std::string describe(rt::BufferOp persistent) {
  if (rt::StateAttr state = getState(persistent)) {
    bool isWorking = state.getKind() == rt::StateKind::Working;
    return ("the " + rt::stringifyStateKind(state.getKind()) +
            (isWorking ? " copy of '" : " of '") + state.getParameter() + "'")
        .str();
  }
  if (isRotary(persistent))
    return "the rotary table";
  return ("'" + getRole(persistent) + "'").str();
}

static rt::Category getCategory(rt::BufferOp buffer) {
  if (rt::StateAttr state = getState(buffer))
    switch (state.getKind()) {
    case rt::StateKind::Parameter:
    case rt::StateKind::Working:
      return rt::Category::Parameters;
    case rt::StateKind::Gradient:
    case rt::StateKind::Partial:
      return rt::Category::Gradients;
    case rt::StateKind::Moment1:
    case rt::StateKind::Moment2:
      return rt::Category::OptimizerState;
    case rt::StateKind::Measure:
      return rt::Category::InputsAndOutputs;
    }
  StringRef role = getRole(buffer);
  bool outlivesStep =
      isRotary(buffer) || !(role.empty() || isInput(role) || isOutput(role));
  return outlivesStep ? rt::Category::InputsAndOutputs
                      : rt::Category::Activations;
}

//===----------------------------------------------------------------------===//
// The arena
//===----------------------------------------------------------------------===//

LogicalResult Verifier::verifySizes() {
  for (auto buffer : function.getOps<rt::BufferOp>()) {
    Type type = buffer.getType().getElementType();
    if (!type.isIntOrFloat())
      return buffer.emitOpError(
                 "needs elements of integers or floats, but got ")
             << type;
    ByteRange range = getRange(buffer);
    int64_t offset = range.begin, bytes = getTypeBytes(buffer.getType());
    rt::ArenaAttr arena = plan.getArena(range.space);
    if (!arena)
      return buffer.emitOpError("needs an arena of its space, ")
             << rt::stringifySpace(range.space)
             << ", in 'rt.plan' of the module, but there is none";
    if (bytes > arena.getBytes() || offset > arena.getBytes() - bytes)
      return buffer.emitOpError("needs to lie within the arena of ")
             << arena.getBytes() << " bytes, but has " << bytes
             << " bytes from " << offset << " on";
    int64_t element = (type.getIntOrFloatBitWidth() + 7) / 8;
    if (offset % element != 0)
      return buffer.emitOpError("needs an offset that is a multiple of its "
                                "element's ")
             << element << " bytes, but got " << offset;
    ends[range.space] = std::max(ends[range.space], offset + bytes);
  }
  return success();
}

LogicalResult Verifier::verifyCategories() {
  // What takes turns with a gradient in its bytes is counted as that.
  ByteMap all;
  for (bool made : {false, true})
    for (auto buffer : function.getOps<rt::BufferOp>())
      if (isMade(buffer) == made)
        all.write(getRange(buffer), buffer);
  for (auto [range, writer] : persistent.getPieces())
    all.write(range, writer);
  for (rt::ArenaAttr arena : plan.getArenas())
    if (failed(verifyCategories(arena, all)))
      return failure();
  return success();
}

LogicalResult Verifier::verifyCategories(rt::ArenaAttr arena,
                                         const ByteMap &all) {
  std::map<rt::Category, int64_t> counted, used;
  int64_t sum = 0, within = 0;
  for (rt::CategoryBytesAttr category : arena.getCategories()) {
    counted[category.getCategory()] += category.getBytes();
    sum += category.getBytes();
  }
  if (sum != arena.getBytes())
    return function.emitError("needs categories that add up to the arena of ")
           << arena.getBytes() << " bytes, but got " << sum;
  for (auto [range, writer] : all.getPieces())
    if (range.space == arena.getSpace())
      (isMade(writer) ? within : used[getCategory(writer)]) +=
          range.end - range.begin;
  for (auto [category, bytes] : used)
    if (counted[category] < bytes)
      return function.emitError("needs the bytes of all its buffers, ")
             << bytes << ", in the category '"
             << rt::stringifyCategory(category) << "', but got "
             << counted[category];
  constexpr rt::Category kGradients = rt::Category::Gradients,
                         kActivations = rt::Category::Activations;
  within += used[kGradients] + used[kActivations];
  if (counted[kGradients] + counted[kActivations] < within)
    return function.emitError("needs the bytes of all its buffers, ")
           << within << ", in the categories 'gradients' and 'activations', "
           << "but got " << counted[kGradients] + counted[kActivations];
  return success();
}

/// What outlives the schedules is one thing in all of them.
LogicalResult Verifier::verifyShared(rt::BufferOp buffer) {
  ByteRange range = getRange(buffer);
  SmallVector<rt::BufferOp, 2> there = step->persistent.getWriters(range);
  if (there.size() != 1 || !there[0] || !(getRange(there[0]) == range) ||
      there[0].getType() != buffer.getType() ||
      there[0]->getAttrDictionary() != buffer->getAttrDictionary()) {
    InFlightDiagnostic error = buffer.emitOpError("needs bytes ")
                               << range << " to be " << describe(buffer)
                               << " in @step too, but they are not";
    if (!there.empty() && there[0])
      error.attachNote(there[0].getLoc()) << "this is there";
    return error;
  }
  persistent.write(range, buffer);
  return success();
}

LogicalResult Verifier::verifyPersistent() {
  if (step)
    persistent = step->persistent;
  auto count = function->getAttrOfType<IntegerAttr>(nn::kMicroBatchesAttr);
  for (auto buffer : function.getOps<rt::BufferOp>()) {
    if (getCategory(buffer) == rt::Category::Activations)
      continue;
    if (isMade(buffer) && !step) {
      if (count && count.getInt() != 1)
        return buffer.emitOpError("needs ")
               << describe(buffer) << " to be there before the step, where "
               << "each of " << count.getInt() << " micro-batches adds to it";
      continue;
    }
    if (step) {
      if (failed(verifyShared(buffer)))
        return failure();
      continue;
    }
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
  bytes = settled = persistent;
  // What else is there before the schedule, and may be gone behind it.
  for (auto buffer : function.getOps<rt::BufferOp>()) {
    if (!isInput(getRole(buffer)))
      continue;
    for (rt::BufferOp other : bytes.getWriters(getRange(buffer)))
      if (other)
        return buffer.emitOpError("needs bytes of its own for ")
               << describe(buffer) << ", but shares some with "
               << describe(other);
    bytes.write(getRange(buffer), buffer);
  }
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
  auto collective = dyn_cast<rt::CollectiveOp>(op);
  auto other = dyn_cast<rt::ScheduledOp>(op);
  if (launch) {
    for (Value input : launch.getInputs())
      add(access.reads, input);
    for (Value output : launch.getOutputs())
      add(access.writes, output);
  } else if (gemm) {
    for (Value input : {gemm.getA(), gemm.getB(), gemm.getBias(),
                        gemm.getOffsets(), gemm.getOrder()})
      if (input)
        add(access.reads, input);
    for (Value output : {Value(gemm.getOutput()), Value(gemm.getAux()),
                         Value(gemm.getWorkspace())})
      if (output)
        add(access.writes, output);
  } else if (collective) {
    for (Value input : collective.getInputs())
      add(access.reads, input);
    for (Value output : collective.getOutputs())
      add(access.writes, output);
    if (collective.getWorkspace())
      add(access.writes, collective.getWorkspace());
  } else if (other) {
    for (Value input : other.getReads())
      add(access.reads, input);
    for (Value output : other.getWrites())
      add(access.writes, output);
    if (Value workspace = other.getWorkspaceBuffer())
      add(access.writes, workspace);
  }
  if (!other || op->getNumResults() != 0 ||
      llvm::is_contained(access.reads, rt::BufferOp()) ||
      llvm::is_contained(access.writes, rt::BufferOp()))
    return op->emitOpError("needs to be a launch, a GEMM, a collective or a "
                           "transfer on rt.buffers by now");

  access.inPlace.resize(access.reads.size(), -1);
  access.mayAlias.resize(access.reads.size(), -1);
  if (collective)
    for (unsigned index = 0; index < access.reads.size(); ++index)
      access.inPlace[index] = collective.getMadeInPlaceOf(index);
  if (auto wait = dyn_cast<rt::WaitOp>(op))
    for (unsigned index = 0; index < wait.getMade().size(); ++index)
      access.inPlace[index] = index;
  if (auto rows = dyn_cast<rt::ReturnRowsOp>(op); rows && rows.getKeeps())
    access.inPlace.back() = 0;
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
      if (writer == buffer.getRoot()) {
        if (getState(writer))
          readStates.insert(writer);
        continue;
      }
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
  ByteRange sum = getRange(access.writes[0]);
  SmallVector<rt::BufferOp, 2> writers = bytes.getWriters(sum);
  if (writers.size() != 1 || !writers[0] || !(getRange(writers[0]) == sum))
    return op->emitOpError("adds to bytes ")
           << sum << ", which do not hold one value to add to";
  if (getState(writers[0]))
    readStates.insert(writers[0]);
  return success();
}

/// Bytes that are read and written by one op, or written twice.
LogicalResult Verifier::verifySharing(Operation *op, const Access &access) {
  for (auto [number, write] : llvm::enumerate(access.writes)) {
    ByteRange range = getRange(write);
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

/// A gradient that starts from nothing is written once, in bytes of its own
/// from then on, through the buffer that says which it is.
LogicalResult Verifier::verifyMade(Operation *op, rt::BufferOp gradient,
                                   ByteRange range) {
  if (!(getRange(gradient) == range))
    return op->emitOpError("writes bytes ")
           << range << " of " << describe(gradient) << " in "
           << getRange(gradient) << ", which is made as a whole";
  for (rt::BufferOp state : settled.getWriters(range)) {
    if (!state)
      continue;
    if (state == gradient)
      return op->emitOpError("writes ")
             << describe(gradient) << " to bytes " << range
             << ", where the step has made it before";
    InFlightDiagnostic error = op->emitOpError("writes ")
                               << describe(gradient) << " to bytes " << range
                               << ", over " << describe(state) << " in "
                               << getRange(state);
    error.attachNote(state.getLoc()) << "which is here";
    return error;
  }
  settled.write(range, gradient);
  return success();
}

/// What each micro-batch adds to, besides the loss.
static bool isSummed(rt::StateAttr state) {
  return state.getKind() == rt::StateKind::Gradient ||
         state.getKind() == rt::StateKind::Measure;
}

static bool isOfStage(func::FuncOp function) {
  auto module = function->getParentOfType<ModuleOp>();
  return module && module->hasAttr(nn::kStageAttr);
}

/// Whether micro-batches may change a state: add to it, or on a stage, whose
/// step has all of them, put what was added aside there.
bool Verifier::isSumOfBatches(rt::StateAttr state) const {
  return isSummed(state) ||
         (state.getKind() == rt::StateKind::Partial && isOfStage(function));
}

/// A micro-batch adds nothing twice, and nothing behind who reads the sum.
LogicalResult Verifier::verifyTerm(Operation *op, const Access &access,
                                   rt::BufferOp sum) {
  SmallVector<Operation *> term;
  bool isUpdated = false;
  auto isSettled = [&](rt::BufferOp read) {
    return llvm::any_of(settled.getWriters(getRange(read)),
                        [](rt::BufferOp there) { return bool(there); });
  };
  for (rt::BufferOp read : access.reads)
    if (!isSettled(read))
      term.push_back(read.getRoot());
  for (rt::BufferOp other : access.writes)
    for (rt::BufferOp state : settled.getWriters(getRange(other)))
      if (state && getState(state))
        isUpdated |= !isSumOfBatches(getState(state));
  // What puts a sum aside, or makes it zero, reads no more than sums.
  if (isUpdated || (term.empty() && !isa<rt::CollectiveOp>(op)))
    return success();
  Sum &known = sums[sum];
  if (known.reader) {
    InFlightDiagnostic error = op->emitOpError("adds to ")
                               << describe(sum) << " in " << getRange(sum)
                               << ", which was read as a whole before";
    error.attachNote(known.reader->getLoc()) << "here";
    return error;
  }
  if (isUpdate || term.empty())
    return success();
  if (llvm::is_contained(known.terms, term))
    return op->emitOpError("adds to ")
           << describe(sum) << " in " << getRange(sum)
           << " what was added to it before";
  known.terms.push_back(std::move(term));
  return success();
}

/// Who reads a sum and does not add to it.
void Verifier::noteReaders(Operation *op, const Access &access) {
  for (auto [index, read] : llvm::enumerate(access.reads)) {
    bool isPlain = access.inPlace[index] < 0 && !isa<rt::CollectiveOp>(op);
    for (rt::BufferOp settledHere : settled.getWriters(getRange(read))) {
      rt::StateAttr state =
          settledHere ? getState(settledHere) : rt::StateAttr();
      if (isPlain && state && state.getKind() == rt::StateKind::Gradient)
        sums[settledHere].reader = op;
    }
  }
}

/// Micro-batches have added to each sum of gradients as often.
LogicalResult Verifier::verifyTerms() {
  auto count = function->getAttrOfType<IntegerAttr>(nn::kMicroBatchesAttr);
  if (step || !isOfStage(function) || !count || !isUpdate)
    return success();
  for (auto buffer : function.getOps<rt::BufferOp>()) {
    rt::StateAttr state = getState(buffer);
    if (!state || state.getKind() != rt::StateKind::Gradient ||
        !llvm::is_contained(persistent.getWriters(getRange(buffer)), buffer))
      continue;
    int64_t terms = sums.lookup(buffer).terms.size();
    if (terms == 0 || terms % count.getInt() != 0)
      return buffer.emitOpError("needs each of ")
             << count.getInt() << " micro-batches to add to "
             << describe(buffer) << " as often, but they do so " << terms
             << " times in all";
  }
  return success();
}

/// The update adds those partial sums that wait for the last group, and what
/// puts sums aside adds all below its level.
LogicalResult Verifier::verifyPartials() {
  std::optional<unsigned> level = nn::getPushLevel(function);
  if (step && !level)
    return success();
  int64_t groups = nn::getReductionGroups(function);
  for (auto [range, writer] : persistent.getPieces()) {
    rt::StateAttr state = getState(writer);
    // What is written over is an operand, too.
    if (!state || state.getKind() != rt::StateKind::Partial ||
        (level && state.getLevel() == int64_t(*level)))
      continue;
    bool isAdded = level ? state.getLevel() < int64_t(*level)
                         : nn::waitsForLast(state.getLevel(), groups);
    // The step of a stage puts sums aside by itself, with older ones.
    bool mayRead = isAdded || (!level && isOfStage(function));
    bool isRead = readStates.contains(writer);
    if (isRead ? !mayRead : isAdded)
      return function.emitError("needs ")
             << (isAdded ? "to add " : "not to add ") << describe(writer)
             << ", level " << state.getLevel() << ", in " << range;
  }
  return success();
}

/// What a schedule beside a step may change: one that puts sums aside these,
/// and what it puts them into.
bool Verifier::mayChange(rt::BufferOp settled) const {
  std::optional<unsigned> level = nn::getPushLevel(function);
  if (rt::StateAttr state = getState(settled); level && state)
    return isSummed(state) || (state.getKind() == rt::StateKind::Partial &&
                               state.getLevel() == int64_t(*level));
  return level && getRole(settled) == "loss";
}

/// A schedule that puts sums aside does so with each sum of the step.
LogicalResult Verifier::verifyPushed() {
  if (!nn::getPushLevel(function))
    return success();
  int64_t sums = 0, partials = 0;
  for (auto [range, writer] : persistent.getPieces()) {
    if (!mayChange(writer))
      continue;
    rt::StateAttr state = getState(writer);
    bool isPartial = state && state.getKind() == rt::StateKind::Partial;
    ++(isPartial ? partials : sums);
    if (!updatedStates.contains(writer))
      return function.emitError("needs to change ")
             << describe(writer) << " in " << range
             << ", as all that is summed over micro-batches, but does not";
  }
  if (sums != partials)
    return function.emitError("needs a partial sum for each of ")
           << sums << " sums over micro-batches, but got " << partials;
  return success();
}

/// What is settled changes as a whole, from its old value, and only where no
/// other micro-batch still needs it.
LogicalResult Verifier::verifyWrites(Operation *op, const Access &access) {
  for (auto [number, write] : llvm::enumerate(access.writes)) {
    ByteRange range = getRange(write);
    rt::BufferOp root = rt::BufferOp(write).getRoot();
    if (root != write && llvm::is_contained(bytes.getWriters(range), root))
      return op->emitOpError("writes bytes ")
             << range << " of the value in " << getRange(root)
             << " a second time";
    if (isMade(root)) {
      if (isInPlace(op, access, number))
        return op->emitOpError("changes ") << describe(root) << " in " << range
                                           << ", which starts from nothing";
      if (isUpdate)
        return op->emitOpError("makes ")
               << describe(root) << " in " << range
               << " below rt.update, whose norm is that of all gradients";
      if (failed(verifyMade(op, root, range)))
        return failure();
      bytes.write(range, root);
      continue;
    }
    for (rt::BufferOp state : settled.getWriters(range)) {
      if (!state)
        continue;
      StringRef role = getRole(state);
      bool isResult = role == "loss" || role == "grad_norm";
      bool isMadeHere = isResult && !step && root == state;
      bool isWhole = getRange(state) == range;
      bool isSum = getState(state) && isSumOfBatches(getState(state));
      if (step && !mayChange(state))
        return op->emitOpError("writes bytes ")
               << range << " over " << describe(state) << " in "
               << getRange(state) << ", which @" << function.getName()
               << " may only read";
      if (!isMadeHere && !(isWhole && isInPlace(op, access, number)))
        return op->emitOpError("writes bytes ")
               << range << " over " << describe(state) << " in "
               << getRange(state)
               << (isMade(state) ? ", which stays to the end of the step"
                                 : ", which outlives the step");
      bool isState = bool(getState(state));
      if (!isState && !isResult)
        return op->emitOpError(isRotary(state) ? "writes "
                                               : "writes the input ")
               << describe(state) << ", which is given";
      if (isState && getState(state).getKind() == rt::StateKind::Gradient &&
          !step && isOfStage(function) && failed(verifyTerm(op, access, state)))
        return failure();
      if (isUpdate || step)
        updatedStates.insert(state);
      if (isState && !isUpdate && !isSum && !step)
        return op->emitOpError("writes ")
               << describe(state)
               << " above rt.update, where the next micro-batch needs it";
    }
    bytes.write(range, root);
  }
  return success();
}

LogicalResult Verifier::verifySchedule() {
  for (Operation &op : function.getBody().front()) {
    if (isa<rt::BufferOp, func::ReturnOp>(op))
      continue;
    if (isa<rt::UpdateOp>(op)) {
      if (failed(inFlight.endPart("rt.update")))
        return failure();
      isUpdate = true;
      continue;
    }
    FailureOr<Access> access = getAccess(&op);
    if (failed(access) || failed(inFlight.visit(&op)) ||
        failed(verifyReads(&op, *access)) ||
        failed(verifySharing(&op, *access)) ||
        failed(verifyWrites(&op, *access)))
      return failure();
    if (!step && isOfStage(function))
      noteReaders(&op, *access);
  }
  return inFlight.endPart("the end");
}

/// A step makes every gradient in its place, and leaves one that it has added
/// to as the next step needs it.
LogicalResult Verifier::verifyGradients() {
  for (auto buffer : function.getOps<rt::BufferOp>()) {
    rt::StateAttr state = getState(buffer);
    if (!isUpdate || !state || state.getKind() != rt::StateKind::Gradient)
      continue;
    ByteRange range = getRange(buffer);
    bool isWritten =
        isMade(buffer)
            ? llvm::all_equal(settled.getWriters(range)) &&
                  llvm::is_contained(settled.getWriters(range), buffer)
            : !llvm::is_contained(bytes.getWriters(range), buffer);
    if (!isWritten)
      return buffer.emitOpError("needs ")
             << describe(buffer) << " to be made in bytes " << range
             << ", but nothing writes them";
    if (!isMade(buffer) && readStates.contains(buffer) &&
        !updatedStates.contains(buffer))
      return buffer.emitOpError("needs ")
             << describe(buffer)
             << ", to which the step adds, to be replaced below rt.update: "
                "the next step adds to what is left there";
  }
  return success();
}

/// What the runtime reads is there when the schedule has run. (What of this
/// outlives the step is never written over.)
LogicalResult Verifier::verifyOutputs() {
  for (auto buffer : function.getOps<rt::BufferOp>()) {
    if (!isOutput(getRole(buffer)))
      continue;
    ByteRange range = getRange(buffer);
    for (rt::BufferOp writer : bytes.getWriters(range))
      if (writer != buffer)
        return buffer.emitOpError("needs bytes ")
               << range << " to hold " << describe(buffer)
               << " at the end, but they "
               << (writer ? "were written over" : "were never written");
  }
  return success();
}

LogicalResult Verifier::verify() {
  return failure(failed(verifySizes()) || failed(verifyPersistent()) ||
                 failed(verifyCategories()) || failed(verifySchedule()) ||
                 failed(verifyGradients()) || failed(verifyPartials()) ||
                 failed(verifyTerms()) || failed(verifyPushed()) ||
                 failed(verifyOutputs()));
}

//===----------------------------------------------------------------------===//
// All schedules
//===----------------------------------------------------------------------===//

/// The functions that are no kernels, the step first.
FailureOr<SmallVector<func::FuncOp>> VerifyPlan::findSchedules() {
  SmallVector<func::FuncOp> schedules = nn::getSchedules(getOperation());
  for (auto function : getOperation().getOps<func::FuncOp>()) {
    if (function.isExternal() || function->hasAttr(rt::kKernelAttr))
      continue;
    if (!llvm::is_contained(schedules, function))
      return function.emitError(
          "needs to be a kernel, or @step, @evaluate, "
          "@sample or @push_level_0 and so on, to be verified");
    if (!function.getBody().hasOneBlock())
      return function.emitError("needs one block to be verified, but got ")
             << function.getBody().getBlocks().size();
  }
  llvm::erase_if(schedules, [](func::FuncOp function) {
    return !function || function.isExternal();
  });
  if (schedules.empty() || schedules[0].getName() != nn::kStepFunction)
    return getOperation().emitError("needs a schedule @step to verify");
  return schedules;
}

void VerifyPlan::runOnOperation() {
  FailureOr<SmallVector<func::FuncOp>> schedules = findSchedules();
  if (failed(schedules))
    return signalPassFailure();
  func::FuncOp step = schedules->front();
  auto plan = getOperation()->getAttrOfType<rt::PlanAttr>(rt::kPlanAttr);
  if (!plan) {
    step.emitError("needs 'rt.plan' on the module");
    return signalPassFailure();
  }
  SymbolTable symbols(getOperation());
  std::deque<Verifier> verifiers;
  for (func::FuncOp schedule : *schedules) {
    verifiers.emplace_back(symbols, schedule, plan,
                           verifiers.empty() ? nullptr : &verifiers.front());
    if (failed(verifiers.back().verify()))
      return signalPassFailure();
  }
  // Past the last buffer there is at most what rounds its size up.
  auto recorded =
      getOperation()->getAttrOfType<IntegerAttr>(rt::kAlignmentAttr);
  int64_t alignment = recorded ? recorded.getInt() : rt::kDefaultAlignment;
  for (rt::ArenaAttr arena : plan.getArenas()) {
    int64_t end = 0;
    for (const Verifier &verifier : verifiers)
      end = std::max(end, verifier.getEnd(arena.getSpace()));
    if (arena.getBytes() - end < alignment)
      continue;
    step.emitError("needs an arena that ends with its last buffer, at ")
        << end << ", rounded up to the alignment of " << alignment
        << ", but it has " << arena.getBytes() << " bytes";
    return signalPassFailure();
  }
}
