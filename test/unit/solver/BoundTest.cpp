//===- BoundTest.cpp - Tests of the bound against its definition ----------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RandomCertificates.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <queue>

using namespace reprise::solver;
using Rule = CertifiedTensor::Rule;

namespace {
constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// What a layer may do, by its definition: all sets of what is kept, and of
/// what is held at each point, are tried.
class Enumeration {
public:
  /// `points` in the order of the backward pass, none there twice.
  Enumeration(const Certificate &certificate,
              const std::vector<PricedPoint> &points, int64_t layer)
      : certificate(certificate), points(points), layer(layer),
        kind(certificate.classes[certificate.layers[layer].kind]),
        reads(points.size() + 1), now(points.size()) {
    for (size_t l = 0; l < certificate.layers.size(); ++l)
      findReads(l);
    for (size_t t = 0; t < kind.tensors.size(); ++t)
      if (kind.tensors[t].rule == Rule::Keep)
        always |= 1u << t;
  }

  /// Seconds, and bytes at each point, of each choice of sets.
  std::vector<std::pair<double, std::vector<double>>> run() {
    std::vector<unsigned> sets = {0};
    tryAll(sets);
    return std::move(all);
  }

private:
  int64_t getNumber(const std::string &tensor) const {
    for (size_t t = 0; t < kind.tensors.size(); ++t)
      if (kind.tensors[t].name == tensor)
        return t;
    return -1;
  }

  /// What backward of layer `l` reads of this one: in which stage, and whether
  /// the op is that of a point.
  void findReads(int64_t l) {
    const CertifiedLayer &reader = certificate.layers[l];
    const CertifiedClass &readerKind = certificate.classes[reader.kind];
    for (int64_t g = 0; g < int64_t(readerKind.backward.size()); ++g) {
      unsigned tensors = 0;
      for (const std::string &read : readerKind.backward[g].reads) {
        if (l == layer && !contains(kind.inputs, read))
          tensors |= 1u << getNumber(read);
        for (size_t k = 0; k < reader.inputs.size(); ++k)
          if (reader.inputs[k].layer == layer && readerKind.inputs[k] == read)
            tensors |= 1u << getNumber(reader.inputs[k].tensor);
      }
      size_t stage = 0;
      for (const PricedPoint &point : points) {
        if (l == point.layer && g == point.gradient)
          now[stage] |= tensors;
        stage += l < point.layer || (l == point.layer && g > point.gradient);
      }
      reads[stage] |= tensors;
    }
  }

  /// Makes a tensor out of those in `there`; `runs` are the ops for that.
  void need(int64_t tensor, unsigned there, unsigned &runs) const {
    if (tensor < 0 || (there | always) >> tensor & 1)
      return;
    for (size_t o = 0; o < kind.ops.size(); ++o) {
      if (!contains(kind.ops[o].writes, kind.tensors[tensor].name) ||
          runs >> o & 1)
        continue;
      runs |= 1u << o;
      for (const std::string &read : kind.ops[o].reads)
        need(getNumber(read), there, runs);
    }
  }

  /// `sets`: what is kept, and what is held at the points so far.
  void tryAll(std::vector<unsigned> &sets) {
    for (unsigned set = 0; set < 1u << kind.tensors.size(); ++set) {
      sets.back() = set;
      bool isAllowed = true;
      if (sets.size() == 1)
        for (size_t t = 0; t < kind.tensors.size(); ++t)
          isAllowed &=
              kind.tensors[t].rule != (set >> t & 1 ? Rule::Drop : Rule::Keep);
      else
        isAllowed = (set & now[sets.size() - 2]) == now[sets.size() - 2];
      if (!isAllowed)
        continue;
      if (sets.size() > points.size()) {
        add(sets);
        continue;
      }
      sets.push_back(0);
      tryAll(sets);
      sets.pop_back();
    }
  }

