//===- Keys.cpp - The table of keys -----------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/Keys.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace reprise::frontend;

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

template <auto section, auto member>
static Field field(Description &description) {
  return &(description.*section.*member);
}

template <auto member>
static Field model(Description &d) {
  return field<&Description::model, member>(d);
}
template <auto member>
static Field train(Description &d) {
  return field<&Description::train, member>(d);
}
template <auto member>
static Field recompute(Description &d) {
  return field<&Description::recompute, member>(d);
}
template <auto member>
static Field rotary(Description &d) {
  return field<&Description::rotary, member>(d);
}
template <auto member>
static Field parallel(Description &d) {
  return field<&Description::parallel, member>(d);
}
template <bool value>
static Field only(Description &) {
  return OnlyValue{value};
}
static Field nested(Description &) { return Nested{}; }

namespace {
/// A row of the table, as Key has it. It is made when this is compiled.
struct KeyRow {
  StringRef name, section;
  Field (*field)(Description &);
  Need need;
  StringRef defaultValue, summary;
  Bound bound = Bound::None;
  StringRef words = "", aliases = "";
  int64_t most = INT32_MAX;
};
} // namespace

/// A key of the section `model` that families take, each with its default.
static constexpr KeyRow taken(StringRef name, Field (*field)(Description &),
                              StringRef summary, Bound bound = Bound::None,
                              StringRef words = "", StringRef aliases = "",
                              int64_t most = INT32_MAX) {
  return {name,    "model", field, Need::ByFamily, "",
          summary, bound,   words, aliases,        most};
}

/// Far above any training's, and far below the end of 64 bits.
static constexpr int64_t kMostSamples = int64_t(1) << 40;

