//===- Bound.h - A lower bound on the replays of any plan -------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The bound is the Lagrangian dual of the question what to keep.
//
//   symbol   meaning                                       in the code
//   l        a layer                                       CertifiedLayer
//   x        a choice of it: the tensors it keeps, those   LayerChoices
//            it holds at each point, the ops it replays
//   s(x)     seconds of these replays                      LeastCost::seconds
//   m        a program point of the backward pass          PricedPoint
//   p[m]     the price of a byte there, in seconds         secondsPerByte
//   b[m](x)  bytes of the layer's tensors alive there      LeastCost::bytes
//   A[m]     bytes that the budget leaves for these        getAvailable
//
// A plan is a choice for each layer. One within the budget has
//
//   sum over l of b[m](x[l]) <= A[m]   at each m,
//
// so for prices p >= 0 its replays take no less than
//
//   L(p) = sum over l of min over x of (s(x) + sum over m of p[m] b[m](x))
//          - sum over m of p[m] A[m].
//
// With one point, L is the `Proof` of a price: s its seconds, b - A its bytes,
// which are the slope of L. With several, bytes are sum of w[m] b[m], with the
// weights w[m] = p[m] / p of the highest price p.
//
// L lets a layer be part of one choice and part of another. Whole choices prove
// no less: `findLeastSum` has the least sum of s whose bytes are at most A.
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

/// A layer in a backward pass that points cut into stages: each but the last
/// ends with the op of a point.
struct LayerStages {
  int64_t kind = 0;
  /// How often what is kept counts beside what is there at the points: for the
  /// other micro-batches in flight.
  double others = 0;
  std::vector<TensorSet> needed; ///< by stage: tensors that its ops read
  std::vector<TensorSet> now;    ///< by point: tensors that its op reads
  std::vector<double> weights;   ///< by point: w[m]

  /// Stages before the first that backward reads anything in.
  size_t countIdle() const;

  bool operator<(const LayerStages &other) const {
    return std::tie(kind, others, needed, now, weights) <
           std::tie(other.kind, other.others, other.needed, other.now,
                    other.weights);
  }
};

/// The times at which ops of backward, of whichever layer, read the tensors of
/// each layer.
class BackwardReads {
public:
  BackwardReads(const Certificate &certificate,
                const std::vector<NumberedClass> &classes);

  /// The number of a point's op among those of the whole backward pass; -1 for
  /// the turn, which comes before them.
  int64_t getTime(const PricedPoint &point) const;

  /// The stages of a layer between `points`, which have any order. A point with
  /// a price of 0 is left out.
  LayerStages getStages(int64_t layer,
                        const std::vector<PricedPoint> &points) const;

  const std::vector<std::vector<int64_t>> &getTimes(int64_t layer) const {
    return times[layer];
  }

private:
  const Certificate &certificate;
  std::vector<int64_t> begins;                          ///< by layer
  std::vector<std::vector<std::vector<int64_t>>> times; ///< by layer and tensor
};

/// Seconds of replays, and weighted bytes at the points: s(x) and b(x).
struct LeastCost {
  double seconds = 0, bytes = 0;
};

/// What the bytes of a choice count for: those at the points, and those that it
/// keeps.
struct ByteWeights {
  double held = 1, kept = 0;
};

/// A choice, its bytes apart.
struct LeastParts {
  double seconds = 0, held = 0, kept = 0;

  double getBytes(const ByteWeights &weights) const {
    return weights.held * held + weights.kept * kept;
  }
};

/// All choices x of a layer: the tensors that it keeps between its forward and
/// its backward pass, those that it holds at each point, and the ops that run
/// again in each stage.
class LayerChoices {
public:
  LayerChoices(const NumberedClass &numbered, const LayerStages &stages);

  /// The least of s(x) + price * b(x), with its x. If there are too many sets
  /// of needed tensors, something no larger: a replay counts once, and its
  /// results take no bytes.
  LeastCost getLeast(double price) const;
  /// The same with other weights than those of the stages.
  LeastParts getLeast(double price, const ByteWeights &weights) const;

  /// The Pareto front of s and b, by bytes; null if there are too many choices.
  /// Computed by the first call.
  const std::vector<LeastCost> *getFront();

private:
  struct Edge {
    int32_t from, to;
    double seconds, held, kept;
  };

  void build();
  LeastParts cut(double price, const ByteWeights &weights) const;
  ByteWeights getWeights() const { return {1, stages.others}; }

