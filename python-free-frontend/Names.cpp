//===- Names.cpp - What else a name may mean --------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is suggested in place of a name that is not known means the same: what
// other programs call a key, or a key that differs by a slip of the hand.
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/Keys.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace reprise::frontend;

//===----------------------------------------------------------------------===//
// Names of other programs
//===----------------------------------------------------------------------===//

namespace {
/// What other programs have for a key here.
struct OtherName {
  StringLiteral names, key;
  StringLiteral note = ""; ///< If it does not mean the same: what to write.
};
} // namespace

/// Of the rotary families where families have names of their own. A name may
/// stand for keys of several sections.
static constexpr OtherName kOtherNames[] = {
    {"config_name|model_name_or_path|pretrained_model_name_or_path",
     "hf_config"},
    {"architecture|model_family", "model_type"},
    {"n_vocab|vocabulary_size", "vocab_size"},
    {"d_model|dim|embed_dim", "hidden_size"},
    {"n_layers", "num_hidden_layers"},
    {"n_heads|num_heads", "num_attention_heads"},
    {"n_head_kv|n_kv_heads|n_query_groups|num_kv_heads", "num_key_value_heads"},
    {"d_head", "head_dim"},
    {"d_ff|ffn_dim|hidden_dim|inter_dim", "intermediate_size"},
    {"moe_inter_dim", "moe_intermediate_size"},
    {"n_activated_experts", "num_experts_per_tok"},
    {"n_dense_layers", "first_k_dense_replace"},
    {"n_expert_groups", "n_group"},
    {"n_limited_groups", "topk_group"},
    {"route_scale", "routed_scaling_factor"},
    {"ffn_dim_multiplier|multiple_of", "intermediate_size",
     "'intermediate_size' says it here, as a number of columns"},
    {"layer_norm_eps|norm_eps", "rms_norm_eps"},
    {"rope_base|rope_freq_base|rotary_emb_base", "rope_theta"},
    {"use_scaled_rope", "rope_scaling",
     "'rope_scaling' says it here, as a map of numbers"},
    {"tie_embeddings|tie_weights", "tie_word_embeddings"},
    {"dropout", "resid_pdrop",
     "'resid_pdrop', 'embd_pdrop' and 'attn_pdrop' say it here"},
    {"hidden_dropout", "resid_pdrop",
     "'resid_pdrop' and 'embd_pdrop' say it here"},

    {"encoder_seq_length|max_length|max_seq_len|max_seq_length|"
     "max_sequence_length|seq_len|sequence_length",
     "seq_length"},
    {"max_seq_len|max_seq_length|max_sequence_length|n_ctx|seq_length",
     "max_position_embeddings"},
    {"batch_size|train_micro_batch_size_per_gpu", "micro_batch_size"},
    {"train_batch_size", "global_batch_size"},
    {"accumulate_grad_batches|gradient_accumulation_steps", "global_batch_size",
     "'global_batch_size' says it here: micro_batch_size times the number of "
     "micro-batches"},
    {"attn_implementation", "attention"},
    {"dtype|mixed_precision|torch_dtype", "precision",
     "'precision' says it here, in one word"},
    {"max_lr|peak_lr", "lr"},
    {"decay_lr|lr_scheduler_type", "lr_decay_style",
     "'lr_decay_style' says it here, in one word"},
    {"lr_warmup_steps|num_warmup_steps|warmup_iters|warmup_steps",
     "lr_warmup_iters"},
    {"max_iters|num_train_steps|total_steps|training_steps", "train_iters"},
    {"adam_epsilon|eps", "adam_eps"},
    {"betas", "adam_beta1", "'adam_beta1' and 'adam_beta2' say it here"},
    {"gradient_clip_val|gradient_clipping|max_grad_norm", "clip_grad"},
    {"random_seed", "seed"},
    {"freeze|frozen_parameters", "frozen"},

    {"data_parallel|data_parallel_degree|data_parallel_replicate_degree|dp|"
     "dp_size",
     "data_parallel_size"},
    {"autotp_size|model_parallel_size|mp_size|tensor_parallel|"
     "tensor_parallel_size|tp_degree|tp_size",
     "tensor_model_parallel_size"},
    {"num_stages|pipeline_parallel|pipeline_parallel_degree|"
     "pipeline_parallel_size|pp_size",
     "pipeline_stages"},
};

StringRef reprise::frontend::findOwnName(StringRef name) {
  for (const OtherName &other : kOtherNames)
    if (other.note.empty() && is_contained(splitWords(other.names), name))
      return other.key;
  return "";
}

/// The key that `own` names, as the family calls it; null is any family.
static const Key *findOwnKey(StringRef own, const Family *family) {
  const Key *key = findKey(own, "", family);
  return key ? key : findCounterpart(*findKey(own), family);
}

