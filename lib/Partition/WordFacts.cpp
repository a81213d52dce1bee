//===- WordFacts.cpp - What ops make of parts -----------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rules of spmd_types, of PyTorch, for the ops of a forward pass. What reads
// parts and a whole together makes parts, so that the gradient of the whole is
// a part of a sum: the whole has to be R. What ranks have parts of a sum of is
// read by what is linear alone.
//
//===----------------------------------------------------------------------===//

#include "Words.h"
#include "reprise/Dialect/NN/NNActivationOps.h"
#include "reprise/Dialect/NN/Parts.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;
using namespace reprise::partition;

std::string partition::spell(Spread spread) {
  std::string text = stringifyWord(spread.word).str();
  if (spread.isShard())
    text += "(" + std::to_string(spread.dim) + ")";
  if (spread.copies > 1)
    text += " in " + std::to_string(spread.copies) + " copies";
  return text;
}

namespace {
/// In place of a dimension: of an operand, all of it is read; of a result,
/// ranks have values of their own.
constexpr int64_t kAll = -1;

/// Dimensions along which an op keeps parts apart.
struct Cut {
  SmallVector<int64_t, 4> operands, results;
};
using Cuts = SmallVector<Cut, 4>;

/// The rules of one op.
class Rules {
public:
  Rules(Operation *op, ArrayRef<Read> reads) : op(op), reads(reads) {}
  FailureOr<SmallVector<Spread>> apply();

private:
  bool all(function_ref<bool(const Read &)> holds) const {
    return llvm::all_of(reads, holds);
  }
  bool any(Word word) const {
    return llvm::any_of(
        reads, [&](const Read &read) { return read.spread.word == word; });
  }
  FailureOr<SmallVector<Spread>> make(Spread spread) const {
    return SmallVector<Spread>(op->getNumResults(), spread);
  }
  FailureOr<SmallVector<Spread>> refuse(size_t operand, const Twine &need) {
    op->emitOpError("needs ") << need << " along 'tp' as operand #" << operand
                              << ", but got " << spell(reads[operand].spread);
    return failure();
  }
  FailureOr<SmallVector<Spread>> move(Spread from, Spread to);
  std::optional<FailureOr<SmallVector<Spread>>> applyMove();
  FailureOr<SmallVector<Spread>> applySum();
  FailureOr<SmallVector<Spread>> applyRows();
  FailureOr<SmallVector<Spread>> applyCut();
  FailureOr<SmallVector<Spread>> applyWhole();
  bool isOfTerms() const;
  bool fits(const Cut &cut) const;

  Operation *op;
  ArrayRef<Read> reads;
};
} // namespace

//===----------------------------------------------------------------------===//
// Dimensions
//===----------------------------------------------------------------------===//

/// `dims` of all operands and results, which have one shape.
static Cuts cutEach(Operation *op, ArrayRef<int64_t> dims) {
  Cuts cuts;
  for (int64_t dim : dims)
    cuts.push_back({SmallVector<int64_t, 4>(op->getNumOperands(), dim),
                    SmallVector<int64_t, 4>(op->getNumResults(), dim)});
  return cuts;
}

/// `dims` of operand 0 and of all results; other operands are read whole.
static Cuts cutRows(Operation *op, ArrayRef<int64_t> dims) {
  Cuts cuts = cutEach(op, dims);
  for (Cut &cut : cuts)
    for (int64_t &dim : MutableArrayRef(cut.operands).drop_front())
      dim = kAll;
  return cuts;
}

static SmallVector<int64_t> getDims(int64_t end) {
  return llvm::to_vector(llvm::seq<int64_t>(0, end));
}

