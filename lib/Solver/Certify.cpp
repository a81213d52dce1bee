//===- Certify.cpp - A plan's certificate from its step -------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bound.h"
#include "LayerPlans.h"
#include "reprise/Solver/Budget.h"

#include <algorithm>
#include <set>

using namespace reprise::solver;

namespace {
/// Writes a step as classes and layers.
class Certifier {
public:
  Certifier(const StepGraph &graph, const KeptValues &kept, int64_t inFlight,
            Certificate &certificate)
      : graph(graph), kept(kept), inFlight(inFlight), certificate(certificate),
        writer(graph.values.size(), -1), blockOfOp(graph.ops.size(), -1),
        names(graph.values.size()), opNames(graph.ops.size()) {}

  void run(std::optional<double> price);

private:
  /// The blocks of a chain, or all of the step as one.
  void findBlocks();
  void nameAll();
  std::string getName(int64_t block) const;
  std::vector<int64_t> getTensors(int64_t value) const;
  bool isForward(int64_t op) const {
    return graph.ops[op].phase == StepPhase::Forward;
  }
  void addLayer(int64_t block);
  void addClass(int64_t block, const std::vector<int64_t> &inputs);
  std::vector<int64_t> getInputs(int64_t block) const;
  void setTimes();
  void setBytes();
  std::vector<PricedPoint> placeMoments() const;

  const StepGraph &graph;
  const KeptValues &kept;
  int64_t inFlight;
  Certificate &certificate;
  std::vector<Block> blocks;
  std::vector<int64_t> kindOf; ///< class of each block
  std::vector<int64_t> writer, blockOfOp;
  std::vector<std::string> names, opNames; ///< within their class
  std::vector<bool> isReplayed;            ///< ops
  std::vector<bool> isRead, isNeeded; ///< values: by backward or replays; by it
  std::vector<int64_t> positionOf;    ///< of ops, replays left out
};
} // namespace

void Certifier::findBlocks() {
  std::string why;
  if (std::optional<Chain> chain = Chain::find(graph, why)) {
    LayerPlans plans(*chain);
    for (size_t block = 0; block < chain->blocks.size(); ++block)
      kindOf.push_back(plans.getKind(block));
    blocks = chain->blocks;
  } else {
    blocks.push_back({-1, {}, {}});
    kindOf.push_back(0);
    for (size_t op = 0; op < graph.ops.size(); ++op)
      if (graph.ops[op].phase != StepPhase::Update)
        (isForward(op) ? blocks[0].forward : blocks[0].backward).push_back(op);
  }
  for (size_t block = 0; block < blocks.size(); ++block)
    for (const std::vector<int64_t> *ops :
         {&blocks[block].forward, &blocks[block].backward})
      for (int64_t op : *ops)
        blockOfOp[op] = block;
  for (size_t op = 0; op < graph.ops.size(); ++op)
    for (int64_t value : graph.ops[op].writes)
      writer[value] = op;
}

/// Names without their layer, a number behind those that are there already;
/// blocks of a kind have those of the first of them.
void Certifier::nameAll() {
  for (size_t number = 0; number < blocks.size(); ++number) {
    const Block &block = blocks[number];
    const Block &first =
        blocks[std::find(kindOf.begin(), kindOf.end(), kindOf[number]) -
               kindOf.begin()];
    std::set<std::string> taken;
    auto getUnique = [&](std::string name) {
      std::string unique = name;
      for (int64_t number = 2; !taken.insert(unique).second; ++number)
        unique = name + "." + std::to_string(number);
      return unique;
    };
    std::string prefix = "layer" + std::to_string(block.layer) + ".";
    for (auto ops : {&Block::forward, &Block::backward})
      for (size_t place = 0; place < (block.*ops).size(); ++place) {
        int64_t op = (block.*ops)[place];
        std::string name = graph.ops[op].name;
        if (name.compare(0, prefix.size(), prefix) == 0)
          name = name.substr(prefix.size());
        opNames[op] = &block == &first ? getUnique(name.empty() ? "op" : name)
                                       : opNames[(first.*ops)[place]];
        for (size_t w = 0; w < graph.ops[op].writes.size(); ++w)
          names[graph.ops[op].writes[w]] =
              opNames[op] + (w ? "#" + std::to_string(w) : "");
      }
  }
}

