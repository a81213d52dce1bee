//===- Costs.cpp - What launches took, for the compiler -------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Costs.h"

#include "runtime/base/Program.h"
#include "runtime/text/JsonWriter.h"

#include "reprise/ABI/ElementFormat.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>

using namespace reprise::runtime;

namespace {
/// Launches of one kernel, or of GEMMs of one shape.
struct Entry {
  char key[96];
  bool isGemm, isAttention, isBF16;
  bool streams; ///< all of its buffers, and not a few rows of a table
  int64_t calls;
  double seconds, flops, bytes; ///< of all calls

  double perCall() const { return seconds / double(calls); }
};

/// The rates that a table has.
struct Rates {
  double gemms[2] = {}, attention[2] = {}; ///< f32, bf16
  double pointwise = 0, memory = 0, launch = 0;
};

/// The rates of an exchange of several sizes.
struct Link {
  const ExchangeTime *less, *more; ///< The fewest and the most bytes.
  LinkRates rates() const { return ratesOf(*less, *more); }
};
} // namespace

/// What ranks do together is none: in a step its time is also that of waiting
/// for others.
static Entry describe(const RepriseModel &model, const RepriseLaunch &launch) {
  Entry entry = {};
  int32_t counted = launch.numBuffers;
  if (launch.kind == REPRISE_LAUNCH_GEMM) {
    const RepriseGemm &gemm = model.gemms[launch.callee];
    entry.isGemm = true;
    entry.isBF16 = gemm.typeAB == REPRISE_BF16;
    int length = snprintf(entry.key, sizeof(entry.key),
                          "gemm %" PRId64 "x%" PRId64 "x%" PRId64 " %s", gemm.m,
                          gemm.n, gemm.k, repriseElementName(gemm.typeAB));
    if (int64_t batch = gemm.batch[0] * gemm.batch[1]; batch != 1)
      snprintf(entry.key + length, sizeof(entry.key) - size_t(length),
               " x%" PRId64, batch);
    else if (gemm.groups)
      snprintf(entry.key + length, sizeof(entry.key) - size_t(length),
               " in %d groups", gemm.groups);
    --counted; // The workspace stays in caches.
  } else {
    const char *name = model.kernels[launch.callee].name;
    snprintf(entry.key, sizeof(entry.key), "%s", name);
    entry.isAttention = !strncmp(name, "attention", strlen("attention"));
    entry.isBF16 = strstr(name, "_bf16") != nullptr;
  }
  const RepriseBuffer *buffers = model.buffers + launch.firstBuffer;
  double largest = 0, distinct = 0;
  for (int32_t b = 0; b < counted; ++b) {
    double bytes = double(buffers[b].bytes);
    entry.bytes += bytes;
    bool isNew = std::none_of(buffers, buffers + b, [&](RepriseBuffer other) {
      return other.offset == buffers[b].offset;
    }); // What is made in place is there twice.
    distinct += isNew ? bytes : 0;
    largest = std::max(largest, bytes);
  }
  entry.streams = largest <= distinct - largest;
  entry.flops = double(launch.flops);
  return entry;
}

/// GEMMs and attention at their mean rate; what streams at the best that
/// one kernel got, which is the roof of the others. A buffer that is larger
/// than all others of its kernel may be a table of which a few rows are
/// touched.
static Rates getRates(const List<Entry> &entries) {
  constexpr double kLarge = 1 << 20; // Smaller kernels are all launch.
  Rates rates;
  double flops[2][2] = {}, seconds[2][2] = {};
  for (const Entry &entry : entries) {
    double time = entry.perCall();
    rates.launch = rates.launch == 0 ? time : std::min(rates.launch, time);
    if (entry.isGemm || entry.isAttention) {
      flops[entry.isAttention][entry.isBF16] += entry.flops;
      seconds[entry.isAttention][entry.isBF16] += entry.seconds;
    } else if (entry.streams && entry.bytes / double(entry.calls) >= kLarge) {
      rates.memory = std::max(rates.memory, entry.bytes / entry.seconds);
      rates.pointwise = std::max(rates.pointwise, entry.flops / entry.seconds);
    }
  }
  for (int type = 0; type < 2; ++type) {
    if (seconds[0][type] > 0)
      rates.gemms[type] = flops[0][type] / seconds[0][type];
    if (seconds[1][type] > 0)
      rates.attention[type] = flops[1][type] / seconds[1][type];
  }
  return rates;
}

static bool areAlike(const ExchangeTime &left, const ExchangeTime &right) {
  return left.ranks == right.ranks && left.isAcross == right.isAcross &&
         !strcmp(left.exchange, right.exchange);
}

/// Those whose sizes differ enough that the time of bytes shows.
static bool findLinks(const List<ExchangeTime> &times, List<Link> &links) {
  constexpr int64_t kLeastRatio = 4;
  for (const ExchangeTime &time : times) {
    Link *link =
        std::find_if(links.begin(), links.end(), [&](const Link &other) {
          return areAlike(*other.less, time);
        });
    if (link == links.end()) {
      if (!links.push({&time, &time}))
        return false;
      continue;
    }
    if (time.sentBytes < link->less->sentBytes)
      link->less = &time;
    if (time.sentBytes > link->more->sentBytes)
      link->more = &time;
  }
  const Link *end =
      std::remove_if(links.begin(), links.end(), [](const Link &link) {
        return link.more->sentBytes < kLeastRatio * link.less->sentBytes;
      });
  return links.resize(size_t(end - links.begin()));
}

