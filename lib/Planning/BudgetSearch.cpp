//===- BudgetSearch.cpp - The programs of plans for budgets ---------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The curve knows what is alive at one time, and no program takes less than
// that; what it takes is known when its memory is planned. A budget gets the
// first plan, from the fastest to the slowest, whose program fits. Which plans
// there are does not depend on the budget: so the plans that fit a budget fit
// all larger ones.
//
//===----------------------------------------------------------------------===//

#include "BudgetPlans.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/RT/RTOps.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::planning;

BudgetSearch::BudgetSearch(WhatIf &whatIf, const PlanCurve &curve,
                           Budget::Kind kind, bool isFree)
    : whatIf(whatIf), curve(curve), kind(kind), isFree(isFree) {}

FailureOr<OwningOpRef<ModuleOp>>
BudgetSearch::plan(int64_t point, bool rowsApart, const KnownOffsets *offsets) {
  const HeadOption &option = curve.getOption(point);
  setHeadRows(whatIf.getModule(), option.rows);
  auto decide = [&](func::FuncOp step) {
    writeDecisions(step, *option.traced, curve.getPlan(point),
                   curve.getSegments(point));
  };
  return whatIf.plan(decide, isFree, rowsApart, offsets);
}

/// Whether the launches of `program` are those that the graph of a point runs.
static bool hasSchedule(ModuleOp program, const PlanCurve &curve,
                        int64_t point) {
  const solver::StepGraph &graph = curve.getOption(point).traced->graph;
  solver::StepSimulator simulator(graph);
  const solver::StepRun &run = simulator.run(curve.getPlan(point));
  size_t position = 0;
  auto step = program.lookupSymbol<func::FuncOp>(nn::kStepFunction);
  for (Operation &op : step.getBody().front()) {
    if (!rt::isScheduled(&op))
      continue;
    if (position == run.schedule.size())
      return false;
    auto [number, isReplay] = run.schedule[position++];
    auto name = op.getAttrOfType<StringAttr>(rt::kNameAttr);
    if (name &&
        name.getValue() != graph.ops[number].name + (isReplay ? "@replay" : ""))
      return false;
  }
  return position == run.schedule.size();
}

/// What `program` takes of what a budget counts, its activations moved to where
/// they begin in the one that runs.
static int64_t countBytes(Budget::Kind kind, const PlannedBytes &program,
                          int64_t begin) {
  return kind == Budget::Kind::Memory ? begin + program.arena - program.begin
                                      : program.activations;
}

/// The launches that run are planned, and those of the graph, for it is their
/// buffers that a certificate has: one of those that run may be several of the
/// graph's. Buffers of both have the same offsets, and what only the graph's
/// have is among them. Where something does not fit there, packing by itself is
/// tried, too. Takes 0.06 s with 12 layers of GPT-2, 0.4 s with 96, on a busy
/// core. A plan under which launches form otherwise than the graph foresees is
/// not taken.
const BudgetSearch::Known &BudgetSearch::look(int64_t point) {
  auto [entry, isNew] = known.try_emplace(point);
  Known &found = entry->second;
  if (!isNew)
    return found;
  auto runs = plan(point, /*rowsApart=*/false, /*offsets=*/nullptr);
  if (failed(runs))
    return found;
  FailureOr<PlannedBytes> planned = getPlannedBytes(**runs);
  KnownOffsets offsets = getKnownOffsets(**runs);
  int64_t apartBytes = -1;
  for (const KnownOffsets &tried : {offsets, KnownOffsets()}) {
    auto apart = plan(point, /*rowsApart=*/true, &tried);
    if (failed(planned) || failed(apart) || !hasSchedule(**apart, curve, point))
      return found;
    FailureOr<PlannedBytes> other = getPlannedBytes(**apart);
    if (failed(other))
      return found;
    int64_t bytes = countBytes(kind, *other, planned->begin);
    if (apartBytes < 0 || bytes < apartBytes) {
      apartBytes = bytes;
      found.offsets = tried;
    }
    if (apartBytes <= countBytes(kind, *planned, planned->begin))
      break;
  }
  found.planned = *planned;
  found.bytes =
      std::max(apartBytes, countBytes(kind, *planned, planned->begin));
  return found;
}

int64_t BudgetSearch::getBytes(int64_t point) { return look(point).bytes; }

int64_t BudgetSearch::foresee(int64_t point) {
  const solver::StepGraph &graph = curve.getOption(point).traced->graph;
  constexpr size_t kMostLaunches = 1 << 15;
  if (graph.ops.size() * curve.points.size() <= kMostLaunches)
    return getBytes(point);
  return solver::isPackedTight(graph, curve.getPlan(point))
             ? curve.points[point].bytes
             : getBytes(point);
}

const PlannedBytes &BudgetSearch::getPlanned(int64_t point) {
  return look(point).planned;
}

int64_t BudgetSearch::find(int64_t bytes) {
  for (int64_t point = curve.points.size(); point-- > 0;) {
    if (curve.points[point].bytes > bytes)
      continue;
    if (int64_t own = getBytes(point); own >= 0 && own <= bytes)
      return point;
  }
  return -1;
}

int64_t BudgetSearch::findSmallest() {
  auto bySize = llvm::to_vector(llvm::seq<int64_t>(0, curve.points.size()));
  llvm::stable_sort(bySize, [&](int64_t a, int64_t b) {
    return curve.points[a].bytes < curve.points[b].bytes;
  });
  int64_t smallest = -1;
  for (int64_t point : bySize) {
    if (smallest >= 0 && curve.points[point].bytes >= getBytes(smallest))
      break;
    int64_t bytes = getBytes(point);
    if (bytes >= 0 && (smallest < 0 || bytes < getBytes(smallest)))
      smallest = point;
  }
  return smallest;
}
