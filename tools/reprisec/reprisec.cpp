//===- reprisec.cpp - Compiles a description to a program -----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Advice.h"
#include "Alternatives.h"
#include "Decide.h"
#include "Files.h"
#include "Input.h"
#include "Output.h"
#include "Reports.h"
#include "Stages.h"
#include "StepTimes.h"
#include "mlir/IR/MLIRContext.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Pipelines/Registration.h"
#include "reprise/Pipelines/StagePrograms.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::driver;

//===----------------------------------------------------------------------===//
// What is asked for
//===----------------------------------------------------------------------===//

static LogicalResult checkSavePlan(const Options &options, Phase from,
                                   Phase to) {
  if (options.savePlan.empty())
    return success();
  if (from < Phase::Remat && StringRef(options.target).contains(','))
    return failure(fail("option --save-plan: needs one target, whose plan it "
                        "is, but --target says " +
                        options.target));
  if (from > Phase::Remat)
    return failure(fail("option --save-plan: needs an input of phase nn, joint "
                        "or remat, which has the decisions, but --from says " +
                        stringifyPhase(from)));
  if (to < Phase::Remat)
    return failure(
        fail("option --save-plan: needs --emit=remat or later, where "
             "it is decided, but got '" +
             options.emit + "'"));
  return success();
}

static LogicalResult checkInference(const Options &options, Phase from) {
  if (options.inference.getNumOccurrences() && from > Phase::NN)
    return failure(fail("option --inference: needs an input of phase nn, which "
                        "it is made from, but --from says " +
                        stringifyPhase(from)));
  return success();
}

namespace {
/// A command line, read and found to be consistent.
struct Command {
  Options options;
  Targets targets;
  Goal goal;
  Phase from = Phase::NN, to = Phase::NN;
  /// Reports need planned memory; nothing but reports and files of plans is
  /// asked for.
  bool plansMemory = false, isReport = false;
  /// A program or an object, which has a place, or lacks one.
  bool isFile = false, lacksPlace = false;
  std::optional<planning::Budget> budget;
};
} // namespace

static LogicalResult readPlaces(Command &command) {
  Options &options = command.options;
  command.isFile =
      command.goal.kind == Goal::Program || command.goal.kind == Goal::Object;
  command.lacksPlace =
      command.isFile && options.output.empty() && !command.isReport;
  if (options.output.empty() && !command.isFile && !command.isReport)
    options.output = "-";
  if (!command.isFile || command.isReport || command.lacksPlace)
    return success();
  return checkOutput(options, command.goal.kind == Goal::Program);
}

static LogicalResult readCommand(Command &command) {
  const Options &options = command.options;
  FailureOr<Targets> targets = readTargets(options);
  if (failed(targets))
    return failure();
  FailureOr<Goal> goal = readGoal(options, *targets);
  if (failed(goal))
    return failure();
  FailureOr<Phase> from = readFrom(options, *targets, *goal);
  if (failed(from))
    return failure();
  command.targets = *targets;
  command.goal = *goal;
  command.from = *from;
  command.to = goal->phase;
  if (failed(checkInference(options, *from)) ||
      failed(checkReports(options, *from, command.to)) ||
      failed(checkSavePlan(options, *from, command.to)))
    return failure();
  command.plansMemory = !options.getReport().empty();
  command.isReport =
      (command.plansMemory || !options.savePlan.empty() ||
       !options.pareto.empty() || !options.certificate.empty()) &&
      options.output.empty() && options.emit.empty();
  if (command.isReport)
    command.to = command.plansMemory ? Phase::RT : Phase::Remat;
  FailureOr<std::optional<planning::Budget>> budget =
      readBudget(options, *from, command.to);
  if (failed(budget))
    return failure();
  command.budget = *budget;
  return readPlaces(command);
}

//===----------------------------------------------------------------------===//
// What is done
//===----------------------------------------------------------------------===//

namespace {
/// From an input to what is asked for. Each step says what is wrong itself.
class Compilation {
public:
  Compilation(Command &command, MLIRContext &context)
      : options(command.options), targets(command.targets), goal(command.goal),
        from(command.from), to(command.to), last(command.to), command(command),
        context(context) {}

  /// What the program ends with.
  int run(llvm::SourceMgr &sources);

private:
  LogicalResult read(llvm::SourceMgr &sources);
  LogicalResult readStages();
  LogicalResult keepUndecided();
  LogicalResult decideAll();
  LogicalResult showPlan();
  LogicalResult writeReport();
  int decideStages();
  int write();

  bool hasOther() const {
    return targets.areBoth() && to > Phase::Kernels && !command.isReport;
  }

