//===- LogInference.cpp - What a run shows of validation and sampling -----===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Log.h"
#include "runtime/text/Json.h"
#include "runtime/text/JsonWriter.h"

#include <cinttypes>
#include <cstdlib>

using namespace reprise::runtime;

void Log::note(const char *text) {
  if (options.json) {
    JsonWriter(stdout)
        .object()
        .member("event", "note")
        .member("note", text)
        .finish();
  } else {
    printf("note     %s\n", text);
  }
}

void Log::warning(const char *text) {
  if (options.json) {
    JsonWriter json(stdout);
    json.object().member("event", "warning").member("warning", text).finish();
  } else if (!options.isQuiet) {
    fflush(stdout); // What came before stands before it.
    const bool isColored = hasBar && !getenv("NO_COLOR");
    fprintf(stderr, "%swarning: %s%s\n", isColored ? "\033[1;35m" : "",
            isColored ? "\033[0m" : "", text);
  }
}

bool Log::validation(const ValidationReport &report, Error &error) {
  clearProgress();
  inferredSeconds += report.seconds;
  if (options.json) {
    JsonWriter json(stdout);
    json.object().member("event", "validation").member("step", report.step);
    json.member("loss", report.loss, 9).member("batches", report.batches);
    json.member("ms", report.seconds * 1e3, 6).finish();
  } else
    printf("validation after step %" PRId64 "  loss %.5f  %" PRId64
           " batch%s  %.1f ms\n",
           report.step, report.loss, report.batches,
           report.batches == 1 ? "" : "es", report.seconds * 1e3);
  return flush(error);
}

/// Text as a terminal can show it, each line behind a bar: what is no UTF-8 and
/// what a terminal takes for an order become U+FFFD.
static void printLines(std::string_view text) {
  printf("  | ");
  while (!text.empty()) {
    int length = utf8Length(text.data(), text.size());
    unsigned char first = static_cast<unsigned char>(text[0]);
    // The second range are U+0080 to U+009F.
    bool isOrder = (first < 0x20 && first != '\n' && first != '\t') ||
                   first == 0x7F ||
                   (first == 0xC2 && length == 2 &&
                    static_cast<unsigned char>(text[1]) < 0xA0);
    if (first == '\n')
      printf("\n  | ");
    else if (length == 0 || isOrder)
      printf("\xEF\xBF\xBD");
    else
      fwrite(text.data(), 1, size_t(length), stdout);
    text.remove_prefix(size_t(length > 0 ? length : 1));
  }
  putchar('\n');
}

bool Log::sample(const SampleReport &report, Error &error) {
  clearProgress();
  inferredSeconds += report.seconds;
  if (!options.json) {
    printf("sample after step %" PRId64 "  %" PRId64 " tokens  %.1f ms\n",
           report.step, report.count, report.seconds * 1e3);
    printLines(report.text);
    return flush(error);
  }
  JsonWriter json(stdout);
  json.object().member("event", "sample").member("step", report.step);
  json.member("prompt", report.prompt).member("text", report.text);
  json.key("tokens").array();
  for (int64_t i = 0; i < report.count; ++i)
    json.value(report.tokens[i]);
  json.end().member("ms", report.seconds * 1e3, 6).finish();
  return flush(error);
}
