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
/// What other values than the neutral ones come to.
enum class Others { Refused, NoEffect };

struct ForeignKey {
  StringLiteral names;   ///< `a|b`; one that ends in `*` is the beginning.
  StringLiteral neutral; ///< Values that, beside null, change nothing.
  StringLiteral reason;  ///< Why others are refused, or have no effect.
  /// The value that changes nothing in a family, instead of `neutral`.
  StringRef (*own)(const Family &family) = nullptr;
  Others others = Others::Refused;
  bool takesValue = true; ///< As an option, of those without effect.
};
} // namespace

/// What is decided here, whatever `names` say.
static constexpr ForeignKey decided(StringLiteral names, StringLiteral neutral,
                                    StringLiteral reason,
                                    bool takesValue = false) {
  return {names, neutral, reason, nullptr, Others::NoEffect, takesValue};
}

static StringRef getScores(const Family &family) {
  return family.blocks.router == RouterKind::Sigmoid ? "sigmoid" : "softmax";
}

/// Of sigmoids there is no softmax; where it may be one or the other, a key
/// says which.
static StringRef getPreSoftmax(const Family &family) {
  return family.blocks.router == RouterKind::Sigmoid ? "true|false" : "false";
}

static StringRef hasGate(const Family &family) {
  return family.blocks.mlp == MLPKind::SwiGLU ? "true" : "false";
}
static StringRef hasBias(const Family &family) {
  return family.blocks.mlpBias == BiasKind::Always ? "true" : "false";
}
static StringRef hasNoBias(const Family &family) {
  return family.blocks.mlpBias == BiasKind::Always ? "false" : "true";
}
static StringRef hasLatent(const Family &family) {
  return family.blocks.attention == AttentionKind::Latent ? "true" : "false";
}
/// Of latent attention Megatron means the norms of latents.
static StringRef hasQueryKeyNorm(const Family &family) {
  if (family.blocks.attention == AttentionKind::Latent)
    return "true";
  switch (family.blocks.queryKeyNorm) {
  case QueryKeyNorm::None:
    return "false";
  case QueryKeyNorm::HeadByKey:
    return "";
  case QueryKeyNorm::Head:
  case QueryKeyNorm::Projection:
    return "true";
  }
  llvm_unreachable("unknown kind of norm");
}
static StringRef hasRotary(const Family &family) {
  return family.hasRotaryPositions() ? "true" : "false";
}
static StringRef getPositions(const Family &family) {
  return family.hasRotaryPositions() ? "rope" : "learned_absolute";
}
static StringRef getNorm(const Family &family) {
  return family.blocks.norm == NormKind::RMSNorm ? "RMSNorm" : "LayerNorm";
}
static constexpr StringLiteral kFamilyReason =
    "'model_type' says it here, with all that its family has";
static constexpr StringLiteral kRunReason =
    "the compiled program has options of its own for data, logs, and files";
static constexpr StringLiteral kSumsReason =
    "when ranks sum and gather is decided here by the compiler";
static constexpr StringLiteral kStagesReason =
    "stages send and receive as their schedule says";
static constexpr StringLiteral kKernelsReason =
    "how ops become kernels is decided here by the compiler";

