//===- FormKernels.cpp - A schedule of launches and products ----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelTable.h"
#include "NNToLinalg.h"
#include "PrepareSchedule.h"
#include "Products.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/Remat/RematOps.h"
#include "reprise/Kernels/Passes.h"
#include "reprise/Support/Shares.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

namespace reprise::kernels {
#define GEN_PASS_DEF_FORMKERNELS
#include "reprise/Kernels/Passes.h.inc"
} // namespace reprise::kernels

using namespace mlir;
using namespace reprise;
using namespace reprise::kernels;
using namespace reprise::nn;

namespace {
/// Turns the ops of one function into a schedule. First everything is decided,
/// on the ops as they are; then the schedule is built, in order.
class ScheduleFormer {
public:
  ScheduleFormer(func::FuncOp function, KernelTable &kernels, bool rowsApart)
      : function(function), block(function.getBody().front()), kernels(kernels),
        rowsApart(rowsApart), builder(function.getContext()) {}

  LogicalResult run();

private:
  enum class Phase { Forward, Backward, Update };
  /// Ops that become one launch or product, by what the first of them is.
  struct Unit {
    SmallVector<Operation *> ops;
    Phase phase;
    Operation *rows = nullptr; ///< the one that goes over rows, if any does
  };

  void findUnits();
  void addToLast(Operation *op);
  AccumulateOp getMergedAccumulate(Operation *op);
  CrossEntropyBackwardOp getMergedBackward(Operation *op);
  bool canBeGrouped(Operation *op, Phase phase) const;
  bool readsForward(Operation *op) const;
  bool fitsGroup(Operation *op, const Unit &unit) const;
  bool extendsGroup(Operation *op, unsigned unit) const;
  bool joinsOthers(Operation *op);
  bool joinsSums(Operation *op);
  bool joinsColumns(Operation *op);
  bool isInside(Operation *op, unsigned unit) const {
    auto found = unitOf.find(op);
    return found != unitOf.end() && found->second == unit;
  }
  bool isDeadAfter(Value value, unsigned unit);

  LogicalResult formUnit(unsigned index);
  LogicalResult formProductUnit(const Unit &unit);
  Value formHeads(Operation *product, const SharedHeads &shared, Value value,
                  Phase phase);
  bool makesSquares(Operation *product, Operation *last);
  void formGlobalNorm(GlobalNormOp op, Phase phase);
  void formSharesNorm(SharesNormOp op, Phase phase);
  void formStagesNorm(StagesNormOp op, Phase phase);
  SmallVector<Value> formSquares(ValueRange gradients, Operation *norm,
                                 Phase phase);
  SmallVector<Value> cutByGradient(Value blocks, ValueRange gradients,
                                   Operation *norm);
  Value formRow(SmallVector<Value> values, Operation *norm, Phase phase);
  Value formZeros(int64_t count, Operation *norm, Phase phase);
  Value formSumOverRanks(Value row, Operation *norm, StringAttr axis,
                         Phase phase);
  void formTransfer(Operation *op, Phase phase);
  Value formRoot(Value sums, Operation *norm, Phase phase);
  void formCollective(Operation *op, Phase phase);
  Value formSums(StringRef name, ValueRange inputs, bool square,
                 Operation *norm, Phase phase);
  rt::LaunchOp formLaunch(func::FuncOp kernel, ValueRange inputs, int64_t flops,
                          Operation *origin, Phase phase);
  void formLaunch(unsigned index);
  void annotate(Operation *formed, Operation *origin, Phase phase,
                ArrayRef<Operation *> ops);

  func::FuncOp function;
  Block &block;
  KernelTable &kernels;
  bool rowsApart; ///< and what a replay may come before
  /// Names of ops of the forward pass that one launch runs after each other.
  llvm::StringSet<> forwardPairs;
  OpBuilder builder;
  std::vector<Unit> units;
  DenseMap<Operation *, unsigned> unitOf;
  /// Gradients of biases, by the gradient of the weight that makes them.
  DenseMap<Operation *, SumRowsOp> biasGradients;
  /// What is a share in the schedule, and what it was taken of there.
  DenseMap<Value, Value> wholeOf;
};

struct FormKernels : public kernels::impl::FormKernelsBase<FormKernels> {
  using FormKernelsBase::FormKernelsBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    FormKernelsBase::getDependentDialects(registry);
    registerKernelBodies(registry);
  }

  void runOnOperation() override {
    SmallVector<func::FuncOp> functions;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isDeclaration() && !function->hasAttr(rt::kKernelAttr))
        functions.push_back(function);
    KernelTable kernels(getOperation());
    for (func::FuncOp function : functions)
      if (failed(ScheduleFormer(function, kernels, rowsApart).run()))
        return signalPassFailure();
  }
};
} // namespace

