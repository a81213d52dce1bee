//===- LogCheckpoints.cpp - What a run shows of weights and checkpoints ---===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Log.h"
#include "runtime/base/Text.h"
#include "runtime/checkpoint/HubConfig.h"
#include "runtime/text/JsonWriter.h"

#include <cinttypes>
#include <cstring>

using namespace reprise::runtime;

void Log::weights(const WeightsReport &report, const DataMark &data,
                  bool isText) {
  if (options.json) {
    JsonWriter json(stdout);
    json.object().member("event", "weights").member("path", options.initFrom);
    json.member("tensors", report.tensors).member("files", report.files);
    json.member("bytes", report.bytes);
    if (report.prefix[0])
      json.member("prefix", +report.prefix);
    if (report.wrapped)
      json.member("wrapped", report.wrapped);
    if (report.scaled)
      json.member("scaled", report.scaled);
    if (report.leftOut)
      json.member("left_out", report.leftOut);
    json.finish();
  } else {
    bool isBehind = report.prefix[0];
    printf("weights  %s, %s tensors in %d file%s, %s%s%s\n", options.initFrom,
           grouped(report.tensors).chars, report.files,
           report.files == 1 ? "" : "s", human(report.bytes).chars,
           isBehind ? ", behind the prefix " : "", report.prefix);
    if (report.wrapped)
      printf("         %s of their names without the parts of modules that "
             "wrap others, such as _orig_mod.\n",
             grouped(report.wrapped).chars);
    if (report.scaled)
      printf(
          "         %s of them in 8 bits, times the scales of their blocks\n",
          grouped(report.scaled).chars);
    if (report.leftOut)
      printf("         without %d tensors of layers that predict further "
             "tokens, which the model has not\n",
             report.leftOut);
  }
  Path tokenizer("%s/tokenizer.json", folderOfWeights(options.initFrom).chars);
  int64_t theirs = checksumOf(tokenizer);
  if (theirs == DataMark::kUnknown)
    return;
  Error text;
  if (!options.tokenizer && isText)
    text.set("the bytes of the text are its tokens, though the weights have a "
             "tokenizer; --tokenizer %s uses it",
             tokenizer.chars);
  else if (options.tokenizer && theirs != data.tokenizer)
    text.set("--tokenizer %s is not that of the weights, %s", options.tokenizer,
             tokenizer.chars);
  if (text.text[0])
    note(text.text);
}

static Text shownSum(int64_t crc) {
  Text text;
  if (crc == DataMark::kNone)
    snprintf(text.chars, sizeof(text.chars), "none");
  else
    snprintf(text.chars, sizeof(text.chars), "checksum %08" PRIx64, crc);
  return text;
}

void Log::resumed(const Resumed &resumed) {
  int64_t step = resumed.state.step;
  if (options.json) {
    JsonWriter json(stdout);
    json.object().member("event", "resumed");
    json.member("path", +resumed.folder.chars).member("step", step);
    json.member("data_tokens", resumed.data.tokens).finish();
  } else {
    printf("resumed  %s, step %" PRId64, resumed.folder.chars, step);
    if (options.steps >= step) // Else it is of a longer run.
      printf(" of %" PRId64, options.steps);
    printf(" is finished\n");
  }
  if (options.steps > 0 && step >= options.steps) {
    Error text;
    text.set("step %" PRId64 " is finished, so nothing is left to do; --steps "
             "%" PRId64 " or more goes on",
             step, step + 1);
    note(text.text);
  }
}

void Log::changed(const Resumed &resumed, const DataMark &data) {
  const DataMark &then = resumed.data;
  auto differ = [](int64_t a, int64_t b) {
    return a != DataMark::kUnknown && b != DataMark::kUnknown && a != b;
  };
  Error text;
  if (data.tokens > 0 && then.tokens > 0 && data.tokens != then.tokens)
    text.set("the data had %s tokens then, so other samples may follow",
             grouped(then.tokens).chars);
  else if (differ(data.crc, then.crc))
    text.set("the data has as many tokens as then, but others (%s then, "
             "%08" PRIx64 " now), so other samples may follow",
             shownSum(then.crc).chars, data.crc);
  if (text.text[0])
    warning(text.text);
  if (resumed.changes.text[0])
    warning(resumed.changes.text);
  bool usesTokens = data.tokens > 0 || options.tokenizer;
  if (usesTokens && differ(data.tokenizer, then.tokenizer)) {
    text.set("the tokenizer is another one than then (%s then, ",
             shownSum(then.tokenizer).chars);
    size_t length = strlen(text.text);
    snprintf(text.text + length, sizeof(text.text) - length, "%s now)",
             shownSum(data.tokenizer).chars);
    warning(text.text);
  }
}

void Log::saving(const SavedStates &source) {
  if (options.json) {
    JsonWriter json(stdout);
    json.object().member("event", "saving").member("path", options.save);
    json.member("interval", options.saveInterval);
    json.member("keep_last", options.keepLast);
    json.member("from", source.isCopy() ? "copy" : "arena");
    json.member("copy_bytes", source.copyBytes()).finish();
    return;
  }
  printf("save     %s, ", options.save);
  if (options.saveInterval == 1)
    printf("after every step and ");
  else if (options.saveInterval)
    printf("every %s steps and ", grouped(options.saveInterval).chars);
  if (source.isCopy())
    printf("at the end, from a copy of %s besides the plan\n",
           human(source.copyBytes()).chars);
  else
    printf("at the end, from the plan's memory, while no step runs%s%s\n",
           *source.reason() ? ": " : "", source.reason());
}

void Log::saved(const SaveReport &report) {
  clearProgress();
  Path path = checkpointPath(options.save, report.step);
  if (options.json) {
    JsonWriter json(stdout);
    json.object().member("event", "saved").member("path", +path.chars);
    json.member("step", report.step).member("bytes", report.bytes);
    json.member("seconds", report.seconds, 6).finish();
    return;
  }
  printf("saved    %s, %s in %.1f s\n", path.chars, human(report.bytes).chars,
         report.seconds);
}
