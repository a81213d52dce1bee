//===- WhatIf.cpp - What-if compiles of a program ---------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WhatIf.h"
#include "mlir/Pass/PassManager.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/NN/Phases.h"
#include "reprise/Dialect/NN/Schedules.h"
#include "reprise/Dialect/RT/RTWaitOp.h"
#include "reprise/Dialect/RT/ScheduledOp.h"
#include "reprise/Dialect/Remat/RematOps.h"
#include "reprise/Kernels/Passes.h"
#include "reprise/Memory/WaitingInputs.h"
#include "reprise/Memory/WrittenGradients.h"
#include "reprise/Remat/Summary.h"
#include "reprise/Support/CopyModule.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::planning;

FailureOr<std::unique_ptr<WhatIf>> WhatIf::create(ModuleOp module,
                                                  Phases phases) {
  std::unique_ptr<WhatIf> whatIf(new WhatIf(
      std::make_unique<MLIRContext>(module.getContext()->getDialectRegistry(),
                                    MLIRContext::Threading::DISABLED),
      std::move(phases)));
  whatIf->context->getDiagEngine().registerHandler([](Diagnostic &) {});
  whatIf->module = copyInto(*whatIf->context, module);
  if (!whatIf->module || !whatIf->getStep() ||
      !whatIf->getStep().getBody().hasOneBlock())
    return failure();
  return whatIf;
}

func::FuncOp WhatIf::getStep() const {
  return module.get().lookupSymbol<func::FuncOp>(nn::kStepFunction);
}

FailureOr<OwningOpRef<ModuleOp>>
WhatIf::plan(function_ref<void(func::FuncOp)> decide, bool isFree,
             bool rowsApart, const KnownOffsets *offsets) {
  OwningOpRef<ModuleOp> program = module->clone();
  auto step = program->lookupSymbol<func::FuncOp>(nn::kStepFunction);
  decide(step);
  // The graph has ops in which ranks meet whole, and where they stand.
  if (rowsApart)
    program.get()->setAttr(rt::kNoOverlapAttr, UnitAttr::get(context.get()));
  PassManager toSchedule(context.get()), toPlan(context.get());
  // What is kept of it runs these passes again, and is verified then.
  toSchedule.enableVerifier(false);
  toPlan.enableVerifier(false);
  phases.applyDecisions(toSchedule, isFree);
  phases.formKernels(toSchedule, rowsApart);
  phases.planMemory(toPlan);
  if (failed(toSchedule.run(*program)))
    return failure();
  if (offsets)
    writeKnownOffsets(step, *offsets);
  if (failed(toPlan.run(*program)))
    return failure();
  return program;
}

FailureOr<PlannedBytes> planning::getPlannedBytes(ModuleOp module) {
  auto plan = module->getAttrOfType<rt::PlanAttr>(rt::kPlanAttr);
  rt::ArenaAttr arena =
      plan ? plan.getArena(rt::Space::Device) : rt::ArenaAttr();
  if (!arena)
    return failure();
  return PlannedBytes{arena.getBytes(),
                      arena.getBytesOf(rt::Category::Activations),
                      arena.getBegin(), arena.getLeast()};
}

//===----------------------------------------------------------------------===//
// From a schedule to a graph
//===----------------------------------------------------------------------===//

namespace {
/// Reads the schedule of a step whose ops have been told apart by
/// `remat.id`.
class GraphReader {
public:
  GraphReader(ModuleOp module, func::FuncOp original, const CostTable &costs)
      : symbols(module), original(original), costs(costs) {
    for (auto [number, op] : llvm::enumerate(original.getBody().front())) {
      ops.push_back(&op);
      if (nn::begins(&op, nn::StepPhase::Backward))
        backward = number;
      if (nn::begins(&op, nn::StepPhase::Update))
        update = number;
    }
  }

