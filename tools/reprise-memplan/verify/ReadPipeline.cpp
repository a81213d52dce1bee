//===- ReadPipeline.cpp - Certificates of pipelines, read -----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Reader.h"
#include "Schedule.h"

using namespace reprise::verify;

static std::vector<PricedTask> readPricedTasks(Reader &reader,
                                               const Json &value) {
  std::vector<PricedTask> tasks;
  for (const Json &element : reader.readList(value)) {
    const std::vector<Json> &numbers = reader.readList(element);
    if (numbers.size() != 2)
      reader.fail(element.at, "needs a task and its weight, but got " +
                                  std::to_string(numbers.size()) + " numbers");
    if (reader.fault)
      break;
    PricedTask priced;
    priced.at = element.at;
    priced.task = reader.readInteger(numbers[0], 0, kMostTasks, "a task");
    priced.weight = reader.readSeconds(numbers[1]);
    tasks.push_back(priced);
  }
  return tasks;
}

/// Files of version 3 say at which tasks of each stage bytes have a price.
static std::optional<Fault>
readAllPricedTasks(Reader &reader, const Object &object, Pipeline &pipeline) {
  const Json &version = object.get("version");
  int64_t number = reader.readInteger(version, 2, 3, "a version");
  const Json *tasks = object.find("priced_tasks");
  if (!reader.fault && (number == 3) != (tasks != nullptr))
    return Fault{
        version.at,
        tasks ? "needs version 3 for a pipeline with 'priced_tasks', but "
                "got 2"
              : "needs the 'priced_tasks' of each stage in version 3, "
                "but has none"};
  if (!tasks)
    return std::nullopt;
  pipeline.pricedTasks.emplace();
  for (const Json &element : reader.readList(*tasks))
    pipeline.pricedTasks->push_back(readPricedTasks(reader, element));
  if (!reader.fault && int64_t(pipeline.pricedTasks->size()) != pipeline.stages)
    return Fault{tasks->at, "needs priced tasks of each of " +
                                std::to_string(pipeline.stages) +
                                " stages, but got " +
                                std::to_string(pipeline.pricedTasks->size())};
  return std::nullopt;
}

static Path readPath(Reader &reader, const Json &value, int64_t stages) {
  Object object(reader, value, {"weight", "tasks"});
  const Json &weight = object.get("weight");
  Path path;
  path.at = weight.at;
  path.weight = reader.readSeconds(weight);
  for (const Json &element : reader.readList(object.get("tasks"))) {
    const std::vector<Json> &numbers = reader.readList(element);
    if (numbers.size() != 3)
      reader.fail(element.at,
                  "needs a stage, a first and a last task, but got " +
                      std::to_string(numbers.size()) + " numbers");
    if (reader.fault)
      break;
    PathPart part;
    part.at = element.at;
    part.stage = reader.readInteger(numbers[0], 0, stages - 1, "a stage");
    part.first = reader.readInteger(numbers[1], 0, kMostTasks, "a task");
    part.last = reader.readInteger(numbers[2], 0, kMostTasks, "a task");
    path.parts.push_back(part);
  }
  return path;
}

/// Without a name the order of tasks follows from the virtual stages. A
/// schedule whose gradients of weights have tasks of their own has no
/// certificate: what waits for these is not what a chunk keeps.
static std::optional<Fault> readSchedule(Reader &reader, const Object &object,
                                         Pipeline &pipeline) {
  bool isInterleaved = pipeline.virtualStages > 1;
  if (const Json *name = object.find("schedule")) {
    std::string text = reader.readText(*name);
    bool isKnown = text == "gpipe" || text == "1f1b" || text == "interleaved";
    if (!reader.fault && (!isKnown || (isInterleaved && text != "interleaved")))
      return Fault{name->at,
                   "needs a schedule out of " +
                       std::string(isInterleaved ? "'interleaved'"
                                                 : "'gpipe', '1f1b' and "
                                                   "'interleaved'") +
                       " for " + std::to_string(pipeline.virtualStages) +
                       " virtual stages, but got '" + text + "'"};
    pipeline.isGPipe = text == "gpipe";
    isInterleaved |= text == "interleaved";
  }
  pipeline.isInterleaved = isInterleaved;
  pipeline.group = pipeline.stages;
  if (const Json *group = object.find("micro_batch_group"))
    pipeline.group =
        reader.readInteger(*group, pipeline.stages,
                           std::max(pipeline.stages, pipeline.microBatches),
                           "micro-batches of a group");
  return std::nullopt;
}

