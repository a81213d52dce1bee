//===- Modules.h - The parts that models are made of ------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_SUPPORT_MODULES_H
#define REPRISE_SUPPORT_MODULES_H

#include "llvm/ADT/StringRef.h"
#include <initializer_list>
#include <optional>

namespace reprise {
/// A part of a model: what `module` of `nn.scope` says, by which policies find
/// ops.
enum class ModuleKind {
  Embedding,
  LayerNorm,
  Attention,
  CoreAttention,
  MLP,
  MoE,
  MoEActivation,
  SharedExperts,
  LatentUpProjection,
  FurtherToken,
  Residual,
  Head,
  Loss,
  Optimizer,
};

struct ModuleInfo {
  ModuleKind kind;
  llvm::StringLiteral name; ///< in `nn.scope`
};

/// All modules, in the order of the enum.
inline constexpr ModuleInfo kModuleTable[] = {
    {ModuleKind::Embedding, "embedding"},
    {ModuleKind::LayerNorm, "layernorm"},
    {ModuleKind::Attention, "attention"}, // Its projections.
    {ModuleKind::CoreAttention, "core_attn"},
    {ModuleKind::MLP, "mlp"},
    {ModuleKind::MoE, "moe"}, // Routing, and the GEMMs of experts.
    {ModuleKind::MoEActivation, "moe_act"}, // Between these.
    {ModuleKind::SharedExperts, "shared_experts"},
    {ModuleKind::LatentUpProjection, "mla_up_proj"},
    // What a layer that predicts a further token begins with.
    {ModuleKind::FurtherToken, "mtp"},
    {ModuleKind::Residual, "residual"},
    {ModuleKind::Head, "head"},
    {ModuleKind::Loss, "loss"},
    {ModuleKind::Optimizer, "optimizer"},
};

constexpr llvm::StringLiteral getName(ModuleKind kind) {
  return kModuleTable[int(kind)].name;
}

/// The module called `name`; none for any other word.
inline std::optional<ModuleKind> parseModule(llvm::StringRef name) {
  for (const ModuleInfo &info : kModuleTable)
    if (info.name == name)
      return info.kind;
  return std::nullopt;
}

/// Some modules.
class ModuleSet {
public:
  constexpr ModuleSet(std::initializer_list<ModuleKind> kinds) {
    for (ModuleKind kind : kinds)
      bits |= 1u << int(kind);
  }
  constexpr bool contains(ModuleKind kind) const {
    return bits >> int(kind) & 1;
  }

private:
  unsigned bits = 0;
};
} // namespace reprise

#endif // REPRISE_SUPPORT_MODULES_H
