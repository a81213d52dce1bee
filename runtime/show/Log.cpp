//===- Log.cpp - What a training run shows --------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Log.h"

#include "Measures.h"
#include "runtime/base/Clock.h"
#include "runtime/base/Program.h"
#include "runtime/base/Text.h"
#include "runtime/device/Init.h"
#include "runtime/text/Json.h"
#include "runtime/trainer/DataNotes.h"
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
static constexpr int kProfileLines = 20;
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

Log::Log(const RepriseModel &model, const Options &options, const char *engine)
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
static Note scheduleNote(const RepriseModel &model, const Options &options) {
  Note note = {};
  if (options.steps > model.trainIters &&
      model.lrDecayStyle != REPRISE_LR_CONSTANT)
    snprintf(note.chars, sizeof(note.chars),
             "--steps %" PRId64 " is more than train_iters, %" PRId64
             ": from step %" PRId64 " on the learning rate stays min_lr, %g",
             options.steps, model.trainIters, model.trainIters + 1,
             model.minLearningRate);
  return note;
}

static void printJsonPlan(const RepriseModel &model, const Options &options,
                          const TrainingData &data,
                          const RepriseMicroKernel *kernel, double peakFlops,
                          const char *gpu, const char *engine) {
  printf("{\"event\":\"plan\",\"model\":");
  writeJsonString(stdout, model.name);
  printf(",\"plan\":");
  writeJsonString(stdout, model.plan);
  printf(",\"parameters\":%" PRId64 ",\"data\":[", countParameters(model));
  for (int i = 0; i < options.data.size(); ++i) {
    if (i)
      putchar(',');
    writeJsonString(stdout, options.data[i]);
  }
  printf("],\"files\":%" PRId64 ",\"tokens\":%" PRId64 ",\"samples\":%" PRId64
         ",\"steps\":%" PRId64 ",\"threads\":%" PRId64 ",\"seed\":%" PRIu64
         ",\"isa\":\"%s\""
         ",\"planned_bytes\":%" PRId64 ",\"categories\":{",
         data.stream().numFiles(), data.stream().size(), data.numSamples(),
         options.steps, options.threads, options.seed, Log::isaName(kernel),
         model.arenaBytes);
  for (int i = 0; i < model.numCategories; ++i) {
    if (i)
      putchar(',');
    writeJsonString(stdout, model.categories[i].name);
    printf(":%" PRId64, model.categories[i].bytes);
  }
  printf("},\"model_flops\":%.17g,\"replay_flops\":%.17g,"
         "\"peak_flops\":%.6g",
         model.modelFlops, model.replayFlops, peakFlops);
  if (model.numAxes > 0) {
    char mesh[128];
    describeMesh(model, mesh, sizeof(mesh));
    printf(",\"ranks\":%" PRId64 ",\"mesh\":\"%s\",\"engine\":\"%s\"",
           countRanks(model), mesh, engine);
  }
  if (gpu[0]) {
    printf(",\"device\":");
    writeJsonString(stdout, gpu);
  }
  if (options.tokenizer) {
    printf(",\"tokenizer\":");
    writeJsonString(stdout, options.tokenizer);
    printf(",\"text_bytes\":%" PRId64 ",\"text_tokens\":%" PRId64,
           data.stream().textBytes(), data.stream().textTokens());
  }
  if (Note note = scheduleNote(model, options); note.chars[0]) {
    printf(",\"note\":");
    writeJsonString(stdout, note.chars);
  }
  printf("}\n");
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

bool Log::plan(const TrainingData &data, const RepriseMicroKernel *kernel,
               double peakFlops, const char *gpu, Error &error) {
  if (options.json) {
    printJsonPlan(model, options, data, kernel, peakFlops, gpu, engine);
    noteData(data.stream(), options, model.vocabSize, *this);
    return flush(error);
  }
  printf("model    %s, %s parameters, recompute: %s\n", model.name,
         grouped(countParameters(model)).chars, model.plan);
  if (model.numAxes > 0) {
    char mesh[128];
    describeMesh(model, mesh, sizeof(mesh));
    printf("ranks    %" PRId64 " (%s), %s\n", countRanks(model), mesh, engine);
  }
  if (options.data.size() > 0)
    printData(data);
  noteData(data.stream(), options, model.vocabSize, *this);
  if (options.tokenizer)
    printf("text     %s, %s bytes, %.3g for a token\n", options.tokenizer,
           grouped(data.stream().textBytes()).chars,
           double(data.stream().textBytes()) /
               double(std::max<int64_t>(data.stream().textTokens(), 1)));
  printf("step     %d x %" PRId64 " x %" PRId64 " = %s tokens, %.4g GFLOP",
         model.numMicroBatches, model.microBatchSize, model.seqLength,
         grouped(tokensPerStep).chars, model.modelFlops * 1e-9);
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
           model.numAxes > 0 ? " in each rank" : "", isaName(kernel));
  if (kernel)
    printf(", product tiles %d x %d, %.4g GFLOP/s at most", kernel->rows,
           kernel->cols, peakFlops * 1e-9);
  printf("\nmemory   %s = %s bytes%s, allocated now and never again\n",
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

/// A member of JSON whose value is a number, or null if it is not known.
static void printJsonNumber(const char *key, double number) {
  if (std::isnan(number))
    printf(",\"%s\":null", key);
  else
    printf(",\"%s\":%.6g", key, number);
}

/// Members of JSON for what a step shows besides its loss.
static void printJsonMeasures(const Measures &measures) {
  for (const NamedNumber &number : measures.numbers())
    printf(",\"%s\":%.9g", number.name, double(number.value));
  const char *separator = ",\"loads\":{";
  for (const Load &load : measures.loads()) {
    printf("%s\"%s\":[%.6g,%.6g]", separator, load.name, load.least, load.most);
    separator = ",";
  }
  if (measures.loads().size() > 0)
    printf("}");
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
    printf("{\"step\":%" PRId64 ",\"loss\":%.9g,\"grad_norm\":%.9g,"
           "\"lr\":%.9g,\"ms\":%.6g,\"tokens_per_s\":%.6g",
           report.step + 1, double(report.loss), double(report.gradNorm),
           double(report.learningRate), milliseconds, report.tokensPerSecond);
    if (report.measures)
      printJsonMeasures(*report.measures);
    printJsonNumber("mfu", report.mfu);
    printJsonNumber("hfu", report.hfu);
    printJsonNumber("loss_z", report.lossZ);
    printJsonNumber("grad_norm_z", report.gradNormZ);
    printf(",\"skipped\":%s,\"high_water_bytes\":%" PRId64
           ",\"planned_bytes\":%" PRId64 ",\"seconds_left\":%.6g",
           report.skipped ? "true" : "false", report.highWaterBytes,
           model.arenaBytes, left);
    if (const DeviceTimes &gpu = report.gpu; gpu.span > 0) {
      printJsonNumber("gpu_ms", gpu.span * 1e3);
      printJsonNumber("gpu_interval_ms",
                      gpu.interval > 0 ? gpu.interval * 1e3 : NAN);
      printJsonNumber("host_us", gpu.host * 1e6);
    }
    printf("}\n");
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
  if (report.gpu.interval > 0) {
    gpuTimes.span += report.gpu.span;
    gpuTimes.interval += report.gpu.interval;
    gpuTimes.host += report.gpu.host;
    ++stepsTimed;
  }
  if (stepsHere == 1 || number == options.steps ||
      number % options.logInterval == 0)
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
    printf("{\"event\":\"interrupted\",\"steps\":%" PRId64 "}\n", stepsDone);
  else
    printf("interrupted: step %" PRId64 " of %" PRId64 " is finished\n",
           stepsDone, options.steps);
}

//===----------------------------------------------------------------------===//
// End
//===----------------------------------------------------------------------===//

namespace {
/// Launches whose names differ only in numbers.
struct ProfileLine {
  char name[96];
  int64_t calls;
  double seconds, flops, bytes;
  bool gathers; ///< Reads tokens, and so perhaps only some rows of a table.
};
} // namespace

/// Copies `name` with each run of digits that follows "layer" as a star.
static void foldName(const char *name, char *folded, size_t size) {
  size_t length = 0;
  const char *start = name;
  while (*name && length + 1 < size) {
    bool afterLayer = name - start >= 5 && !strncmp(name - 5, "layer", 5);
    if (afterLayer && *name >= '0' && *name <= '9') {
      folded[length++] = '*';
      while (*name >= '0' && *name <= '9')
        ++name;
      continue;
    }
    folded[length++] = *name++;
  }
  folded[length] = '\0';
}

void Log::profile(const double *seconds, int64_t steps) {
  int64_t launches = firstLaunch(model, model.numSchedules);
  auto *lines = static_cast<ProfileLine *>(
      calloc(size_t(launches) + 1, sizeof(ProfileLine)));
  if (!lines)
    return;
  int64_t count = 0;
  double total = 0;
  forEachLaunch(model, [&](const RepriseLaunch &launch, int64_t number,
                           int64_t runs, bool isMicro) {
    char name[sizeof(lines->name)];
    foldName(launch.name, name, sizeof(name));
    ProfileLine *line =
        std::find_if(lines, lines + count, [&](const ProfileLine &other) {
          return !strcmp(other.name, name);
        });
    if (line == lines + count) {
      memcpy(line->name, name, sizeof(name));
      ++count;
    }
    int64_t calls = steps * runs;
    int hasWorkspace = launch.kind != REPRISE_LAUNCH_KERNEL;
    for (int j = 0; j < launch.numBuffers - hasWorkspace; ++j) {
      const RepriseBuffer &buffer = model.buffers[launch.firstBuffer + j];
      line->bytes += double(calls) * double(buffer.bytes);
      line->gathers |= isMicro && buffer.bytes == model.tokens.bytes &&
                       buffer.offset == model.tokens.offset;
    }
    line->calls += calls;
    line->seconds += seconds[number];
    line->flops += double(calls) * double(launch.flops);
    total += seconds[number];
  });
  std::sort(lines, lines + count,
            [](const ProfileLine &a, const ProfileLine &b) {
              return a.seconds > b.seconds;
            });
  if (!options.json)
    printf("\n%-44s %10s %10s %7s %9s %9s\n", "launch", "calls", "ms/step",
           "share", "GFLOP/s", "GB/s");
  if (!options.json)
    count = std::min<int64_t>(count, kProfileLines);
  for (int64_t i = 0; i < count; ++i) {
    const ProfileLine &line = lines[i];
    double perStep = line.seconds * 1e3 / double(steps);
    double perSecond = line.seconds > 0 ? 1e-9 / line.seconds : 0;
    double rate = line.flops * perSecond, moved = line.bytes * perSecond;
    if (options.json) {
      printf("{\"event\":\"profile\",\"launch\":");
      writeJsonString(stdout, line.name);
      printf(",\"calls\":%" PRId64 ",\"ms_per_step\":%.6g,"
             "\"gflop_per_s\":%.6g,\"gbyte_per_s\":%.6g,\"gathers\":%s}\n",
             line.calls, perStep, rate, moved, line.gathers ? "true" : "false");
    } else {
      printf("%-44s %10" PRId64 " %10.3f %6.1f%% %9.1f %9.1f\n", line.name,
             line.calls, perStep, 100 * line.seconds / total, rate, moved);
    }
  }
  free(lines);
}

void Log::memory(const Arena &arena, const DeviceMemory *gpu,
                 int64_t copyBytes) const {
  int64_t resident = peakResidentBytes(), inUse = 0;
  if (options.json)
    printf("{\"event\":\"memory\",\"categories\":{");
  else
    printf("%-24s %18s %18s\n", "memory", "planned bytes", "in use");
  for (int i = 0; i < model.numCategories; ++i) {
    const RepriseCategory &category = model.categories[i];
    int64_t used = 0;
    for (const RepriseBuffer &place : category.places) {
      int64_t bytes = arena.residentBytes(place);
      used = bytes < 0 || used < 0 ? -1 : used + bytes;
    }
    inUse += std::max<int64_t>(used, 0);
    if (options.json) {
      if (i)
        putchar(',');
      writeJsonString(stdout, category.name);
      printf(":{\"planned_bytes\":%" PRId64 ",\"resident_bytes\":%" PRId64 "}",
             category.bytes, used);
    } else {
      printf("  %-22s %18s", category.name, grouped(category.bytes).chars);
      printf(" %18s\n", grouped(used).chars);
    }
  }
  if (options.json) {
    printf("},\"copy_bytes\":%" PRId64 ",\"process_bytes\":%" PRId64, copyBytes,
           resident);
    if (gpu)
      printf(",\"gpu\":{\"plan_bytes\":%" PRId64 ",\"allocated_bytes\":%" PRId64
             ",\"context_bytes\":%" PRId64 ",\"kernel_bytes\":%" PRId64
             ",\"library_bytes\":%" PRId64 ",\"other_bytes\":%" PRId64,
             gpu->plan, gpu->allocated, gpu->context, gpu->kernels,
             gpu->library, gpu->other);
    if (gpu && countRanks(model) > 1)
      printf(",\"network_bytes\":%" PRId64, gpu->network);
    printf("%s}\n", gpu ? "}" : "");
    return;
  }
  if (gpu) {
    const struct {
      const char *name;
      int64_t bytes;
      bool isThere = true;
    } lines[] = {{"allocated for the plan", gpu->allocated},
                 {"context and others' use", gpu->context},
                 {"NCCL", gpu->network, countRanks(model) > 1},
                 {"kernels", gpu->kernels},
                 {"cuBLASLt", gpu->library},
                 {"graphs, and what was loaded late", gpu->other}};
    for (auto [name, bytes, isThere] : lines)
      if (isThere)
        printf("  %-41s %18s\n", name, grouped(bytes).chars);
    if (auto steps = double(stepsTimed); steps > 0)
      printf("  a step takes the GPU %.3f ms, gaps between launches included, "
             "begins %.3f ms after the one before, and takes the host %.0f us "
             "to begin\n",
             gpuTimes.span * 1e3 / steps, gpuTimes.interval * 1e3 / steps,
             gpuTimes.host * 1e6 / steps);
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

bool Log::end(int64_t stepsDone, int64_t highWaterBytes, int64_t writtenBytes,
              Error &error) {
  double seconds = trainedSeconds + inferredSeconds;
  if (options.json) {
    printf("{\"event\":\"end\",\"steps\":%" PRId64 ",\"seconds\":%.6g,"
           "\"planned_bytes\":%" PRId64 ",\"high_water_bytes\":%" PRId64,
           stepsDone, seconds, model.arenaBytes, highWaterBytes);
    if (writtenBytes >= 0)
      printf(",\"written_bytes\":%" PRId64, writtenBytes);
    printf("}\n");
  } else {
    double flops = (model.modelFlops + model.replayFlops) * double(stepsDone);
    printf("done: %" PRId64 " step%s in %.1f s", stepsDone,
           stepsDone == 1 ? "" : "s", seconds);
    if (stepsDone > 0)
      printf(", %.1f GFLOP/s", flops * 1e-9 / std::max(trainedSeconds, 1e-9));
    printf("; memory high-water %s bytes of ", grouped(highWaterBytes).chars);
    printf("%s planned", grouped(model.arenaBytes).chars);
    if (writtenBytes >= 0)
      printf(", %s written", grouped(writtenBytes).chars);
    printf("\n");
  }
  return flush(error);
}