static bool isOfNN(Operation *op) {
  return isa_and_present<NNDialect>(op->getDialect());
}

LogicalResult ScheduleFormer::run() {
  if (!function.getBody().hasOneBlock())
    return function.emitError("needs one block to become a schedule, but got ")
           << function.getBody().getBlocks().size();
  if (failed(prepareSchedule(function)))
    return failure();
  biasGradients = takeBiasGradients(function);
  findUnits();

  SmallVector<Operation *> old;
  for (Operation &op : block)
    if (isOfNN(&op))
      old.push_back(&op);
  for (unsigned index = 0; index < units.size(); ++index)
    if (failed(formUnit(index)))
      return failure();
  for (Operation *op : llvm::reverse(old))
    op->erase();
  return success();
}

//===----------------------------------------------------------------------===//
// Units
//===----------------------------------------------------------------------===//

/// The accumulate that `op`, next in the schedule, can do itself; or null.
AccumulateOp ScheduleFormer::getMergedAccumulate(Operation *op) {
  if (!canStartFromSum(op) || !op->getResult(0).hasOneUse())
    return {};
  Value term = op->getResult(0);
  auto accumulate = dyn_cast<AccumulateOp>(*term.getUsers().begin());
  if (!accumulate || accumulate.getTerm() != term)
    return {};
  // The old sum is there already, and only this reads it.
  Value sum = accumulate.getSum();
  Operation *definition = sum.getDefiningOp();
  bool isThere = !definition || unitOf.count(definition);
  return isThere && sum.hasOneUse() ? accumulate : AccumulateOp();
}

/// The gradient of the losses that `op`, next in the schedule, makes, if it
/// comes right behind: both go over the same rows. A replay of the losses is a
/// launch of rows like others.
CrossEntropyBackwardOp ScheduleFormer::getMergedBackward(Operation *op) {
  auto loss = dyn_cast<CrossEntropyOp>(op);
  if (!loss || (rowsApart && op->hasAttr(remat::kReplayAttr)))
    return {};
  auto backward =
      dyn_cast_if_present<CrossEntropyBackwardOp>(op->getNextNode());
  return backward && backward.getLogits() == loss.getLogits() &&
                 backward.getTargets() == loss.getTargets() &&
                 backward.getClasses() == loss.getClasses() &&
                 backward.getLse() == loss.getLse()
             ? backward
             : CrossEntropyBackwardOp();
}

static ShapedType getType(Operation *op) {
  return cast<ShapedType>(op->getResult(0).getType());
}

/// Whether all that `op` reads and makes of the shape of `type` is of `type`.
static bool hasOneType(Operation *op, ShapedType type) {
  auto fits = [&](Type other) {
    return other == type ||
           cast<ShapedType>(other).getShape() != type.getShape();
  };
  return llvm::all_of(op->getOperandTypes(), fits) &&
         llvm::all_of(op->getResultTypes(), fits);
}

/// Whether `op` may be beside others. A replay of rows is alone: it takes as
/// long as it was said to take when a plan asked for it.
bool ScheduleFormer::canBeGrouped(Operation *op, Phase phase) const {
  return op->hasTrait<nn::Pointwise>() ||
         (op->hasTrait<nn::Rowwise>() &&
          !(rowsApart && phase == Phase::Forward) &&
          !op->hasAttr(remat::kReplayAttr));
}

/// Whether `op` can be in a group with `unit`, as far as shapes go: all ops are
/// pointwise, but for one that goes over rows. With that one, all elements are
/// of one type, so that rows are cut up as they are without the others, and
/// sums over them have the same order.
bool ScheduleFormer::fitsGroup(Operation *op, const Unit &unit) const {
  Operation *last = unit.ops.back();
  if (!canBeGrouped(op, unit.phase) || !canBeGrouped(last, unit.phase) ||
      canStartFromSum(unit.ops.front()))
    return false;
  ShapedType type = getType(op);
  if (type.getShape() != getType(last).getShape())
    return false;
  if (!op->hasTrait<nn::Rowwise>())
    return !unit.rows || (hasOneType(op, type) && hasOneType(last, type));
  return !unit.rows && hasOneType(op, type) &&
         llvm::all_of(unit.ops,
                      [&](Operation *one) { return hasOneType(one, type); });
}

/// Whether `op` reads what the forward pass or a replay makes: under some plan
/// a replay comes right before it.
bool ScheduleFormer::readsForward(Operation *op) const {
  return llvm::any_of(op->getOperands(), [&](Value operand) {
    auto found = unitOf.find(operand.getDefiningOp());
    return found != unitOf.end() &&
           (units[found->second].phase == Phase::Forward ||
            found->first->hasAttr(remat::kReplayAttr));
  });
}

