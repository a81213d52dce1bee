//===- Keys.cpp - The table of keys -----------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/Keys.h"

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
template <bool value>
static Field only(Description &) {
  return OnlyValue{value};
}

/// Every key, and option of `reprisec`. Defaults of `train` are those of
/// GPT-3's training, but for the number of steps; those of `model` are Hugging
/// Face's.
static const Key table[] = {
    {"hf_config", "model", model<&Model::hfConfig>, Need::Unset, "unset",
     "A Hugging Face `config.json`, or a folder with one, relative to this "
     "file; keys given beside it win"},
    {"model_type", "model", model<&Model::modelType>, Need::Required, "",
     "The family of models", Bound::None, "gpt2"},
    {"vocab_size", "model", model<&Model::vocabSize>, Need::HFDefault, "50257",
     "Tokens in the vocabulary; ids are below it", Bound::Positive},
    {"n_positions", "model", model<&Model::numPositions>, Need::Defaulted,
     "1024", "Rows of the table of positions", Bound::Positive, "",
     "max_position_embeddings"},
    {"n_embd", "model", model<&Model::width>, Need::HFDefault, "768",
     "Hidden width", Bound::Positive, "", "hidden_size"},
    {"n_layer", "model", model<&Model::numLayers>, Need::HFDefault, "12",
     "Layers", Bound::Positive, "", "num_hidden_layers", 4096},
    {"n_head", "model", model<&Model::numHeads>, Need::HFDefault, "12",
     "Attention heads; divides `n_embd`", Bound::Positive, "",
     "num_attention_heads"},
    {"n_inner", "model", model<&Model::innerWidth>, Need::Unset, "4 * n_embd",
     "Width inside the MLP", Bound::Positive},
    {"activation_function", "model", model<&Model::activation>, Need::Defaulted,
     "gelu_new",
     "GELU in its tanh form (the first two, which are the same) or its exact "
     "form",
     Bound::None, "gelu_new|gelu_pytorch_tanh|gelu"},
    {"layer_norm_epsilon", "model", model<&Model::normEpsilon>, Need::Defaulted,
     "1e-5", "Added to the variance in every LayerNorm", Bound::Positive},
    {"initializer_range", "model", model<&Model::initializerRange>,
     Need::Defaulted, "0.02",
     "Standard deviation of a new weight; projections into the residual stream "
     "get it divided by sqrt(2 * n_layer)",
     Bound::NotNegative},
    {"resid_pdrop", "model", model<&Model::residDropout>, Need::Defaulted,
     "0.1", "Dropout of what is added to the residual stream", Bound::Rate},
    {"embd_pdrop", "model", model<&Model::embdDropout>, Need::Defaulted, "0.1",
     "Dropout of the embeddings", Bound::Rate},
    {"attn_pdrop", "model", model<&Model::attnDropout>, Need::Defaulted, "0.1",
     "Dropout of the attention probabilities", Bound::Rate},
    {"tie_word_embeddings", "model", model<&Model::tieWordEmbeddings>,
     Need::Defaulted, "true", "The output head is the token embedding"},
    {"scale_attn_weights", "model", only<true>, Need::Defaulted, "true",
     "Scores are divided by the square root of the head width"},
    {"scale_attn_by_inverse_layer_idx", "model", only<false>, Need::Defaulted,
     "false", "Scores are also divided by the number of the layer"},
    {"reorder_and_upcast_attn", "model", only<false>, Need::Defaulted, "false",
     "Scores are computed in another order and precision"},

    {"seq_length", "train", train<&Train::seqLength>, Need::Required, "",
     "Tokens in a sequence, at most `n_positions`", Bound::Positive},
    {"micro_batch_size", "train", train<&Train::microBatchSize>, Need::Required,
     "", "Sequences that go through the model together", Bound::Positive},
    {"global_batch_size", "train", train<&Train::globalBatchSize>, Need::Unset,
     "micro_batch_size",
     "Sequences in a step, a multiple of `micro_batch_size`; the gradients of "
     "the micro-batches are added up",
     Bound::Positive},
    {"attention", "train", train<&Train::attention>, Need::Defaulted, "flash",
     "`flash` is one op that stores nothing of the size of `seq_length` "
     "squared; `unfused` is scores, softmax, dropout and context",
     Bound::None, "flash|unfused"},
    {"precision", "train", train<&Train::precision>, Need::Defaulted, "fp32",
     "Type of weights and activations; `bf16` is not available for the target "
     "cpu",
     Bound::None, "fp32|bf16"},
    {"optimizer", "train", train<&Train::optimizer>, Need::Defaulted, "adamw",
     "Adam with decoupled weight decay", Bound::None, "adamw"},
    {"lr", "train", train<&Train::lr>, Need::Defaulted, "6e-4",
     "Highest learning rate", Bound::Positive},
    {"min_lr", "train", train<&Train::minLr>, Need::Defaulted, "0",
     "Where the learning rate decays to, at most `lr`", Bound::NotNegative},
    {"lr_decay_style", "train", train<&Train::lrDecayStyle>, Need::Defaulted,
     "cosine", "How the learning rate goes from `lr` to `min_lr` after warm-up",
     Bound::None, "constant|linear|cosine"},
    {"lr_warmup_iters", "train", train<&Train::lrWarmupIters>, Need::Defaulted,
     "0", "Steps over which the learning rate rises from 0 to `lr`",
     Bound::NotNegative},
    {"train_iters", "train", train<&Train::trainIters>, Need::Defaulted, "1000",
     "Steps until the learning rate is `min_lr`, and steps of the training "
     "unless `--steps` says otherwise",
     Bound::Positive},
    {"adam_beta1", "train", train<&Train::adamBeta1>, Need::Defaulted, "0.9",
     "Decay of the mean of gradients", Bound::Rate},
    {"adam_beta2", "train", train<&Train::adamBeta2>, Need::Defaulted, "0.95",
     "Decay of the mean of squared gradients", Bound::Rate},
    {"adam_eps", "train", train<&Train::adamEps>, Need::Defaulted, "1e-8",
     "Added to the root of the mean of squares", Bound::Positive},
    {"weight_decay", "train", train<&Train::weightDecay>, Need::Defaulted,
     "0.1", "Decoupled weight decay, of parameters of two or more dimensions",
     Bound::NotNegative},
    {"clip_grad", "train", train<&Train::clipGrad>, Need::Defaulted, "1.0",
     "Largest norm of all gradients together; 0 does not clip",
     Bound::NotNegative},
    {"seed", "train", train<&Train::seed>, Need::Defaulted, "1234",
     "Of initial weights, dropout and the order of data", Bound::NotNegative,
     "", "", INT64_MAX},

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
     "With `selective`: any of `core_attn`, `mlp`, `layernorm`; unset means "
     "`core_attn`, and an empty list nothing"},
    {"recompute_activations", "recompute", recompute<&Recompute::activations>,
     Need::Defaulted, "false", "Short for `recompute_granularity: selective`"},
};

