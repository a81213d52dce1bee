//===- BudgetReport.cpp - How a budget was met, or why not ----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BudgetPlans.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Dialect/RT/ScheduledOp.h"
#include "reprise/Dialect/Remat/RematOps.h"
#include "reprise/Remat/Summary.h"
#include "reprise/Support/Format.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::planning;
using remat::formatBytes;

//===----------------------------------------------------------------------===//
// For people
//===----------------------------------------------------------------------===//

std::string planning::formatShare(double part, double whole) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << llvm::format("%.3f %%", whole > 0 ? 100 * part / whole : 0.0);
  return text;
}

/// "1.9 MiB" and "2.0 MiB", or all digits where rounded ones would be equal.
static std::pair<std::string, std::string> formatApart(int64_t left,
                                                       int64_t right) {
  std::pair<std::string, std::string> both = {formatBytes(left),
                                              formatBytes(right)};
  if (left != right && both.first == both.second)
    both = {llvm::Twine(left).str() + " bytes",
            llvm::Twine(right).str() + " bytes"};
  return both;
}

std::string planning::formatUnder(StringRef under, StringRef behind) {
  return under.empty() ? "" : ("under " + under + behind).str();
}

static StringRef getOption(Budget::Kind kind) {
  return kind == Budget::Kind::Memory ? "memory-budget" : "activation-budget";
}

void BudgetReport::print(raw_ostream &os) const {
  os << "budget: " << formatBytes(plannedBytes) << " of "
     << formatBytes(budget.bytes)
     << (budget.kind == Budget::Kind::Memory
             ? ""
             : " within a step, without gradients")
     << "; replays " << formatSeconds(replaySeconds) << ", "
     << formatShare(replaySeconds, stepSeconds) << " of the "
     << formatSeconds(stepSeconds) << " of a step on " << machine << "\n";
  os << "  bound: " << formatUnder(under, ", ")
     << "no plan's replays take less than " << formatSeconds(boundSeconds)
     << "; the gap is "
     << formatShare(std::max(replaySeconds - boundSeconds, 0.0), stepSeconds)
     << " of the step"
     << (isChain ? ""
                 : "; the plan was searched for, since "
                   "the step is no chain of layers")
     << "\n";
  if (secondsPerByte > 0)
    os << "  price: " << formatSeconds(secondsPerByte * (int64_t(1) << 30))
       << " a step for a GiB more or less\n";
  else
    os << "  price: nothing; " << formatUnder(under, " ")
       << "no replay would end with more memory\n";
  if (headRows > 0)
    os << "  head: in chunks of " << headRows << " rows\n";
  printBaselines(os, baselines, budget.bytes);
}

void planning::printBaselines(raw_ostream &os, ArrayRef<BudgetChoice> baselines,
                              int64_t bytes) {
  // The fastest that fit, and the smallest that does not.
  std::vector<BudgetChoice> fitting;
  const BudgetChoice *nearest = nullptr;
  for (const BudgetChoice &baseline : baselines)
    if (baseline.bytes <= bytes)
      fitting.push_back(baseline);
    else if (!nearest || baseline.bytes < nearest->bytes)
      nearest = &baseline;
  llvm::stable_sort(fitting, [](const BudgetChoice &a, const BudgetChoice &b) {
    return a.replaySeconds < b.replaySeconds;
  });
  constexpr size_t kShown = 3;
  os << "  Megatron's options:";
  for (const BudgetChoice &baseline : ArrayRef(fitting).take_front(kShown))
    os << " " << baseline.name << " " << formatSeconds(baseline.replaySeconds)
       << ", " << formatBytes(baseline.bytes) << ";";
  if (fitting.empty())
    os << " none fits;";
  if (nearest)
    os << " too large: " << nearest->name << " " << formatBytes(nearest->bytes)
       << "\n";
  else
    os << (fitting.size() > kShown ? " the others fit, too\n"
                                   : " all of them fit\n");
}