/// "layer3.residual.x1, layer3.residual.x2", also of their replays.
static std::string getPair(Operation *first, Operation *second) {
  return getScopeName(getScope(first)) + ", " + getScopeName(getScope(second));
}

/// Whether `op` continues `unit`, the last of the schedule: it reads what is
/// made there, or has it made on its way.
bool ScheduleFormer::extendsGroup(Operation *op, unsigned unit) const {
  Operation *last = units[unit].ops.back();
  if (!fitsGroup(op, units[unit]) || op->hasAttr(remat::kFreeAttr))
    return false;
  if (last->hasAttr(remat::kFreeAttr))
    return true;
  if (rowsApart && units[unit].phase == Phase::Backward &&
      !op->hasAttr(remat::kReplayAttr) && readsForward(op))
    return false;
  if (rowsApart && op->hasAttr(remat::kReplayAttr) &&
      !forwardPairs.contains(getPair(last, op)))
    return false;
  return op->getAttr(remat::kReplayAttr) == last->getAttr(remat::kReplayAttr) &&
         llvm::any_of(op->getOperands(), [&](Value operand) {
           return isInside(operand.getDefiningOp(), unit);
         });
}

/// Whether `op` does for one parameter what the last unit does for others.
bool ScheduleFormer::joinsOthers(Operation *op) {
  // The verifier of a plan compares all buffers of a launch, at most 8 for an
  // update, with each other. As many parameters has a layer of GPT-2: its
  // layers share a kernel.
  constexpr int64_t kMost = 16;
  if (!op->hasTrait<OneOfMany>() || units.empty())
    return false;
  auto isAlike = [&](Operation *other) {
    return other->getName() == op->getName();
  };
  const Unit &last = units.back();
  return isAlike(last.ops.front()) && llvm::count_if(last.ops, isAlike) < kMost;
}

/// Whether `op` adds the gradient of a bias beside others in the last unit.
bool ScheduleFormer::joinsSums(Operation *op) {
  // A sum has three buffers: with so many a kernel's parameters, one for each,
  // are well below what PTX allows.
  constexpr size_t kMostSums = 64;
  auto isOfBias = [&](Operation *op) {
    auto accumulate = dyn_cast<AccumulateOp>(op);
    return accumulate && accumulate.getTerm().getDefiningOp<SumRowsOp>();
  };
  return isOfBias(op) && !units.empty() && isOfBias(units.back().ops.front()) &&
         units.back().ops.size() < kMostSums;
}

static bool sumsColumns(Operation *op) {
  auto sum = dyn_cast<SumBody>(op);
  return sum && sum.sumsColumns();
}

/// Whether `op` sums columns of rows that the last unit reads for such a sum
/// too. All rows are of one type: they are cut up in one way then, so each sum
/// has the order that it has alone.
bool ScheduleFormer::joinsColumns(Operation *op) {
  // As many buffers as an update has.
  constexpr size_t kMostColumns = 16;
  if (!sumsColumns(op) || units.empty())
    return false;
  unsigned last = units.size() - 1;
  const Unit &unit = units[last];
  Operation *first = unit.ops.front();
  auto type = cast<ShapedType>(op->getOperand(0).getType());
  auto fits = [&](Operation *one) {
    return isa<AccumulateOp>(one) || hasOneType(one, type);
  };
  if (!sumsColumns(first) || getType(first) != getType(op) ||
      first->getOperand(0).getType() != type || !fits(op) ||
      !llvm::all_of(unit.ops, fits) || unit.ops.size() >= kMostColumns)
    return false;
  // What reads a sum of the unit, or starts from one, can only come behind it.
  SmallVector<Value> read(op->getOperands());
  if (AccumulateOp accumulate = getMergedAccumulate(op))
    read.push_back(accumulate.getSum());
  if (llvm::any_of(read, [&](Value value) {
        return isInside(value.getDefiningOp(), last);
      }))
    return false;
  return llvm::any_of(op->getOperands(), [&](Value operand) {
    return llvm::any_of(operand.getUsers(),
                        [&](Operation *user) { return isInside(user, last); });
  });
}

void ScheduleFormer::addToLast(Operation *op) {
  Unit &unit = units.back();
  unit.ops.push_back(op);
  unitOf[op] = units.size() - 1;
  if (op->hasTrait<nn::Rowwise>())
    unit.rows = op;
}

