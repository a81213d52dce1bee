//===- reprise-try-stages.cpp - Budgets of random pipelines ---------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// reprise-try-stages PIPELINES [FIRST]: small models at random on 2 to 4
// stages, under all schedules, each with one kind of budget, some with terms of
// the loss on several stages, and some on ranks that share stages or have some
// of the experts each, on the CPU or a GPU. Of each:
//
//   * no budget below the least that is said to fit is met, and that one is;
//   * ten budgets, most of them near the least: the program of each stage,
//     compiled again, is within the budget, and more bytes never make a longer
//     step;
//   * a budget that is refused is told of one that is met;
//   * the certificate of a budget is of that budget, and is verified; under a
//     schedule that has no certificates there is none to check. Each stage has
//     the bytes in it that its program takes, or more where its chunks by
//     themselves are packed worse, and no more before them than the program;
//   * no plan whose programs were within a budget is faster than its bound,
//     with programs or without, under any schedule.
//
// Prints how many there were, and how much more than the bytes that are alive
// at one time, which no packing does without, a program has for its step at
// most. The first violation ends it with the command that shows it again.
//
//===----------------------------------------------------------------------===//

#include "DrawModel.h"
#include "lib/Planning/BudgetStages.h"
#include "mlir/Pass/PassManager.h"
#include "python-free-frontend/Frontend.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/NN/Workload.h"
#include "reprise/Pipelines/Pipelines.h"
#include "reprise/Pipelines/Registration.h"
#include "reprise/Pipelines/StagePrograms.h"
#include "reprise/Solver/StageSchedule.h"
#include "test/common/Words.h"
#include "tools/reprise-memplan/verify/Verify.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/Format.h"
#include <set>
#include <sstream>

using namespace mlir;
using namespace reprise;
using namespace reprise::planning;
using reprise::test::Draw;
using reprise::test::ModelDraw;

namespace cl = llvm::cl;
static cl::OptionCategory category("reprise-try-stages options");
static cl::opt<int64_t> pipelines(cl::Positional, cl::desc("<pipelines>"),
                                  cl::cat(category));
static cl::opt<int64_t> first(cl::Positional, cl::desc("<first>"), cl::init(1),
                              cl::cat(category));

namespace {
/// A model on stages, and what is asked of it.
struct Case {
  std::string description; ///< a file that says nothing: keys are options
  ModelDraw::Keys keys;
  Budget::Kind kind = Budget::Kind::Memory;
  std::string schedule;
  bool isCuda = false;

  std::string describe() const;
};

/// Counts of what was tried.
struct Tally {
  int64_t pipelines = 0, budgets = 0, certificates = 0, bounds = 0;
  std::map<std::string, int64_t> schedules;
  int64_t onRanks = 0;  ///< pipelines whose stages have several ranks
  int64_t programs = 0; ///< of stages, planned
  double waste = 0;     ///< the largest of them, as a part of the bound
};

/// Tries one case.
class Trier {
public:
  Trier(MLIRContext &context, const Case &model, Draw &draw, Tally &tally)
      : context(context), model(model), draw(draw), tally(tally) {}

  bool run();

private:
  bool build();
  bool buildStages(const frontend::Description &description);
  std::vector<int64_t> measure(ModuleOp decided);
  bool solve();
  bool tryBudgets();
  bool tryRefusal();
  bool tryReport(int64_t bytes);
  bool tryCertificate(const PipelineReport &report, ModuleOp decided);
  bool tryBound(int64_t bytes, double bound);
  /// Says what is wrong, unless `holds`.
  bool need(bool holds, const Twine &what);

  MLIRContext &context;
  const Case &model;
  Draw &draw;
  Tally &tally;
  CostTable costs;
  OwningOpRef<ModuleOp> module;
  std::optional<StagePrograms> programs;
  BudgetSettings settings;
  std::unique_ptr<WhatIf> whatIf;
  std::optional<TracedGraph> traced;
  std::optional<Pipeline> pipeline;
  std::vector<int64_t> base;
  std::optional<StagePlans> plans;
  /// What programs of stages took with a point.
  std::map<std::pair<int64_t, int64_t>, int64_t> known;
  int64_t least = 0;
};
} // namespace