void BudgetReport::writeCurve(raw_ostream &os, bool plan) const {
  llvm::json::OStream json(os, 1);
  json.object([&] {
    json.attribute("kind", budget.kind == Budget::Kind::Memory ? "memory"
                                                               : "activations");
    json.attribute("machine", machine);
    json.attribute("step_seconds", stepSeconds);
    json.attribute("is_chain", isChain);
    if (plan) {
      json.attribute("budget_bytes", budget.bytes);
      json.attribute("peak_bytes", plannedBytes);
      json.attribute("replay_seconds", replaySeconds);
      json.attribute("lower_bound_seconds", boundSeconds);
      json.attribute("seconds_per_byte", secondsPerByte);
      if (headRows > 0)
        json.attribute("head_rows", headRows);
    }
    json.attributeArray("points", [&] {
      for (const BudgetPlan &point : curve)
        json.object([&] {
          json.attribute("peak_bytes", point.bytes);
          json.attribute("replay_seconds", point.replaySeconds);
          json.attribute("lower_bound_seconds", point.boundSeconds);
          if (point.headRows > 0) {
            json.attribute("head_rows", point.headRows);
            json.attribute("step_seconds", point.stepSeconds);
          }
        });
    });
    writeBaselines(json, baselines);
  });
  os << "\n";
}

void planning::writeBaselines(llvm::json::OStream &json,
                              ArrayRef<BudgetChoice> baselines) {
  json.attributeArray("megatron", [&] {
    for (const BudgetChoice &choice : baselines)
      json.object([&] {
        json.attribute("recompute", choice.name);
        json.attribute("peak_bytes", choice.bytes);
        json.attribute("replay_seconds", choice.replaySeconds);
      });
  });
}

//===----------------------------------------------------------------------===//
// For those whom it does not fit
//===----------------------------------------------------------------------===//

namespace {
/// What is alive at a position.
struct Alive {
  std::string name;
  int64_t bytes;
  int64_t writer; ///< the last position to write it up to then
  int64_t last;   ///< the last position to read it
  bool isWorkspace;
};
} // namespace

static std::vector<Alive> getAlive(const solver::StepGraph &graph,
                                   const solver::StepRun &run,
                                   const solver::StepSimulator &simulator,
                                   int64_t position) {
  std::vector<solver::StepBuffer> buffers = simulator.getBuffers();
  std::vector<int64_t> writers(buffers.size(), -1);
  std::vector<std::string> names(buffers.size());
  std::vector<solver::StepTouch> touches = simulator.getTouches();
  for (int64_t p = 0; p <= position; ++p) {
    const solver::StepOp &op = graph.ops[run.schedule[p].op];
    bool hasWorkspace = op.workspace > 0;
    bool isEach = touches[p].writes.size() == op.writes.size() + hasWorkspace;
    for (auto [number, buffer] : llvm::enumerate(touches[p].writes)) {
      writers[buffer] = p;
      // A workspace comes first; values that share bytes come once.
      bool isValue = isEach && int64_t(number) >= hasWorkspace;
      names[buffer] = isValue
                          ? graph.values[op.writes[number - hasWorkspace]].name
                          : op.name;
    }
  }
  std::vector<Alive> alive;
  for (auto [buffer, writer, name] : llvm::zip(buffers, writers, names))
    if (buffer.first <= position && position <= buffer.last)
      alive.push_back(
          {name, buffer.bytes, writer, buffer.last, buffer.value < 0});
  llvm::stable_sort(
      alive, [](const Alive &a, const Alive &b) { return a.bytes > b.bytes; });
  return alive;
}

/// What becomes of the bytes of a value at the last op that needs them.
static std::string describeReader(const solver::StepOp &op) {
  if (op.name == solver::kSendName)
    return "sent to the next stage";
  if (op.name == solver::kAfterName)
    return "held to the end of the chunk";
  return "last read by " + op.name;
}

/// Why a value is there at the peak of the smallest plan. `maker` is the op of
/// `@step` that makes it, if that is known.
static std::string getReason(const TracedGraph &traced,
                             const solver::StepRun &run, const Alive &value,
                             Operation *maker) {
  const solver::StepGraph &graph = traced.graph;
  if (value.isWorkspace)
    return "workspace of the GEMM";
  std::string readBy;
  if (value.last < int64_t(run.schedule.size()))
    readBy = "; " + describeReader(graph.ops[run.schedule[value.last].op]);
  auto [op, isReplay] = run.schedule[value.writer];
  if (isReplay)
    return "computed again" + readBy;
  if (graph.ops[op].phase != solver::StepPhase::Forward)
    return "made by backward" + readBy;
  if (readBy.empty() || graph.ops[run.schedule[value.last].op].phase ==
                            solver::StepPhase::Forward)
    return "of the forward pass" + readBy;
  if (maker && maker->hasAttr(remat::kDecisionAttr))
    return "kept by a decision" + readBy;
  if (graph.ops[op].layer < 0)
    return "outside the layers, where everything is kept" + readBy;
  if (!graph.ops[op].isReplayable)
    return "kept, since its op cannot run twice" + readBy;
  return "kept, since dropping it does not help" + readBy;
}