void ScheduleFormer::findUnits() {
  Phase phase = Phase::Forward;
  bool isOpen = false;
  for (Operation &op : block) {
    // A launch is where the last of its ops is: in front of views of it.
    if (!isOfNN(&op))
      isOpen = isOpen && llvm::none_of(op.getOperands(), [&](Value operand) {
                 return isInside(operand.getDefiningOp(), units.size() - 1);
               });
    if (!isOfNN(&op) || unitOf.count(&op))
      continue;
    if (isa<ForwardOp, BackwardOp>(op)) {
      phase = isa<ForwardOp>(op) ? Phase::Forward : Phase::Backward;
      isOpen = false;
      continue;
    }
    if (isOpen && extendsGroup(&op, units.size() - 1)) {
      if (phase == Phase::Forward)
        forwardPairs.insert(getPair(units.back().ops.back(), &op));
      addToLast(&op);
      continue;
    }
    if (isa<UpdateOp>(op))
      phase = Phase::Update;
    if (!joinsOthers(&op) && !joinsSums(&op) && !(isOpen && joinsColumns(&op)))
      units.push_back({{}, phase});
    addToLast(&op);
    Operation *partner = getMergedAccumulate(&op);
    if (auto adamw = dyn_cast<AdamWOp>(op))
      partner = getZeroBehind(adamw, getWhole(adamw.getGradient()));
    if (Operation *backward = getMergedBackward(&op))
      partner = backward;
    for (Operation *other : {partner, biasGradients.lookup(&op).getOperation()})
      if (other)
        addToLast(other);
    isOpen = true;
  }
}

/// Whether nothing reads `value` once `unit` has run. What has no unit is part
/// of the schedule before it, or the end of the function; or views and joins,
/// whose readers may come later.
bool ScheduleFormer::isDeadAfter(Value value, unsigned unit) {
  return llvm::none_of(value.getUsers(), [&](Operation *user) {
    auto found = unitOf.find(user);
    return found == unitOf.end() ? user == block.getTerminator() ||
                                       isa<rt::ViewOp, rt::JoinOp>(user)
                                 : found->second > unit;
  });
}

//===----------------------------------------------------------------------===//
// The schedule
//===----------------------------------------------------------------------===//

/// "layer3.mlp.u", "layer3.mlp.u@replay", "layer3.mlp.u.backward_weight",
/// "optimizer".
static std::string getLaunchName(Operation *op, bool isBackward) {
  if (op->hasTrait<OneOfMany>())
    return isa<AdamWOp>(op) ? "optimizer" : "push";
  if (auto accumulate = dyn_cast<AccumulateOp>(op); // Likewise.
      accumulate &&
      isa_and_present<rt::GemmOp>(accumulate.getTerm().getDefiningOp()))
    return "bias_gradients";
  std::string name = getScopeName(getScope(op));
  StringRef mnemonic = op->getName().stripDialect();
  if (name.empty())
    name = mnemonic.str();
  if (op->hasAttr(remat::kReplayAttr))
    return name + "@replay";
  if (!isBackward)
    return name;
  if (isa<SumRowsOp>(op))
    return name + ".backward_bias";
  size_t suffix = mnemonic.find("backward");
  return name + "." +
         (suffix == StringRef::npos ? "backward" : mnemonic.substr(suffix))
             .str();
}

/// The op that makes `value`, or the term that it adds to a sum on its way.
static Operation *getMaker(Value value) {
  auto accumulate = value.getDefiningOp<AccumulateOp>();
  Operation *term = accumulate ? accumulate.getTerm().getDefiningOp() : nullptr;
  return term && canStartFromSum(term) ? term : value.getDefiningOp();
}

void ScheduleFormer::annotate(Operation *formed, Operation *origin, Phase phase,
                              ArrayRef<Operation *> ops) {
  formed->setAttr(rt::kNameAttr, builder.getStringAttr(getLaunchName(
                                     origin, phase == Phase::Backward)));
  if (Attribute replay = origin->getAttr(remat::kReplayAttr))
    formed->setAttr(remat::kReplayAttr, replay);
  remat::keepIds(ops, formed);
}

LogicalResult ScheduleFormer::formUnit(unsigned index) {
  const Unit &unit = units[index];
  Operation *first = unit.ops.front();
  builder.setInsertionPoint(first);
  if (isProduct(first))
    return formProductUnit(unit);
  if (isa<UpdateOp>(first))
    rt::UpdateOp::create(builder, first->getLoc());
  else if (auto norm = dyn_cast<GlobalNormOp>(first))
    formGlobalNorm(norm, unit.phase);
  else if (auto norm = dyn_cast<SharesNormOp>(first))
    formSharesNorm(norm, unit.phase);
  else if (auto norm = dyn_cast<StagesNormOp>(first))
    formStagesNorm(norm, unit.phase);
  else if (isa<SendOp, ReceiveOp>(first))
    formTransfer(first, unit.phase);
  else if (isCollective(first))
    formCollective(first, unit.phase);
  else
    formLaunch(index);
  return success();
}