  LogicalResult read(func::FuncOp step, TracedGraph &traced);

private:
  int64_t addValue(Value value);
  solver::StepPhase getPhase(int64_t last) const;
  LogicalResult readScheduled(rt::ScheduledOp op);
  LogicalResult readSharing(rt::ScheduledOp op, solver::StepOp &into);
  void traceResults(rt::ScheduledOp op, ArrayRef<int64_t> numbers);
  void setRules();

  SymbolTable symbols;
  func::FuncOp original;
  const CostTable &costs;
  std::vector<Operation *> ops; ///< of the original, by number
  int64_t backward = -1, update = INT64_MAX;
  TracedGraph *traced = nullptr;
  DenseMap<Value, int64_t> numberOf;
};
} // namespace

int64_t GraphReader::addValue(Value value) {
  auto [entry, isNew] = numberOf.try_emplace(value, 0);
  if (!isNew)
    return entry->second;
  int64_t number = traced->graph.values.size();
  entry->second = number;
  solver::StepValue &added = traced->graph.values.emplace_back();
  added.bytes = getTypeBytes(value.getType());
  added.outlives = isa<BlockArgument>(value);
  traced->origins.emplace_back();
  return number;
}

LogicalResult GraphReader::readSharing(rt::ScheduledOp op,
                                       solver::StepOp &into) {
  FailureOr<SmallVector<rt::Sharing>> sharing = op.getSharing(symbols);
  if (failed(sharing))
    return failure();
  for (rt::Sharing pair : *sharing) {
    int64_t made = into.writes[pair.write];
    // What is made in the bytes of a state is there as long as that, as the
    // rows of a step so far; and it takes no other's.
    if (pair.isForced && traced->graph.values[into.reads[pair.read]].outlives)
      traced->graph.values[made].outlives = true;
    if (pair.isForced || !traced->graph.values[made].outlives)
      into.sharing.push_back({int64_t(pair.read), pair.write, pair.isForced});
  }
  return success();
}

/// Whether a value of one type is of the other in a schedule: it may have more
/// columns there, as logits of a padded vocabulary have.
static bool isSame(Type original, Type scheduled) {
  auto from = cast<ShapedType>(original), to = cast<ShapedType>(scheduled);
  return from == to ||
         (from.getElementType() == to.getElementType() &&
          from.getRank() == to.getRank() && from.getRank() > 1 &&
          from.getShape().drop_back() == to.getShape().drop_back() &&
          from.getShape().back() < to.getShape().back());
}

/// Says of the results of `op`, of the forward pass, which op of the original
/// makes them.
void GraphReader::traceResults(rt::ScheduledOp op, ArrayRef<int64_t> numbers) {
  auto trace = [&](Value result, int64_t number, unsigned resultNumber) {
    Operation *maker = ops[number];
    if (resultNumber < maker->getNumResults() &&
        isSame(maker->getResult(resultNumber).getType(), result.getType()))
      traced->origins[numberOf.lookup(result)] = {number, resultNumber};
  };
  Block *body = op.getFusedOps(symbols);
  // A GEMM of groups on a GPU is a launch with nothing else in it.
  if (!body || isa<rt::GemmOp>(body->front()))
    return trace(op->getResult(0), numbers.front(), 0);
  DenseMap<Operation *, int64_t> numberOfInner;
  for (auto [inner, number] : llvm::zip(*body, numbers)) {
    if (inner.getName() != ops[number]->getName())
      return;
    numberOfInner[&inner] = number;
  }
  traced->fused.insert(traced->fused.end(), numbers.begin(), numbers.end());
  for (auto [result, returned] :
       llvm::zip(op->getResults(), body->getTerminator()->getOperands()))
    if (auto inner = dyn_cast<OpResult>(returned))
      if (auto found = numberOfInner.find(inner.getOwner());
          found != numberOfInner.end())
        trace(result, found->second, inner.getResultNumber());
}

