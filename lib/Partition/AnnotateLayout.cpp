//===- AnnotateLayout.cpp - How values are spread over ranks ----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layout.h"
#include "mlir/IR/BuiltinOps.h"
#include "reprise/Partition/Passes.h"
#include "llvm/ADT/TypeSwitch.h"

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
  Annotator(func::FuncOp forward, int64_t ranks, bool isSequenceParallel)
      : forward(forward), ranks(ranks), isSequenceParallel(isSequenceParallel) {
  }
  LogicalResult run();

private:
  /// Finds the heads of keys and values that ranks have copies of, and makes
  /// the mesh have the axes for them.
  LogicalResult findCopies();
  LogicalResult noteCopies(Operation *reader, Value value, int64_t count);
  LogicalResult addAxes(Operation *op, int64_t count);
  /// Refuses what `ranks` does not divide.
  LogicalResult check(Operation *op);
  LogicalResult checkHeads(Operation *op, int64_t heads, int64_t keyHeads,
                           ArrayRef<Value> normed);
  LogicalResult checkDivides(Operation *op, int64_t size, StringRef what,
                             Value cut = {});

  /// The word of the first result of `op`; gives parameters theirs.
  FailureOr<Spread> spread(Operation *op);
  FailureOr<Spread> spreadLinear(LinearOp op);
  FailureOr<Spread> spreadNorm(Operation *op, ValueRange parameters);
  FailureOr<Spread> spreadEmbedding(EmbeddingOp op);
  Spread spreadPointwise(Operation *op);
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
    if (failed(Annotator(forward, ranks, sequence).run()))
      signalPassFailure();
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// Refusals
//===----------------------------------------------------------------------===//

LogicalResult Annotator::checkDivides(Operation *op, int64_t size,
                                      StringRef what, Value cut) {
  if (size % (cut ? countParts(cut) : ranks) == 0)
    return success();
  return op->emitOpError("needs ")
         << what << " that the " << ranks
         << " ranks along 'tp' divide, but got " << size;
}

/// `normed` are the queries and keys, behind their norms if they have any.
LogicalResult Annotator::checkHeads(Operation *op, int64_t heads,
                                    int64_t keyHeads, ArrayRef<Value> normed) {
  if (failed(checkDivides(op, heads, "heads")))
    return failure();
  if (keyHeads % ranks != 0 && ranks % keyHeads != 0)
    return op->emitOpError("needs heads of keys and values that the ")
           << ranks << " ranks along 'tp' divide, or that divide these, but "
           << "got " << keyHeads;
  for (Value value : normed) {
    while (auto rope = value.getDefiningOp<RopeOp>())
      value = rope.getInput();
    if (auto norm = value.getDefiningOp<RMSNormOp>();
        norm && isOfWholeRows(norm))
      return norm.emitOpError("needs to be the norm of each head, since heads "
                              "are on ")
             << ranks << " ranks along 'tp', but it is that of all "
             << norm.getInput().getType().getShape().back() << " columns";
  }
  return success();
}

