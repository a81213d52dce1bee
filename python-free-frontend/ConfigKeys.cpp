//===- ConfigKeys.cpp - Other keys of config.json ---------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/ConfigKeys.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace reprise::frontend;

/// What nobody reads who trains.
static constexpr StringLiteral kMeaningless[] = {
    // Where the file is from, and what else is in its folder.
    "auto_map",
    "custom_pipelines",
    "finetuning_task",
    "name_or_path",
    "tokenizer_class",
    "transformers_version",
    "transformers.js_config",
    // The type of stored weights, and how other programs compute.
    "attn_implementation",
    "chunk_size_feed_forward",
    "dtype",
    "gradient_checkpointing",
    "output_attentions",
    "output_hidden_states",
    "pretraining_tp",
    "return_dict",
    "tf_legacy_loss",
    "torch_dtype",
    "torchscript",
    "unsloth_fixed",
    "unsloth_version",
    "use_bfloat16",
    "use_cache",
    "xla_device",
    // Of windows, which `sliding_window` says.
    "global_attn_every_n_layers",
    "max_window_layers",
    "order_of_interleaved_layers",
    "rope_local_base_freq",
    "sliding_window_pattern",
    // Of `attn_temperature_tuning`, `use_cla` and others that are refused.
    "alibi_bias_max",
    "attn_scale",
    "cla_share_factor",
    "floor_scale",
    "slow_but_exact",
    // Older names in files that have the newer ones.
    "max_sequence_length",
    "n_ctx",
    "n_special",
    "predict_special_tokens",
    // Generation.
    "bad_words_ids",
    "begin_suppress_tokens",
    "cache_implementation",
    "diversity_penalty",
    "do_sample",
    "early_stopping",
    "encoder_no_repeat_ngram_size",
    "exponential_decay_length_penalty",
    "generation_config",
    "length_penalty",
    "max_length",
    "max_new_tokens",
    "min_length",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_logits_to_keep",
    "num_return_sequences",
    "output_scores",
    "prefix",
    "remove_invalid_values",
    "repetition_penalty",
    "return_dict_in_generate",
    "suppress_tokens",
    "task_specific_params",
    "temperature",
    "top_k",
    "top_p",
    "typical_p",
    // Of models for other tasks, or with an encoder.
    "classifier_dropout",
    "cross_attention_hidden_size",
    "id2label",
    "is_decoder",
    "label2id",
    "num_labels",
    "problem_type",
    "tie_encoder_decoder",
};

bool reprise::frontend::isOff(const json::Value &value) {
  if (const json::Object *object = value.getAsObject())
    return object->empty();
  if (const json::Array *array = value.getAsArray())
    return array->empty();
  if (std::optional<StringRef> text = value.getAsString())
    return text->empty();
  return value.getAsNull() || value.getAsBoolean() == false ||
         value.getAsNumber() == 0;
}

bool reprise::frontend::isMeaningless(StringRef key) {
  // Ids of special tokens; what begins with an underscore is of the library
  // alone, and a summary is a head for other tasks.
  return key.starts_with("_") || key.starts_with("summary_") ||
         key.ends_with("_token_id") || key.ends_with("_token_ids") ||
         is_contained(kMeaningless, key);
}
