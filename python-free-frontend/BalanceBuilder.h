//===- BalanceBuilder.h - What keeps experts in balance ---------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_FRONTEND_BALANCEBUILDER_H
#define REPRISE_FRONTEND_BALANCEBUILDER_H

#include "python-free-frontend/ForwardBuilder.h"

namespace reprise::frontend {
struct Blocks;

/// What is needed of a layer with experts.
struct Routing {
  int64_t layer;
  mlir::Value logits, ids, offsets;
};

/// Builds the terms of the loss that keep experts in balance, and the counts
/// that a bias follows, behind all layers.
class BalanceBuilder {
public:
  BalanceBuilder(ForwardBuilder &forward, const Description &description);

  void add(const Routing &routing) { routings.push_back(routing); }

  /// The terms of the loss that there are: for balance, and of the logits of
  /// routers.
  llvm::SmallVector<Measure> buildTerms();
  /// The term with the rows of the step so far, for training alone, whose value
  /// is null if there is none.
  Measure buildStepTerm();
  /// The rows of the experts of each layer, if they are shown, and those that
  /// the term of the step counts.
  llvm::SmallVector<Measure> buildCounts();
  /// What the counts of a layer are shown as.
  static std::string getCountName(int64_t layer) {
    return "layer" + std::to_string(layer);
  }

private:
  /// The sum of `a`, which may be null, and `b`.
  mlir::Value addTerms(llvm::StringRef name, mlir::Value a, mlir::Value b);
  /// How many rows each expert has in these layers together, or with the
  /// largest scores of one.
  mlir::Value countRows(llvm::ArrayRef<Routing> layers, llvm::StringRef name);
  mlir::Value countLargest(const Routing &routing, llvm::StringRef name);
  mlir::Value buildBalance(llvm::ArrayRef<Routing> layers, mlir::Value rows,
                           llvm::StringRef name, double factor);
  mlir::Value buildAuxiliaryLoss();
  mlir::Value buildLogitsLoss();

  const Description &description;
  const Model &model;
  const Blocks &blocks;
  ForwardBuilder &forward;
  llvm::SmallVector<Routing> routings;
  llvm::SmallVector<Measure> counted; ///< for the term of the step
};

} // namespace reprise::frontend

#endif // REPRISE_FRONTEND_BALANCEBUILDER_H
