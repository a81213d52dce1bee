//===- DrawModel.cpp - Models at random -----------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DrawModel.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace reprise;
using namespace reprise::frontend;
using namespace reprise::test;
using llvm::StringRef;

bool ModelDraw::setFirst(std::initializer_list<StringRef> names,
                         int64_t value) {
  for (StringRef name : names)
    if (takes(name)) {
      set(name, value);
      return true;
    }
  return false;
}

void ModelDraw::drawDropouts() {
  for (const char *key : {"resid_pdrop", "embd_pdrop", "attn_pdrop"})
    if (takes(key))
      set(key, draw.oneIn(3) ? "0.1" : "0.0");
}

void ModelDraw::drawLatents() {
  if (!isLatent())
    return;
  if (draw.oneIn(2))
    set("q_lora_rank", draw.number(4, 24));
  set("kv_lora_rank", draw.number(4, 24));
  set("qk_nope_head_dim", draw.number(1, 16));
  set("qk_rope_head_dim", 2 * draw.number(1, 6));
  set("v_head_dim", draw.number(4, 16));
}

/// With groups a token's experts are of the best, which have enough.
void ModelDraw::drawGroups(int64_t groups) {
  if (!takes("n_group"))
    return;
  set("n_group", groups);
  set("topk_group", draw.number((groups + 1) / 2, groups));
  if (takes("topk_method"))
    set("topk_method", groups > 1 ? "group_limited_greedy" : "greedy");
}

void ModelDraw::drawLayersWithExperts(int64_t layers) {
  if (takes("first_k_dense_replace"))
    set("first_k_dense_replace", draw.number(0, layers - 1));
  if (takes("decoder_sparse_step"))
    set("decoder_sparse_step", draw.number(1, std::min<int64_t>(layers, 2)));
}

void ModelDraw::drawTerms() {
  if (!hasExperts())
    return;
  if (takes("output_router_logits") && draw.oneIn(3)) {
    set("output_router_logits", "true");
  } else if (draw.oneIn(3)) {
    set("moe_aux_loss_coeff", "0.01");
    set("moe_router_load_balancing_type",
        draw.pick<StringRef>({"aux_loss", "seq_aux_loss", "global_aux_loss"}));
  }
  if (draw.oneIn(4))
    set("moe_z_loss_coeff", "0.001");
  if (family.blocks.router == RouterKind::Sigmoid && draw.oneIn(3))
    set("moe_router_bias_update_rate", "0.001");
  if (family.blocks.mayPredictFurther && draw.oneIn(4))
    set("mtp_num_layers", areExpertsWhole ? 1 : draw.number(1, 2));
}

void ModelDraw::drawExperts(int64_t layers, int64_t width) {
  if (!hasExperts())
    return;
  int64_t groups = takes("n_group") ? draw.pick<int64_t>({1, 1, 2}) : 1;
  int64_t experts = groups * llvm::alignTo(draw.number(2, 4), expertRanks);
  setFirst({"num_local_experts", "num_experts", "n_routed_experts"}, experts);
  // Half of the groups have them; and the weight of one alone may be 1.
  set("num_experts_per_tok",
      draw.number(2, std::max<int64_t>(2, experts / groups - 1)));
  drawGroups(groups);
  auto drawWidth = [&] {
    return llvm::alignTo(draw.number(4, width), columnRanks);
  };
  setFirst({"moe_intermediate_size"}, drawWidth());
  setFirst({"shared_expert_intermediate_size"}, drawWidth());
  setFirst({"n_shared_experts"}, draw.number(1, 2));
  drawLayersWithExperts(layers);
  if (!areExpertsWhole && draw.oneIn(4))
    set("moe_expert_capacity_factor", draw.oneIn(2) ? "1.0" : "1.5");
}

std::string ModelDraw::drawLabel() {
  if (isLatent() && draw.oneIn(4))
    return "mla_up_proj";
  if (hasExperts())
    return draw.pick<std::string>({"moe", "moe_act", "layernorm", "core_attn"});
  return draw.pick<std::string>({"mlp", "layernorm", "core_attn"});
}

std::vector<const Family *> reprise::test::readFamilies(StringRef list) {
  if (list.empty())
    return allFamilies();
  std::vector<const Family *> families;
  llvm::SmallVector<StringRef> names;
  list.split(names, ',');
  for (StringRef name : names) {
    const Family *family = parseFamily(name);
    if (!family)
      return {};
    families.push_back(family);
  }
  return families;
}