/// Every key, and option of `reprisec`, in the order of the documentation.
/// Defaults of `train` are those of GPT-3's training, but for the number of
/// steps; those of `model` are in the families.
static constexpr KeyRow rows[] = {
    {"hf_config", "model", model<&Model::hfConfig>, Need::Unset, "unset",
     "A Hugging Face `config.json`, or a folder with one, relative to this "
     "file; keys given beside it win"},
    {"model_type", "model", model<&Model::modelType>, Need::Required, "",
     "The family of models"},
    taken("vocab_size", model<&Model::vocabSize>,
          "Tokens in the vocabulary; ids are below it", Bound::Positive),
    taken("n_positions", model<&Model::numPositions>,
          "Rows of the table of positions", Bound::Positive, "",
          "max_position_embeddings"),
    taken("n_embd", model<&Model::width>, "Hidden width", Bound::Positive, "",
          "hidden_size"),
    taken("n_layer", model<&Model::numLayers>, "Layers", Bound::Positive, "",
          "num_hidden_layers", 4096),
    taken("n_head", model<&Model::numHeads>,
          "Attention heads; divides `n_embd`", Bound::Positive, "",
          "num_attention_heads"),
    taken("n_inner", model<&Model::innerWidth>, "Width inside the MLP",
          Bound::Positive),
    taken("activation_function", model<&Model::activation>,
          "GELU in its tanh form (the first two, which are the same) or "
          "its exact form, or squared ReLU",
          Bound::None, "gelu_new|gelu_pytorch_tanh|gelu|relu2"),
    taken("layer_norm_epsilon", model<&Model::normEpsilon>,
          "Added to the variance in every LayerNorm", Bound::Positive),

    taken("max_position_embeddings", model<&Model::numPositions>,
          "Longest text that the model is for", Bound::Positive),
    taken("hidden_size", model<&Model::width>, "Hidden width", Bound::Positive),
    taken("num_hidden_layers", model<&Model::numLayers>, "Layers",
          Bound::Positive, "", "", 4096),
    taken("num_attention_heads", model<&Model::numHeads>, "Attention heads",
          Bound::Positive),
    taken("num_key_value_heads", model<&Model::numKeyValueHeads>,
          "Heads of keys and values, each for as many neighbouring attention "
          "heads; divides `num_attention_heads`",
          Bound::Positive),
    taken("head_dim", model<&Model::headWidth>,
          "Columns of a head, an even number", Bound::Positive),
    taken("intermediate_size", model<&Model::innerWidth>,
          "Width inside the MLP", Bound::Positive),
    taken("hidden_act", model<&Model::activation>,
          "What the gate of the MLP goes through", Bound::None, "silu"),
    taken("rms_norm_eps", model<&Model::normEpsilon>,
          "Added to the mean square in every RMSNorm", Bound::Positive),
    taken("rope_theta", model<&Model::ropeTheta>,
          "Base of the wavelengths of rotary positions; above 1",
          Bound::Positive),
    taken("rope_scaling", nested,
          "How rotary positions are stretched, see below; also with "
          "`rope_theta` among its keys",
          Bound::None, "", "rope_parameters"),
    taken("attention_bias", model<&Model::attentionBias>,
          "The four projections of attention have a bias (in qwen2, those to "
          "q, k and v always do)"),
    taken("mlp_bias", model<&Model::mlpBias>,
          "The three projections of the MLP have a bias"),
    taken("use_qk_norm", model<&Model::hasQueryKeyNorm>,
          "Each head of queries and keys has an RMSNorm before it is turned"),
    taken("partial_rotary_factor", model<&Model::rotaryShare>,
          "Share of the columns of a head, the first, that have a rotary "
          "position; also among the keys of `rope_scaling`",
          Bound::Positive),
    taken("q_lora_rank", model<&Model::queryRank>,
          "Columns of the latent that queries are projected from; unset, or "
          "null in a config.json: they have none",
          Bound::Positive),
    taken("kv_lora_rank", model<&Model::latentRank>,
          "Columns of the latent that keys and values are projected from",
          Bound::Positive),
    taken("qk_nope_head_dim", model<&Model::plainWidth>,
          "Columns of a head of queries and keys without a position",
          Bound::Positive),
    taken("qk_rope_head_dim", model<&Model::turnedWidth>,
          "And those with one, the last, an even number; keys have them in "
          "common",
          Bound::Positive, "", "qk_pos_emb_head_dim"),
    taken("v_head_dim", model<&Model::valueWidth>,
          "Columns of a head of values", Bound::Positive),
    taken("rope_interleave", model<&Model::isInterleaved>,
          "Neighbouring columns turn together; false: column j with column "
          "j + qk_rope_head_dim/2"),
    taken("attention_dropout", model<&Model::attnDropout>,
          "Dropout of the attention probabilities", Bound::Rate),
    taken("num_local_experts", model<&Model::numExperts>,
          "Experts of a layer, each an MLP", Bound::Positive, "",
          "num_experts|num_moe_experts"),
    taken("num_experts", model<&Model::numExperts>,
          "Experts of a layer, each an MLP", Bound::Positive, "",
          "num_local_experts|num_moe_experts"),
    taken("n_routed_experts", model<&Model::numExperts>,
          "Experts of a layer, each an MLP", Bound::Positive, "",
          "num_local_experts|num_experts|num_moe_experts"),
    taken("num_experts_per_tok", model<&Model::expertsPerToken>,
          "Experts that a token goes to: those with the largest logits",
          Bound::Positive, "", "moe_router_topk"),
    taken("moe_intermediate_size", model<&Model::expertWidth>,
          "Width inside an expert; `intermediate_size` is that of layers "
          "without",
          Bound::Positive, "", "moe_ffn_hidden_size"),
    taken("shared_expert_intermediate_size", model<&Model::sharedWidth>,
          "Width inside the expert that all tokens share", Bound::Positive, "",
          "moe_shared_expert_intermediate_size"),
    taken("moe_shared_expert_intermediate_size", model<&Model::sharedWidth>,
          "Megatron's word for `n_shared_experts`: times the width of one",
          Bound::Positive),
    taken("n_shared_experts", model<&Model::numShared>,
          "Experts that all tokens share, as one that is as wide as all of "
          "them",
          Bound::Positive),
    taken("first_k_dense_replace", model<&Model::firstExperts>,
          "Layers from the first on that have an MLP, and no experts",
          Bound::NotNegative),
    taken("routed_scaling_factor", model<&Model::routedScale>,
          "Factor of the weights of a token's experts", Bound::Positive, "",
          "moe_router_topk_scaling_factor"),
    taken("topk_method", model<&Model::choice>, "Whether experts have groups",
          Bound::None, "greedy|group_limited_greedy"),
    taken("n_group", model<&Model::numGroups>,
          "Groups of experts, of which a token's are those of the best alone; "
          "divides the number of experts",
          Bound::Positive, "", "moe_router_num_groups"),
    taken("topk_group", model<&Model::keptGroups>,
          "Groups that a token's experts are of", Bound::Positive, "",
          "moe_router_group_topk"),
    taken("qkv_bias", only<true>, "Queries, keys and values have a bias"),
    taken("norm_topk_prob", model<&Model::normalizesTopK>,
          "The weights of a token's experts are divided by their sum"),
    taken("moe_router_pre_softmax", model<&Model::hasPreSoftmax>,
          "Megatron's word for `norm_topk_prob: false`, and false for true"),
    taken("decoder_sparse_step", model<&Model::sparseStep>,
          "Layers have experts if it divides their number, counted from 1; "
          "others have an MLP",
          Bound::Positive),
    taken("mlp_only_layers", model<&Model::denseLayers>,
          "Numbers, counted from 0, of layers that have an MLP all the same",
          Bound::NotNegative),
    taken("output_router_logits", model<&Model::hasAuxLoss>,
          "The loss has a term for the balance of experts, of all layers "
          "together"),
    taken("router_aux_loss_coef", model<&Model::auxLossCoefficient>,
          "Factor of that term, without effect if there is none",
          Bound::NotNegative),
    taken("use_sliding_window", only<false>,
          "Attention reaches back over a window alone"),
    taken("sliding_window", model<&Model::window>,
          "Tokens that attention reaches back over, at least `seq_length`, so "
          "that this is all of a sequence; unset, or null in a config.json: "
          "all",
          Bound::Positive),

    {"moe_layer_freq", "model", model<&Model::expertLayers>, Need::Unset,
     "unset",
     "Megatron's pattern of layers with experts, in place of the keys above: N "
     "for every Nth from the first on, or `([0]*3+[1]*58)`",
     Bound::Pattern},
    {"group_query_attention", "model", model<&Model::groupsQueries>,
     Need::Unset, "unset",
     "Megatron's word for fewer heads of keys and values than of queries: one "
     "unless `num_query_groups` says how many; false: as many"},
    {"make_vocab_size_divisible_by", "model", model<&Model::vocabMultiple>,
     Need::Defaulted, "128",
     "Megatron's padding of the vocabulary, which `vocab_size` has to have "
     "where this is given",
     Bound::Positive},
    taken("initializer_range", model<&Model::initializerRange>,
          "Standard deviation of a new weight; in gpt2, projections into the "
          "residual stream get it divided by sqrt(2 * n_layer)",
          Bound::NotNegative),
    taken("resid_pdrop", model<&Model::residDropout>,
          "Dropout of what is added to the residual stream", Bound::Rate),
    taken("embd_pdrop", model<&Model::embdDropout>, "Dropout of the embeddings",
          Bound::Rate),
    taken("attn_pdrop", model<&Model::attnDropout>,
          "Dropout of the attention probabilities", Bound::Rate),
    taken("hidden_dropout", model<&Model::hiddenDropout>,
          "Megatron's word for `resid_pdrop` and `embd_pdrop` together",
          Bound::Rate),
    taken("tie_word_embeddings", model<&Model::tieWordEmbeddings>,
          "The output head is the token embedding"),
    {"untie_embeddings_and_output_weights", "model",
     model<&Model::untiesWordEmbeddings>, Need::Defaulted, "false",
     "Megatron's word for `tie_word_embeddings: false`"},
    taken("scale_attn_weights", only<true>,
          "Scores are divided by the square root of the head width"),
    taken("scale_attn_by_inverse_layer_idx", only<false>,
          "Scores are also divided by the number of the layer"),
    taken("reorder_and_upcast_attn", only<false>,
          "Scores are computed in another order and precision"),

    {"rope_type", kRopeScaling, rotary<&Rotary::type>, Need::Defaulted,
     "default",
     "`linear` divides all positions; `llama3` and `yarn` leave the short "
     "wavelengths as they are",
     Bound::None, "default|linear|llama3|yarn", "type"},
    {"factor", kRopeScaling, rotary<&Rotary::factor>, Need::Unset, "unset",
     "By which long wavelengths are stretched; required but for `default`",
     Bound::Positive},
    {"original_max_position_embeddings", kRopeScaling,
     rotary<&Rotary::originalPositions>, Need::Unset, "unset",
     "Longest text before the stretching; required by `llama3` and `yarn`",
     Bound::Positive},
    {"low_freq_factor", kRopeScaling, rotary<&Rotary::lowFreqFactor>,
     Need::Unset, "unset",
     "Required by `llama3`: wavelengths above the original length divided "
     "by it are stretched",
     Bound::Positive},
    {"high_freq_factor", kRopeScaling, rotary<&Rotary::highFreqFactor>,
     Need::Unset, "unset",
     "Required by `llama3`, above `low_freq_factor`: wavelengths below the "
     "original length divided by it are not",
     Bound::Positive},
    {"beta_fast", kRopeScaling, rotary<&Rotary::betaFast>, Need::Unset, "32",
     "Of `yarn`: with more turns than this in the original length, a "
     "wavelength is not stretched",
     Bound::Positive},
    {"beta_slow", kRopeScaling, rotary<&Rotary::betaSlow>, Need::Unset, "1",
     "Of `yarn`: with fewer turns it is stretched in full; at most "
     "`beta_fast`",
     Bound::Positive},
    {"attention_factor", kRopeScaling, rotary<&Rotary::attentionFactor>,
     Need::Unset, "0.1 * ln(factor) + 1",
     "Of `yarn`: multiplies rotated queries and keys", Bound::Positive},
    {"mscale", kRopeScaling, rotary<&Rotary::mscale>, Need::Unset, "unset",
     "Of `yarn`: with both, `attention_factor` is (0.1 * mscale * "
     "ln(factor) + 1) / (0.1 * mscale_all_dim * ln(factor) + 1)",
     Bound::Positive},
    {"mscale_all_dim", kRopeScaling, rotary<&Rotary::mscaleAllDim>, Need::Unset,
     "unset",
     "Of `yarn`: see `mscale`; of latent attention with any type but "
     "`default`: "
     "scores are times the square of 0.1 * mscale_all_dim * ln(factor) + 1",
     Bound::Positive},
    {"truncate", kRopeScaling, rotary<&Rotary::truncate>, Need::Defaulted,
     "true", "Of `yarn`: the ends of the ramp are whole numbers"},

    {"seq_length", "train", train<&Train::seqLength>, Need::Required, "",
     "Tokens in a sequence, at most `n_positions` or `max_position_embeddings`",
     Bound::Positive, "", "block_size|sequence_len"},
    {"micro_batch_size", "train", train<&Train::microBatchSize>, Need::Required,
     "", "Sequences that go through the model together", Bound::Positive, "",
     "per_device_train_batch_size"},
    {"global_batch_size", "train", train<&Train::globalBatchSize>, Need::Unset,
     "one micro-batch for each rank",
     "Sequences in a step of all ranks, a multiple of `micro_batch_size` times "
     "`data_parallel_size`; the gradients of the micro-batches are added up",
     Bound::Positive},
    {"attention", "train", train<&Train::attention>, Need::Defaulted, "flash",
     "`flash` is one op that stores nothing of the size of `seq_length` "
     "squared; `unfused` is scores, softmax, dropout and context",
     Bound::None, "flash|unfused"},
    {"head_chunk_rows", "train", train<&Train::headChunkRows>, Need::Unset,
     "a quarter of all tokens, from 1024 to 4096, if all logits have 16 MiB "
     "or more, else 0",
     "Tokens whose logits are in memory at one time, a multiple of 256, in "
     "bf16 of 1024; 0: those of all tokens",
     Bound::NotNegative},
    {"precision", "train", train<&Train::precision>, Need::Defaulted, "fp32",
     "Type of activations and of what GEMMs read of weights; weights, "
     "their gradients, norms' statistics and losses are fp32",
     Bound::None, "fp32|bf16"},
    {"bf16", "train", train<&Train::isBF16>, Need::Defaulted, "false",
     "Megatron's word for `precision: bf16`"},
    {"optimizer", "train", train<&Train::optimizer>, Need::Defaulted, "adamw",
     "Adam with decoupled weight decay; Megatron's `adam` is the same",
     Bound::None, "adamw"},
    {"lr", "train", train<&Train::lr>, Need::Defaulted, "6e-4",
     "Highest learning rate", Bound::Positive, "", "learning_rate"},
    {"min_lr", "train", train<&Train::minLr>, Need::Defaulted, "0",
     "Where the learning rate decays to, at most `lr`", Bound::NotNegative},
    {"lr_decay_style", "train", train<&Train::lrDecayStyle>, Need::Defaulted,
     "cosine", "How the learning rate goes from `lr` to `min_lr` after warm-up",
     Bound::None, "constant|linear|cosine"},
    {"lr_warmup_iters", "train", train<&Train::lrWarmupIters>, Need::Defaulted,
     "0", "Steps over which the learning rate rises from 0 to `lr`",
     Bound::NotNegative},
    {"lr_decay_iters", "train", train<&Train::lrDecayIters>, Need::Unset,
     "`train_iters`", "Steps until the learning rate is `min_lr`",
     Bound::Positive},
    {"lr_warmup_fraction", "train", train<&Train::warmupFraction>, Need::Unset,
     "unset",
     "Megatron's word for `lr_warmup_iters`, as a share of `lr_decay_iters`, "
     "rounded",
     Bound::Rate},
    {"lr_warmup_samples", "train", train<&Train::warmupSamples>, Need::Unset,
     "unset", "Megatron's word for `lr_warmup_iters` times `global_batch_size`",
     Bound::NotNegative, "", "", kMostSamples},
    {"lr_decay_samples", "train", train<&Train::decaySamples>, Need::Unset,
     "unset", "Megatron's word for `lr_decay_iters` times `global_batch_size`",
     Bound::Positive, "", "", kMostSamples},
    {"train_samples", "train", train<&Train::trainSamples>, Need::Unset,
     "unset", "Megatron's word for `train_iters` times `global_batch_size`",
     Bound::Positive, "", "", kMostSamples},
    {"train_iters", "train", train<&Train::trainIters>, Need::Defaulted, "1000",
     "Steps of the training unless `--steps` says otherwise", Bound::Positive,
     "", "max_steps"},
    {"adam_beta1", "train", train<&Train::adamBeta1>, Need::Defaulted, "0.9",
     "Decay of the mean of gradients", Bound::Rate, "", "beta1"},
    {"adam_beta2", "train", train<&Train::adamBeta2>, Need::Defaulted, "0.95",
     "Decay of the mean of squared gradients", Bound::Rate, "", "beta2"},
    {"adam_eps", "train", train<&Train::adamEps>, Need::Defaulted, "1e-8",
     "Added to the root of the mean of squares", Bound::Positive},
    {"weight_decay", "train", train<&Train::weightDecay>, Need::Defaulted,
     "0.1", "Decoupled weight decay, of parameters of two or more dimensions",
     Bound::NotNegative},
    {"start_weight_decay", "train", train<&Train::startWeightDecay>,
     Need::Unset, "unset",
     "Megatron's word for `weight_decay` at the beginning, which is the same",
     Bound::NotNegative},
    {"end_weight_decay", "train", train<&Train::endWeightDecay>, Need::Unset,
     "unset", "The same at the end", Bound::NotNegative},
    {"clip_grad", "train", train<&Train::clipGrad>, Need::Defaulted, "1.0",
     "Largest norm of all gradients together; 0 does not clip",
     Bound::NotNegative, "", "grad_clip"},
    {"moe_aux_loss_coeff", "train", train<&Train::moeAuxLoss>, Need::Defaulted,
     "0",
     "Where layers have experts, factor of a term of the loss for their "
     "balance, of each layer by itself; a list of types has a list of factors",
     Bound::NotNegative},
    {"moe_router_load_balancing_type", "train", train<&Train::balancing>,
     Need::Defaulted, "aux_loss",
     "Whether that term is of all tokens of a micro-batch together, "
     "`seq_aux_loss` of each sequence by itself, or `global_aux_loss` with the "
     "rows of all ranks and micro-batches of the step so far; of a list there "
     "is a term each; `none`: there is none, whatever its factor",
     Bound::None, "aux_loss|seq_aux_loss|global_aux_loss|none"},
    {"moe_z_loss_coeff", "train", train<&Train::moeZLoss>, Need::Defaulted, "0",
     "Factor of a term of the loss that is small where the exponentials of a "
     "router's logits add up to 1, of each layer by itself",
     Bound::NotNegative},
    {"moe_router_enable_expert_bias", "train", train<&Train::updatesBias>,
     Need::Defaulted, "false",
     "In deepseek_v3, kimi_k2 and glm4_moe: the bias that experts are chosen "
     "with changes with each step, by 1e-3 unless "
     "`moe_router_bias_update_rate` says otherwise"},
    {"moe_router_bias_update_rate", "train", train<&Train::biasUpdateRate>,
     Need::Unset, "unset",
     "By how much, for each expert upwards if it has had fewer rows than the "
     "mean of its layer in the step, and downwards if more; 0: it stays as it "
     "is",
     Bound::NotNegative},
    {"moe_expert_capacity_factor", "train", train<&Train::capacityFactor>,
     Need::Unset, "unset",
     "An expert has at most this many times the rows of the mean in a "
     "micro-batch, rounded up, and others are dropped; unset: none is",
     Bound::Positive},
    {"moe_token_drop_policy", "train", train<&Train::dropPolicy>,
     Need::Defaulted, "probs",
     "With a capacity, an expert's rows are those with the largest weights, or "
     "`position` the first ones",
     Bound::None, "probs|position"},
    {"moe_pad_expert_input_to_capacity", "train", train<&Train::padsToCapacity>,
     Need::Defaulted, "false",
     "Needs a capacity; without effect on results, and here on memory, which "
     "has room for the capacity either way"},
    {"moe_per_layer_logging", "train", train<&Train::showsLoads>,
     Need::Defaulted, "false",
     "The log shows how unevenly rows are spread over the experts of each "
     "layer; it always does where a bias changes"},
    {"mtp_num_layers", "train", train<&Train::furtherLayers>, Need::Defaulted,
     "0",
     "In deepseek_v3, kimi_k2 and glm4_moe: layers behind the others that "
     "predict a further token each, for a term of the loss",
     Bound::NotNegative, "", "num_nextn_predict_layers|num_mtp_layers", 64},
    {"mtp_loss_scaling_factor", "train", train<&Train::furtherFactor>,
     Need::Defaulted, "0.1", "Factor of that term, the mean of their losses",
     Bound::NotNegative},
    {"seed", "train", train<&Train::seed>, Need::Defaulted, "1234",
     "Of initial weights, dropout and the order of data", Bound::NotNegative,
     "", "", INT64_MAX},
    {"frozen", "train", train<&Train::frozen>, Need::Unset, "unset",
     "Parameters that are not trained: shell patterns, in quotes, such as "
     "\"model.layers.0.*\", for their names or those of published weights"},

    {"recompute_granularity", "recompute", recompute<&Recompute::granularity>,
     Need::Unset, "unset",
     "`selective`: the named modules of every layer are recomputed in "
     "backward; `full`: whole layers, in segments; unset, or empty as an "
     "option: nothing. As an option it replaces the whole section of the file",
     Bound::None, "selective|full", "activations_checkpoint_granularity"},
    {"recompute_method", "recompute", recompute<&Recompute::method>,
     Need::Unset, "unset",
     "With `full`, required: `uniform` cuts all layers into segments, `block` "
     "recomputes the first layers, one by one",
     Bound::None, "uniform|block", "activations_checkpoint_method"},
    {"recompute_num_layers", "recompute", recompute<&Recompute::numLayers>,
     Need::Unset, "unset",
     "With `full`, required: layers in a segment (`uniform`), or layers that "
     "are recomputed (`block`)",
     Bound::Positive, "", "activations_checkpoint_num_layers"},
    {"recompute_modules", "recompute", recompute<&Recompute::modules>,
     Need::Unset, "unset",
     "With `selective`: any of `core_attn`, `core_attn_out`, `mlp`, "
     "`layernorm`, `moe`, `moe_act`, `shared_experts`, `mla_up_proj`; unset "
     "means `core_attn`, and an empty list nothing"},
    {"recompute_activations", "recompute", recompute<&Recompute::activations>,
     Need::Defaulted, "false", "Short for `recompute_granularity: selective`"},
    {"moe_layer_recompute", "recompute", recompute<&Recompute::experts>,
     Need::Defaulted, "false",
     "Where layers have experts, short for `recompute_granularity: selective` "
     "with `moe` beside what its modules are, `core_attn` unless given"},
    {"recompute_plan", "recompute", recompute<&Recompute::planFile>,
     Need::Unset, "unset",
     "A plan file, relative to this file: rules for values of layers, instead "
     "of `recompute_granularity`"},
    {"distribute_saved_activations", "recompute",
     recompute<&Recompute::distributesSaved>, Need::Defaulted, "false",
     "With `full`: the ranks of a tensor-parallel group keep a part each of "
     "the input of a segment",
     Bound::None, "", "partition_activations"},
    {"recompute_last_segment", "recompute", recompute<&Recompute::lastSegment>,
     Need::Defaulted, "auto",
     "With `full`: whether the segment before the loss is recomputed only "
     "where that lowers the peak, or always",
     Bound::None, "auto|always"},
    {"free_recompute", "recompute", recompute<&Recompute::isFree>,
     Need::Defaulted, "on",
     "Whether values that a kernel of backward makes again on its way are not "
     "kept, whatever else is recomputed",
     Bound::None, "on|off"},

    {"data_parallel_size", "parallel", parallel<&Parallel::dataParallel>,
     Need::Defaulted, "1",
     "Ranks of the program, processes that have samples of their own and add "
     "up their gradients",
     Bound::Positive, "", "", 4096},
    {"gradient_reduction_groups", "parallel",
     parallel<&Parallel::reductionGroups>, Need::Unset, "data_parallel_size",
     "Groups of consecutive micro-batches of a step, whose gradients are "
     "summed first; results are the same for all numbers of ranks that divide "
     "theirs, but with `expert_model_parallel_size` above 1",
     Bound::Positive, "", "", 1 << 20},
    {"tensor_model_parallel_size", "parallel",
     parallel<&Parallel::tensorParallel>, Need::Defaulted, "1",
     "Ranks that each have a part of the heads, of the MLP and of the "
     "vocabulary, of the same samples; with --accounting=megatron those that "
     "it counts for",
     Bound::Positive, "", "tensor_parallel_degree|tp", 4096},
    {"sequence_parallel", "parallel", parallel<&Parallel::sequenceParallel>,
     Need::Defaulted, "false",
     "Whether these ranks have a part of the positions each between attention "
     "and MLP",
     Bound::None, "", "enable_sequence_parallel"},
    {"expert_model_parallel_size", "parallel",
     parallel<&Parallel::expertParallel>, Need::Defaulted, "1",
     "Ranks that each have some of the experts, and send each other rows for "
     "these: some of `data_parallel_size`, or, with "
     "`expert_tensor_parallel_size` 1, of all ranks of a stage",
     Bound::Positive, "", "expert_parallel_size|expert_parallel_degree|ep",
     4096},
    {"expert_tensor_parallel_size", "parallel",
     parallel<&Parallel::expertTensorParallel>, Need::Unset,
     "tensor_model_parallel_size",
     "Ranks that each have a part of every expert: as many as have one of the "
     "rest; or 1, where those have whole experts",
     Bound::Positive, "", "expert_tensor_parallel_degree|etp", 4096},
    {"moe_expert_rows_per_round", "parallel", parallel<&Parallel::expertRows>,
     Need::Unset, "unset",
     "Rows that an expert has at a time where ranks have some of the experts: "
     "others come in further rounds; unset: all come at once",
     Bound::Positive, "", "", int64_t(1) << 31},
    {"use_distributed_optimizer", "parallel",
     parallel<&Parallel::distributedOptimizer>, Need::Defaulted, "false",
     "Whether ranks with samples of their own have a share of the optimizer's "
     "state each, and update that (ZeRO-1)"},
    {"pipeline_stages", "parallel", parallel<&Parallel::stages>,
     Need::Defaulted, "1",
     "Stages of a pipeline, each with some of the layers; ranks have one each",
     Bound::Positive, "", "pipeline_model_parallel_size|pp", 4096},
    {"virtual_stages", "parallel", parallel<&Parallel::virtualStages>,
     Need::Defaulted, "1", "Chunks of layers on each stage", Bound::Positive,
     "",
     "virtual_pipeline_model_parallel_size|num_virtual_stages_per_pipeline_"
     "rank|vpp",
     4096},
    {"pipeline_schedule", "parallel", parallel<&Parallel::schedule>,
     Need::Unset, "unset",
     "The order in which stages take micro-batches; unset: 1f1b, or "
     "interleaved "
     "with several chunks on a stage",
     Bound::None, "gpipe|1f1b|interleaved|zb-h1"},
    {"microbatch_group_size_per_vp_stage", "parallel",
     parallel<&Parallel::microBatchGroup>, Need::Unset, "unset",
     "With the schedule `interleaved`, micro-batches that go through all "
     "chunks "
     "of a stage before others begin; unset: as many as stages",
     Bound::Positive, "", "microbatch_group_size_per_virtual_pipeline_stage"},
    {"pipeline_layout", "parallel", parallel<&Parallel::layout>, Need::Unset,
     "unset",
     "Layers of each chunk, in the order of the model, as numbers or in "
     "Megatron's letters; unset: they differ by one at most, larger ones first",
     Bound::None, "", "pipeline_model_parallel_layout"},
    {"num_layers_in_first_pipeline_stage", "parallel",
     parallel<&Parallel::firstStage>, Need::Unset, "unset",
     "Layers of the first stage; the stages between the ends share theirs "
     "evenly",
     Bound::Positive, "", "decoder_first_pipeline_num_layers"},
    {"num_layers_in_last_pipeline_stage", "parallel",
     parallel<&Parallel::lastStage>, Need::Unset, "unset",
     "Layers of the last stage", Bound::Positive, "",
     "decoder_last_pipeline_num_layers"},
    {"account_for_embedding_in_pipeline_split", "parallel",
     parallel<&Parallel::countsEmbedding>, Need::Defaulted, "false",
     "The embedding takes the place of a layer in the first chunk"},
    {"account_for_loss_in_pipeline_split", "parallel",
     parallel<&Parallel::countsLoss>, Need::Defaulted, "false",
     "Head and loss take the place of a layer in the last chunk"},
};