  void add(const std::vector<unsigned> &sets) {
    double seconds = 0;
    std::vector<double> bytes(points.size());
    for (size_t stage = 0; stage < sets.size(); ++stage) {
      // What is held at the end of a stage was there, or has been made in it.
      unsigned runs = 0, wanted = reads[stage];
      if (stage < points.size())
        wanted |= sets[stage + 1] & ~always;
      for (size_t t = 0; t < kind.tensors.size(); ++t)
        if (wanted >> t & 1)
          need(t, sets[stage], runs);
      for (size_t o = 0; o < kind.ops.size(); ++o)
        if (runs >> o & 1)
          seconds += kind.ops[o].replayable ? kind.ops[o].seconds : kInfinite;
    }
    for (size_t m = 0; m < points.size(); ++m) {
      unsigned left = 0;
      for (size_t stage = m + 1; stage < sets.size(); ++stage)
        left |= reads[stage];
      // What a rule keeps is there as long as backward has still to read it.
      unsigned held = (sets[m + 1] & ~always) | (left & always) | now[m];
      for (size_t t = 0; t < kind.tensors.size(); ++t)
        bytes[m] += double(kind.tensors[t].bytes) *
                    double((sets[0] >> t & 1) *
                               (certificate.layers[layer].inFlight - 1) +
                           (held >> t & 1));
    }
    all.push_back({seconds, bytes});
  }

  const Certificate &certificate;
  const std::vector<PricedPoint> &points;
  int64_t layer;
  const CertifiedClass &kind;
  std::vector<unsigned> reads, now; ///< by stage, and by point
  unsigned always = 0;              ///< what a rule keeps
  std::vector<std::pair<double, std::vector<double>>> all;
};
} // namespace

/// The points with a price, in the order of the backward pass, equal ones as
/// one.
static std::vector<PricedPoint> sortPoints(const Certificate &certificate) {
  std::vector<PricedPoint> sorted = certificate.points;
  std::sort(sorted.begin(), sorted.end(), [](const auto &a, const auto &b) {
    return std::make_pair(-a.layer, a.gradient) <
           std::make_pair(-b.layer, b.gradient);
  });
  std::vector<PricedPoint> merged;
  for (const PricedPoint &point : sorted) {
    if (point.secondsPerByte == 0)
      continue;
    if (!merged.empty() && merged.back().layer == point.layer &&
        merged.back().gradient == point.gradient)
      merged.back().secondsPerByte += point.secondsPerByte;
    else
      merged.push_back(point);
  }
  return merged;
}

namespace {
/// Bounds that were compared with their definition: least prices that are
/// finite, bounds that are those of whole choices, and those of them that are
/// above what the prices prove.
struct Compared {
  int finite = 0, whole = 0, above = 0;
};
} // namespace

/// Each layer's least price, and the least seconds of whole choices that are
/// within the budget at the points, each with its share of the price.
static void compareWithDefinition(Certificate certificate, Compared &compared) {
  computeBound(certificate);
  std::vector<PricedPoint> points = sortPoints(certificate);
  double most = 0, available = 0, sum = 0;
  for (const PricedPoint &point : points) {
    double bytes = double(certificate.budgetBytes);
    if (point.layer < int64_t(certificate.layers.size()))
      bytes -= double(certificate.classes[certificate.layers[point.layer].kind]
                          .backward[point.gradient]
                          .bytes);
    most += point.secondsPerByte;
    available += point.secondsPerByte * bytes;
  }
  // Priced bytes of all layers so far, and their seconds.
  std::map<double, double> sums = {{0, 0}};
  for (size_t l = 0; l < certificate.layers.size(); ++l) {
    double expected = kInfinite;
    std::map<double, double> choices, next;
    for (const auto &[seconds, bytes] :
         Enumeration(certificate, points, l).run()) {
      double priced = 0;
      for (size_t m = 0; m < points.size(); ++m)
        priced += points[m].secondsPerByte * bytes[m];
      expected = std::min(expected, seconds + priced);
      auto [known, isNew] = choices.emplace(priced, seconds);
      known->second = std::min(known->second, seconds);
    }
    for (auto [bytes, seconds] : sums)
      for (auto [more, again] : choices) {
        auto [known, isNew] = next.emplace(bytes + more, seconds + again);
        known->second = std::min(known->second, seconds + again);
      }
    std::swap(sums, next);
    sum += expected;
    double minimum = certificate.layers[l].minimum;
    compared.finite += expected < kInfinite;
    if (expected == kInfinite)
      ASSERT_EQ(minimum, kInfinite);
    else
      ASSERT_NEAR(minimum, expected, 1e-9 * (1 + expected));
  }
  double dual = std::max(sum - available, 0.0), whole = kInfinite;
  for (auto [bytes, seconds] : sums)
    if (bytes <= available * (1 + 1e-12))
      whole = std::min(whole, seconds);
  // Without choices that fit there is no whole bound, and with no price.
  double wanted = whole < kInfinite && most > 0 ? whole : dual;
  if (wanted < kInfinite)
    ASSERT_NEAR(certificate.lowerBoundSeconds,
                wanted * double(certificate.microBatches), 1e-9 * (1 + wanted));
  compared.whole += wanted == whole;
  compared.above += wanted > dual * (1 + 1e-9) && wanted < kInfinite;
}

