//===- ForeignTable.cpp - What Megatron and NeMo have -----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Their keys and options that are none here, with the values that change
// nothing. One that would change what is computed is refused; one of how a run
// is watched, or of what is decided here, has no effect.
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/ForeignKeys.h"

using namespace llvm;
using namespace reprise::frontend;

/// What is decided here, whatever `names` say.
static constexpr ForeignKey decided(StringLiteral names, StringLiteral neutral,
                                    StringLiteral reason,
                                    Form form = Form::Switch) {
  return {names, neutral, reason, nullptr, Others::NoEffect, form};
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
/// No word means norms of what attention and MLP add, without one before.
static StringRef getBlockType(const Family &family) {
  return family.tensors.attentionNorm.empty() ? "" : "pre_ln";
}
static StringRef hasQueryKeyValueBias(const Family &family) {
  return family.blocks.queryKeyValueBias == BiasKind::Always ? "true" : "false";
}
static StringRef hasNoLearnedPositions(const Family &family) {
  return family.hasRotaryPositions() ? "true" : "false";
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

static constexpr StringLiteral kRanksReason =
    "how ranks meet and exchange bytes is decided by the compiled program";
static constexpr StringLiteral kOffloadReason =
    "what is kept stays in the memory of the device";
static constexpr StringLiteral kPrecisionReason = "'precision' is fp32 or bf16";
static constexpr StringLiteral kScaleReason =
    "there is no scale for the loss: bf16 has the range of fp32";
static constexpr StringLiteral kDecayReason =
    "weight decay is of parameters of two or more dimensions";
static constexpr StringLiteral kNewReason =
    "new weights are normal, as 'initializer_range' says";
static constexpr StringLiteral kTextReason =
    "a text of the data is trained on as it is: all tokens count, and "
    "attention and positions go on behind the end of a document in it";
static constexpr StringLiteral kBatchReason = "all steps have one batch size";
static constexpr StringLiteral kMomentsReason =
    "parameters, their gradients and moments are fp32";
static constexpr StringLiteral kStretchReason =
    "'rope_scaling' says it here, a map of 'rope_type', 'factor' and others, "
    "as options --rope-scaling-rope-type and --rope-scaling-factor";

static constexpr StringLiteral kSharesReason =
    "'use_distributed_optimizer: true' of section 'parallel' is what there is "
    "of it here";

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
            "delay_wgrad_compute|"
            "no_align_param_gather|no_gradient_reduce_div_fusion|"
            "overlap_moe_expert_parallel_comm|"
            "overlap_param_gather|overlap_param_gather_with_optimizer_step|"
            "overlap_grad_*|overlap_param_*",
            "false", kSumsReason),
    decided("grad_div_ar_fusion|gradient_as_bucket_view|sync_batch_comm",
            "false", kSumsReason),
    decided("ddp_bucket_size|ddp_num_buckets|grad_allreduce_chunk_size_mb|"
            "suggested_communication_unit_size",
            "", kSumsReason, Form::Text),
    decided("ddp_pad_buckets_for_high_nccl_busbw", "false", kSumsReason),
    decided("accumulate_allreduce_grads_in_fp32|grad_reduce_in_fp32", "true",
            "gradients are summed in fp32"),
    {"grad_reduce_in_bf16", "false", "gradients are summed in fp32"},
    decided("calculate_per_token_loss", "false",
            "all tokens of a step count alike, so that their mean is the same "
            "either way"),
    {"num_distributed_optimizer_instances", "0|1", kSharesReason},
    // Stage 1 shares the state of the optimizer.
    {"data_parallel_sharding_strategy|zero_stage", "0|no_shard", kSharesReason,
     nullptr, Others::Refused, Form::ByNeutral, "1|optim"},
    {"distributed_optimizer", "false", kSharesReason, nullptr, Others::Refused,
     Form::ByNeutral, "true"},
    {"enable_full_sharding_in_hsdp|fsdp|"
     "fsdp_double_buffer|torch_fsdp2_no_reshard_after_forward|use_fsdp|"
     "use_megatron_fsdp|use_torch_fsdp2|fsdp_*|megatron_fsdp_*|torch_fsdp2_*",
     "false", kSharesReason},
    {"outer_dp_sharding_strategy", "no_shard", kSharesReason},
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
    decided("moe_enable_deepep|moe_grouped_gemm|"
            "moe_pad_experts_for_cuda_graph_inference|moe_router_padding_for_"
            "quantization|moe_permute_fusion|moe_router_"
            "fusion|"
            "moe_router_padding_for_fp8|moe_shared_expert_overlap|"
            "moe_use_legacy_grouped_gemm",
            "true|false", kKernelsReason),
    decided("moe_deepep_num_sms|moe_flex_dispatcher_backend|"
            "moe_flex_dispatcher_num_sms|moe_hybridep_num_sms|"
            "moe_token_dispatcher_type",
            "allgather|alltoall|flex", kKernelsReason, Form::Text),
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
     getPreSoftmax, Others::Refused, Form::Switch},
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
            kStagesReason, Form::Text),
    {"pipeline_dtype|pipeline_model_parallel_split_rank|variable_seq_lengths",
     "0|false", kStagesReason},
    {"num_layers_per_virtual_pipeline_stage", "",
     "'virtual_stages' says it here, as chunks of layers on each stage"},
    {"cpu_offloading|fine_grained_activation_offloading|optimizer_cpu_offload|"
     "overlap_cpu_optimizer_d2h_h2d|use_torch_optimizer_for_cpu_offload",
     "false", kOffloadReason},
    {"cpu_offloading_num_layers|optimizer_offload_fraction|cpu_offloading_*|"
     "offload_fraction",
     "0|false", kOffloadReason},
    {"offload_modules", "", kOffloadReason, nullptr, Others::Refused,
     Form::List},
    {"offload_*", "0|false", kOffloadReason},
    {"fp4_format|fp8_format|num_layers_at_end_in_bf16|"
     "num_layers_at_start_in_bf16|te_precision_config_file",
     "", kPrecisionReason},
    // How, if `fp8` or `fp4` says that.
    decided("fp4_recipe|fp8_amax_compute_algo|fp8_amax_history_len|"
            "fp8_interval|fp8_margin|fp8_recipe",
            "", kPrecisionReason, Form::Text),
    decided("reduce_amax", "false", kPrecisionReason),
    {"first_last_layers_bf16|fp4|fp4_param|fp4_param_gather|fp8|fp8_param|"
     "fp8_param_gather|keep_fp8_transpose_cache|no_fp8_wgrad|"
     "reuse_grad_buf_for_mxfp8_param_ag|fp4_*|fp8_*",
     "false", kPrecisionReason},
    {"fp16", "false", "'precision' is fp32 or bf16, which has fp32's range"},
    decided("attention_softmax_in_fp32", "true",
            "softmax is computed in fp32, whatever 'precision' is"),
    {"enable_autocast|fp16_lm_cross_entropy|"
     "fp32_residual_connection|megatron_amp_O2|params_dtype",
     "false", "'precision' says it here, for all ops"},
    {"use_precision_aware_optimizer", "false", kMomentsReason},
    {"exp_avg_dtype|exp_avg_sq_dtype|main_grads_dtype|main_params_dtype",
     "fp32|float32|torch.float32", kMomentsReason},
    {"loss_scale", "", kScaleReason},
    decided("hysteresis|initial_loss_scale|loss_scale_window|min_loss_scale|"
            "native_amp_*",
            "", kScaleReason, Form::Text),
    {"rampup_batch_size", "", kBatchReason, nullptr, Others::Refused,
     Form::List},
    {"step_batch_size_schedule", "", kBatchReason},
    {"decrease_batch_size_if_needed", "false", kBatchReason},
    {"iterations_to_skip", "", "no step is left out", nullptr, Others::Refused,
     Form::List},
    {"weight_decay_incr_style", "constant",
     "weight decay is the same in all steps, as 'weight_decay' says"},
    {"apply_wd_to_qk_layernorm|do_layer_norm_weight_decay", "false",
     kDecayReason},
    {"no_weight_decay_cond_type", "", kDecayReason},
    {"decoupled_weight_decay", "true",
     "'optimizer' is adamw, whose weight decay is decoupled"},
    {"no_decoupled_weight_decay", "false",
     "'optimizer' is adamw, whose weight decay is decoupled"},
    {"decoupled_lr|decoupled_min_lr|lr_warmup_init|lr_wsd_decay_iters|"
     "lr_wsd_decay_samples|lr_wsd_decay_style|lr_wsd_*",
     "0",
     "'lr_decay_style', 'lr_warmup_iters' and 'lr_decay_iters' say here how "
     "the learning rate goes, in steps"},
    {"activation|activation_func", "", kFamilyReason},
    {"bias", "", kFamilyReason, hasBias},
    {"transformer_block_type", "", kFamilyReason, getBlockType},
    {"attention_type", "multihead", kFamilyReason},
    {"normalize_attention_scores|post_process|pre_process", "true",
     kFamilyReason},
    {"squared_relu", "false", "gpt2 has it, by 'activation_function: relu2'"},
    {"attention_output_gate|headscale|openai_gelu|qk_clip|qk_l2_norm|"
     "quick_geglu",
     "false", kFamilyReason},
    {"activation_func_clamp_value|glu_linear_offset|no_rope_freq", "0",
     kFamilyReason},
    {"softmax_type", "vanilla",
     "the softmax of attention is of the scores alone"},
    {"add_qkv_bias", "", kFamilyReason, hasQueryKeyValueBias, Others::Refused,
     Form::Switch},
    {"no_position_embedding", "", kFamilyReason, hasNoLearnedPositions,
     Others::Refused, Form::Switch},
    {"apply_layernorm_1p|layernorm_zero_centered_gamma", "false",
     "a norm multiplies by its weights as they are, not by one more"},
    {"init_method_xavier_uniform|use_scaled_init_method", "false", kNewReason},
    {"ffn_dropout", "0", "an MLP has no dropout inside"},
    {"use_mup", "false",
     "'initializer_range' and 'lr' are the same for all weights"},
    {"padded_vocab_size", "",
     "'vocab_size' says it here, all padding included"},
    {"vocab_extra_ids", "0", "'vocab_size' counts all ids of the vocabulary"},
    {"rotary_interleaved", "false", kFamilyReason},
    {"use_rope_scaling", "false", kStretchReason},
    {"rotary_scaling_factor|rotary_seq_len_interpolation_factor", "1",
     kStretchReason},
    {"mscale|mscale_all_dim", "",
     "'rope_scaling' has keys of these names here, as options "
     "--rope-scaling-mscale and --rope-scaling-mscale-all-dim"},
    {"rope_type", "rope", kStretchReason},
    {"yarn_beta_fast|yarn_beta_slow|yarn_original_max_position_embeddings", "",
     kStretchReason},
    {"quantization_config", "",
     "weights have 32 bits here, and GEMMs of them what 'precision' says"},
    {"qk_layernorm", "", kFamilyReason, hasQueryKeyNorm, Others::Refused,
     Form::Switch},
    decided("kv_channels", "", "heads are as wide as other keys make them",
            Form::Text),
    {"gated_linear_unit|swiglu", "", kFamilyReason, hasGate, Others::Refused,
     Form::Switch},
    {"disable_bias_linear", "", kFamilyReason, hasNoBias, Others::Refused,
     Form::Switch},
    {"add_bias_linear", "", kFamilyReason, hasBias, Others::Refused,
     Form::Switch},
    {"group_query_attention", "false", kFamilyReason, nullptr, Others::Refused,
     Form::Switch},
    {"use_rotary_position_embeddings", "", kFamilyReason, hasRotary,
     Others::Refused, Form::Switch},
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
     hasLatent, Others::Refused, Form::Switch},
    {"mtp_loss_scaling_factor|mtp_num_layers|num_mtp_layers|"
     "num_nextn_predict_layers",
     "0",
     "it belongs to section 'train' of families whose layers may predict "
     "further tokens: deepseek_v3, kimi_k2 and glm4_moe"},
    {"attention_window|sliding_window|window_attn_skip_freq|window_size", "",
     "attention reaches back over the whole sequence"},
    {"dataloader_inter_document_masking|eod_mask_loss|reset_attention_mask|"
     "reset_position_ids",
     "false", kTextReason},
    {"sft|fim_data", "false", kTextReason},
    {"sft_tokenizer_prompt_format", "", kTextReason},
    {"attention_mask_type|attn_mask_type", "causal",
     "attention reaches back over all tokens before, and over no later one"},
    decided("create_attention_mask_in_dataloader|"
            "no_create_attention_mask_in_dataloader",
            "false", "attention is causal, and reads no mask"),
    {"lora|lora_*|peft|peft_*", "false",
     "a parameter is trained as a whole, or frozen: see 'frozen'"},
    decided("attention_backend", "auto|flash",
            "'attention' says it here, and is flash by default", Form::Text),
    decided("use_flash_attention|use_flash_attn", "true",
            "'attention' says it here, and is flash by default"),
    decided(
        "use_fused_weighted_squared_relu|disable_jit_fuser|enable_experimental|"
        "mla_down_proj_fusion|optimizer_cuda_graph|use_legacy_models|use_te|"
        "use_transformer_engine_op_fuser|"
        "apply_rope_fusion|bias_activation_fusion|bias_dropout_add_fusion|"
        "get_attention_mask_from_fusion|use_emha|"
        "bias_dropout_fusion|bias_gelu_fusion|bias_swiglu_fusion|"
        "cross_entropy_loss_fusion|enable_cuda_graph|external_cuda_graph|"
        "gradient_accumulation_fusion|masked_softmax_fusion|mcore_gpt|"
        "no_bias_dropout_fusion|no_bias_gelu_fusion|no_bias_swiglu_fusion|"
        "no_gradient_accumulation_fusion|no_masked_softmax_fusion|"
        "no_persist_layer_norm|no_rope_fusion|onnx_safe|"
        "persist_layer_norm|tp_comm_overlap|transformer_engine|"
        "use_mcore_models",
        "false", kKernelsReason),
    decided("cross_entropy_fusion_impl|cuda_graph_impl|cuda_graph_warmup_steps|"
            "tp_comm_bootstrap_backend|tp_comm_overlap_cfg|transformer_impl",
            "", kKernelsReason, Form::Text),
    decided("cuda_graph_modules|cuda_graph_scope|spec", "", kKernelsReason,
            Form::List),
    decided("cuda_graph_*|tp_comm_*|ub_tp_comm_*", "false", kKernelsReason),
    decided("disable_bf16_reduced_precision_matmul", "true",
            "the sums of GEMMs are fp32"),
    decided("deterministic_mode", "true",
            "all runs have the same results, bit for bit"),
    decided("empty_unused_memory_level", "0",
            "memory is planned by the compiler, and allocated once",
            Form::Text),
    decided("inference_rng_tracker|init_model_with_meta_device|te_rng_tracker|"
            "use_cpu_initialization",
            "false",
            "random numbers and new weights are the same on all devices"),
    {"data_parallel_random_init", "false", "all ranks have the same weights"},
    decided("disable_gloo_process_groups|disable_symmetric_registration|"
            "enable_gloo_process_groups|nccl_ub|use_gloo_process_groups|"
            "use_nccl_ub|use_sharp|use_tp_pp_dp_mapping",
            "false", kRanksReason),
    decided("distributed_backend|distributed_timeout_minutes|"
            "distributed_timeout_seconds_after_init|local_rank|"
            "nccl_communicator_config_path|sharp_enabled_group",
            "", kRanksReason, Form::Text),
    decided("high_priority_stream_groups", "", kRanksReason, Form::List),
    // Of a run: text first, then words, then switches.
    decided("adam_eps_scheme|adlr_autoresume_interval|"
            "apex_transformer_log_level|app_tag_run_name|"
            "app_tag_run_version|async_ckpt_cpu_priority|"
            "async_ckpt_io_priority|async_strategy|"
            "check_weight_hash_across_dp_replicas_interval|"
            "ckpt_convert_format|ckpt_convert_save|ckpt_format|"
            "ckpt_fully_parallel_load_exchange_algo|"
            "ckpt_fully_parallel_load_process_group|"
            "ckpt_fully_parallel_save_process_group|ckpt_step|"
            "data_args_path|data_cache_path|dataloader_type|"
            "dist_ckpt_format|dist_ckpt_strictness|dist_ckpt_workers|"
            "error_injection_rate|error_injection_type|"
            "eval_global_batch_size|eval_interval|eval_iters|"
            "eval_micro_batch_size|exit_duration_in_mins|exit_interval|"
            "exit_signal|load|log_interval|log_memory_interval|logging_level|"
            "manual_gc_interval|memory_snapshot_path|merge_file|"
            "mid_level_dataset_surplus|most_recent_k|"
            "nsys_profile|"
            "non_persistent_ckpt_type|non_persistent_global_ckpt_dir|"
            "non_persistent_local_ckpt_algo|non_persistent_local_ckpt_dir|"
            "non_persistent_save_interval|null_tokenizer_eod_id|"
            "null_tokenizer_pad_id|num_dataset_builder_threads|num_workers|"
            "object_storage_cache_path|one_logger_project|"
            "one_logger_run_name|per_dataset_sequences_path|"
            "per_split_data_args_path|pretrained_checkpoint|"
            "profile_step_end|profile_step_start|replication_factor|"
            "replication_jump|rerun_mode|result_rejected_tracker_filename|"
            "runtime_time_unit|save|save_config_filepath|save_interval|"
            "save_retain_interval|split|start_eval_at_iter|"
            "straggler_ctrlr_port|straggler_minmax_count|"
            "tensorboard_dir|tensorboard_log_interval|"
            "tensorboard_logs_path|tensorboard_queue_size|"
            "throughput_window_size|tiktoken_num_special_tokens|"
            "tiktoken_pattern|timing_log_level|timing_log_option|"
            "tokenizer_metadata|tokenizer_metadata_path|tokenizer_model|"
            "tokenizer_type|train_sync_interval|vocab_file|wandb_entity|"
            "wandb_exp_name|wandb_project|wandb_save_dir",
            "", kRunReason, Form::Text),
    decided("data_path|profile_ranks|test_data_path|tiktoken_special_tokens|"
            "tokenizer_special_tokens|train_data_path|valid_data_path",
            "", kRunReason, Form::List),
    decided("adlr_autoresume|allow_ambiguous_pad_tokens|"
            "async_ckpt_use_cpu_shm|async_save|auto_detect_ckpt_format|"
            "barrier_with_L1_time|calc_ft_timeouts|check_for_large_grads|"
            "check_for_nan_in_loss_and_grad|check_for_spiky_loss|"
            "ckpt_assume_constant_structure|ckpt_fully_parallel_load|"
            "ckpt_fully_parallel_load_per_rank_objects|"
            "ckpt_fully_parallel_save|dataloader_defer_npy_index_mmap|"
            "dataloader_fast_cache_load|disable_straggler_on_startup|"
            "dist_ckpt_optim_fully_reshardable|"
            "dist_ckpt_save_pre_mcore_014|"
            "distrib_optim_fully_reshardable_mem_efficient|"
            "enable_ft_package|enable_msc|enable_one_logger|"
            "exit_on_missing_checkpoint|exit_signal_handler|"
            "exit_signal_handler_for_dataloader|"
            "exit_signal_handler_for_training|finetune|full_validation|"
            "legacy_tokenizer|load_main_params_from_ckpt",
            "false", kRunReason),
    decided("log_batch_size_to_tensorboard|log_device_memory_used|"
            "log_energy|log_l2_norm_grad_to_tensorboard|"
            "log_learning_rate_to_tensorboard|log_loss_scale_to_tensorboard|"
            "log_max_attention_logit|log_memory_to_tensorboard|"
            "log_num_zeros_in_grad|log_params_norm|log_progress|"
            "log_runtime_to_tensorboard|log_straggler|log_throughput|"
            "log_throughput_to_tensorboard|log_timers_to_tensorboard|"
            "log_validation_ppl_to_tensorboard|log_world_size_to_tensorboard|"
            "manual_gc|manual_gc_eval|mmap_bin_files|mock_data|"
            "multiple_validation_sets|no_barrier_with_level_1_timing|"
            "no_check_for_nan_in_loss_and_grad|no_ckpt_fully_parallel_save|"
            "no_ckpt_load_validate_sharding_integrity|no_load_optim|"
            "no_load_rng|no_log_learnig_rate_to_tensorboard|"
            "no_log_loss_scale_to_tensorboard|no_manual_gc_eval|"
            "no_mmap_bin_files|no_one_logger|no_save_optim|no_save_rng|"
            "no_save_tokenizer_assets|no_strict_fsdp_dtensor_load|"
            "no_use_tokenizer_model_from_checkpoint_args|nvtx_ranges|"
            "one_logger_async|override_opt_param_scheduler|profile",
            "false", kRunReason),
    decided("pytorch_profiler_collect_callstack|"
            "pytorch_profiler_collect_chakra|pytorch_profiler_collect_shapes|"
            "record_memory_history|record_shapes|replication|"
            "run_workload_inspector_server|save_tokenizer_assets|skip_train|"
            "tokenizer_hf_include_special_tokens|"
            "tokenizer_hf_no_include_special_tokens|tokenizer_hf_no_use_fast|"
            "tokenizer_hf_use_fast|trust_remote_code|use_checkpoint_args|"
            "use_checkpoint_opt_param_scheduler|use_dist_ckpt|"
            "use_mp_args_from_checkpoint_args|use_nsys_profiler|"
            "use_persistent_ckpt_worker|use_pytorch_profiler|"
            "use_tokenizer_model_from_checkpoint_args|verify_integrity|"
            "wandb_log_model",
            "false", kRunReason),
    decided("inprocess_*|log_*|one_logger_*|profile_*|pytorch_profiler_*|"
            "tensorboard_*|tokenizer_*|wandb_*",
            "", kRunReason, Form::Text),
    {"resume_from_checkpoint|restore_from_path", "",
     "it is the trained program that goes on from a checkpoint, with --resume"},
};

ArrayRef<ForeignKey> reprise::frontend::allForeignKeys() { return kForeign; }
