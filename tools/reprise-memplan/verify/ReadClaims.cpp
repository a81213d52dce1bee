//===- ReadClaims.cpp - From JSON to claims -------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Claims.h"
#include "Reader.h"

#include <unordered_map>

using namespace reprise::verify;

/// Bytes beyond this are refused, so that sums over a list, which has a quarter
/// million elements at most, do not overflow.
static constexpr int64_t kMost = int64_t(1) << 44;

namespace {
/// Numbers by name.
class Names {
public:
  explicit Names(const char *what) : what(what) {}

  void add(Reader &reader, const std::string &name, size_t at) {
    if (!numbers.emplace(name, numbers.size()).second)
      reader.fail(at, std::string(what) + " '" + name + "' is there twice");
  }
  std::optional<int64_t> find(const std::string &name) const {
    auto found = numbers.find(name);
    if (found == numbers.end())
      return std::nullopt;
    return found->second;
  }
  int64_t get(Reader &reader, const Json &value) const {
    std::string name = reader.readText(value);
    std::optional<int64_t> number = find(name);
    if (!number)
      reader.fail(value.at,
                  std::string("there is no ") + what + " '" + name + "'");
    return number.value_or(0);
  }

private:
  const char *what;
  std::unordered_map<std::string, int64_t> numbers;
};

/// What later objects of a class, or layers of it, are read with.
struct ClassNames {
  Names inputs{"input"}, tensors{"tensor"}, ops{"op"};
};
} // namespace

static Reads readReads(Reader &reader, const Json &value,
                       const ClassNames &names) {
  Reads reads;
  for (const Json &element : reader.readList(value)) {
    std::string name = reader.readText(element);
    if (auto input = names.inputs.find(name))
      reads.inputs.push_back(*input);
    else
      reads.tensors.push_back(names.tensors.get(reader, element));
  }
  return reads;
}

static Tensor readTensor(Reader &reader, const Json &value) {
  Object object(reader, value, {"name", "bytes", "rule"});
  Tensor tensor;
  tensor.at = value.at;
  tensor.name = reader.readText(object.get("name"));
  tensor.bytes = reader.readInteger(object.get("bytes"), 0, kMost, "bytes");
  if (const Json *rule = object.find("rule"))
    tensor.rule =
        reader.readWord(*rule, {"keep", "drop"}) ? Rule::Drop : Rule::Keep;
  return tensor;
}

static Op readOp(Reader &reader, const Json &value, int64_t number,
                 const ClassNames &names, std::vector<Tensor> &tensors) {
  Object object(reader, value, {"name", "seconds", "reads", "writes"});
  Op op;
  op.at = value.at;
  op.name = reader.readText(object.get("name"));
  if (const Json *seconds = object.find("seconds")) {
    op.canReplay = true;
    op.seconds = reader.readSeconds(*seconds);
  }
  op.reads = readReads(reader, object.get("reads"), names);
  for (int64_t read : op.reads.tensors)
    if (!reader.fault && tensors[read].writer < 0)
      reader.fail(value.at, "op '" + op.name + "' reads '" +
                                tensors[read].name +
                                "', which no op before it writes");
  for (const Json &element : reader.readList(object.get("writes"))) {
    int64_t tensor = names.tensors.get(reader, element);
    if (reader.fault)
      break;
    if (tensors[tensor].writer >= 0)
      reader.fail(element.at,
                  "tensor '" + element.text + "' is written by two ops");
    tensors[tensor].writer = number;
    op.writes.push_back(tensor);
  }
  return op;
}

static Class readClass(Reader &reader, const Json &value, ClassNames &names) {
  Object object(reader, value,
                {"name", "inputs", "tensors", "ops", "backward"});
  Class kind;
  kind.at = value.at;
  kind.name = reader.readText(object.get("name"));
  for (const Json &input : reader.readList(object.get("inputs"))) {
    kind.inputs.push_back(reader.readText(input));
    names.inputs.add(reader, kind.inputs.back(), input.at);
  }
  for (const Json &element : reader.readList(object.get("tensors"))) {
    kind.tensors.push_back(readTensor(reader, element));
    const std::string &name = kind.tensors.back().name;
    names.tensors.add(reader, name, element.at);
    if (names.inputs.find(name))
      reader.fail(element.at, "'" + name + "' is an input and a tensor");
  }
  for (const Json &element : reader.readList(object.get("ops"))) {
    kind.ops.push_back(
        readOp(reader, element, kind.ops.size(), names, kind.tensors));
    names.ops.add(reader, kind.ops.back().name, element.at);
  }
  for (const Tensor &tensor : kind.tensors)
    if (tensor.writer < 0)
      reader.fail(tensor.at, "no op writes tensor '" + tensor.name + "'");
  for (const Json &element : reader.readList(object.get("backward"))) {
    Object op(reader, element, {"name", "reads", "bytes"});
    Gradient gradient;
    gradient.at = element.at;
    gradient.name = reader.readText(op.get("name"));
    gradient.reads = readReads(reader, op.get("reads"), names);
    gradient.bytes = reader.readInteger(op.get("bytes"), 0, kMost, "bytes");
    kind.backward.push_back(std::move(gradient));
  }
  return kind;
}