/// "embedding", "layer3", "head"; "layer3.head" is one between layers.
std::string Certifier::getName(int64_t block) const {
  if (blocks[block].layer >= 0)
    return "layer" + std::to_string(blocks[block].layer);
  if (block == 0)
    return "embedding";
  return block + 1 < int64_t(blocks.size()) ? getName(block - 1) + ".head"
                                            : "head";
}

/// The values of the forward pass that are read with `value`.
std::vector<int64_t> Certifier::getTensors(int64_t value) const {
  if (graph.values[value].outlives)
    return {};
  if (writer[value] >= 0)
    return isForward(writer[value]) ? std::vector<int64_t>{value}
                                    : std::vector<int64_t>();
  if (graph.values[value].isView)
    return getTensors(graph.values[value].whole);
  std::vector<int64_t> parts;
  for (size_t part = 0; part < graph.values.size(); ++part)
    if (graph.values[part].whole == value && !graph.values[part].isView)
      for (int64_t tensor : getTensors(part))
        parts.push_back(tensor);
  return parts;
}

/// Tensors of other blocks that `block` reads, each once.
std::vector<int64_t> Certifier::getInputs(int64_t block) const {
  std::vector<int64_t> inputs;
  for (const std::vector<int64_t> *ops :
       {&blocks[block].forward, &blocks[block].backward})
    for (int64_t op : *ops)
      for (int64_t read : graph.ops[op].reads)
        for (int64_t tensor : getTensors(read))
          if (blockOfOp[writer[tensor]] != block &&
              !std::count(inputs.begin(), inputs.end(), tensor))
            inputs.push_back(tensor);
  return inputs;
}

void Certifier::addClass(int64_t block, const std::vector<int64_t> &inputs) {
  CertifiedClass kind;
  kind.name = blocks[block].layer >= 0 ? "layer"
              : block == 0             ? "embedding"
                                       : "head";
  for (const CertifiedClass &other : certificate.classes)
    if (other.name == kind.name) {
      kind.name += "." + std::to_string(certificate.classes.size());
      break;
    }
  for (size_t k = 0; k < inputs.size(); ++k)
    kind.inputs.push_back("input" + std::to_string(k));
  auto getReads = [&](int64_t op) {
    std::vector<std::string> reads;
    for (int64_t read : graph.ops[op].reads)
      for (int64_t tensor : getTensors(read)) {
        auto input = std::find(inputs.begin(), inputs.end(), tensor);
        std::string name = input == inputs.end()
                               ? names[tensor]
                               : kind.inputs[input - inputs.begin()];
        if (!std::count(reads.begin(), reads.end(), name))
          reads.push_back(name);
      }
    return reads;
  };
  for (int64_t op : blocks[block].forward) {
    const StepOp &own = graph.ops[op];
    CertifiedOp added = {
        opNames[op], own.seconds, own.isReplayable, getReads(op), {}};
    for (int64_t value : own.writes) {
      if (graph.values[value].outlives)
        continue;
      using Rule = CertifiedTensor::Rule;
      Rule rule = Rule::Free;
      if (graph.values[value].rule == StepValue::Rule::Drop)
        rule = Rule::Drop;
      else if (graph.values[value].rule == StepValue::Rule::Keep &&
               isNeeded[value]) // Whatever the layers of the class replay.
        rule = Rule::Keep;
      kind.tensors.push_back({names[value], graph.values[value].bytes, rule});
      added.writes.push_back(names[value]);
    }
    kind.ops.push_back(std::move(added));
  }
  for (int64_t op : blocks[block].backward)
    kind.backward.push_back({opNames[op], getReads(op), 0});
  certificate.classes.push_back(std::move(kind));
}

void Certifier::addLayer(int64_t block) {
  CertifiedLayer layer;
  layer.name = getName(block);
  layer.kind = kindOf[block];
  layer.inFlight = inFlight;
  for (int64_t tensor : getInputs(block))
    layer.inputs.push_back({blockOfOp[writer[tensor]], names[tensor]});
  for (int64_t op : blocks[block].forward) {
    if (isReplayed[op])
      layer.replays.push_back(opNames[op]);
    for (int64_t value : graph.ops[op].writes)
      if (isRead[value] &&
          (kept[value] || graph.values[value].rule == StepValue::Rule::Keep))
        layer.keeps.push_back(names[value]);
  }
  certificate.layers.push_back(std::move(layer));
}