LogicalResult Annotator::check(Operation *op) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](AttentionOp op) {
        return checkHeads(op, op.getHeads(), op.getKeyHeads(),
                          {op.getQuery(), op.getKey()});
      })
      .Case([&](ScoresOp op) {
        return checkHeads(op, op.getHeads(), op.getKeyHeads(),
                          {op.getLhs(), op.getRhs()});
      })
      .Case([&](LinearOp op) {
        auto cut = columns.find(op.getOut());
        return cut == columns.end() || isOfVocabulary(op.getOut())
                   ? success()
                   : checkDivides(op, op.getOut().getType().getShape().back(),
                                  "columns", op.getOut());
      })
      .Case([&](RopeOp op) {
        if (!columns.contains(op.getOut()))
          return success();
        return checkDivides(op, op.getHeads(), "heads", op.getOut());
      })
      .Case([&](RMSNormOp op) -> LogicalResult {
        if (!columns.contains(op.getOut()))
          return success();
        return checkDivides(op, countHeads(op), "heads", op.getOut());
      })
      .Case([&](CrossEntropyOp op) -> LogicalResult {
        if (columns.contains(op.getLogits()) && op.getClasses())
          return op.emitOpError("needs logits without padded columns to have "
                                "them on ranks along 'tp', but got ")
                 << *op.getClasses() << " classes";
        return success();
      })
      .Default(success());
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
  auto note = [&](auto op, Value value) -> LogicalResult {
    if (!columns.contains(value))
      return success();
    int64_t heads = op.getKeyHeads();
    int64_t count = ranks % heads == 0 ? ranks / heads : 1;
    return success(succeeded(addAxes(op, count)) &&
                   succeeded(noteCopies(op, value, count)));
  };
  for (Operation &op : llvm::reverse(forward.getBody().front())) {
    LogicalResult noted =
        TypeSwitch<Operation *, LogicalResult>(&op)
            .Case([&](AttentionOp op) -> LogicalResult {
              return success(succeeded(note(op, op.getKey())) &&
                             succeeded(note(op, op.getValue())));
            })
            .Case([&](ScoresOp op) { return note(op, op.getRhs()); })
            .Case([&](ContextOp op) { return note(op, op.getRows()); })
            .Default([&](Operation *op) -> LogicalResult {
              SmallVector<OpOperand *> operands = getColumnOperands(op);
              if (operands.size() != 1 || !copies.contains(op->getResult(0)))
                return success();
              return noteCopies(op, operands.front()->get(),
                                copies.lookup(op->getResult(0)));
            });
    if (failed(noted))
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

FailureOr<Spread> Annotator::spreadLinear(LinearOp op) {
  bool isInOut = op.getLayout() == WeightLayout::InOut;
  Spread weight, bias, result;
  auto cut = columns.find(op.getOut());
  if (cut != columns.end()) { // a column linear
    weight = getCut(op.getOut(), isInOut ? 1 : 0);
    bias = getCut(op.getOut(), 0);
    result = getCut(op.getOut(), cut->second);
  } else if (columns.contains(op.getInput())) { // a row linear
    weight = Spread::shard(isInOut ? 0 : 1);
    result = getStream(op.getOut());
    bias = getWhole(result);
  } else {
    result = get(op.getInput());
    weight = bias = getWhole(result);
  }
  if (failed(setParameter(op, op.getWeight(), weight)) ||
      (op.getBias() && failed(setParameter(op, op.getBias(), bias))))
    return failure();
  return result;
}

FailureOr<Spread> Annotator::spreadNorm(Operation *op, ValueRange parameters) {
  auto cut = columns.find(op->getResult(0));
  Spread result = cut != columns.end() ? getCut(op->getResult(0), cut->second)
                                       : get(op->getOperand(0));
  for (Value parameter : parameters)
    if (failed(setParameter(op, parameter, getWhole(result))))
      return failure();
  return result;
}

/// Positions are added to whole rows, whose part comes afterwards.
FailureOr<Spread> Annotator::spreadEmbedding(EmbeddingOp op) {
  if (!getArgument(op.getTable()))
    return Spread();
  if (failed(setParameter(op, op.getTable(), Spread::shard(0))))
    return failure();
  bool isWhole = llvm::all_of(op.getOut().getUsers(), [](Operation *user) {
    return isa<AddPositionsOp>(user);
  });
  return isWhole ? Spread() : getStream(op.getOut());
}

/// Parts, where one of the operands is in parts.
Spread Annotator::spreadPointwise(Operation *op) {
  for (Value operand : op->getOperands())
    if (get(operand).isShard())
      return get(operand);
  return {};
}

FailureOr<Spread> Annotator::spread(Operation *op) {
  auto cut = columns.find(op->getResult(0));
  if (cut != columns.end() && !isa<LinearOp, RMSNormOp>(op))
    return getCut(op->getResult(0), cut->second);
  return TypeSwitch<Operation *, FailureOr<Spread>>(op)
      .Case([&](EmbeddingOp op) { return spreadEmbedding(op); })
      .Case([&](LinearOp op) { return spreadLinear(op); })
      .Case([&](LayerNormOp op) {
        return spreadNorm(op, {op.getGain(), op.getBias()});
      })
      .Case([&](RMSNormOp op) { return spreadNorm(op, op.getGain()); })
      .Case([&](AddPositionsOp op) -> FailureOr<Spread> {
        if (failed(setParameter(op, op.getTable(), Spread())))
          return failure();
        return getStream(op.getOut());
      })
      .Case([&](CastOp op) { return get(op.getInput()); })
      .Case<AddOp, ScaleOp, GeluOp, SwiGLUOp, DropoutOp>(
          [&](auto op) -> FailureOr<Spread> { return spreadPointwise(op); })
      .Default(FailureOr<Spread>(Spread()));
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
  columns = findCutColumns(forward);
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
    words[op.getResult(0)] = *result;
  }
  write();
  return success();
}
