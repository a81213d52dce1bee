//===- Labels.cpp - The words of recompute_modules ---------------------*- C++
//-*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Remat/Labels.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>

using namespace llvm;
using namespace reprise::remat;

/// Source: Megatron Core, `recompute_modules` of TransformerConfig, releases
/// 0.15 to 0.19; the last four are of its main branch of August 2026.
static constexpr Label kLabels[] = {
    {"core_attn", LabelKind::Plain, "core_attn"},
    {"mlp", LabelKind::Plain, "mlp"},
    {"layernorm", LabelKind::OutputDiscarding, "layernorm"},
    {"moe", LabelKind::Absent, "experts"},
    {"shared_experts", LabelKind::Absent, "shared experts"},
    {"moe_act", LabelKind::Refused, "experts"},
    {"mla_up_proj", LabelKind::Refused, "multi-latent attention"},
    {"gdn_norm_out", LabelKind::Newer, "gated delta net layers"},
    {"gdp_in_proj", LabelKind::Newer, "gated delta product layers"},
    {"gdp_qkv", LabelKind::Newer, "gated delta product layers"},
    {"mhc", LabelKind::Newer, "hyper-connections"},
};

ArrayRef<Label> reprise::remat::getLabels() { return kLabels; }

const Label *reprise::remat::findLabel(StringRef name) {
  const Label *label = llvm::find_if(
      kLabels, [&](const Label &known) { return known.name == name; });
  return label == std::end(kLabels) ? nullptr : label;
}

/// The labels that can be asked for, separated by commas.
static std::string listLabels() {
  std::string list;
  for (const Label &label : kLabels) {
    if (label.kind == LabelKind::Refused || label.kind == LabelKind::Newer)
      continue;
    list += (list.empty() ? "" : ", ") + label.name.str();
  }
  return list;
}

std::string reprise::remat::explainRefusedLabel(StringRef name) {
  const Label *label = findLabel(name);
  if (!label) {
    const Label *nearest = kLabels;
    unsigned distance = std::numeric_limits<unsigned>::max();
    for (const Label &known : kLabels) {
      unsigned edits = known.name.edit_distance(name);
      if (edits < distance) {
        distance = edits;
        nearest = &known;
      }
    }
    return "needs labels out of " + listLabels() + ", but got '" + name.str() +
           "'; the nearest label is '" + nearest->name.str() + "'";
  }
  if (label->kind == LabelKind::Refused)
    return "label '" + name.str() + "' needs " + label->what.str() +
           ", which this model does not have; it can have " + listLabels();
  if (label->kind == LabelKind::Newer)
    return "label '" + name.str() + "' needs " + label->what.str() +
           ", which Megatron Core has on its main branch of August 2026 and "
           "Reprise has not; it can have " +
           listLabels();
  return "";
}
