//===- AnnotateLayout.cpp - How values are spread over ranks ----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layout.h"
#include "mlir/IR/BuiltinOps.h"
#include "reprise/Interfaces/Facts.h"
#include "reprise/Partition/Passes.h"

namespace reprise::partition {
#define GEN_PASS_DEF_ANNOTATELAYOUT
#include "reprise/Partition/Passes.h.inc"
} // namespace reprise::partition

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;
using namespace reprise::partition;

namespace {
/// Gives each value of one function its word along `tp`.
class Annotator {
public:
  Annotator(func::FuncOp forward, MeshAttr mesh, bool isSequenceParallel)
      : forward(forward), ranks(mesh.getSize(kTensorAxis)),
        isSequenceParallel(isSequenceParallel),
        hasWhole(hasWholeExperts(mesh)) {}
  LogicalResult run();

private:
  /// Finds the heads of keys and values that ranks have copies of, and makes
  /// the mesh have the axes for them.
  LogicalResult findCopies();
  LogicalResult noteCopies(Operation *reader, Value value, int64_t count);
  LogicalResult addAxes(Operation *op, int64_t count);
  /// Refuses what `ranks` does not divide.
  LogicalResult check(Operation *op);
  LogicalResult checkHeads(Partitionable op);
  LogicalResult checkDivides(Operation *op, int64_t size, StringRef what,
                             Value cut = {});

  /// The word of the first result of `op`; gives parameters theirs.
  FailureOr<Spread> spread(Operation *op);
  FailureOr<Spread> spreadLinear(Operation *op);
  FailureOr<Spread> spreadNorm(Operation *op);
  FailureOr<Spread> spreadEmbedding(Operation *op);
  /// Of what is done with a rank's own tokens, and their rows.
  FailureOr<Spread> spreadTokens(Operation *op);
  Spread spreadPointwise(Operation *op);
  /// Of some positions of what ranks may have parts of.
  Spread spreadRange(Operation *op) const;
  /// Of a sum of what ranks have parts of.
  Spread spreadSum(Operation *op);
  /// Whether ranks make parts of a sum, whose elements are those of `value`.
  bool isOfParts(Value value) const;
  /// The word of such a value: parts it stays where it is added to others, so
  /// that ranks meet once, and not for each of them.
  Spread getSum(Value value) const;
  /// The word of a parameter that all ranks have, whose users have `use`.
  static Spread getWhole(Spread use) {
    bool isOwn = use.isShard() || use.isShared();
    return {isOwn ? Word::Replicated : Word::Invariant, 0};
  }
  /// How a value in parts along `dim` is spread, which is cut as `value` is.
  Spread getCut(Value value, int64_t dim) const {
    int64_t count = copies.contains(value) ? copies.lookup(value) : 1;
    return count == ranks ? Spread{Word::Replicated, 0}
                          : Spread::shard(dim, count);
  }
  /// The parts of a value that is cut.
  int64_t countParts(Value value) const {
    return copies.contains(value) ? ranks / copies.lookup(value) : ranks;
  }
  /// Along the residual stream, for values of the rank of `value`.
  Spread getStream(Value value) const {
    return isSequenceParallel && getRank(value) == 3 ? Spread::shard(1)
                                                     : Spread();
  }
  Spread get(Value value) const { return words.lookup(value); }
  /// Gives the argument behind `value`, if there is one, its word.
  LogicalResult setParameter(Operation *op, Value value, Spread spread);
  void write();