/// What other programs mean by `word`, in `section` or, unless `isOnlyHere`,
/// elsewhere.
static std::string suggestOwn(StringRef word, StringRef section,
                              const Family *family, bool isOnlyHere = false) {
  std::string elsewhere;
  std::string underscored = word.str();
  std::replace(underscored.begin(), underscored.end(), '-', '_');
  for (const OtherName &other : kOtherNames) {
    if (!is_contained(splitWords(other.names), StringRef(underscored)))
      continue;
    const Key *key = findOwnKey(other.key, family);
    if (!key)
      continue;
    StringRef name = family ? key->name : StringRef(other.key);
    bool isHere = section.empty() || key->section == section;
    std::string text = ("; did you mean '" + name + "'").str();
    if (!isHere)
      text += (" of section '" + key->section + "'").str();
    text = other.note.empty() ? text + "?" : ("; " + other.note).str();
    if (isHere)
      return text;
    if (elsewhere.empty() && !isOnlyHere)
      elsewhere = text;
  }
  return elsewhere;
}

//===----------------------------------------------------------------------===//
// Slips of the hand
//===----------------------------------------------------------------------===//

/// How many of a name's letters may be wrong.
static unsigned getLimit(size_t letters) {
  return letters < 3 ? 0 : letters < 6 ? 1 : letters < 12 ? 2 : 3;
}

/// Whether one is the other with letters in another order.
static bool isAnagram(StringRef lhs, StringRef rhs) {
  return lhs.size() == rhs.size() &&
         std::is_permutation(lhs.begin(), lhs.end(), rhs.begin());
}

/// `eps` of `epsilon`, `attn` of `attention`.
static bool isAbbreviation(StringRef text, StringRef word) {
  if (text.size() < 3 || text.size() >= word.size() ||
      text.front() != word.front())
    return false;
  for (char c : text) {
    size_t place = word.find(c);
    if (place == StringRef::npos)
      return false;
    word = word.drop_front(place + 1);
  }
  return true;
}

/// Letters between two words, of which `most` may differ; nothing if they are
/// two words rather than one. Other digits are always another word: beta1 and
/// beta2.
static std::optional<unsigned> getDistance(StringRef lhs, StringRef rhs,
                                           unsigned most) {
  auto getDigits = [](StringRef word) {
    std::string digits = word.str();
    erase_if(digits, [](char c) { return !isDigit(c); });
    return digits;
  };
  if (lhs == rhs)
    return 0;
  if (getDigits(lhs) != getDigits(rhs))
    return std::nullopt;
  unsigned distance = lhs.edit_distance(rhs, /*AllowReplacements=*/true, most);
  if (isAnagram(lhs, rhs))
    distance = 1;
  size_t letters = std::min(lhs.size(), rhs.size());
  if (distance > std::min(most, getLimit(letters)))
    return std::nullopt;
  return distance;
}

/// The same for names: word by word, so that none is another one, or without
/// regard to where words end.
static std::optional<unsigned> getNameDistance(StringRef lhs, StringRef rhs) {
  unsigned most = getLimit(lhs.size());
  SmallVector<StringRef> left, right;
  lhs.split(left, '_');
  rhs.split(right, '_');
  if (left.size() != right.size())
    return getDistance(join(left, ""), join(right, ""), std::min(most, 1u));
  unsigned sum = 0;
  for (auto [one, other] : zip(left, right)) {
    std::optional<unsigned> distance = getDistance(one, other, most);
    if (isAbbreviation(one, other) || isAbbreviation(other, one))
      distance = 1;
    if (!distance)
      return std::nullopt;
    sum += *distance;
  }
  return sum > most ? std::nullopt : std::optional<unsigned>(sum);
}

StringRef reprise::frontend::findNearest(StringRef word,
                                         ArrayRef<StringRef> candidates) {
  auto normalize = [](StringRef name) {
    std::string result = name.lower();
    std::replace(result.begin(), result.end(), '-', '_');
    return result;
  };
  StringRef best;
  std::optional<unsigned> bestDistance;
  for (StringRef candidate : candidates) {
    std::optional<unsigned> distance =
        getNameDistance(normalize(word), normalize(candidate));
    if (distance && (!bestDistance || *distance < *bestDistance)) {
      bestDistance = distance;
      best = candidate;
    }
  }
  return best;
}

//===----------------------------------------------------------------------===//
// Suggestions
//===----------------------------------------------------------------------===//

std::string reprise::frontend::suggest(StringRef word,
                                       ArrayRef<StringRef> candidates) {
  StringRef nearest = findNearest(word, candidates);
  return nearest.empty() ? "" : ("; did you mean '" + nearest + "'?").str();
}