namespace {
struct MegatronNames {
  StringLiteral key, names;
};
} // namespace

static constexpr MegatronNames kMegatronNames[] = {
    {"attn_pdrop", "attention_dropout"},
    {"head_dim", "kv_channels"},
    {"initializer_range", "init_method_std"},
    {"intermediate_size", "ffn_hidden_size"},
    {"layer_norm_epsilon", "layernorm_epsilon|norm_epsilon"},
    {"n_inner", "ffn_hidden_size"},
    {"n_layer", "num_layers"},
    {"num_hidden_layers", "num_layers"},
    {"num_key_value_heads", "num_query_groups"},
    {"qk_nope_head_dim", "qk_head_dim"},
    {"rms_norm_eps", "layernorm_epsilon|norm_epsilon"},
    {"rope_theta", "rotary_base"},
    {"tie_word_embeddings", "share_embeddings_and_output_weights"},
};

/// `gpt2|llama`.
static StringRef listFamilies() {
  static const std::string names =
      join(map_range(allFamilies(),
                     [](const Family *family) { return family->name; }),
           "|");
  return names;
}

static Key makeKey(const KeyRow &row) {
  StringRef words = row.name == "model_type" ? listFamilies() : row.words;
  return {row.name,    row.section, row.field, row.need,    row.defaultValue,
          row.summary, row.bound,   words,     row.aliases, row.most};
}