/// The two elements of a pair; two empty ones, and a fault, if it is none.
static std::pair<const Json &, const Json &> readPair(Reader &reader,
                                                      const Json &value) {
  static const Json none;
  const std::vector<Json> &elements = reader.readList(value);
  if (elements.size() == 2)
    return {elements[0], elements[1]};
  reader.fail(value.at,
              "needs a list of 2, but got " + std::to_string(elements.size()));
  return {none, none};
}

static std::vector<Ref> readNames(Reader &reader, const Json &value,
                                  const Names &names) {
  std::vector<Ref> refs;
  for (const Json &element : reader.readList(value)) {
    Ref ref = {names.get(reader, element), element.at};
    for (const Ref &other : refs)
      if (other.index == ref.index)
        reader.fail(element.at, "'" + element.text + "' is there twice");
    refs.push_back(ref);
  }
  return refs;
}

static Layer readLayer(Reader &reader, const Json &value, const Claims &claims,
                       const std::vector<ClassNames> &names) {
  Object object(
      reader, value,
      {"name", "class", "in_flight", "inputs", "keeps", "replays", "minimum"});
  Layer layer;
  layer.at = value.at;
  layer.name = reader.readText(object.get("name"));
  layer.kind = reader.readInteger(object.get("class"), 0,
                                  int64_t(names.size()) - 1, "a class");
  layer.inFlight =
      reader.readInteger(object.get("in_flight"), 1, 1 << 20, "micro-batches");
  const Json &inputs = object.get("inputs");
  for (const Json &element : reader.readList(inputs)) {
    auto [from, tensor] = readPair(reader, element);
    Source source;
    source.layer = reader.readInteger(
        from, 0, int64_t(claims.layers.size()) - 1, "an earlier layer");
    if (!reader.fault)
      source.tensor =
          names[claims.layers[source.layer].kind].tensors.get(reader, tensor);
    layer.inputs.push_back(source);
  }
  if (reader.fault)
    return layer;
  size_t wanted = claims.classes[layer.kind].inputs.size();
  if (layer.inputs.size() != wanted)
    reader.fail(inputs.at, "needs " + std::to_string(wanted) +
                               " inputs, one for each of its class, but got " +
                               std::to_string(layer.inputs.size()));
  layer.keeps =
      readNames(reader, object.get("keeps"), names[layer.kind].tensors);
  layer.replays =
      readNames(reader, object.get("replays"), names[layer.kind].ops);
  const Json &minimum = object.get("minimum");
  layer.minimum = reader.readSeconds(minimum);
  layer.minimumAt = minimum.at;
  return layer;
}

static Buffer readBuffer(Reader &reader, const Json &value, size_t count) {
  Object object(reader, value,
                {"name", "bytes", "alignment", "offset", "in_place_of"});
  Buffer buffer;
  buffer.at = value.at;
  buffer.name = reader.readText(object.get("name"));
  buffer.bytes = reader.readInteger(object.get("bytes"), 0, kMost, "bytes");
  buffer.alignment =
      reader.readInteger(object.get("alignment"), 1, 1 << 30, "an alignment");
  buffer.offset =
      reader.readInteger(object.get("offset"), 0, kMost, "an offset");
  if (const Json *other = object.find("in_place_of"))
    buffer.inPlaceOf =
        Ref{reader.readInteger(*other, 0, int64_t(count) - 1, "a buffer"),
            other->at};
  return buffer;
}

