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
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <unordered_map>

namespace reprise::solver {

//===----------------------------------------------------------------------===//
// One layer
//===----------------------------------------------------------------------===//

/// Tensors of a class, by number.
using TensorSet = std::vector<bool>;

/// A class with tensors by number.
struct NumberedClass {
  explicit NumberedClass(const CertifiedClass &kind);

  int64_t getNumber(const std::string &tensor) const {
    auto found = numbers.find(tensor);
    return found == numbers.end() ? -1 : found->second;
  }

  const CertifiedClass &kind;
  std::unordered_map<std::string, int64_t> numbers;
  std::vector<int64_t> writers; ///< op of each tensor
  /// Tensors of the class that an op of the forward pass reads, each once.
  std::vector<std::vector<int64_t>> opReads;
};

/// A layer as moments cut the backward pass: into stages, each of which but the
/// last ends with the op of a moment.
struct LayerStages {
  int64_t kind = 0, inFlight = 1;
  std::vector<TensorSet> needed; ///< by stage: what ops of backward read
  std::vector<TensorSet> now;    ///< by moment: what its op reads
  std::vector<double> weights;   ///< by moment: of a byte

  /// Stages before the first that backward reads anything in.
  size_t countIdle() const;

  bool operator<(const LayerStages &other) const {
    return std::tie(kind, inFlight, needed, now, weights) <
           std::tie(other.kind, other.inFlight, other.needed, other.now,
                    other.weights);
  }
};

/// When ops of backward, of whichever layer, read the tensors of each layer.
class BackwardReads {
public:
  BackwardReads(const Certificate &certificate,
                const std::vector<NumberedClass> &classes);

  /// Ops of backward are counted through the whole pass; the turn comes before.
  int64_t getTime(const CertifiedMoment &moment) const;

  /// The stages of a layer between `moments`, in any order; with a weight of 0
  /// a moment is none.
  LayerStages getStages(int64_t layer,
                        const std::vector<CertifiedMoment> &moments) const;

  const std::vector<std::vector<int64_t>> &getTimes(int64_t layer) const {
    return times[layer];
  }

private:
  const Certificate &certificate;
  std::vector<int64_t> begins;                          ///< by layer
  std::vector<std::vector<std::vector<int64_t>>> times; ///< by layer and tensor
};

/// Seconds of what runs again, and weighted bytes at the moments.
struct LeastCost {
  double seconds = 0, bytes = 0;
};

/// All that a layer may do: what it keeps between its forward and its backward
/// pass, what it holds at each moment, and which ops run again in each stage.
class LayerChoices {
public:
  LayerChoices(const NumberedClass &numbered, const LayerStages &stages);

  /// The choice for which `seconds + price * bytes` is least. With more sets of
  /// needed tensors than can be gone through something that is no larger: what
  /// is made again counts once, and is held for nothing.
  LeastCost getLeast(double price) const;

  /// The choices that none is better than in both bytes and seconds, by bytes;
  /// nothing if there are too many. Found when first asked for.
  const std::vector<LeastCost> *getFront();

private:
  struct Edge {
    int32_t from, to;
    double seconds, bytes;
  };

  void build();
  LeastCost cut(double price) const;

  const NumberedClass &numbered;
  LayerStages stages;
  double fixed = 0; ///< bytes that are there in any case
  /// A graph: nodes are sets of tensors that are needed of the ops before one,
  /// in each stage; edges are ways to have what the op makes. From the last op,
  /// node 0, to the first, all in this order.
  std::vector<Edge> edges;
  int32_t numNodes = 1;
  bool isComplete = true;
  std::optional<std::vector<LeastCost>> front;
  bool isFrontKnown = false;
};

/// Without those that are no better in bytes or seconds than another; by bytes.
void keepBest(std::vector<LeastCost> &choices);

//===----------------------------------------------------------------------===//
// All layers
//===----------------------------------------------------------------------===//

/// Layers with the same choices.
struct LayerGroup {
  LayerChoices *choices;
  int64_t count;

  bool operator==(const LayerGroup &other) const {
    return choices == other.choices && count == other.count;
  }
};

/// The least seconds of choices, one for each layer, whose bytes come to no
/// more than `available`. Nothing if there are no such choices, or too many to
/// go through. A price near the best one makes it fast. In `others`, unless
/// null, sums of the layers but for one of the last group, by bytes.
std::optional<double> findLeastSum(const std::vector<LayerGroup> &groups,
                                   double available, double price,
                                   std::vector<LeastCost> *others = nullptr);

/// The same of sums that are known and the choices of one more layer, both by
/// bytes.
std::optional<double> findLeastSum(const std::vector<LeastCost> &sums,
                                   const std::vector<LeastCost> &choices,
                                   double available);

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

  /// The one of `moments` that proves most by a price alone, with that price,
  /// which may be near `price`. None if none of them proves anything.
  std::vector<CertifiedMoment>
  findBest(const std::vector<CertifiedMoment> &moments, double price);

  /// The same, of what is proven if each layer has one whole choice.
  std::vector<CertifiedMoment>
  findBestWhole(const std::vector<CertifiedMoment> &moments, double price);

  /// What the moments that `findBest` found, for whatever budget, prove for
  /// that of the certificate by a price: seconds of a step.
  double getBound() const;

  /// What a moment proves: the least cost of the layers at a price.
  Proof prove(const CertifiedMoment &moment, double price);

  /// What a moment proves of whole choices; its price only tells where to look.
  /// Seconds of a step, 0 if there are too many of them.
  double proveWhole(const CertifiedMoment &moment);

  /// What rules alone ask for, whatever the budget is: seconds of a step.
  double getForced();

private:
  /// Layers whose tensors are read alike, and their choices where all of that
  /// comes before a moment, or all behind it.
  struct Group {
    std::vector<int64_t> layers;
    LayerChoices *before = nullptr, *behind = nullptr;
  };
  using Tried = std::vector<std::pair<Proof, CertifiedMoment>>;

  /// The most promising first, which makes short work of the others.
  Tried tryAll(const std::vector<CertifiedMoment> &moments, double price);
  LayerChoices *getChoices(int64_t layer, const CertifiedMoment &moment);
  /// That of the moment comes last.
  const std::vector<LayerGroup> &getGroups(const CertifiedMoment &moment);

  const Certificate &certificate;
  /// What was found best, bytes with those available.
  std::vector<std::pair<CertifiedMoment, Proof>> found;
  std::vector<NumberedClass> classes;
  BackwardReads reads;
  std::vector<Group> groups;
  /// By layer: when its tensors are read first, and last.
  std::vector<std::pair<int64_t, int64_t>> spans;
  std::map<LayerStages, std::unique_ptr<LayerChoices>> choices;
  std::map<std::pair<int64_t, int64_t>, std::vector<LayerGroup>> groupsOf;
};

} // namespace reprise::solver

#endif // REPRISE_LIB_SOLVER_BOUND_H
