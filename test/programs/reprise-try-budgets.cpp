//===- reprise-try-budgets.cpp - Budgets of random models -----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// reprise-try-budgets MODELS [FIRST [FAMILIES]]: small models at random, of all
// families or of those that are named, each with one kind of budget, its curve
// solved once. Of each:
//
//   * no budget below the smallest program is met, and the one of its bytes is;
//   * twenty budgets, near the smallest, at points of the curve and between
//     them: what is found fits, more bytes never find a slower plan, and the
//     bytes of an answer find it again;
//   * points of the curve take no less than what is alive at one time;
//   * Megatron's options take no less than the smallest program, and none is
//     faster than the plan that a budget of its bytes gets; plans that drop
//     values at random take no less but for a thousandth;
//   * the certificate of one budget is verified, and the program that is
//     compiled for it takes the bytes that were said.
//
// Prints how many there were; the first violation ends it with the command that
// shows it again.
//
//===----------------------------------------------------------------------===//

#include "DrawModel.h"
#include "lib/Planning/BudgetPlans.h"
#include "mlir/Pass/PassManager.h"
#include "python-free-frontend/Frontend.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Pipelines/Pipelines.h"
#include "reprise/Pipelines/Registration.h"
#include "test/common/Words.h"
#include "tools/reprise-memplan/verify/Verify.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include <map>
#include <set>
#include <sstream>

using namespace mlir;
using namespace reprise;
using namespace reprise::planning;
using reprise::test::Draw;
using reprise::test::ModelDraw;

namespace cl = llvm::cl;
static cl::OptionCategory category("reprise-try-budgets options");
static cl::opt<int64_t> models(cl::Positional, cl::desc("<models>"),
                               cl::cat(category));
static cl::opt<int64_t> first(cl::Positional, cl::desc("<first>"), cl::init(1),
                              cl::cat(category));
static cl::opt<std::string> families(cl::Positional, cl::desc("<families>"),
                                     cl::cat(category));

namespace {
/// A model, and what is asked of it.
struct Case {
  std::string description; ///< a file that says nothing: keys are options
  ModelDraw::Keys keys;
  llvm::StringRef family;
  Budget::Kind kind = Budget::Kind::Memory;
  RecomputeOptions under; ///< what is decided before
  bool isFree = true, isCuda = false;

  std::string describe() const;
};

/// Counts of what was tried.
struct Tally {
  std::map<llvm::StringRef, int64_t> families;
  int64_t models = 0, budgets = 0, points = 0, options = 0, plans = 0,
          certificates = 0;
  int64_t wasteful = 0; ///< points whose programs take more than is alive
  int64_t untaken = 0;  ///< points that no budget gets
  int64_t smaller = 0;  ///< plans at random that the smallest found is not
};

/// Tries one case.
class Trier {
public:
  Trier(MLIRContext &context, const Case &model, Draw &draw, Tally &tally)
      : context(context), model(model), draw(draw), tally(tally) {}

  bool run();

private:
  bool build();
  bool tryBudgets();
  bool tryPoints();
  bool tryPlans();
  bool tryProgram(bool hasOptions);
  bool tryOption(const BudgetChoice &option);
  CostTable getCosts() const {
    return model.isCuda ? *CostTable::get("h200") : CostTable::getCPU();
  }
  /// Says what is wrong, unless `holds`.
  bool need(bool holds, const Twine &what);
  /// Seconds of a step with its replays.
  double getSeconds(int64_t point) const {
    return curve->points[point].seconds;
  }

  MLIRContext &context;
  const Case &model;
  Draw &draw;
  Tally &tally;
  OwningOpRef<ModuleOp> module;
  std::unique_ptr<SolvedStep> solved;
  const PlanCurve *curve = nullptr;
  BudgetSearch *search = nullptr;
  int64_t smallest = 0; ///< bytes of the smallest program
};
} // namespace

std::string Case::describe() const {
  std::string text = kind == Budget::Kind::Memory ? "memory" : "activations";
  text += isCuda ? ", cuda" : "";
  std::string constraint = under.describeConstraint();
  if (!constraint.empty())
    text += ", under " + constraint;
  for (auto &[key, value] : keys)
    text += " --" + key + "=" + value;
  return text;
}

//===----------------------------------------------------------------------===//
// Models
//===----------------------------------------------------------------------===//