LogicalResult ScheduleFormer::formProductUnit(const Unit &unit) {
  Operation *product = unit.ops.front(), *last = product;
  std::optional<SharedHeads> shared = getSharedHeads(product);
  if (shared && !shared->areSummed)
    product->setOperand(
        1, formHeads(product, *shared, product->getOperand(1), unit.phase));
  Value addend;
  for (Operation *op : unit.ops)
    if (auto accumulate = dyn_cast<AccumulateOp>(op)) {
      addend = accumulate.getSum();
      last = op;
    }
  SumRowsOp sums = biasGradients.lookup(product);
  Beside beside = sums                          ? Beside::SumOfRows
                  : makesSquares(product, last) ? Beside::Squares
                                                : Beside::Nothing;
  rt::GemmOp gemm = formProduct(builder, product, addend, beside);
  annotate(gemm, product, unit.phase, product);
  if (sums)
    sums.getOut().replaceAllUsesWith(gemm.getAuxiliary());
  Value result = gemm.getResult();
  if (shared && shared->areSummed)
    result = formHeads(product, *shared, result, unit.phase);
  last->getResult(0).replaceAllUsesWith(result);
  return success();
}

rt::LaunchOp ScheduleFormer::formLaunch(func::FuncOp kernel, ValueRange inputs,
                                        int64_t flops, Operation *origin,
                                        Phase phase) {
  auto launch = rt::LaunchOp::create(
      builder, origin->getLoc(), kernel.getResultTypes(), kernel.getSymName(),
      inputs, ValueRange(), DenseI64ArrayAttr(), flops);
  annotate(launch, origin, phase, origin);
  return launch;
}

/// `value` with its heads of keys repeated for each head of queries, or its
/// heads of queries summed for each head of keys.
Value ScheduleFormer::formHeads(Operation *product, const SharedHeads &shared,
                                Value value, Phase phase) {
  int64_t heads = shared.heads, keyHeads = shared.keyHeads;
  bool areSummed = shared.areSummed;
  int64_t have = areSummed ? heads : keyHeads;
  int64_t want = areSummed ? keyHeads : heads;
  auto from = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(from.getShape());
  shape.back() = shape.back() / have * want;
  // Sums of heads are rounded once, as is the result of any op.
  Type element = areSummed ? getElementTypeOrSelf(product->getResult(0))
                           : from.getElementType();
  auto to = RankedTensorType::get(shape, element);

  std::string name = areSummed ? "sum_heads_" : "repeat_heads_";
  name += std::to_string(have) + "_to_" + std::to_string(want);
  for (auto [index, size] : llvm::enumerate(from.getShape()))
    name += (index ? "x" : "_") + std::to_string(size);
  if (element.isBF16())
    name += "_bf16";
  func::FuncOp kernel = kernels.getKernel(
      name, builder.getFunctionType(from, to),
      [&](OpBuilder &body, ValueRange arguments) {
        LoopBuilder loops(body, product->getLoc());
        Value result = (areSummed ? buildSummedHeads : buildRepeatedHeads)(
            loops, arguments[0], heads, keyHeads, element);
        return loops.asShapeOf(result, to);
      });
  int64_t flops = areSummed ? from.getNumElements() - to.getNumElements() : 0;
  return formLaunch(kernel, value, flops, product, phase).getResult(0);
}

/// Whether `product`, whose result is that of `last`, sums the squares of a
/// gradient for the norm, which then need not read it: it is the gradient of a
/// weight, which nothing is added to any more. Those of the CPU do, not a
/// library's.
bool ScheduleFormer::makesSquares(Operation *product, Operation *last) {
  auto module = function->getParentOfType<ModuleOp>();
  bool isLibrary = module && module->hasAttr(rt::kGemmWorkspaceAttr);
  return !isLibrary && isa<LinearBackwardWeightOp>(product) &&
         llvm::any_of(last->getResult(0).getUsers(),
                      llvm::IsaPred<GlobalNormOp, StagesNormOp>);
}

/// The sums of the blocks of `inputs`, or of their squares.
Value ScheduleFormer::formSums(StringRef name, ValueRange inputs, bool square,
                               Operation *norm, Phase phase) {
  int64_t numBlocks = 0, numElements = 0;
  for (Type type : inputs.getTypes()) {
    int64_t size = cast<ShapedType>(type).getNumElements();
    numElements += size;
    numBlocks += llvm::divideCeil(size, rt::BlockSumsOp::kBlock);
  }
  auto sums = RankedTensorType::get({numBlocks}, builder.getF32Type());
  func::FuncOp kernel =
      kernels.getKernel((name + "_" + Twine(numBlocks)).str(),
                        builder.getFunctionType(inputs.getTypes(), sums),
                        [&](OpBuilder &body, ValueRange arguments) -> Value {
                          return rt::BlockSumsOp::create(
                              body, norm->getLoc(), sums, arguments, square);
                        });
  return formLaunch(kernel, inputs, (square ? 2 : 1) * numElements, norm, phase)
      .getResult(0);
}