  func::FuncOp forward;
  int64_t ranks;
  bool isSequenceParallel;
  bool hasWhole; ///< experts are
  DenseMap<Value, int64_t> columns;
  DenseMap<Value, int64_t> copies; ///< ranks with the same heads of a value
  DenseMap<Value, Spread> words;
  DenseMap<Value, Operation *> readers; ///< who gave a parameter its word
};

struct AnnotateLayout
    : public partition::impl::AnnotateLayoutBase<AnnotateLayout> {
  using AnnotateLayoutBase::AnnotateLayoutBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto mesh = module->getAttrOfType<MeshAttr>(kMeshAttr);
    int64_t ranks = getAxisSize(module, kTensorAxis);
    bool sequence = sequenceParallel || module->hasAttr(kSequenceParallelAttr);
    if (ranks == 1 && sequence) {
      module.emitError("needs 2 ranks or more along 'tp' for sequence "
                       "parallelism, but got 1");
      return signalPassFailure();
    }
    if (ranks == 1)
      return;
    auto forward = module.lookupSymbol<func::FuncOp>(kForwardFunction);
    if (!forward) {
      module.emitError("needs a function @forward to annotate");
      return signalPassFailure();
    }
    if (failed(Annotator(forward, mesh, sequence).run()))
      signalPassFailure();
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// Refusals
//===----------------------------------------------------------------------===//

static int64_t countColumns(Value value) {
  return cast<ShapedType>(value.getType()).getShape().back();
}

LogicalResult Annotator::checkDivides(Operation *op, int64_t size,
                                      StringRef what, Value cut) {
  if (size % (cut ? countParts(cut) : ranks) == 0)
    return success();
  return op->emitOpError("needs ")
         << what << " that the " << ranks
         << " ranks along 'tp' divide, but got " << size;
}

/// Of what scores queries and keys, which may be behind norms.
LogicalResult Annotator::checkHeads(Partitionable op) {
  int64_t keyHeads = op.getNumKeyHeads();
  if (failed(checkDivides(op, op.getNumHeads(), "heads")))
    return failure();
  if (keyHeads % ranks != 0 && ranks % keyHeads != 0)
    return op->emitOpError("needs heads of keys and values that the ")
           << ranks << " ranks along 'tp' divide, or that divide these, but "
           << "got " << keyHeads;
  for (Value value : op->getOperands().take_front(2)) {
    auto maker = value.getDefiningOp<Partitionable>();
    while (maker && maker.passesHeads())
      maker = maker->getOperand(0).getDefiningOp<Partitionable>();
    if (maker && isOfWholeRows(maker))
      return maker->emitOpError("needs to be the norm of each head, since "
                                "heads are on ")
             << ranks << " ranks along 'tp', but it is that of all "
             << countColumns(maker->getOperand(0)) << " columns";
  }
  return success();
}

/// What reads logits in columns has all columns, or says how many count.
static LogicalResult checkLoss(LogitsLoss op) {
  IntegerAttr classes = op.getClassesAttr();
  if (!classes)
    return success();
  return op->emitOpError("needs logits without padded columns to have them on "
                         "ranks along 'tp', but got ")
         << classes.getInt() << " classes";
}

LogicalResult Annotator::check(Operation *op) {
  auto own = dyn_cast<Partitionable>(op);
  if (!own)
    return success();
  if (own.scoresHeads())
    return checkHeads(own);
  PartWay way = own.getPartWay();
  if (way == PartWay::Loss && columns.contains(op->getOperand(0)))
    return checkLoss(cast<LogitsLoss>(op));
  Value result = op->getResult(0);
  if (!columns.contains(result))
    return success();
  if (way == PartWay::Linear)
    return isOfVocabulary(result)
               ? success()
               : checkDivides(op, countColumns(result), "columns", result);
  if (way == PartWay::Norm || own.passesHeads())
    return checkDivides(op, own.getNumHeads(), "heads", result);
  return success();
}

//===----------------------------------------------------------------------===//
// Copies of heads
//===----------------------------------------------------------------------===//

/// Ranks along `tp` are `ranks / count` groups of `count` with the same heads.
LogicalResult Annotator::addAxes(Operation *op, int64_t count) {
  auto module = forward->getParentOfType<ModuleOp>();
  auto mesh = module->getAttrOfType<MeshAttr>(kMeshAttr);
  if (count == 1 || count == ranks || mesh.getSize(kHeadCopiesAxis) == count)
    return success();
  if (mesh.getSize(kHeadCopiesAxis) != 1)
    return op->emitOpError("needs as many heads of keys and values as the "
                           "rest of the model, ")
           << mesh.getSize(kHeadsAxis) << ", to be on " << ranks
           << " ranks along 'tp', but got " << ranks / count;
  Builder builder(module.getContext());
  SmallVector<StringAttr> names(mesh.getNames());
  SmallVector<int64_t> sizes(mesh.getSizes()), steps(mesh.getSteps());
  int64_t stride = mesh.getStride(kTensorAxis);
  auto add = [&](StringRef name, int64_t size, int64_t step) {
    names.push_back(builder.getStringAttr(name));
    sizes.push_back(size), steps.push_back(step);
  };
  add(kHeadsAxis, ranks / count, stride * count);
  add(kHeadCopiesAxis, count, stride);
  module->setAttr(kMeshAttr,
                  MeshAttr::get(module.getContext(), names, sizes, steps));
  return success();
}

/// `reader` reads `value` as heads that `count` ranks have copies of.
LogicalResult Annotator::noteCopies(Operation *reader, Value value,
                                    int64_t count) {
  if (copies.try_emplace(value, count).first->second == count)
    return success();
  return reader->emitOpError("needs heads that ")
         << count << " ranks along 'tp' have copies of, but what else reads "
         << "them needs " << copies.lookup(value);
}

LogicalResult Annotator::findCopies() {
  for (Operation &op : llvm::reverse(forward.getBody().front())) {
    auto own = dyn_cast<Partitionable>(op);
    if (!own)
      continue;
    SmallVector<unsigned> keyed = own.getKeyHeadOperands();
    int64_t heads = own.getNumKeyHeads();
    int64_t count = ranks % heads == 0 ? ranks / heads : 1;
    for (unsigned number : keyed) {
      Value value = op.getOperand(number);
      if (columns.contains(value) && (failed(addAxes(&op, count)) ||
                                      failed(noteCopies(&op, value, count))))
        return failure();
    }
    if (keyed.empty() && own.getNumColumnOperands() == 1 &&
        copies.contains(op.getResult(0)) &&
        failed(
            noteCopies(&op, op.getOperand(0), copies.lookup(op.getResult(0)))))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

LogicalResult Annotator::setParameter(Operation *op, Value value,
                                      Spread spread) {
  BlockArgument argument = getArgument(value);
  if (!argument)
    return success();
  auto [reader, isNew] = readers.try_emplace(argument, op);
  if (isNew) {
    words[argument] = spread;
    return success();
  }
  if (words.lookup(argument) == spread)
    return success();
  InFlightDiagnostic error = op->emitOpError("needs argument #")
                             << argument.getArgNumber()
                             << " in another part than what else reads it";
  error.attachNote(reader->second->getLoc()) << "this reads it, too";
  return error;
}

bool Annotator::isOfParts(Value value) const {
  auto own = value.getDefiningOp<Partitionable>();
  if (!own)
    return false;
  if (own.getPartWay() == PartWay::Linear)
    return !columns.contains(value) && columns.contains(own->getOperand(0)) &&
           own.getBiasOperand() < 0;
  if (own.getPartWay() == PartWay::Lookup)
    return bool(getArgument(own->getOperand(1)));
  if (own.getPartWay() == PartWay::Sum)
    return isOfParts(own->getOperand(0));
  return own.addsOperands() && llvm::all_of(own->getOperands(), [&](Value one) {
           return one.hasOneUse() && isOfParts(one);
         });
}

Spread Annotator::getSum(Value value) const {
  auto user = value.hasOneUse() ? dyn_cast<Partitionable>(*value.user_begin())
                                : Partitionable();
  bool isAdded = user &&
                 (user.getPartWay() == PartWay::Sum || user.addsOperands()) &&
                 isOfParts(user->getResult(0));
  return isAdded ? Spread{Word::Partial, 0} : getStream(value);
}

FailureOr<Spread> Annotator::spreadLinear(Operation *op) {
  auto own = cast<Partitionable>(op);
  int64_t biasOperand = own.getBiasOperand();
  Value input = op->getOperand(0), out = op->getResult(0);
  Spread weight, bias, result;
  auto cut = columns.find(out);
  if (cut != columns.end()) { // a column linear
    weight = getCut(out, own.getResultsDim());
    bias = getCut(out, 0);
    result = getCut(out, cut->second);
  } else if (columns.contains(input)) { // a row linear
    weight = Spread::shard(own.getTermsDim());
    result = isOfParts(out) ? getSum(out) : getStream(out);
    bias = getWhole(result);
  } else {
    // Rows of experts are no rows of tokens.
    result = getRank(input) == getRank(out) ? get(input) : Spread();
    weight = bias = getWhole(result);
  }
  if (failed(setParameter(op, op->getOperand(1), weight)) ||
      (biasOperand >= 0 &&
       failed(setParameter(op, op->getOperand(biasOperand), bias))))
    return failure();
  return result;
}

FailureOr<Spread> Annotator::spreadNorm(Operation *op) {
  auto cut = columns.find(op->getResult(0));
  Spread result = cut != columns.end() ? getCut(op->getResult(0), cut->second)
                                       : get(op->getOperand(0));
  for (Value parameter : llvm::drop_begin(op->getOperands()))
    if (failed(setParameter(op, parameter, getWhole(result))))
      return failure();
  return result;
}

/// Positions are added to whole rows, whose part comes afterwards.
FailureOr<Spread> Annotator::spreadEmbedding(Operation *op) {
  Value table = op->getOperand(1);
  if (!getArgument(table))
    return Spread();
  if (failed(setParameter(op, table, Spread::shard(0))))
    return failure();
  bool isWhole = llvm::all_of(op->getUsers(), [](Operation *user) {
    return getPartWay(user) == PartWay::Positions;
  });
  return isWhole ? Spread() : getSum(op->getResult(0));
}

/// Parts, where one of the operands is in parts.
Spread Annotator::spreadPointwise(Operation *op) {
  for (Value operand : op->getOperands())
    if (get(operand).isShard())
      return get(operand);
  return {};
}

FailureOr<Spread> Annotator::spreadTokens(Operation *op) {
  Value tokens = op->getOperand(0);
  bool isWhole = get(tokens).word != Word::Varying && !get(tokens).isShard();
  if (getRank(tokens) == 3 && isWhole &&
      failed(checkDivides(op, cast<ShapedType>(tokens.getType()).getDimSize(1),
                          "positions")))
    return failure();
  if (auto capacity = op->getAttrOfType<IntegerAttr>("capacity"))
    return op->emitOpError("needs experts without a capacity, since each of ")
           << ranks << " ranks along 'tp' sorts its own tokens, but got "
           << capacity.getInt();
  if (isOfExperts(op) &&
      failed(setParameter(op, op->getOperand(1), {Word::Replicated, 0})))
    return failure();
  Spread own = getOfOwnTokens(op);
  if (own.word == Word::Partial)
    return Spread();
  return getPartWay(op) == PartWay::Sum ? getStream(op->getResult(0)) : own;
}

/// Positions of parts are gathered, so that ranks meet for the gradient, too,
/// only where they have all positions: for each rank's use of its own, `R`, if
/// all that reads them are column linears.
Spread Annotator::spreadRange(Operation *op) const {
  bool isForParts =
      llvm::all_of(op->getResult(0).getUses(), [&](OpOperand &use) {
        Operation *user = use.getOwner();
        return use.getOperandNumber() == 0 &&
               getPartWay(user) == PartWay::Linear &&
               columns.contains(user->getResult(0));
      });
  return get(op->getOperand(0)).isShard() && isForParts
             ? Spread{Word::Replicated, 0}
             : Spread();
}

Spread Annotator::spreadSum(Operation *op) {
  Value out = op->getResult(0);
  return isOfParts(out) ? getSum(out) : Spread();
}

FailureOr<Spread> Annotator::spread(Operation *op) {
  if (hasWhole && isOfOwnTokens(op, words))
    return spreadTokens(op);
  PartWay way = getPartWay(op);
  auto cut = columns.find(op->getResult(0));
  if (cut != columns.end() && way != PartWay::Linear && way != PartWay::Norm)
    return getCut(op->getResult(0), cut->second);
  switch (way) {
  case PartWay::Lookup:
    return spreadEmbedding(op);
  case PartWay::Linear:
    return spreadLinear(op);
  case PartWay::Norm:
    return spreadNorm(op);
  case PartWay::Positions:
    if (failed(setParameter(op, op->getOperand(1), Spread())))
      return failure();
    return getStream(op->getResult(0));
  case PartWay::Rounding:
  case PartWay::Join:
    return get(op->getOperand(0));
  case PartWay::Range:
    return spreadRange(op);
  case PartWay::Pointwise:
    return isOfParts(op->getResult(0)) ? spreadSum(op) : spreadPointwise(op);
  case PartWay::Sum:
    return spreadSum(op);
  case PartWay::Whole:
  case PartWay::Heads:
  case PartWay::Tokens:
  case PartWay::Count:
  case PartWay::Loss:
    return Spread();
  }
  llvm_unreachable("a way");
}

void Annotator::write() {
  MLIRContext *context = forward.getContext();
  for (BlockArgument argument : forward.getArguments())
    forward.setArgAttr(argument.getArgNumber(), kLayoutAttr,
                       get(argument).getLayout(context));
  for (Operation &op : forward.getOps())
    if (op.getNumResults() != 0) {
      // A rounded parameter is spread as the parameter.
      BlockArgument argument = getArgument(op.getResult(0));
      Value value = argument ? Value(argument) : Value(op.getResult(0));
      op.setAttr(kLayoutAttr, get(value).getLayout(context));
    }
}

LogicalResult Annotator::run() {
  columns = findCutColumns(forward, !hasWhole);
  if (failed(findCopies()))
    return failure();
  for (BlockArgument argument : forward.getArguments()) {
    auto role = forward.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                     kInputAttr);
    if (isSequenceParallel && role && role == "tokens" &&
        failed(checkDivides(forward,
                            cast<ShapedType>(argument.getType()).getDimSize(1),
                            "a sequence")))
      return failure();
  }
  for (Operation &op : forward.getOps())
    if (failed(check(&op)))
      return failure();
  for (Operation &op : forward.getOps()) {
    if (op.getNumResults() == 0 || getArgument(op.getResult(0)))
      continue;
    FailureOr<Spread> result = spread(&op);
    if (failed(result))
      return failure();
    for (Value one : op.getResults())
      words[one] = *result;
  }
  write();
  return success();
}
