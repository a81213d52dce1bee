//===- FileKind.cpp - What a file is that is no description -----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/FileKind.h"

#include "python-free-frontend/Keys.h"
#include "python-free-frontend/RawJSON.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace llvm;
using namespace reprise::frontend;

namespace {
enum class Kind { IR, Config, Params, Model, Plan, Other };

struct FileKind {
  StringLiteral sign; ///< How the file begins, or the keys of a JSON object.
  StringLiteral what;
  Kind kind = Kind::Other;
};
} // namespace

static constexpr FileKind kBeginnings[] = {
    {"\x7F"
     "ELF",
     "a program or object file"},
    {"!<arch>\n", "an archive of object files"},
    {"GGUF", "a model in GGUF", Kind::Model},
    {"PK\x03\x04", "a zip archive, as PyTorch writes weights", Kind::Model},
    {"\x80\x02", "a pickle of Python", Kind::Model},
    {"\x93NUMPY", "an array of NumPy"},
    {"\x1F\x8B", "compressed with gzip"},
    {"<!DOCTYPE", "a page of HTML, as --report writes"},
    {"digraph ", "a graph in DOT, as --dot writes"},
    {"#!", "a script"},
};

/// Of a JSON object, by keys that all are there; the first that fits.
static constexpr FileKind kObjects[] = {
    {"model_type", "the config.json of a model", Kind::Config},
    {"architectures", "the config.json of a model", Kind::Config},
    {"dim|n_layers", "Meta's params.json of a model", Kind::Params},
    {"added_tokens|model", "a tokenizer.json", Kind::Model},
    {"added_tokens_decoder", "a tokenizer_config.json", Kind::Model},
    {"tokenizer_class", "a tokenizer_config.json", Kind::Model},
    {"weight_map", "the index of weights in several files", Kind::Model},
    {"peft_type", "the adapter_config.json of an adapter", Kind::Model},
    {"transformers_version", "a generation_config.json", Kind::Model},
    {"budget_bytes|micro_batches", "a certificate of --certificate"},
    {"categories|peak_bytes", "a plan as --plan-json writes it"},
    {"traceEvents", "a timeline, as --trace writes"},
    {"samples|step", "the trainer.json of a checkpoint"},
    {"zero_optimization", "a configuration of DeepSpeed"},
};

static constexpr StringLiteral kByteOrderMark = "\xEF\xBB\xBF";

/// Whether this is rather what `--emit` writes: a module or a function, after
/// comments and aliases.
static bool isIR(StringRef path, StringRef text) {
  text = text.ltrim();
  while (text.starts_with("//") || text.starts_with("#") ||
         text.starts_with("!"))
    text = text.split('\n').second.ltrim();
  return path.ends_with(".mlir") || text.starts_with("module {") ||
         text.starts_with("module @") ||
         text.starts_with("module attributes") ||
         text.starts_with("func.func ") ||
         text.starts_with("\"builtin.module\"");
}

/// A length in eight bytes, and a JSON object.
static bool isSafeTensors(StringRef text) {
  constexpr uint64_t kMostHeader = 100'000'000;
  return text.size() > 8 && text[8] == '{' &&
         support::endian::read64le(text.data()) <= kMostHeader;
}

/// `rules:` at the beginning of a line, and no section of a description.
static bool isPlan(StringRef text) {
  bool hasRules = false;
  for (StringRef line : llvm::split(text, '\n')) {
    StringRef name = line.take_until([](char c) { return c == ':'; });
    if (is_contained(allSections(), name))
      return false;
    hasRules |= line.starts_with("rules:");
  }
  return hasRules;
}

/// A table's name in brackets in the first line that says something.
static bool isTOML(StringRef text) {
  for (StringRef line : llvm::split(text, '\n')) {
    line = line.trim();
    if (line.empty() || line.starts_with("#"))
      continue;
    StringRef name = line;
    return name.consume_front("[") && name.consume_back("]") && !name.empty() &&
           all_of(name,
                  [](char c) { return isAlnum(c) || c == '_' || c == '.'; });
  }
  return false;
}

static std::optional<FileKind> findObject(StringRef text) {
  SmallVector<RawMember> members = findMembers(text);
  // Braces and quotes may also be YAML.
  if (members.empty() || members.front().key.data()[-1] != '"')
    return std::nullopt;
  auto has = [&](StringRef key) {
    return any_of(members, [&](const RawMember &m) { return m.key == key; });
  };
  for (const FileKind &kind : kObjects)
    if (all_of(splitWords(kind.sign), has))
      return kind;
  if (any_of(allSections(), has)) // A description may be JSON, too.
    return std::nullopt;
  return FileKind{"", "JSON without a section of a description"};
}

static std::optional<FileKind> findKind(StringRef path, StringRef text) {
  for (const FileKind &kind : kBeginnings)
    if (text.starts_with(kind.sign))
      return kind;
  if (isSafeTensors(text))
    return FileKind{"", "weights in safetensors", Kind::Model};
  constexpr unsigned kTokens = 20240520, kWideTokens = 20240801;
  if (text.size() > 4 && is_contained({kTokens, kWideTokens},
                                      support::endian::read32le(text.data())))
    return FileKind{"", "a file of tokens"};
  text.consume_front(kByteOrderMark);
  if (text.ltrim().starts_with("{"))
    return findObject(text.ltrim());
  if (isIR(path, text))
    return FileKind{"", "IR", Kind::IR};
  if (isPlan(text))
    return FileKind{"", "a plan file", Kind::Plan};
  if (isTOML(text))
    return FileKind{"", "TOML"};
  return std::nullopt;
}

/// What to do with a model that has a file at `path`.
static std::string describeModel(StringRef path) {
  return ("; a description names a model's config.json, or its folder, as "
          "'hf_config' in the section 'model', or --hf-config=" +
          path + " does beside a description")
      .str();
}

std::optional<std::string> reprise::frontend::describeOther(StringRef path,
                                                            StringRef text,
                                                            Syntax syntax) {
  std::optional<FileKind> kind = findKind(path, text);
  if (!kind)
    return std::nullopt;
  std::string is = ("it is " + kind->what).str();
  if (syntax == Syntax::JSON) {
    if (kind->kind == Kind::Model)
      return is + ", not a config.json; 'hf_config' needs one, or the folder "
                  "of a model with one";
    // Other objects are read: what they have says more.
    text.consume_front(kByteOrderMark);
    if (text.ltrim().starts_with("{"))
      return std::nullopt;
    return is + ", not a config.json";
  }
  is += ", not a description";
  StringRef folder = sys::path::parent_path(path);
  switch (kind->kind) {
  case Kind::IR:
    return is + "; --from=PHASE reads IR";
  case Kind::Config:
    return is + describeModel(path);
  case Kind::Params:
    return is +
           "; it has the sizes that a description has in the section "
           "'model', by other names: --hf-config=" +
           path.str() + " beside a description says them";
  case Kind::Model:
    return is + describeModel(folder.empty() ? "." : folder);
  case Kind::Plan:
    return is +
           "; a description names it as 'recompute_plan' in the section "
           "'recompute', or --recompute-plan=" +
           path.str() + " does beside a description";
  case Kind::Other:
    return is + ", which is YAML with the sections 'model' and 'train'";
  }
  llvm_unreachable("all kinds are handled");
}

std::string reprise::frontend::describeFolder(StringRef path, Syntax syntax) {
  SmallString<128> config(path);
  sys::path::append(config, "config.json");
  if (syntax == Syntax::YAML && sys::fs::exists(config))
    return "it is the folder of a model, not a description" +
           describeModel(path);
  return "it is a directory";
}
