//===- LogCheckpoints.cpp - What a run shows of weights and checkpoints ---===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Json.h"
#include "Log.h"
#include "Text.h"

#include <cinttypes>

using namespace reprise::runtime;

void Log::weights(const WeightsReport &report) {
  if (options.json) {
    printf("{\"event\":\"weights\",\"path\":");
    writeJsonString(stdout, options.initFrom);
    printf(",\"tensors\":%d,\"files\":%d,\"bytes\":%" PRId64 "}\n",
           report.tensors, report.files, report.bytes);
    return;
  }
  printf("weights  %s, %s tensors in %d file%s, %s\n", options.initFrom,
         grouped(report.tensors).chars, report.files,
         report.files == 1 ? "" : "s", human(report.bytes).chars);
}

void Log::resumed(const Resumed &resumed, int64_t dataTokens) {
  bool sameData = resumed.dataTokens == dataTokens;
  if (options.json) {
    printf("{\"event\":\"resumed\",\"path\":");
    writeJsonString(stdout, resumed.folder.chars);
    printf(",\"step\":%" PRId64 ",\"data_tokens\":%" PRId64 "}\n",
           resumed.state.step, resumed.dataTokens);
    return;
  }
  printf("resumed  %s, step %" PRId64 " of %" PRId64 " is finished\n",
         resumed.folder.chars, resumed.state.step, options.steps);
  if (!sameData)
    printf("note     the data had %s tokens then, so other samples follow\n",
           grouped(resumed.dataTokens).chars);
}

void Log::saving(int64_t copyBytes) {
  if (options.json) {
    printf("{\"event\":\"saving\",\"path\":");
    writeJsonString(stdout, options.save);
    printf(",\"interval\":%" PRId64 ",\"keep_last\":%" PRId64
           ",\"copy_bytes\":%" PRId64 "}\n",
           options.saveInterval, options.keepLast, copyBytes);
    return;
  }
  printf("save     %s, ", options.save);
  if (options.saveInterval)
    printf("every %s steps and ", grouped(options.saveInterval).chars);
  printf("at the end, from a copy of %s besides the plan\n",
         human(copyBytes).chars);
}

void Log::saved(const SaveReport &report) {
  clearProgress();
  Path path = checkpointPath(options.save, report.step);
  if (options.json) {
    printf("{\"event\":\"saved\",\"path\":");
    writeJsonString(stdout, path.chars);
    printf(",\"step\":%" PRId64 ",\"bytes\":%" PRId64 ",\"seconds\":%.6g}\n",
           report.step, report.bytes, report.seconds);
    return;
  }
  printf("saved    %s, %s in %.1f s\n", path.chars, human(report.bytes).chars,
         report.seconds);
}