TEST(BoundTest, BoundIsTheDefinition) {
  std::mt19937 random(3);
  Compared compared;
  for (int k = 0; k < 600 && !HasFatalFailure(); ++k) {
    SCOPED_TRACE(k);
    Certificate certificate = makeCertificate(random);
    certificate.budgetBytes = random() % 600;
    certificate.kind = Certificate::Budget::Activations;
    if (certificate.classes[1].tensors.size() > 4)
      certificate.points.resize(1);
    compareWithDefinition(certificate, compared);
  }
  EXPECT_GT(compared.finite, 1500);
  EXPECT_GT(compared.whole, 150);
  EXPECT_GT(compared.above, 50);
}

// Models have equal layers, of which some make one choice and the others
// another.
TEST(BoundTest, BoundOfEqualLayersIsTheDefinition) {
  std::mt19937 random(9);
  Compared compared;
  for (int k = 0; k < 400 && !HasFatalFailure(); ++k) {
    SCOPED_TRACE(k);
    int64_t numLayers = 4 + random() % 7;
    Certificate certificate =
        makeCertificate(random, numLayers, /*areEqual=*/true);
    certificate.budgetBytes = random() % (100 * numLayers);
    certificate.kind = Certificate::Budget::Activations;
    certificate.points.resize(1);
    compareWithDefinition(certificate, compared);
  }
  EXPECT_GT(compared.whole, 100);
  EXPECT_GT(compared.above, 50);
}

namespace {
/// The fastest of all schedules of a certificate's backward pass: what is kept,
/// and then before each op of backward any op of the forward pass, as often as
/// wanted, as long as what is there has room at each op of backward. Sets of
/// tensors are bits, layer after layer.
class Schedules {
public:
  explicit Schedules(const Certificate &certificate)
      : certificate(certificate) {
    int64_t count = 0;
    for (const CertifiedLayer &layer : certificate.layers) {
      begins.push_back(count);
      count += certificate.classes[layer.kind].tensors.size();
    }
    numSets = 1u << count;
    for (size_t l = certificate.layers.size(); l-- > 0;)
      addLayer(l);
  }

  double getLeast() {
    double least = kInfinite;
    for (unsigned kept = 0; kept < numSets; ++kept)
      if ((kept & forbidden) == 0 && (kept & always) == always &&
          getBytes(kept) + getOthers(kept) <= certificate.budgetBytes)
        least = std::min(least, getLeast(kept, least));
    return least;
  }

private:
  struct Run {
    unsigned reads, writes;
    double seconds;
    int64_t bytes = 0;
  };

  unsigned getBits(int64_t l, const std::vector<std::string> &names) const {
    const CertifiedClass &kind =
        certificate.classes[certificate.layers[l].kind];
    unsigned bits = 0;
    for (const std::string &name : names)
      for (size_t t = 0; t < kind.tensors.size(); ++t)
        if (kind.tensors[t].name == name)
          bits |= 1u << (begins[l] + t);
    for (size_t k = 0; k < kind.inputs.size(); ++k)
      if (contains(names, kind.inputs[k])) {
        auto [layer, tensor] = certificate.layers[l].inputs[k];
        bits |= getBits(layer, {tensor});
      }
    return bits;
  }

