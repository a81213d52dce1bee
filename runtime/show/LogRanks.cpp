//===- LogRanks.cpp - What a run shows of its ranks -----------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Log.h"
#include "runtime/base/Targets.h"
#include "runtime/base/Text.h"
#include "runtime/text/JsonWriter.h"
#include "runtime/transport/Collectives.h"

#include <algorithm>
#include <cstring>

using namespace reprise::runtime;

namespace {
/// A line of the table.
struct Row {
  const char *name, *key;
  double RankReport::*number;
  bool isBytes;
};
} // namespace

static constexpr Row kRows[] = {
    {"time in steps", "step_s", &RankReport::stepSeconds, false},
    {"waiting in them", "wait_s", &RankReport::waitSeconds, false},
    {"waiting for stages", "wait_stages_s", &RankReport::stageSeconds, false},
    {"waiting for rank 0", "wait_alone_s", &RankReport::aloneSeconds, false},
    {"planned memory", "planned_bytes", &RankReport::plannedBytes, true},
    {"high-water mark", "high_water_bytes", &RankReport::highWaterBytes, true},
    {"memory of the process", "process_bytes", &RankReport::processBytes, true},
    {"bytes sent", "sent_bytes", &RankReport::sentBytes, true},
    {"bytes saved", "saved_bytes", &RankReport::savedBytes, true},
};

int64_t reprise::runtime::peakResidentBytes() {
  FILE *file = fopen("/proc/self/status", "re");
  if (!file)
    return 0;
  int64_t kilobytes = 0;
  char line[256];
  while (fgets(line, sizeof(line), file) &&
         sscanf(line, "VmHWM: %" SCNd64, &kilobytes) != 1) {
  }
  fclose(file);
  return kilobytes * 1024;
}

Spread reprise::runtime::spreadOf(const List<RankReport> &reports,
                                  double RankReport::*number,
                                  List<int> &order) {
  const int count = int(reports.size());
  for (int i = 0; i < count; ++i)
    order[size_t(i)] = i;
  // Of equal ones the first.
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    double left = reports[size_t(a)].*number,
           right = reports[size_t(b)].*number;
    return left < right || (left == right && a < b);
  });
  Spread spread = {};
  const int places[] = {0, (count - 1) / 2, count - 1};
  for (int i = 0; i < 3; ++i) {
    spread.ranks[i] = order[size_t(places[i])];
    spread.values[i] = reports[size_t(spread.ranks[i])].*number;
  }
  return spread;
}

bool reprise::runtime::gather(Transport &ranks, RankReport own,
                              List<RankReport> &all, Error &error) {
  own.aloneSeconds = ranks.exchangeSeconds(Patience::Endless);
  own.processBytes = double(peakResidentBytes());
  own.sentBytes += double(ranks.sentBytes());
  if (ranks.rank() == 0 && !all.resize(size_t(ranks.size())))
    return error.set("no memory left for the reports of %d ranks",
                     ranks.size());
  return collect(ranks, "the report of ranks", &own, all.begin(), sizeof(own),
                 error);
}

/// "1.25 s, rank 3".
static void printCell(double value, bool isBytes, int rank) {
  char cell[80];
  if (isBytes)
    snprintf(cell, sizeof(cell), "%s, rank %d", human(int64_t(value)).chars,
             rank);
  else
    snprintf(cell, sizeof(cell), "%.3f s, rank %d", value, rank);
  printf(" %20s", cell);
}

/// Whether a row has something to say: GPUs wait for each other, and hosts for
/// their GPU; stages only where there are some, and what GPUs of them wait only
/// if launches are timed; what is saved if something is.
static bool isShown(const Row &row, const List<RankReport> &reports,
                    int32_t target) {
  if (row.number == &RankReport::stageSeconds ||
      row.number == &RankReport::savedBytes)
    return std::any_of(
        reports.begin(), reports.end(),
        [&](const RankReport &report) { return report.*row.number > 0; });
  return row.number != &RankReport::waitSeconds || factsOf(target).meetsOnHost;
}

static constexpr const char *kPlaces[] = {"least", "median", "most"};
static constexpr const char *kRankKeys[] = {"least_rank", "median_rank",
                                            "most_rank"};

static void printJsonRanks(const List<RankReport> &reports, int32_t target,
                           bool hasNcclSums, List<int> &order) {
  JsonWriter json(stdout);
  json.object().member("event", "ranks").member("ranks", reports.size());
  for (const Row &row : kRows) {
    if (!isShown(row, reports, target))
      continue;
    Spread spread = spreadOf(reports, row.number, order);
    json.key(row.key).object();
    for (int i = 0; i < 3; ++i)
      json.member(kPlaces[i], spread.values[i], 9)
          .member(kRankKeys[i], spread.ranks[i]);
    json.end();
  }
  if (hasNcclSums)
    json.member("sums", kNcclSums);
  json.finish();
}

void Log::ranks(const List<RankReport> &reports) const {
  List<int> order;
  if (!order.resize(reports.size()))
    return;
  if (options.json)
    return printJsonRanks(reports, model.target, options.ncclSums, order);
  printf("%-24s %20s %20s %20s\n", "ranks", kPlaces[0], kPlaces[1], kPlaces[2]);
  for (const Row &row : kRows) {
    if (!isShown(row, reports, model.target))
      continue;
    Spread spread = spreadOf(reports, row.number, order);
    printf("  %-22s", row.name);
    for (int i = 0; i < 3; ++i)
      printCell(spread.values[i], row.isBytes, spread.ranks[i]);
    printf("\n");
  }
  if (options.ncclSums)
    printf("  %-22s %20s\n", "sums over ranks", kNcclSums);
}
