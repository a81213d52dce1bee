//===- Layers.h - A step as a chain of layers -------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Most steps are chains: layer after layer forward, and back in the other
// order. Then what a layer keeps matters to the others by its bytes alone, and
// a layer can be looked at by itself, as an excerpt of the step.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_SOLVER_LAYERS_H
#define REPRISE_LIB_SOLVER_LAYERS_H

#include "reprise/Solver/StepGraph.h"

namespace reprise::solver {

/// Neighbours of the forward pass, and their part of the backward pass.
struct Block {
  /// -1: what comes before the first, or behind the last; or a head between
  /// two, behind which layers predict further tokens.
  int64_t layer;
  std::vector<int64_t> forward, backward; ///< ops, in order
};

/// A result of the forward pass of a block: an op, by its place in the block,
/// and which of its results. The same in all blocks of a kind.
struct Slot {
  int64_t op, write;
};

/// A graph as a chain of blocks: embedding, layers, heads.
class Chain {
public:
  /// Nothing, and in `why` a reason with numbers, if `graph` is no chain: if
  /// its ops are not in the order of layers, or a value is read by backward of
  /// an earlier block than makes it.
  static std::optional<Chain> find(const StepGraph &graph, std::string &why);

  const StepGraph &graph;
  std::vector<Block> blocks;
  /// By value: the op that writes it, -1 for none, and the block of that.
  std::vector<int64_t> writer, blockOf;
  /// By value: the ops that read it.
  std::vector<std::vector<int64_t>> readers;
  /// By op: its block, -1 in the update.
  std::vector<int64_t> blockOfOp;

  /// All results of the forward pass of a block.
  std::vector<Slot> getSlots(int64_t block) const;
  int64_t getValue(int64_t block, Slot slot) const {
    return graph.ops[blocks[block].forward[slot.op]].writes[slot.write];
  }
  /// The last block that reads `value`, of the forward pass, there.
  int64_t getLastForwardReader(int64_t value) const;

  /// Takes the ops of no layer whose home is one of `ends` out of their block,
  /// into one of their own behind the blocks up to there. By op: its home, a
  /// number of `ends`, or -1. `ends` of blocks, ascending, are renewed.
  void moveOps(const std::vector<int64_t> &homes, std::vector<int64_t> &ends);

private:
  explicit Chain(const StepGraph &graph) : graph(graph) {}
  bool assignForward(std::string &why);
  bool assignBackward(std::string &why);
  bool assignBlocks(std::string &why);
  bool checkReaders(std::string &why);
};

/// Some blocks of a chain as a step of their own: their forward passes, an op
/// `gap` in place of all that runs between, their backward passes. What comes
/// from outside is there for nothing, but for gradients, which `gap` writes;
/// what goes outside from backward, also to the update, is alive to the end.
struct Excerpt {
  StepGraph graph;
  std::vector<int64_t> values; ///< of the chain's graph, by value
  int64_t gap = 0;             ///< an op

  /// Equal for excerpts that differ in names only.
  std::string getKey() const;
};

/// What other blocks of the forward pass read is kept, but for what only blocks
/// of the excerpt read; that becomes `Drop`. Nothing, if that may not be
/// dropped, or something else may not be kept.
std::optional<Excerpt> extract(const Chain &chain, int64_t first,
                               int64_t count);

/// The blocks as the step of a pipeline's stage: an op `receive` writes what
/// enters, and `send` reads what leaves, which is then the next stage's.
Excerpt extractStage(const Chain &chain, int64_t first, int64_t count);

} // namespace reprise::solver

#endif // REPRISE_LIB_SOLVER_LAYERS_H
