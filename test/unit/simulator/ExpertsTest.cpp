//===- ExpertsTest.cpp - Routing to experts in the simulator ----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Runs.h"
#include <algorithm>
#include <cmath>
#include <numeric>

using namespace reprise;
using namespace reprise::simulator;

using Ids = std::vector<int32_t>;

static std::string text(int64_t number) { return std::to_string(number); }

//===----------------------------------------------------------------------===//
// Choice and weights
//===----------------------------------------------------------------------===//

namespace {
struct Routing {
  int64_t tokens, experts, slots;
  bool isSigmoid = false, hasBias = false;
  int64_t groups = 0, keep = 0;
  bool byTwo = false;

  /// Few different numbers, so that many are equal; some are none.
  Floats logits() const {
    Floats values = numbers(size_t(tokens * experts), 1);
    for (float &value : values)
      value = std::round(value * 8) / 4;
    for (size_t i = 5; i < values.size(); i += 23)
      values[i] = NAN;
    values[0] = -INFINITY;
    return values;
  }
  Floats bias() const {
    Floats values = numbers(size_t(experts), 2);
    for (float &value : values)
      value = std::round(value * 4);
    return values;
  }
};
} // namespace

/// The `count` first of `scores`, larger ones and lower indices first, in
/// ascending order.
static Ids chooseLargest(const std::vector<double> &scores, int64_t count) {
  Ids all(scores.size());
  std::iota(all.begin(), all.end(), 0);
  std::stable_sort(all.begin(), all.end(), [&](int32_t a, int32_t b) {
    return scores[size_t(a)] > scores[size_t(b)];
  });
  all.resize(size_t(count));
  std::sort(all.begin(), all.end());
  return all;
}

static Ids chooseOne(const Routing &r, const float *logits,
                     const Floats &bias) {
  std::vector<double> scores;
  for (int64_t e = 0; e < r.experts; ++e) {
    double score = double(logits[e]);
    if (r.isSigmoid)
      score = 1 / (1 + std::exp(-score));
    if (r.hasBias)
      score += double(bias[size_t(e)]);
    constexpr double lowest = std::numeric_limits<float>::lowest();
    scores.push_back(score >= lowest ? score : lowest);
  }
  if (!r.groups)
    return chooseLargest(scores, r.slots);
  int64_t size = r.experts / r.groups;
  std::vector<double> ofGroups;
  for (int64_t g = 0; g < r.groups; ++g) {
    std::vector<double> sorted(scores.begin() + g * size,
                               scores.begin() + (g + 1) * size);
    std::sort(sorted.rbegin(), sorted.rend());
    ofGroups.push_back(r.byTwo ? sorted[0] + sorted[1] : sorted[0]);
  }
  Ids kept = chooseLargest(ofGroups, r.keep);
  for (int64_t e = 0; e < r.experts; ++e)
    if (!std::count(kept.begin(), kept.end(), int32_t(e / size)))
      scores[size_t(e)] = -INFINITY;
  return chooseLargest(scores, r.slots);
}

static void choosesTheLargest(const Routing &r) {
  std::string kernel = fill(
      "func.func private @choose(%l : tensor<$0x$1xf32>$3) -> "
      "tensor<$0x$2xi32> attributes {rt.kernel} {\n"
      "  %ids = rt.choose_experts %l$4 : (tensor<$0x$1xf32>$5) -> "
      "tensor<$0x$2xi32>\n  return %ids : tensor<$0x$2xi32>\n}\n",
      {text(r.tokens), text(r.experts), text(r.slots),
       r.hasBias ? ", %b : tensor<" + text(r.experts) + "xf32>" : "",
       std::string(r.hasBias ? " bias %b" : "") +
           (r.isSigmoid ? " sigmoid" : "") +
           (r.groups ? " groups " + text(r.groups) + " keep " + text(r.keep)
                     : "") +
           (r.byTwo ? " by_two" : ""),
       r.hasBias ? ", tensor<" + text(r.experts) + "xf32>" : ""});
  Kernels kernels(kernel);
  Floats values = r.logits(), shift = r.bias();
  Buffer<float> logits(values), bias(shift);
  std::vector<void *> inputs = {logits.data()};
  if (r.hasBias)
    inputs.push_back(bias.data());
  Ids ids = runAll<int32_t>(kernels, "choose", inputs,
                            {Ids(size_t(r.tokens * r.slots), -1)})[0];
  for (int64_t t = 0; t < r.tokens; ++t)
    EXPECT_EQ(Ids(ids.begin() + t * r.slots, ids.begin() + (t + 1) * r.slots),
              chooseOne(r, values.data() + t * r.experts, shift))
        << "token " << t << " of\n"
        << kernel;
}