ArrayRef<Key> reprise::frontend::allKeys() { return table; }

ArrayRef<StringRef> reprise::frontend::allSections() {
  static const StringRef sections[] = {"model", "train", "recompute"};
  return sections;
}

SmallVector<StringRef> reprise::frontend::splitWords(StringRef words) {
  SmallVector<StringRef> result;
  words.split(result, '|', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  return result;
}

const Key *reprise::frontend::findKey(StringRef name, StringRef section) {
  for (const Key &key : table)
    if ((section.empty() || key.section == section) &&
        (key.name == name || is_contained(splitWords(key.aliases), name)))
      return &key;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Suggestions
//===----------------------------------------------------------------------===//

static StringRef findNearest(StringRef word, ArrayRef<StringRef> candidates) {
  StringRef best;
  // A third of the letters may be wrong.
  unsigned bestDistance = (word.size() + 1) / 3 + 1;
  for (StringRef candidate : candidates) {
    unsigned distance = word.edit_distance_insensitive(
        candidate, /*AllowReplacements=*/true, bestDistance);
    if (distance < bestDistance && distance < candidate.size()) {
      bestDistance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string reprise::frontend::suggest(StringRef word,
                                       ArrayRef<StringRef> candidates) {
  StringRef nearest = findNearest(word, candidates);
  return nearest.empty() ? "" : ("; did you mean '" + nearest + "'?").str();
}

std::string reprise::frontend::suggestKey(StringRef word, StringRef section) {
  if (const Key *elsewhere = findKey(word))
    return ("; it belongs to section '" + elsewhere->section + "'").str();
  SmallVector<StringRef> here, anywhere;
  for (const Key &key : table) {
    SmallVector<StringRef> names = splitWords(key.aliases);
    names.push_back(key.name);
    anywhere.append(names);
    if (section.empty() || key.section == section)
      here.append(names);
  }
  std::string suggestion = suggest(word, here);
  if (!suggestion.empty())
    return suggestion;
  StringRef nearest = findNearest(word, anywhere);
  if (nearest.empty())
    return "";
  return ("; did you mean '" + nearest + "' of section '" +
          findKey(nearest)->section + "'?")
      .str();
}

std::string reprise::frontend::describeRepetition(StringRef name,
                                                  StringRef first) {
  if (name == first)
    return ("'" + name + "' is given twice").str();
  return ("'" + name + "' is another name of '" + first +
          "', which is given already")
      .str();
}

//===----------------------------------------------------------------------===//
// Types and defaults
//===----------------------------------------------------------------------===//

std::string reprise::frontend::describeType(const Key &key) {
  Description none;
  Field field = key.field(none);
  if (std::holds_alternative<bool *>(field))
    return "true or false";
  if (auto *only = std::get_if<OnlyValue>(&field))
    return only->value ? "true" : "false";
  if (std::holds_alternative<std::string *>(field)) {
    SmallVector<StringRef> words = splitWords(key.words);
    if (words.empty())
      return "a path";
    return (words.size() == 1 ? "" : "one of ") + join(words, ", ");
  }
  if (std::holds_alternative<std::optional<std::vector<std::string>> *>(field))
    return "a list of words";
  if (std::holds_alternative<double *>(field)) {
    switch (key.bound) {
    case Bound::None:
      return "a number";
    case Bound::Positive:
      return "a number above 0";
    case Bound::NotNegative:
      return "a number of at least 0";
    case Bound::Rate:
      return "a number of at least 0 and below 1";
    }
  }
  return key.bound == Bound::Positive ? "a whole number of at least 1"
                                      : "a whole number of at least 0";
}

Description::Description() {
  llvm::SourceMgr sources;
  Diagnostics diagnostics(sources);
  // Defaults are read from the table, so that it cannot disagree with them.
  for (const Key &key : table)
    if (key.need == Need::Defaulted || key.need == Need::HFDefault)
      assign(key, {Value::Plain, key.defaultValue.str(), {}, {}}, *this,
             diagnostics);
  assert(!diagnostics.hasFailed() && "defaults are of their keys' types");
}

//===----------------------------------------------------------------------===//
// The table for people
//===----------------------------------------------------------------------===//

std::vector<KeyInfo> reprise::frontend::listKeys() {
  std::vector<KeyInfo> keys;
  Description none;
  for (const Key &key : table) {
    KeyInfo info;
    info.name = key.name;
    info.section = key.section;
    info.type = describeType(key);
    info.defaultValue = key.defaultValue.str();
    if (key.need == Need::Required)
      info.defaultValue = "required";
    else if (key.need == Need::HFDefault)
      info.defaultValue =
          ("required; " + key.defaultValue + " in config.json").str();
    info.summary = key.summary;
    for (StringRef alias : splitWords(key.aliases))
      info.aliases.push_back(alias.str());
    Field field = key.field(none);
    info.isSwitch = std::holds_alternative<bool *>(field) ||
                    std::holds_alternative<OnlyValue>(field);
    keys.push_back(std::move(info));
  }
  return keys;
}

void reprise::frontend::printKeysAsMarkdown(raw_ostream &os) {
  StringRef section;
  for (const KeyInfo &key : listKeys()) {
    if (key.section != section) {
      os << "\n### `" << key.section << "`\n\n"
         << "| key | value | default | meaning |\n|---|---|---|---|\n";
      section = key.section;
    }
    os << "| `" << key.name << "`";
    for (const std::string &alias : key.aliases)
      os << ", `" << alias << "`";
    os << " | " << key.type << " | " << key.defaultValue << " | " << key.summary
       << ". |\n";
  }
}