/// Of an op whose last op of the original is `last`, -1 if it has none: no
/// earlier than that of the op before it.
solver::StepPhase GraphReader::getPhase(int64_t last) const {
  solver::StepPhase before = traced->graph.ops.empty()
                                 ? solver::StepPhase::Forward
                                 : traced->graph.ops.back().phase;
  if (last < 0)
    return before;
  return std::max(before, last < backward ? solver::StepPhase::Forward
                          : last < update ? solver::StepPhase::Backward
                                          : solver::StepPhase::Update);
}

LogicalResult GraphReader::readScheduled(rt::ScheduledOp op) {
  solver::StepOp added;
  ArrayRef<int64_t> numbers = remat::getIds(op);
  // Made of no op of the step: it could be of any phase.
  if (numbers.empty())
    return failure();
  int64_t last = std::max<int64_t>(*llvm::max_element(numbers), -1);
  added.phase = getPhase(last);
  // A launch of backward may go on with ops of the layer below: what it reads
  // of the forward pass is of the first one's.
  int64_t first = added.phase == solver::StepPhase::Backward && last >= 0
                      ? *llvm::min_element(numbers)
                      : last;
  if (nn::ScopeAttr scope = first >= 0 ? nn::getScope(ops[first]) : nullptr)
    added.layer = scope.getLayer();
  if (auto name = op->getAttrOfType<StringAttr>(rt::kNameAttr))
    added.name = name.str();
  Workload load = op.getWorkload(symbols);
  added.seconds = costs.getSeconds(load);
  traced->works.push_back(load.work);
  traced->positions.push_back(last);
  added.workspace = op.getWorkspaceBytes();
  for (Value read : op.getReads())
    added.reads.push_back(addValue(read));
  for (auto [number, write] : llvm::enumerate(op.getWrites())) {
    int64_t value = addValue(write);
    added.writes.push_back(value);
    traced->graph.values[value].name =
        added.name + (number ? "#" + std::to_string(number) : "");
  }
  if (failed(readSharing(op, added)))
    return failure();
  if (added.phase == solver::StepPhase::Forward) {
    traceResults(op, numbers);
    for (int64_t number : numbers)
      added.isReplayable &= nn::mayBeReplayed(ops[number]);
  }
  traced->graph.ops.push_back(std::move(added));
  return success();
}

/// What may be dropped, and what earlier decisions say of it.
void GraphReader::setRules() {
  using Rule = solver::StepValue::Rule;
  std::vector<solver::StepValue> &values = traced->graph.values;
  std::vector<bool> isFixed(values.size());
  for (size_t v = 0; v < values.size(); ++v) {
    isFixed[v] = isFixed[v] || values[v].whole >= 0 || values[v].isReturned ||
                 values[v].outlives;
    if (values[v].whole >= 0)
      isFixed[values[v].whole] = true;
  }
  for (const solver::StepOp &op : traced->graph.ops)
    for (int64_t v : op.writes) {
      if (op.phase != solver::StepPhase::Forward || isFixed[v])
        continue;
      StepResult origin = traced->origins[v];
      if (origin.op < 0) {
        // What only the schedule has is made again with what reads it, unless
        // it is made of arguments: then it is shared.
        bool isShared = llvm::all_of(
            op.reads, [&](int64_t read) { return values[read].outlives; });
        values[v].rule = op.isReplayable && !isShared ? Rule::Drop : Rule::Keep;
        continue;
      }
      Attribute decision = ops[origin.op]->getAttr(remat::kDecisionAttr);
      auto dropped = dyn_cast_if_present<remat::RecomputeAttr>(decision);
      bool isDropped =
          dropped && (!dropped.getResults() ||
                      llvm::is_contained(dropped.getResults().asArrayRef(),
                                         origin.number));
      // Where a replay reads what backward makes on its way, it is run again.
      if (!op.isReplayable)
        values[v].rule = Rule::Keep;
      else if (isDropped || traced->free.contains(origin.op))
        values[v].rule = Rule::Drop;
      else
        values[v].rule = decision ? Rule::Keep : Rule::Free;
    }
}