TEST(ChooseExperts, Largest) {
  for (auto [experts, slots] :
       {std::pair(1, 1), {8, 2}, {33, 7}, {64, 64}, {131, 6}})
    for (bool isSigmoid : {false, true})
      for (bool hasBias : {false, true})
        choosesTheLargest({11, experts, slots, isSigmoid, hasBias});
}

TEST(ChooseExperts, OfGroups) {
  choosesTheLargest({9, 12, 3, false, false, 4, 2});
  choosesTheLargest({9, 12, 6, true, true, 4, 2, true});
  choosesTheLargest({9, 9, 3, true, true, 3, 2, true});
  choosesTheLargest({6, 160, 8, true, true, 40, 3, true});
  choosesTheLargest({6, 40, 1, false, false, 40, 1});
}

/// So many that a block has fewer tokens.
TEST(ChooseExperts, ManyExperts) {
  choosesTheLargest({3, 9000, 3, true, false});
}

namespace {
/// p of a token, its sum, and so on, in f64.
struct Weights {
  Weights(const float *logits, const int32_t *ids, int64_t experts,
          int64_t slots, bool isSigmoid, bool isNormalized)
      : p(size_t(experts)), sum(1) {
    double greatest = *std::max_element(logits, logits + experts);
    for (int64_t e = 0; e < experts; ++e)
      p[size_t(e)] = isSigmoid ? 1 / (1 + std::exp(-double(logits[e])))
                               : std::exp(double(logits[e]) - greatest);
    raw = p;
    if (isNormalized) {
      sum = isSigmoid ? 1e-20 : 0;
      for (int64_t s = 0; s < slots; ++s)
        sum += p[size_t(ids[s])];
    } else if (!isSigmoid) {
      sum = std::accumulate(p.begin(), p.end(), 0.0);
    }
    for (double &value : p)
      value /= sum;
  }

  std::vector<double> p, raw;
  double sum;
};
} // namespace

/// `weights` and `dlogits` of a few tokens, where `ids` are the first ones.
static void weighs(int64_t experts, int64_t slots, bool isSigmoid,
                   bool isNormalized, bool isScaled) {
  constexpr int64_t tokens = 6;
  const double scale = isScaled ? 2.5 : 1;
  std::string options = std::string(isSigmoid ? " sigmoid" : "") +
                        (isNormalized ? " normalized" : "") +
                        (isScaled ? " scale 2.5" : "");
  Kernels kernels(fill(R"(
func.func private @weights(%l : tensor<6x$0xf32>, %i : tensor<6x$1xi32>) -> tensor<6x$1xf32> attributes {rt.kernel} {
  %w = rt.expert_weights %l, %i$2 : (tensor<6x$0xf32>, tensor<6x$1xi32>) -> tensor<6x$1xf32>
  return %w : tensor<6x$1xf32>
}
func.func private @backward(%l : tensor<6x$0xf32>, %i : tensor<6x$1xi32>, %d : tensor<6x$1xf32>) -> tensor<6x$0xf32> attributes {rt.kernel} {
  %g = rt.expert_weights_backward %l, %i, %d$2 : (tensor<6x$0xf32>, tensor<6x$1xi32>, tensor<6x$1xf32>) -> tensor<6x$0xf32>
  return %g : tensor<6x$0xf32>
})",
                       {text(experts), text(slots), options}));
  Floats values = numbers(size_t(tokens * experts), 1);
  for (float &value : values)
    value *= 3;
  Floats given = numbers(size_t(tokens * slots), 2);
  Ids chosen;
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t s = 0; s < slots; ++s)
      chosen.push_back(int32_t((s * 2 + t) % experts));
  if (slots * 2 > experts) // all different
    for (int64_t i = 0; i < tokens * slots; ++i)
      chosen[size_t(i)] = int32_t((i % slots + i / slots) % experts);
  Buffer<float> logits(values), dweights(given);
  Buffer<int32_t> ids(chosen);
  Floats weights =
      runAll<float>(kernels, "weights", {logits.data(), ids.data()},
                    {Floats(size_t(tokens * slots), NAN)})[0];
  Floats gradients = runAll<float>(kernels, "backward",
                                   {logits.data(), ids.data(), dweights.data()},
                                   {Floats(size_t(tokens * experts), NAN)})[0];
  for (int64_t t = 0; t < tokens; ++t) {
    const int32_t *its = chosen.data() + t * slots;
    Weights w(values.data() + t * experts, its, experts, slots, isSigmoid,
              isNormalized);
    std::vector<double> g(static_cast<size_t>(experts)), is(g);
    double dot = 0;
    for (int64_t s = 0; s < slots; ++s) {
      size_t e = size_t(its[s]);
      g[e] = scale * double(given[size_t(t * slots + s)]), is[e] = 1;
      dot += g[e] * w.p[e];
      EXPECT_NEAR(weights[size_t(t * slots + s)], scale * w.p[e], 2e-6);
    }
    for (size_t e = 0; e < size_t(experts); ++e) {
      double expected;
      if (!isSigmoid)
        expected = is[e] || !isNormalized ? w.p[e] * (g[e] - dot) : 0;
      else
        expected = is[e] * (isNormalized ? (g[e] - dot) / w.sum : g[e]) *
                   w.raw[e] * (1 - w.raw[e]);
      ASSERT_NEAR(gradients[size_t(t * experts) + e], expected, 4e-6)
          << options << " of " << experts;
    }
  }
}