  const Options &options;
  const Targets &targets;
  const Goal &goal;
  const Phase from;
  Phase to;         ///< Of `module`, which is not compiled further.
  const Phase last; ///< Of what is written.
  Command &command;
  MLIRContext &context;

  RecomputeOptions recompute;
  std::string described; ///< The plan.
  std::optional<frontend::Description> description;
  OwningOpRef<ModuleOp> module;
  OwningOpRef<ModuleOp> other;  ///< For a second target.
  OwningOpRef<ModuleOp> stages; ///< The program of a pipeline.
  std::optional<StagePrograms> programs;
  planning::MeasureStages measure;
  Phase reached = Phase::NN;  ///< By `module`.
  std::string undecidedBytes; ///< What other plans begin with.
  std::string planName;       ///< Which a plan has once it is decided.
  std::string planText;       ///< Of what is decided for the stages.
  Met met;
};
} // namespace

/// What is wrong with the input is to be heard of before what is wrong with the
/// output.
LogicalResult Compilation::read(llvm::SourceMgr &sources) {
  module = readInput(context, sources, options, from, recompute, description);
  if (!module || failed(checkPlanned(*module, from, targets)) ||
      failed(checkFiles(options, recompute.planFile)))
    return failure();
  if (command.budget)
    recompute = takeConstraint(options, recompute);
  if (command.lacksPlace)
    return failure(fail("needs a place for the program: -o FILE"));
  if (from < Phase::RT)
    setTarget(*module, targets.first());
  // A plan file decides what is free as it decides the rest.
  described = recompute.describe();
  if (options.from.empty())
    recordPlan(*module, recompute, described);
  reached = from;
  return success();
}

/// The program of a pipeline goes its own way. The plan is made for the whole
/// model first, with the samples of one rank, and shown.
LogicalResult Compilation::readStages() {
  bool isProgram =
      driver::isForStages(options, description, *module, command.isReport);
  if (isProgram) {
    if (failed(checkStages(options, description, targets, goal,
                           bool(command.budget))))
      return failure();
    stages = module->clone();
  }
  if (failed(checkProven(options, description)))
    return failure();
  if (!description || description->parallel.stages == 1)
    return success();
  // Plans for budgets and on curves are measured by their programs where these
  // are made, and those of a curve that is asked for alone, too.
  bool isCurve = !options.pareto.empty();
  bool isMeasured = isProgram ? last >= Phase::RT && (command.budget || isCurve)
                              : isCurve && options.emit.empty();
  OwningOpRef<ModuleOp> measured;
  if (isMeasured)
    measured = module->clone();
  if (description->parallel.dataParallel > 1) {
    module = frontend::buildPlanned(
        context, *description, command.budget || options.describesStages());
    if (!module)
      return failure();
    setTarget(*module, targets.first());
    recordPlan(*module, recompute, described);
  }
  frontend::setSchedule(*module, description->parallel);
  if (stages && failed(frontend::makePipeline(*stages, description->parallel)))
    return failure();
  if (!isMeasured)
    return success();
  if (failed(frontend::makePipeline(*measured, description->parallel)))
    return failure();
  programs.emplace(*measured, recompute.isFree, options.inference == "on");
  measure = [this](ModuleOp decided) {
    return programs->measure(decided, command.budget
                                          ? command.budget->kind
                                          : planning::Budget::Kind::Memory);
  };
  return success();
}

LogicalResult Compilation::keepUndecided() {
  if (!options.comparesPlans())
    return success();
  Phase undecided = std::max(from, Phase::Joint);
  if (failed(runPhases(*module, from, undecided, recompute,
                       options.inference == "on")))
    return failure();
  // Other plans are packed as they come, whatever a plan file says of its own.
  Attribute packing = (*module)->removeAttr(rt::kActivationsFirstAttr);
  FailureOr<std::string> bytes = writeUndecided(*module, undecided);
  if (packing)
    (*module)->setAttr(rt::kActivationsFirstAttr, packing);
  if (failed(bytes))
    return failure();
  undecidedBytes = std::move(*bytes);
  reached = undecided;
  return success();
}