/// A key for each way in which families need what `row` is about.
static std::vector<Key> splitByNeed(const KeyRow &row) {
  std::vector<Key> keys;
  for (const Family *family : allFamilies()) {
    const KeyUse *use = family->findUse(row.name);
    if (!use)
      continue;
    auto key = llvm::find_if(
        keys, [&](const Key &other) { return other.need == use->need; });
    if (key == keys.end()) {
      key = keys.insert(keys.end(), makeKey(row));
      key->need = use->need;
    }
    std::string text = use->defaultValue.str();
    if (!use->absent.empty())
      text += ("; " + use->absent + " in a config.json without it").str();
    key->families.push_back(family);
    key->defaultValue.set(family, std::move(text));
  }
  return keys;
}

namespace {
/// What a family has to have for the keys whose names begin so.
struct Condition {
  StringLiteral begin;
  bool (*isMet)(const Family &family);
};
} // namespace

static constexpr Condition kConditions[] = {
    {"moe_",
     [](const Family &family) {
       return family.blocks.experts != ExpertKind::None;
     }},
    {"group_query_",
     [](const Family &family) {
       return family.findUse("num_key_value_heads") != nullptr;
     }},
    {"mtp_",
     [](const Family &family) { return family.blocks.mayPredictFurther; }},
};