/// Of the positions that need about as much as the peak, the one where least of
/// that was kept for want of a reason to drop it.
static int64_t findPin(const TracedGraph &traced, const solver::StepRun &run,
                       const std::vector<solver::StepBuffer> &buffers) {
  std::vector<int64_t> changes(run.live.size() + 1);
  for (const solver::StepBuffer &buffer : buffers)
    if (buffer.value >= 0 && !buffer.isReplay &&
        traced.graph.values[buffer.value].rule ==
            solver::StepValue::Rule::Free) {
      int64_t last = std::min<int64_t>(buffer.last, run.live.size() - 1);
      changes[buffer.first] += buffer.bytes;
      changes[last + 1] -= buffer.bytes;
    }
  int64_t found = run.peakPosition, most = -1, kept = 0;
  for (size_t p = 0; p < run.live.size(); ++p) {
    kept += changes[p];
    if (run.live[p] >= run.peak / 16 * 15 && run.live[p] - kept > most) {
      most = run.live[p] - kept;
      found = p;
    }
  }
  return found;
}

std::string planning::getFitting(Budget::Kind kind, int64_t smallest) {
  // A few digits, rounded up, are easier to type.
  constexpr int64_t kKiB = 1 << 10, kMiB = 1 << 20;
  bool isSmall = smallest < 64 * kMiB;
  int64_t unit = isSmall ? kKiB : kMiB;
  int64_t enough = (smallest + unit - 1) / unit;
  return ("--" + getOption(kind) + "=" + llvm::Twine(enough) +
          (isSmall ? "KiB" : "MiB"))
      .str();
}

void planning::noteAlive(InFlightDiagnostic &error, func::FuncOp step,
                         const TracedGraph &traced,
                         const solver::KeptValues &kept) {
  solver::StepSimulator simulator(traced.graph);
  const solver::StepRun &run = simulator.run(kept);
  if (run.schedule.empty())
    return; // a step that computes nothing has no peak
  int64_t position = findPin(traced, run, simulator.getBuffers());
  std::vector<Alive> alive = getAlive(traced.graph, run, simulator, position);
  std::vector<Operation *> ops;
  for (Operation &op : step.getBody().front())
    ops.push_back(&op);
  auto getMaker = [&](int64_t position) {
    int64_t place = traced.positions[run.schedule[position].op];
    return place < 0 ? nullptr : ops[place];
  };
  auto getPlace = [&](int64_t position) {
    Operation *maker = getMaker(position);
    return maker ? maker->getLoc() : step.getLoc();
  };
  const solver::StepOp &at = traced.graph.ops[run.schedule[position].op];
  error.attachNote(getPlace(position))
      << "the smallest plan has " << alive.size() << " values alive at its "
      << "peak, " << at.name
      << (run.schedule[position].isReplay ? " run again" : "")
      << "; the largest of them:";
  constexpr size_t kShown = 8;
  for (const Alive &value : ArrayRef(alive).take_front(kShown))
    error.attachNote(getPlace(value.writer))
        << value.name << ", " << formatBytes(value.bytes) << ": "
        << getReason(traced, run, value, getMaker(value.writer));
}

/// What no plan takes less than, whatever the rows of its head.
static int64_t getLeastBytes(Budget::Kind kind, const PlanCurve &curve) {
  int64_t least = INT64_MAX;
  for (const HeadOption &option : curve.options) {
    int64_t bytes = solver::getLeastPeak(option.traced->graph);
    if (kind == Budget::Kind::Memory)
      bytes += option.traced->baseBytes;
    least = std::min(least, bytes);
  }
  return least;
}

/// "1.9 MiB (1992294 bytes)"
static std::string withBytes(StringRef text, int64_t bytes) {
  std::string digits = std::to_string(bytes);
  bool isExact = text == digits + " B" || text == digits + " bytes";
  return isExact ? text.str() : (text + " (" + digits + " bytes)").str();
}

