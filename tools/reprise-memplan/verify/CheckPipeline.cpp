//===- CheckPipeline.cpp - What stages have in flight, and when they end --===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Claims.h"
#include "Reader.h"

#include <cmath>
#include <set>
#include <tuple>

using namespace reprise::verify;

/// More tasks of a schedule are not gone through.
static constexpr int64_t kMostTasks = int64_t(1) << 24;

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

std::optional<Fault> reprise::verify::readPipeline(const Json &value,
                                                   Pipeline &pipeline) {
  Reader reader;
  Object object(reader, value,
                {"version", "kind", "budget_bytes", "base_bytes", "stages",
                 "virtual_stages", "micro_batches", "span_seconds",
                 "lower_bound_seconds", "chunks"});
  reader.readInteger(object.get("version"), 1, 1, "a version");
  pipeline.budget =
      reader.readInteger(object.get("budget_bytes"), 0, INT64_MAX, "bytes");
  pipeline.stages =
      reader.readInteger(object.get("stages"), 1, kMostTasks, "stages");
  pipeline.virtualStages = reader.readInteger(object.get("virtual_stages"), 1,
                                              kMostTasks, "virtual stages");
  const Json &batches = object.get("micro_batches");
  pipeline.microBatches =
      reader.readInteger(batches, 1, kMostTasks, "micro-batches");
  pipeline.span = reader.readSeconds(object.get("span_seconds"));
  pipeline.bound = reader.readSeconds(object.get("lower_bound_seconds"));
  pipeline.spanAt = object.get("span_seconds").at;
  pipeline.boundAt = object.get("lower_bound_seconds").at;
  const Json &base = object.get("base_bytes");
  for (const Json &element : reader.readList(base))
    pipeline.base.push_back(
        reader.readInteger(element, 0, pipeline.budget, "bytes"));
  if (!reader.fault && int64_t(pipeline.base.size()) != pipeline.stages)
    return Fault{base.at, "needs bytes for each of " +
                              std::to_string(pipeline.stages) +
                              " stages, but got " +
                              std::to_string(pipeline.base.size())};
  const Json &chunks = object.get("chunks");
  const std::vector<Json> &elements = reader.readList(chunks);
  if (reader.fault)
    return reader.fault;
  __int128 wanted = __int128(pipeline.stages) * pipeline.virtualStages;
  if (wanted != __int128(elements.size()))
    return Fault{chunks.at, "needs a chunk for each virtual stage of each "
                            "stage, but got " +
                                std::to_string(elements.size())};
  if (wanted * pipeline.microBatches > kMostTasks)
    return Fault{batches.at, "needs at most " + std::to_string(kMostTasks) +
                                 " tasks of micro-batches on chunks, but got "
                                 "more"};
  for (const Json &element : elements) {
    Object fields(reader, element, {"slack_seconds", "certificate"});
    const Json &slack = fields.get("slack_seconds");
    Chunk chunk;
    chunk.slack = reader.readSeconds(slack);
    chunk.at = element.at;
    chunk.slackAt = slack.at;
    const Json &certificate = fields.get("certificate");
    if (reader.fault)
      return reader.fault;
    if (std::optional<Fault> fault = readClaims(certificate, chunk.claims))
      return fault;
    pipeline.chunks.push_back(std::move(chunk));
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// The schedule
//===----------------------------------------------------------------------===//

namespace {
/// A micro-batch, forward or backward, through a chunk of the model.
struct Task {
  int64_t chunk = 0, batch = 0;
  bool isBackward = false;
};

/// Of a chunk, with replays.
struct Times {
  double forward = 0, backward = 0;
};

/// 1F1B, or with virtual stages interleaved 1F1B: after as many forward tasks
/// as keep the stages behind it busy, a stage runs forward and backward in
/// turn.
class Schedule {
public:
  explicit Schedule(const Pipeline &pipeline);

  /// Whether no task waits for one that waits for it.
  bool isPossible() const { return order.size() == tasks.size(); }
  std::vector<int64_t> getInFlight() const;
  double getSpan(const std::vector<Times> &times) const;

private:
  void addStage(int64_t stage);
  void sort();
  size_t number(const Task &task) const {
    return (size_t(task.isBackward) * numChunks + task.chunk) * numBatches +
           task.batch;
  }

  int64_t stages, virtualStages, numChunks, numBatches;
  std::vector<Task> tasks; ///< stage after stage, each in its order
  std::vector<size_t> begins;
  /// By number: what comes before on the stage, what is waited for; the tasks
  /// in an order that runs.
  std::vector<int64_t> before, input;
  std::vector<size_t> order;
};
} // namespace

Schedule::Schedule(const Pipeline &pipeline)
    : stages(pipeline.stages), virtualStages(pipeline.virtualStages),
      numChunks(stages * virtualStages), numBatches(pipeline.microBatches),
      before(2 * numChunks * numBatches, -1), input(before) {
  for (int64_t stage = 0; stage < stages; ++stage)
    addStage(stage);
  begins.push_back(tasks.size());
  for (int64_t chunk = 0; chunk < numChunks; ++chunk)
    for (int64_t batch = 0; batch < numBatches; ++batch) {
      if (chunk > 0)
        input[number({chunk, batch, false})] =
            number({chunk - 1, batch, false});
      bool isLast = chunk + 1 == numChunks;
      input[number({chunk, batch, true})] =
          isLast ? number({chunk, batch, false})
                 : number({chunk + 1, batch, true});
    }
  sort();
}

void Schedule::addStage(int64_t stage) {
  begins.push_back(tasks.size());
  // Interleaved, a group of micro-batches as large as the pipeline goes through
  // all chunks of the stage before the next does.
  std::vector<Task> forward, backward;
  int64_t group = virtualStages == 1 ? numBatches : stages;
  for (int64_t from = 0; from < numBatches; from += group)
    for (int64_t v = 0; v < virtualStages; ++v)
      for (int64_t b = from; b < std::min(from + group, numBatches); ++b) {
        forward.push_back({v * stages + stage, b, false});
        backward.push_back({(virtualStages - 1 - v) * stages + stage, b, true});
      }
  int64_t behind = stages - 1 - stage, total = forward.size();
  int64_t ahead =
      virtualStages == 1 ? behind : 2 * behind + (virtualStages - 1) * stages;
  ahead = std::min(ahead, total);
  tasks.insert(tasks.end(), forward.begin(), forward.begin() + ahead);
  for (int64_t k = 0; k < total; ++k) {
    if (ahead + k < total)
      tasks.push_back(forward[ahead + k]);
    tasks.push_back(backward[k]);
  }
  for (size_t t = begins.back() + 1; t < tasks.size(); ++t)
    before[number(tasks[t])] = number(tasks[t - 1]);
}

/// Tasks of which nothing waited for is left come first.
void Schedule::sort() {
  std::vector<int64_t> missing(before.size());
  std::vector<std::vector<size_t>> waiting(before.size());
  for (size_t t = 0; t < before.size(); ++t)
    for (int64_t other : {before[t], input[t]})
      if (other >= 0) {
        ++missing[t];
        waiting[other].push_back(t);
      }
  for (size_t t = 0; t < before.size(); ++t)
    if (missing[t] == 0)
      order.push_back(t);
  for (size_t next = 0; next < order.size(); ++next)
    for (size_t t : waiting[order[next]])
      if (--missing[t] == 0)
        order.push_back(t);
}

/// The most of each chunk that its stage has begun and not done with.
std::vector<int64_t> Schedule::getInFlight() const {
  std::vector<int64_t> now(numChunks), most(numChunks);
  for (const Task &task : tasks) {
    now[task.chunk] += task.isBackward ? -1 : 1;
    most[task.chunk] = std::max(most[task.chunk], now[task.chunk]);
  }
  return most;
}

double Schedule::getSpan(const std::vector<Times> &times) const {
  std::vector<double> ends(before.size());
  double span = 0;
  for (size_t t : order) {
    double begin = 0;
    for (int64_t other : {before[t], input[t]})
      if (other >= 0)
        begin = std::max(begin, ends[other]);
    int64_t chunk = int64_t(t) / numBatches % numChunks;
    bool isBackward = int64_t(t) >= numChunks * numBatches;
    ends[t] =
        begin + (isBackward ? times[chunk].backward : times[chunk].forward);
    span = std::max(span, ends[t]);
  }
  return span;
}

//===----------------------------------------------------------------------===//
// Checking
//===----------------------------------------------------------------------===//

static Times getTimes(const Claims &claims, double replays) {
  size_t numForward = countForward(claims);
  Times times = {0, replays};
  for (size_t p = 0; p < claims.schedule.size(); ++p)
    if (!claims.schedule[p].isUpdate)
      (p < numForward ? times.forward : times.backward) +=
          claims.schedule[p].seconds;
  return times;
}

/// What the replays of a stage take at least of a micro-batch, whatever part of
/// the budget each chunk has: for a chunk that has b bytes, its layers' least
/// prices less the price of b. All of the budget goes where it saves most.
static double getStageBound(const Pipeline &pipeline, int64_t stage) {
  struct Share {
    double price, replays; ///< of a byte; without a byte
  };
  std::vector<Share> shares;
  for (size_t c = stage; c < pipeline.chunks.size(); c += pipeline.stages) {
    const Claims &claims = pipeline.chunks[c].claims;
    Share share = {0, 0};
    for (const Layer &layer : claims.layers)
      share.replays += layer.minimum;
    for (const Moment &moment : claims.moments) {
      share.price += moment.secondsPerByte;
      if (moment.layer < int64_t(claims.layers.size()))
        share.replays +=
            moment.secondsPerByte *
            claims.classOf(moment.layer).backward[moment.gradient].bytes;
    }
    shares.push_back(share);
  }
  std::sort(shares.begin(), shares.end(),
            [](const Share &a, const Share &b) { return a.price > b.price; });
  double bytes = pipeline.budget - pipeline.base[stage], least = 0;
  for (const Share &share : shares) {
    // Where bytes have no price, what must run again does so with any number.
    double wanted = share.price > 0 ? share.replays / share.price : 0;
    double given = std::min(bytes, wanted);
    bytes -= given;
    least += share.replays - given * share.price;
  }
  return least;
}

/// Nothing ends a step sooner than the chunks' own work does, with the replays
/// that are known to be needed.
static double getSpanBound(const Pipeline &pipeline, const Schedule &schedule) {
  std::vector<Times> bare;
  for (const Chunk &chunk : pipeline.chunks)
    bare.push_back(getTimes(chunk.claims, 0));
  if (pipeline.virtualStages == 1) {
    for (int64_t s = 0; s < pipeline.stages; ++s)
      bare[s].backward += getStageBound(pipeline, s);
    return schedule.getSpan(bare);
  }
  // Which of a stage's chunks replays is not known: so the stage is as busy as
  // all of them, between the first micro-batch's way to it and the last one's
  // way back.
  double bound = schedule.getSpan(bare), way = 0;
  for (int64_t s = 0; s < pipeline.stages; ++s) {
    double busy = getStageBound(pipeline, s);
    for (size_t c = s; c < bare.size(); c += pipeline.stages)
      busy += bare[c].forward + bare[c].backward;
    bound = std::max(bound, way + busy * pipeline.microBatches);
    way += bare[s].forward + bare[s].backward;
  }
  return bound;
}

static std::optional<Fault> checkInFlight(const Pipeline &pipeline,
                                          const Schedule &schedule) {
  std::vector<int64_t> inFlight = schedule.getInFlight();
  for (size_t c = 0; c < pipeline.chunks.size(); ++c)
    for (const Layer &layer : pipeline.chunks[c].claims.layers)
      if (layer.inFlight != inFlight[c])
        return Fault{layer.at, "'" + layer.name + "' of chunk " +
                                   std::to_string(c) + " has " +
                                   std::to_string(inFlight[c]) +
                                   " micro-batches in flight on the schedule "
                                   "of its pipeline, but got " +
                                   std::to_string(layer.inFlight)};
  return std::nullopt;
}

/// A chunk is one of a pipeline's step, of one model on one machine, and what a
/// stage needs, and may need, is within the budget.
static std::optional<Fault> checkShares(const Pipeline &pipeline) {
  std::vector<__int128> needs(pipeline.base.begin(), pipeline.base.end());
  std::vector<__int128> shares = needs;
  const Claims &first = pipeline.chunks.front().claims;
  for (size_t c = 0; c < pipeline.chunks.size(); ++c) {
    const Claims &claims = pipeline.chunks[c].claims;
    std::string chunk = "chunk " + std::to_string(c);
    if (!claims.isOfActivations || claims.base != 0)
      return Fault{pipeline.chunks[c].at,
                   chunk + " needs a budget of activations, and nothing that "
                           "outlives the step"};
    if (claims.microBatches != pipeline.microBatches)
      return Fault{pipeline.chunks[c].at,
                   chunk + " needs the " +
                       std::to_string(pipeline.microBatches) +
                       " micro-batches of its pipeline, but got " +
                       std::to_string(claims.microBatches)};
    for (auto [what, name, firstName] :
         {std::tuple("model", &claims.model, &first.model),
          std::tuple("machine", &claims.machine, &first.machine)})
      if (*name != *firstName)
        return Fault{pipeline.chunks[c].at,
                     chunk + " needs the " + what + " '" + *firstName +
                         "' of chunk 0, but got '" + *name + "'"};
    needs[c % pipeline.stages] += claims.peak;
    shares[c % pipeline.stages] += claims.budget;
  }
  auto print = [](__int128 bytes) {
    return std::to_string(int64_t(std::min<__int128>(bytes, INT64_MAX)));
  };
  for (int64_t s = 0; s < pipeline.stages; ++s)
    if (needs[s] > pipeline.budget)
      return Fault{pipeline.chunks[s].at, "stage " + std::to_string(s) +
                                              " needs " + print(needs[s]) +
                                              " bytes, but the budget is " +
                                              std::to_string(pipeline.budget)};
  for (int64_t s = 0; s < pipeline.stages; ++s)
    if (shares[s] > pipeline.budget)
      return Fault{pipeline.chunks[s].at,
                   "the budgets of stage " + std::to_string(s) +
                       "'s chunks come to " + print(shares[s]) +
                       " bytes with what outlives its step, but the budget of "
                       "the stage is " +
                       std::to_string(pipeline.budget)};
  return std::nullopt;
}

static std::optional<Fault> checkSpans(const Pipeline &pipeline,
                                       const Schedule &schedule) {
  std::vector<Times> times;
  for (const Chunk &chunk : pipeline.chunks)
    times.push_back(
        getTimes(chunk.claims, chunk.claims.replay / pipeline.microBatches));
  double span = schedule.getSpan(times);
  if (!isNear(span, pipeline.span, span)) {
    auto [wanted, got] = formatSeconds(span, pipeline.span);
    return Fault{pipeline.spanAt,
                 "the schedule takes " + wanted + ", but got " + got};
  }
  for (size_t c = 0; c < pipeline.chunks.size(); ++c) {
    const Chunk &chunk = pipeline.chunks[c];
    double replays = chunk.claims.replay / pipeline.microBatches;
    if (chunk.slack > replays && !isNear(chunk.slack, replays, replays)) {
      auto [all, slack] = formatSeconds(replays, chunk.slack);
      return Fault{chunk.slackAt, "chunk " + std::to_string(c) + " replays " +
                                      all + " of a micro-batch, but " + slack +
                                      " of them are for nothing"};
    }
    times[c].backward -= chunk.slack;
  }
  double without = schedule.getSpan(times);
  if (!isNear(without, span, span)) {
    auto [less, all] = formatSeconds(without, span);
    return Fault{
        pipeline.spanAt,
        "the schedule takes " + less +
            " without the replays that are said to cost nothing, but " + all +
            " with them"};
  }
  double bound = getSpanBound(pipeline, schedule);
  if (!isNear(bound, pipeline.bound, bound)) {
    auto [wanted, got] = formatSeconds(bound, pipeline.bound);
    return Fault{pipeline.boundAt,
                 "no plans take less than " + wanted +
                     " by the bounds of the stages, but got " + got};
  }
  return std::nullopt;
}

std::optional<Fault>
reprise::verify::checkPipeline(const Pipeline &pipeline,
                               CertificateFigures &figures) {
  Schedule schedule(pipeline);
  if (!schedule.isPossible())
    return Fault{pipeline.spanAt, "stages wait for each other forever with " +
                                      std::to_string(pipeline.microBatches) +
                                      " micro-batches"};
  if (std::optional<Fault> fault = checkInFlight(pipeline, schedule))
    return fault;
  if (std::optional<Fault> fault = checkShares(pipeline))
    return fault;
  figures.stages.resize(pipeline.stages);
  std::set<std::string> layers;
  for (size_t c = 0; c < pipeline.chunks.size(); ++c) {
    CertificateFigures chunk;
    if (auto fault = checkClaims(pipeline.chunks[c].claims, chunk))
      return fault;
    CertificateFigures &stage = figures.stages[c % pipeline.stages];
    figures.model = chunk.model;
    figures.machine = chunk.machine;
    for (auto count :
         {&CertificateFigures::layers, &CertificateFigures::buffers,
          &CertificateFigures::positions, &CertificateFigures::replays,
          &CertificateFigures::moments, &CertificateFigures::peak,
          &CertificateFigures::keepRules, &CertificateFigures::dropRules,
          &CertificateFigures::fixedOps}) {
      stage.*count += chunk.*count;
      figures.*count += chunk.*count;
    }
    // What is before the first layer of a chunk, and behind the last, is in all
    // chunks, under one name.
    for (const Layer &layer : pipeline.chunks[c].claims.layers)
      layers.insert(layer.name);
    stage.step += chunk.step / pipeline.microBatches;
    stage.replay += chunk.replay / pipeline.microBatches;
    stage.slack += pipeline.chunks[c].slack;
    stage.inFlight.push_back(pipeline.chunks[c].claims.layers[0].inFlight);
  }
  if (std::optional<Fault> fault = checkSpans(pipeline, schedule))
    return fault;
  for (int64_t s = 0; s < pipeline.stages; ++s) {
    figures.stages[s].bound = getStageBound(pipeline, s);
    figures.stages[s].base = pipeline.base[s];
    figures.stages[s].peak += pipeline.base[s];
  }
  figures.layers = layers.size();
  figures.budget = pipeline.budget;
  figures.microBatches = pipeline.microBatches;
  figures.span = pipeline.span;
  figures.spanBound = pipeline.bound;
  return std::nullopt;
}
