//===- Main.cpp - The training program ------------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Inference.h"
#include "Interrupts.h"
#include "Options.h"
#include "Outputs.h"
#include "Saves.h"
#include "Schedule.h"
#include "StepInputs.h"
#include "runtime/base/Outliers.h"
#include "runtime/base/Targets.h"
#include "runtime/base/Text.h"
#include "runtime/checkpoint/CheckpointFolder.h"
#include "runtime/checkpoint/Dump.h"
#include "runtime/checkpoint/HubConfig.h"
#include "runtime/compute/Cpu.h"
#include "runtime/device/Executor.h"
#include "runtime/device/Init.h"
#include "runtime/device/Peak.h"
#include "runtime/device/Placement.h"
#include "runtime/show/Costs.h"
#include "runtime/show/Describe.h"
#include "runtime/show/Log.h"
#include "runtime/show/Measures.h"
#include "runtime/show/Timeline.h"
#include "runtime/transport/Agreement.h"
#include "runtime/transport/Collectives.h"
#include "runtime/transport/Embedded.h"
#include "runtime/transport/Lanes.h"
#include "runtime/transport/Launched.h"
#include "runtime/transport/Launcher.h"
#include "runtime/transport/Mesh.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cmath>
#include <csignal>
#include <cstring>
#include <unistd.h>

using namespace reprise::runtime;

namespace {

/// What a program ends with; scripts and schedulers look at it.
enum class ExitStatus {
  Finished = 0,
  Failed = 1,
  WrongOption = 2,
  NoDevice = 3,
  Stopped = 4 ///< By a signal, behind a step; with --save it is saved.
};

/// One run, from the first message to the last, as one of its ranks.
class Trainer {
public:
  Trainer(Placement &placement, const Options &options, Transport &ranks)
      : model(*placement.model), options(options), placement(placement),
        ranks(ranks), device(slot.make(placement, options, arena, pool, ranks)),
        executor(model, arena, device), log(model, options, ranks.engine()),
        metrics(model), measures(model), dump(model), costs(model),
        timeline(model),
        inputs(model, options, executor, device, isFirst() ? &dump : nullptr,
               dataShardOf(model, ranks.rank())),
        tensors(model, ranks.rank()),
        saves(model, options, tensors, arena, pool, ranks, log),
        inference(model, options, arena, executor, ranks,
                  Interrupts::stopFlag()) {
    device.setWatch({[](void *trainer, int64_t microBatches) {
                       static_cast<Trainer *>(trainer)->showLife(microBatches);
                     },
                     this});
  }

  /// What the program ends with.
  ExitStatus run(Error &error);

private:
  bool prepare(Error &error);
  void warn();
  void findPeak();
  bool loadStates(Error &error);
  bool runStep(Error &error);
  bool compute(StepReport &report, Error &error);
  bool show(StepReport &report, Error &error);
  void tell(Activity::Kind kind, double seconds = 0);
  void showLife(int64_t microBatches);
  bool runBatches(int64_t step, bool isApart, Error &error);
  bool areNumbers(const StepReport &report, Error &error);
  bool takeResults(StepReport &report, Error &error);
  bool updateApart(StepReport &report, Error &error);
  bool isDumped(int64_t step) const {
    return options.dump && step + 1 == options.steps;
  }
  void writeScalar(const RepriseBuffer &buffer, double value) {
    arena.touch(buffer);
    *arena.at<float>(buffer) = float(value);
  }
  bool infer(bool isLast, Error &error);
  bool runSteps(Error &error);
  bool isFirst() const { return ranks.rank() == 0; }
  bool findStop(bool &stops, Error &error);
  bool finish(int64_t stepsDone, Error &error);
  bool measureCosts(int64_t stepsDone, Error &error);

  const RepriseModel &model;
  const Options &options;
  Placement &placement;
  Transport &ranks;
  ThreadPool pool;
  Arena arena;
  DeviceSlot slot;
  Device &device;
  Executor executor;
  Log log;
  Metrics metrics;
  Measures measures;
  Peak peak;
  Dump dump;
  Costs costs;
  Timeline timeline;
  MemoryCheck check;
  StepInputs inputs;
  ModelTensors tensors;
  struct {
    WeightsReport weights = {};
    Error warning; ///< About the config.json beside them.
    Resumed resumed;
    DataMark data;
  } began; ///< What the run starts from.
  Saves saves;
  RunState state;
  /// Whether the states are those that `state.step` steps have left, and none
  /// of them broken.
  bool isWhole = true;
  Others others = Others::Elsewhere;
  double stepBegin = 0; ///< Of the step that runs.
  RankReport own;
  Inference inference;
  Interrupts interrupts;
};

} // namespace

