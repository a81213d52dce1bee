//===- Family.h - What a family of models is made of ------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A family is a constant: the keys that it takes with their defaults, the kinds
// of blocks that its layers have, and the names of their tensors. Each has a
// file of its own in families/ and a row in Families.def. Nothing else knows
// one family from another.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_FRONTEND_FAMILY_H
#define REPRISE_FRONTEND_FAMILY_H

#include "python-free-frontend/Description.h"

#include "reprise/Dialect/NN/NNOps.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/JSON.h"

#include <cstdint>
#include <optional>

namespace reprise::frontend {

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

enum class Need {
  Required,
  Unset, ///< May be left out; the default is shown, not a value.
  Defaulted,
  HFDefault, ///< Required, but has the default in a Hugging Face file.
  ByFamily,  ///< As each family that has the key says.
};

/// A key of the section `model` that a family takes; the table of keys has its
/// type and meaning.
struct KeyUse {
  llvm::StringLiteral name, defaultValue;
  Need need = Need::Defaulted;
  /// What a `config.json` without the key means, where it is not the default.
  llvm::StringLiteral absent = "";
  /// What null means there, where it is not the default.
  llvm::StringLiteral null = "";
};

struct HubModel;

/// A key of `config.json` that changes what models compute, unless its value is
/// null or neutral.
struct RefusedKey {
  llvm::StringLiteral names; ///< `a|b`; one that ends in `*` is the beginning.
  /// Values that change nothing, `a|b`, alone or all through a list: words,
  /// numbers, `>=N`, `*` for all, or `off`, which is what `isOff` says.
  llvm::StringLiteral neutral = "off";
  /// In its place, of the model of a file; the row is for others if it is
  /// empty.
  std::string (*own)(const HubModel &model) = nullptr;
};

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

enum class NormKind { LayerNorm, RMSNorm };
enum class AttentionKind {
  Heads, ///< Queries, keys and values are projections.
  /// Keys and values are projections of a normed latent, and queries of such a
  /// one or not; a part of each head has a position, of keys the same for all.
  Latent,
};
enum class PositionKind {
  Learned, ///< A table whose rows are added to the embedding.
  Rotary,  ///< Queries and keys are turned, half split.
};
/// What queries and keys are normed over before they are turned; the last by
/// `use_qk_norm`.
enum class QueryKeyNorm { None, Head, Projection, HeadByKey };
enum class MLPKind {
  Plain,  ///< act(x W1) W2, of which a key says act
  SwiGLU, ///< (silu(x Wg) * x Wu) Wd
};
/// What layers with experts have in place of the MLP; which layers these are,
/// keys say.
enum class ExpertKind {
  None,             ///< No layer has experts.
  Routed,           ///< Each token goes to some of the experts.
  RoutedAndShared,  ///< And to one that all share, times sigmoid(x wg).
  RoutedPlusShared, ///< And to one that all share, as it is.
};
/// By what experts are chosen, and weighted.
enum class RouterKind {
  Softmax, ///< Of logits; groups by their largest.
  /// Of each logit; chosen with a bias that is not trained, groups by the sum
  /// of their two largest.
  Sigmoid,
};
/// Whether projections have a bias.
enum class BiasKind { Never, Always, ByKey };

/// The defaults are what most families with rotary positions have.
struct Blocks {
  NormKind norm = NormKind::RMSNorm;
  AttentionKind attention = AttentionKind::Heads;
  PositionKind positions = PositionKind::Rotary;
  QueryKeyNorm queryKeyNorm = QueryKeyNorm::None;
  MLPKind mlp = MLPKind::SwiGLU;
  ExpertKind experts = ExpertKind::None; ///< Each one a SwiGLU.
  RouterKind router = RouterKind::Softmax;
  /// Whether layers that predict further tokens may follow the others.
  bool mayPredictFurther = false;
  nn::WeightLayout layout = nn::WeightLayout::OutIn; ///< Of projections.
  /// By `attention_bias`, as the next.
  BiasKind queryKeyValueBias = BiasKind::ByKey;
  BiasKind outputBias = BiasKind::ByKey;
  BiasKind mlpBias = BiasKind::ByKey; ///< By `mlp_bias`.
  /// Projections into the residual stream start smaller, so that its variance
  /// does not grow with the number of layers: by 1 / sqrt(2 * layers).
  bool scalesResidualInit = false;
  /// Streams of random numbers, for dropouts that are off as well: before the
  /// layers, and in each. The first of a layer is the one of its attention.
  int64_t streamsBefore = 0, streamsPerLayer = 1;
};

/// Names of published tensors without `.weight` and `.bias`; those of a layer
/// follow `layer` and its number. A part without a name is one that the family
/// does not have. The defaults are what most families have.
struct TensorNames {
  using Name = llvm::StringLiteral;
  Name embedding = "model.embed_tokens", positions = "";
  Name layer = "model.layers.", finalNorm = "model.norm";
  /// A norm may stand before a block, behind it, or both.
  Name attentionNorm = ".input_layernorm", attentionNormAfter = "";
  Name mlpNorm = ".post_attention_layernorm", mlpNormAfter = "";
  Name query = ".self_attn.q_proj", key = ".self_attn.k_proj";
  Name value = ".self_attn.v_proj", output = ".self_attn.o_proj";
  /// The published tensor that has the three projections side by side.
  Name queryKeyValue = "";
  Name queryNorm = ".self_attn.q_norm", keyNorm = ".self_attn.k_norm";
  /// Of latent attention: down, the norm, and up.
  Name queryDown = ".self_attn.q_a_proj";
  Name queryLatentNorm = ".self_attn.q_a_layernorm";
  Name queryUp = ".self_attn.q_b_proj";
  Name keyValueDown = ".self_attn.kv_a_proj_with_mqa";
  Name latentNorm = ".self_attn.kv_a_layernorm";
  Name keyValueUp = ".self_attn.kv_b_proj";
  Name gate = ".mlp.gate_proj", up = ".mlp.up_proj", down = ".mlp.down_proj";
  Name router = ".mlp.gate";
  /// A tensor without `.weight` at the end of its name.
  Name routerBias = ".mlp.gate.e_score_correction_bias";
  /// The `*` stands for the number of the expert: each has tensors of its own.
  Name expertGate = ".mlp.experts.*.gate_proj";
  Name expertUp = ".mlp.experts.*.up_proj";
  Name expertDown = ".mlp.experts.*.down_proj";
  Name sharedGate = ".mlp.shared_expert.gate_proj";
  Name sharedUp = ".mlp.shared_expert.up_proj";
  Name sharedDown = ".mlp.shared_expert.down_proj";
  Name sharedWeight = ".mlp.shared_expert_gate";
  /// Of a layer that predicts a further token: the norms of what it reads, the
  /// projection of both, and the norm before the head.
  Name embeddingNorm = ".enorm", hiddenNorm = ".hnorm";
  Name furtherProjection = ".eh_proj", furtherNorm = ".shared_head.norm";
};

//===----------------------------------------------------------------------===//
// Families
//===----------------------------------------------------------------------===//

struct Family {
  llvm::StringLiteral name = "";      ///< Its `model_type`: `llama`.
  llvm::StringLiteral className = ""; ///< Classes in transformers begin so,
  llvm::StringLiteral headClass = "ForCausalLM"; ///< and end so with the head.
  llvm::StringLiteral otherNames = ""; ///< For `name`, separated by `|`.
  llvm::ArrayRef<KeyUse> keys;
  /// Beside those that all families refuse.
  llvm::ArrayRef<RefusedKey> refused;
  /// Keys of `config.json` that change nothing here.
  llvm::ArrayRef<llvm::StringLiteral> ignored;
  Blocks blocks;
  TensorNames tensors;
  /// Whether the class gives the row of the embedding of `pad_token_id` no
  /// gradient, and the one that a file without the key has; -1: none.
  bool padsEmbedding = true;
  int64_t padToken = -1;
  /// Whether a file that does not say what it is for is for this family; null
  /// if none is.
  bool (*recognizes)(const llvm::json::Object &config) = nullptr;

  /// How it takes the key; null if it does not.
  const KeyUse *findUse(llvm::StringRef key) const;
  bool hasRotaryPositions() const {
    return blocks.positions == PositionKind::Rotary;
  }
};

#define FAMILY(NAME) extern const Family k##NAME;
#include "python-free-frontend/Families.def"

/// All families, in the order of Families.def.
llvm::ArrayRef<const Family *> allFamilies();

/// The family of that name, `architectures` of `config.json` included
/// (`LlamaForCausalLM`); null if there is none.
const Family *parseFamily(llvm::StringRef name);
/// "gpt2", "llama and qwen3".
std::string describeFamilies(llvm::ArrayRef<const Family *> families);
/// Of the model with its head, in transformers: `LlamaForCausalLM`.
std::string getClassName(const Family &family);

} // namespace reprise::frontend

#endif // REPRISE_FRONTEND_FAMILY_H