static Launch readLaunch(Reader &reader, const Json &value,
                         const Claims &claims,
                         const std::vector<ClassNames> &names) {
  Object object(
      reader, value,
      {"name", "phase", "seconds", "replays", "reads", "writes", "bytes"});
  Launch launch;
  launch.at = value.at;
  launch.name = reader.readText(object.get("name"));
  launch.isUpdate = reader.readWord(object.get("phase"), {"step", "update"});
  launch.seconds = reader.readSeconds(object.get("seconds"));
  for (const Json &element : reader.readList(object.get("replays"))) {
    auto [layer, op] = readPair(reader, element);
    ReplayRef replay;
    replay.at = element.at;
    replay.layer = reader.readInteger(
        layer, 0, int64_t(claims.layers.size()) - 1, "a layer");
    if (!reader.fault)
      replay.op = names[claims.layers[replay.layer].kind].ops.get(reader, op);
    launch.replays.push_back(replay);
  }
  auto readBuffers = [&](const char *key) {
    std::vector<Ref> refs;
    for (const Json &element : reader.readList(object.get(key)))
      refs.push_back(
          {reader.readInteger(element, 0, int64_t(claims.buffers.size()) - 1,
                              "a buffer"),
           element.at});
    return refs;
  };
  launch.reads = readBuffers("reads");
  launch.writes = readBuffers("writes");
  launch.bytes = reader.readInteger(object.get("bytes"), 0, INT64_MAX, "bytes");
  return launch;
}

static PricedPoint readPoint(Reader &reader, const Json &value,
                             const Claims &claims) {
  Object object(reader, value,
                {"layer", "gradient", "position", "seconds_per_byte"});
  PricedPoint point;
  point.at = value.at;
  int64_t numLayers = claims.layers.size();
  point.layer =
      reader.readInteger(object.get("layer"), 0, numLayers, "a layer");
  int64_t last = 0;
  if (!reader.fault && point.layer < numLayers)
    last = int64_t(claims.classOf(point.layer).backward.size()) - 1;
  point.gradient =
      reader.readInteger(object.get("gradient"), 0, last, "an op of backward");
  point.position =
      reader.readInteger(object.get("position"), 0,
                         int64_t(claims.schedule.size()) - 1, "a position");
  point.secondsPerByte = reader.readSeconds(object.get("seconds_per_byte"));
  return point;
}

/// What the certificate is of, and the figures that it certifies.
static void readFigures(Reader &reader, const Object &object, Claims &claims) {
  reader.readInteger(object.get("version"), 2, 2, "a version");
  claims.model = reader.readText(object.get("model"));
  claims.machine = reader.readText(object.get("machine"));
  if (const Json *under = object.find("under"))
    claims.under = reader.readText(*under);
  claims.isOfActivations =
      reader.readWord(object.get("kind"), {"memory", "activations"});
  claims.budget =
      reader.readInteger(object.get("budget_bytes"), 0, INT64_MAX, "bytes");
  claims.base = reader.readInteger(object.get("base_bytes"), 0, kMost, "bytes");
  claims.peak =
      reader.readInteger(object.get("peak_bytes"), 0, INT64_MAX, "bytes");
  claims.microBatches = reader.readInteger(object.get("micro_batches"), 1,
                                           1 << 30, "micro-batches");
  auto readTotal = [&](const char *key, double &seconds, size_t &at) {
    const Json &total = object.get(key);
    seconds = reader.readSeconds(total);
    at = total.at;
  };
  claims.peakAt = object.get("peak_bytes").at;
  readTotal("step_seconds", claims.step, claims.stepAt);
  readTotal("replay_seconds", claims.replay, claims.replayAt);
  readTotal("lower_bound_seconds", claims.bound, claims.boundAt);
}

std::optional<Fault> reprise::verify::readClaims(const Json &value,
                                                 Claims &claims) {
  Reader reader;
  Object object(reader, value,
                {"version", "model", "machine", "under", "kind", "budget_bytes",
                 "base_bytes", "peak_bytes", "micro_batches", "step_seconds",
                 "replay_seconds", "lower_bound_seconds", "classes", "layers",
                 "buffers", "schedule", "moments"});
  readFigures(reader, object, claims);
  std::vector<ClassNames> names;
  for (const Json &element : reader.readList(object.get("classes"))) {
    names.emplace_back();
    claims.classes.push_back(readClass(reader, element, names.back()));
  }
  for (const Json &element : reader.readList(object.get("layers")))
    claims.layers.push_back(readLayer(reader, element, claims, names));
  const Json &buffers = object.get("buffers");
  for (const Json &element : reader.readList(buffers))
    claims.buffers.push_back(
        readBuffer(reader, element, buffers.elements.size()));
  for (const Json &element : reader.readList(object.get("schedule")))
    claims.schedule.push_back(readLaunch(reader, element, claims, names));
  for (const Json &element : reader.readList(object.get("moments")))
    claims.points.push_back(readPoint(reader, element, claims));
  if (claims.layers.empty())
    reader.fail(value.at, "needs a layer");
  if (claims.schedule.empty())
    reader.fail(value.at, "needs a schedule");
  return reader.fault;
}
