//===- PlanFile.h - Recompute plans as files --------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_REMAT_PLANFILE_H
#define REPRISE_REMAT_PLANFILE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace reprise::remat {
/// A word of a plan file, and where it is.
struct PlanWord {
  std::string text;
  mlir::Location location;
};

/// What happens to some values of some layers. docs/remat.md has the form.
struct PlanRule {
  explicit PlanRule(mlir::Location location) : location(location) {}

  mlir::Location location;
  bool isOutside = false; ///< about what is in no layer, instead of `layers`
  /// First and last layer of ranges; none: all layers.
  std::vector<std::pair<int64_t, int64_t>> layers;
  std::optional<mlir::Location> layersLocation;
  bool isRecompute = false;       ///< or save, or share
  std::string share;              ///< the axis of ranks that share; or empty
  std::vector<PlanWord> values;   ///< names of values, labels, or "all"
  std::vector<PlanWord> except;   ///< the same
  std::optional<int64_t> segment; ///< unset: each layer's own
  std::string label;              ///< for recompute; may be empty
  std::string reason;             ///< for save and share; may be empty
};

struct PlanFile {
  std::string name; ///< may be empty
  /// Layers of the model that it was made for; unset: not said.
  std::optional<int64_t> numLayers;
  std::optional<mlir::Location> layersLocation;
  int64_t stages = 0;          ///< of the pipeline; 0: not said
  std::vector<int64_t> chunks; ///< layers of each
  std::optional<mlir::Location> chunksLocation;
  /// Rows of a chunk of the head, 0 for one that is whole; unset: not said.
  std::optional<int64_t> headRows;
  /// Whether what no rule is about may be dropped by
  /// reprise-remat-annotate-free.
  bool isFree = true;
  /// Whether rules name what moves rows to experts on other ranks; otherwise
  /// that follows what it is made of, or made for.
  bool namesMoves = false;
  /// Whether activations are packed by themselves, as for a budget of them.
  bool putsActivationsFirst = false;
  std::vector<PlanRule> rules;
};

/// Reads a plan file. Fails with at least one diagnostic, `file:line:column`,
/// if it is not to be read, or not a plan; whether it suits a step is checked
/// where it is applied.
mlir::FailureOr<PlanFile> parsePlanFile(llvm::StringRef path,
                                        mlir::MLIRContext *context);

/// Writes the decisions of `step`, its chunks, and the rows of its head, as a
/// plan file called `name`: `reprise-remat-read-plan` makes the same decisions
/// of it. Fails with a diagnostic where two values of a layer have one name and
/// two decisions.
llvm::LogicalResult writePlanFile(mlir::func::FuncOp step, llvm::StringRef name,
                                  llvm::raw_ostream &os,
                                  bool putsActivationsFirst = false);
} // namespace reprise::remat

#endif // REPRISE_REMAT_PLANFILE_H