void Certifier::setTimes() {
  certificate.microBatches = graph.microBatches;
  certificate.stepSeconds = certificate.replaySeconds = 0;
  for (size_t op = 0; op < graph.ops.size(); ++op) {
    bool isUpdate = graph.ops[op].phase == StepPhase::Update;
    certificate.stepSeconds +=
        graph.ops[op].seconds * (isUpdate ? 1 : graph.microBatches);
    if (isReplayed[op])
      certificate.replaySeconds += graph.ops[op].seconds * graph.microBatches;
  }
}

/// What backward hands on is there under any plan; of layers of a class, the
/// least counts.
void Certifier::setBytes() {
  StepSimulator simulator(graph);
  const StepRun &run = simulator.run(keepAll(graph));
  for (CertifiedClass &kind : certificate.classes)
    for (CertifiedGradient &gradient : kind.backward)
      gradient.bytes = -1;
  for (size_t p = 0; p < run.schedule.size(); ++p) {
    int64_t op = run.schedule[p].op;
    if (run.schedule[p].isReplay || graph.ops[op].phase != StepPhase::Backward)
      continue;
    const Block &block = blocks[blockOfOp[op]];
    int64_t number =
        std::find(block.backward.begin(), block.backward.end(), op) -
        block.backward.begin();
    int64_t &bytes =
        certificate.classes[kindOf[blockOfOp[op]]].backward[number].bytes;
    int64_t own = simulator.getGradientBytes(p);
    bytes = bytes < 0 ? own : std::min(bytes, own);
  }
}

/// The points that may have a price, where they are in the schedule.
std::vector<PricedPoint> Certifier::placeMoments() const {
  std::vector<PricedPoint> points = getPricedPoints(certificate);
  for (PricedPoint &point : points)
    if (point.layer < int64_t(blocks.size()))
      point.position = positionOf[blocks[point.layer].backward[point.gradient]];
  // The first is the turn.
  int64_t lastForward = -1;
  for (size_t op = 0; op < graph.ops.size(); ++op)
    if (isForward(op))
      lastForward = op;
  if (lastForward < 0)
    points.erase(points.begin());
  else
    points.front().position = positionOf[lastForward];
  return points;
}

void Certifier::run(std::optional<double> price) {
  findBlocks();
  nameAll();
  StepSimulator simulator(graph);
  const StepRun &run = simulator.run(kept);
  isReplayed.assign(graph.ops.size(), false);
  isRead.assign(graph.values.size(), false);
  isNeeded.assign(graph.values.size(), false);
  positionOf.assign(graph.ops.size(), 0);
  for (size_t p = 0; p < run.schedule.size(); ++p) {
    auto [op, isReplay] = run.schedule[p];
    if (isReplay)
      isReplayed[op] = true;
    else
      positionOf[op] = p;
    if (isReplay || graph.ops[op].phase != StepPhase::Forward)
      for (int64_t read : graph.ops[op].reads)
        for (int64_t tensor : getTensors(read)) {
          isRead[tensor] = true;
          if (!isReplay)
            isNeeded[tensor] = true;
        }
  }
  certificate.classes.clear();
  certificate.layers.clear();
  certificate.schedule.clear();
  for (auto [op, isReplay] : run.schedule) {
    const StepOp &own = graph.ops[op];
    CertifiedLaunch launch;
    launch.name = own.name + (isReplay ? "@replay" : "");
    launch.isUpdate = own.phase == StepPhase::Update;
    if (isReplay)
      launch.replays.push_back({blockOfOp[op], opNames[op]});
    else
      launch.seconds = own.seconds;
    certificate.schedule.push_back(std::move(launch));
  }
  // Classes in the order in which layers have them first.
  std::vector<int64_t> classOf;
  for (size_t block = 0; block < blocks.size(); ++block) {
    auto known = std::find(classOf.begin(), classOf.end(), kindOf[block]);
    if (known == classOf.end()) {
      addClass(block, getInputs(block));
      classOf.push_back(kindOf[block]);
      kindOf[block] = classOf.size() - 1;
    } else {
      kindOf[block] = known - classOf.begin();
    }
    addLayer(block);
  }
  setTimes();
  setBytes();
  certificate.candidates = placeMoments();
  certificate.points.clear();
  if (price)
    certificate.points =
        BoundSearch(certificate)
            .findBestWhole(certificate.candidates, std::max(*price, 1e-18));
  computeBound(certificate);
}

void reprise::solver::certify(const StepGraph &graph, const KeptValues &kept,
                              std::optional<double> price,
                              Certificate &certificate, int64_t inFlight) {
  Certifier(graph, kept, inFlight, certificate).run(price);
}