/// Whether the family has what `key` is about, or the map that it is in.
static bool concerns(const Key &key, const Family &family) {
  if (key.section == kRopeScaling && !family.findUse(kRopeScaling))
    return false;
  return all_of(kConditions, [&](const Condition &condition) {
    return !key.name.starts_with(condition.begin) || condition.isMet(family);
  });
}

static std::vector<Key> buildKeys() {
  std::vector<Key> keys;
  for (const KeyRow &row : rows) {
    if (row.need == Need::ByFamily) {
      llvm::append_range(keys, splitByNeed(row));
      continue;
    }
    Key &key = keys.emplace_back(makeKey(row));
    for (const Family *family : allFamilies())
      if (concerns(key, *family))
        key.families.push_back(family);
  }
  for (const MegatronNames &other : kMegatronNames)
    for (Key &key : keys)
      if (key.name == other.key)
        key.megatron = other.names;
  return keys;
}

ArrayRef<Key> reprise::frontend::allKeys() {
  static const std::vector<Key> keys = buildKeys();
  return keys;
}

ArrayRef<StringRef> reprise::frontend::allSections() {
  static const StringRef sections[] = {"model", "train", "recompute",
                                       "parallel"};
  return sections;
}

//===----------------------------------------------------------------------===//
// Types and defaults
//===----------------------------------------------------------------------===//

