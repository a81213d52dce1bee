//===- FileKind.cpp - What a file is that is no description -----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/FileKind.h"

#include "python-free-frontend/Keys.h"
#include "reprise/Support/RawJSON.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace llvm;
using namespace reprise;
using namespace reprise::frontend;

namespace {
struct FileKind {
  StringLiteral sign; ///< How the file begins, or the keys of a JSON object.
  StringLiteral what;
  /// What to do with it; `{path}` and `{folder}` are its own.
  StringLiteral use = "";
  std::optional<FileRole> role = std::nullopt; ///< That it is for.
  bool isOfModel = false; ///< A file in the folder of a published model.
};
} // namespace

// Where files of some kinds go.
static constexpr StringLiteral
    kConfigUse =
        "a description names a model's config.json, or its folder, as "
        "'hf_config' in the section 'model', or --hf-config={path} does "
        "beside a description",
    kModelUse =
        "a description names a model's config.json, or its folder, as "
        "'hf_config' in the section 'model', or --hf-config={folder} does "
        "beside a description",
    kParamsUse = "it has the sizes that a description has in the section "
                 "'model', by other names: --hf-config={path} beside a "
                 "description says them",
    kPlanUse = "a description names it as 'recompute_plan' in the section "
               "'recompute', or --recompute-plan={path} does beside a "
               "description",
    kCostsUse = "--cost-table={path} takes it, beside a description",
    kCertificateUse = "reprise-memplan --verify {path} checks it",
    kTokensUse = "the compiled program reads it, with --data {path}",
    kIRUse = "--from=PHASE reads IR",
    kDescriptionUse = "reprisec {path} reads it";

static constexpr FileKind ofModel(StringLiteral sign, StringLiteral what) {
  return {sign, what, kModelUse, std::nullopt, /*isOfModel=*/true};
}
static constexpr FileKind ofCosts(StringLiteral sign) {
  return {sign, "a table of costs", kCostsUse, FileRole::CostTable};
}
static constexpr FileKind kIR = {"", "IR", kIRUse, FileRole::IR};
static constexpr FileKind kPlan = {"", "a plan file", kPlanUse, FileRole::Plan};
static constexpr FileKind kDescription = {"", "a description", kDescriptionUse,
                                          FileRole::Description};

static constexpr FileKind kBeginnings[] = {
    {"\x7F"
     "ELF",
     "a program or object file"},
    {"!<arch>\n", "an archive of object files"},
    {"ML\xEFR", "IR in bytecode", kIRUse, FileRole::IR},
    ofModel("GGUF", "a model in GGUF"),
    ofModel("PK\x03\x04", "a zip archive, as PyTorch writes weights"),
    {"version https://git-lfs",
     "a Git LFS pointer (git lfs pull fetches the file itself)"},
    // Protocols 2 to 5.
    ofModel("\x80\x02", "pickled Python objects"),
    ofModel("\x80\x03", "pickled Python objects"),
    ofModel("\x80\x04", "pickled Python objects"),
    ofModel("\x80\x05", "pickled Python objects"),
    {"\x93NUMPY", "an array of NumPy", kTokensUse},
    {"\x1F\x8B", "compressed with gzip"},
    {"\x28\xB5\x2F\xFD", "compressed with zstd"},
    {"BZh", "compressed with bzip2"},
    {"\xFD"
     "7zXZ",
     "compressed with xz"},
    {"\xFF\xFE", "text in UTF-16 (iconv -f UTF-16 -t UTF-8 makes UTF-8 of it)"},
    {"\xFE\xFF", "text in UTF-16 (iconv -f UTF-16 -t UTF-8 makes UTF-8 of it)"},
    {"<!DOCTYPE", "a page of HTML, as --report writes"},
    {"digraph ", "a graph in DOT, as --dot writes"},
    {"#!", "a script"},
};

/// Of a JSON object, by keys that all are there; the first that fits.
static constexpr FileKind kObjects[] = {
    {"model_type", "the config.json of a model", kConfigUse, FileRole::Config},
    {"architectures", "the config.json of a model", kConfigUse,
     FileRole::Config},
    {"hidden_size", "the config.json of a model", kConfigUse, FileRole::Config},
    {"n_embd", "the config.json of a model", kConfigUse, FileRole::Config},
    {"dim|n_layers", "Meta's params.json of a model", kParamsUse},
    ofModel("added_tokens|model", "a tokenizer.json"),
    ofModel("added_tokens_decoder", "a tokenizer_config.json"),
    ofModel("tokenizer_class", "a tokenizer_config.json"),
    ofModel("weight_map", "the index of weights in several files"),
    ofModel("peft_type", "the adapter_config.json of an adapter"),
    ofModel("transformers_version", "a generation_config.json"),
    {"budget_bytes|micro_batches", "a certificate of --certificate",
     kCertificateUse},
    {"categories|peak_bytes", "a plan as --plan-json writes it"},
    {"traceEvents", "a timeline, as --trace writes"},
    {"samples|step", "the trainer.json of a checkpoint"},
    {"zero_optimization", "a configuration of DeepSpeed"},
    ofCosts("measured"),
    ofCosts("links"),
    ofCosts("product_flops_per_second"),
    ofCosts("memory_bytes_per_second"),
    ofCosts("base"),
};

