//===- Layers.cpp - A step as a chain of layers ---------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layers.h"

#include "reprise/Solver/Budget.h"

#include <algorithm>
#include <map>
#include <set>

using namespace reprise::solver;

//===----------------------------------------------------------------------===//
// Chains
//===----------------------------------------------------------------------===//

std::optional<Chain> Chain::find(const StepGraph &graph, std::string &why) {
  Chain chain(graph);
  chain.writer.assign(graph.values.size(), -1);
  chain.blockOf.assign(graph.values.size(), -1);
  chain.readers.resize(graph.values.size());
  chain.blockOfOp.assign(graph.ops.size(), -1);
  for (size_t index = 0; index < graph.ops.size(); ++index) {
    for (int64_t value : graph.ops[index].writes)
      chain.writer[value] = index;
    for (int64_t value : graph.ops[index].reads)
      if (chain.readers[value].empty() ||
          chain.readers[value].back() != int64_t(index))
        chain.readers[value].push_back(index);
  }
  if (!chain.assignBlocks(why) || !chain.checkReaders(why))
    return std::nullopt;
  return chain;
}

/// By layer: the last of its ops in a phase.
static std::map<int64_t, int64_t> findLast(const StepGraph &graph,
                                           StepPhase phase) {
  std::map<int64_t, int64_t> last;
  for (size_t index = 0; index < graph.ops.size(); ++index)
    if (graph.ops[index].phase == phase && graph.ops[index].layer >= 0)
      last[graph.ops[index].layer] = index;
  return last;
}

/// The layers before whose backward passes, and behind those of the next ones,
/// ops of no layer run: those of a head, beside which layers behind it predict
/// further tokens.
static std::set<int64_t> findHeads(const StepGraph &graph) {
  std::set<int64_t> heads;
  bool isOutside = false;
  int64_t last = -1; // the layer before, as backward runs
  for (const StepOp &op : graph.ops) {
    if (op.phase != StepPhase::Backward)
      continue;
    if (op.layer >= 0 && op.layer < last && isOutside)
      heads.insert(op.layer);
    isOutside = op.layer < 0;
    last = isOutside ? last : op.layer;
  }
  return heads;
}

bool Chain::assignForward(std::string &why) {
  std::map<int64_t, int64_t> last = findLast(graph, StepPhase::Forward);
  std::set<int64_t> heads = findHeads(graph);
  if (!last.empty())
    heads.insert(last.rbegin()->first);
  blocks.push_back({-1, {}, {}});
  int64_t above = -1;
  for (size_t index = 0; index < graph.ops.size(); ++index) {
    const StepOp &op = graph.ops[index];
    if (op.phase != StepPhase::Forward)
      break;
    int64_t current = blocks.back().layer;
    if (op.layer > above) {
      blocks.push_back({op.layer, {}, {}});
      above = op.layer;
    } else if (op.layer >= 0 && op.layer != current) {
      why = "op '" + op.name + "' of layer " + std::to_string(op.layer) +
            " comes behind layer " + std::to_string(above);
      return false;
    } else if (op.layer < 0 && current >= 0 && heads.count(current) &&
               int64_t(index) > last[current]) {
      blocks.push_back({-1, {}, {}});
    }
    blockOfOp[index] = blocks.size() - 1;
    blocks.back().forward.push_back(index);
  }
  if (blocks.back().layer >= 0)
    blocks.push_back({-1, {}, {}});
  return true;
}