static std::string describeNumber(Bound bound) {
  switch (bound) {
  case Bound::None:
  case Bound::Pattern:
    return "a number";
  case Bound::Positive:
    return "a number above 0";
  case Bound::NotNegative:
    return "a number of at least 0";
  case Bound::Rate:
    return "a number of at least 0 and below 1";
  }
  llvm_unreachable("all bounds are handled");
}

std::string reprise::frontend::describeType(const Key &key) {
  static Description none; // its fields' types count alone
  Field field = key.field(none);
  if (std::holds_alternative<bool *>(field))
    return "true or false";
  if (auto *only = std::get_if<OnlyValue>(&field))
    return only->value ? "true" : "false";
  if (std::holds_alternative<Nested>(field))
    return "a map of keys";
  if (std::holds_alternative<std::string *>(field)) {
    SmallVector<StringRef> words = splitWords(key.words);
    if (words.empty())
      return key.bound == Bound::Pattern ? "a number or a pattern" : "a path";
    return (words.size() == 1 ? "" : "one of ") + join(words, ", ");
  }
  if (std::holds_alternative<std::optional<std::vector<std::string>> *>(field))
    return "a list of words";
  if (std::holds_alternative<std::vector<std::string> *>(field))
    return "one of " + join(splitWords(key.words), ", ") + ", or a list";
  if (std::holds_alternative<std::vector<int64_t> *>(field))
    return "a list of whole numbers";
  if (std::holds_alternative<std::vector<double> *>(field))
    return describeNumber(key.bound) + ", or a list";
  if (std::holds_alternative<double *>(field) ||
      std::holds_alternative<std::optional<double> *>(field))
    return describeNumber(key.bound);
  return key.bound == Bound::Positive ? "a whole number of at least 1"
                                      : "a whole number of at least 0";
}