static int64_t countBlocks(Value value) {
  return llvm::divideCeil(cast<ShapedType>(value.getType()).getNumElements(),
                          rt::BlockSumsOp::kBlock);
}

/// Of a row that has the blocks of all gradients one behind the other, those of
/// each.
SmallVector<Value> ScheduleFormer::cutByGradient(Value blocks,
                                                 ValueRange gradients,
                                                 Operation *norm) {
  SmallVector<Value> values;
  int64_t first = 0;
  for (Value gradient : gradients) {
    auto type =
        RankedTensorType::get({countBlocks(gradient)}, builder.getF32Type());
    values.push_back(
        rt::ViewOp::create(builder, norm->getLoc(), type, blocks, first));
    first += type.getNumElements();
  }
  return values;
}

/// For each gradient a row that sums up to the sum of its squares. Products
/// have made that of some beside them, for blocks of their own.
SmallVector<Value> ScheduleFormer::formSquares(ValueRange gradients,
                                               Operation *norm, Phase phase) {
  SmallVector<Value> plain, values(gradients.size());
  for (auto [value, gradient] : llvm::zip_equal(values, gradients)) {
    auto gemm = gradient.getDefiningOp<rt::GemmOp>();
    if (gemm && gemm.getEpilogue() == rt::Epilogue::SquaresOfC)
      value = gemm.getAuxiliary();
    else
      plain.push_back(gradient);
  }
  if (plain.empty())
    return values;
  Value blocks =
      formSums("sums_of_squares", plain, /*square=*/true, norm, phase);
  SmallVector<Value> rows = cutByGradient(blocks, plain, norm);
  const Value *next = rows.begin();
  for (Value &value : values)
    if (!value)
      value = *next++;
  return values;
}

/// The sums of rows, one behind the other. A sum depends on its own row alone.
Value ScheduleFormer::formRow(SmallVector<Value> values, Operation *norm,
                              Phase phase) {
  while (true) {
    Value sums = formSums("sums", values, /*square=*/false, norm, phase);
    bool isDone = cast<ShapedType>(sums.getType()).getNumElements() ==
                  int64_t(values.size());
    if (isDone)
      return sums;
    values = cutByGradient(sums, values, norm);
  }
}

/// The norm is the root of the sum, over the gradients in order, of the sum of
/// the squares of each.
void ScheduleFormer::formGlobalNorm(GlobalNormOp op, Phase phase) {
  Value row = formRow(formSquares(op.getGradients(), op, phase), op, phase);
  op.getNorm().replaceAllUsesWith(formRoot(row, op, phase));
}

/// The root of the sum of `sums`, which is what `norm` makes.
Value ScheduleFormer::formRoot(Value sums, Operation *norm, Phase phase) {
  int64_t numBlocks = cast<ShapedType>(sums.getType()).getNumElements();
  Location loc = norm->getLoc();
  Type scalar = norm->getResult(0).getType();
  func::FuncOp root = kernels.getKernel(
      "root_of_sum_" + std::to_string(numBlocks),
      builder.getFunctionType(sums.getType(), scalar),
      [&](OpBuilder &body, ValueRange arguments) {
        LoopBuilder loops(body, loc);
        return loops.asShapeOf(buildRootOfSum(loops, arguments[0]), scalar);
      });
  return formLaunch(root, sums, numBlocks + 1, norm, phase).getResult(0);
}

/// As the norm of whole gradients. Each block is in the share of one rank, and
/// zero on all others: adding these up changes no bit.
void ScheduleFormer::formSharesNorm(SharesNormOp op, Phase phase) {
  static_assert(rt::BlockSumsOp::kBlock == REPRISE_SHARE_BLOCK,
                "shares begin where blocks do");
  Value own = formSums("sums_of_squares", op.getGradients(), /*square=*/true,
                       op, phase);
  Value sums = formSumOverRanks(own, op, op.getAxisAttr(), phase);
  Value row = formRow(cutByGradient(sums, op.getGradients(), op), op, phase);
  op.getNorm().replaceAllUsesWith(formRoot(row, op, phase));
}

Value ScheduleFormer::formZeros(int64_t count, Operation *norm, Phase phase) {
  auto type = RankedTensorType::get({count}, builder.getF32Type());
  func::FuncOp kernel = kernels.getKernel(
      "zeros_" + std::to_string(count), builder.getFunctionType({}, type),
      [&](OpBuilder &body, ValueRange) -> Value {
        return ConstantOp::create(body, norm->getLoc(), type,
                                  body.getF32FloatAttr(0));
      });
  return formLaunch(kernel, ValueRange(), /*flops=*/0, norm, phase)
      .getResult(0);
}