static void drawWidths(Draw &draw, ModelDraw &model) {
  int64_t heads = draw.pick<int64_t>({1, 2, 4}),
          headWidth = draw.pick<int64_t>({8, 12, 16}),
          width = heads * headWidth,
          layers = draw.oneIn(6) ? draw.number(4, 6) : draw.number(1, 3);
  model.setFirst({"n_embd", "hidden_size"}, width);
  model.setFirst({"n_head", "num_attention_heads"}, heads);
  model.setFirst({"n_layer", "num_hidden_layers"}, layers);
  if (!model.takes("n_inner") || draw.oneIn(2))
    model.setFirst({"n_inner", "intermediate_size"},
                   draw.number(width, 4 * width));
  if (model.takes("num_key_value_heads") && !model.isLatent() && heads > 1 &&
      draw.oneIn(2))
    model.set("num_key_value_heads", draw.oneIn(2) ? 1 : heads / 2);
  model.drawLatents();
  model.drawExperts(layers, width);
  model.drawTerms();
}

static void drawTraining(Draw &draw, ModelDraw &model) {
  int64_t micro = draw.number(1, 3);
  // Long ones have a head in chunks, where the vocabulary is large.
  model.set("seq_length",
            draw.oneIn(4) ? draw.number(500, 1000) : draw.number(3, 32));
  model.set("micro_batch_size", micro);
  model.set("global_batch_size", micro * draw.pick<int64_t>({1, 1, 2, 3}));
  model.set("lr", "1e-3");
  model.set("lr_decay_style", "constant");
  model.set("train_iters", "4");
  if (draw.oneIn(3))
    model.set("precision", "bf16");
  if (draw.oneIn(3))
    model.set("attention", "unfused");
  if (draw.oneIn(4))
    model.set("clip_grad", "0");
  if (draw.oneIn(6))
    model.set("head_chunk_rows", draw.pick<int64_t>({0, 1024}));
}

/// What a budget is planned under, once in a while.
static void drawConstraint(Draw &draw, ModelDraw &drawn, Case &model) {
  model.isFree = !draw.oneIn(6);
  model.under.isFree = model.isFree;
  if (!draw.oneIn(6))
    return;
  model.under.granularity = "selective";
  model.under.modules = {drawn.drawLabel()};
}

