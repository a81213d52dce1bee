//===- ReadPlan.cpp - Decides as a plan file says -------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Decide.h"
#include "MoveFacts.h"
#include "Share.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Interfaces/Facts.h"
#include "reprise/Remat/Passes.h"
#include "reprise/Remat/PlanFile.h"
#include "reprise/Support/RecomputeLabels.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

namespace reprise::remat {
#define GEN_PASS_DEF_READPLAN
#include "reprise/Remat/Passes.h.inc"
} // namespace reprise::remat

using namespace mlir;
using namespace reprise;
using namespace reprise::remat;

namespace {
/// What the rules so far say of an op.
struct Verdict {
  llvm::SmallBitVector dropped;
  const PlanRule *recompute = nullptr, *save = nullptr; ///< the last ones
  std::string label;
};

/// The layers of all chunks, if `function` is the step of one of them.
DenseI64ArrayAttr getChunkLayers(func::FuncOp function) {
  auto module = function->getParentOfType<ModuleOp>();
  return module ? module->getAttrOfType<DenseI64ArrayAttr>(nn::kChunkLayersAttr)
                : DenseI64ArrayAttr();
}

class PlanReader {
public:
  PlanReader(func::FuncOp function, const Step &step)
      : function(function), step(step), chunkLayers(getChunkLayers(function)),
        numLayers(chunkLayers ? llvm::sum_of(chunkLayers.asArrayRef())
                              : countLayers(step)) {}

  LogicalResult apply(const PlanFile &plan);

private:
  LogicalResult applyChunks(const PlanFile &plan);
  void checkLayers(const PlanFile &plan);
  void warnOfKept(const PlanWord &word, const PlanRule &rule,
                  ArrayRef<OpResult> results);
  LogicalResult applyRule(const PlanRule &rule);
  LogicalResult checkShare(const PlanWord &word, const PlanRule &rule,
                           Value value);
  LogicalResult applyToBorder(const PlanWord &word, const PlanRule &rule);
  void decideOn(Operation *op, const PlanRule &kept);
  bool isMoveElsewhere(const PlanWord &word, const PlanRule &rule);
  void followMoves(bool namesRows);
  void decide();

  /// The results that `word` means among the layers of `rule`, which are to be
  /// kept, or not. Fails, with a diagnostic, if there are none.
  FailureOr<SmallVector<OpResult>> find(const PlanWord &word,
                                        const PlanRule &rule, bool isKept,
                                        std::string &label);
  SmallVector<OpResult> findNamed(StringRef name, const PlanRule &rule) const;
  SmallVector<OpResult> findOnOtherMesh(const PlanWord &word,
                                        const PlanRule &rule,
                                        bool isKept) const;
  SmallVector<OpResult> findRegion(const RecomputeLabel *label,
                                   const PlanRule &rule) const;
  LogicalResult refuse(const PlanWord &word, const PlanRule &rule) const;

  func::FuncOp function;
  const Step &step;
  DenseI64ArrayAttr chunkLayers; ///< null for the step of a whole model
  int64_t numLayers;
  DenseMap<Operation *, Verdict> verdicts;
  llvm::StringMap<OwnValues> own;  ///< By axis.
  SmallVector<PlanWord> elsewhere; ///< Words of what other ranks move.
  /// The last rule about what a chunk gets from the one before.
  const PlanRule *ofBorder = nullptr;
};

struct ReadPlan : public remat::impl::ReadPlanBase<ReadPlan> {
  using ReadPlanBase::ReadPlanBase;

  LogicalResult setHeadRows();

  void runOnOperation() override {
    if (failed(setHeadRows()))
      return signalPassFailure();
    auto decideAll = [&](const Step &step) -> LogicalResult {
      FailureOr<PlanFile> plan = parsePlanFile(file, &getContext());
      if (failed(plan) || failed(PlanReader(getOperation(), step).apply(*plan)))
        return failure();
      remarkDecisions(step);
      return success();
    };
    if (failed(onStep(getOperation(), decideAll)))
      signalPassFailure();
  }
};
} // namespace