std::string Case::describe() const {
  std::string text = kind == Budget::Kind::Memory ? "memory" : "activations";
  text += isCuda ? ", cuda" : "";
  for (auto &[key, value] : keys)
    text += " --" + key + "=" + value;
  return text;
}

namespace {
/// Ranks of a stage.
struct Ranks {
  int64_t tensor = 1, experts = 1, data = 1;
  bool haveWholeExperts = false;
};
} // namespace

/// Ranks that share a stage, ranks that have some of its experts, or both.
static Ranks drawRanks(Draw &draw, ModelDraw &drawn) {
  Ranks ranks;
  if (draw.oneIn(3))
    ranks.tensor = 2;
  if (drawn.hasExperts() && draw.oneIn(2))
    ranks.experts = 2;
  ranks.haveWholeExperts =
      drawn.hasExperts() && ranks.tensor > 1 && draw.oneIn(2);
  ranks.data = ranks.experts * draw.pick<int64_t>({1, 1, 2});
  drawn.setRanks(ranks.tensor, ranks.experts, ranks.haveWholeExperts);
  return ranks;
}

static void setRanks(Draw &draw, const Ranks &ranks, ModelDraw &drawn) {
  if (ranks.data > 1)
    drawn.set("data_parallel_size", ranks.data);
  if (ranks.experts > 1)
    drawn.set("expert_model_parallel_size", ranks.experts);
  if (ranks.tensor == 1)
    return;
  drawn.set("tensor_model_parallel_size", ranks.tensor);
  if (ranks.haveWholeExperts)
    drawn.set("expert_tensor_parallel_size", 1);
  if (draw.oneIn(2))
    drawn.set("sequence_parallel", "true");
}

static void drawWidths(Draw &draw, const Ranks &ranks, int64_t layers,
                       ModelDraw &drawn) {
  int64_t heads = ranks.tensor * draw.pick<int64_t>({1, 2}), width = heads * 8;
  drawn.setFirst({"n_embd", "hidden_size"}, width);
  drawn.setFirst({"n_head", "num_attention_heads"}, heads);
  drawn.setFirst({"n_layer", "num_hidden_layers"}, layers);
  drawn.setFirst({"n_inner", "intermediate_size"},
                 llvm::alignTo(draw.number(width, 4 * width), ranks.tensor));
  drawn.drawLatents();
  drawn.drawExperts(layers, width);
  drawn.drawTerms();
}

/// The schedules take turns.
static Case drawCase(Draw &draw, int64_t number) {
  Case model;
  std::vector<const frontend::Family *> families =
      test::readFamilies("gpt2,llama,mixtral,qwen2_moe,deepseek_v3");
  ModelDraw drawn(draw, *families[draw.number(0, families.size() - 1)],
                  model.keys);
  int64_t stages = draw.number(2, 4);
  const std::vector<solver::NamedSchedule> &schedules = solver::getSchedules();
  model.schedule = schedules[number % schedules.size()].name;
  int64_t each = model.schedule == "interleaved" ? 2 : 1;
  // As many layers as chunks, or some more.
  int64_t layers = stages * each + draw.number(0, 2);
  int64_t batches =
      stages + (each > 1 ? stages * draw.number(0, 1) : draw.number(-1, 2));
  // Gradients of a single one lie among activations.
  if (each == 1 && draw.oneIn(3))
    batches = 1;
  // On a GPU plans count the rows that a head's table has for its GEMM, which
  // stages have where embedding and head share it alone.
  model.isCuda = draw.oneIn(5);
  drawn.set("vocab_size",
            model.isCuda ? 256 : draw.pick<int64_t>({11, 97, 256}));
  drawn.setFirst({"n_positions", "max_position_embeddings"}, 32);
  Ranks ranks = drawRanks(draw, drawn);
  drawWidths(draw, ranks, layers, drawn);
  drawn.drawDropouts();
  drawn.set("seq_length", llvm::alignTo(draw.number(3, 31), ranks.tensor));
  drawn.set("micro_batch_size", 1);
  drawn.set("global_batch_size", batches * ranks.data);
  drawn.set("lr", "1e-3");
  drawn.set("lr_decay_style", "constant");
  drawn.set("train_iters", 4);
  setRanks(draw, ranks, drawn);
  drawn.set("pipeline_stages", stages);
  if (each > 1)
    drawn.set("virtual_stages", each);
  drawn.set("pipeline_schedule", model.schedule);
  if (draw.oneIn(2))
    model.kind = Budget::Kind::Activations;
  drawn.set("precision", draw.oneIn(3) ? "bf16" : "fp32");
  return model;
}