static Case drawCase(Draw &draw,
                     llvm::ArrayRef<const frontend::Family *> families) {
  Case model;
  const frontend::Family &family =
      *families[draw.number(0, families.size() - 1)];
  model.family = family.name;
  ModelDraw drawn(draw, family, model.keys);
  drawn.set("vocab_size", draw.pick<int64_t>({11, 97, 256, 50257}));
  drawn.setFirst({"n_positions", "max_position_embeddings"}, 1024);
  drawWidths(draw, drawn);
  drawn.drawDropouts();
  if (draw.oneIn(2))
    drawn.set("tie_word_embeddings", draw.oneIn(2) ? "true" : "false");
  drawTraining(draw, drawn);
  drawConstraint(draw, drawn, model);
  model.isCuda = draw.oneIn(5);
  if (draw.oneIn(2))
    model.kind = Budget::Kind::Activations;
  return model;
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

bool Trier::need(bool holds, const Twine &what) {
  if (!holds)
    llvm::errs() << "violation: " << what << "\n  " << model.describe() << "\n";
  return holds;
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
  module = frontend::buildModel(context, *description);
  TargetOptions target;
  target.isCuda = model.isCuda;
  setTarget(*module, target);
  PassManager manager(&context);
  buildPipeline(manager, Phase::NN, Phase::Joint, RecomputeOptions(),
                /*inference=*/false);
  buildDeciders(manager, model.under);
  if (!module || failed(manager.run(*module)))
    return false;
  FailureOr<std::unique_ptr<SolvedStep>> created = SolvedStep::create(
      getPhases(), *module, model.kind, getCosts(), model.isFree);
  if (failed(created))
    return false;
  solved = std::move(*created);
  curve = &solved->curve;
  search = &solved->search;
  return true;
}

bool Trier::tryBudgets() {
  std::set<int64_t> budgets = {smallest - 1, smallest, smallest + 1};
  int64_t most = curve->points.back().bytes;
  // Few plans are asked for, each by several budgets.
  constexpr size_t kBudgets = 20, kPlans = 4;
  std::vector<size_t> near;
  for (size_t k = 0; k < kPlans; ++k)
    near.push_back(draw.number(0, curve->points.size() - 1));
  while (budgets.size() < kBudgets) {
    int64_t bytes = curve->points[near[draw.number(0, kPlans - 1)]].bytes;
    int64_t step = draw.pick<int64_t>({0, 1, 64, 1024, most / 64 + 1});
    budgets.insert(bytes + (draw.oneIn(2) ? step : draw.number(-step, step)));
    if (draw.oneIn(8))
      budgets.insert(draw.number(smallest, most + most / 16));
  }
  int64_t last = -1;
  for (int64_t budget : budgets) {
    ++tally.budgets;
    int64_t point = search->find(budget);
    if (!need((point >= 0) == (budget >= smallest),
              "a budget of " + Twine(budget) + " finds plan " + Twine(point) +
                  ", but the smallest takes " + Twine(smallest)))
      return false;
    if (point < 0)
      continue;
    int64_t bytes = search->getBytes(point);
    if (!need(bytes <= budget, "a budget of " + Twine(budget) +
                                   " is met by a program of " + Twine(bytes)) ||
        !need(point >= last, "a budget of " + Twine(budget) +
                                 " finds a slower plan than a smaller one") ||
        !need(search->find(bytes) == point,
              "a budget of the " + Twine(bytes) + " bytes that one of " +
                  Twine(budget) + " found finds another plan"))
      return false;
    last = point;
  }
  return true;
}

bool Trier::tryPoints() {
  constexpr int kPoints = 4;
  for (int k = 0; k < kPoints; ++k) {
    int64_t point = draw.number(0, curve->points.size() - 1);
    ++tally.points;
    int64_t bytes = search->getBytes(point);
    if (bytes < 0) { // Its launches form otherwise: it is never taken.
      ++tally.untaken;
      continue;
    }
    if (!need(curve->points[point].bytes <= bytes,
              "plan " + Twine(point) + " takes " + Twine(bytes) + ", but " +
                  Twine(curve->points[point].bytes) + " are alive at one time"))
      return false;
    tally.wasteful += bytes > curve->points[point].bytes;
  }
  return true;
}

/// Plans that drop values at random.
bool Trier::tryPlans() {
  constexpr int kPlans = 200;
  int64_t alive = curve->points[curve->getSmallest()].bytes;
  for (const HeadOption &option : curve->options) {
    const solver::StepGraph &graph = option.traced->graph;
    solver::StepSimulator simulator(graph);
    int64_t least = solver::getLeastPeak(graph);
    for (int k = 0; k < kPlans; ++k) {
      ++tally.plans;
      solver::KeptValues kept = solver::keepAll(graph);
      int64_t share = draw.number(1, 8);
      for (size_t v = 0; v < kept.size(); ++v)
        if (graph.values[v].rule == solver::StepValue::Rule::Free)
          kept[v] = draw.number(0, 8) >= share;
      const solver::StepRun &run = simulator.run(kept);
      if (!run.isPossible)
        continue;
      int64_t base =
          model.kind == Budget::Kind::Memory
              ? getBaseBytes(solved->whatIf->getStep(), *option.traced, run)
              : 0;
      // The smallest found is not proven to be the smallest. Bytes alive are
      // compared with bytes alive: the plan at random is not packed.
      tally.smaller += base + run.peak < alive;
      if (!need(run.peak >= least, "a plan needs " + Twine(run.peak) +
                                       ", but no plan less than " +
                                       Twine(least)) ||
          !need(base + run.peak >= alive - alive / 1000,
                "a plan at random needs " + Twine(base + run.peak) +
                    ", but the smallest found " + Twine(alive)))
        return false;
    }
  }
  return true;
}

/// Nothing that an option takes is less than what a budget may have.
bool Trier::tryOption(const BudgetChoice &option) {
  ++tally.options;
  int64_t point = search->find(option.bytes);
  if (!need(point >= 0, option.name + " takes " + Twine(option.bytes) +
                            ", but the smallest plan found " + Twine(smallest)))
    return false;
  const HeadOption &head = curve->options.front();
  double seconds =
      option.replaySeconds / double(head.traced->graph.microBatches) +
      head.seconds;
  return need(getSeconds(point) <= seconds * (1 + 1e-9),
              option.name + " takes " + Twine(option.bytes) + " bytes and " +
                  std::to_string(seconds) +
                  " s, but a budget of as many gets " +
                  std::to_string(getSeconds(point)) + " s");
}

/// A budget as the compiler meets it.
bool Trier::tryProgram(bool hasOptions) {
  ++tally.certificates;
  int64_t point = search->find(
      curve->points[draw.number(0, curve->points.size() - 1)].bytes);
  int64_t bytes = point < 0 ? smallest : search->getBytes(point);
  BudgetSettings settings;
  settings.isFree = model.isFree;
  settings.under = model.under.describeConstraint();
  settings.hasBaselines = hasOptions && model.under.granularity.empty();
  OwningOpRef<ModuleOp> program = module->clone();
  FailureOr<BudgetReport> report = planning::meetBudget(
      *solved, *program, {model.kind, bytes}, getCosts(), settings);
  if (!need(succeeded(report), "a budget of " + Twine(bytes) + " is refused"))
    return false;
  std::ostringstream text;
  solver::writeCertificate(text, report->certificate);
  verify::CertificateFigures figures;
  std::optional<verify::Fault> fault =
      verify::verifyCertificate(text.str(), figures);
  if (!need(!fault, "the certificate of " + Twine(bytes) +
                        " bytes: " + (fault ? fault->message : "")) ||
      !need(report->boundSeconds <= report->replaySeconds * (1 + 1e-9) + 1e-12,
            "the bound is above the replays"))
    return false;
  RecomputeOptions decided;
  decided.isFree = model.isFree;
  PassManager manager(&context);
  buildPipeline(manager, Phase::Joint, Phase::RT, decided, /*inference=*/false);
  if (!need(succeeded(manager.run(*program)), "the program is none"))
    return false;
  FailureOr<PlannedBytes> planned = getPlannedBytes(*program);
  int64_t took = failed(planned)                      ? -1
                 : model.kind == Budget::Kind::Memory ? planned->arena
                                                      : planned->activations;
  if (!need(took == report->plannedBytes && took <= bytes,
            "the program takes " + Twine(took) + " bytes, but " +
                Twine(report->plannedBytes) + " were said"))
    return false;
  return llvm::all_of(report->baselines, [&](const BudgetChoice &option) {
    return tryOption(option);
  });
}

bool Trier::run() {
  ++tally.models;
  ++tally.families[model.family];
  if (!need(build(), "the model is none") ||
      !need(!curve->points.empty(), "there is no plan"))
    return false;
  int64_t point = search->findSmallest();
  if (!need(point >= 0, "no plan's program runs what its graph foresees"))
    return false;
  smallest = search->getBytes(point);
  // The options are the dearest.
  bool hasOptions = draw.oneIn(3);
  return tryBudgets() && tryPoints() && tryPlans() && tryProgram(hasOptions);
}

static int usage(const llvm::Twine &what) {
  llvm::errs() << "reprise-try-budgets MODELS [FIRST [FAMILIES]]: needs "
               << what << "\n";
  return 2;
}

static void print(const Tally &tally) {
  llvm::outs() << tally.models << " models (";
  llvm::interleaveComma(tally.families, llvm::outs(), [](const auto &entry) {
    llvm::outs() << entry.first << " " << entry.second;
  });
  llvm::outs() << "), " << tally.budgets << " budgets, " << tally.points
               << " points of curves (" << tally.wasteful
               << " packed with waste, " << tally.untaken << " not taken), "
               << tally.options << " options, " << tally.plans
               << " plans at random (" << tally.smaller
               << " smaller than the smallest found), " << tally.certificates
               << " certificates: no violation\n";
}

int main(int argc, char **argv) {
  test::readWords(argc, argv, category, "Tries budgets of random models\n");
  std::vector<const frontend::Family *> drawn = test::readFamilies(families);
  if (models < 1 || first < 1)
    return usage("numbers of at least 1");
  if (drawn.empty())
    return usage("names of families, separated by commas, but got " + families);
  llvm::SmallString<128> empty;
  int file = -1;
  if (llvm::sys::fs::createTemporaryFile("empty", "yaml", file, empty)) {
    llvm::errs() << "reprise-try-budgets: cannot write a temporary file\n";
    return 1;
  }
  llvm::FileRemover remover(empty);
  llvm::raw_fd_ostream(file, /*shouldClose=*/true) << "model: {}\n";
  Tally tally;
  for (int64_t number = first; number < first + models; ++number) {
    DialectRegistry registry;
    registerDialects(registry);
    MLIRContext context(registry, MLIRContext::Threading::DISABLED);
    context.loadAllAvailableDialects();
    Draw draw(number);
    Case model = drawCase(draw, drawn);
    model.description = empty.str().str();
    if (!Trier(context, model, draw, tally).run()) {
      llvm::errs() << "  again: " << argv[0] << " 1 " << number
                   << (families.empty() ? "" : " ") << families << "\n";
      return 1;
    }
  }
  print(tally);
  return 0;
}