TEST(ExpertWeights, AllKinds) {
  for (auto [experts, slots] : {std::pair(5, 2), {70, 40}, {8, 8}, {3, 1}})
    for (bool isSigmoid : {false, true})
      for (bool isNormalized : {false, true})
        weighs(experts, slots, isSigmoid, isNormalized, isSigmoid);
}

//===----------------------------------------------------------------------===//
// Sort
//===----------------------------------------------------------------------===//

namespace {
struct Sorted {
  Ids order, inverse, offsets;
};
} // namespace

/// By the definition: the places of each expert, of which the largest weights
/// are taken.
static Sorted sortRows(const Ids &ids, const Floats &weights, int64_t experts,
                       int64_t capacity) {
  Sorted sorted;
  size_t rows = ids.size();
  if (capacity)
    rows = std::min(ids.size(), size_t(experts * capacity)) + 1;
  sorted.inverse.assign(ids.size(), int32_t(rows - 1));
  sorted.offsets = {0};
  for (int64_t e = 0; e < experts; ++e) {
    Ids places;
    for (size_t place = 0; place < ids.size(); ++place)
      if (ids[place] == e)
        places.push_back(int32_t(place));
    if (capacity && !weights.empty())
      std::stable_sort(places.begin(), places.end(), [&](int32_t a, int32_t b) {
        return std::fabs(weights[size_t(a)]) > std::fabs(weights[size_t(b)]);
      });
    if (capacity && int64_t(places.size()) > capacity)
      places.resize(size_t(capacity));
    std::sort(places.begin(), places.end());
    for (int32_t place : places) {
      sorted.inverse[size_t(place)] = int32_t(sorted.order.size());
      sorted.order.push_back(place);
    }
    sorted.offsets.push_back(int32_t(sorted.order.size()));
  }
  sorted.order.resize(rows);
  return sorted;
}

