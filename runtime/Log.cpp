//===- Log.cpp - What a training run shows --------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Log.h"

#include "Init.h"

#include <algorithm>
#include <cinttypes>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

using namespace reprise::runtime;

static constexpr int kBarWidth = 40;
static constexpr int kProfileLines = 20;

//===----------------------------------------------------------------------===//
// Numbers and strings
//===----------------------------------------------------------------------===//

namespace {
/// A short text that a function can return.
struct Text {
  char chars[48];
};
} // namespace

/// 1234567 as "1,234,567".
static Text grouped(int64_t number) {
  char digits[24];
  int count = snprintf(digits, sizeof(digits), "%" PRId64, number);
  Text text;
  int length = 0;
  for (int i = 0; i < count; ++i) {
    if (i > 0 && (count - i) % 3 == 0 && digits[i - 1] != '-')
      text.chars[length++] = ',';
    text.chars[length++] = digits[i];
  }
  text.chars[length] = '\0';
  return text;
}

/// Bytes in the largest binary unit that leaves at least 1.
static Text human(int64_t bytes) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = double(bytes);
  int unit = 0;
  for (; value >= 1024 && unit < 4; ++unit)
    value /= 1024;
  Text text;
  snprintf(text.chars, sizeof(text.chars), unit ? "%.2f %s" : "%.0f %s", value,
           units[unit]);
  return text;
}

static Text duration(double seconds) {
  int64_t whole = int64_t(seconds + 0.5);
  Text text;
  if (whole >= 3600)
    snprintf(text.chars, sizeof(text.chars), "%" PRId64 ":%02d:%02d",
             whole / 3600, int(whole / 60 % 60), int(whole % 60));
  else
    snprintf(text.chars, sizeof(text.chars), "%d:%02d", int(whole / 60),
             int(whole % 60));
  return text;
}

static void printJsonString(const char *text) {
  putchar('"');
  for (; *text; ++text) {
    unsigned char c = static_cast<unsigned char>(*text);
    if (c == '"' || c == '\\')
      printf("\\%c", c);
    else if (c < 0x20)
      printf("\\u%04x", c);
    else
      putchar(c);
  }
  putchar('"');
}

//===----------------------------------------------------------------------===//
// Start
//===----------------------------------------------------------------------===//

Log::Log(const RepriseModel &model, const Options &options)
    : model(model), options(options),
      tokensPerStep(model.numMicroBatches * model.microBatchSize *
                    model.seqLength),
      hasBar(isatty(STDERR_FILENO)) {}

static int64_t countParameters(const RepriseModel &model) {
  int64_t count = 0;
  for (int i = 0; i < model.numStates; ++i)
    if (model.states[i].kind == REPRISE_STATE_PARAMETER)
      count += elementCount(model.states[i]);
  return count;
}

static const char *isaName(const RepriseMicroKernel *kernel) {
  return kernel && kernel->isa == 1 ? "x86-64-v4" : "x86-64-v3";
}

static void printJsonPlan(const RepriseModel &model, const Options &options,
                          const TrainingData &data,
                          const RepriseMicroKernel *kernel) {
  printf("{\"event\":\"plan\",\"model\":");
  printJsonString(model.name);
  printf(",\"plan\":");
  printJsonString(model.plan);
  printf(",\"parameters\":%" PRId64 ",\"data\":[", countParameters(model));
  for (int i = 0; i < options.numData; ++i) {
    if (i)
      putchar(',');
    printJsonString(options.data[i]);
  }
  printf("],\"files\":%" PRId64 ",\"tokens\":%" PRId64 ",\"samples\":%" PRId64
         ",\"steps\":%" PRId64 ",\"threads\":%" PRId64 ",\"seed\":%" PRIu64
         ",\"isa\":\"%s\""
         ",\"planned_bytes\":%" PRId64 ",\"categories\":{",
         data.stream().numFiles(), data.stream().size(), data.numSamples(),
         options.steps, options.threads, options.seed, isaName(kernel),
         model.arenaBytes);
  for (int i = 0; i < model.numCategories; ++i) {
    if (i)
      putchar(',');
    printJsonString(model.categories[i].name);
    printf(":%" PRId64, model.categories[i].bytes);
  }
  printf("},\"model_flops\":%.17g,\"replay_flops\":%.17g}\n", model.modelFlops,
         model.replayFlops);
}

