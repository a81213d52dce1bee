//===- PlanJSON.cpp - A plan for programs to read ---------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Report/Plan.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::report;

static void writeValues(llvm::json::OStream &json,
                        const remat::LayerPlan &layer) {
  json.attributeArray("saved", [&] {
    for (const remat::SavedValue &value : layer.saved)
      json.object([&] {
        json.attribute("name", value.name);
        json.attribute("bytes", value.bytes);
      });
  });
  json.attributeArray("recomputed", [&] {
    for (const remat::Replay &replay : layer.recomputed)
      json.object([&] {
        json.attribute("name", replay.name);
        json.attribute("op", replay.op);
        json.attribute("flops", replay.flops);
        json.attribute("label", replay.label);
      });
  });
}

static void writeLayer(llvm::json::OStream &json, const remat::LayerPlan &layer,
                       const std::optional<Reference> &reference) {
  json.object([&] {
    json.attribute("layer", layer.layer);
    // All layers are one model chunk.
    json.attribute("stage", 0);
    json.attribute("chunk", 0);
    if (reference)
      if (auto bytes = reference->layerBytes.find(layer.layer);
          bytes != reference->layerBytes.end())
        json.attribute("reference_bytes", bytes->second);
    writeValues(json, layer);
  });
}

void Plan::writeJSON(llvm::raw_ostream &os) const {
  assert(memory && "needs a schedule");
  llvm::json::OStream json(os);
  json.object([&] {
    json.attribute("peak_bytes", memory->arenaBytes);
    json.attribute("lower_bound_bytes", memory->boundBytes);
    json.attribute("replay_flops", replayFlops);
    json.attribute("step_flops", stepFlops);
    json.attribute("micro_batches", numMicroBatches);
    json.attributeObject("categories", [&] {
      for (const auto &[name, bytes] : memory->categories)
        json.attribute(name, bytes);
    });
    if (reference)
      json.attributeObject("accounting", [&] {
        json.attribute("scheme", "megatron");
        json.attribute("tensor_model_parallel_size",
                       reference->parallelism.tensor);
        json.attribute("sequence_parallel", reference->parallelism.sequence);
      });
    json.attributeArray("segments", [&] {
      for (const auto &segment : decisions.segments)
        json.array([&] {
          json.value(segment.first);
          json.value(segment.second);
        });
    });
    json.attributeArray("layers", [&] {
      for (const remat::LayerPlan &layer : decisions.layers)
        if (layer.layer >= 0)
          writeLayer(json, layer, reference);
    });
    json.attributeObject("outside_layers", [&] {
      remat::LayerPlan none;
      bool isThere =
          !decisions.layers.empty() && decisions.layers.back().layer < 0;
      writeValues(json, isThere ? decisions.layers.back() : none);
    });
  });
  os << "\n";
}