static Cuts getLinearCuts(Operation *op, int64_t resultsDim) {
  int64_t last = getRank(op->getResult(0)) - 1;
  Cuts cuts;
  // What each row is multiplied by is whole.
  if (getRank(op->getOperand(0)) == last + 1)
    cuts = cutRows(op, getDims(last));
  Cut columns = {SmallVector<int64_t, 4>(op->getNumOperands(), kAll), {last}};
  columns.operands[1] = resultsDim;
  if (auto linear = dyn_cast<LinearOp>(op); linear && linear.getBias())
    columns.operands[2] = 0;
  cuts.push_back(columns);
  return cuts;
}

/// Groups of columns that have the size of the gain are normed by themselves.
static Cuts getNormCuts(RMSNormOp op) {
  int64_t last = getRank(op.getInput()) - 1;
  Cuts cuts = cutRows(op, getDims(last));
  cuts.push_back(
      {{last, kAll}, {last, getRank(op.getRstd()) > last ? last : kAll}});
  return cuts;
}

/// Of what keeps heads or columns apart; none of other ops.
static Cuts getHeadsCuts(Operation *op) {
  return llvm::TypeSwitch<Operation *, Cuts>(op)
      .Case<AttentionOp>([](Operation *) {
        return Cuts{{{2, 2, 2, kAll}, {2, 1}}, {{0, 0, 0, kAll}, {0, 0}}};
      })
      .Case<ScoresOp>(
          [](Operation *) { return Cuts{{{2, 2}, {1}}, {{0, 0}, {0}}}; })
      .Case<ContextOp>(
          [](Operation *) { return Cuts{{{1, 2}, {2}}, {{0, 0}, {0}}}; })
      .Case<SoftmaxOp>([](Operation *own) {
        return cutEach(own, getDims(getRank(own->getResult(0)) - 1));
      })
      .Case<RopeOp, LatentHeadsOp>(
          [](Operation *own) { return cutRows(own, {0, 2}); })
      .Case<WeightedSwiGLUOp>([](Operation *own) {
        int64_t last = getRank(own->getResult(0)) - 1;
        Cuts cuts = cutEach(own, getDims(last));
        cuts.push_back({{last, last, kAll}, {last}});
        return cuts;
      })
      .Default(Cuts());
}

static Cuts getCuts(Operation *op) {
  using List = ArrayRef<int64_t>;
  return llvm::TypeSwitch<Operation *, Cuts>(op)
      .Case<LinearOp>([](LinearOp linear) {
        bool isInOut = linear.getLayout() == WeightLayout::InOut;
        return getLinearCuts(linear, isInOut ? 1 : 0);
      })
      .Case<GroupedLinearOp>(
          [](Operation *own) { return getLinearCuts(own, 1); })
      .Case<AddBiasOp>([](Operation *own) {
        int64_t last = getRank(own->getResult(0)) - 1;
        Cuts cuts = cutRows(own, getDims(last));
        cuts.push_back({{last, 0}, {last}});
        return cuts;
      })
      .Case<RMSNormOp>(getNormCuts)
      .Case<LayerNormOp>([](Operation *own) {
        return cutRows(own, getDims(getRank(own->getOperand(0)) - 1));
      })
      .Case<DropoutOp>([](Operation *own) {
        return cutRows(own, getDims(getRank(own->getResult(0))));
      })
      .Case<AddPositionsOp>(
          [](Operation *own) { return cutRows(own, List{0}); })
      .Case<EmbeddingOp, ChooseExpertsOp>(
          [](Operation *own) { return cutRows(own, List{0, 1}); })
      .Case<SplitColumnsOp, JoinColumnsOp, GateWeightOp, ExpertWeightsOp>(
          [](Operation *own) { return cutEach(own, List{0, 1}); })
      .Case<CropPositionsOp, PadPositionsOp>(
          [](Operation *own) { return cutEach(own, List{0, 2}); })
      .Default([](Operation *own) {
        bool isPointwise =
            own->hasTrait<OpTrait::SameOperandsAndResultType>() ||
            own->hasTrait<nn::Pointwise>();
        Cuts cuts = getHeadsCuts(own);
        return cuts.empty() && isPointwise
                   ? cutEach(own, getDims(getRank(own->getResult(0))))
                   : cuts;
      });
}