  const NumberedClass &numbered;
  LayerStages stages;
  LeastParts fixed; ///< bytes of every choice
  /// A graph from the last op of the layer, node 0, to the first. A node is,
  /// for each stage, the set of tensors that later ops need of earlier ones. An
  /// edge is a way to have the results of the op: kept, held or made again.
  std::vector<Edge> edges;
  int32_t numNodes = 1;
  bool isComplete = true;
  std::optional<std::vector<LeastCost>> front;
  bool isFrontKnown = false;
};

/// Keeps the Pareto front of `choices`, by bytes.
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

/// The least sum of s of one choice for each layer, whose b sum up to at most
/// `available`; nothing if there are no such choices, or too many to go
/// through. A price near the best one makes it fast. Fills `others`, unless
/// null, with the sums of all layers but one of the last group, by bytes.
std::optional<double> findLeastSum(const std::vector<LayerGroup> &groups,
                                   double available, double price,
                                   std::vector<LeastCost> *others = nullptr);

/// The same for known sums and the choices of one more layer, both by bytes.
std::optional<double> findLeastSum(const std::vector<LeastCost> &sums,
                                   const std::vector<LeastCost> &choices,
                                   double available);

/// A[m]: the budget less the bytes that any plan has alive at the point.
double getAvailable(const Certificate &certificate, const PricedPoint &point);

/// The points that may have a price: the turn from forward to backward, and
/// the ops of the last layers to run backward before all others have.
std::vector<PricedPoint> getPricedPoints(const Certificate &certificate);

/// L at a price, and the straight line that touches it there.
struct Proof {
  double price, seconds, bytes; ///< sums of s, and of b less A

  double getValue() const { return seconds + price * bytes; }
};

/// The summit of L, which `prove` computes, from `first` on; something no
/// higher than `least` if the summit is not above that. L is piecewise linear
/// in the price, so the best price is found, and not approached.
Proof findSummit(const std::function<Proof(double price)> &prove,
                 const Proof &first, double least);

/// Searches the point and the price with the highest L.
class BoundSearch {
public:
  /// For the classes, layers and budget of `certificate`, which stays.
  explicit BoundSearch(const Certificate &certificate);

  /// The one of `points` with the highest L, with its price, which may be near
  /// `price`; none if no L is above 0.
  std::vector<PricedPoint> findBest(const std::vector<PricedPoint> &points,
                                    double price);

  /// The same for whole choices.
  std::vector<PricedPoint> findBestWhole(const std::vector<PricedPoint> &points,
                                         double price);

  /// The highest L, for the budget of the certificate, of the points that
  /// `findBest` found for any budget: seconds of a step.
  double getBound() const;

  /// L of one point at a price.
  Proof prove(const PricedPoint &point, double price);

  /// The cheapest choices of all layers at a price, for bytes at a point that
  /// count as `weights` says. What is there beside layers is left out.
  LeastParts choose(const PricedPoint &point, double price,
                    const ByteWeights &weights);

  /// The bound of whole choices, in seconds of a step; 0 if there are too many
  /// of them. The price of the point only tells where to look.
  double proveWhole(const PricedPoint &point);

  /// The replays that rules force under any budget: seconds of a step.
  double getForced();

private:
  /// Layers whose tensors are read alike, and their choices if all reads come
  /// before a point, or all behind it.
  struct Group {
    std::vector<int64_t> layers;
    LayerChoices *before = nullptr, *behind = nullptr;
  };
  using Proofs = std::vector<std::pair<Proof, PricedPoint>>;

  /// The proofs of all points at a price, the highest first: it rules out most
  /// of the others.
  Proofs proveAll(const std::vector<PricedPoint> &points, double price);
  LayerChoices *getChoices(int64_t layer, const PricedPoint &point);
  /// The groups of layers at a point; that of its own layer comes last.
  const std::vector<LayerGroup> &getGroups(const PricedPoint &point);

  const Certificate &certificate;
  /// The best points of each search, with b and not b - A as bytes.
  std::vector<std::pair<PricedPoint, Proof>> found;
  std::vector<NumberedClass> classes;
  BackwardReads reads;
  std::vector<Group> groups;
  /// By layer: the first and the last time of a read of its tensors.
  std::vector<std::pair<int64_t, int64_t>> spans;
  std::map<LayerStages, std::unique_ptr<LayerChoices>> choices;
  std::map<std::pair<int64_t, int64_t>, std::vector<LayerGroup>> groupsOf;
};

} // namespace reprise::solver

#endif // REPRISE_LIB_SOLVER_BOUND_H
