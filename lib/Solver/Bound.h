//===- Bound.h - What a layer costs at a price of bytes ---------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_SOLVER_BOUND_H
#define REPRISE_LIB_SOLVER_BOUND_H

#include "reprise/Solver/Certificate.h"

#include <functional>
#include <unordered_map>

namespace reprise::solver {

/// A class with tensors by number.
struct NumberedClass {
  explicit NumberedClass(const CertifiedClass &kind);

  int64_t getNumber(const std::string &tensor) const {
    auto found = numbers.find(tensor);
    return found == numbers.end() ? -1 : found->second;
  }

  const CertifiedClass &kind;
  std::unordered_map<std::string, int64_t> numbers;
  std::vector<int64_t> writers;   ///< op of each tensor
  std::vector<int64_t> lastReads; ///< op of backward; -1 if none
  /// Tensors of the class that an op of the forward pass, or of the backward
  /// pass, reads, each once.
  std::vector<std::vector<int64_t>> opReads, gradientReads;
};

/// How much the moments make of the bytes of a layer.
struct LayerPrices {
  std::vector<double> kept; ///< for a byte of each tensor that is kept
  double fixed = 0;         ///< of all bytes that no plan spares
};

/// Of a layer, with `inFlight` micro-batches, at `moments`.
LayerPrices getPrices(const NumberedClass &numbered, int64_t layer,
                      int64_t inFlight,
                      const std::vector<CertifiedMoment> &moments);

/// The cheapest choice of what to keep of a layer: seconds of what runs again,
/// and priced bytes.
struct LeastCost {
  double seconds = 0, bytes = 0;
};

/// The choice for which `seconds + times * bytes` is least, if backward reads
/// the tensors `needed`.
LeastCost getLeastCost(const NumberedClass &numbered, const LayerPrices &prices,
                       const std::vector<bool> &needed, double times);

/// Of each layer the tensors that backward reads, in the layer or later ones.
std::vector<std::vector<bool>>
getNeeded(const Certificate &certificate,
          const std::vector<NumberedClass> &classes);

/// The bytes that a budget leaves for what the moments count, beside what is
/// there under any plan.
int64_t getAvailable(const Certificate &certificate,
                     const CertifiedMoment &moment);

/// The moments that may have a price: the turn from forward to backward, and
/// the ops of the last layers to run backward before all others have.
std::vector<CertifiedMoment> getMoments(const Certificate &certificate);

/// What is proven at a price, and the straight line that touches it there.
struct Proof {
  double price, seconds, bytes; ///< bytes less those available

  double getValue() const { return seconds + price * bytes; }
};

/// The summit of what `prove` proves, from `first` on; something no higher than
/// `least` if the summit is not above that. It is a sum of piecewise linear
/// functions of the price, so the best price is found, and not approached.
Proof findSummit(const std::function<Proof(double price)> &prove,
                 const Proof &first, double least);

/// Looks for what proves most.
class BoundSearch {
public:
  /// For the classes, layers and budget of `certificate`, which stays.
  explicit BoundSearch(const Certificate &certificate);

  /// The one of `moments` that proves most, with its price, which may be near
  /// `price`. None if none of them proves anything.
  std::vector<CertifiedMoment>
  findBest(const std::vector<CertifiedMoment> &moments, double price);

  /// What the moments that were found best, for whatever budget, prove for that
  /// of the certificate: seconds of a step.
  double getBound() const;

  /// What a moment proves: the least cost of the layers at a price.
  Proof prove(const CertifiedMoment &moment, double price);

  /// What rules alone ask for, whatever the budget is: seconds of a step.
  double getForced();

private:
  /// Layers that a moment does not tell apart.
  struct Group {
    int64_t kind;
    std::vector<bool> needed;
    int64_t inFlight;
    std::vector<int64_t> layers;
  };

  const Certificate &certificate;
  /// What was found best, bytes with those available.
  std::vector<std::pair<CertifiedMoment, Proof>> found;
  std::vector<NumberedClass> classes;
  std::vector<std::vector<bool>> needed;
  std::vector<Group> groups;
};

} // namespace reprise::solver

#endif // REPRISE_LIB_SOLVER_BOUND_H