bool Trainer::prepare(Error &error) {
  if (!checkOutputs(options, error) ||
      !pool.start(int(options.threads), error) || !inputs.open(pool, error))
    return false;
  const TrainingData &data = inputs.data();
  began.data = markOf(data.stream(), inputs.format().tokenizer);
  if (options.data.size() == 0)
    began.data.isText = wasTrainedOnBytes(options);
  if (!inference.open(inputs.format(), began.data.isText, pool, error) ||
      !executor.prepare(options.profile || options.costs || options.trace,
                        ranks.rank(), error))
    return false;
  if ((options.dump && isFirst() && !dump.start(options.dump, error)) ||
      (options.costs && !costs.start(options.costs, error)) ||
      (options.trace && isFirst() && !timeline.start(options.trace, error)))
    return false;
  if (options.checkMemory && !check.start(model, arena, error))
    return false;
  if (!loadStates(error) ||
      (options.costs &&
       !Costs::checkSteps(std::max<int64_t>(options.steps - state.step, 0),
                          error)) ||
      !measures.start(error) || !metrics.open(options, state.step, error))
    return false;
  // A log for programs begins with its plan.
  if (!options.json)
    warn();
  findPeak();
  char machine[256] = "";
  device.describe(machine, sizeof(machine));
  if (!log.plan(data, device.facts().microKernel, peak.flops(), machine, error))
    return false;
  if (options.initFrom)
    log.weights(began.weights, began.data, data.stream().isText());
  if (began.resumed.folder.chars[0])
    log.resumed(began.resumed);
  if (options.json)
    warn();
  if (placement.note[0])
    log.note(placement.note);
  saves.announce();
  inference.announce(log);
  return Log::flush(error);
}

/// Says what may not be as it is meant to be.
void Trainer::warn() {
  if (began.warning.text[0])
    log.warning(began.warning.text);
  if (began.resumed.folder.chars[0])
    log.changed(began.resumed, began.data);
  saves.warn();
}

/// Finds what utilization is measured against.
void Trainer::findPeak() {
  const DeviceFacts facts = device.facts();
  if (options.peakFlops > 0) {
    peak.state(options.peakFlops);
  } else if (const RepriseMicroKernel *kernel = facts.microKernel) {
    Error name;
    name.set("%s, %s tiles of %d x %d, %s", facts.name, Log::isaName(kernel),
             kernel->rows, kernel->cols, repriseElementName(kernel->typeAB));
    peak.measure(*kernel, pool, name.text, options.save);
    peak.keep();
  } else {
    peak.state(facts.dataSheetFlops);
  }
}

/// Gives every state the value that the first step of this run starts from.
bool Trainer::loadStates(Error &error) {
  if (!tensors.find(error))
    return false;
  Loaded loaded = Loaded::Nothing;
  if (options.initFrom) {
    if (!checkHubConfig(options.initFrom,
                        model.configJson ? model.configJson : "", began.warning,
                        error))
      return false;
    // A misspelt size is why the weights are of another.
    if (!loadWeights(options.initFrom, tensors, arena, pool, began.weights,
                     error))
      return began.warning.text[0] ? error.add("; %s", began.warning.text)
                                   : false;
    loaded = Loaded::Parameters;
  }
  if (options.resume && !resumeTraining(model, options, tensors, arena, pool,
                                        began.resumed, error))
    return false;
  bool goesOn = began.resumed.folder.chars[0];
  state = began.resumed.state;
  if (!initializeStates(model, options.seed, arena, pool, error,
                        goesOn ? Loaded::AllButGradients : loaded,
                        ranks.rank()) ||
      !roundParameters(model, arena, pool, error, &ranks) ||
      !fillRotaries(model, arena, pool, error))
    return false;
  const Tokenizer *tokenizer = inputs.format().tokenizer;
  return saves.start(began.resumed, began.data,
                     tokenizer ? tokenizer->path() : nullptr, error);
}

/// Begins forward and backward of a step, and unless `isApart` its update.
bool Trainer::runBatches(int64_t step, bool isApart, Error &error) {
  int64_t atOnce = device.nextInputs().count();
  for (int begin = 0; begin < model.numEntries;) {
    Turn turn = turnFrom(model, begin, atOnce);
    int64_t first = model.program[begin].microBatch;
    bool isLast = turn.end == model.numEntries;
    if (!inputs.write(step, first, error)) {
      isWhole = true; // Nothing has been updated.
      return false;
    }
    if (!executor.runTurn(turn, isApart, error))
      return false;
    inputs.writeAhead(step, first);
    if (!isLast && !device.isAhead())
      showLife(first + atOnce);
    begin = turn.end;
  }
  return true;
}

