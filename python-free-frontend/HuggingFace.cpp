//===- HuggingFace.cpp - Reads config.json ----------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/Keys.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace llvm;
using namespace reprise::frontend;

/// Keys outside the table that would change what gpt2 computes, unless null,
/// false or empty. Everything else in the file is about other things.
static constexpr StringLiteral kRefused[] = {
    "add_cross_attention", "hidden_act",          "layer_types",
    "pruned_heads",        "rope_parameters",     "rope_scaling",
    "rope_type",           "quantization_config", "sliding_window"};

namespace {
/// A member of the outermost object, as it is in the text.
struct Member {
  StringRef key; ///< without quotes
  StringRef value;
};
} // namespace

/// The end of the string, number, word or bracketed value at `begin`, in text
/// that is known to be JSON.
static size_t findValueEnd(StringRef text, size_t begin) {
  int depth = 0;
  for (size_t i = begin; i < text.size(); ++i) {
    char c = text[i];
    if (c == '"')
      for (++i; i < text.size() && text[i] != '"'; ++i)
        i += text[i] == '\\';
    else if (c == '{' || c == '[')
      ++depth;
    else if (c == '}' || c == ']') {
      if (depth == 0)
        return i;
      --depth;
    } else if (depth == 0 && (c == ',' || c == ':'))
      return i;
  }
  return text.size();
}

/// llvm::json keeps no positions; this finds those of the outermost members.
static SmallVector<Member> findMembers(StringRef text) {
  SmallVector<Member> members;
  size_t at = text.find('{') + 1;
  while (at < text.size()) {
    size_t colon = findValueEnd(text, at);
    StringRef key = text.slice(at, colon).trim();
    if (colon >= text.size() || text[colon] != ':' || key.size() < 2)
      break;
    size_t end = findValueEnd(text, colon + 1);
    members.push_back(
        {key.drop_front().drop_back(), text.slice(colon + 1, end).trim()});
    at = end + 1;
  }
  return members;
}

/// Where the parser stopped: its message is `[line:column, byte=offset]:
/// reason`.
static void reportParseError(Error error, StringRef text,
                             Diagnostics &diagnostics) {
  std::string message = toString(std::move(error));
  auto [place, reason] = StringRef(message).split("]: ");
  size_t offset = 0;
  if (place.split("byte=").second.getAsInteger(10, offset) || reason.empty())
    reason = message;
  offset = std::min(offset, text.size());
  diagnostics.error({SMLoc::getFromPointer(text.data() + offset)},
                    "not JSON: " + reason);
}

static bool isNothing(const json::Value &value) {
  if (auto *object = value.getAsObject())
    return object->empty();
  if (auto *array = value.getAsArray())
    return array->empty();
  return value.getAsNull() || value.getAsBoolean() == false;
}

static Value toValue(const json::Value &json, const Member &member) {
  Value value;
  value.origin.location = SMLoc::getFromPointer(member.value.data());
  if (std::optional<StringRef> string = json.getAsString()) {
    value.kind = Value::Quoted;
    value.text = string->str();
  } else if (json.getAsArray()) {
    value.kind = Value::List;
  } else if (json.getAsObject()) {
    value.kind = Value::Map;
  } else if (!json.getAsNull()) {
    value.kind = Value::Plain;
    value.text = member.value.str();
  }
  return value;
}

void reprise::frontend::readHuggingFace(MemoryBufferRef buffer,
                                        std::vector<Entry> &entries,
                                        std::vector<std::string> &ignored,
                                        Diagnostics &diagnostics) {
  StringRef text = buffer.getBuffer();
  text.consume_front("\xEF\xBB\xBF"); // A byte order mark.
  Expected<json::Value> root = json::parse(text);
  if (!root)
    return reportParseError(root.takeError(), text, diagnostics);
  const json::Object *object = root->getAsObject();
  if (!object)
    return diagnostics.error({SMLoc::getFromPointer(text.ltrim().data())},
                             "needs a JSON object");

  StringMap<std::string> seen;
  bool hasModelType = object->getString("model_type").has_value();
  for (const Member &member : findMembers(text)) {
    Origin origin{SMLoc::getFromPointer(member.key.data() - 1)};
    const json::Value *json = object->get(member.key);
    if (!json) {
      diagnostics.error(origin, "needs keys without escapes");
      continue;
    }
    const Key *key = findKey(member.key, "model");
    StringRef name = key ? key->name : member.key;
    auto [first, isNew] = seen.try_emplace(name, member.key.str());
    if (!isNew) {
      diagnostics.error(origin, describeRepetition(member.key, first->second));
      continue;
    }
    if (key && key->name != "hf_config") {
      entries.push_back({key, toValue(*json, member)});
    } else if (is_contained(kRefused, member.key)) {
      if (!isNothing(*json))
        diagnostics.error(origin, "'" + member.key +
                                      "' changes what the model computes and "
                                      "is not supported for gpt2");
    } else if (member.key == "architectures" && !hasModelType &&
               json->getAsArray() && !json->getAsArray()->empty()) {
      // Files from before `model_type` name the class alone.
      StringRef name = json->getAsArray()->front().getAsString().value_or("");
      Value type = toValue(*json, member);
      type.kind = Value::Quoted;
      type.text = name.starts_with("GPT2") ? "gpt2" : name.str();
      entries.push_back({findKey("model_type"), std::move(type)});
    } else {
      ignored.push_back(member.key.str());
    }
  }
}