/// Whether a sum of `op` over ranks is `op` of sums over ranks.
static bool isLinearInAll(Operation *op) {
  return isa<AddOp, ScaleOp, CombineOp, PadPositionsOp, CropPositionsOp>(op);
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<Spread>> Rules::move(Spread from, Spread to) {
  for (auto [operand, read] : llvm::enumerate(reads))
    if (read.spread != from)
      return refuse(operand, spell(from));
  return make(to);
}

/// Of what ranks do together, and of what each does with its place; none for
/// other ops.
std::optional<FailureOr<SmallVector<Spread>>> Rules::applyMove() {
  Spread whole, part = {Word::Partial, 0};
  // Samples, and stages, are other ranks'.
  bool isElsewhere = getAxis(op) == kDataAxis || getAxis(op) == kPipeAxis;
  if (isElsewhere && any(Word::Partial))
    return refuse(0, "I, R or S, to be moved along '" + getAxis(op) + "',");
  auto at = op->getAttrOfType<IntegerAttr>("dim");
  Spread block = Spread::shard(at ? at.getInt() : 0);
  if (isa<AllReduceOp>(op))
    return move(part, whole);
  if (isa<ReduceScatterOp>(op))
    return move(part, block);
  if (auto gather = dyn_cast<AllGatherOp>(op))
    return move(block, {gather.getWord(), 0});
  if (isa<SliceOp>(op))
    return move(whole, block);
  if (isa<ReplicateOp>(op))
    return move(whole, {Word::Replicated, 0});
  bool isLoss = isa<CrossEntropyPartOp>(op);
  if (!isLoss && !isa<EmbeddingPartOp>(op))
    return std::nullopt;
  size_t cut = isLoss ? 0 : 1;
  Spread want = Spread::shard(isLoss ? getRank(op->getOperand(0)) - 1 : 0);
  if (reads[cut].spread != want)
    return refuse(cut, spell(want));
  if (reads[1 - cut].spread != whole)
    return refuse(1 - cut, spell(whole));
  return isLoss ? FailureOr<SmallVector<Spread>>({block, part}) : make(part);
}

/// Whether ranks have some of the terms of each result: columns of the input,
/// and the weights of these.
bool Rules::isOfTerms() const {
  int64_t dim = 2;
  if (auto linear = dyn_cast<LinearOp>(op))
    dim = linear.getLayout() == WeightLayout::InOut ? 0 : 1;
  else if (!isa<GroupedLinearOp>(op))
    return false;
  return reads[1].spread == Spread::shard(dim) &&
         reads[0].spread == Spread::shard(getRank(op->getOperand(0)) - 1);
}

FailureOr<SmallVector<Spread>> Rules::applySum() {
  for (auto [operand, read] : llvm::enumerate(reads))
    if (read.spread.word != Word::Partial &&
        !getElementTypeOrSelf(op->getOperand(operand)).isInteger())
      return refuse(operand, "P, as what it is added to,");
    else if (!isLinearInAll(op))
      return refuse(operand, "a whole sum, in which it is not linear,");
  return make({Word::Partial, 0});
}

/// Of a rank's own tokens, `S(1)`, and of rows sorted by expert, `V`.
FailureOr<SmallVector<Spread>> Rules::applyRows() {
  bool isKnown = isa<SortRowsOp, PermuteOp, GroupedLinearOp, CombineOp,
                     WeightedSwiGLUOp, CountRowsOp, CountChoicesOp>(op) ||
                 op->hasTrait<OpTrait::SameOperandsAndResultType>() ||
                 op->hasTrait<nn::Pointwise>();
  for (auto [operand, read] : llvm::enumerate(reads)) {
    Spread own = read.spread;
    bool isOwn = own.word == Word::Varying || own == Spread::shard(1);
    bool isWeight = own.word == Word::Replicated && isOfExperts(op);
    if (!isKnown || !(isOwn || isWeight || read.isData))
      return refuse(operand, "all tokens, or rows of its own,");
  }
  if (isa<CountRowsOp, CountChoicesOp>(op))
    return make({Word::Partial, 0});
  return make(isa<CombineOp>(op) ? Spread::shard(1) : Spread{Word::Varying, 0});
}

/// Whether operands are cut so. Heads of keys may be those of several ranks.
bool Rules::fits(const Cut &cut) const {
  auto own = dyn_cast<Partitionable>(op);
  SmallVector<unsigned> keys =
      own ? own.getKeyHeadOperands() : SmallVector<unsigned>();
  std::optional<int64_t> copies; // Of each block, of others than heads of keys.
  for (auto [operand, read] : llvm::enumerate(reads)) {
    int64_t dim = cut.operands[operand];
    if (read.spread.isShard() && !llvm::is_contained(keys, operand)) {
      if (copies && *copies != read.spread.copies)
        return false;
      copies = read.spread.copies;
    }
    if (dim == kAll ? read.spread.isShard()
                    : read.spread.isShard() && read.spread.dim != dim)
      return false;
    if (dim != kAll && !read.spread.isShard() &&
        !llvm::is_contained(keys, operand))
      return false;
  }
  return true;
}

FailureOr<SmallVector<Spread>> Rules::applyCut() {
  Cuts cuts = getCuts(op);
  const Cut *cut =
      llvm::find_if(cuts, [&](const Cut &each) { return fits(each); });
  if (cut == cuts.end()) {
    InFlightDiagnostic error =
        op->emitOpError("keeps no parts of operands apart that ranks along "
                        "'tp' have so:");
    for (const Read &read : reads)
      error << ' ' << spell(read.spread);
    return failure();
  }
  int64_t copies = std::numeric_limits<int64_t>::max();
  for (auto [operand, read] : llvm::enumerate(reads)) {
    if (read.spread.isShard())
      copies = std::min(copies, read.spread.copies);
    else if (!read.isData && read.spread.word != Word::Replicated)
      return refuse(operand, "R, which each rank reads for a part of its own,");
  }
  SmallVector<Spread> results;
  for (int64_t dim : cut->results)
    results.push_back(dim == kAll ? Spread{Word::Varying, 0}
                                  : Spread::shard(dim, copies));
  return results;
}

FailureOr<SmallVector<Spread>> Rules::applyWhole() {
  Word word = any(Word::Replicated) ? Word::Replicated : Word::Invariant;
  for (auto [operand, read] : llvm::enumerate(reads))
    if (!read.isData && read.spread.word != word)
      return refuse(operand, stringifyWord(word) + ", as what is beside it,");
  return make({word, 0});
}

FailureOr<SmallVector<Spread>> Rules::apply() {
  if (auto moved = applyMove())
    return *moved;
  if (any(Word::Partial))
    return applySum();
  if (isOfTerms()) {
    if (auto linear = dyn_cast<LinearOp>(op); linear && linear.getBias())
      return refuse(2, "nothing, since each rank would add it to its terms,");
    return make({Word::Partial, 0});
  }
  bool isOfOwn = isa<SortRowsOp, PermuteOp, CountRowsOp, CountChoicesOp>(op) ||
                 isa<CombineOp>(op);
  if (any(Word::Varying) || (isOfOwn && any(Word::Shard)))
    return applyRows();
  return any(Word::Shard) ? applyCut() : applyWhole();
}

FailureOr<SmallVector<Spread>> partition::inferSpreads(Operation *op,
                                                       ArrayRef<Read> reads) {
  return Rules(op, reads).apply();
}

bool partition::sumsOverRanks(Operation *op) {
  return isa<AllReduceOp, ReduceSharesOp, ReduceScatterOp>(op);
}