static void sorts(const Ids &ids, int64_t experts, int64_t capacity,
                  bool isByWeight) {
  // Few different numbers, of both signs, and zeros.
  Floats weights = numbers(ids.size(), 4);
  for (float &weight : weights)
    weight = std::round(weight * 3) / 2;
  Sorted expected =
      sortRows(ids, isByWeight ? weights : Floats(), experts, capacity);
  std::string n = text(int64_t(ids.size()));
  Kernels kernels(fill(
      "func.func private @sort(%i : tensor<$0xi32>$3) -> (tensor<$1xi32>, "
      "tensor<$0xi32>, tensor<$2xi32>) attributes {rt.kernel} {\n"
      "  %o, %j, %e = rt.sort_rows %i$4 : (tensor<$0xi32>$5) -> "
      "(tensor<$1xi32>, tensor<$0xi32>, tensor<$2xi32>)\n"
      "  return %o, %j, %e : tensor<$1xi32>, tensor<$0xi32>, tensor<$2xi32>\n"
      "}\n",
      {n, text(int64_t(expected.order.size())), text(experts + 1),
       isByWeight ? ", %w : tensor<" + n + "xf32>" : "",
       std::string(isByWeight ? " by %w" : "") +
           (capacity ? " capacity " + text(capacity) : ""),
       isByWeight ? ", tensor<" + n + "xf32>" : ""}));
  Buffer<int32_t> given(ids);
  Buffer<float> by(weights);
  std::vector<void *> inputs = {given.data()};
  if (isByWeight)
    inputs.push_back(by.data());
  auto results =
      runAll<int32_t>(kernels, "sort", inputs,
                      {Ids(expected.order.size(), -1), Ids(ids.size(), -1),
                       Ids(size_t(experts) + 1, -1)});
  std::string what = text(experts) + " experts, capacity " + text(capacity);
  EXPECT_EQ(results[0], expected.order) << what;
  EXPECT_EQ(results[1], expected.inverse) << what;
  EXPECT_EQ(results[2], expected.offsets) << what;
}

static Ids randomIds(size_t count, int64_t experts) {
  Ids ids;
  for (float value : numbers(count, 5))
    ids.push_back(int32_t(std::min<double>(
        double(experts) - 1, (double(value) + 1) / 2 * double(experts))));
  return ids;
}

TEST(SortRows, All) {
  sorts({0}, 1, 0, false);
  sorts(randomIds(39, 5), 5, 0, false);
  sorts(randomIds(700, 3), 3, 0, false);
  sorts(randomIds(64, 40), 40, 0, false); // some have none
  sorts(Ids(150, 2), 4, 0, false);        // one has all
}

TEST(SortRows, WithCapacity) {
  for (bool isByWeight : {false, true}) {
    sorts(randomIds(39, 5), 5, 4, isByWeight);
    sorts(randomIds(39, 5), 5, 1, isByWeight);
    sorts(randomIds(300, 3), 3, 120, isByWeight); // all are taken
    sorts(randomIds(90, 70), 70, 1, isByWeight);
    sorts(Ids(150, 2), 4, 50, isByWeight);
    sorts(randomIds(60, 300), 300, 2, isByWeight); // more than threads
  }
}

/// Blocks of more threads.
TEST(SortRows, ManyRows) {
  sorts(randomIds(9001, 3), 3, 0, false);
  sorts(randomIds(8500, 2), 2, 4000, true);
}

//===----------------------------------------------------------------------===//
// Counts
//===----------------------------------------------------------------------===//

TEST(CountRows, OfAllLayers) {
  Kernels kernels(R"(
func.func private @count(%a : tensor<6xi32>, %b : tensor<6xi32>) -> tensor<5xf32> attributes {rt.kernel} {
  %n = rt.count_rows %a, %b : (tensor<6xi32>, tensor<6xi32>) -> tensor<5xf32>
  return %n : tensor<5xf32>
})");
  Buffer<int32_t> a(Ids{0, 3, 3, 7, 8, 10}), b(Ids{0, 0, 0, 9, 9, 10});
  EXPECT_EQ(runAll<float>(kernels, "count", {a.data(), b.data()},
                          {Floats(5, NAN)})[0],
            (Floats{3, 0, 13, 1, 3}));
}

TEST(CountChoices, OfSequences) {
  for (int64_t sequences : {1, 3}) {
    constexpr int64_t experts = 7, ofEach = 301;
    Ids chosen = randomIds(size_t(sequences * ofEach), experts);
    Floats expected(size_t(sequences * experts), 0);
    for (size_t i = 0; i < chosen.size(); ++i)
      ++expected[i / ofEach * experts + size_t(chosen[i])];
    Kernels kernels(fill(R"(
func.func private @count(%i : tensor<$0xi32>) -> tensor<$1x7xf32> attributes {rt.kernel} {
  %n = rt.count_choices %i : (tensor<$0xi32>) -> tensor<$1x7xf32>
  return %n : tensor<$1x7xf32>
})",
                         {text(sequences * ofEach), text(sequences)}));
    Buffer<int32_t> ids(chosen);
    EXPECT_EQ(runAll<float>(kernels, "count", {ids.data()},
                            {Floats(expected.size(), NAN)})[0],
              expected);
  }
}
