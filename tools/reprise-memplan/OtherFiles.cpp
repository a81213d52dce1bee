//===- OtherFiles.cpp - Files that other commands take --------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The programs of Reprise write and read several kinds of text. One that is
// given in place of another is told by words that its kind alone has.
//
//===----------------------------------------------------------------------===//

#include "OtherFiles.h"

#include <algorithm>
#include <cctype>

using namespace reprise::tools;

namespace {
struct Text {
  std::string_view all;
  std::string_view first; ///< The first line that is no comment.

  bool has(std::string_view part) const { return all.find(part) != all.npos; }
  bool isJSON() const { return !first.empty() && first.front() == '{'; }
  /// Whether a line begins so.
  bool hasLine(std::string_view begin) const {
    return all.substr(0, begin.size()) == begin ||
           has("\n" + std::string(begin));
  }
  std::string_view getWord() const {
    size_t end = 0;
    while (end < first.size() &&
           (std::isalnum(first[end]) || first[end] == '_'))
      ++end;
    return first.substr(0, end);
  }
};

struct Kind {
  bool (*is)(const Text &text);
  const char *what;
  const char *advice; ///< `FILE` stands for its name.
  bool isRead[3];     ///< As each `FileUse`.
};
} // namespace

static bool isCurve(const Text &text) {
  return text.isJSON() && text.has("\"points\"") && !text.has("\"version\"");
}
static bool isCertificate(const Text &text) {
  return text.isJSON() && text.has("\"version\"") &&
         text.has("\"budget_bytes\"");
}
static bool isCostTable(const Text &text) {
  return text.isJSON() && text.has("_per_second\"") && text.has("\"machine\"");
}
static bool isConfig(const Text &text) {
  return text.isJSON() &&
         (text.has("\"model_type\"") || text.has("\"architectures\""));
}
static bool isStep(const Text &text) {
  for (std::string_view word :
       {"step", "value", "forward", "backward", "update"})
    if (text.getWord() == word && !text.hasLine(std::string(word) + ":"))
      return true;
  return false;
}
static bool isRows(const Text &text) {
  return text.first.find(',') != text.first.npos &&
         text.first.find("lower") != text.first.npos &&
         text.first.find("upper") != text.first.npos;
}
static bool isIR(const Text &text) {
  return text.hasLine("module") || text.hasLine("func.func") ||
         text.hasLine("\"builtin.module\"");
}
static bool isPlanFile(const Text &text) { return text.hasLine("rules:"); }
static bool isDescription(const Text &text) {
  for (std::string_view section :
       {"model:", "train:", "recompute:", "parallel:"})
    if (text.first.substr(0, section.size()) == section)
      return true;
  return false;
}

/// Those whose signs others have as well come behind these.
static constexpr Kind kKinds[] = {
    {isRows,
     "rows of buffers",
     "reprise-memplan FILE packs them",
     {true, true, false}},
    {isCurve,
     "the curve of --pareto",
     "the bytes of a point are a budget, as in reprisec --memory-budget=BYTES",
     {}},
    {isCertificate,
     "a certificate",
     "reprise-memplan --verify FILE checks it",
     {false, true, false}},
    {isCostTable,
     "a table of costs",
     "reprisec --cost-table=FILE takes it",
     {}},
    {isConfig,
     "the configuration of a model",
     "reprisec takes it as hf_config: FILE of a description",
     {}},
    {isStep,
     "a step",
     "reprise-memplan --solve FILE finds its plans",
     {false, false, true}},
    {isPlanFile,
     "a plan of recomputation",
     "reprisec --recompute-plan=FILE takes it",
     {}},
    {isDescription,
     "the description of a model",
     "reprisec FILE compiles it",
     {}},
    {isIR,
     "IR",
     "of the phase joint reprise-opt --reprise-write-step=file=model.step FILE "
     "writes the step",
     {}}};

/// The first line that is neither blank nor a comment, nor begins a document.
static std::string_view getFirstLine(std::string_view text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF"; // of UTF-8
  if (text.substr(0, kMark.size()) == kMark)
    text.remove_prefix(kMark.size());
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    size_t begin = line.find_first_not_of(" \t\r");
    if (begin != line.npos && line[begin] != '#' &&
        line.substr(begin, 3) != "---")
      return line.substr(begin);
  }
  return {};
}

std::string reprise::tools::explainOtherFile(const std::string &name,
                                             std::string_view begin,
                                             FileUse use) {
  constexpr const char *kUses[] = {"rows of buffers", "a plan of buffers",
                                   "a step"};
  Text text = {begin, getFirstLine(begin)};
  for (const Kind &kind : kKinds) {
    if (!kind.is(text))
      continue;
    if (kind.isRead[int(use)])
      return "";
    std::string advice = kind.advice;
    if (size_t at = advice.find("FILE"); at != advice.npos)
      advice.replace(at, 4, name);
    return "'" + name + "' is " + kind.what + ", not " + kUses[int(use)] +
           "; " + advice;
  }
  return "";
}