std::string planning::formatNeed(int64_t bytes) {
  std::string digits = std::to_string(bytes), text = formatBytes(bytes);
  return digits + " bytes" + (text == digits + " B" ? "" : " (" + text + ")");
}

void planning::refuseBudget(func::FuncOp step, const Budget &budget,
                            const BudgetSettings &settings,
                            const PlanCurve &curve, BudgetSearch &search) {
  if (curve.points.empty()) {
    step.emitError("has no plan for a budget: what decisions drop cannot be "
                   "computed again");
    return;
  }
  bool isMemory = budget.kind == Budget::Kind::Memory;
  int64_t point = search.findSmallest(), smallest = search.getBytes(point);
  int64_t least = getLeastBytes(budget.kind, curve);
  std::string fitting = getFitting(budget.kind, smallest);
  std::string most = formatApart(smallest, budget.bytes).second;
  InFlightDiagnostic error = step.emitError("needs ")
                             << formatNeed(smallest)
                             << (isMemory ? "" : " within a step");
  if (least >= smallest)
    error << ", whatever is recomputed";
  else
    error << " with the smallest plan found";
  std::string under = formatUnder(settings.under, "");
  error << (under.empty() ? "" : " ") << under << ", but the budget is "
        << withBytes(most, budget.bytes) << "; " << fitting << " fits";
  if (isMemory)
    error << "; " << formatBytes(search.getPlanned(point).begin)
          << " of it outlive the step: parameters, "
          << (curve.getOption(point).traced->writtenGradients.empty()
                  ? "gradients"
                  : "accumulated gradients")
          << ", optimizer and batch";
  if (least < smallest)
    error.attachNote(step.getLoc())
        << formatUnder(settings.under, ", ") << "no plan takes less than "
        << withBytes(formatBytes(least), least)
        << (isMemory ? "" : " within a step") << ", whatever is recomputed";
  noteAlive(error, step, *curve.getOption(point).traced, curve.getPlan(point));
  if (!budget.command.empty())
    error.attachNote(step.getLoc())
        << "this fits: " << budget.command << " " << fitting;
}

//===----------------------------------------------------------------------===//
// For those who check it
//===----------------------------------------------------------------------===//

namespace {
/// Reads buffers off a planned step.
class BufferReader {
public:
  /// Offsets grow by `shift`.
  BufferReader(solver::Certificate &certificate, int64_t shift)
      : certificate(certificate), shift(shift) {}

  LogicalResult run(func::FuncOp step);

private:
  bool isGradient(rt::BufferOp buffer);
  int64_t getNumber(Value value, bool isWorkspace);
  void addOld(Value output, std::vector<int64_t> &reads);
  void addInPlace();

  solver::Certificate &certificate;
  int64_t shift;
  llvm::MapVector<Operation *, int64_t> numbers;
  llvm::DenseMap<int64_t, int64_t> writtenAt; ///< last buffer by offset
  llvm::DenseSet<int64_t> gradients;          ///< offsets of those made
};
} // namespace

/// Whether `buffer`, as it is read or written next, is a gradient that is made
/// within the step: from then on nothing else is in its bytes.
bool BufferReader::isGradient(rt::BufferOp buffer) {
  if (buffer->hasAttr(rt::kStateAttr))
    gradients.insert(buffer.getOffset());
  return gradients.contains(buffer.getOffset());
}

/// -1 for what outlives the step, what counts as that, and what is not on the
/// device, whose memory the budget is of.
int64_t BufferReader::getNumber(Value value, bool isWorkspace) {
  auto part = value.getDefiningOp<rt::BufferOp>();
  if (!part)
    return -1;
  rt::BufferOp buffer = part.getRoot();
  int64_t offset = int64_t(buffer.getOffset()) + shift;
  bool isOutside = offset < certificate.baseBytes;
  if (isOutside || buffer.getSpace() != rt::Space::Device ||
      (isGradient(buffer) &&
       certificate.kind == solver::Certificate::Budget::Activations))
    return -1;
  auto [entry, isNew] = numbers.insert({buffer, certificate.buffers.size()});
  if (isNew) {
    solver::CertifiedBuffer added;
    added.name = isWorkspace ? "workspace" : "value";
    if (auto name = dyn_cast<NameLoc>(buffer.getLoc()))
      added.name = name.getName().str();
    added.bytes = getTypeBytes(buffer.getType());
    added.offset = offset;
    certificate.buffers.push_back(std::move(added));
  }
  return entry->second;
}