/// Lets interrupts know what the run does from now on, and for how long.
void Trainer::tell(Activity::Kind kind, double seconds) {
  Activity activity = {kind, state.step, now(), seconds,
                       saves.expectedSeconds()};
  if (kind == Activity::Step) {
    ++activity.step;
    activity.begin = stepBegin;
  }
  interrupts.report(activity);
}

/// Within a step: so many micro-batches are done, so there is something to go
/// by also in the first one.
void Trainer::showLife(int64_t microBatches) {
  log.microBatch(state.step, int(microBatches));
  double seconds = log.expectedSeconds();
  if (seconds == 0)
    seconds =
        (now() - stepBegin) * model.microBatchesPerRank / double(microBatches);
  tell(Activity::Step, seconds);
}

/// Computes a step, whose update is done then.
bool Trainer::compute(StepReport &report, Error &error) {
  int64_t step = report.step;
  // Who looks at gradients before they are used does the update by itself.
  bool isApart =
      isDumped(step) || options.skipLossZ > 0 || options.skipGradZ > 0;
  if (options.checkMemory)
    check.fillGaps();
  double waited = ranks.exchangeSeconds(Patience::Limited);
  double waitedForStages = ranks.receiveSeconds();
  stepBegin = now();
  report.learningRate = float(learningRate(model, step));
  writeScalar(model.lr, report.learningRate);
  writeScalar(model.biasCorrection1, biasCorrection(model.beta1, step));
  writeScalar(model.biasCorrection2, biasCorrection(model.beta2, step));
  if (!device.beginStep(error) || !runBatches(step, isApart, error))
    return false;
  if (isApart ? !updateApart(report, error)
              : !device.endStep(error) || !takeResults(report, error))
    return false;
  report.seconds = now() - stepBegin;
  own.stepSeconds += report.seconds;
  own.waitSeconds += ranks.exchangeSeconds(Patience::Limited) - waited;
  own.stageSeconds += ranks.receiveSeconds() - waitedForStages;
  if (!isApart)
    report.device = device.times();
  return true;
}

/// Shows a step that is done, and writes it to files.
bool Trainer::show(StepReport &report, Error &error) {
  report.highWaterBytes = executor.highWaterBytes();
  report.tokensPerSecond =
      double(model.numMicroBatches * model.microBatchSize * model.seqLength) /
      report.seconds;
  double flops = model.modelFlops + model.replayFlops;
  peak.reached(flops / report.seconds / ranks.size());
  bool isKnown = peak.flops() > 0 && model.modelFlops > 0;
  double available =
      isKnown ? peak.flops() * report.seconds * ranks.size() : NAN;
  report.mfu = model.modelFlops / available;
  report.hfu = (model.modelFlops + model.replayFlops) / available;
  return log.step(report, error) && metrics.step(report, error) &&
         (!isDumped(report.step) || !isFirst() ||
          dump.write(report.gradNorm, error));
}

bool Trainer::runStep(Error &error) {
  StepReport report = {};
  report.step = state.step;
  stepBegin = now();
  tell(Activity::Step, log.expectedSeconds());
  ranks.reportStep(state.step + 1);
  isWhole = false;
  if (!compute(report, error))
    return false;
  isWhole = true;
  ++state.step;
  tell(Activity::Looking);
  others = Others::Waiting;
  return show(report, error);
}

/// Whether loss and norm are numbers. If not, the update has not changed the
/// states, or has not been run, in any rank: all have the same loss and norm.
bool Trainer::areNumbers(const StepReport &report, Error &error) {
  const bool isLoss = !std::isfinite(report.loss);
  if (!isLoss && std::isfinite(report.gradNorm))
    return true;
  isWhole = true;
  others = Others::Ending;
  Error of;
  if (!isLoss)
    of.set(", while the loss is %g", double(report.loss));
  return error.set(
      "the %s of step %" PRId64 " is %s%s; parameters are as step %" PRId64
      " left them. A lower learning rate (now %g), a longer warmup or "
      "clip_grad may help",
      isLoss ? "loss" : "gradient norm", report.step + 1,
      shown(double(isLoss ? report.loss : report.gradNorm)).chars, of.text,
      report.step, double(report.learningRate));
}