Description::Description(const Family *family) : family(family) {
  llvm::SourceMgr sources;
  Diagnostics diagnostics(sources);
  // Defaults are read from the table, so that it cannot disagree with them.
  for (const Key &key : allKeys())
    if (StringRef text = key.defaultValue.get(family);
        key.isOf(family) && !text.empty() &&
        (key.need == Need::Defaulted || key.need == Need::HFDefault))
      assign(key, {GivenValue::Plain, text.str(), {}, {}}, *this, diagnostics);
  assert(!diagnostics.hasFailed() && "defaults are of their keys' types");
}

//===----------------------------------------------------------------------===//
// The table for people
//===----------------------------------------------------------------------===//

/// Each default once, with the families that it is for.
static std::string describeDefault(const Key &key) {
  if (key.need == Need::Required)
    return "required";
  MapVector<StringRef, SmallVector<const Family *>> texts;
  for (const Family *family : key.families)
    texts[key.defaultValue.get(family)].push_back(family);
  std::string result;
  for (const auto &[text, families] : texts) {
    result += (result.empty() ? "" : ", ") + text.str();
    if (texts.size() > 1)
      result += " (" + describeFamilies(families) + ")";
  }
  return key.need == Need::HFDefault ? "required; in config.json " + result
                                     : result;
}

