//===- Claims.h - A certificate as it was read ------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// docs/certificates.md tells what the fields mean. Names are resolved, and what
// can be told of a field alone is checked; `at` is where to point at.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_MEMPLAN_CLAIMS_H
#define REPRISE_MEMPLAN_CLAIMS_H

#include "Json.h"

#include <vector>

namespace reprise::verify {

/// An index, and where it is written.
struct Ref {
  int64_t index = 0;
  size_t at = 0;
};

enum class Rule { Free, Keep, Drop };

struct Tensor {
  std::string name;
  int64_t bytes = 0;
  Rule rule = Rule::Free;
  int64_t writer = -1; ///< op of the class
  size_t at = 0;
};

/// What an op reads within its layers: tensors of the class, and inputs.
struct Reads {
  std::vector<int64_t> tensors, inputs;
};

struct Op {
  std::string name;
  bool canReplay = false;
  double seconds = 0;
  Reads reads;
  std::vector<int64_t> writes;
  size_t at = 0;
};

struct Gradient {
  std::string name;
  Reads reads;
  int64_t bytes = 0;
  size_t at = 0;
};

struct Class {
  std::string name;
  std::vector<std::string> inputs;
  std::vector<Tensor> tensors;
  std::vector<Op> ops;
  std::vector<Gradient> backward;
  size_t at = 0;
};

/// A tensor of a layer.
struct Source {
  int64_t layer = 0, tensor = 0;
};

struct Layer {
  std::string name;
  int64_t kind = 0;
  int64_t inFlight = 1;
  std::vector<Source> inputs;
  std::vector<Ref> keeps, replays;
  double minimum = 0;
  size_t at = 0, minimumAt = 0;
};

struct Buffer {
  std::string name;
  int64_t bytes = 0, alignment = 1, offset = 0;
  std::optional<Ref> inPlaceOf;
  size_t at = 0;
};

struct ReplayRef {
  int64_t layer = 0, op = 0;
  size_t at = 0;
};

struct Launch {
  std::string name;
  bool isUpdate = false;
  double seconds = 0;
  std::vector<ReplayRef> replays;
  std::vector<Ref> reads, writes;
  int64_t bytes = 0; ///< of what is written
  size_t at = 0;
};

/// A chunk at tasks of its stage, in the mean: micro-batches that it has in
/// flight, and how much of the mean it runs backward at.
struct MeanTask {
  double running = 0, inFlight = 0;
};

struct PricedPoint {
  int64_t layer = 0, gradient = 0, position = 0;
  double secondsPerByte = 0;
  size_t at = 0;
  /// Where a stage says at which tasks bytes have a price; otherwise they do at
  /// one that has all micro-batches of a layer in flight.
  std::optional<MeanTask> mean;

  double getRunning() const { return mean ? mean->running : 1; }
};

struct Claims {
  std::string model, machine, under;
  bool isOfActivations = false;
  int64_t budget = 0, base = 0, peak = 0, microBatches = 1;
  double step = 0, replay = 0, bound = 0;
  size_t peakAt = 0, stepAt = 0, replayAt = 0, boundAt = 0;
  std::vector<Class> classes;
  std::vector<Layer> layers;
  std::vector<Buffer> buffers;
  std::vector<Launch> schedule;
  std::vector<PricedPoint> points;

