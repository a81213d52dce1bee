//===- ForeignKeys.cpp - Keys of Megatron and NeMo --------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What their sections have and a description does not. Copied as it is, a
// section has many of them, null or with a value that changes nothing.
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/Family.h"
#include "python-free-frontend/Keys.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace reprise::frontend;

namespace {
struct ForeignKey {
  StringLiteral names;   ///< `a|b`; one that ends in `*` is the beginning.
  StringLiteral neutral; ///< Values that, beside null, change nothing.
  StringLiteral reason;  ///< Why others are refused, after "but".
  /// The value that changes nothing in a family, instead of `neutral`.
  StringRef (*own)(const Family &family) = nullptr;
};
} // namespace

static StringRef getScores(const Family &family) {
  return family.blocks.router == RouterKind::Sigmoid ? "sigmoid" : "softmax";
}

static constexpr ForeignKey kForeign[] = {
    {"tensor_model_parallel_size|sequence_parallel", "1|false",
     "section 'parallel' is the place for it here"},
    {"context_parallel_size|context_parallel_degree|cp|cp_comm_type|"
     "hierarchical_context_parallel_sizes|hybrid_context_parallel|"
     "max_seqlen_per_dp_cp_rank",
     "1|false", "context parallelism is not supported yet"},
    {"data_parallel_shard_degree|devices|num_nodes", "1",
     "'data_parallel_size' says how many ranks there are, each with all "
     "parameters"},
    {"distributed_optimizer|fsdp|fsdp_*|overlap_grad_*|overlap_param_*|"
     "use_fsdp|use_megatron_fsdp|zero_stage",
     "0|false",
     "'use_distributed_optimizer' of section 'parallel' is what there is of it "
     "here"},
    {"use_distributed_optimizer", "false",
     "section 'parallel' is the place for it here"},
    {"moe_ffn_hidden_size|moe_router_topk|num_experts|num_local_experts|"
     "num_moe_experts",
     "0|1|false", "it belongs to section 'model' of families with experts"},
    {"ep|etp|expert_model_parallel_size|expert_tensor_parallel_size", "1",
     "experts are whole on each rank"},
    {"moe_deepep_num_sms|moe_flex_dispatcher_backend|moe_grouped_gemm|"
     "moe_permute_fusion|moe_router_fusion|"
     "moe_router_padding_for_fp8|moe_shared_expert_overlap|"
     "moe_token_dispatcher_type|moe_use_legacy_grouped_gemm",
     "true|false|allgather|alltoall|flex",
     "how ops become kernels is decided here by the compiler"},
    {"moe_layer_recompute", "false",
     "'recompute_granularity: selective' with 'recompute_modules: [moe]' says "
     "it here"},
    {"moe_router_dtype", "fp32", "the router computes in fp32"},
    {"moe_router_score_function", "",
     "'model_type' says it here: scores are a sigmoid in deepseek_v3, kimi_k2 "
     "and glm4_moe, and else a softmax",
     getScores},
    {"moe_router_group_topk|moe_router_num_groups|"
     "moe_router_topk_scaling_factor",
     "0|1|false",
     "it belongs to section 'model' of families with groups of experts"},
    {"moe_router_pre_softmax", "",
     "'norm_topk_prob' says it here, the other way round"},
    {"moe_layer_freq", "1",
     "'decoder_sparse_step', 'mlp_only_layers' and 'first_k_dense_replace' say "
     "it here"},
    {"moe_aux_loss_coeff|moe_expert_capacity_factor|"
     "moe_pad_expert_input_to_capacity|moe_per_layer_logging|"
     "moe_router_bias_update_rate|moe_router_enable_expert_bias|"
     "moe_router_load_balancing_type|moe_token_drop_policy|moe_z_loss_coeff",
     "0|false|none|aux_loss|probs",
     "it belongs to section 'train' of families with experts"},
    {"moe_*", "0|1|false", "this part of experts is not supported yet"},
    {"activations_checkpoint_layers_per_pipeline|"
     "num_micro_batches_with_partial_activation_checkpoints|"
     "num_microbatches_with_partial_activation_checkpoints",
     "", "all micro-batches and stages recompute alike"},
    {"batch_p2p_comm|batch_p2p_sync", "true|false",
     "stages are planned without their communication"},
    {"deallocate_pipeline_outputs|defer_embedding_wgrad_compute|"
     "overlap_p2p_comm|overlap_p2p_comm_*|"
     "pipeline_dtype|pipeline_model_parallel_comm_backend|"
     "pipeline_model_parallel_split_rank|use_ring_exchange_p2p|"
     "variable_seq_lengths|wgrad_deferral_limit",
     "0|false", "stages send and receive as their schedule says"},
    {"num_layers_per_virtual_pipeline_stage", "",
     "'virtual_stages' says it here, as chunks of layers on each stage"},
    {"cpu_offloading|cpu_offloading_*|fine_grained_activation_offloading|"
     "offload_*",
     "0|false", "what is kept stays in the memory of the device"},
    {"fp4|fp4_*|fp8|fp8_*", "false", "'precision' is fp32 or bf16"},
    {"bf16|fp16", "false", "'precision' says it here, in one word"},
    {"attention_softmax_in_fp32|enable_autocast|fp16_lm_cross_entropy|"
     "fp32_residual_connection|megatron_amp_O2|params_dtype",
     "false", "'precision' says it here, for all ops"},
    {"hysteresis|initial_loss_scale|loss_scale|native_amp_*", "",
     "there is no scale for the loss: bf16 has the range of fp32"},
    {"rampup_batch_size", "", "all steps have one batch size"},
    {"decoupled_lr|decoupled_min_lr|end_weight_decay|lr_decay_iters|"
     "lr_decay_samples|lr_warmup_fraction|lr_warmup_init|lr_warmup_samples|"
     "lr_wsd_*|start_weight_decay|train_samples|weight_decay_incr_style",
     "0",
     "'lr_decay_style', 'lr_warmup_iters' and 'train_iters' say here how the "
     "learning rate goes, in steps"},
    {"activation|activation_func|add_bias_linear|add_qkv_bias|bias|"
     "gated_linear_unit|normalization|position_embedding_type|qk_layernorm|"
     "transformer_block_type",
     "", "'model_type' says it here, with all that its family has"},
    {"partial_rotary_factor|rotary_percent|rotary_percentage", "1",
     "all columns of a head have a position"},
    {"apply_query_key_layer_scaling", "false",
     "scores are divided by the square root of the head width alone"},
    {"make_vocab_size_divisible_by", "1",
     "the vocabulary is not padded: write 'vocab_size' as large as it is to "
     "be"},
    {"kv_lora_rank|q_lora_rank|qk_pos_emb_head_dim|v_head_dim", "false",
     "it belongs to section 'model' of families with latent attention"},
    {"multi_latent_attention", "false",
     "'model_type' says it here: deepseek_v2, deepseek_v3 and kimi_k2 have it"},
    {"mtp_loss_scaling_factor|mtp_num_layers", "0",
     "prediction of several tokens is not supported yet"},
    {"attention_window|sliding_window|window_size", "",
     "attention reaches back over the whole sequence"},
    {"lora|lora_*|peft|peft_*", "false",
     "a parameter is trained as a whole, or frozen: see 'frozen'"},
    {"use_flash_attention|use_flash_attn", "", "'attention' says it here"},
    {"apply_rope_fusion|bias_activation_fusion|bias_dropout_add_fusion|"
     "bias_dropout_fusion|bias_gelu_fusion|bias_swiglu_fusion|"
     "cross_entropy_loss_fusion|cuda_graph_*|enable_cuda_graph|"
     "external_cuda_graph|gradient_accumulation_fusion|masked_softmax_fusion|"
     "mcore_gpt|onnx_safe|persist_layer_norm|tp_comm_*|transformer_engine|"
     "ub_tp_comm_*",
     "false", "how ops become kernels is decided here by the compiler"},
    {"resume_from_checkpoint|restore_from_path", "",
     "it is the trained program that goes on from a checkpoint, with --resume"},
};

