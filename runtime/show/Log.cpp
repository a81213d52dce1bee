//===- Log.cpp - What a training run shows --------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Log.h"

#include "DataNotes.h"

#include "Measures.h"
#include "runtime/base/Clock.h"
#include "runtime/base/Program.h"
#include "runtime/base/Text.h"
#include "runtime/device/Init.h"
#include "runtime/text/JsonWriter.h"
#include "runtime/transport/Mesh.h"
#include "runtime/transport/Parts.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cmath>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace reprise::runtime;

/// A bar that is full; on a narrow terminal it is shorter, or left out.
static constexpr char kBar[] = "========================================";
static constexpr int kLongestBar = sizeof(kBar) - 1, kShortestBar = 8;
/// What shows that a step goes on comes no more often, in seconds.
static constexpr double kSignsOfLife = 0.5;

//===----------------------------------------------------------------------===//
// Start
//===----------------------------------------------------------------------===//

/// Whether standard error is a terminal that knows escapes.
static bool canMoveCursor() {
  const char *terminal = getenv("TERM");
  return terminal && *terminal && strcmp(terminal, "dumb") != 0 &&
         isatty(STDERR_FILENO);
}

Log::Log(const RepriseModel &model, const ShowOptions &options,
         const char *engine)
    : model(model), options(options), engine(engine),
      tokensPerStep(model.numMicroBatches * model.microBatchSize *
                    model.seqLength),
      hasBar(!options.isQuiet && canMoveCursor()) {}

bool Log::flush(Error &error) {
  bool good = fflush(stdout) == 0 && !ferror(stdout);
  return good || error.set("cannot write the log: %s", strerror(errno));
}

static int64_t countParameters(const RepriseModel &model) {
  int64_t count = 0;
  for (int i = 0; i < model.numStates; ++i)
    if (model.states[i].kind == REPRISE_STATE_PARAMETER)
      count += partOf(model, model.states[i], /*rank=*/0).wholeElements();
  return count;
}

const char *Log::isaName(const RepriseMicroKernel *kernel) {
  return !kernel || kernel->isa == REPRISE_ISA_V3 ? "x86-64-v3"
         : kernel->isa == REPRISE_ISA_V4          ? "x86-64-v4"
         : kernel->isa == REPRISE_ISA_AVX512_BF16 ? "x86-64-v4 with AVX512_BF16"
                                                  : "x86-64-v4 with AMX_BF16";
}

namespace {
struct Note {
  char chars[192];
};
} // namespace

/// What the user should know of a run that is longer than its schedule; empty
/// if it is not.
static Note scheduleNote(const RepriseModel &model,
                         const ShowOptions &options) {
  Note note = {};
  if (options.steps > model.decayIters &&
      model.lrDecayStyle != REPRISE_LR_CONSTANT)
    snprintf(note.chars, sizeof(note.chars),
             "--steps %" PRId64 " is more than %s, %" PRId64
             ": from step %" PRId64 " on the learning rate stays min_lr, %g",
             options.steps,
             model.decayIters == model.trainIters ? "train_iters"
                                                  : "lr_decay_iters",
             model.decayIters, model.decayIters + 1, model.minLearningRate);
  return note;
}

static void printJsonData(JsonWriter &json, const ShowOptions &options,
                          const TrainingData &data) {
  json.key("data").array();
  for (const char *path : options.data)
    json.value(path);
  json.end().member("files", data.stream().numFiles());
  json.member("tokens", data.stream().size());
  json.member("samples", data.numSamples()).member("steps", options.steps);
  json.member("threads", options.threads).member("seed", options.seed);
}

