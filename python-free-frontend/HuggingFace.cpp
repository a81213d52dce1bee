//===- HuggingFace.cpp - Reads config.json ----------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/Keys.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace llvm;
using namespace reprise::frontend;

namespace {
/// A key outside the table of a family that would change what its models
/// compute, unless it is null, false or empty, or is what it says here. All
/// other keys in the file are about other things.
struct RefusedKey {
  StringLiteral name;
  unsigned families;
  StringLiteral harmless = "";
};
} // namespace

static constexpr RefusedKey kRefused[] = {
    {"add_cross_attention", kAllFamilies},
    {"hidden_act", kGPT2},
    {"layer_types", kAllFamilies, "full_attention"},
    {"partial_rotary_factor", kRotaryFamilies, "1.0"},
    {"pruned_heads", kAllFamilies},
    {"quantization_config", kAllFamilies},
    {"rope_parameters", kGPT2},
    {"rope_scaling", kGPT2},
    {"rope_type", kAllFamilies},
    // In qwen2 and qwen3 it is the size of a window that another key turns on.
    {"sliding_window", kGPT2 | kLlama},
    {"use_mrope", kRotaryFamilies},
};

/// What those who generate text with the weights need.
static constexpr StringLiteral kTokenIds[] = {"bos_token_id", "eos_token_id",
                                              "pad_token_id"};

namespace {
/// A member of an object, as it is in the text.
struct RawMember {
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

/// llvm::json keeps no positions; this finds those of the members of the object
/// that the text is.
static SmallVector<RawMember> findMembers(StringRef text) {
  SmallVector<RawMember> members;
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

/// Null, false, empty, or the harmless text alone or all through a list.
static bool isHarmless(const json::Value &value, StringRef harmless) {
  if (auto *object = value.getAsObject())
    return object->empty();
  if (auto *array = value.getAsArray())
    return llvm::all_of(*array, [&](const json::Value &item) {
      return !harmless.empty() && item.getAsString() == harmless;
    });
  double number;
  if (value.getAsNumber() && !harmless.getAsDouble(number))
    return *value.getAsNumber() == number;
  return value.getAsNull() || value.getAsBoolean() == false;
}

/// A number, several, or none.
static bool isTokenId(const json::Value &value) {
  if (const json::Array *ids = value.getAsArray())
    return llvm::all_of(*ids, [](const json::Value &id) {
      return id.getAsInteger().has_value();
    });
  return value.getAsInteger() || value.getAsNull();
}

static Value toValue(const json::Value &json, StringRef text) {
  Value value;
  value.origin.location = SMLoc::getFromPointer(text.data());
  if (std::optional<StringRef> string = json.getAsString()) {
    value.kind = Value::Quoted;
    value.text = string->str();
  } else if (json.getAsArray()) {
    value.kind = Value::List;
  } else if (const json::Object *object = json.getAsObject()) {
    value.kind = Value::Map;
    for (const RawMember &raw : findMembers(text)) {
      // A key with an escape is nowhere in the object: it stays, as unknown.
      const json::Value *inner = object->get(raw.key);
      if (!inner || !inner->getAsNull())
        value.members.push_back({raw.key.str(),
                                 {SMLoc::getFromPointer(raw.key.data() - 1)},
                                 inner ? toValue(*inner, raw.value) : Value()});
    }
  } else if (!json.getAsNull()) {
    value.kind = Value::Plain;
    value.text = text.str();
  }
  return value;
}

namespace {
/// Sorts the members of the outermost object by what is to be done with them.
class ConfigReader {
public:
  ConfigReader(const json::Object &object, std::vector<Entry> &entries,
               Description &description, Diagnostics &diagnostics)
      : object(object), list(entries, diagnostics), description(description),
        diagnostics(diagnostics) {}

  /// The family that the file says it is for; adds the entry that says so.
  std::optional<Family> readFamily(ArrayRef<RawMember> members);
  void readMember(const RawMember &member, Family family);

private:
  void refuse(const RawMember &member, Origin origin, Family family);

  const json::Object &object;
  EntryList list;
  StringSet<> others; ///< Names that are no keys here.
  Description &description;
  Diagnostics &diagnostics;
};
} // namespace

std::optional<Family> ConfigReader::readFamily(ArrayRef<RawMember> members) {
  std::optional<Family> family;
  // Files from before `model_type` name the class alone.
  const json::Value *type = object.get("model_type");
  bool hasType = type && !type->getAsNull();
  for (const RawMember &member : members) {
    const json::Value *json = object.get(member.key);
    if (!json || member.key != (hasType ? "model_type" : "architectures"))
      continue;
    Value value = toValue(*json, member.value);
    const json::Array *classes = json->getAsArray();
    if (classes && !hasType) {
      StringRef name =
          classes->empty() ? "" : classes->front().getAsString().value_or("");
      family = parseFamily(name);
      value.kind = name.empty() ? Value::Null : Value::Quoted;
      value.text = family ? describeFamilies(*family) : name.str();
    } else {
      family = parseFamily(value.text);
    }
    Origin origin{SMLoc::getFromPointer(member.key.data() - 1)};
    list.add(*findKey("model_type", "model"),
             {"model_type", origin, std::move(value)});
  }
  return family;
}

void ConfigReader::refuse(const RawMember &member, Origin origin,
                          Family family) {
  std::string message = ("'" + member.key +
                         "' changes what the model computes and is not "
                         "supported for ")
                            .str();
  diagnostics.error(origin, message + describeFamilies(family));
}

void ConfigReader::readMember(const RawMember &member, Family family) {
  Origin origin{SMLoc::getFromPointer(member.key.data() - 1)};
  const json::Value *json = object.get(member.key);
  if (!json || member.key == "model_type" || member.key == "architectures")
    return;
  const Key *key = findKey(member.key, "model", family);
  if (key && key->name != "hf_config")
    return list.add(*key,
                    {member.key.str(), origin, toValue(*json, member.value)});
  if (!others.insert(member.key).second)
    return diagnostics.error(origin,
                             describeRepetition(member.key, member.key));
  for (const RefusedKey &refused : kRefused)
    if (refused.name == member.key && (refused.families & family)) {
      if (!isHarmless(*json, refused.harmless))
        refuse(member, origin, family);
      return;
    }
  if (is_contained(kTokenIds, member.key) && isTokenId(*json))
    description.tokenIds.emplace_back(member.key, member.value);
  else
    description.ignoredKeys.push_back(member.key.str());
}

void reprise::frontend::readHuggingFace(MemoryBufferRef buffer,
                                        std::optional<Family> family,
                                        std::vector<Entry> &entries,
                                        Description &description,
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

  SmallVector<RawMember> members = findMembers(text);
  for (const RawMember &member : members)
    if (!object->get(member.key))
      diagnostics.error({SMLoc::getFromPointer(member.key.data() - 1)},
                        "needs keys without escapes");
  ConfigReader reader(*object, entries, description, diagnostics);
  std::optional<Family> own = reader.readFamily(members);
  if (!family)
    family = own;
  // Of a family that is not known, that is all there is to say.
  if (!family)
    return;
  for (const RawMember &member : members)
    reader.readMember(member, *family);
  // Hugging Face's default of these two is a number, unless it is null.
  constexpr StringLiteral kKVHeads = "num_key_value_heads";
  if ((*family & (kQwen2 | kQwen3)) && !object->get(kKVHeads))
    entries.push_back(
        {findKey(kKVHeads, "model", *family),
         {Value::Plain, "32", {}, {SMLoc::getFromPointer(text.data())}},
         kKVHeads.str(),
         {}});
}