static bool isName(StringRef pattern, StringRef name) {
  return pattern.consume_back("*") ? name.starts_with(pattern)
                                   : name == pattern;
}

StringRef reprise::frontend::explainForeignKey(StringRef name) {
  for (const ForeignKey &key : kForeign)
    if (any_of(splitWords(key.names),
               [&](StringRef pattern) { return isName(pattern, name); }))
      return key.reason;
  return "";
}

std::optional<std::string>
reprise::frontend::checkForeignKey(StringRef name, const Value &value,
                                   const Family *family) {
  auto isIt = [&](StringRef pattern) { return isName(pattern, name); };
  auto changesNothing = [&](StringRef neutral) {
    double number, same;
    return value.text == neutral ||
           StringRef(value.text).equals_insensitive(neutral) ||
           (!StringRef(value.text).getAsDouble(number) &&
            !neutral.getAsDouble(same) && number == same);
  };
  for (const ForeignKey &key : kForeign) {
    if (!any_of(splitWords(key.names), isIt))
      continue;
    StringRef neutral = key.neutral;
    if (key.own && family)
      neutral = key.own(*family);
    bool isNeutral = value.kind == Value::Null ||
                     (value.kind == Value::Plain &&
                      any_of(splitWords(neutral), changesNothing));
    if (isNeutral)
      return "";
    return "'" + name.str() + "' is " + describeBare(value) + ", but " +
           key.reason.str();
  }
  return std::nullopt;
}
