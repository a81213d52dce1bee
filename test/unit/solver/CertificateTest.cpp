//===- CertificateTest.cpp - Tests of certificates and their bound --------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RandomCertificates.h"
#include "RandomSteps.h"
#include "reprise/Solver/Budget.h"
#include "tools/reprise-memplan/verify/Verify.h"

#include <gtest/gtest.h>

#include <limits>
#include <sstream>

using namespace reprise::solver;
using Rule = CertifiedTensor::Rule;

static constexpr double kInfinite = std::numeric_limits<double>::infinity();

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
    // However long the update takes, bounds are told apart.
    certificate.schedule.push_back({"update", 1e6, true, {}, {}, {0}});
    certificate.stepSeconds += 1e6;
    auto turn = certificate.schedule.end() - 5; // Two ops of backward each.
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

/// Layers of pairs of ops, all the first before all the second, so that any of
/// the first may be needed.
static Certificate makePairs(int numPairs, int numLayers = 1,
                             int64_t bytes = 10) {
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
      kind.tensors.push_back({name, bytes});
      kind.ops.push_back({"op of " + name, 1, true, {}, {name}});
      if (stage) {
        kind.ops.back().reads = {"a" + number};
        kind.backward[0].reads.push_back(name);
      }
      layer.keeps.push_back(name);
    }
  certificate.classes = {kind};
  certificate.layers.assign(numLayers, layer);
  makeSchedule(certificate);
  certificate.budgetBytes = certificate.peakBytes = 100000;
  certificate.points = {{numLayers, 0, 0, 0.25}};
  placeMoments(certificate, /*numReplays=*/0);
  computeBound(certificate);
  return certificate;
}

static std::string verify(const Certificate &certificate) {
  std::ostringstream text;
  writeCertificate(text, certificate);
  reprise::verify::CertificateFigures figures;
  auto fault = reprise::verify::verifyCertificate(text.str(), figures);
  return fault ? fault->message : "";
}

/// A certificate of any plan, for what its program takes.
static Certificate certifyPlan(const StepGraph &graph, const KeptValues &kept) {
  Certificate certificate;
  certificate.model = "random";
  certificate.machine = "none";
  certificate.kind = Certificate::Budget::Activations;
  certificate.budgetBytes = getPackedBytes(graph, kept);
  certify(graph, kept, 1e-3, certificate);
  certifyMemory(graph, kept, certificate);
  return certificate;
}

/// Whatever plans drop, also what joins layers, which runs again in the
/// backward pass of a later layer: what is kept is there as long as that reads
/// it.
TEST(Certificate, CheckerTakesAnyPlan) {
  int numReplays = 0, numRefused = 0;
  for (unsigned seed = 0; seed < 600; ++seed) {
    StepGraph graph = makeRandomChain(seed, 3, 3, 1 + seed % 2);
    std::mt19937 random(seed + 5000);
    KeptValues kept = keepAll(graph);
    for (int64_t value : getChoices(graph))
      kept[value] = random() % 9 > seed % 8;
    Certificate certificate = certifyPlan(graph, kept);
    EXPECT_EQ(verify(certificate), "") << seed;
    for (const CertifiedLayer &layer : certificate.layers)
      numReplays += layer.replays.size();
    // Of an op that has more bytes than the schedule.
    std::vector<CertifiedGradient> &backward =
        certificate.classes[1 + seed % (certificate.classes.size() - 1)]
            .backward;
    certificate.points.clear();
    backward[seed % backward.size()].bytes += certificate.peakBytes;
    computeBound(certificate);
    std::string message = verify(certificate);
    numRefused += message.find("' runs beside ") != std::string::npos;
  }
  EXPECT_GT(numReplays, 500);
  EXPECT_EQ(numRefused, 600);
}

/// What joins two layers is dropped, and runs again where the later one reads
/// it. From there on what the replay reads, a value of an earlier layer, is
/// free: it is not there when the later layer needs most.
TEST(Certificate, CheckerFreesWhatReplaysReadWhereTheyRun) {
  StepBuilder builder;
  int64_t x = builder.addValue("x", 10, /*isFree=*/true);
  int64_t y = builder.addValue("y", 10, /*isFree=*/true);
  int64_t z = builder.addValue("z", 1);
  std::vector<int64_t> d;
  for (const char *name : {"dz", "dy", "most", "dx", "dw"})
    d.push_back(builder.addValue(name, 4));
  using Phase = StepPhase;
  builder.addOp("embed", Phase::Forward, -1, 2, {}, {x});
  builder.addOp("join", Phase::Forward, 0, 1, {x}, {y});
  builder.addOp("use", Phase::Forward, 1, 1, {y}, {z});
  builder.addOp("loss", Phase::Backward, -1, 1, {z}, {d[0]});
  builder.addOp("use.backward", Phase::Backward, 1, 1, {d[0], y}, {d[1]});
  builder.addOp("most", Phase::Backward, 1, 1, {d[1]}, {d[2]}).workspace = 100;
  builder.addOp("join.backward", Phase::Backward, 0, 1, {d[2]}, {d[3]});
  builder.addOp("embed.backward", Phase::Backward, -1, 1, {d[3]}, {d[4]});
  KeptValues kept = keepAll(builder.graph);
  kept[y] = false;
  Certificate certificate = certifyPlan(builder.graph, kept);
  EXPECT_EQ(certificate.layers[1].replays, std::vector<std::string>{"join"});
  EXPECT_EQ(verify(certificate), "");

  // 'most' runs beside 8 bytes of gradients and 100 of workspace, and no
  // others.
  CertifiedGradient &most = certificate.classes[2].backward[1];
  EXPECT_EQ(most.bytes, 108);
  most.bytes += 1;
  EXPECT_EQ(
      verify(certificate),
      "'most' of 'layer1' runs beside 109 bytes, but the schedule has 108 "
      "alive at position 6");
}

/// At the turn backward has read nothing, so no op runs before it: there are
/// 2^11 sets of needed tensors, and not 3^11; but with 20 pairs more than the
/// checker goes through.
TEST(Certificate, CheckerGivesUpOnTooManySets) {
  for (int numPairs : {11, 20}) {
    Certificate certificate = makePairs(numPairs);
    // Each pair runs once for a second and keeps 0 bytes, or runs both.
    EXPECT_EQ(certificate.layers[0].minimum, 2.0 * numPairs);
    EXPECT_EQ(verify(certificate),
              numPairs == 11
                  ? ""
                  : "class 'pairs' has more than 65536 sets of tensors that "
                    "may be needed, or 4194304 ways to have them, too many to "
                    "go through");
  }
}

/// Each layer is looked for in what the gradients of all layers read.
TEST(Certificate, CheckerGivesUpOnTooManyReads) {
  Certificate certificate =
      makePairs(1, /*numLayers=*/(1 << 14) + 1, /*bytes=*/5);
  EXPECT_EQ(verify(certificate),
            "needs layers times gradients of all layers to come to at most "
            "268435456 in all chunks, but the last one has 16385 and 16385");
}

/// Lists are so short that sums of bytes do not overflow.
TEST(Certificate, ListsHaveALimit) {
  Certificate certificate = makePairs(1);
  certificate.classes[0].tensors.resize((1 << 18) + 1);
  EXPECT_EQ(verify(certificate),
            "needs a list of at most 262144, but got 262145");
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