std::vector<KeyInfo> reprise::frontend::listKeys() {
  std::vector<KeyInfo> keys;
  std::vector<std::string> names;
  for (const Key &key : allKeys())
    names.push_back(key.getOption());
  Description none;
  for (const Key &key : allKeys()) {
    Field field = key.field(none);
    std::string name = key.getOption();
    bool isListed = llvm::any_of(
        keys, [&](const KeyInfo &info) { return info.name == name; });
    if (isListed || std::holds_alternative<Nested>(field))
      continue;
    KeyInfo info;
    info.name = name;
    info.section = key.section;
    SmallVector<const Family *> families;
    for (const Family *family : allFamilies())
      if (findKey(name, "", family))
        families.push_back(family);
    if (families.size() < allFamilies().size())
      info.families = describeFamilies(families);
    info.type = describeType(key);
    info.defaultValue = describeDefault(key);
    info.summary = key.summary;
    for (StringRef alias : key.getAliases())
      if (!is_contained(names, key.getOption(alias))) {
        // Two keys may have it, in two families.
        names.push_back(key.getOption(alias));
        info.aliases.push_back(key.getOption(alias));
      }
    info.isSwitch = std::holds_alternative<bool *>(field) ||
                    std::holds_alternative<OnlyValue>(field);
    keys.push_back(std::move(info));
  }
  return keys;
}

void reprise::frontend::printKeysAsMarkdown(raw_ostream &os) {
  StringRef section;
  for (const Key &key : allKeys()) {
    bool hasFamilies = key.section == "model";
    if (key.section != section) {
      section = key.section;
      os << "\n### `" << section << "`"
         << (section == kRopeScaling ? ", a map in `model`" : "") << "\n\n"
         << (hasFamilies ? "| key | of | value | default | meaning |\n|---"
                         : "| key | value | default | meaning |\n")
         << "|---|---|---|---|\n";
    }
    os << "| `" << key.name << "`";
    for (StringRef alias : key.getAliases())
      os << ", `" << alias << "`";
    if (hasFamilies)
      os << " | " << (key.isOfAll() ? "all" : describeFamilies(key.families));
    os << " | " << describeType(key) << " | " << describeDefault(key) << " | "
       << key.summary << ". |\n";
  }
}