/// Of a step as of what has its head beside it. A head that is whole stays so.
LogicalResult ReadPlan::setHeadRows() {
  auto heads = getOperation().getBody().getOps<RowChunks>();
  if (heads.empty())
    return success();
  FailureOr<PlanFile> plan = parsePlanFile(file, &getContext());
  if (failed(plan))
    return failure();
  if (int64_t rows = plan->headRows.value_or(0); rows > 0)
    for (RowChunks head : heads)
      head.setChunkRows(rows);
  return success();
}

/// Whether a rule is about the layer, or what is in none.
static bool isOf(int64_t layer, const PlanRule &rule) {
  if (layer < 0 || rule.isOutside)
    return layer < 0 && rule.isOutside;
  return rule.layers.empty() ||
         llvm::any_of(rule.layers, [&](std::pair<int64_t, int64_t> range) {
           return range.first <= layer && layer <= range.second;
         });
}

static bool isOf(Operation *op, const PlanRule &rule) {
  return isOf(getLayer(op), rule);
}

//===----------------------------------------------------------------------===//
// What words mean
//===----------------------------------------------------------------------===//

/// `word` without moves between a value and the last one. Plans that were saved
/// before rows had the same names on all meshes say which way tokens came to a
/// rank first: "n2.replicate.dispatch" for "n2.dispatch".
static std::string getShortName(const PlanWord &word) {
  auto [rest, last] = StringRef(word.text).rsplit('.');
  auto isMove = [&](StringRef name) {
    return getMove(name, word.location->getContext()) != Move::None;
  };
  if (!isMove(last))
    return word.text;
  for (auto [value, move] = rest.rsplit('.'); isMove(move);
       std::tie(value, move) = value.rsplit('.'))
    rest = value;
  return (rest + "." + last).str();
}

/// A name is that of a result, or of all results of an op; a layer may also
/// name what it reads and another layer makes: x0.
SmallVector<OpResult> PlanReader::findNamed(StringRef name,
                                            const PlanRule &rule) const {
  SmallVector<OpResult> results;
  for (Operation *op : step.forward)
    for (OpResult result : op->getResults()) {
      bool isHere = isOf(op, rule) && (getValueName(result) == name ||
                                       getValueName(op->getResult(0)) == name);
      if (!isHere && name == "x0") {
        auto [layer, homeName] = getHome(step, result);
        isHere = homeName == name && isOf(layer, rule);
      }
      if (isHere)
        results.push_back(result);
    }
  return results;
}

/// The results of a label's region, or, without a label, of whole layers, that
/// may be dropped: nothing outside reads them in the forward pass.
SmallVector<OpResult> PlanReader::findRegion(const RecomputeLabel *label,
                                             const PlanRule &rule) const {
  SmallVector<OpResult> results;
  for (Operation *op : step.forward) {
    if (!isOf(op, rule) || (label && !isOfRegion(*label, op)))
      continue;
    Operation *outside = nullptr;
    auto isInside = [&](Operation *user) {
      if (label && label->kind == LabelKind::OutputDiscarding)
        return true;
      bool isSameLayer =
          getLayer(user) == getLayer(op) || (rule.segment && isOf(user, rule));
      return isSameLayer && (!label || isOfRegion(*label, user));
    };
    for (int64_t number : getInnerResults(step, op, isInside, outside))
      results.push_back(op->getResult(number));
  }
  return results;
}

/// What `word`, of a plan for other ranks, means on these: where no ranks have
/// parts of a sum it is the value itself, and who keeps all of what ranks have
/// parts of keeps the value.
SmallVector<OpResult> PlanReader::findOnOtherMesh(const PlanWord &word,
                                                  const PlanRule &rule,
                                                  bool isKept) const {
  std::string name = getShortName(word);
  auto [value, last] = StringRef(name).rsplit('.');
  Move move = getMove(last, word.location->getContext());
  SmallVector<OpResult> results;
  if (StringRef other = getOtherMove(last); !other.empty())
    results = findNamed((value + "." + other).str(), rule);
  bool isMeant = move == Move::Sum || (move == Move::Copy && isKept) ||
                 (move == Move::Loss && rule.isOutside);
  if (results.empty() && isMeant)
    results = findNamed(value, rule);
  return results;
}