bool Trier::need(bool holds, const Twine &what) {
  if (!holds)
    llvm::errs() << "violation: " << what << "\n  " << model.describe() << "\n";
  return holds;
}

//===----------------------------------------------------------------------===//
// What is tried
//===----------------------------------------------------------------------===//

std::vector<int64_t> Trier::measure(ModuleOp decided) {
  OwningOpRef<ModuleOp> stages = programs->plan(decided);
  if (!stages)
    return {};
  for (rt::ArenaAttr arena : getStageArenas(*stages)) {
    ++tally.programs;
    double least = arena.getLeast() - arena.getBegin();
    double waste = arena.getBytes() - arena.getLeast();
    tally.waste = std::max(tally.waste, waste / least);
  }
  return getStageBytes(*stages, model.kind);
}

/// The programs of the stages.
bool Trier::buildStages(const frontend::Description &description) {
  OwningOpRef<ModuleOp> stages = frontend::buildModel(context, description);
  if (!stages || failed(frontend::makePipeline(*stages, description.parallel)))
    return false;
  TargetOptions target;
  target.isCuda = target.overlap = target.biasKernels = model.isCuda;
  setTarget(*stages, target);
  setTarget(*module, target);
  programs.emplace(*stages, /*isFree=*/true, /*inference=*/false);
  settings.measureStages = [&](ModuleOp decided) { return measure(decided); };
  return true;
}

bool Trier::build() {
  llvm::SourceMgr sources;
  frontend::DescriptionReader reader(sources);
  for (auto &[key, value] : model.keys)
    if (failed(reader.setOption(key, value)))
      return false;
  FailureOr<frontend::Description> description = reader.read(model.description);
  if (failed(description))
    return false;
  const frontend::Parallel &parallel = description->parallel;
  tally.onRanks += parallel.tensorParallel * parallel.dataParallel > 1;
  module = frontend::buildPlanned(context, *description, /*needsChain=*/true);
  if (!module)
    return false;
  frontend::setSchedule(*module, parallel);
  if (!buildStages(*description))
    return false;
  costs = model.isCuda ? *CostTable::get("h200") : CostTable::getCPU();
  nn::setMesh(costs, *module);
  RecomputeOptions recompute;
  recompute.stages = parallel.stages;
  recompute.chunks = parallel.chunks;
  PassManager manager(&context);
  buildPipeline(manager, Phase::NN, Phase::Joint, RecomputeOptions(),
                /*inference=*/false);
  buildDeciders(manager, recompute);
  return succeeded(manager.run(*module));
}