/// Bytes of each stage, of which none has more than its budget.
static std::optional<Fault> readOfStages(Reader &reader, const Json &list,
                                         const Pipeline &pipeline,
                                         std::vector<int64_t> &bytes) {
  bytes.clear();
  for (const Json &element : reader.readList(list))
    bytes.push_back(reader.readInteger(element, 0, pipeline.budget, "bytes"));
  if (!reader.fault && int64_t(bytes.size()) != pipeline.stages)
    return Fault{list.at,
                 "needs bytes for each of " + std::to_string(pipeline.stages) +
                     " stages, but got " + std::to_string(bytes.size())};
  return std::nullopt;
}

/// The stages, and what is certified of all of them.
static std::optional<Fault> readFigures(Reader &reader, const Object &object,
                                        Pipeline &pipeline) {
  pipeline.budget =
      reader.readInteger(object.get("budget_bytes"), 0, INT64_MAX, "bytes");
  pipeline.stages =
      reader.readInteger(object.get("stages"), 1, kMostTasks, "stages");
  pipeline.virtualStages = reader.readInteger(object.get("virtual_stages"), 1,
                                              kMostTasks, "virtual stages");
  pipeline.microBatches = reader.readInteger(object.get("micro_batches"), 1,
                                             kMostTasks, "micro-batches");
  if (std::optional<Fault> fault = readSchedule(reader, object, pipeline))
    return fault;
  if (std::optional<Fault> fault = readAllPricedTasks(reader, object, pipeline))
    return fault;
  pipeline.span = reader.readSeconds(object.get("span_seconds"));
  pipeline.bound = reader.readSeconds(object.get("lower_bound_seconds"));
  pipeline.spanAt = object.get("span_seconds").at;
  pipeline.boundAt = object.get("lower_bound_seconds").at;
  if (auto fault = readOfStages(reader, object.get("base_bytes"), pipeline,
                                pipeline.base))
    return fault;
  pipeline.beside.resize(pipeline.base.size());
  if (const Json *beside = object.find("beside_bytes"))
    return readOfStages(reader, *beside, pipeline, pipeline.beside);
  return std::nullopt;
}

static std::optional<Fault> readChunk(Reader &reader, const Json &value,
                                      Chunk &chunk) {
  Object fields(reader, value, {"slack_seconds", "certificate"});
  const Json &slack = fields.get("slack_seconds");
  chunk.slack = reader.readSeconds(slack);
  chunk.at = value.at;
  chunk.slackAt = slack.at;
  const Json &certificate = fields.get("certificate");
  return reader.fault ? reader.fault : readClaims(certificate, chunk.claims);
}

/// One for each virtual stage of each stage.
static std::optional<Fault> readChunks(Reader &reader, const Object &object,
                                       Pipeline &pipeline) {
  const Json &chunks = object.get("chunks");
  const std::vector<Json> &elements = reader.readList(chunks);
  if (reader.fault)
    return reader.fault;
  __int128 wanted = __int128(pipeline.stages) * pipeline.virtualStages;
  if (wanted != __int128(elements.size()))
    return Fault{chunks.at, "needs a chunk for each virtual stage of each "
                            "stage, but got " +
                                std::to_string(elements.size())};
  if (2 * wanted * pipeline.microBatches > kMostTasks)
    return Fault{
        object.get("micro_batches").at,
        "needs at most " + std::to_string(kMostTasks) +
            " tasks, forward and backward of each micro-batch on each "
            "chunk, but got " +
            std::to_string(int64_t(2 * wanted * pipeline.microBatches))};
  for (const Json &element : elements) {
    Chunk chunk;
    if (std::optional<Fault> fault = readChunk(reader, element, chunk))
      return fault;
    pipeline.chunks.push_back(std::move(chunk));
  }
  return std::nullopt;
}

std::optional<Fault> reprise::verify::readPipeline(const Json &value,
                                                   Pipeline &pipeline) {
  Reader reader;
  Object object(reader, value,
                {"version", "kind", "budget_bytes", "base_bytes",
                 "beside_bytes", "stages", "virtual_stages", "micro_batches",
                 "schedule", "micro_batch_group", "span_seconds",
                 "lower_bound_seconds", "chunks", "paths", "priced_tasks"});
  if (std::optional<Fault> fault = readFigures(reader, object, pipeline))
    return fault;
  if (std::optional<Fault> fault = readChunks(reader, object, pipeline))
    return fault;
  for (const Json &element : reader.readList(object.get("paths"))) {
    pipeline.paths.push_back(readPath(reader, element, pipeline.stages));
    if (reader.fault)
      return reader.fault;
  }
  return reader.fault;
}