void Log::plan(const TrainingData &data, const RepriseMicroKernel *kernel) {
  if (options.json) {
    printJsonPlan(model, options, data, kernel);
    fflush(stdout);
    return;
  }
  printf("model    %s, %s parameters, recompute: %s\n", model.name,
         grouped(countParameters(model)).chars, model.plan);
  printf("data     ");
  for (int i = 0; i < options.numData; ++i)
    printf("%s, ", options.data[i]);
  if (data.stream().numFiles() > 1)
    printf("%s files, ", grouped(data.stream().numFiles()).chars);
  printf("%s tokens, ", grouped(data.stream().size()).chars);
  printf("%s samples of %" PRId64 ", %s\n", grouped(data.numSamples()).chars,
         model.seqLength, options.shuffled ? "shuffled" : "sequential");
  printf("step     %d x %" PRId64 " x %" PRId64 " = %s tokens, %.4g GFLOP",
         model.numMicroBatches, model.microBatchSize, model.seqLength,
         grouped(tokensPerStep).chars, model.modelFlops * 1e-9);
  if (model.replayFlops > 0)
    printf(" + %.4g replayed", model.replayFlops * 1e-9);
  printf("\nmachine  %" PRId64 " thread%s, %s", options.threads,
         options.threads == 1 ? "" : "s", isaName(kernel));
  if (kernel)
    printf(", product tiles %d x %d", kernel->rows, kernel->cols);
  printf("\nmemory   %s = %s bytes, allocated now and never again\n",
         human(model.arenaBytes).chars, grouped(model.arenaBytes).chars);
  for (int i = 0; i < model.numCategories; ++i) {
    const RepriseCategory &category = model.categories[i];
    printf("  %-22s %12s %18s  %5.1f%%\n", category.name,
           human(category.bytes).chars, grouped(category.bytes).chars,
           100.0 * double(category.bytes) /
               double(std::max<int64_t>(model.arenaBytes, 1)));
  }
  fflush(stdout);
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

void Log::clearProgress() {
  if (hasBar)
    fputs("\r\033[K", stderr);
}

void Log::showProgress(int64_t stepsDone, double secondsPerStep) {
  if (!hasBar || stepsDone == options.steps)
    return;
  char bar[kBarWidth + 1];
  int filled = int(stepsDone * kBarWidth / options.steps);
  for (int i = 0; i < kBarWidth; ++i)
    bar[i] = i < filled ? '=' : i == filled ? '>' : ' ';
  bar[kBarWidth] = '\0';
  fprintf(stderr, "[%s] %" PRId64 "/%" PRId64 "  %d%%  %s left", bar, stepsDone,
          options.steps, int(100 * stepsDone / options.steps),
          duration(double(options.steps - stepsDone) * secondsPerStep).chars);
  fflush(stderr);
}

void Log::step(const StepReport &report) {
  double tokensPerSecond = double(tokensPerStep) / report.seconds;
  double milliseconds = report.seconds * 1e3;
  clearProgress();
  if (options.json) {
    printf("{\"step\":%" PRId64 ",\"loss\":%.9g,\"grad_norm\":%.9g,"
           "\"lr\":%.9g,\"ms\":%.6g,\"tokens_per_s\":%.6g,"
           "\"high_water_bytes\":%" PRId64 ",\"planned_bytes\":%" PRId64 "}\n",
           report.step + 1, double(report.loss), double(report.gradNorm),
           double(report.learningRate), milliseconds, tokensPerSecond,
           report.highWaterBytes, model.arenaBytes);
  } else {
    int width = snprintf(nullptr, 0, "%" PRId64, options.steps);
    printf("step %*" PRId64 "/%" PRId64 "  loss %.5f  norm %-8.4g lr %.3e  "
           "%.1f ms  %.0f tokens/s  memory %s of ",
           width, report.step + 1, options.steps, double(report.loss),
           double(report.gradNorm), double(report.learningRate), milliseconds,
           tokensPerSecond, human(report.highWaterBytes).chars);
    printf("%s\n", human(model.arenaBytes).chars);
  }
  fflush(stdout);
  shownSeconds += report.seconds;
  showProgress(report.step + 1, shownSeconds / double(report.step + 1));
}

void Log::interrupted(int64_t stepsDone) {
  clearProgress();
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
  double seconds, flops;
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

void Log::profile(const double *seconds, int64_t stepsDone) {
  int64_t launches = int64_t(model.numMicro) + model.numUpdate;
  auto *lines = static_cast<ProfileLine *>(
      calloc(size_t(launches) + 1, sizeof(ProfileLine)));
  if (!lines)
    return;
  int64_t count = 0;
  double total = 0;
  for (int64_t i = 0; i < launches; ++i) {
    bool micro = i < model.numMicro;
    const RepriseLaunch &launch =
        micro ? model.micro[i] : model.update[i - model.numMicro];
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
    int64_t calls = stepsDone * (micro ? model.numMicroBatches : 1);
    line->calls += calls;
    line->seconds += seconds[i];
    line->flops += double(calls) * double(launch.flops);
    total += seconds[i];
  }
  std::sort(lines, lines + count,
            [](const ProfileLine &a, const ProfileLine &b) {
              return a.seconds > b.seconds;
            });
  if (!options.json)
    printf("\n%-44s %10s %10s %7s %9s\n", "launch", "calls", "ms/step", "share",
           "GFLOP/s");
  for (int64_t i = 0; i < std::min<int64_t>(count, kProfileLines); ++i) {
    const ProfileLine &line = lines[i];
    double perStep = line.seconds * 1e3 / double(stepsDone);
    double rate = line.seconds > 0 ? line.flops * 1e-9 / line.seconds : 0;
    if (options.json) {
      printf("{\"event\":\"profile\",\"launch\":");
      printJsonString(line.name);
      printf(",\"calls\":%" PRId64 ",\"ms_per_step\":%.6g,"
             "\"gflop_per_s\":%.6g}\n",
             line.calls, perStep, rate);
    } else {
      printf("%-44s %10" PRId64 " %10.3f %6.1f%% %9.1f\n", line.name,
             line.calls, perStep, 100 * line.seconds / total, rate);
    }
  }
  free(lines);
}

void Log::end(int64_t stepsDone, double seconds, int64_t highWaterBytes,
              int64_t writtenBytes) {
  if (options.json) {
    printf("{\"event\":\"end\",\"steps\":%" PRId64 ",\"seconds\":%.6g,"
           "\"planned_bytes\":%" PRId64 ",\"high_water_bytes\":%" PRId64,
           stepsDone, seconds, model.arenaBytes, highWaterBytes);
    if (writtenBytes >= 0)
      printf(",\"written_bytes\":%" PRId64, writtenBytes);
    printf("}\n");
  } else {
    double flops = (model.modelFlops + model.replayFlops) * double(stepsDone);
    printf("done: %" PRId64 " step%s in %.1f s, %.1f GFLOP/s; memory "
           "high-water %s bytes of ",
           stepsDone, stepsDone == 1 ? "" : "s", seconds,
           flops * 1e-9 / std::max(seconds, 1e-9),
           grouped(highWaterBytes).chars);
    printf("%s planned", grouped(model.arenaBytes).chars);
    if (writtenBytes >= 0)
      printf(", %s written", grouped(writtenBytes).chars);
    printf("\n");
  }
  fflush(stdout);
}