static void writeName(JsonWriter &json, const ExchangeTime &time,
                      const char *rest) {
  char name[96];
  snprintf(name, sizeof(name), "%s of %d ranks%s%s", time.exchange, time.ranks,
           rest, time.isAcross ? " across machines" : "");
  json.key(name);
}

/// For exchanges that no link is of: the median of all that are within a
/// machine, or across.
static void writeLinkRates(JsonWriter &json, const List<Link> &links,
                           bool areAcross) {
  List<double> message, bytes;
  for (const Link &link : links)
    if (link.less->isAcross == areAcross &&
        (!message.push(link.rates().secondsPerMessage) ||
         !bytes.push(link.rates().bytesPerSecond)))
      return;
  if (message.empty())
    return;
  std::sort(message.begin(), message.end());
  std::sort(bytes.begin(), bytes.end());
  const size_t middle = message.size() / 2;
  json.member(areAcross ? "network_bytes_per_second" : "link_bytes_per_second",
              bytes[middle], 6);
  json.member(areAcross ? "network_seconds_per_message" : "seconds_per_message",
              message[middle], 6);
}

static void writeLinks(JsonWriter &json, const List<Link> &links) {
  if (links.empty())
    return;
  json.key("links").object(JsonWriter::Lines);
  for (const Link &link : links) {
    const LinkRates rates = link.rates();
    writeName(json, *link.less, "");
    json.object(JsonWriter::Spaced)
        .member("seconds_per_message", rates.secondsPerMessage, 6)
        .member("bytes_per_second", rates.bytesPerSecond, 6)
        .end();
  }
  json.end();
}

/// Along several axes as many ranks may exchange as many bytes.
static void writeExchanges(JsonWriter &json, const List<ExchangeTime> &times) {
  for (const ExchangeTime &time : times) {
    const bool isThere =
        std::any_of(times.begin(), &time, [&](const ExchangeTime &other) {
          return areAlike(other, time) && other.sentBytes == time.sentBytes;
        });
    if (!time.isOfProgram || isThere)
      continue;
    char rest[48];
    snprintf(rest, sizeof(rest), " sends %" PRId64, time.sentBytes);
    writeName(json, time, rest);
    json.value(time.seconds, 6);
  }
}

static void writeTable(FILE *file, const char *machine,
                       const List<Entry> &entries, const List<Link> &links,
                       const ExchangeTimes &exchanges) {
  Rates rates = getRates(entries);
  JsonWriter json(file);
  json.object(JsonWriter::Lines).member("machine", machine);
  auto writeRate = [&](const char *name, double rate) {
    if (rate > 0)
      json.member(name, rate, 6);
  };
  writeRate("product_flops_per_second", rates.gemms[0]);
  writeRate("product_bf16_flops_per_second", rates.gemms[1]);
  writeRate("attention_flops_per_second", rates.attention[0]);
  writeRate("attention_bf16_flops_per_second", rates.attention[1]);
  writeRate("pointwise_flops_per_second", rates.pointwise);
  writeRate("memory_bytes_per_second", rates.memory);
  writeRate("seconds_per_launch", rates.launch);
  writeRate("ranks_per_machine", double(exchanges.ranksPerMachine));
  for (bool areAcross : {false, true})
    writeLinkRates(json, links, areAcross);
  writeLinks(json, links);
  json.key("measured").object(JsonWriter::Lines);
  for (const Entry &entry : entries)
    json.member(entry.key, entry.perCall(), 6);
  writeExchanges(json, exchanges.times);
  json.finish();
}

bool Costs::checkSteps(int64_t steps, Error &error) {
  return steps >= 2 ||
         error.set("--costs needs at least 2 steps, of which the first is not "
                   "counted, but got %" PRId64,
                   steps);
}

bool Costs::write(const double *seconds, int64_t steps, const char *machine,
                  const ExchangeTimes &exchanges, Error &error) {
  List<Entry> entries;
  List<Link> links;
  bool hasRoom = findLinks(exchanges.times, links);
  forEachLaunch(model, [&](const RepriseLaunch &launch, int64_t number,
                           int64_t runs, bool) {
    if (isTogether(launch))
      return;
    Entry entry = describe(model, launch);
    int64_t calls = steps * runs;
    Entry *known =
        std::find_if(entries.begin(), entries.end(), [&](const Entry &other) {
          return !strcmp(other.key, entry.key);
        });
    if (known == entries.end()) {
      Entry none = entry;
      none.flops = none.bytes = 0;
      hasRoom = hasRoom && entries.push(none);
      if (!hasRoom)
        return;
      known = entries.end() - 1;
    }
    known->calls += calls;
    known->seconds += seconds[number];
    known->flops += entry.flops * double(calls);
    known->bytes += entry.bytes * double(calls);
  });
  if (!hasRoom)
    return error.set("no memory left for the times of launches");
  FILE *out = file.open(error);
  if (!out)
    return false;
  writeTable(out, machine, entries, links, exchanges);
  return file.finish(/*isWhole=*/true, error);
}