bool Trainer::takeResults(StepReport &report, Error &error) {
  report.loss = *arena.at<float>(model.loss);
  report.gradNorm = *arena.at<float>(model.gradNorm);
  measures.take(arena);
  report.measures = &measures;
  if (!areNumbers(report, error))
    return false;
  report.lossZ = state.losses.add(double(report.loss));
  report.gradNormZ = state.gradNorms.add(double(report.gradNorm));
  return true;
}

/// Keeps the states that are dumped, and changes the parameters unless loss or
/// norm stand out more than the options allow.
bool Trainer::updateApart(StepReport &report, Error &error) {
  // With the norm, gradients are the sums over all ranks.
  if (!device.runNorm(error) ||
      (isDumped(report.step) && !dump.keepStates(arena, ranks, pool, error)) ||
      !takeResults(report, error))
    return false;
  auto standsOut = [](double z, double limit) {
    return limit > 0 && z > limit;
  };
  report.skipped = standsOut(report.lossZ, options.skipLossZ) ||
                   standsOut(report.gradNormZ, options.skipGradZ);
  return report.skipped ? device.clearGradients(error)
                        : device.runOptimizer(error);
}

bool Trainer::finish(int64_t stepsDone, Error &error) {
  if (!device.finish(error))
    return false;
  peak.keep();
  int64_t highWater = executor.highWaterBytes();
  int64_t written =
      options.checkMemory ? executor.withPadding(check.writtenBytes()) : -1;
  if (options.profile && stepsDone > 0)
    log.profile(device.profile().all(), std::max<int64_t>(stepsDone - 1, 1));
  if (options.trace && stepsDone > 0 &&
      !timeline.write(device.profile().lastStep(), stepBegin, state.step, ranks,
                      error))
    return false;
  if (!factsOf(model.target).meetsOnHost && device.profile().areMeasured())
    own.stageSeconds = stageSeconds(model, device.profile().all());
  own.plannedBytes = double(executor.plannedBytes());
  own.highWaterBytes = double(highWater);
  own.sentBytes = double(device.sentBytes());
  own.savedBytes = double(saves.ownPart().writtenBytes());
  List<RankReport> reports;
  if (ranks.size() > 1 && !gather(ranks, own, reports, error))
    return false;
  if (!measureCosts(stepsDone, error))
    return false;
  if (stepsDone > 0 || options.json) {
    DeviceMemory inUse;
    bool isKnown = device.measure(inUse);
    log.memory(arena, isKnown ? &inUse : nullptr,
               saves.ownPart().source().copyBytes());
    if (!reports.empty())
      log.ranks(reports);
    if (!options.json)
      printLoads(measures);
  }
  if (!log.end(stepsDone, highWater, written, error))
    return false;
  int64_t planned = executor.plannedBytes();
  if (options.checkMemory && (written > highWater || highWater != planned))
    return error.set("--check-memory needs the plan of %" PRId64 " bytes to be "
                     "the high-water mark and no byte written above it, but "
                     "got a mark of %" PRId64
                     " and bytes written up to %" PRId64,
                     planned, highWater, written);
  return device.disconnect(error);
}

/// What ranks exchange all of them measure, and rank 0 writes it. States are in
/// files by now, so that their bytes may be written over.
bool Trainer::measureCosts(int64_t stepsDone, Error &error) {
  if (!options.costs && !options.areCostsElsewhere)
    return true;
  if (!Costs::checkSteps(stepsDone, error)) // An interrupt ends a run early.
    return false;
  ExchangeTimes exchanges;
  if (ranks.size() > 1 &&
      !exchanges.measure(model, device, arena, ranks, error))
    return false;
  if (options.costs && exchanges.areScattered)
    log.warning("ranks of one machine do not have neighbouring numbers, or "
                "machines have different numbers of them: the compiler cannot "
                "know which of the measured exchanges are across machines");
  return !options.costs || costs.write(device.profile().all(), stepsDone - 1,
                                       device.facts().name, exchanges, error);
}

/// Validation and sampling, if they are due.
bool Trainer::infer(bool isLast, Error &error) {
  MemoryCheck *checked = options.checkMemory ? &check : nullptr;
  return inference.run(state.step, isLast, checked, log, metrics, error);
}

/// Whether the run ends before the next step. Signals are rank 0's, which lets
/// the others know, so that all end behind the same step.
bool Trainer::findStop(bool &stops, Error &error) {
  stops = isFirst() && Interrupts::stopFlag();
  return ranks.size() == 1 ||
         broadcast(ranks, {0, 1, ranks.size()}, "the start of a step", &stops,
                   sizeof(stops), error);
}

