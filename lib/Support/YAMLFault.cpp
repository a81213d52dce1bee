//===- YAMLFault.cpp - What is wrong with text that is not YAML -----------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A parser stops where nothing fits any more, which may be lines below what is
// missing: a bracket, a quote.
//
//===----------------------------------------------------------------------===//

#include "reprise/Support/YAMLFault.h"
#include "reprise/Support/RawJSON.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/YAMLParser.h"

#include <optional>

using namespace llvm;
using namespace reprise;

namespace {
/// Looks for the first bracket or quote without its other half in its place.
class Scanner {
public:
  explicit Scanner(StringRef text) : text(text) {}
  std::optional<YAMLFault> scan();

private:
  /// Passes over a quoted text, unless its line ends first.
  bool skipQuoted();

  StringRef text;
  size_t at = 0;
  bool isTokenStart = true;
  SmallVector<const char *> open; ///< Brackets.
};
} // namespace

bool Scanner::skipQuoted() {
  char quote = text[at];
  for (size_t i = at + 1; i < text.size() && text[i] != '\n'; ++i) {
    bool isPair = quote == '\'' && text.substr(i, 2) == "''";
    if (isPair || (quote == '"' && text[i] == '\\')) {
      ++i;
    } else if (text[i] == quote) {
      at = i;
      return true;
    }
  }
  return false;
}

static std::string describeOpen(const char *bracket) {
  return *bracket == '[' ? "this list has no closing bracket"
                         : "this map has no closing brace";
}

std::optional<YAMLFault> Scanner::scan() {
  for (; at < text.size(); ++at) {
    char c = text[at];
    bool isBlank = at == 0 || isSpace(text[at - 1]);
    bool isLast = at + 1 == text.size() || isSpace(text[at + 1]);
    if (c == '\n') {
      isTokenStart = true;
    } else if (c == '#' && isBlank) {
      at = std::min(text.find('\n', at), text.size()) - 1;
    } else if (isTokenStart && (c == '"' || c == '\'')) {
      const char *place = text.data() + at;
      if (!skipQuoted())
        return YAMLFault{place, "this text has no closing quote"};
      isTokenStart = false;
    } else if (isTokenStart && open.empty() && (c == '|' || c == '>')) {
      return std::nullopt; // Anything may be in a block of text.
    } else if ((c == '[' || c == '{') && (isTokenStart || !open.empty())) {
      open.push_back(text.data() + at);
      isTokenStart = true;
    } else if ((c == ']' || c == '}') && !open.empty()) {
      if ((*open.back() == '[') != (c == ']'))
        return YAMLFault{open.back(), describeOpen(open.back())};
      open.pop_back();
      isTokenStart = false;
    } else if ((c == ',' && !open.empty()) || (c == ':' && isLast) ||
               (isTokenStart && isLast && (c == '-' || c == '?'))) {
      isTokenStart = true;
    } else if (!isSpace(c)) {
      isTokenStart = false;
    }
  }
  if (open.empty())
    return std::nullopt;
  return YAMLFault{open.front(), describeOpen(open.front())};
}

static StringRef explain(StringRef message) {
  return StringSwitch<StringRef>(message)
      .Case("Unexpected token. Expected Key or Block End",
            "needs a key here, indented like those above it")
      .Case("Unexpected token. Expected Block Entry or Block End.",
            "needs an item here, with a dash, indented like those above it")
      .Case("Unexpected token. Expected Key, Flow Entry, or Flow Mapping End.",
            "needs a comma or a closing brace here")
      .Case("Expected , between entries!", "needs a comma here")
      .Case("Could not find closing ]!", "this list has no closing bracket")
      .Case("Could not find expected : for simple key",
            "needs a colon after the name of a key")
      .Case("Unexpected token in Key Value.",
            "needs a colon and a space after this key, or the one above")
      .Case("Expected quote at end of scalar", "this text has no closing quote")
      .Case("Unrecognized escape code",
            "this text has an escape that does not exist")
      .Case("Unrecognized character while tokenizing.",
            "needs quotes around a text that begins with this character")
      .Case("Got empty alias or anchor",
            "needs quotes around a text that begins with this character")
      .Case("Expected a line break after block scalar header",
            "needs the end of the line after what begins a block of text")
      .Case("A text line is less indented than the block scalar",
            "needs lines of a block of text to be indented alike")
      .Default("not YAML from here on");
}

/// What is wrong where the parser stopped, at `place`.
static YAMLFault explainPlace(StringRef text, const char *place,
                              StringRef message) {
  YAMLFault fault{place, explain(message).str()};
  if (place == text.end())
    return fault;
  if (*place == ']' || *place == '}') {
    fault.message = "there is nothing open that this bracket closes";
    return fault;
  }
  if (*place != ':' || message != "Unexpected token. Expected Key or Block End")
    return fault;
  // What is before the colon is a key in the wrong place, or a value.
  StringRef before = text.take_front(place - text.begin());
  StringRef line = before.drop_front(before.rfind('\n') + 1);
  if (line.contains(": "))
    fault.message = "needs quotes around a value that has a colon in it";
  else if (!line.trim().empty())
    fault.place = line.ltrim().begin();
  return fault;
}

YAMLFault reprise::explainYAMLFault(StringRef text, const char *place,
                                    StringRef message) {
  if (std::optional<YAMLFault> fault = Scanner(text).scan())
    return *fault;
  return explainPlace(text, place ? place : text.begin(), message);
}

/// Of `node`, with `level` lists and maps around it. A list or map that is read
/// to its end has nothing left to be passed over.
static const char *findLevelTooMany(yaml::Node *node, int level) {
  auto *map = dyn_cast_or_null<yaml::MappingNode>(node);
  auto *list = dyn_cast_or_null<yaml::SequenceNode>(node);
  if (!map && !list)
    return nullptr;
  const char *place = node->getSourceRange().Start.getPointer();
  if (level == kMostLevels) // Brackets have their nodes begin behind them.
    return place - (place[-1] == '[' || place[-1] == '{');
  if (list) {
    for (yaml::Node &item : *list)
      if ((place = findLevelTooMany(&item, level + 1)))
        return place;
    return nullptr;
  }
  for (yaml::KeyValueNode &pair : *map) {
    yaml::Node *key = pair.getKey();
    if ((place = findLevelTooMany(key, level + 1)))
      return place;
    yaml::Node *value = key ? pair.getValue() : nullptr;
    if ((place = findLevelTooMany(value, level + 1)))
      return place;
  }
  return nullptr;
}

const char *reprise::findLevelTooMany(yaml::Stream &stream) {
  for (yaml::Document &document : stream)
    if (const char *place = ::findLevelTooMany(document.getRoot(), 0))
      return place;
  return nullptr;
}