/// The plans of the stages for all budgets.
bool Trier::solve() {
  FailureOr<std::unique_ptr<WhatIf>> created =
      WhatIf::create(*module, getPhases());
  if (failed(created))
    return false;
  whatIf = std::move(*created);
  FailureOr<TracedGraph> found = whatIf->trace(costs, settings.isFree);
  if (failed(found))
    return false;
  traced = std::move(*found);
  auto step = module->lookupSymbol<func::FuncOp>(nn::kStepFunction);
  auto chunks = step->getAttrOfType<remat::ChunksAttr>(remat::kChunksAttr);
  FailureOr<Pipeline> made = getPipeline(step, *traced, chunks, model.kind);
  if (failed(made))
    return false;
  pipeline = std::move(*made);
  solveChunks(*pipeline);
  base = getBaseBytes(
      *pipeline, getStateBytes(step, *traced, *pipeline, chunks), model.kind);
  MeasurePoints compile = getMeasure(*module, *traced, *pipeline, settings);
  plans.emplace(*pipeline, base,
                [=](ArrayRef<int64_t> points, ArrayRef<int64_t> stages) {
                  std::vector<int64_t> bytes = compile(points, stages);
                  for (auto [stage, own] : llvm::zip(stages, bytes))
                    known[{stage, points[stage]}] = own;
                  return bytes;
                });
  least = plans->findLeast().bytes;
  return true;
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

bool Trier::tryBudgets() {
  std::set<int64_t> budgets = {least - 1, least, least + 1};
  constexpr size_t kBudgets = 10;
  while (budgets.size() < kBudgets)
    budgets.insert(least + draw.number(1, least / (draw.oneIn(2) ? 64 : 4)));
  double last = HUGE_VAL;
  std::map<std::vector<int64_t>, std::vector<int64_t>> compiled;
  MeasurePoints compile = getMeasure(*module, *traced, *pipeline, settings);
  for (int64_t budget : budgets) {
    ++tally.budgets;
    SmallVector<int64_t> points = plans->find(budget);
    if (!need(points.empty() == (budget < least),
              "a budget of " + Twine(budget) +
                  (points.empty() ? " is refused" : " is met") +
                  ", but the least is " + Twine(least)))
      return false;
    if (points.empty())
      continue;
    auto [took, isNew] = compiled.try_emplace(ArrayRef<int64_t>(points).vec());
    if (isNew)
      took->second = compile(points, {});
    for (int64_t bytes : took->second)
      if (!need(bytes <= budget, "a budget of " + Twine(budget) +
                                     " is met by a program of " + Twine(bytes)))
        return false;
    double span = pipeline->getSpan(points);
    if (!need(span <= last * (1 + 1e-12),
              "a budget of " + Twine(budget) + " makes a step of " +
                  std::to_string(span) + " s, but a smaller one of " +
                  std::to_string(last) + " s"))
      return false;
    last = span;
  }
  return true;
}

/// What a refusal says to fit does.
bool Trier::tryRefusal() {
  std::string said;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      said = diagnostic.str();
    return success();
  });
  OwningOpRef<ModuleOp> decided = module->clone();
  if (!need(failed(solveStages(getPhases(), *decided, {model.kind, least - 1},
                               costs, settings)),
            "a budget below the least is met"))
    return false;
  StringRef number = StringRef(said).rsplit("-budget=").second;
  int64_t amount = 0;
  bool isRead = !number.consumeInteger(10, amount);
  int64_t unit = number.starts_with("KiB")   ? 1 << 10
                 : number.starts_with("MiB") ? 1 << 20
                                             : 0;
  return need(isRead && unit, "nothing is said to fit: " + said) &&
         tryReport(amount * unit) &&
         tryReport(least + draw.number(0, least / 8));
}

/// The fastest of the known plans that fit.
bool Trier::tryBound(int64_t bytes, double bound) {
  SmallVector<int64_t> fastest(pipeline->stages.size(), -1);
  for (auto [plan, own] : known) {
    auto [stage, point] = plan;
    const std::vector<Stage::Point> &curve = pipeline->stages[stage].curve;
    if (own <= bytes && (fastest[stage] < 0 ||
                         curve[point].seconds < curve[fastest[stage]].seconds))
      fastest[stage] = point;
  }
  if (llvm::is_contained(fastest, -1))
    return true;
  ++tally.bounds;
  double span = pipeline->getSpan(fastest);
  return need(bound <= span * (1 + 1e-9),
              "a budget of " + Twine(bytes) + " has a bound of " +
                  std::to_string(bound) + " s, but a plan within it takes " +
                  std::to_string(span) + " s");
}

/// What is certified of the programs of `decided`.
bool Trier::tryCertificate(const PipelineReport &report, ModuleOp decided) {
  ++tally.certificates;
  std::ostringstream text;
  solver::writeCertificate(text, report.certificate);
  verify::CertificateFigures figures;
  std::optional<verify::Fault> fault =
      verify::verifyCertificate(text.str(), figures);
  if (!need(!fault, "the certificate of " + Twine(report.budget.bytes) +
                        " bytes: " + (fault ? fault->message : "")))
    return false;
  OwningOpRef<ModuleOp> stages = programs->plan(decided);
  bool isOfAll = model.kind == Budget::Kind::Memory;
  for (auto [number, arena] : llvm::enumerate(getStageArenas(*stages))) {
    const verify::CertificateFigures &stage = figures.stages[number];
    int64_t begin = isOfAll ? arena.getBegin() : 0;
    int64_t took = arena.getBytes() - (isOfAll ? 0 : arena.getBegin());
    if (!need(stage.beside ? stage.peak == took : stage.peak >= took,
              "stage " + Twine(number) + " takes " + Twine(took) +
                  " bytes, but its certificate has " + Twine(stage.peak)) ||
        !need(stage.base <= begin, "stage " + Twine(number) + " has " +
                                       Twine(begin) +
                                       " bytes all the time, but its "
                                       "certificate " +
                                       Twine(stage.base)))
      return false;
  }
  return true;
}

