//===- RecomputeLabels.h - The words of recompute_modules -------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_SUPPORT_RECOMPUTELABELS_H
#define REPRISE_SUPPORT_RECOMPUTELABELS_H

#include "llvm/ADT/StringRef.h"

namespace reprise {
enum class LabelKind {
  /// Drops what is inside a region; its outputs stay.
  Plain,
  /// Drops the outputs of a region too.
  OutputDiscarding,
  /// Works on a part that no model here has, and in no release of Megatron Core
  /// up to 0.19: refused.
  Newer,
};

/// What a model without the region makes of the label.
enum class WithoutRegion {
  Warns,   ///< It is accepted, and frees nothing.
  Refuses, ///< It is an error.
};

/// A label of Megatron Core's `recompute_modules`, or of ours.
struct RecomputeLabel {
  llvm::StringLiteral name;
  LabelKind kind;
  /// The modules of `nn.scope` that are the region, separated by `|`.
  llvm::StringLiteral modules;
  /// What a model without the region lacks.
  llvm::StringLiteral what;
  WithoutRegion without = WithoutRegion::Refuses;

  /// Whether a model with the region may have it named.
  constexpr bool isAccepted() const { return kind != LabelKind::Newer; }
  /// Whether the module is of the region.
  bool covers(llvm::StringRef module) const {
    llvm::StringRef rest = modules;
    while (!rest.empty()) {
      auto [first, others] = rest.split('|');
      if (first == module)
        return true;
      rest = others;
    }
    return false;
  }
};

/// All labels, in the order in which they are listed to people.
///
/// Source: Megatron Core, `recompute_modules` of TransformerConfig, releases
/// 0.15 to 0.19; the last four are of its main branch of August 2026.
/// `core_attn_out` is Reprise's own: Megatron never drops what the attention
/// core puts out.
inline constexpr RecomputeLabel kRecomputeLabels[] = {
    {"core_attn", LabelKind::Plain, "core_attn", "attention",
     WithoutRegion::Warns},
    {"core_attn_out", LabelKind::OutputDiscarding, "core_attn", "attention",
     WithoutRegion::Warns},
    {"mlp", LabelKind::Plain, "mlp", "layer without experts",
     WithoutRegion::Warns},
    {"layernorm", LabelKind::OutputDiscarding, "layernorm", "norms",
     WithoutRegion::Warns},
    {"moe", LabelKind::Plain, "moe|moe_act|shared_experts", "experts",
     WithoutRegion::Warns},
    {"moe_act", LabelKind::OutputDiscarding, "moe_act", "experts"},
    {"shared_experts", LabelKind::Plain, "shared_experts", "shared experts"},
    {"mla_up_proj", LabelKind::OutputDiscarding, "mla_up_proj",
     "multi-head latent attention"},
    {"gdn_norm_out", LabelKind::Newer, "", "gated delta nets"},
    {"gdp_in_proj", LabelKind::Newer, "", "gated delta products"},
    {"gdp_qkv", LabelKind::Newer, "", "gated delta products"},
    {"mhc", LabelKind::Newer, "", "hyper-connections"},
};
} // namespace reprise

#endif // REPRISE_SUPPORT_RECOMPUTELABELS_H