/// The nearest of the keys in `section`, or of all, by their names as options
/// if there is no section.
static std::string suggestNearest(StringRef word, StringRef section,
                                  const Family *family) {
  SmallVector<StringRef> here, anywhere;
  std::vector<std::string> options;
  for (const Key &key : allKeys()) {
    if (!key.isOf(family))
      continue;
    SmallVector<StringRef> names = key.getAliases();
    names.push_back(key.name);
    anywhere.append(names);
    if (key.section == section)
      here.append(names);
    if (section.empty())
      for (StringRef name : names)
        options.push_back(key.getOption(name));
  }
  if (section.empty())
    here.assign(options.begin(), options.end());
  std::string suggestion = suggest(word, here);
  if (!suggestion.empty())
    return suggestion;
  StringRef nearest = findNearest(word, anywhere);
  if (nearest.empty())
    return "";
  const Key *key = llvm::find_if(
      allKeys(), [&](const Key &key) { return key.hasName(nearest); });
  return ("; did you mean '" + nearest + "' of section '" + key->section + "'?")
      .str();
}

bool reprise::frontend::isKeyElsewhere(StringRef name) {
  return any_of(allKeys(), [&](const Key &key) { return key.hasName(name); });
}

std::string reprise::frontend::suggestKey(StringRef word, StringRef section,
                                          const Family *family) {
  // To YAML, `n_head 4` and `n_head:4` are whole names.
  StringRef first =
      word.take_until([](char c) { return c == ':' || c == ' '; });
  if (!section.empty() && first != word && findKey(first, section))
    return ("; ': ' is missing after '" + first + "'").str();
  for (const Key &key : allKeys())
    if (key.hasName(word))
      return ("; it belongs to section '" + key.section + "'").str();
  std::string own = suggestOwn(word, section, family);
  return own.empty() ? suggestNearest(word, section, family) : own;
}

const Key *reprise::frontend::findModelKey(StringRef name,
                                           const Family &family) {
  const Key *other = findKey(name, "model", &family);
  if (!other)
    other = findKey(name, "model");
  // A word for other keys is none of a config.json.
  if (other && !isShorthand(*other))
    return findCounterpart(*other, &family);
  for (const OtherName &other : kOtherNames)
    if (other.note.empty() && is_contained(splitWords(other.names), name))
      if (const Key *key = findOwnKey(other.key, &family))
        if (key->section == "model")
          return key;
  return nullptr;
}

/// The name of a key of a `config.json` that is nearest to `word`, or the only
/// one that goes on behind it. Megatron's names, which no such file has, lead
/// to the key's own.
static StringRef findNearestModelKey(StringRef word, const Family &family) {
  SmallVector<StringRef> names;
  StringRef longer;
  bool isOnly = true;
  for (const Key &key : allKeys())
    if (key.section == "model" && key.isOf(&family) && !isShorthand(key)) {
      names.push_back(key.name);
      names.append(key.getAliases());
      if (key.name.starts_with((word + "_").str())) {
        isOnly = longer.empty();
        longer = key.name;
      }
    }
  StringRef nearest = findNearest(word, names);
  if (!nearest.empty() && !findHubKey(nearest, family))
    return findKey(nearest, "model", &family)->name;
  return nearest.empty() && isOnly ? longer : nearest;
}

/// Whether it is a key of `config.json` in other families alone.
static const Key *findKeyOfOthers(StringRef word) {
  const Key *other = findKey(word, "model");
  return other && !isShorthand(*other) ? other : nullptr;
}

const Key *reprise::frontend::findMeantKey(StringRef word,
                                           const Family &family) {
  if (const Key *key = findModelKey(word, family))
    return key;
  if (findKeyOfOthers(word))
    return nullptr;
  for (const OtherName &other : kOtherNames)
    if (is_contained(splitWords(other.names), word))
      if (const Key *key = findOwnKey(other.key, &family))
        if (key->section == "model")
          return key;
  StringRef nearest = findNearestModelKey(word, family);
  return nearest.empty() ? nullptr : findKey(nearest, "model", &family);
}

std::string reprise::frontend::suggestModelKey(StringRef word,
                                               const Family &family) {
  if (const Key *key = findModelKey(word, family))
    return ("; did you mean '" + key->name + "'?").str();
  if (const Key *other = findKeyOfOthers(word))
    return "; it is a key of " + describeFamilies(other->families);
  std::string own = suggestOwn(word, "model", &family, /*isOnlyHere=*/true);
  if (!own.empty())
    return own;
  StringRef nearest = findNearestModelKey(word, family);
  return nearest.empty() ? "" : ("; did you mean '" + nearest + "'?").str();
}