/// The head, the layers, heads between them, and then what the embedding has.
bool Chain::assignBackward(std::string &why) {
  std::map<int64_t, int64_t> last = findLast(graph, StepPhase::Backward);
  int64_t current = blocks.size() - 1, firstLayered = -1;
  for (auto [layer, index] : last)
    firstLayered = std::max(firstLayered, index);
  for (size_t index = 0; index < graph.ops.size(); ++index) {
    const StepOp &op = graph.ops[index];
    if (op.phase != StepPhase::Backward)
      continue;
    if (int64_t(index) > firstLayered)
      current = 0;
    else if (op.layer < 0 && current > 1 && blocks[current].layer >= 0 &&
             blocks[current - 1].layer < 0 &&
             int64_t(index) > last[blocks[current].layer])
      --current;
    while (op.layer >= 0 && current > 0 && blocks[current].layer != op.layer)
      --current;
    if (op.layer >= 0 && blocks[current].layer != op.layer) {
      why = "op '" + op.name + "' of layer " + std::to_string(op.layer) +
            " comes behind the backward pass of earlier layers";
      return false;
    }
    blockOfOp[index] = current;
    blocks[current].backward.push_back(index);
  }
  return true;
}

bool Chain::assignBlocks(std::string &why) {
  if (!assignForward(why) || !assignBackward(why))
    return false;
  for (size_t value = 0; value < graph.values.size(); ++value)
    if (writer[value] >= 0)
      blockOf[value] = blockOfOp[writer[value]];
  return true;
}

bool Chain::checkReaders(std::string &why) {
  for (size_t value = 0; value < graph.values.size(); ++value) {
    if (writer[value] < 0 ||
        graph.ops[writer[value]].phase != StepPhase::Forward ||
        graph.values[value].rule == StepValue::Rule::Keep)
      continue;
    for (int64_t reader : readers[value])
      if (graph.ops[reader].phase == StepPhase::Update ||
          blockOfOp[reader] < blockOf[value]) {
        why = "op '" + graph.ops[reader].name + "' reads '" +
              graph.values[value].name + "' of a later layer";
        return false;
      }
  }
  return true;
}

void Chain::moveOps(const std::vector<int64_t> &homes,
                    std::vector<int64_t> &ends) {
  std::vector<Block> moved(ends.size(), Block{-1, {}, {}}), all;
  for (Block &block : blocks)
    for (auto ops : {&Block::forward, &Block::backward}) {
      std::vector<int64_t> stay;
      for (int64_t op : block.*ops)
        (homes[op] < 0 ? stay : moved[homes[op]].*ops).push_back(op);
      block.*ops = std::move(stay);
    }
  size_t next = 0;
  for (size_t end = 0; end < ends.size(); ++end) {
    while (int64_t(next) < ends[end])
      all.push_back(std::move(blocks[next++]));
    if (!moved[end].forward.empty() || !moved[end].backward.empty())
      all.push_back(std::move(moved[end]));
    ends[end] = all.size();
  }
  blocks = std::move(all);
  for (size_t block = 0; block < blocks.size(); ++block)
    for (auto ops : {&Block::forward, &Block::backward})
      for (int64_t op : blocks[block].*ops)
        blockOfOp[op] = block;
  for (size_t value = 0; value < graph.values.size(); ++value)
    if (writer[value] >= 0)
      blockOf[value] = blockOfOp[writer[value]];
}

std::vector<Slot> Chain::getSlots(int64_t block) const {
  std::vector<Slot> slots;
  for (size_t op = 0; op < blocks[block].forward.size(); ++op)
    for (size_t w = 0; w < graph.ops[blocks[block].forward[op]].writes.size();
         ++w)
      slots.push_back({int64_t(op), int64_t(w)});
  return slots;
}

int64_t Chain::getLastForwardReader(int64_t value) const {
  int64_t last = -1;
  for (int64_t reader : readers[value])
    if (graph.ops[reader].phase == StepPhase::Forward)
      last = std::max(last, blockOfOp[reader]);
  return last;
}

//===----------------------------------------------------------------------===//
// Excerpts
//===----------------------------------------------------------------------===//

namespace {
class Extractor {
public:
  Extractor(const Chain &chain, int64_t first, int64_t count, bool isStage)
      : chain(chain), first(first), end(first + count), isStage(isStage),
        local(chain.graph.values.size(), -1) {}