static constexpr StringLiteral kSharesReason =
    "'use_distributed_optimizer' of section 'parallel' is what there is of it "
    "here";

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
    decided("align_grad_reduce|align_param_gather|average_in_collective|"
            "ddp_average_in_collective|delay_grad_reduce|overlap_grad_reduce|"
            "overlap_param_gather|overlap_param_gather_with_optimizer_step|"
            "overlap_grad_*|overlap_param_*",
            "false", kSumsReason),
    decided("ddp_bucket_size|ddp_num_buckets", "", kSumsReason,
            /*takesValue=*/true),
    decided("calculate_per_token_loss", "false",
            "all tokens of a step count alike, so that their mean is the same "
            "either way"),
    {"data_parallel_sharding_strategy|num_distributed_optimizer_instances|"
     "zero_stage",
     "0|1|no_shard", kSharesReason},
    {"distributed_optimizer|fsdp|fsdp_*|use_fsdp|use_megatron_fsdp", "false",
     kSharesReason},
    {"use_distributed_optimizer", "false",
     "section 'parallel' is the place for it here"},
    {"moe_ffn_hidden_size", "0",
     "'intermediate_size' is the width of experts in mixtral, and "
     "'moe_intermediate_size' in other families with experts"},
    {"moe_router_topk|num_experts|num_local_experts|num_moe_experts",
     "0|1|false", "it belongs to section 'model' of families with experts"},
    {"ep|etp|expert_model_parallel_size|expert_parallel_degree|"
     "expert_parallel_size|expert_tensor_parallel_degree|"
     "expert_tensor_parallel_size",
     "1", "section 'parallel' is the place for it here"},
    decided("moe_enable_deepep|moe_grouped_gemm|moe_permute_fusion|moe_router_"
            "fusion|"
            "moe_router_padding_for_fp8|moe_shared_expert_overlap|"
            "moe_use_legacy_grouped_gemm",
            "true|false", kKernelsReason),
    decided("moe_deepep_num_sms|moe_flex_dispatcher_backend|"
            "moe_token_dispatcher_type",
            "allgather|alltoall|flex", kKernelsReason, /*takesValue=*/true),
    {"moe_layer_recompute", "false",
     "it belongs to section 'recompute' of families with experts"},
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
     "it is another model: mixtral has a softmax of a token's experts alone, "
     "and qwen3_moe with 'norm_topk_prob: false' one of all",
     getPreSoftmax, Others::Refused, /*takesValue=*/false},
    {"activation_checkpointing|checkpoint_activations|gradient_checkpointing",
     "false",
     "'recompute_granularity: full' with 'recompute_method: uniform' and "
     "'recompute_num_layers: 1' does it here"},
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
    decided("batch_p2p_comm|batch_p2p_sync", "true|false", kStagesReason),
    decided("deallocate_pipeline_outputs|defer_embedding_wgrad_compute|"
            "no_overlap_p2p_communication|overlap_p2p_comm|"
            "overlap_p2p_comm_warmup_flush|overlap_p2p_communication|"
            "use_ring_exchange_p2p|overlap_p2p_comm_*",
            "false", kStagesReason),
    decided("pipeline_model_parallel_comm_backend|wgrad_deferral_limit", "",
            kStagesReason, /*takesValue=*/true),
    {"pipeline_dtype|pipeline_model_parallel_split_rank|variable_seq_lengths",
     "0|false", kStagesReason},
    {"num_layers_per_virtual_pipeline_stage", "",
     "'virtual_stages' says it here, as chunks of layers on each stage"},
    {"cpu_offloading|cpu_offloading_*|fine_grained_activation_offloading|"
     "offload_*",
     "0|false", "what is kept stays in the memory of the device"},
    {"fp4|fp4_*|fp8|fp8_*", "false", "'precision' is fp32 or bf16"},
    {"fp16", "false", "'precision' is fp32 or bf16, which has fp32's range"},
    {"attention_softmax_in_fp32|enable_autocast|fp16_lm_cross_entropy|"
     "fp32_residual_connection|megatron_amp_O2|params_dtype",
     "false", "'precision' says it here, for all ops"},
    {"hysteresis|initial_loss_scale|loss_scale|native_amp_*", "",
     "there is no scale for the loss: bf16 has the range of fp32"},
    {"rampup_batch_size", "", "all steps have one batch size"},
    {"decoupled_lr|decoupled_min_lr|end_weight_decay|"
     "lr_decay_samples|lr_warmup_fraction|lr_warmup_init|lr_warmup_samples|"
     "lr_wsd_*|start_weight_decay|train_samples|weight_decay_incr_style",
     "0",
     "'lr_decay_style', 'lr_warmup_iters' and 'lr_decay_iters' say here how "
     "the learning rate goes, in steps"},
    {"activation|activation_func|add_qkv_bias|bias|squared_relu|"
     "transformer_block_type",
     "", kFamilyReason},
    {"qk_layernorm", "", kFamilyReason, hasQueryKeyNorm, Others::Refused,
     /*takesValue=*/false},
    decided("kv_channels", "", "heads are as wide as other keys make them",
            /*takesValue=*/true),
    {"gated_linear_unit|swiglu", "", kFamilyReason, hasGate, Others::Refused,
     /*takesValue=*/false},
    {"disable_bias_linear", "", kFamilyReason, hasNoBias, Others::Refused,
     /*takesValue=*/false},
    {"add_bias_linear", "", kFamilyReason, hasBias, Others::Refused,
     /*takesValue=*/false},
    {"group_query_attention", "false", kFamilyReason, nullptr, Others::Refused,
     /*takesValue=*/false},
    {"use_rotary_position_embeddings", "", kFamilyReason, hasRotary,
     Others::Refused, /*takesValue=*/false},
    {"position_embedding_type", "", kFamilyReason, getPositions},
    {"normalization", "", kFamilyReason, getNorm},
    {"hidden_dropout", "0",
     "gpt2 alone has dropout of what is added to the residual stream"},
    {"partial_rotary_factor|rotary_percent|rotary_percentage", "1",
     "all columns of a head have a position"},
    {"apply_query_key_layer_scaling", "false",
     "scores are divided by the square root of the head width alone"},
    {"kv_lora_rank|q_lora_rank|qk_pos_emb_head_dim|v_head_dim", "false",
     "it belongs to section 'model' of families with latent attention"},
    {"multi_latent_attention", "",
     "'model_type' says it here: deepseek_v2, deepseek_v3 and kimi_k2 have it",
     hasLatent, Others::Refused, /*takesValue=*/false},
    {"mtp_loss_scaling_factor|mtp_num_layers|num_mtp_layers|"
     "num_nextn_predict_layers",
     "0",
     "it belongs to section 'train' of families whose layers may predict "
     "further tokens: deepseek_v3, kimi_k2 and glm4_moe"},
    {"attention_window|sliding_window|window_size", "",
     "attention reaches back over the whole sequence"},
    {"lora|lora_*|peft|peft_*", "false",
     "a parameter is trained as a whole, or frozen: see 'frozen'"},
    decided("use_flash_attention|use_flash_attn", "true",
            "'attention' says it here, and is flash by default"),
    decided("apply_rope_fusion|bias_activation_fusion|bias_dropout_add_fusion|"
            "bias_dropout_fusion|bias_gelu_fusion|bias_swiglu_fusion|"
            "cross_entropy_loss_fusion|enable_cuda_graph|external_cuda_graph|"
            "gradient_accumulation_fusion|masked_softmax_fusion|mcore_gpt|"
            "no_bias_dropout_fusion|no_bias_gelu_fusion|no_bias_swiglu_fusion|"
            "no_gradient_accumulation_fusion|no_masked_softmax_fusion|"
            "no_persist_layer_norm|no_rope_fusion|onnx_safe|"
            "persist_layer_norm|tp_comm_overlap|transformer_engine|"
            "use_mcore_models|cuda_graph_*|tp_comm_*|ub_tp_comm_*",
            "false", kKernelsReason),
    decided("adam_eps_scheme|data_cache_path|data_path|dataloader_type|"
            "distributed_backend|distributed_timeout_minutes|eval_interval|"
            "eval_iters|exit_duration_in_mins|exit_interval|load|log_interval|"
            "manual_gc_interval|merge_file|num_workers|save|save_interval|"
            "save_retain_interval|split|tensorboard_dir|tokenizer_model|"
            "tokenizer_type|vocab_file|wandb_exp_name|wandb_project|"
            "wandb_save_dir",
            "", kRunReason, /*takesValue=*/true),
    decided("auto_detect_ckpt_format|exit_signal_handler|finetune|"
            "log_throughput|log_timers_to_tensorboard|manual_gc|mock_data|"
            "no_load_optim|no_load_rng|no_save_optim|no_save_rng|"
            "tensorboard_log_interval|use_checkpoint_args",
            "false", kRunReason),
    {"resume_from_checkpoint|restore_from_path", "",
     "it is the trained program that goes on from a checkpoint, with --resume"},
};