bool Trainer::runSteps(Error &error) {
  int64_t first = state.step;
  log.begin(state.step);
  for (bool stops = false; state.step < options.steps;) {
    if (!findStop(stops, error))
      return false;
    if (stops)
      break;
    if (state.step == first + 1) // The first one touches memory and code anew.
      device.profile().forget();
    if (!runStep(error))
      return false;
    others = Others::Elsewhere;
    if (!saves.afterStep(state, Interrupts::takeSave(), error))
      return false;
    if (state.step < options.steps && !infer(/*isLast=*/false, error))
      return false;
  }
  log.clearProgress();
  bool isEarly = state.step < options.steps;
  if (isEarly)
    log.interrupted(state.step);
  tell(Activity::Saving, saves.expectedSeconds());
  // A disk without room for metrics costs no states.
  if (!saves.atEnd(state, error) || (isEarly && !metrics.interrupted(error)) ||
      !Log::flush(error))
    return false;
  tell(Activity::Looking);
  return isEarly || infer(/*isLast=*/true, error);
}

ExitStatus Trainer::run(Error &error) {
  if (!prepare(error) ||
      (isFirst() && !interrupts.start(options.save, log.hasProgress(), error)))
    return ExitStatus::Failed;
  int64_t first = state.step;
  if (runSteps(error)) {
    bool isEarly = state.step < options.steps;
    return !finish(state.step - first, error) ? ExitStatus::Failed
           : isEarly                          ? ExitStatus::Stopped
                                              : ExitStatus::Finished;
  }
  log.clearProgress();
  if (isWhole)
    saves.rescue(state, others, error);
  saves.giveUp(error);
  return ExitStatus::Failed;
}

/// The last part of the program's own name.
static const char *programName(const char *path) {
  const char *slash = path ? strrchr(path, '/') : nullptr;
  return slash ? slash + 1 : path ? path : "train";
}

namespace {
/// What the program begins with.
struct Program {
  const RepriseModel *const *models;
  int numModels;
  Options options;
  Launch launch;
  RunMark mark = {};
};
} // namespace

/// The models that a rank has a choice of: those of its stage.
static bool findModels(const Program &program, int rank,
                       List<const RepriseModel *> &models, Error &error) {
  const int64_t stage = stageOf(*program.models[0], rank);
  for (int i = 0; i < program.numModels; ++i)
    if (program.models[i]->stage == stage && !models.push(program.models[i]))
      return error.set("no memory left for %d models", program.numModels);
  return !models.empty() || error.set("damaged model: stage %" PRId64
                                      " of %" PRId64 " has no model",
                                      stage, countStages(*program.models[0]));
}

/// Trains as one of the ranks.
static ExitStatus train(const Program &program, const Options &options,
                        Transport &ranks, Error &error) {
  Placement placement;
  List<const RepriseModel *> models;
  if (!findModels(program, ranks.rank(), models, error))
    return ExitStatus::Failed;
  const bool isLaunched = program.launch.name && options.ranks == 0;
  const int64_t localRank =
      isLaunched ? program.launch.localRank : ranks.rank();
  if (int status = place(models.begin(), int(models.size()), options,
                         int(localRank), placement, error))
    return ExitStatus(status);
  if (ranks.size() > 1 && !agreeOnDevice(placement, ranks, error))
    return ExitStatus::Failed;
  Trainer trainer(placement, options, ranks);
  const ExitStatus status = trainer.run(error);
  // Others give up what they do with this rank before it can give up its part.
  if (status == ExitStatus::Failed)
    ranks.abort(error.text);
  return status;
}

/// Rank 0 alone shows something and writes files, but for the tensors of
/// checkpoints. What ranks that share the model with it compute between steps,
/// they compute together.
static bool becomeQuiet(Options &options, bool infers, Error &error) {
  options.isQuiet = true;
  options.json = options.profile = false;
  options.saveOfFirst = options.save;
  options.areCostsElsewhere = options.costs;
  options.save = options.csv = options.tensorboard = options.costs = nullptr;
  if (!infers) {
    options.valData = Paths();
    options.sample = 0;
  }
  return freopen("/dev/null", "w", stdout) ||
         error.set("cannot open /dev/null: %s", strerror(errno));
}