/// Bytes of those among `arguments` that change from micro-batch to
/// micro-batch.
static int64_t getWaiting(func::FuncOp step, const TracedGraph &traced,
                          ArrayRef<BlockArgument> arguments) {
  int64_t bytes = 0;
  for (BlockArgument argument : arguments) {
    unsigned number = argument.getArgNumber();
    auto input = step.getArgAttrOfType<StringAttr>(number, nn::kInputAttr);
    if (input && memory::isOfMicroBatch(input.getValue()))
      bytes += llvm::alignTo(traced.graph.values[number].bytes,
                             traced.graph.alignment);
  }
  return bytes;
}

LogicalResult GraphReader::read(func::FuncOp step, TracedGraph &into) {
  traced = &into;
  for (BlockArgument argument : step.getArguments())
    into.graph.values[addValue(argument)].name = "argument";
  // In the bytes of an argument, which are counted.
  for (auto [value, argument] : memory::findWrittenGradients(step, symbols)) {
    int64_t number = addValue(value);
    into.graph.values[number].outlives = true;
    into.writtenGradients.push_back(number);
  }
  for (Operation &op : step.getBody().front()) {
    if (auto scheduled = dyn_cast<rt::ScheduledOp>(op)) {
      if (failed(readScheduled(scheduled)))
        return failure();
    } else if (auto view = dyn_cast<rt::ViewOp>(op)) {
      int64_t input = addValue(view.getInput()), out = addValue(view.getOut());
      into.graph.values[out].whole = input;
      into.graph.values[out].isView = true;
    } else if (auto join = dyn_cast<rt::JoinOp>(op)) {
      int64_t out = addValue(join.getOut());
      for (Value part : join.getParts())
        into.graph.values[addValue(part)].whole = out;
    } else if (!isa<rt::UpdateOp, func::ReturnOp>(op)) {
      return failure();
    }
  }
  for (Value value : step.getBody().front().getTerminator()->getOperands())
    into.graph.values[addValue(value)].isReturned = true;
  setRules();
  SmallVector<BlockArgument> all(step.getArguments());
  int64_t launches = llvm::count_if(into.graph.ops, [](const auto &op) {
    return op.phase != solver::StepPhase::Update;
  });
  into.ofMicroBatch = getWaiting(step, into, all);
  into.baseBytes = getBaseBytes(step, into, all, launches - into.joined);
  return success();
}

void planning::countWrittenGradients(TracedGraph &traced) {
  for (int64_t number : traced.writtenGradients) {
    solver::StepValue &value = traced.graph.values[number];
    value.outlives = false;
    traced.baseBytes -= llvm::alignTo(value.bytes, traced.graph.alignment);
  }
}

int64_t planning::getBaseBytes(func::FuncOp step, const TracedGraph &traced,
                               ArrayRef<BlockArgument> arguments,
                               int64_t launches) {
  int64_t bytes = 0;
  llvm::StringSet<> roles;
  for (BlockArgument argument : arguments) {
    unsigned number = argument.getArgNumber();
    bytes += llvm::alignTo(traced.graph.values[number].bytes,
                           traced.graph.alignment);
    if (auto input = step.getArgAttrOfType<StringAttr>(number, nn::kInputAttr))
      roles.insert(input.getValue());
  }
  // What the step puts out and no argument becomes; the loss where it is made.
  for (auto [number, type] : llvm::enumerate(step.getResultTypes())) {
    auto output = step.getResultAttrOfType<StringAttr>(number, nn::kOutputAttr);
    bool isLoss = output && output.getValue() == "loss";
    if (output &&
        (!isLoss || (!roles.contains("loss_sum") && roles.contains("targets"))))
      bytes += llvm::alignTo(getTypeBytes(type), traced.graph.alignment);
  }
  return bytes + memory::getWaitingBytes(step, launches,
                                         getWaiting(step, traced, arguments));
}