FailureOr<SmallVector<OpResult>> PlanReader::find(const PlanWord &word,
                                                  const PlanRule &rule,
                                                  bool isKept,
                                                  std::string &label) {
  label = "plan";
  if (word.text == "all")
    return findRegion(nullptr, rule);
  SmallVector<OpResult> results = findNamed(word.text, rule);
  if (results.empty())
    results = findNamed(getShortName(word), rule);
  if (results.empty())
    results = findOnOtherMesh(word, rule, isKept);
  if (!results.empty())
    return results;
  for (const RecomputeLabel &known : kRecomputeLabels)
    if (known.name == word.text && known.isAccepted()) {
      label = known.name.str();
      results = findRegion(&known, rule);
      if (!results.empty())
        return results;
    }
  // It may be that of another chunk.
  if (chunkLayers || isMoveElsewhere(word, rule))
    return results;
  return refuse(word, rule);
}

LogicalResult PlanReader::refuse(const PlanWord &word,
                                 const PlanRule &rule) const {
  // In the order of the forward pass, then the labels.
  SmallVector<std::string> names;
  llvm::StringSet<> known;
  auto add = [&](StringRef name) {
    if (known.insert(name).second)
      names.push_back(name.str());
  };
  for (Operation *op : step.forward)
    if (isOf(op, rule) && op->getNumResults() != 0)
      add(getValueName(op->getResult(0)));
  for (const RecomputeLabel &label : kRecomputeLabels)
    if (label.isAccepted() && !findRegion(&label, rule).empty())
      add(label.name);
  InFlightDiagnostic error =
      emitError(word.location)
      << "needs a value or a label of the rule's "
         "layers, but got '"
      << word.text << "'; there are: " << (names.empty() ? "none" : "");
  llvm::interleave(
      names, [&](const std::string &name) { error << name; },
      [&] { error << " "; });
  return error;
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

LogicalResult PlanReader::applyChunks(const PlanFile &plan) {
  if (!plan.chunksLocation)
    return success();
  MLIRContext *context = function.getContext();
  auto chunks = ChunksAttr::get(context, plan.stages,
                                DenseI64ArrayAttr::get(context, plan.chunks));
  auto describe = [](ChunksAttr chunks) {
    return std::to_string(chunks.getStages()) + " stages of " +
           llvm::join(llvm::map_range(
                          chunks.getLayers().asArrayRef(),
                          [](int64_t size) { return std::to_string(size); }),
                      ",") +
           " layers";
  };
  auto there = function->getAttrOfType<ChunksAttr>(kChunksAttr);
  if (chunkLayers)
    there = ChunksAttr::get(
        context,
        nn::getAxisSize(function->getParentOfType<ModuleOp>(), nn::kPipeAxis),
        chunkLayers);
  if (there && there != chunks)
    return emitError(*plan.chunksLocation)
           << "needs the stages that description or options ask for, "
           << describe(there) << ", but got " << describe(chunks);
  if (!chunkLayers)
    function->setAttr(kChunksAttr, chunks);
  int64_t sum = 0;
  for (int64_t size : plan.chunks)
    sum += size;
  if (sum != numLayers)
    return emitError(*plan.chunksLocation) << "needs chunks of " << numLayers
                                           << " layers in all, but got " << sum;
  return success();
}

/// Rules are by number: a plan for fewer layers leaves the last ones alone.
void PlanReader::checkLayers(const PlanFile &plan) {
  if (!plan.numLayers || *plan.numLayers == numLayers)
    return;
  InFlightDiagnostic warning = emitWarning(*plan.layersLocation)
                               << "the plan was made for " << *plan.numLayers
                               << " layers, but the model has " << numLayers;
  if (*plan.numLayers + 1 == numLayers)
    warning << ": rules of numbers say nothing of layer " << *plan.numLayers;
  else if (*plan.numLayers < numLayers)
    warning << ": rules of numbers say nothing of layers " << *plan.numLayers
            << " to " << numLayers - 1;
}

/// What is never replayed stays whatever a rule says, and what is made in
/// rounds is made again.
void PlanReader::warnOfKept(const PlanWord &word, const PlanRule &rule,
                            ArrayRef<OpResult> results) {
  if (rule.isRecompute && !results.empty() &&
      llvm::none_of(results, [](OpResult result) {
        return nn::mayBeReplayed(result.getOwner());
      }))
    emitWarning(word.location)
        << "'" << word.text
        << "' is never replayed, so it stays: this word of the rule changes "
           "nothing";
  if (!rule.isRecompute && !results.empty() &&
      llvm::all_of(results, [](OpResult result) {
        return isMadeInRounds(result.getOwner());
      }))
    emitWarning(word.location)
        << "'" << word.text
        << "' is made again in each round of moe_expert_rows_per_round: this "
           "word of the rule changes nothing";
}

/// Whether ranks can share `value`, as `rule` says.
LogicalResult PlanReader::checkShare(const PlanWord &word, const PlanRule &rule,
                                     Value value) {
  int64_t ranks = countRanks(function, rule.share);
  if (ranks < 2)
    return emitError(word.location)
           << "needs several ranks along '" << rule.share << "' to share '"
           << word.text << "', but there is " << ranks;
  Operation *maker = value.getDefiningOp();
  if ((maker && maker->getNumResults() > 1) || !canBeCut(value))
    return emitError(word.location)
           << "needs a value of an op that makes no others, with elements to "
              "cut, to share, but got '"
           << word.text << "'";
  if (getCutDim(value, ranks) < 0) {
    InFlightDiagnostic error = emitError(word.location);
    explainCut(error, value, rule.share, ranks);
    return error;
  }
  if (own.try_emplace(rule.share, function, step, rule.share)
          .first->second.contains(value))
    return emitError(word.location)
           << "needs a value that is the same on all ranks along '"
           << rule.share << "' to share, but each has its own '" << word.text
           << "'";
  return success();
}

/// The layer that what a chunk gets from the one before is the input of.
static int64_t getBorderLayer(const Step &step, BlockArgument border) {
  int64_t layer = -1;
  for (Operation *user : border.getUsers())
    if (step.isForward(user))
      layer = getLayer(user);
  return layer;
}

/// What a chunk gets from the one before is the x0 of a layer, and may be
/// shared.
LogicalResult PlanReader::applyToBorder(const PlanWord &word,
                                        const PlanRule &rule) {
  BlockArgument border = getBorder(function);
  if (!border || word.text != "x0")
    return success();
  int64_t layer = getBorderLayer(step, border);
  if (layer < 0 || !isOf(layer, rule))
    return success();
  ofBorder = &rule;
  return rule.share.empty() ? success() : checkShare(word, rule, border);
}

LogicalResult PlanReader::applyRule(const PlanRule &rule) {
  for (auto [first, last] : rule.layers)
    if (last >= numLayers)
      return emitError(*rule.layersLocation)
             << "needs layers of 0 to " << numLayers - 1 << ", but got "
             << last;
  std::string label;
  DenseSet<OpResult> excepted;
  for (const PlanWord &word : rule.except) {
    FailureOr<SmallVector<OpResult>> results =
        find(word, rule, /*isKept=*/rule.isRecompute, label);
    if (failed(results))
      return failure();
    excepted.insert(results->begin(), results->end());
  }
  for (const PlanWord &word : rule.values) {
    FailureOr<SmallVector<OpResult>> results =
        find(word, rule, /*isKept=*/!rule.isRecompute, label);
    if (failed(results))
      return failure();
    warnOfKept(word, rule, *results);
    if (failed(applyToBorder(word, rule)))
      return failure();
    for (OpResult result : *results) {
      Operation *op = result.getOwner();
      bool isShare = !rule.share.empty();
      if (excepted.contains(result) || (!isShare && !nn::mayBeReplayed(op)))
        continue;
      if (isShare && failed(checkShare(word, rule, result)))
        return failure();
      Verdict &verdict = verdicts[op];
      verdict.dropped.resize(op->getNumResults());
      verdict.dropped[result.getResultNumber()] = rule.isRecompute;
      (rule.isRecompute ? verdict.recompute : verdict.save) = &rule;
      if (rule.isRecompute)
        verdict.label = rule.label.empty() ? label : rule.label;
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Plans of other ranks
//===----------------------------------------------------------------------===//

/// Whether `word` is what moves a value of the rule's layers in a program for
/// other ranks: the value's name, and that of an op. This one does not move it.
bool PlanReader::isMoveElsewhere(const PlanWord &word, const PlanRule &rule) {
  std::string name = getShortName(word);
  auto [value, last] = StringRef(name).rsplit('.');
  Move move = getMove(last, word.location->getContext());
  if (move == Move::None || (move == Move::Loss && !rule.isOutside))
    return false;
  // Behind the layers the name of what is of one has its number.
  PlanRule ofLayers(rule.location);
  StringRef inLayer = rule.isOutside ? value.rtrim("0123456789") : "";
  if (findNamed(value, rule).empty() && findNamed(inLayer, ofLayers).empty())
    return false;
  elsewhere.push_back({name, word.location});
  return true;
}

/// One warning for all of them: a plan has such words in each of its rules.
static void warnOfMoves(ArrayRef<PlanWord> words) {
  llvm::SetVector<StringRef> names;
  for (const PlanWord &word : words)
    names.insert(word.text);
  if (names.empty())
    return;
  InFlightDiagnostic warning = emitWarning(words.front().location);
  for (auto [number, name] : llvm::enumerate(names))
    warning << (number == 0                  ? "'"
                : number + 1 == names.size() ? " and '"
                                             : ", '")
            << name << "'";
  warning << (names.size() == 1 ? " moves a value" : " move values")
          << " between ranks, which this program does not: what rules say of "
             "that changes nothing";
}

/// Decides on what moves values between ranks as a plan means it that knows of
/// no such moves, or of others: it keeps no copies of what it makes again. What
/// a move follows may be a move itself.
void PlanReader::followMoves(bool namesRows) {
  auto isDropped = [&](Operation *op) {
    auto found = verdicts.find(op);
    return found != verdicts.end() && found->second.dropped.any() &&
           found->second.label != kFreeLabel;
  };
  bool isChanged = true;
  while (isChanged) {
    isChanged = false;
    for (Operation *op : step.forward) {
      if (verdicts.contains(op) ||
          (namesRows && getTensorMove(op) == Move::None))
        continue;
      Operation *followed = findFollowed(step, op, isDropped);
      if (!followed)
        continue;
      Verdict own = verdicts.lookup(followed);
      own.dropped = llvm::SmallBitVector(1, true);
      verdicts[op] = std::move(own);
      isChanged = true;
    }
  }
}

/// Decides that what `op` makes is kept, or shared. What a chunk of a pipeline
/// passes on is not shared there.
void PlanReader::decideOn(Operation *op, const PlanRule &kept) {
  bool isPassedOn = llvm::any_of(op->getUsers(), [](Operation *user) {
    return user->hasTrait<OpTrait::IsTerminator>();
  });
  if (kept.share.empty() || isPassedOn)
    return decideToSave(op, kept.reason.empty() ? "plan" : kept.reason,
                        kept.segment.value_or(-1));
  if (op->hasAttr(kDecisionAttr))
    return;
  int64_t layer = getHome(step, op->getResult(0)).first;
  decideToShare(op->getResult(0), kept.share,
                kept.segment.value_or(layer < 0 ? numLayers : layer),
                kept.reason);
}

void PlanReader::decide() {
  if (ofBorder && !ofBorder->share.empty()) {
    BlockArgument border = getBorder(function);
    int64_t layer = getBorderLayer(step, border);
    decideToShare(border, ofBorder->share, ofBorder->segment.value_or(layer),
                  ofBorder->reason);
  }
  for (Operation *op : step.forward) {
    auto found = verdicts.find(op);
    if (found == verdicts.end())
      continue;
    const Verdict &verdict = found->second;
    if (verdict.dropped.none()) {
      decideOn(op, *verdict.save);
      continue;
    }
    SmallVector<int64_t> dropped(verdict.dropped.set_bits());
    // What is in no layer comes behind the layers.
    int64_t own = getLayer(op) < 0 ? numLayers : getLayer(op);
    decideToRecompute(op, verdict.recompute->segment.value_or(own),
                      verdict.label, dropped);
  }
}

LogicalResult PlanReader::apply(const PlanFile &plan) {
  if (failed(applyChunks(plan)))
    return failure();
  checkLayers(plan);
  for (const PlanRule &rule : plan.rules)
    if (failed(applyRule(rule)))
      return failure();
  followMoves(plan.namesMoves);
  warnOfMoves(elsewhere);
  decide();
  return success();
}
