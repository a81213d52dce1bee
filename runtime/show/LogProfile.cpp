//===- LogProfile.cpp - What launches took --------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Log.h"

#include "Timeline.h"
#include "runtime/base/Program.h"
#include "runtime/text/JsonWriter.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>

using namespace reprise::runtime;

static constexpr int64_t kProfileLines = 20;

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

/// The line of this name, a new one if there is none yet; null without memory.
static ProfileLine *findLine(List<ProfileLine> &lines, const char *name) {
  ProfileLine line = {};
  foldName(name, line.name, sizeof(line.name));
  ProfileLine *found =
      std::find_if(lines.begin(), lines.end(), [&](const ProfileLine &other) {
        return !strcmp(other.name, line.name);
      });
  if (found != lines.end())
    return found;
  return lines.push(line) ? &lines.back() : nullptr;
}

/// Sorts launches of a step into lines, those that take longest first; false
/// without memory.
static bool findLines(const RepriseModel &model, const double *seconds,
                      int64_t steps, List<ProfileLine> &lines) {
  bool good = true;
  forEachLaunch(model, [&](const RepriseLaunch &launch, int64_t number,
                           int64_t runs, bool isMicro) {
    ProfileLine *line =
        findLine(lines, waitsForStage(model, launch) ? "waiting for stages"
                                                     : launch.name);
    good = good && line;
    if (!good)
      return;
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
  });
  std::sort(lines.begin(), lines.end(),
            [](const ProfileLine &a, const ProfileLine &b) {
              return a.seconds > b.seconds;
            });
  return good;
}

void Log::profile(const double *seconds, int64_t steps) {
  List<ProfileLine> lines;
  if (!findLines(model, seconds, steps, lines))
    return;
  double total = 0;
  for (const ProfileLine &line : lines)
    total += line.seconds;
  auto count = int64_t(lines.size());
  if (!options.json) {
    printf("\n%-44s %10s %10s %7s %9s %9s\n", "launch", "calls", "ms/step",
           "share", "GFLOP/s", "GB/s");
    count = std::min(count, kProfileLines);
  }
  for (int64_t i = 0; i < count; ++i) {
    const ProfileLine &line = lines[size_t(i)];
    double perStep = line.seconds * 1e3 / double(steps);
    double perSecond = line.seconds > 0 ? 1e-9 / line.seconds : 0;
    double rate = line.flops * perSecond, moved = line.bytes * perSecond;
    if (options.json) {
      JsonWriter json(stdout);
      json.object().member("event", "profile").member("launch", +line.name);
      json.member("calls", line.calls).member("ms_per_step", perStep, 6);
      json.member("gflop_per_s", rate, 6).member("gbyte_per_s", moved, 6);
      json.member("gathers", line.gathers).finish();
    } else {
      printf("%-44s %10" PRId64 " %10.3f %6.1f%% %9.1f %9.1f\n", line.name,
             line.calls, perStep, 100 * line.seconds / total, rate, moved);
    }
  }
}