  const Class &classOf(int64_t layer) const {
    return classes[layers[layer].kind];
  }
};

std::optional<Fault> readClaims(const Json &value, Claims &claims);

/// What all layers' replays take at least of a micro-batch: `most` less `slope`
/// for each byte of the budget. From the checker's own least prices.
struct Line {
  double most = 0, slope = 0;
};

/// More choices of all classes, and more pairs of a layer and a gradient that
/// may read it, are not gone through for one file.
inline constexpr int64_t kMostChoicesOfAll = int64_t(1) << 27;
inline constexpr int64_t kMostReads = int64_t(1) << 28;

/// What is left of them.
struct Effort {
  int64_t choices = kMostChoicesOfAll, reads = kMostReads;
};

/// All of the checks below. Figures and line are those of claims without fault.
std::optional<Fault> checkClaims(const Claims &claims,
                                 CertificateFigures &figures, Line &line,
                                 Effort &left);

/// Lives, offsets and peak.
std::optional<Fault> checkMemory(const Claims &claims);

/// Tensors that are read are no larger than the buffers that the launch of
/// their op writes. For `claims` of an order without fault.
std::optional<Fault> checkTensors(const Claims &claims);

/// What the layers keep and replay, and what that costs.
std::optional<Fault> checkPlan(const Claims &claims);

/// When ops run: the forward pass first, what is replayed before it is read;
/// and that they take what their classes say. For `claims` of a plan without
/// fault.
std::optional<Fault> checkOrder(const Claims &claims);

/// Even where memory has no price: the schedule has room for what layers keep,
/// at the end of the forward pass, and at each position of backward for what is
/// read there or later, kept or made again. For `claims` of an order without
/// fault.
std::optional<Fault> checkKept(const Claims &claims);

/// The bound on what replays cost, and what the prices prove of any budget. For
/// `claims` of an order without fault.
std::optional<Fault> checkBound(const Claims &claims, Line &line, Effort &left);

/// The positions that the schedule begins with: each op of each layer, once.
int64_t countForward(const Claims &claims);

/// The positions behind them that run the ops of backward, in their order: from
/// the last layer to the first, replays left out.
std::vector<int64_t> getBackwardPositions(const Claims &claims);

/// Buffers alive at each position. For `claims` of a memory without fault.
std::vector<int64_t> getLiveBytes(const Claims &claims);

/// Seconds of a micro-batch without replays: what any sum of replays is of the
/// size of.
double getMicroBatchSeconds(const Claims &claims);

/// What further micro-batches in flight keep, and what each of them does.
int64_t getBytesInFlight(const Claims &claims);
int64_t getKeptBytes(const Claims &claims);

/// A chunk of a pipeline's model.
struct Chunk {
  Claims claims;
  double slack = 0; ///< seconds of a micro-batch
  size_t at = 0, slackAt = 0;
};

/// Tasks of a stage, both ends included.
struct PathPart {
  int64_t stage = 0, first = 0, last = 0;
  size_t at = 0;
};

/// Tasks that wait for each other, and what they count for in the bound.
struct Path {
  double weight = 0;
  std::vector<PathPart> parts;
  size_t at = 0;
};

/// A task of a stage, which has a part of the price of bytes.
struct PricedTask {
  int64_t task = 0;
  double weight = 0;
  size_t at = 0;
};

/// The plans of a pipeline.
struct Pipeline {
  int64_t stages = 1, virtualStages = 1, microBatches = 1, budget = 0;
  /// All forward tasks come before all backward ones.
  bool isGPipe = false;
  bool isInterleaved = false;
  /// Micro-batches that go through all chunks of a stage before others begin.
  int64_t group = 1;
  std::vector<int64_t> base; ///< of each stage
  /// Of each stage, what its program takes beyond that and its chunks.
  std::vector<int64_t> beside;
  double span = 0, bound = 0;
  size_t spanAt = 0, boundAt = 0;
  std::vector<Chunk> chunks; ///< in the order of the model
  std::vector<Path> paths;
  /// Of each stage; without them, a stage needs the sum of what its chunks do,
  /// each at the task at which it has most in flight.
  std::optional<std::vector<std::vector<PricedTask>>> pricedTasks;
};

std::optional<Fault> readPipeline(const Json &value, Pipeline &pipeline);

/// Each chunk, what is in flight of it, what stages need, and how long the
/// schedule takes.
std::optional<Fault> checkPipeline(Pipeline &pipeline,
                                   CertificateFigures &figures);

/// Whether two times are the same but for rounding; `scale` is the size of what
/// was added up for them.
bool isNear(double left, double right, double scale);

/// "0.00123 s"
std::string formatSeconds(double seconds);

/// Two times that are not the same, with as many digits as it takes to see it.
std::pair<std::string, std::string> formatSeconds(double left, double right);

} // namespace reprise::verify

#endif // REPRISE_MEMPLAN_CLAIMS_H
