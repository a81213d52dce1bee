//===- Timeline.cpp - When launches of all ranks ran ----------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Timeline.h"

#include "runtime/text/JsonWriter.h"
#include "runtime/transport/Mesh.h"

#include <cinttypes>
#include <cmath>
#include <cstdlib>

using namespace reprise::runtime;

/// Digits of a time in microseconds: nanoseconds, in steps of up to an hour.
static constexpr int kDigits = 13;

/// In whole nanoseconds, so that slices follow each other exactly.
static double nanoseconds(double seconds) { return std::round(seconds * 1e9); }

double reprise::runtime::stageSeconds(const RepriseModel &model,
                                      const double *seconds) {
  double sum = 0;
  forEachLaunch(
      model, [&](const RepriseLaunch &launch, int64_t number, int64_t, bool) {
        if (waitsForStage(model, launch))
          sum += seconds[number];
      });
  return sum;
}

/// The launch of this number.
static const RepriseLaunch &launchOf(const RepriseModel &model,
                                     int64_t number) {
  int schedule = 0;
  while (number >= model.schedules[schedule].numLaunches)
    number -= model.schedules[schedule++].numLaunches;
  return model.schedules[schedule].launches[number];
}

static const char *categoryOf(const RepriseModel &model,
                              const RepriseLaunch &launch) {
  if (!isTogether(launch))
    return launch.kind == REPRISE_LAUNCH_GEMM ? "product" : "kernel";
  switch (model.collectives[launch.callee].operation) {
  case REPRISE_COLLECTIVE_SEND:
    return "send";
  case REPRISE_COLLECTIVE_RECEIVE:
    return "bubble";
  default:
    return "together";
  }
}

/// Begins an event of a rank's track.
static JsonWriter &beginEvent(JsonWriter &json, const char *phase,
                              const char *name, int rank) {
  return json.object()
      .member("ph", phase)
      .member("name", name)
      .member("pid", 0)
      .member("tid", rank);
}

static void writeSpan(const RepriseModel &model, const LaunchSpan &span,
                      double begin, int rank, FILE *out) {
  const RepriseLaunch &launch = launchOf(model, span.number);
  JsonWriter json(out);
  const double from = nanoseconds(span.begin - begin);
  char name[64];
  const bool waits = waitsForStage(model, launch);
  if (waits) {
    const RepriseCollective &row = model.collectives[launch.callee];
    snprintf(name, sizeof(name), "waiting for rank %d",
             groupOf(model, rank, row.axis).rankOf(row.peer));
  }
  beginEvent(json, "X", waits ? name : launch.name, rank)
      .member("cat", categoryOf(model, launch))
      .member("ts", from / 1e3, kDigits)
      .member("dur", (nanoseconds(span.end - begin) - from) / 1e3, kDigits);
  if (waits)
    json.key("args").object().member("launch", launch.name).end();
  json.finish();
}

/// The events of this rank, an object a line, each behind a comma.
bool Timeline::describe(const List<LaunchSpan> &spans, double begin, int rank,
                        FILE *out) {
  char name[128] = "rank 0";
  if (model.numAxes > 0)
    nameRank(model, rank, name, sizeof(name));
  fputc(',', out);
  JsonWriter json(out);
  beginEvent(json, "M", "thread_name", rank).key("args").object();
  json.member("name", +name).finish();
  for (const LaunchSpan &span : spans) {
    fputc(',', out);
    writeSpan(model, span, begin, rank, out);
  }
  return !ferror(out);
}

/// Lets rank 0 write the text of each rank, in their order.
bool Timeline::bring(List<char> &text, Transport &ranks, FILE *out,
                     Error &error) {
  const char *what = "the timeline of a rank";
  int64_t size = int64_t(text.size());
  if (ranks.rank() > 0) {
    const Parcel sends[] = {{0, reinterpret_cast<char *>(&size), sizeof(size)},
                            {0, text.begin(), text.size()}};
    return ranks.exchange(what, Patience::Endless, sends, 2, nullptr, 0, error);
  }
  fwrite(text.begin(), 1, text.size(), out);
  for (int rank = 1; rank < ranks.size(); ++rank) {
    const Parcel first = {rank, reinterpret_cast<char *>(&size), sizeof(size)};
    if (!ranks.exchange(what, Patience::Endless, nullptr, 0, &first, 1, error))
      return false;
    if (!text.resize(size_t(size)))
      return error.set("no memory left for the timeline of rank %d", rank);
    const Parcel rest = {rank, text.begin(), text.size()};
    if (!ranks.exchange(what, Patience::Endless, nullptr, 0, &rest, 1, error))
      return false;
    fwrite(text.begin(), 1, text.size(), out);
  }
  return true;
}

bool Timeline::write(const List<LaunchSpan> &spans, double begin, int64_t step,
                     Transport &ranks, Error &error) {
  char *bytes = nullptr;
  size_t size = 0;
  FILE *memory = open_memstream(&bytes, &size);
  bool good = memory && describe(spans, begin, ranks.rank(), memory);
  good = memory && fclose(memory) == 0 && good;
  List<char> text;
  good = good && text.append(bytes, size);
  free(bytes);
  if (!good)
    return error.set("no memory left for a timeline of %zu launches",
                     spans.size());
  if (ranks.rank() > 0)
    return bring(text, ranks, nullptr, error);
  FILE *out = file.open(error);
  if (!out)
    return false;
  char name[64];
  snprintf(name, sizeof(name), "step %" PRId64, step);
  fprintf(out, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
  JsonWriter json(out);
  beginEvent(json, "M", "process_name", 0).key("args").object();
  json.member("name", +name).finish();
  good = bring(text, ranks, out, error);
  fprintf(out, "]}\n");
  Error other; // What went wrong before is the cause.
  return file.finish(/*isWhole=*/good, good ? error : other) && good;
}