int64_t planning::getBaseBytes(func::FuncOp step, const TracedGraph &traced,
                               const solver::StepRun &run) {
  auto isOfMicroBatch = [](const solver::StepOp &op) {
    return op.phase != solver::StepPhase::Update;
  };
  int64_t bare = llvm::count_if(traced.graph.ops, isOfMicroBatch);
  int64_t launches = llvm::count_if(run.schedule, [&](const auto &position) {
    return isOfMicroBatch(traced.graph.ops[position.op]);
  });
  auto getBytes = [&](int64_t launches) {
    return memory::getWaitingBytes(step, launches - traced.joined,
                                   traced.ofMicroBatch);
  };
  return traced.baseBytes - getBytes(bare) + getBytes(launches);
}

/// Launches of the step.
static int64_t countLaunches(ModuleOp program) {
  auto step = program.lookupSymbol<func::FuncOp>(nn::kStepFunction);
  return llvm::count_if(step.getBody().front(),
                        [](Operation &op) { return isa<rt::ScheduledOp>(op); });
}

/// Numbers the ops of the step of `program`, leaves nothing beside it, and has
/// all kept that its decisions would drop: the graph drops.
static LogicalResult keepAll(ModuleOp program, bool isFree) {
  auto step = program.lookupSymbol<func::FuncOp>(nn::kStepFunction);
  // What kernels of backward make on their way is made there in every plan;
  // what else is to be dropped, the graph drops.
  FailureOr<DenseSet<Operation *>> free = remat::findFree(step);
  if (failed(free))
    return failure();
  for (auto [number, op] : llvm::enumerate(step.getBody().front())) {
    op.setAttr(remat::kIdAttr, Builder(&op).getI64IntegerAttr(number));
    auto dropped = op.getAttrOfType<remat::RecomputeAttr>(remat::kDecisionAttr);
    // With a segment it is left to free recompute, which would take it.
    if (dropped && !free->contains(&op))
      op.setAttr(remat::kDecisionAttr,
                 remat::SaveAttr::get(op.getContext(), "decided before",
                                      isFree ? dropped.getSegment() : -1));
  }
  for (func::FuncOp beside : llvm::drop_begin(nn::getSchedules(program)))
    beside.erase();
  return success();
}

FailureOr<TracedGraph> WhatIf::trace(const CostTable &costs, bool isFree) {
  OwningOpRef<ModuleOp> program = module->clone();
  auto step = program->lookupSymbol<func::FuncOp>(nn::kStepFunction);
  if (failed(keepAll(*program, isFree)))
    return failure();
  TracedGraph traced;
  PassManager toRemat(context.get());
  phases.applyDecisions(toRemat, isFree);
  if (failed(toRemat.run(*program)))
    return failure();
  for (Operation &op : step.getBody().front())
    if (op.getAttrOfType<remat::RecomputeAttr>(remat::kDecisionAttr))
      traced.free.insert(
          op.getAttrOfType<IntegerAttr>(remat::kIdAttr).getInt());
  auto schedule = [&](ModuleOp decided, bool rowsApart) {
    PassManager toSchedule(context.get());
    toSchedule.enableVerifier(false);
    phases.formKernels(toSchedule, rowsApart);
    return toSchedule.run(decided);
  };
  if ((*program)->hasAttr(rt::kMostLaunchesAttr)) {
    OwningOpRef<ModuleOp> joined = program->clone();
    if (failed(schedule(*joined, /*rowsApart=*/false)))
      return failure();
    traced.joined = -countLaunches(*joined);
  }
  if (failed(schedule(*program, /*rowsApart=*/true)))
    return failure();
  if ((*program)->hasAttr(rt::kMostLaunchesAttr))
    traced.joined += countLaunches(*program);
  if (auto count = getStep()->getAttrOfType<IntegerAttr>(nn::kMicroBatchesAttr))
    traced.graph.microBatches = count.getInt();
  auto alignment = (*program)->getAttrOfType<IntegerAttr>(rt::kAlignmentAttr);
  traced.graph.alignment =
      alignment ? alignment.getInt() : rt::kDefaultAlignment;
  if (failed(GraphReader(*program, getStep(), costs).read(step, traced)) ||
      solver::check(traced.graph))
    return failure();
  return traced;
}