  std::optional<Excerpt> run();

private:
  int64_t add(int64_t value);
  void addOp(int64_t op);
  bool isInside(int64_t op) const {
    return chain.blockOfOp[op] >= first && chain.blockOfOp[op] < end;
  }
  bool isOfOtherSum(int64_t value) const;
  bool setRule(int64_t value, StepOp &gap, StepOp &after);
  void addEnds();

  const Chain &chain;
  int64_t first, end;
  bool isStage;
  std::vector<int64_t> local;
  Excerpt excerpt;
};
} // namespace

int64_t Extractor::add(int64_t value) {
  if (local[value] >= 0)
    return local[value];
  // What a value is part of comes along.
  int64_t whole = chain.graph.values[value].whole;
  if (whole >= 0)
    whole = add(whole);
  local[value] = excerpt.values.size();
  excerpt.values.push_back(value);
  excerpt.graph.values.push_back(chain.graph.values[value]);
  StepValue &added = excerpt.graph.values.back();
  added.whole = whole;
  int64_t op = chain.writer[value];
  bool isGradient = op >= 0 && chain.graph.ops[op].phase != StepPhase::Forward;
  if (op >= 0 && isInside(op))
    return local[value];
  added.rule = StepValue::Rule::Keep;
  // A whole that is put together from parts has no writer of its own.
  if (!isGradient && op >= 0 && !isStage)
    added.outlives = true;
  return local[value];
}

void Extractor::addOp(int64_t op) {
  StepOp copy = chain.graph.ops[op];
  for (int64_t &value : copy.reads)
    value = add(value);
  for (int64_t &value : copy.writes)
    value = add(value);
  excerpt.graph.ops.push_back(std::move(copy));
}

/// Whether `value` is a gradient that crosses a border of the stage and is not
/// that of what crosses it forward, between neighbours. The table that
/// embedding and head share has a sum on either stage, so no term of it is
/// passed on, of a head right behind the border neither.
bool Extractor::isOfOtherSum(int64_t value) const {
  int64_t op = chain.writer[value], block = chain.blockOf[value];
  if (!isStage || op < 0 || chain.graph.ops[op].phase != StepPhase::Backward)
    return false;
  int64_t border = isInside(op) ? first : end, next = border - 1;
  // Terms of the loss are behind the layer that it passes on to.
  if (next > 0 && chain.blocks[next].layer < 0)
    --next;
  bool isReadBefore = false, isReadByNext = false;
  for (int64_t reader : chain.readers[value]) {
    int64_t own = chain.blockOfOp[reader];
    isReadBefore |= own >= 0 && own < border;
    isReadByNext |= own >= next && own < border;
  }
  if (block == border)
    return isReadBefore && !isReadByNext;
  return block > border && (isReadBefore || !isInside(op));
}

/// Settles what becomes of `value`, which an op of the excerpt writes.
bool Extractor::setRule(int64_t value, StepOp &gap, StepOp &after) {
  bool isForward =
      chain.graph.ops[chain.writer[value]].phase == StepPhase::Forward;
  int64_t reader = chain.getLastForwardReader(value);
  StepValue &own = excerpt.graph.values[local[value]];
  if (!isForward) {
    // What the update alone reads, sums of squares of gradients, is alive to
    // the end of a step; a stage has no update.
    for (int64_t op : chain.readers[value])
      if (!isInside(op) &&
          !(isStage && chain.graph.ops[op].phase == StepPhase::Update)) {
        after.reads.push_back(local[value]);
        break;
      }
    return true;
  }
  // An op that never runs again reads it once, before backward begins.
  bool isReadAbove = false;
  for (int64_t op : chain.readers[value])
    isReadAbove |= chain.blockOfOp[op] >= end &&
                   (chain.graph.ops[op].isReplayable ||
                    chain.graph.ops[op].phase == StepPhase::Backward);
  if (isStage)
    return true;
  if (isReadAbove) {
    if (own.rule == StepValue::Rule::Drop)
      return false;
    own.rule = StepValue::Rule::Keep;
    gap.reads.push_back(local[value]);
  } else if (reader > chain.blockOf[value] && reader < end) {
    if (own.rule == StepValue::Rule::Keep)
      return false;
    own.rule = StepValue::Rule::Drop;
  }
  return true;
}

