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
  /// A region that dense models do not have: frees nothing.
  Absent,
  /// Works on a part that no model here has: refused.
  Refused,
  /// As `Refused`, and in no release of Megatron Core up to 0.19.
  Newer,
};

/// A label of Megatron Core's `recompute_modules`, or of ours.
struct RecomputeLabel {
  llvm::StringLiteral name;
  LabelKind kind;
  /// The module of `nn.scope` that is the region; for those without a region,
  /// what the model lacks.
  llvm::StringLiteral what;

  /// Whether a description or an option may name it.
  constexpr bool isAccepted() const {
    return kind != LabelKind::Refused && kind != LabelKind::Newer;
  }
};

/// All labels, in the order in which they are listed to people.
///
/// Source: Megatron Core, `recompute_modules` of TransformerConfig, releases
/// 0.15 to 0.19; the last four are of its main branch of August 2026.
/// `core_attn_out` is Reprise's own: Megatron never drops what the attention
/// core puts out.
inline constexpr RecomputeLabel kRecomputeLabels[] = {
    {"core_attn", LabelKind::Plain, "core_attn"},
    {"core_attn_out", LabelKind::OutputDiscarding, "core_attn"},
    {"mlp", LabelKind::Plain, "mlp"},
    {"layernorm", LabelKind::OutputDiscarding, "layernorm"},
    {"moe", LabelKind::Absent, "experts"},
    {"moe_act", LabelKind::Refused, "experts"},
    {"shared_experts", LabelKind::Refused, "shared experts"},
    {"mla_up_proj", LabelKind::Refused, "multi-head latent attention"},
    {"gdn_norm_out", LabelKind::Newer, "gated delta nets"},
    {"gdp_in_proj", LabelKind::Newer, "gated delta products"},
    {"gdp_qkv", LabelKind::Newer, "gated delta products"},
    {"mhc", LabelKind::Newer, "hyper-connections"},
};
} // namespace reprise

#endif // REPRISE_SUPPORT_RECOMPUTELABELS_H