/// A process of its own.
static int trainAsRank(Transport &ranks, void *context) {
  const Program &program = *static_cast<const Program *>(context);
  Options options = program.options;
  Error error;
  takeProcessors(program.launch, ranks.rank(), ranks.size(), options.threads);
  ExitStatus status = ExitStatus::Failed;
  bool infers = isWithFirst(*program.models[0], ranks.rank());
  if (agree(ranks, program.mark, error) &&
      (ranks.rank() == 0 || becomeQuiet(options, infers, error)))
    status = train(program, options, ranks, error);
  if (status == ExitStatus::Finished || status == ExitStatus::Stopped)
    return int(status);
  ranks.abort(error.text);
  return 1;
}

/// Trains as the rank that a launcher has started, or in all ranks, which are
/// started on this machine.
static int trainInRanks(Program &program, Error &error) {
  const RepriseModel &model = *program.models[0];
  RankSettings settings;
  settings.numRanks = int(countRanks(model));
  // Engines keep room for those that meet on the host; GPUs keep their own.
  List<Lane> lanes;
  for (const TargetFacts &target : kTargets) {
    List<Lane> betweenDevices;
    if (!findLanes(program.models, program.numModels, target.number,
                   target.meetsOnHost ? lanes : betweenDevices, error))
      return int(ExitStatus::Failed);
  }
  settings.lanes = lanes.begin();
  settings.numLanes = int(lanes.size());
  if (program.options.timeout)
    settings.timeoutSeconds = double(program.options.timeout);
  settings.name = +[](int rank, char *text, size_t size, const void *context) {
    nameRank(*static_cast<const Program *>(context)->models[0], rank, text,
             size);
  };
  settings.ended = +[](const void *context) {
    const char *folder = static_cast<const Program *>(context)->options.save;
    if (folder)
      CheckpointFolder::removeProbe(folder);
  };
  bool isLaunched = program.launch.name && program.options.ranks == 0;
  return isLaunched ? runLaunchedRank(program.launch, settings, trainAsRank,
                                      &program, error)
                    : runRanks(settings, trainAsRank, &program, error);
}

/// Says what went wrong, unless another rank does.
static int fail(const char *program, const Error &error, ExitStatus status) {
  fflush(stdout);
  if (!error.text[0])
    return int(status);
  if (error.hasPlace)
    fprintf(stderr, "%s\n", error.text);
  else
    fprintf(stderr, "%s: error: %s\n", program, error.text);
  return int(status);
}

/// Trains with the options that were given, in all ranks.
static ExitStatus trainAll(Program &program, int argc, char **argv,
                           Error &error) {
  // A log that nobody reads any more is an error like others, not the end; and
  // so is a file that may not grow.
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  if (countRanks(*program.models[0]) == 1) {
    Transport alone;
    return train(program, program.options, alone, error);
  }
  return program.mark.find(argc, argv, error)
             ? ExitStatus(trainInRanks(program, error))
             : ExitStatus::Failed;
}

int reprise::runtime::trainingMain(int argc, char **argv,
                                   const RepriseModel *const *models,
                                   int numModels) {
  const RepriseModel &model = *models[0]; // All say the same of the program.
  const char *name = programName(argc > 0 ? argv[0] : nullptr);
  Error error;
  if (model.abiVersion != REPRISE_ABI_VERSION) {
    error.set("the model was compiled for version %u of the interface, but "
              "this runtime has version %u; compile it again",
              model.abiVersion, REPRISE_ABI_VERSION);
    return fail(name, error, ExitStatus::Failed);
  }
  Program program = {models, numModels, {}, findLaunch()};
  const Options &options = program.options;
  bool isGood = parseOptions(argc, argv, model, program.options, error);
  bool isToRun = !options.help && !options.version && !options.describe;
  if (isGood && isToRun)
    isGood = checkLaunch(program.launch, model, options.ranks, error);
  if (!isGood) {
    // All ranks refuse the same, and one of them says it: when it has, a
    // launcher ends the others.
    if (program.launch.rank > 0)
      sleep(3);
    return fail(name, error, ExitStatus::WrongOption);
  }
  if (options.help)
    printHelp(name, model, options.help);
  else if (options.version)
    printVersion(models, numModels);
  else if (options.describe)
    printDescription(models, numModels);
  if (!isToRun)
    return Log::flush(error) ? 0 : fail(name, error, ExitStatus::Failed);
  ExitStatus status = trainAll(program, argc, argv, error);
  isGood = status == ExitStatus::Finished || status == ExitStatus::Stopped;
  return isGood ? int(status) : fail(name, error, status);
}