/// What comes from an earlier stage, and what goes to the next.
void Extractor::addEnds() {
  StepOp receive, send;
  receive.name = "receive";
  receive.isReplayable = false;
  send.name = kSendName;
  send.isReplayable = false;
  for (size_t v = 0; v < excerpt.values.size(); ++v) {
    int64_t value = excerpt.values[v], op = chain.writer[value];
    if (op < 0 || chain.graph.ops[op].phase != StepPhase::Forward)
      continue;
    if (!isInside(op))
      receive.writes.push_back(v);
    else if (chain.getLastForwardReader(value) >= end)
      send.reads.push_back(v);
  }
  std::vector<StepOp> &ops = excerpt.graph.ops;
  ops.insert(ops.begin() + excerpt.gap, std::move(send));
  ops.insert(ops.begin(), std::move(receive));
  excerpt.gap += 2;
}

std::optional<Excerpt> Extractor::run() {
  excerpt.graph.alignment = chain.graph.alignment;
  for (int64_t block = first; block < end; ++block)
    for (int64_t op : chain.blocks[block].forward)
      addOp(op);
  StepOp gap, after;
  gap.name = "gap";
  after.name = kAfterName;
  gap.phase = after.phase = StepPhase::Backward;
  excerpt.gap = excerpt.graph.ops.size();
  excerpt.graph.ops.push_back({});
  for (int64_t block = end - 1; block >= first; --block)
    for (int64_t op : chain.blocks[block].backward)
      addOp(op);

  for (size_t v = 0; v < excerpt.values.size(); ++v) {
    int64_t value = excerpt.values[v], op = chain.writer[value];
    if (op < 0)
      continue;
    if (isOfOtherSum(value)) {
      excerpt.graph.values[v].outlives = true;
    } else if (isInside(op)) {
      if (!setRule(value, gap, after))
        return std::nullopt;
    } else if (chain.graph.ops[op].phase != StepPhase::Forward) {
      gap.writes.push_back(v);
    }
  }
  excerpt.graph.ops[excerpt.gap] = std::move(gap);
  excerpt.graph.ops.push_back(std::move(after));
  if (isStage)
    addEnds();
  return std::move(excerpt);
}

std::optional<Excerpt> reprise::solver::extract(const Chain &chain,
                                                int64_t first, int64_t count) {
  return Extractor(chain, first, count, /*isStage=*/false).run();
}

Excerpt reprise::solver::extractStage(const Chain &chain, int64_t first,
                                      int64_t count) {
  Excerpt stage = *Extractor(chain, first, count, /*isStage=*/true).run();
  stage.graph.microBatches = chain.graph.microBatches;
  return stage;
}

std::string Excerpt::getKey() const {
  std::string key;
  auto put = [&](const auto &number) {
    key.append(reinterpret_cast<const char *>(&number), sizeof number);
  };
  put(graph.values.size());
  for (const StepValue &value : graph.values) {
    put(value.bytes);
    put(int64_t(value.rule));
    put(int64_t(value.outlives) * 4 + value.isReturned * 2 + value.isView);
    put(value.whole);
  }
  put(gap);
  for (const StepOp &op : graph.ops) {
    put(op.seconds);
    put(op.workspace);
    put(int64_t(op.phase) * 2 + op.isReplayable);
    for (const std::vector<int64_t> *list : {&op.reads, &op.writes}) {
      put(list->size());
      for (int64_t value : *list)
        put(value);
    }
    put(op.sharing.size());
    for (const StepOp::Sharing &pair : op.sharing) {
      put(pair.read);
      put(pair.write);
      put(int64_t(pair.isForced));
    }
  }
  return key;
}