/// What is not decided yet, each target decides by its own memory and times.
LogicalResult Compilation::decideAll() {
  if (from < Phase::Remat && to >= Phase::Remat &&
      failed(readPlanFile(*module, recompute, planName)))
    return failure();
  if (stages) // Their arenas hold micro-batches in flight, all together.
    (*module)->removeAttr(rt::kActivationsFirstAttr);
  if (failed(keepUndecided()))
    return failure();
  if (command.budget)
    planName = describeBudget(options);
  if (hasOther()) {
    other = module->clone();
    setTarget(*other, *targets.cuda);
  }
  auto decideOn = [&](ModuleOp module, bool isCuda) {
    return decide(module, reached, to, command.budget, options, recompute,
                  planName, isCuda, measure);
  };
  FailureOr<Met> found = decideOn(*module, /*isCuda=*/!targets.cpu);
  if (failed(found) && command.budget && description && !options.quiet)
    adviseOn(context, *description, *command.budget, options, recompute,
             targets.first(), last >= Phase::RT);
  if (failed(found) || (other && failed(decideOn(*other, /*isCuda=*/true))))
    return failure();
  met = std::move(*found);
  if (command.budget) {
    recompute.granularity = "plan";
    recompute.planFile = planName;
    described = recompute.describe();
  }
  reached = std::max(reached, std::min(to, Phase::Remat));
  return success();
}

LogicalResult Compilation::showPlan() {
  if (from < Phase::Remat && to >= Phase::Remat && !options.quiet &&
      failed(printPlan(*module, other ? *other : ModuleOp(), described)))
    return failure();
  if (stages && failed(writePlan(*module, planText)))
    return failure();
  std::string text;
  if (options.savePlan.empty())
    return success();
  return failure(failed(writePlan(*module, text)) ||
                 failed(writeFile(options.savePlan, text)));
}

LogicalResult Compilation::writeReport() {
  FailureOr<report::Plan> plan =
      readPlan(*module, undecidedBytes, description, options, recompute);
  if (failed(plan))
    return failure();
  plan->budget = met.budget;
  plan->pipeline = met.pipeline;
  std::string decidedText;
  if (description &&
      (!command.budget || succeeded(writePlan(*module, decidedText))))
    addStepTimes(*plan, context, *description, decidedText, options, recompute,
                 targets.first());
  if (failed(runPhases(*module, reached, Phase::RT, recompute)))
    return failure();
  reached = std::max(reached, Phase::RT);
  return writeReports(*plan, *module, options, recompute);
}

/// Lets the stages do what is decided, and writes them.
int Compilation::decideStages() {
  if (auto train = (*module)->getAttrOfType<DictionaryAttr>(nn::kTrainAttr))
    if (auto name = train.getAs<StringAttr>("recompute"))
      record(*stages, "recompute", name);
  return compileDecided(planText, *stages, last, options, targets, recompute,
                        command.budget, command.isFile);
}

/// Leads the module to its last phase and writes what is asked for.
int Compilation::write() {
  if (failed(runPhases(*module, reached, to, recompute, /*inference=*/true,
                       targets.first())))
    return 1;
  if (!options.quiet)
    printMemory(*module);
  if (goal.kind == Goal::Kernels)
    return writeKernels(*module, options, targets.chips);
  if (goal.kind == Goal::PTX || goal.kind == Goal::Cubin)
    return writeDeviceCode(*module, options, goal, targets.chips.front());
  if (command.isFile)
    return writeProgram(targets.cpu ? *module : ModuleOp(),
                        other          ? *other
                        : targets.cuda ? *module
                                       : ModuleOp(),
                        options, targets.chips);
  return failed(writeFile(options.output,
                          [&](llvm::raw_ostream &os) { module->print(os); }));
}

int Compilation::run(llvm::SourceMgr &sources) {
  if (failed(read(sources)) || failed(readStages()))
    return 1;
  if (stages && (last < Phase::Remat || !description))
    return compileStages(*stages, from, last, options, targets, recompute,
                         command.isFile);
  if (stages) {
    command.isReport = true;
    to = command.plansMemory ? Phase::RT : Phase::Remat;
  }
  if (failed(decideAll()) || failed(showPlan()))
    return 1;
  if (hasOther() && failed(runPhases(*other, reached, Phase::NVVM, recompute,
                                     /*inference=*/true, *targets.cuda)))
    return 1;
  if (command.plansMemory && failed(writeReport()))
    return 1;
  if (!command.isReport)
    return write();
  return stages ? decideStages() : 0;
}

static int compile(int argc, char **argv) {
  Command command;
  command.options.parse(argc, argv);
  if (command.options.printKeys) {
    frontend::printKeysAsMarkdown(llvm::outs());
    return 0;
  }
  if (command.options.input.empty())
    return fail("needs a description, as in: reprisec model.yaml -o train");
  if (failed(readCommand(command)))
    return 1;
  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry);
  context.printOpOnDiagnostic(false);
  llvm::SourceMgr sources;
  sources.setDiagHandler(printMessage);
  SourceMgrDiagnosticHandler handler(sources, &context);
  return Compilation(command, context).run(sources);
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  int status = compile(argc, argv);
  return failed(flushOutput()) ? 1 : status;
}
