//===- VerifyCertificate.cpp - Checks a budget's plan ---------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Claims.h"

using namespace reprise::verify;

std::optional<Fault> reprise::verify::checkClaims(const Claims &claims,
                                                  CertificateFigures &figures,
                                                  Line &line, Effort &left) {
  for (auto check : {checkMemory, checkPlan, checkOrder})
    if (std::optional<Fault> fault = check(claims))
      return fault;
  if (std::optional<Fault> fault = checkBound(claims, line, left))
    return fault;
  if (std::optional<Fault> fault = checkTensors(claims))
    return fault;

  figures.model = claims.model;
  figures.under = claims.under;
  figures.machine = claims.machine;
  figures.isOfActivations = claims.isOfActivations;
  figures.layers = claims.layers.size();
  figures.buffers = claims.buffers.size();
  figures.positions = claims.schedule.size();
  figures.points = claims.points.size();
  figures.microBatches = claims.microBatches;
  figures.budget = claims.budget;
  figures.base = claims.base;
  figures.peak = claims.peak;
  figures.step = claims.step;
  figures.replay = claims.replay;
  figures.bound = claims.bound;
  for (const Layer &layer : claims.layers) {
    figures.replays += layer.replays.size();
    for (const Tensor &tensor : claims.classes[layer.kind].tensors) {
      figures.keepRules += tensor.rule == Rule::Keep;
      figures.dropRules += tensor.rule == Rule::Drop;
    }
    for (const Op &op : claims.classes[layer.kind].ops)
      figures.fixedOps += !op.canReplay;
  }
  for (const PricedPoint &point : claims.points)
    figures.secondsPerByte += point.secondsPerByte * claims.microBatches;
  return std::nullopt;
}

std::optional<Fault>
reprise::verify::verifyCertificate(std::string_view text,
                                   CertificateFigures &figures) {
  Json value;
  if (std::optional<Fault> fault = readJson(text, value))
    return fault;
  const Json *kind = value.find("kind");
  if (kind && kind->kind == Json::Kind::String && kind->text == "pipeline") {
    Pipeline pipeline;
    if (std::optional<Fault> fault = readPipeline(value, pipeline))
      return fault;
    return checkPipeline(pipeline, figures);
  }
  Claims claims;
  if (std::optional<Fault> fault = readClaims(value, claims))
    return fault;
  Line line;
  Effort left;
  return checkClaims(claims, figures, line, left);
}