/// As the norm of all gradients: a row has a place for each, zero where another
/// stage has it. Adding these rows up changes no bit.
void ScheduleFormer::formStagesNorm(StagesNormOp op, Phase phase) {
  ArrayRef<int64_t> places = op.getPlaces();
  SmallVector<Value> squares = formSquares(op.getGradients(), op, phase);
  SmallVector<Value> parts;
  int64_t next = 0, count = op.getCount();
  for (size_t begin = 0, end = 0; begin < places.size(); begin = end) {
    for (end = begin + 1; end < places.size();)
      if (places[end] != places[end - 1] + 1)
        break;
      else
        ++end;
    if (places[begin] > next)
      parts.push_back(formZeros(places[begin] - next, op, phase));
    parts.push_back(
        formRow(SmallVector<Value>(ArrayRef(squares).slice(begin, end - begin)),
                op, phase));
    next = places[end - 1] + 1;
  }
  if (next < count)
    parts.push_back(formZeros(count - next, op, phase));
  auto type = RankedTensorType::get({count}, builder.getF32Type());
  Value row =
      parts.size() == 1
          ? parts.front()
          : rt::JoinOp::create(builder, op.getLoc(), type, parts).getOut();
  Value all = formSumOverRanks(row, op, op.getAxisAttr(), phase);
  op.getNorm().replaceAllUsesWith(formRoot(all, op, phase));
}

/// The sum over the ranks along an axis of a row that `norm` makes.
Value ScheduleFormer::formSumOverRanks(Value row, Operation *norm,
                                       StringAttr axis, Phase phase) {
  auto sums = rt::CollectiveOp::create(
      builder, norm->getLoc(), row.getType(), rt::Collective::AllReduce, row,
      /*outputs=*/ValueRange(), /*workspace=*/Value(), axis,
      getAxisSize(function->getParentOfType<ModuleOp>(), axis), /*dim=*/0,
      /*members=*/DenseI64ArrayAttr());
  annotate(sums, norm, phase, norm);
  return sums.getResults().front();
}

void ScheduleFormer::formTransfer(Operation *op, Phase phase) {
  Operation *formed;
  int64_t lane;
  if (auto send = dyn_cast<SendOp>(op)) {
    lane = send.getLane();
    formed = rt::SendOp::create(builder, op->getLoc(), send.getValue(),
                                send.getAxisAttr(), send.getPeerAttr(),
                                send.getLaneAttr(), send.getPlacesAttr());
  } else {
    auto receive = cast<ReceiveOp>(op);
    lane = receive.getLane();
    formed = rt::ReceiveOp::create(builder, op->getLoc(), receive.getType(),
                                   /*output=*/Value(), receive.getAxisAttr(),
                                   receive.getPeerAttr(), receive.getLaneAttr(),
                                   receive.getPlacesAttr());
    receive.getValue().replaceAllUsesWith(formed->getResult(0));
  }
  annotate(formed, op, phase, op);
  std::string name = op->getName().stripDialect().str();
  name += lane == 0 ? "_activation" : "_gradient";
  formed->setAttr(rt::kNameAttr, builder.getStringAttr(name));
}

void ScheduleFormer::formCollective(Operation *op, Phase phase) {
  auto kind =
      TypeSwitch<Operation *, rt::Collective>(op)
          .Case([](AllReduceOp) { return rt::Collective::AllReduce; })
          .Case([](AllGatherOp) { return rt::Collective::AllGather; })
          .Case([](ReduceSharesOp) { return rt::Collective::ReduceShares; })
          .Case([](GatherSharesOp) { return rt::Collective::GatherShares; })
          .Default(rt::Collective::ReduceScatter);
  auto axis = op->getAttrOfType<StringAttr>("axis");
  auto dim = op->getAttrOfType<IntegerAttr>("dim");
  auto members = op->getAttrOfType<DenseI64ArrayAttr>("members");
  int64_t ranks =
      members ? members.size()
              : getAxisSize(function->getParentOfType<ModuleOp>(), axis);
  auto formed = rt::CollectiveOp::create(
      builder, op->getLoc(), op->getResultTypes(), kind, op->getOperands(),
      /*outputs=*/ValueRange(), /*workspace=*/Value(), axis, ranks,
      dim ? dim.getInt() : 0, members);
  annotate(formed, op, phase, op);
  op->replaceAllUsesWith(formed.getResults());
}