static void printJsonPlan(const RepriseModel &model, const ShowOptions &options,
                          const TrainingData &data,
                          const RepriseMicroKernel *kernel, double peakFlops,
                          const char *gpu, const char *engine) {
  JsonWriter json(stdout);
  json.object().member("event", "plan").member("model", model.name);
  json.member("plan", model.plan).member("parameters", countParameters(model));
  printJsonData(json, options, data);
  json.member("isa", Log::isaName(kernel));
  json.member("planned_bytes", model.arenaBytes).key("categories").object();
  for (int i = 0; i < model.numCategories; ++i)
    json.member(model.categories[i].name, model.categories[i].bytes);
  json.end().member("model_flops", model.modelFlops);
  json.member("replay_flops", model.replayFlops);
  json.member("peak_flops", peakFlops, 6);
  if (model.numAxes > 0) {
    char mesh[128];
    describeMesh(model, mesh, sizeof(mesh));
    json.member("ranks", countRanks(model)).member("mesh", +mesh);
    json.member("engine", engine);
    if (options.ncclSums)
      json.member("sums", kNcclSums);
  }
  if (gpu[0])
    json.member("device", gpu);
  if (options.tokenizer) {
    json.member("tokenizer", options.tokenizer);
    json.member("text_bytes", data.stream().textBytes());
    json.member("text_tokens", data.stream().textTokens());
  }
  if (Note note = scheduleNote(model, options); note.chars[0])
    json.member("note", +note.chars);
  json.finish();
}

void Log::printData(const TrainingData &data) const {
  printf("data     ");
  for (const char *path : options.data)
    printf("%s, ", path);
  if (data.stream().numFiles() > 1)
    printf("%s files, ", grouped(data.stream().numFiles()).chars);
  printf("%s tokens, ", grouped(data.stream().size()).chars);
  printf("%s samples of %" PRId64 ", %s\n", grouped(data.numSamples()).chars,
         model.seqLength, options.shuffled ? "shuffled" : "sequential");
}

/// The ranks that a step is computed by, and what moves bytes between them.
static void printRanks(const RepriseModel &model, const ShowOptions &options,
                       const char *engine) {
  char mesh[128];
  describeMesh(model, mesh, sizeof(mesh));
  printf("ranks    %" PRId64 " (%s), %s\n", countRanks(model), mesh, engine);
  if (options.ncclSums)
    printf("sums     %s\n", kNcclSums);
}

/// Computations of a step, and the machine that does them.
static void printWork(const RepriseModel &model, const ShowOptions &options,
                      const RepriseMicroKernel *kernel, double peakFlops,
                      const char *gpu) {
  const int64_t tokens =
      model.numMicroBatches * model.microBatchSize * model.seqLength;
  printf("step     %d x %" PRId64 " x %" PRId64 " = %s tokens, %.4g GFLOP",
         model.numMicroBatches, model.microBatchSize, model.seqLength,
         grouped(tokens).chars, model.modelFlops * 1e-9);
  if (model.replayFlops > 0)
    printf(" + %.4g replayed", model.replayFlops * 1e-9);
  if (gpu[0] && peakFlops > 0)
    printf("\nmachine  %s, %.4g TFLOP/s by the data sheet", gpu,
           peakFlops * 1e-12);
  else if (gpu[0])
    printf("\nmachine  %s", gpu);
  else
    printf("\nmachine  %" PRId64 " thread%s%s, %s", options.threads,
           options.threads == 1 ? "" : "s",
           model.numAxes > 0 ? " in each rank" : "", Log::isaName(kernel));
  if (kernel)
    printf(", GEMM tiles %d x %d, %.4g GFLOP/s at most", kernel->rows,
           kernel->cols, peakFlops * 1e-9);
  printf("\n");
}

/// The arena, category by category.
static void printArena(const RepriseModel &model) {
  printf("memory   %s = %s bytes%s, allocated now and never again\n",
         human(model.arenaBytes).chars, grouped(model.arenaBytes).chars,
         countStages(model) > 1 ? " in each rank of stage 0"
         : model.numAxes > 0    ? " in each rank"
                                : "");
  for (int i = 0; i < model.numCategories; ++i) {
    const RepriseCategory &category = model.categories[i];
    printf("  %-22s %12s %18s  %5.1f%%\n", category.name,
           human(category.bytes).chars, grouped(category.bytes).chars,
           100.0 * double(category.bytes) /
               double(std::max<int64_t>(model.arenaBytes, 1)));
  }
}