/// The value that is where `output` is to be.
void BufferReader::addOld(Value output, std::vector<int64_t> &reads) {
  auto buffer = output.getDefiningOp<rt::BufferOp>();
  bool isOnDevice = buffer && buffer.getSpace() == rt::Space::Device;
  auto old = isOnDevice ? writtenAt.find(buffer.getRoot().getOffset() + shift)
                        : writtenAt.end();
  if (old != writtenAt.end() && !llvm::is_contained(reads, old->second))
    reads.push_back(old->second);
}

/// Bytes that one position reads last and another value's first writer takes.
void BufferReader::addInPlace() {
  std::vector<int64_t> first(certificate.buffers.size(), -1), last = first;
  for (auto [position, launch] : llvm::enumerate(certificate.schedule)) {
    for (int64_t buffer : launch.reads)
      last[buffer] = position;
    for (int64_t buffer : launch.writes) {
      last[buffer] = position;
      if (first[buffer] < 0)
        first[buffer] = position;
    }
  }
  for (auto [position, launch] : llvm::enumerate(certificate.schedule))
    for (int64_t to : launch.writes)
      for (int64_t from : launch.reads) {
        solver::CertifiedBuffer &taking = certificate.buffers[to];
        const solver::CertifiedBuffer &old = certificate.buffers[from];
        if (to != from && first[to] == int64_t(position) &&
            last[from] == int64_t(position) &&
            first[from] < int64_t(position) && taking.offset == old.offset &&
            taking.bytes <= old.bytes)
          taking.inPlaceOf = from;
      }
}

LogicalResult BufferReader::run(func::FuncOp step) {
  certificate.buffers.clear();
  size_t position = 0;
  for (Operation &op : step.getBody().front()) {
    auto scheduled = dyn_cast<rt::ScheduledOp>(op);
    if (!scheduled)
      continue;
    auto name = op.getAttrOfType<StringAttr>(rt::kNameAttr);
    if (position == certificate.schedule.size() ||
        (name && name.getValue() != certificate.schedule[position].name))
      return failure();
    solver::CertifiedLaunch &launch = certificate.schedule[position++];
    auto add = [&](Value value, bool isWritten, bool isWorkspace = false) {
      int64_t number = value ? getNumber(value, isWorkspace) : -1;
      std::vector<int64_t> &list = isWritten ? launch.writes : launch.reads;
      if (number >= 0 && !llvm::is_contained(list, number))
        list.push_back(number);
      if (number >= 0 && isWritten)
        writtenAt[certificate.buffers[number].offset] = number;
    };
    for (Value read : scheduled.getReads())
      add(read, /*isWritten=*/false);
    for (auto [number, write] : llvm::enumerate(scheduled.getWrites())) {
      // The old value has no operand of its own, but the bytes.
      if (scheduled.addsTo(number))
        addOld(write, launch.reads);
      add(write, /*isWritten=*/true);
    }
    add(scheduled.getWorkspaceBuffer(), /*isWritten=*/true,
        /*isWorkspace=*/true);
  }
  if (position != certificate.schedule.size())
    return failure();
  addInPlace();
  return success();
}

LogicalResult planning::addBuffers(ModuleOp planned,
                                   solver::Certificate &certificate) {
  auto step = planned.lookupSymbol<func::FuncOp>(nn::kStepFunction);
  FailureOr<PlannedBytes> bytes = getPlannedBytes(planned);
  if (!step || failed(bytes))
    return failure();
  // Other launches may be given more micro-batches at a time, and have more
  // buffers for inputs that wait.
  int64_t shift = certificate.baseBytes - bytes->begin;
  if (failed(BufferReader(certificate, shift).run(step)))
    return failure();
  auto recorded = planned->getAttrOfType<IntegerAttr>(rt::kAlignmentAttr);
  int64_t alignment = recorded ? recorded.getInt() : rt::kDefaultAlignment;
  int64_t top = certificate.baseBytes;
  for (solver::CertifiedBuffer &buffer : certificate.buffers) {
    buffer.alignment = alignment;
    top = std::max(top, buffer.offset +
                            int64_t(llvm::alignTo(buffer.bytes, alignment)));
  }
  bool isMemory = certificate.kind == solver::Certificate::Budget::Memory;
  certificate.peakBytes = top - (isMemory ? 0 : certificate.baseBytes);
  return success();
}
