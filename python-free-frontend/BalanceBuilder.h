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

  /// The term of the loss of all layers together; null if there is none.
  mlir::Value buildModelTerm();
  /// The terms of the loss of each layer by itself, for training alone, if the
  /// description has any: by types, in their order, and then of logits.
  bool hasTerms() const;
  llvm::SmallVector<Measure> buildTerms();
  /// The rows of the experts of each layer, if they are shown, and those that
  /// the terms of the step count.
  llvm::SmallVector<Measure> buildCounts();
  /// What the counts of a layer are shown as.
  static std::string getCountName(int64_t layer) {
    return "layer" + std::to_string(layer);
  }

private:
  /// The sum of `a`, which may be null, and `b`.
  mlir::Value addTerms(llvm::StringRef name, mlir::Value a, mlir::Value b);
  /// How many rows each expert of a layer has, or has with the largest scores.
  mlir::Value countRows(const Routing &routing, llvm::StringRef name);
  mlir::Value countLargest(const Routing &routing, llvm::StringRef name,
                           bool bySequence);
  /// The probabilities of the experts of a layer, added up over tokens.
  mlir::Value sumProbabilities(const Routing &routing);
  mlir::Value buildBalance(const Routing &routing, mlir::Value rows,
                           llvm::StringRef name, double factor);
  /// The terms of a layer: for its balance in the micro-batch or in each
  /// sequence, for that with the rows of the step so far, and of the logits of
  /// its router; and any of them, by what it is shown as.
  mlir::Value buildLayerTerm(const Routing &routing, bool bySequence,
                             double factor);
  mlir::Value buildStepTerm(const Routing &routing, double factor);
  mlir::Value buildLogitsTerm(const Routing &routing);
  mlir::Value buildTerm(const Routing &routing, llvm::StringRef type);

  const Description &description;
  const Model &model;
  const Blocks &blocks;
  ForwardBuilder &forward;
  llvm::SmallVector<Routing> routings;
  llvm::SmallVector<Measure> counted; ///< for terms of the step
};

} // namespace reprise::frontend

#endif // REPRISE_FRONTEND_BALANCEBUILDER_H