  void addLayer(int64_t l) {
    const CertifiedClass &kind =
        certificate.classes[certificate.layers[l].kind];
    for (const CertifiedTensor &tensor : kind.tensors) {
      unsigned bit = getBits(l, {tensor.name});
      bytes.push_back({bit, tensor.bytes, certificate.layers[l].inFlight});
      (tensor.rule == Rule::Keep ? always : forbidden) |=
          tensor.rule == Rule::Free ? 0 : bit;
    }
    for (const CertifiedOp &op : kind.ops)
      if (op.replayable)
        forward.push_back(
            {getBits(l, op.reads), getBits(l, op.writes), op.seconds});
    for (const CertifiedGradient &op : kind.backward)
      backward.push_back({getBits(l, op.reads), 0, 0, op.bytes});
  }

  int64_t getBytes(unsigned set) const {
    int64_t sum = 0;
    for (auto [bit, bytes, _] : bytes)
      sum += set & bit ? bytes : 0;
    return sum;
  }

  /// What the other micro-batches in flight keep.
  int64_t getOthers(unsigned set) const {
    int64_t sum = 0;
    for (auto [bit, bytes, inFlight] : bytes)
      sum += set & bit ? bytes * (inFlight - 1) : 0;
    return sum;
  }

  double getLeast(unsigned kept, double most) const {
    // By op of backward that is next, and what is there.
    std::vector<double> best(numSets, kInfinite), next;
    best[kept] = 0;
    for (const Run &op : backward) {
      using State = std::pair<double, unsigned>;
      std::priority_queue<State, std::vector<State>, std::greater<>> queue;
      for (unsigned set = 0; set < numSets; ++set)
        if (best[set] < most)
          queue.push({best[set], set});
      next.assign(numSets, kInfinite);
      while (!queue.empty()) {
        double seconds = queue.top().first;
        unsigned set = queue.top().second;
        queue.pop();
        if (seconds > best[set])
          continue;
        if ((op.reads & ~set) == 0 &&
            getBytes(set) + getOthers(kept) + op.bytes <=
                certificate.budgetBytes)
          next[set] = seconds;
        auto go = [&](unsigned to, double added) {
          if (seconds + added < std::min(best[to], most)) {
            best[to] = seconds + added;
            queue.push({best[to], to});
          }
        };
        for (const Run &run : forward)
          if ((run.reads & ~set) == 0)
            go(set | run.writes, run.seconds);
        for (unsigned bit = 1; bit < numSets; bit *= 2)
          if (set & bit & ~always)
            go(set & ~bit, 0);
      }
      std::swap(best, next);
    }
    return *std::min_element(best.begin(), best.end());
  }

  const Certificate &certificate;
  std::vector<int64_t> begins;
  std::vector<std::tuple<unsigned, int64_t, int64_t>> bytes;
  std::vector<Run> forward, backward;
  unsigned numSets = 0, always = 0, forbidden = 0;
};
} // namespace

/// No schedule takes less, whatever runs however often: at any points.
TEST(BoundTest, NoScheduleTakesLess) {
  std::mt19937 random(5);
  int numTight = 0, numBounds = 0;
  for (int k = 0; k < 1500; ++k) {
    Certificate certificate = makeCertificate(random);
    if (certificate.classes[1].tensors.size() > 3)
      continue;
    // What a rule keeps would be there to the end.
    for (CertifiedTensor &tensor : certificate.classes[1].tensors)
      if (tensor.rule == Rule::Keep)
        tensor.rule = Rule::Free;
    certificate.kind = Certificate::Budget::Activations;
    certificate.budgetBytes = 50 + random() % 200;
    double least = Schedules(certificate).getLeast();
    if (least == kInfinite)
      continue;
    // The points that are there, and each by itself.
    std::vector<std::vector<PricedPoint>> all = {certificate.points};
    for (int64_t layer = 1; layer <= 3; ++layer)
      for (int64_t gradient = 0; gradient < (layer < 3 ? 2 : 1); ++gradient)
        all.push_back({{layer, gradient, 0, 0.05}});
    double best = 0;
    for (const std::vector<PricedPoint> &points : all) {
      certificate.points = points;
      computeBound(certificate);
      best = std::max(best, certificate.lowerBoundSeconds /
                                double(certificate.microBatches));
    }
    ASSERT_LE(best, least + 1e-9) << k;
    numBounds += least > 0;
    numTight += least > 0 && best > least - 1e-9;
  }
  EXPECT_GT(numBounds, 100);
  EXPECT_GT(numTight, numBounds / 2);
}
