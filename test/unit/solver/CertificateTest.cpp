//===- CertificateTest.cpp - Tests of certificates and their bound --------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Solver/Certificate.h"
#include "tools/reprise-memplan/verify/Verify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <sstream>

using namespace reprise::solver;
using Rule = CertifiedTensor::Rule;

namespace {
constexpr double kInfinite = std::numeric_limits<double>::infinity();

bool contains(const std::vector<std::string> &list, const std::string &word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

/// The definition of a layer's term of the bound, all kept sets tried.
class Enumeration {
public:
  Enumeration(const Certificate &certificate, int64_t layer)
      : certificate(certificate), layer(layer),
        kind(certificate.classes[certificate.layers[layer].kind]) {}

  double getMinimum() {
    double best = kInfinite;
    for (unsigned kept = 0; kept < 1u << kind.tensors.size(); ++kept) {
      keeps.clear();
      bool isAllowed = true;
      for (size_t t = 0; t < kind.tensors.size(); ++t) {
        bool isKept = kept >> t & 1;
        if (isKept)
          keeps.push_back(kind.tensors[t].name);
        isAllowed &= kind.tensors[t].rule != (isKept ? Rule::Drop : Rule::Keep);
      }
      if (isAllowed)
        best = std::min(best, getSeconds() + getPricedBytes());
    }
    return best;
  }

private:
  void need(const std::string &tensor) {
    if (contains(keeps, tensor) || contains(kind.inputs, tensor))
      return;
    auto op =
        std::find_if(kind.ops.begin(), kind.ops.end(), [&](const auto &op) {
          return contains(op.writes, tensor);
        });
    if (contains(runs, op->name))
      return;
    runs.push_back(op->name);
    seconds += op->replayable ? op->seconds : kInfinite;
    for (const std::string &read : op->reads)
      need(read);
  }

  double getSeconds() {
    seconds = 0;
    runs.clear();
    for (const CertifiedGradient &gradient : kind.backward)
      for (const std::string &read : gradient.reads)
        need(read);
    for (size_t l = 0; l < certificate.layers.size(); ++l) {
      const CertifiedLayer &reader = certificate.layers[l];
      const CertifiedClass &readerKind = certificate.classes[reader.kind];
      for (const CertifiedGradient &gradient : readerKind.backward)
        for (size_t k = 0; k < reader.inputs.size(); ++k)
          if (reader.inputs[k].layer == layer &&
              contains(gradient.reads, readerKind.inputs[k]))
            need(reader.inputs[k].tensor);
    }
    return seconds;
  }

  double getPricedBytes() {
    double price = 0;
    for (const CertifiedMoment &moment : certificate.moments)
      for (const CertifiedTensor &tensor : kind.tensors) {
        bool isKept = contains(keeps, tensor.name), isThere = false;
        if (layer < moment.layer)
          isThere = isKept;
        if (layer == moment.layer)
          for (size_t g = moment.gradient; g < kind.backward.size(); ++g)
            isThere |= contains(kind.backward[g].reads, tensor.name) &&
                       (isKept || int64_t(g) == moment.gradient);
        int64_t others = certificate.layers[layer].inFlight - 1;
        price += moment.secondsPerByte * tensor.bytes *
                 (isThere + (isKept ? others : 0));
      }
    return price;
  }

  const Certificate &certificate;
  int64_t layer;
  const CertifiedClass &kind;
  std::vector<std::string> keeps, runs;
  double seconds = 0;
};
} // namespace

/// A class of up to six tensors with an input, and two ops of backward.
static CertifiedClass makeClass(std::mt19937 &random) {
  CertifiedClass kind;
  kind.name = "random";
  kind.inputs = {"in"};
  std::vector<std::string> readable = {"in"};
  auto pick = [&] {
    std::vector<std::string> reads;
    for (const std::string &name : readable)
      if (random() % 3 == 0)
        reads.push_back(name);
    return reads;
  };
  size_t count = 1 + random() % 6;
  while (kind.tensors.size() < count) {
    CertifiedOp op;
    op.name = "op" + std::to_string(kind.ops.size());
    op.seconds = random() % 5;
    op.replayable = random() % 8;
    op.reads = pick();
    for (int outputs = 1 + random() % 2; outputs > 0; --outputs) {
      std::string name = "t" + std::to_string(kind.tensors.size());
      Rule rule = random() % 8 ? Rule::Free : Rule(1 + random() % 2);
      if (!op.replayable)
        rule = Rule::Free;
      kind.tensors.push_back({name, int64_t(random() % 50), rule});
      op.writes.push_back(name);
    }
    readable.insert(readable.end(), op.writes.begin(), op.writes.end());
    kind.ops.push_back(std::move(op));
  }
  for (int k = 0; k < 2; ++k)
    kind.backward.push_back(
        {"gradient" + std::to_string(k), pick(), int64_t(random() % 50)});
  // What nothing can run again feeds nothing that must be dropped.
  for (const CertifiedOp &op : kind.ops)
    if (!op.replayable)
      for (const std::string &tensor : op.writes)
        kind.backward[0].reads.push_back(tensor);
  return kind;
}

/// The schedule of a certificate's layers: their ops, their backward. All of it
/// touches one buffer with more bytes than any moment can count.
static void makeSchedule(Certificate &certificate) {
  certificate.buffers.push_back({"all", 100000, 1, 0});
  double seconds = 0;
  for (const CertifiedLayer &layer : certificate.layers)
    for (const CertifiedOp &op : certificate.classes[layer.kind].ops) {
      certificate.schedule.push_back({op.name, op.seconds, false, {}, {}, {0}});
      seconds += op.seconds;
    }
  for (size_t l = certificate.layers.size(); l-- > 0;)
    for (const CertifiedGradient &gradient :
         certificate.classes[certificate.layers[l].kind].backward) {
      certificate.schedule.push_back({gradient.name, 1, false, {}, {}, {0}});
      seconds += 1;
    }
  certificate.stepSeconds = seconds * double(certificate.microBatches);
}

/// Puts moments where their ops run, on a schedule of ops, `numReplays`
/// launches that replay, and backward.
static void placeMoments(Certificate &certificate, int64_t numReplays) {
  int64_t forward = 0;
  for (const CertifiedLayer &layer : certificate.layers)
    forward += certificate.classes[layer.kind].ops.size();
  for (CertifiedMoment &moment : certificate.moments) {
    moment.position = forward - 1;
    int64_t numLayers = certificate.layers.size();
    if (moment.layer == numLayers)
      continue;
    moment.position += 1 + numReplays + moment.gradient;
    for (int64_t l = moment.layer + 1; l < numLayers; ++l)
      moment.position +=
          certificate.classes[certificate.layers[l].kind].backward.size();
  }
}

/// Two layers of one random class on top of one that makes their input.
static Certificate makeCertificate(std::mt19937 &random) {
  Certificate certificate;
  certificate.model = "random";
  certificate.machine = "none";
  certificate.microBatches = 2 + random() % 2;
  certificate.classes.push_back(
      {"embedding", {}, {{"x", 50}}, {{"embed", 1, true, {}, {"x"}}}, {}});
  certificate.classes.push_back(makeClass(random));
  const CertifiedClass &kind = certificate.classes.back();
  std::string last = kind.tensors.back().name;
  certificate.layers = {{"embedding", 0, 1, {}, {"x"}, {}},
                        {"first", 1, 1, {{0, "x"}}, {}, {}},
                        {"second", 1, 1, {{1, last}}, {}, {}}};
  for (CertifiedLayer &layer : certificate.layers) {
    layer.inFlight = 1 + random() % 2;
    if (layer.kind == 1)
      for (const CertifiedTensor &tensor : kind.tensors)
        if (tensor.rule != Rule::Drop)
          layer.keeps.push_back(tensor.name);
  }
  for (int k = 1 + random() % 2; k > 0; --k)
    certificate.moments.push_back(
        {int64_t(1 + random() % 3), 0, 0, (random() % 10) / 64.0});
  for (CertifiedMoment &moment : certificate.moments)
    if (moment.layer < 3)
      moment.gradient = random() % 2;
  makeSchedule(certificate);
  return certificate;
}

TEST(Certificate, BoundIsTheDefinition) {
  std::mt19937 random(3);
  int numFinite = 0;
  for (int k = 0; k < 2000; ++k) {
    Certificate certificate = makeCertificate(random);
    computeBound(certificate);
    for (size_t l = 0; l < certificate.layers.size(); ++l) {
      double expected = Enumeration(certificate, l).getMinimum();
      double minimum = certificate.layers[l].minimum;
      numFinite += expected < kInfinite;
      if (expected == kInfinite)
        ASSERT_EQ(minimum, kInfinite) << k;
      else
        ASSERT_NEAR(minimum, expected, 1e-9 * (1 + expected)) << k;
    }
  }
  EXPECT_GT(numFinite, 5000);
}

/// The checker finds the same by a search of its own. The plan is to keep all
/// that may be kept and to replay what must be.
TEST(Certificate, CheckerAgrees) {
  std::mt19937 random(4);
  int numChecked = 0;
  for (int k = 0; k < 1000; ++k) {
    Certificate certificate = makeCertificate(random);
    computeBound(certificate);
    if (certificate.lowerBoundSeconds == kInfinite)
      continue;
    double seconds = 0;
    auto turn = certificate.schedule.end() - 4; // Two ops of backward each.
    CertifiedLaunch again = {"again", 0, false, {}, {}, {0}};
    for (size_t l = 1; l < 3; ++l)
      for (const CertifiedOp &op : certificate.classes[1].ops) {
        bool isDropped = false;
        for (const CertifiedTensor &tensor : certificate.classes[1].tensors)
          isDropped |=
              contains(op.writes, tensor.name) && tensor.rule == Rule::Drop;
        if (!isDropped)
          continue;
        certificate.layers[l].replays.push_back(op.name);
        again.replays.push_back({int64_t(l), op.name});
        seconds += op.seconds;
      }
    if (!again.replays.empty())
      certificate.schedule.insert(turn, again);
    placeMoments(certificate, !again.replays.empty());
    certificate.replaySeconds = seconds * certificate.microBatches;
    certificate.peakBytes = 100000;
    for (const CertifiedLayer &layer : certificate.layers)
      for (const CertifiedTensor &tensor :
           certificate.classes[layer.kind].tensors)
        if (contains(layer.keeps, tensor.name))
          certificate.peakBytes += (layer.inFlight - 1) * tensor.bytes;
    certificate.budgetBytes = certificate.peakBytes + 100;
    computeBound(certificate);

    std::ostringstream text;
    writeCertificate(text, certificate);
    reprise::verify::CertificateFigures figures;
    auto fault = reprise::verify::verifyCertificate(text.str(), figures);
    ASSERT_FALSE(fault) << k << ": " << fault->message << '\n' << text.str();
    ASSERT_EQ(figures.peak, certificate.peakBytes);
    ASSERT_EQ(figures.bound, certificate.lowerBoundSeconds);
    ++numChecked;

    // A bound that is a little too good is found out.
    certificate.lowerBoundSeconds += 1e-6 * (1 + seconds);
    std::ostringstream wrong;
    writeCertificate(wrong, certificate);
    fault = reprise::verify::verifyCertificate(wrong.str(), figures);
    ASSERT_TRUE(fault) << k;
    ASSERT_EQ(fault->message.substr(0, 13), "the bound is ") << fault->message;
  }
  EXPECT_GT(numChecked, 500);
}

/// Pairs of ops, all the first before all the second, so that any of the first
/// may be needed: more than the checker goes through.
TEST(Certificate, CheckerGivesUpOnTooManySets) {
  for (int numPairs : {10, 20}) {
    Certificate certificate;
    CertifiedClass kind;
    kind.name = "pairs";
    kind.backward = {{"gradient", {}, 0}};
    CertifiedLayer layer;
    layer.name = "layer";
    for (int stage = 0; stage < 2; ++stage)
      for (int k = 0; k < numPairs; ++k) {
        std::string number = std::to_string(k);
        std::string name = (stage ? "b" : "a") + number;
        kind.tensors.push_back({name, 10});
        kind.ops.push_back({"op of " + name, 1, true, {}, {name}});
        if (stage) {
          kind.ops.back().reads = {"a" + number};
          kind.backward[0].reads.push_back(name);
        }
        layer.keeps.push_back(name);
      }
    certificate.classes = {kind};
    certificate.layers = {layer};
    makeSchedule(certificate);
    certificate.budgetBytes = certificate.peakBytes = 100000;
    certificate.moments = {{1, 0, 0, 0.25}};
    placeMoments(certificate, /*numReplays=*/0);
    computeBound(certificate);
    // Each pair runs once for a second and keeps 0 bytes, or runs both.
    EXPECT_EQ(certificate.layers[0].minimum, 2.0 * numPairs);
    std::ostringstream text;
    writeCertificate(text, certificate);
    reprise::verify::CertificateFigures figures;
    auto fault = reprise::verify::verifyCertificate(text.str(), figures);
    ASSERT_EQ(fault.has_value(), numPairs == 20);
    if (fault)
      EXPECT_EQ(fault->message,
                "class 'pairs' has more than 65536 sets of tensors that may "
                "be needed, too many to go through");
  }
}

TEST(Certificate, EscapesNames) {
  Certificate certificate;
  certificate.model = "a \"b\" \\ \n";
  std::ostringstream text;
  writeCertificate(text, certificate);
  EXPECT_NE(text.str().find(R"("model": "a \"b\" \\ \u000a")"),
            std::string::npos)
      << text.str();
}

TEST(Certificate, NumbersReadBackAsTheyWere) {
  Certificate certificate;
  certificate.stepSeconds = 0.1;
  certificate.replaySeconds = 1.0 / 3;
  std::ostringstream text;
  writeCertificate(text, certificate);
  EXPECT_NE(text.str().find("\"step_seconds\": 0.1,"), std::string::npos);
  EXPECT_NE(text.str().find("\"replay_seconds\": 0.3333333333333333,"),
            std::string::npos);
}
