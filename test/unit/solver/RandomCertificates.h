//===- RandomCertificates.h - Small certificates to try ---------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TEST_UNIT_SOLVER_RANDOMCERTIFICATES_H
#define REPRISE_TEST_UNIT_SOLVER_RANDOMCERTIFICATES_H

#include "reprise/Solver/Certificate.h"

#include <algorithm>
#include <random>

namespace reprise::solver {

inline bool contains(const std::vector<std::string> &list,
                     const std::string &word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

/// A class of up to six tensors with an input, and two ops of backward.
inline CertifiedClass makeClass(std::mt19937 &random) {
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
      using Rule = CertifiedTensor::Rule;
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
/// touches one buffer with more bytes than any point can count.
inline void makeSchedule(Certificate &certificate) {
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

/// Puts points where their ops run, on a schedule of ops, `numReplays`
/// launches that replay, and backward.
inline void placeMoments(Certificate &certificate, int64_t numReplays) {
  int64_t forward = 0;
  for (const CertifiedLayer &layer : certificate.layers)
    forward += certificate.classes[layer.kind].ops.size();
  for (PricedPoint &point : certificate.points) {
    point.position = forward - 1;
    int64_t numLayers = certificate.layers.size();
    if (point.layer == numLayers)
      continue;
    point.position += 1 + numReplays + point.gradient;
    for (int64_t l = point.layer + 1; l < numLayers; ++l)
      point.position +=
          certificate.classes[certificate.layers[l].kind].backward.size();
  }
}

/// Layers of one random class on top of one that makes their input; of those in
/// the middle, on one side of all points, all is equal if they have as many
/// micro-batches in flight.
inline Certificate makeCertificate(std::mt19937 &random, int64_t numLayers = 2,
                                   bool areEqual = false) {
  Certificate certificate;
  certificate.model = "random";
  certificate.machine = "none";
  certificate.microBatches = 2 + random() % 2;
  certificate.classes.push_back(
      {"embedding", {}, {{"x", 50}}, {{"embed", 1, true, {}, {"x"}}}, {}});
  certificate.classes.push_back(makeClass(random));
  const CertifiedClass &kind = certificate.classes.back();
  std::string read = "x";
  certificate.layers = {{"embedding", 0, 1, {}, {read}, {}}};
  for (int64_t l = 1; l <= numLayers; ++l) {
    certificate.layers.push_back(
        {"layer" + std::to_string(l), 1, 1, {{l - 1, read}}, {}, {}});
    read = kind.tensors.back().name;
  }
  for (CertifiedLayer &layer : certificate.layers) {
    if (!areEqual || layer.kind == 0)
      layer.inFlight = 1 + random() % 2;
    else
      layer.inFlight = certificate.layers[0].inFlight;
    if (layer.kind == 1)
      for (const CertifiedTensor &tensor : kind.tensors)
        if (tensor.rule != CertifiedTensor::Rule::Drop)
          layer.keeps.push_back(tensor.name);
  }
  for (int k = 1 + random() % 2; k > 0; --k)
    certificate.points.push_back({int64_t(1 + random() % (numLayers + 1)), 0, 0,
                                  (random() % 10) / 64.0});
  for (PricedPoint &point : certificate.points)
    if (point.layer <= numLayers)
      point.gradient = random() % 2;
  makeSchedule(certificate);
  return certificate;
}

} // namespace reprise::solver

#endif // REPRISE_TEST_UNIT_SOLVER_RANDOMCERTIFICATES_H