void ScheduleFormer::formLaunch(unsigned index) {
  const Unit &unit = units[index];
  Group group(unit.ops);
  int64_t flops = 0;
  for (Operation *op : unit.ops) {
    // What is made on the way of a gradient is a part of it.
    auto cost = dyn_cast<CostModel>(op);
    if (cost && !op->hasAttr(remat::kFreeAttr))
      flops += cost.getFlops();
    for (Value operand : op->getOperands()) {
      if (!isInside(operand.getDefiningOp(), index))
        group.inputs.insert(operand);
    }
    // What nobody reads is kept where the op makes it beside another, so that
    // equal ops share a kernel.
    for (Value result : op->getResults()) {
      bool isRead = llvm::any_of(result.getUsers(), [&](Operation *user) {
        return !isInside(user, index);
      });
      if (isRead || (result.use_empty() && op->getNumResults() > 1))
        group.outputs.insert(result);
    }
  }
  if (group.outputs.empty())
    return;

  auto putInPlace = [&](Value input, Value output) {
    if (group.inputs.contains(input) && group.outputs.contains(output) &&
        isDeadAfter(input, index))
      group.inPlace.insert({input, output});
  };
  for (Operation *op : unit.ops) {
    if (auto accumulate = dyn_cast<AccumulateOp>(op)) {
      // Of sums of sums the last replaces what the first adds to.
      Value sum = accumulate.getSum();
      for (auto inner = sum.getDefiningOp<AccumulateOp>();
           inner && isInside(inner, index) && !group.outputs.contains(sum);
           inner = sum.getDefiningOp<AccumulateOp>())
        sum = inner.getSum();
      putInPlace(sum, accumulate.getOut());
    }
    if (auto push = dyn_cast<PushOp>(op)) {
      putInPlace(push.getSum(), push.getRest());
      putInPlace(push.getPlace(), push.getPushed());
    }
    if (auto balance = dyn_cast<BalanceBiasOp>(op))
      putInPlace(balance.getBias(), balance.getNewBias());
    if (auto adamw = dyn_cast<AdamWOp>(op)) {
      putInPlace(adamw.getParameter(), adamw.getNewParameter());
      putInPlace(adamw.getMoment1(), adamw.getNewMoment1());
      putInPlace(adamw.getMoment2(), adamw.getNewMoment2());
      if (adamw.getWorking())
        putInPlace(adamw.getWorking(), adamw.getNewWorking());
      // Of a share, the launch that took it is there by now.
      Value sum = wholeOf.lookup(adamw.getGradient());
      if (!sum)
        sum = adamw.getGradient();
      if (ConstantOp zero = getZeroBehind(adamw, sum)) {
        group.inputs.insert(sum);
        putInPlace(sum, zero.getOut());
      }
    }
  }

  func::FuncOp kernel = kernels.getKernel(group);
  SmallVector<int64_t> ids = kernels.getIds(unit.ops);
  // What adds a sum up may come long after the launch that does so.
  bool isMerged = canStartFromSum(unit.ops.front());
  bool isOfMany = unit.ops.front()->hasTrait<OneOfMany>();
  Operation *origin = isMerged || isOfMany ? unit.ops.front() : unit.ops.back();
  if (unit.rows)
    origin = unit.rows;
  Operation *place = unit.ops.back();
  for (Operation *op : unit.ops)
    if (canStartFromSum(op))
      place = op;
  builder.setInsertionPoint(place);
  // A launch comes from all of its ops, in their order.
  SmallVector<Location> locs =
      llvm::map_to_vector(unit.ops, [](Operation *op) { return op->getLoc(); });
  auto launch = rt::LaunchOp::create(
      builder, FusedLoc::get(builder.getContext(), locs),
      kernel.getResultTypes(), kernel.getSymName(), group.inputs.getArrayRef(),
      ValueRange(),
      ids.empty() ? DenseI64ArrayAttr() : builder.getDenseI64ArrayAttr(ids),
      flops);
  annotate(launch, origin, unit.phase, unit.ops);
  SmallVector<Attribute> makers;
  for (Value output : group.outputs)
    makers.push_back(builder.getStringAttr(
        getLaunchName(getMaker(output), unit.phase == Phase::Backward)));
  bool isOfName = llvm::all_of(makers, [&](Attribute maker) {
    return maker == launch->getAttr(rt::kNameAttr);
  });
  if (!isOfMany && !isOfName)
    launch->setAttr(rt::kMadeByAttr, builder.getArrayAttr(makers));
  for (auto [output, result] :
       llvm::zip(group.outputs.takeVector(), launch.getResults()))
    output.replaceAllUsesWith(result);
  if (isa<TakeShareOp>(unit.ops.front()))
    wholeOf[launch.getResult(0)] = group.inputs.front();
}