bool Log::plan(const TrainingData &data, const RepriseMicroKernel *kernel,
               double peakFlops, const char *gpu, Error &error) {
  if (options.json) {
    printJsonPlan(model, options, data, kernel, peakFlops, gpu, engine);
    noteData(data.stream(), options, model.vocabSize, *this);
    return flush(error);
  }
  printf("model    %s, %s parameters, recompute: %s\n", model.name,
         grouped(countParameters(model)).chars, model.plan);
  if (model.numAxes > 0)
    printRanks(model, options, engine);
  if (options.data.size() > 0)
    printData(data);
  noteData(data.stream(), options, model.vocabSize, *this);
  if (options.tokenizer)
    printf("text     %s, %s bytes, %.3g for a token\n", options.tokenizer,
           grouped(data.stream().textBytes()).chars,
           double(data.stream().textBytes()) /
               double(std::max<int64_t>(data.stream().textTokens(), 1)));
  printWork(model, options, kernel, peakFlops, gpu);
  printArena(model);
  if (Note note = scheduleNote(model, options); note.chars[0])
    printf("note     %s\n", note.chars);
  return flush(error);
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

void Log::clearProgress() {
  if (hasBar)
    fputs("\r\033[K", stderr);
}

/// As wide as this terminal is at this moment; 0 if it is none.
static int columnsOf(int file) {
  winsize size = {};
  return ioctl(file, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/// What a line of the log may have on the terminal that shows it, perhaps from
/// a pipe, as of `tee`, beside the progress bar; 0: as much as it wants.
static int lineColumns() {
  if (int columns = columnsOf(STDOUT_FILENO))
    return columns;
  struct stat info;
  bool isPipe = fstat(STDOUT_FILENO, &info) == 0 && S_ISFIFO(info.st_mode);
  return isPipe ? columnsOf(STDERR_FILENO) : 0;
}

namespace {
/// A line of pieces, of which the least important ones are left out where there
/// is no room for all.
class Pieces {
public:
  /// The most important one has 0, and stays.
  [[gnu::format(printf, 3, 4)]] void add(int unimportance, const char *format,
                                         ...) {
    if (count == kMost)
      return;
    Piece &piece = pieces[count++];
    piece.unimportance = unimportance;
    va_list args;
    va_start(args, format);
    vsnprintf(piece.text, sizeof(piece.text), format, args);
    va_end(args);
  }

  /// \param columns  0: as many as it needs.
  void print(int columns) {
    // The last one stays free: a terminal may go to the next line behind it.
    for (int level = kMost; level > 0 && columns && length() >= columns;
         --level)
      count = int(std::remove_if(pieces, pieces + count,
                                 [&](const Piece &piece) {
                                   return piece.unimportance >= level;
                                 }) -
                  pieces);
    for (int i = 0; i < count; ++i)
      fputs(pieces[i].text, stdout);
    putchar('\n');
  }

private:
  static constexpr int kMost = 16;
  struct Piece {
    int unimportance;
    char text[64];
  };
  int length() const {
    size_t sum = 0;
    for (int i = 0; i < count; ++i)
      sum += strlen(pieces[i].text);
    return int(sum);
  }

  Piece pieces[kMost];
  int count = 0;
};
} // namespace

void Log::showProgress(int64_t stepsDone, int microBatches) {
  if (!hasBar || stepsDone == options.steps)
    return;
  shownAt = now();
  char numbers[128], bar[kLongestBar + 4] = "", left[64] = "the first step";
  if (stepsHere > 0)
    snprintf(
        left, sizeof(left), "%s left",
        duration(double(options.steps - stepsDone) * secondsPerStep).chars);
  int length = snprintf(
      numbers, sizeof(numbers), "%" PRId64 "/%" PRId64 "  %d%%  %s", stepsDone,
      options.steps, int(100 * stepsDone / options.steps), left);
  if (microBatches > 0)
    length += snprintf(numbers + length, sizeof(numbers) - size_t(length),
                       ", micro-batch %d/%d", microBatches + 1,
                       model.microBatchesPerRank);
  int room = (columnsOf(STDERR_FILENO) ? columnsOf(STDERR_FILENO) : 80) - 1;
  int width = std::min(room - length - int(strlen("[] ")), kLongestBar);
  int filled = int(stepsDone * width / options.steps);
  if (width >= kShortestBar)
    snprintf(bar, sizeof(bar), "[%.*s>%*s] ", filled, kBar, width - filled - 1,
             "");
  fprintf(stderr, "%s%.*s", bar, room, numbers);
  fflush(stderr);
}

void Log::microBatch(int64_t stepsDone, int done) {
  if (!hasBar || now() - shownAt < kSignsOfLife)
    return;
  clearProgress();
  showProgress(stepsDone, done);
}

/// Members of JSON for what a step shows besides its loss.
static void printJsonMeasures(JsonWriter &json, const Measures &measures) {
  for (const NamedNumber &number : measures.numbers())
    json.member(number.name, double(number.value), 9);
  if (measures.loads().size() == 0)
    return;
  json.key("loads").object();
  for (const Load &load : measures.loads())
    json.key(load.name).array().value(load.least, 6).value(load.most, 6).end();
  json.end().key("rows").object();
  for (const Load &load : measures.loads()) {
    json.key(load.name).array();
    for (int64_t i = 0; i < load.size; ++i)
      json.value(double(load.rows[i]), 9);
    json.end();
  }
  json.end();
}

/// What is not known is not a number, and null.
static void printJsonStep(const StepReport &report, const RepriseModel &model,
                          double secondsLeft) {
  JsonWriter json(stdout);
  json.object().member("step", report.step + 1);
  json.member("loss", double(report.loss), 9);
  json.member("grad_norm", double(report.gradNorm), 9);
  json.member("lr", double(report.learningRate), 9);
  json.member("ms", report.seconds * 1e3, 6);
  json.member("tokens_per_s", report.tokensPerSecond, 6);
  if (report.measures)
    printJsonMeasures(json, *report.measures);
  json.member("mfu", report.mfu, 6).member("hfu", report.hfu, 6);
  json.member("loss_z", report.lossZ, 6);
  json.member("grad_norm_z", report.gradNormZ, 6);
  json.member("skipped", report.skipped);
  json.member("high_water_bytes", report.highWaterBytes);
  json.member("planned_bytes", model.arenaBytes);
  json.member("seconds_left", secondsLeft, 6);
  if (const DeviceTimes &times = report.device; times.span > 0) {
    json.member("gpu_ms", times.span * 1e3, 6);
    json.member("gpu_interval_ms",
                times.interval > 0 ? times.interval * 1e3 : NAN, 6);
    json.member("host_us", times.host * 1e6, 6);
  }
  json.finish();
}

static void addMeasures(const Measures &measures, Pieces &line) {
  for (const NamedNumber &number : measures.numbers())
    line.add(2, "  %s %.5f", number.name, double(number.value));
  if (Load load = measures.extremes(); !std::isnan(load.most))
    line.add(3, "  loads %.2f to %.2f", load.least, load.most);
}

void Log::printStep(const StepReport &report) const {
  double milliseconds = report.seconds * 1e3;
  double left = double(options.steps - report.step - 1) * secondsPerStep;
  if (options.json) {
    printJsonStep(report, model, left);
    return;
  }
  int width = snprintf(nullptr, 0, "%" PRId64, options.steps);
  Pieces line;
  line.add(0, "step %*" PRId64 "/%" PRId64, width, report.step + 1,
           options.steps);
  line.add(0, "  loss %.5f", double(report.loss));
  if (!std::isnan(report.lossZ))
    line.add(4, " (%+.1fz)", report.lossZ);
  if (report.measures)
    addMeasures(*report.measures, line);
  line.add(1, "  norm %-8.4g", double(report.gradNorm));
  if (!std::isnan(report.gradNormZ))
    line.add(5, "(%+.1fz) ", report.gradNormZ);
  line.add(3, " lr %.3e", double(report.learningRate));
  line.add(2, "  %.1f ms", milliseconds);
  line.add(1, "  %.0f tokens/s", report.tokensPerSecond);
  if (!std::isnan(report.mfu))
    line.add(4, "  mfu %.1f%%", 100 * report.mfu);
  if (!std::isnan(report.mfu) && model.replayFlops > 0)
    line.add(6, " (hfu %.1f%%)", 100 * report.hfu);
  if (report.step + 1 < options.steps)
    line.add(5, "  %s left", duration(left).chars);
  if (report.skipped)
    line.add(0, "  update left out");
  line.print(lineColumns());
}

bool Log::step(const StepReport &report, Error &error) {
  int64_t number = report.step + 1;
  clearProgress();
  unshown.reset();
  trainedSeconds += report.seconds;
  secondsPerStep = (trainedSeconds + inferredSeconds) / double(++stepsHere);
  if (report.device.interval > 0) {
    gpuTimes.span += report.device.span;
    gpuTimes.interval += report.device.interval;
    gpuTimes.host += report.device.host;
    ++stepsTimed;
  }
  if (options.isShown(number, stepsHere))
    printStep(report);
  else
    unshown = report;
  if (!flush(error))
    return false;
  showProgress(number);
  return true;
}

void Log::interrupted(int64_t stepsDone) {
  clearProgress();
  if (unshown)
    printStep(*unshown);
  if (options.json)
    JsonWriter(stdout)
        .object()
        .member("event", "interrupted")
        .member("steps", stepsDone)
        .finish();
  else
    printf("interrupted: step %" PRId64 " of %" PRId64 " is finished\n",
           stepsDone, options.steps);
}

//===----------------------------------------------------------------------===//
// End
//===----------------------------------------------------------------------===//

/// The bytes of a category that have memory of the machine behind them; -1 if
/// the system does not say.
static int64_t residentBytes(const Arena &arena,
                             const RepriseCategory &category) {
  int64_t used = 0;
  for (const RepriseBuffer &place : category.places) {
    int64_t bytes = arena.residentBytes(place);
    used = bytes < 0 || used < 0 ? -1 : used + bytes;
  }
  return used;
}

static void printJsonMemory(const RepriseModel &model, const Arena &arena,
                            const DeviceMemory *gpu, int64_t copyBytes,
                            int64_t resident) {
  JsonWriter json(stdout);
  json.object().member("event", "memory").key("categories").object();
  for (int i = 0; i < model.numCategories; ++i) {
    const RepriseCategory &category = model.categories[i];
    json.key(category.name).object().member("planned_bytes", category.bytes);
    json.member("resident_bytes", residentBytes(arena, category)).end();
  }
  json.end().member("copy_bytes", copyBytes).member("process_bytes", resident);
  if (gpu) {
    json.key("gpu").object().member("plan_bytes", gpu->plan);
    json.member("allocated_bytes", gpu->allocated);
    json.member("context_bytes", gpu->context);
    json.member("kernel_bytes", gpu->kernels);
    json.member("library_bytes", gpu->library);
    json.member("other_bytes", gpu->other);
    if (countRanks(model) > 1)
      json.member("network_bytes", gpu->network);
  }
  json.finish();
}

/// \param sums  of the times of so many steps.
static void printDeviceMemory(const RepriseModel &model,
                              const DeviceMemory &gpu, const DeviceTimes &sums,
                              int64_t steps) {
  const struct {
    const char *name;
    int64_t bytes;
    bool isThere = true;
  } lines[] = {{"allocated for the plan", gpu.allocated},
               {"context and others' use", gpu.context},
               {"NCCL", gpu.network, countRanks(model) > 1},
               {"kernels", gpu.kernels},
               {"cuBLASLt", gpu.library},
               {"graphs, and what was loaded late", gpu.other}};
  for (auto [name, bytes, isThere] : lines)
    if (isThere)
      printf("  %-41s %18s\n", name, grouped(bytes).chars);
  if (const auto count = double(steps); steps > 0)
    printf("  a step takes the GPU %.3f ms, gaps between launches included, "
           "begins %.3f ms after the one before, and takes the host %.0f us "
           "to begin\n",
           sums.span * 1e3 / count, sums.interval * 1e3 / count,
           sums.host * 1e6 / count);
}

void Log::memory(const Arena &arena, const DeviceMemory *gpu,
                 int64_t copyBytes) const {
  const int64_t resident = peakResidentBytes();
  if (options.json)
    return printJsonMemory(model, arena, gpu, copyBytes, resident);
  int64_t inUse = 0;
  printf("%-24s %18s %18s\n", "memory", "planned bytes", "in use");
  for (int i = 0; i < model.numCategories; ++i) {
    const RepriseCategory &category = model.categories[i];
    const int64_t used = residentBytes(arena, category);
    inUse += std::max<int64_t>(used, 0);
    printf("  %-22s %18s", category.name, grouped(category.bytes).chars);
    printf(" %18s\n", grouped(used).chars);
  }
  if (gpu) {
    printDeviceMemory(model, *gpu, gpuTimes, stepsTimed);
    printf("  %-22s %18s %18s  (of the host)\n", "whole program", "",
           grouped(resident).chars);
    return;
  }
  printf("  %-22s %18s", "the plan", grouped(model.arenaBytes).chars);
  printf(" %18s\n", grouped(inUse).chars);
  if (copyBytes > 0)
    printf("  %-41s %18s\n", "copy for saving", grouped(copyBytes).chars);
  int64_t rest = std::max<int64_t>(resident - inUse - copyBytes, 0);
  printf("  %-41s %18s\n", "code, threads, tables, pages of files",
         grouped(rest).chars);
  printf("  %-41s %18s\n", "whole program", grouped(resident).chars);
}

namespace {
/// Bytes that the last line of a run names.
struct DoneBytes {
  int64_t highWater, planned, written; ///< -1: not counted.
};
} // namespace

/// In one line, or where that is wider than the terminal, in two.
static void printDone(int64_t steps, double seconds, double gigaflops,
                      const DoneBytes &bytes) {
  char time[96], memory[192];
  int length =
      snprintf(time, sizeof(time), "done: %" PRId64 " step%s in %.1f s", steps,
               steps == 1 ? "" : "s", seconds);
  if (steps > 0)
    length += snprintf(time + length, sizeof(time) - size_t(length),
                       ", %.1f GFLOP/s", gigaflops);
  bool isCounted = bytes.written >= 0;
  length += snprintf(
      memory, sizeof(memory), "memory high-water %s bytes of %s planned%s%s%s",
      grouped(bytes.highWater).chars, grouped(bytes.planned).chars,
      isCounted ? ", " : "", isCounted ? grouped(bytes.written).chars : "",
      isCounted ? " written" : "");
  int columns = lineColumns();
  bool fits = !columns || length + int(strlen("; ")) < columns;
  printf("%s%s%s\n", time, fits ? "; " : "\n", memory);
}

bool Log::end(int64_t stepsDone, int64_t highWaterBytes, int64_t writtenBytes,
              Error &error) {
  double seconds = trainedSeconds + inferredSeconds;
  if (options.json) {
    JsonWriter json(stdout);
    json.object().member("event", "end").member("steps", stepsDone);
    json.member("seconds", seconds, 6);
    json.member("planned_bytes", model.arenaBytes);
    json.member("high_water_bytes", highWaterBytes);
    if (writtenBytes >= 0)
      json.member("written_bytes", writtenBytes);
    json.finish();
  } else {
    double flops = (model.modelFlops + model.replayFlops) * double(stepsDone);
    printDone(stepsDone, seconds, flops * 1e-9 / std::max(trainedSeconds, 1e-9),
              {highWaterBytes, model.arenaBytes, writtenBytes});
  }
  return flush(error);
}