/// A budget as the compiler meets it.
bool Trier::tryReport(int64_t bytes) {
  OwningOpRef<ModuleOp> decided = module->clone();
  FailureOr<PipelineReport> report =
      solveStages(getPhases(), *decided, {model.kind, bytes}, costs, settings);
  if (!need(succeeded(report),
            "what is said to fit, " + Twine(bytes) + " bytes, is refused"))
    return false;
  std::vector<int64_t> took = measure(*decided);
  for (auto [own, stage] : llvm::zip(took, report->stages))
    if (!need(own == stage.plannedBytes && own <= bytes,
              "a stage takes " + Twine(own) + " bytes, but " +
                  Twine(stage.plannedBytes) + " were said"))
      return false;
  const solver::PipelineCertificate &certificate = report->certificate;
  if (!need(took.size() == report->stages.size(), "the program is none") ||
      !need(certificate.budgetBytes == bytes,
            "the certificate is of another budget") ||
      !need(certificate.lowerBoundSeconds <=
                certificate.spanSeconds * (1 + 1e-9),
            "the bound is above the step"))
    return false;
  BudgetSettings alone = settings;
  alone.measureStages = nullptr;
  alone.hasBaselines = false;
  OwningOpRef<ModuleOp> copy = module->clone();
  ScopedDiagnosticHandler handler(&context, [](Diagnostic &) {});
  FailureOr<PipelineReport> counted =
      solveStages(getPhases(), *copy, {model.kind, bytes}, costs, alone);
  if (!tryBound(bytes, certificate.lowerBoundSeconds) ||
      (succeeded(counted) &&
       !tryBound(bytes, counted->certificate.lowerBoundSeconds)))
    return false;
  return solver::findSchedule(model.schedule)->splitsWeights ||
         tryCertificate(*report, *decided);
}

bool Trier::run() {
  ++tally.pipelines;
  ++tally.schedules[model.schedule];
  return need(build(), "the model is none") &&
         need(solve(), "there are no plans") && tryBudgets() && tryRefusal();
}

int main(int argc, char **argv) {
  test::readWords(argc, argv, category, "Tries budgets of random pipelines\n");
  if (pipelines < 1 || first < 1) {
    llvm::errs() << "reprise-try-stages PIPELINES [FIRST]: needs numbers of at "
                    "least 1\n";
    return 2;
  }
  llvm::SmallString<128> empty;
  int file = -1;
  if (llvm::sys::fs::createTemporaryFile("empty", "yaml", file, empty)) {
    llvm::errs() << "reprise-try-stages: cannot write a temporary file\n";
    return 1;
  }
  llvm::FileRemover remover(empty);
  llvm::raw_fd_ostream(file, /*shouldClose=*/true) << "model: {}\n";
  Tally tally;
  for (int64_t number = first; number < first + pipelines; ++number) {
    DialectRegistry registry;
    registerDialects(registry);
    MLIRContext context(registry, MLIRContext::Threading::DISABLED);
    context.loadAllAvailableDialects();
    Draw draw(number);
    Case model = drawCase(draw, number);
    model.description = empty.str().str();
    if (!Trier(context, model, draw, tally).run()) {
      llvm::errs() << "  again: " << argv[0] << " 1 " << number << "\n";
      return 1;
    }
  }
  llvm::outs() << tally.pipelines << " pipelines (";
  llvm::interleaveComma(tally.schedules, llvm::outs(), [](const auto &entry) {
    llvm::outs() << entry.first << " " << entry.second;
  });
  llvm::outs() << "), " << tally.onRanks << " on ranks, " << tally.budgets
               << " budgets, " << tally.certificates << " certificates, "
               << tally.bounds << " bounds: no violation\n"
               << tally.programs << " programs have at most "
               << llvm::format("%.2f", 100 * tally.waste)
               << " % more than is alive at one time\n";
  return 0;
}