static constexpr StringLiteral kByteOrderMark = "\xEF\xBB\xBF";

/// Whether this is rather what `--emit` writes: a module or a function, after
/// comments and aliases.
static bool isIR(StringRef text) {
  text = text.ltrim();
  while (text.starts_with("//") || text.starts_with("#") ||
         text.starts_with("!"))
    text = text.split('\n').second.ltrim();
  return text.starts_with("module {") || text.starts_with("module @") ||
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

/// A description has a section, and a plan file `rules`, at the beginning of a
/// line.
static std::optional<FileKind> findYAML(StringRef text) {
  bool hasRules = false;
  for (StringRef line : llvm::split(text, '\n')) {
    line.consume_front("{");
    auto [name, rest] = line.split(':');
    if (name != line && is_contained(allSections(), name.trim("'\"")))
      return kDescription;
    hasRules |= line.starts_with("rules:");
  }
  return hasRules ? std::optional(kPlan) : std::nullopt;
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

/// Another object: where one is read as it is, its keys say more.
static constexpr FileKind kOtherObject = {
    "", "JSON without a section of a description"};

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
    return kDescription;
  return kOtherObject;
}

static std::optional<FileKind> findKind(StringRef path, StringRef text) {
  for (const FileKind &kind : kBeginnings)
    if (text.starts_with(kind.sign))
      return kind;
  if (isSafeTensors(text))
    return ofModel("", "weights in safetensors");
  constexpr unsigned kTokens = 20240520, kWideTokens = 20240801;
  if (text.size() > 4 && is_contained({kTokens, kWideTokens},
                                      support::endian::read32le(text.data())))
    return FileKind{"", "a file of tokens", kTokensUse};
  text.consume_front(kByteOrderMark);
  if (text.ltrim().starts_with("{"))
    if (std::optional<FileKind> object = findObject(text.ltrim()))
      return object;
  if (isIR(text))
    return kIR;
  if (std::optional<FileKind> known = findYAML(text))
    return known;
  if (isTOML(text))
    return FileKind{"", "TOML"};
  return path.ends_with(".mlir") ? std::optional(kIR) : std::nullopt;
}

/// What would have the role.
static StringRef getWhat(FileRole role) {
  switch (role) {
  case FileRole::Description:
    return "a description";
  case FileRole::Config:
    return "a config.json";
  case FileRole::IR:
    return "IR";
  case FileRole::Plan:
    return "a plan file";
  case FileRole::CostTable:
    return "a table of costs";
  }
  llvm_unreachable("all roles are handled");
}

/// What to do with a file of the kind, in place of what its role is for.
static std::string describeUse(const FileKind &kind, StringRef path,
                               FileRole role) {
  if (role == FileRole::Config)
    return kind.isOfModel ? "; 'hf_config' needs one, or the folder of a model "
                            "with one"
                          : "";
  if (kind.use.empty())
    return role == FileRole::Description
               ? ", which is YAML with the sections 'model' and 'train'"
               : "";
  StringRef folder = sys::path::parent_path(path);
  std::string use = kind.use.str();
  for (auto [name, value] :
       {std::pair(StringRef("{path}"), path),
        std::pair(StringRef("{folder}"), folder.empty() ? "." : folder)})
    if (size_t at = use.find(name); at != use.npos)
      use.replace(at, name.size(), value);
  bool isDescription = kind.role == FileRole::Description;
  return "; " + use +
         (isDescription && role == FileRole::IR ? ", without --from" : "");
}

std::optional<std::string> reprise::frontend::describeOther(StringRef path,
                                                            StringRef text,
                                                            FileRole role) {
  std::optional<FileKind> kind = findKind(path, text);
  if (!kind || kind->role == role)
    return std::nullopt;
  if (kind->what == kOtherObject.what && role == FileRole::CostTable)
    return std::nullopt;
  // Other objects are read as a config.json: what they have says more.
  text.consume_front(kByteOrderMark);
  if (role == FileRole::Config && !kind->isOfModel &&
      text.ltrim().starts_with("{"))
    return std::nullopt;
  return ("it is " + kind->what + ", not " + getWhat(role) +
          describeUse(*kind, path, role))
      .str();
}

std::string reprise::frontend::describeFolder(StringRef path, FileRole role) {
  SmallString<128> config(path);
  sys::path::append(config, "config.json");
  if (role == FileRole::Description && sys::fs::exists(config))
    return "it is the folder of a model, not a description" +
           describeUse({"", "", kConfigUse}, path, role);
  return "it is a directory";
}
