//===- MemoryProfile.h - What is alive, when --------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_REPORT_MEMORYPROFILE_H
#define REPRISE_REPORT_MEMORYPROFILE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "reprise/Interfaces/CostTable.h"
#include "llvm/ADT/StringMap.h"
#include <string>
#include <vector>

namespace reprise::report {
/// Positions in a schedule, both ends included; empty if `last < first`.
struct Interval {
  int64_t first, last, bytes;
};

/// Where in a step something runs.
enum class Phase { Forward, Replay, Backward, Update };

/// A launch or GEMM of a schedule.
struct Position {
  std::string name; ///< "layer3.mlp.u@replay"
  /// The names of the ops that make the outputs.
  std::vector<std::string> makers;
  Phase phase;
  Workload load;
  /// The number of what it only begins, or waits for; -1: neither.
  int64_t begins = -1, waits = -1;
  bool isOnce = false; ///< In the last micro-batch of a step alone.

  bool runsOnce() const { return isOnce || phase == Phase::Update; }
};

/// What a value that lives within a step is there for.
enum class Role {
  Kept,      ///< from forward, for backward
  Forward,   ///< from forward, for forward
  Replayed,  ///< computed again
  Gradient,  ///< made by backward
  Update,    ///< made by the optimizer
  Workspace, ///< panels of a GEMM
  Written,   ///< gradients of parameters, from where they are made to the end
};
constexpr size_t kNumRoles = 7;
/// "kept for backward", "replayed", ...
llvm::StringRef stringifyRole(Role role);

/// A piece of the arena, and the positions at which a value has it.
struct Block {
  int64_t offset, bytes;
  int64_t first, last; ///< both included
  Role role;
  int64_t writer;  ///< position
  unsigned output; ///< of the writer
};

/// The bytes that live within a step, at each position of its schedule.
class MemoryProfile {
public:
  /// Where a buffer is written and read, in order.
  struct Accesses {
    int64_t bytes;
    std::vector<int64_t> positions;

    /// The longest time between two accesses.
    Interval getLongestGap() const;
  };

  MemoryProfile() = default;

  /// Of `step` in buffer form; what lies in the arena before `begin` outlives
  /// the step.
  MemoryProfile(mlir::func::FuncOp step, int64_t begin);

  int64_t getNumPositions() const { return live.size(); }
  const std::vector<Position> &getPositions() const { return positions; }
  /// What lies in the arena from where nothing outlives the step, in the order
  /// of the schedule.
  const std::vector<Block> &getBlocks() const { return blocks; }
  int64_t getPeak() const { return peak; }
  int64_t getPeakPosition() const { return peakPosition; }
  /// The name of the launch or GEMM there.
  llvm::StringRef getPeakName() const { return positions[peakPosition].name; }
  const std::vector<int64_t> &getLive() const { return live; }

  /// Whether what ranks have begun runs beside launches, as it does on GPUs;
  /// processors do it when they wait for it.
  bool runsBeside() const { return isBeside; }

  /// The most bytes of a role that are alive at one time.
  int64_t getMost(Role role) const;

  /// The outputs of the op of this name, in order, whether it is a launch or
  /// GEMM by itself or one of those of a launch; none if there is no such
  /// op.
  llvm::ArrayRef<Accesses> getOutputs(llvm::StringRef op) const;

  /// The positions of all launches that are of this name or that an op of this
  /// name is part of.
  llvm::ArrayRef<int64_t> getLaunches(llvm::StringRef op) const;

  /// Another way to run the step: what is alive too, what is not, and which
  /// positions are left out.
  struct Change {
    std::vector<Interval> added, removed;
    std::vector<int64_t> skipped;

    void append(const Change &other);
  };

  /// By how many bytes `change` changes the peak.
  int64_t getPeakChange(const Change &change) const;

private:
  std::vector<int64_t> live;
  std::vector<Position> positions;
  std::vector<Block> blocks;
  llvm::StringMap<std::vector<Accesses>> outputs;
  llvm::StringMap<std::vector<int64_t>> launches;
  int64_t peak = 0, peakPosition = 0;
  bool isBeside = false;
};
} // namespace reprise::report

#endif // REPRISE_REPORT_MEMORYPROFILE_H