static const ForeignKey *findForeignKey(StringRef name) {
  const ForeignKey *key = find_if(kForeign, [&](const ForeignKey &key) {
    return isNamed(key.names, name);
  });
  return key == std::end(kForeign) ? nullptr : key;
}

StringRef reprise::frontend::explainForeignKey(StringRef name) {
  const ForeignKey *key = findKey(name) ? nullptr : findForeignKey(name);
  return key ? StringRef(key->reason) : "";
}

/// As an option, one that is refused may be a switch if that is what it is
/// refused to be switched to.
static ForeignOption::Kind getKind(const ForeignKey &key) {
  if (key.others == Others::NoEffect || key.own)
    return key.takesValue ? ForeignOption::Text : ForeignOption::Switch;
  return key.neutral == "false" ? ForeignOption::MaybeText
                                : ForeignOption::Text;
}

bool reprise::frontend::dependsOnFamily(StringRef name) {
  const ForeignKey *key = findForeignKey(name);
  return key && key->own;
}

/// Whether some value of it, beside null, is taken.
static bool hasValues(const ForeignKey &key) {
  return key.others == Others::NoEffect || key.own || !key.neutral.empty();
}

std::vector<ForeignOption> reprise::frontend::listForeignOptions() {
  std::vector<ForeignOption> options;
  for (const ForeignKey &key : make_filter_range(kForeign, hasValues))
    for (StringRef name : splitWords(key.names))
      if (!name.ends_with("*") && !findKey(name))
        options.push_back({name, getKind(key)});
  return options;
}

/// Whether the value is one of `neutral`, `a|b`, as a word or as a number.
static bool isNeutral(const Value &value, StringRef neutral) {
  if (value.kind == Value::Null)
    return true;
  auto isIt = [&](StringRef word) {
    double number, same;
    return StringRef(value.text).equals_insensitive(word) ||
           (!StringRef(value.text).getAsDouble(number) &&
            !word.getAsDouble(same) && number == same);
  };
  return value.kind == Value::Plain && any_of(splitWords(neutral), isIt);
}

bool reprise::frontend::checkForeignKey(StringRef name, const Value &value,
                                        const Origin &origin,
                                        const Family *family,
                                        Diagnostics &diagnostics) {
  const ForeignKey *key = findForeignKey(name);
  if (!key)
    return false;
  if (isNeutral(value, key->own && family ? key->own(*family)
                                          : StringRef(key->neutral)))
    return true;
  std::string begin = origin.isOption() ? "option --" + origin.option + ": "
                                        : ("'" + name + "' ").str();
  if (key->others == Others::Refused)
    diagnostics.error(origin, begin + "is " + describeBare(value) + ", but " +
                                  key->reason);
  else
    diagnostics.noEffect(origin, name, ": " + key->reason);
  return true;
}
