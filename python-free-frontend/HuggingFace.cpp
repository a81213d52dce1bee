//===- HuggingFace.cpp - Reads config.json ----------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/ConfigKeys.h"
#include "python-free-frontend/JSONErrors.h"
#include "python-free-frontend/Keys.h"
#include "reprise/Support/RawJSON.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cmath>

using namespace llvm;
using namespace reprise;
using namespace reprise::frontend;

/// What those who generate text with the weights need.
static constexpr StringLiteral kTokenIds[] = {"bos_token_id", "eos_token_id",
                                              "pad_token_id"};

/// A number, several, or none.
static bool isTokenId(const json::Value &value) {
  if (const json::Array *ids = value.getAsArray())
    return llvm::all_of(*ids, [](const json::Value &id) {
      return id.getAsInteger().has_value();
    });
  return value.getAsInteger() || value.getAsNull();
}

/// An item of the list at `origin`; what is in lists and maps inside is left
/// out.
static GivenValue toItem(const json::Value &json, const Origin &origin) {
  GivenValue item;
  item.origin = origin;
  if (std::optional<StringRef> string = json.getAsString()) {
    item.kind = GivenValue::Quoted;
    item.text = string->str();
  } else if (json.getAsArray() || json.getAsObject()) {
    item.kind = json.getAsArray() ? GivenValue::List : GivenValue::Map;
  } else if (!json.getAsNull()) {
    item.kind = GivenValue::Plain;
    raw_string_ostream(item.text) << json;
  }
  return item;
}

/// Whether the classes take the number in the map of rotary positions for one
/// that is missing: they ask whether there is a truth.
static bool isUnset(StringRef key, const json::Value &value) {
  return value.getAsNumber() == 0.0 &&
         is_contained({"beta_fast", "beta_slow", "mscale", "mscale_all_dim"},
                      key);
}

static GivenValue toValue(const json::Value &json, StringRef text) {
  GivenValue value;
  value.origin.location = SMLoc::getFromPointer(text.data());
  if (std::optional<StringRef> string = json.getAsString()) {
    value.kind = GivenValue::Quoted;
    value.text = string->str();
  } else if (const json::Array *items = json.getAsArray()) {
    value.kind = GivenValue::List;
    for (const json::Value &item : *items)
      value.items.push_back(toItem(item, value.origin));
  } else if (const json::Object *object = json.getAsObject()) {
    value.kind = GivenValue::Map;
    for (const RawMember &raw : findMembers(text)) {
      // A key with an escape is nowhere in the object: it stays, as unknown.
      const json::Value *inner = object->get(raw.key);
      bool isNull = inner && inner->getAsNull();
      if ((isNull && raw.key != "truncate") ||
          (inner && isUnset(raw.key, *inner)))
        continue;
      GivenValue item = inner ? toValue(*inner, raw.value) : GivenValue();
      if (isNull) // Of an optional truth; where it is missing, it is true.
        item = {GivenValue::Plain, "false", {}, item.origin};
      value.members.push_back({raw.key.str(),
                               {SMLoc::getFromPointer(raw.key.data() - 1)},
                               std::move(item)});
    }
  } else if (!json.getAsNull()) {
    value.kind = GivenValue::Plain;
    value.text = text.str();
  }
  return value;
}

namespace {
/// A member that might mean something.
struct Unknown {
  RawMember member;
  std::string suggestion; ///< What is said of it.
  const Key *meant;       ///< The key of the family that it may be; or null.
  bool isOff;
};

/// Sorts the members of the outermost object by what is to be done with them.
class ConfigReader {
public:
  ConfigReader(const json::Object &object, ArrayRef<Entry> given,
               std::vector<Entry> &entries, Description &description,
               Diagnostics &diagnostics)
      : object(object), entries(entries), given(given),
        list(entries, diagnostics, decides(given, kRopeScaling)),
        description(description), diagnostics(diagnostics) {}

  /// The family that the file says it is for; adds the entry that says so.
  const Family *readFamily(ArrayRef<RawMember> members);
  /// `start` is where the file begins.
  void readMembers(ArrayRef<RawMember> members, const Family &family,
                   Origin start);

private:
  void readMember(const RawMember &member, const Family &family);
  bool isStorage(const RawMember &member, const json::Value &value);
  /// What null says in place of a value of the key, if it says anything.
  std::optional<StringRef> getNullMeaning(const Key &key,
                                          const Family &family) const;
  bool hasSizes(const Family &family) const;
  /// Whether the key has, from its place of highest rank, a value that switches
  /// something on.
  bool isOn(const Key &key, const Family &family) const;
  /// Whether the file says the same by the name of the key that is meant, or
  /// that has this number anyway.
  bool isSaidTwice(const Unknown &other, const Family &family) const;
  /// Refuses what one of two maps of rotary positions has, and the classes do
  /// not read there.
  void refuseHidden(ArrayRef<RawMember> members, const Family &family);
  void refuseWithoutSizes(ArrayRef<RawMember> members, const Family &family,
                          Origin start);

  const json::Object &object;
  std::vector<Entry> &entries;
  ArrayRef<Entry> given;
  EntryList list;
  StringSet<> others; ///< Names that are no keys here.
  std::vector<Unknown> unknown;
  Description &description;
  Diagnostics &diagnostics;
};
} // namespace

static Origin getOrigin(const RawMember &member) {
  return {SMLoc::getFromPointer(member.key.data() - 1)};
}

const Family *ConfigReader::readFamily(ArrayRef<RawMember> members) {
  const Family *family = nullptr;
  // Files from before `model_type` name the class alone.
  const json::Value *type = object.get("model_type");
  bool hasType = type && !type->getAsNull();
  for (const RawMember &member : members) {
    const json::Value *json = object.get(member.key);
    if (!json || member.key != (hasType ? "model_type" : "architectures"))
      continue;
    GivenValue value = toValue(*json, member.value);
    const json::Array *classes = json->getAsArray();
    if (classes && !hasType) {
      StringRef name =
          classes->empty() ? "" : classes->front().getAsString().value_or("");
      family = parseFamily(name);
      value.kind = name.empty() ? GivenValue::Null : GivenValue::Quoted;
      value.text = family ? family->name.str() : name.str();
    } else {
      family = parseFamily(value.text);
    }
    list.add(*findKey("model_type", "model"),
             {"model_type", getOrigin(member), std::move(value)});
  }
  return family;
}

/// Whether without a value of the key there is none of what it is about, so
/// that 0 or false can mean nothing else.
static bool maySayNothing(const Key &key, const Family &family) {
  const KeyUse *use = family.findUse(key.name);
  return use && (use->defaultValue == "unset" || use->defaultValue == "none");
}

/// Whether its values are true and false: 0 is the latter.
static bool isTruth(const Key &key) {
  Description none;
  Field field = key.field(none);
  return std::holds_alternative<bool *>(field) ||
         std::holds_alternative<OnlyValue>(field);
}

/// Whether a key that nothing is known of says nothing, whatever it is about:
/// what is off, or a list of no more than that.
static bool saysNothing(const json::Value &value) {
  const json::Array *array = value.getAsArray();
  return array ? llvm::all_of(*array, saysNothing) : isOff(value);
}

/// Ways to store weights in few bits, of which a training with weights of 32
/// knows nothing. Those are not among them whose layers round what they read.
static constexpr StringLiteral kStorage[] = {
    "aqlm",  "auto-round", "awq",      "bitsandbytes", "compressed-tensors",
    "eetq",  "fbgemm_fp8", "fp8",      "fp_quant",     "gptq",
    "higgs", "hqq",        "modelopt", "mxfp4",        "quanto",
    "spqr",  "torchao",    "vptq"};

/// Whether the key says no more than how the published weights are stored.
bool ConfigReader::isStorage(const RawMember &member,
                             const json::Value &value) {
  if (member.key != "quantization_config" && member.key != "compression_config")
    return false;
  const json::Object *map = value.getAsObject();
  StringRef method = map ? map->getString("quant_method").value_or("") : "";
  if (!is_contained(kStorage, method))
    return false;
  description.ignoredKeys.push_back(member.key.str());
  diagnostics.warning(getOrigin(member),
                      "'" + member.key +
                          "' says that the published weights "
                          "are stored as " +
                          method +
                          ", and changes no plan: the "
                          "model here has weights of 32 bits, and computes as "
                          "'precision' says; " +
                          (method == "fp8"
                               ? "programs read the published ones with their "
                                 "scales (--init-from)"
                               : "to begin with the published ones, convert "
                                 "them to bf16 or f32"));
  return true;
}

std::optional<StringRef>
ConfigReader::getNullMeaning(const Key &key, const Family &family) const {
  const KeyUse *use = family.findUse(key.name);
  // In the map of rotary positions it has a place of higher rank.
  auto isInside = [&](StringRef map) {
    const json::Object *members = object.getObject(map);
    return members && members->get(key.name);
  };
  if (!use || use->null.empty() || isInside("rope_parameters") ||
      isInside(kRopeScaling))
    return std::nullopt;
  return StringRef(use->null);
}

void ConfigReader::readMember(const RawMember &member, const Family &family) {
  Origin origin = getOrigin(member);
  const json::Value *json = object.get(member.key);
  if (!json || member.key == "model_type" || member.key == "architectures")
    return;
  const Key *key = findHubKey(member.key, family);
  // Phi-3's place for it, where transformers reads it, too.
  if (!key && member.key == "original_max_position_embeddings")
    key = findKey(member.key, kRopeScaling, &family);
  if (key && key->name != "hf_config" && !isShorthand(*key)) {
    GivenValue value = toValue(*json, member.value);
    if (isOff(*json) && maySayNothing(*key, family))
      value.kind = GivenValue::Null;
    if (isOff(*json) && isTruth(*key) && value.kind != GivenValue::Null)
      value = {GivenValue::Plain, "false", {}, value.origin};
    if (std::optional<StringRef> null = getNullMeaning(*key, family);
        null && json->getAsNull())
      value = {GivenValue::Plain, null->str(), {}, value.origin};
    return list.add(*key, {member.key.str(), origin, std::move(value)});
  }
  if (!others.insert(member.key).second)
    return diagnostics.error(origin, "'" + member.key + "' is given twice");
  if (isStorage(member, *json))
    return;
  if (std::optional<std::string> refusal =
          findRefusal(member.key, *json, {family, object, given})) {
    if (refusal->empty())
      return description.ignoredKeys.push_back(member.key.str());
    return diagnostics.error(origin, *refusal);
  }
  if (is_contained(kTokenIds, member.key) && isTokenId(*json))
    return description.tokenIds.emplace_back(member.key, member.value), void();
  description.ignoredKeys.push_back(member.key.str());
  if (is_contained(family.ignored, member.key) || isMeaningless(member.key) ||
      json->getAsNull())
    return;
  Unknown other{member, suggestModelKey(member.key, family),
                findMeantKey(member.key, family), saysNothing(*json)};
  if (!other.isOff || other.meant)
    unknown.push_back(std::move(other));
}

/// Whether text of a description, or of the table of defaults, is off.
static bool isOffWord(StringRef text) {
  double number;
  return isNull(text) || is_contained({"false", "none", "unset"}, text) ||
         (!text.getAsDouble(number) && number == 0);
}

bool ConfigReader::isOn(const Key &key, const Family &family) const {
  for (ArrayRef<Entry> place : {given, ArrayRef(entries)})
    for (const Entry &entry : llvm::reverse(place))
      if (findCounterpart(*entry.key, &family) == &key &&
          entry.value.kind != GivenValue::Null)
        return entry.value.kind != GivenValue::Plain ||
               !isOffWord(entry.value.text);
  const KeyUse *use = family.findUse(key.name);
  return use &&
         !isOffWord(use->absent.empty() ? use->defaultValue : use->absent);
}

bool ConfigReader::isSaidTwice(const Unknown &other,
                               const Family &family) const {
  if (!other.meant)
    return false;
  const json::Value *json = object.get(other.member.key);
  HubModel model{family, object, given};
  if (std::optional<double> number = json->getAsNumber();
      number && model.getNumber(other.meant->field) == *number)
    return true;
  GivenValue value = toValue(*json, other.member.value);
  return any_of(entries, [&](const Entry &entry) {
    return findCounterpart(*entry.key, &family) == other.meant &&
           isSameValue(*other.meant, entry.value, value);
  });
}

/// Whether the key says how large a model is: what else has a size in a model
/// of the default width and depth is a part of the default model.
static bool isSize(const Key &key, const Family &family) {
  const Key *own = findCounterpart(key, &family);
  return own && (own == findKeyOf(&family, modelField<&Model::width>) ||
                 own == findKeyOf(&family, modelField<&Model::numLayers>));
}

bool ConfigReader::hasSizes(const Family &family) const {
  auto isOne = [&](const Entry &entry) {
    return isSize(*entry.key, family) && entry.value.kind != GivenValue::Null;
  };
  return any_of(entries, isOne) || any_of(given, isOne);
}

/// Columns inside the MLP, as Meta's `params.json` says them: two thirds of
/// four times the width, by a factor, rounded up to a multiple.
static std::optional<int64_t> getInnerWidth(const json::Object &params) {
  std::optional<int64_t> width = params.getInteger("dim");
  int64_t multiple = params.getInteger("multiple_of").value_or(0);
  double factor = params.getNumber("ffn_dim_multiplier").value_or(1);
  constexpr int64_t most = 1 << 24;
  if (!width || *width < 1 || *width > most || multiple < 1 ||
      multiple > most || !(factor > 0 && factor < most))
    return std::nullopt;
  return alignTo(int64_t(factor * (8 * *width / 3)), multiple);
}

/// Without a size of its own, the model would be the default one.
void ConfigReader::refuseWithoutSizes(ArrayRef<RawMember> members,
                                      const Family &family, Origin start) {
  std::string type = family.name.str(), foreign, instead;
  for (const auto &[member, suggestion, meant, isOff] : unknown)
    if (!suggestion.empty())
      foreign += (foreign.empty() ? "'" : ", '") + member.key.str() + "'";
  if (foreign.empty()) {
    std::string names;
    for (const Key &key : allKeys())
      if (key.isOf(&family) && isSize(key, family))
        names += (names.empty() ? "'" : ", '") + key.name.str() + "'";
    return diagnostics.error(
        start, "needs one of " + names +
                   " at least: this would be the default " + type +
                   "; give them here or in the "
                   "section 'model'");
  }
  auto write = [&](StringRef name, StringRef value) {
    instead += (", " + name + ": " + value).str();
  };
  // Of a Mixtral, those of experts are in a map.
  SmallVector<RawMember> all(members);
  for (const RawMember &member : members)
    llvm::append_range(all, findMembers(member.value));
  for (const RawMember &member : all)
    if (const Key *key = findModelKey(member.key, family))
      if (key->name != "model_type" && !member.value.starts_with("-"))
        write(key->name, member.value);
  if (std::optional<int64_t> inner = getInnerWidth(object))
    write("intermediate_size", std::to_string(*inner));
  diagnostics.error(getOrigin(unknown.front().member),
                    foreign +
                        " are another program's names, and no size of the "
                        "model has Hugging Face's; write in the section "
                        "'model', in place of 'hf_config': model_type: " +
                        type + instead);
  entries.clear(); // Nothing else about this file is worth saying.
}

/// Of two maps, `rope_scaling` replaces the other whole.
void ConfigReader::refuseHidden(ArrayRef<RawMember> members,
                                const Family &family) {
  const json::Object *seen = object.getObject(kRopeScaling);
  if (!seen || seen->empty() || decides(given, kRopeScaling) ||
      diagnostics.hasFailed())
    return;
  auto isSaid = [&](StringRef name) {
    return seen->get(name) || object.get(name) ||
           any_of(given,
                  [&](const Entry &entry) { return entry.key->name == name; });
  };
  for (const RawMember &map : members)
    for (const RawMember &member : findMembers(map.value)) {
      const KeyUse *use = family.findUse(member.key);
      double fallback, hidden;
      if (map.key != "rope_parameters" || isSaid(member.key) || !use ||
          (!member.value.getAsDouble(hidden) &&
           !StringRef(use->defaultValue).getAsDouble(fallback) &&
           hidden == fallback))
        continue;
      diagnostics.error(getOrigin(member),
                        "'" + member.key +
                            "' in 'rope_parameters' is not in 'rope_scaling', "
                            "which replaces that map in transformers: the "
                            "model there has " +
                            use->defaultValue + "; write it beside the maps");
    }
}

void ConfigReader::readMembers(ArrayRef<RawMember> members,
                               const Family &family, Origin start) {
  list.setFamily(family);
  for (const RawMember &member : members)
    readMember(member, family);
  refuseHidden(members, family);
  if (!hasSizes(family) && !diagnostics.hasFailed())
    return refuseWithoutSizes(members, family, start);
  for (const Unknown &other : unknown) {
    StringRef name = other.member.key;
    if ((other.isOff && !isOn(*other.meant, family)) ||
        isSaidTwice(other, family))
      continue;
    if (other.suggestion.empty())
      diagnostics.warnTogether(getOrigin(other.member),
                               ("'" + name + "'").str(),
                               "unknown key {}, which is passed over",
                               "unknown keys {}, which are passed over");
    else
      diagnostics.warning(getOrigin(other.member),
                          "unknown key '" + name + "'" + other.suggestion);
  }
}

/// The family of a file that does not say what it is for; null if none knows
/// it.
static const Family *recognize(const json::Object &object) {
  for (const Family *family : allFamilies())
    if (family->recognizes && family->recognizes(object))
      return family;
  return nullptr;
}

/// The member whose value is the config.json of a model, as models that also
/// read pictures have it, and files of trainers.
static const RawMember *findInner(ArrayRef<RawMember> members,
                                  const json::Object &object) {
  for (const RawMember &member : members)
    if (const json::Object *inner = object.getObject(member.key))
      if (inner->get("hidden_size") || inner->get("n_embd"))
        return &member;
  return nullptr;
}

/// Refuses a file that has no model of its own, but one in a member.
static bool refuseInner(ArrayRef<RawMember> members, const json::Object &object,
                        Diagnostics &diagnostics) {
  const RawMember *inner = findInner(members, object);
  if (!inner || object.get("hidden_size") || object.get("n_embd"))
    return false;
  diagnostics.error(getOrigin(*inner),
                    "the sizes of the model are inside '" + inner->key +
                        "'; write what is in it to a file of its own, and name "
                        "that");
  return true;
}

/// Says that `given` has another family than the file, which is of `own`.
static void warnOfOtherFamily(ArrayRef<Entry> given, const Family &own,
                              Diagnostics &diagnostics) {
  for (const Entry &entry : llvm::reverse(given))
    if (entry.key->name == "model_type" && entry.value.kind != GivenValue::Null)
      return diagnostics.warning(
          entry.origin, "the file of 'hf_config' is of " + own.name +
                            ", but 'model_type' says " +
                            describeBare(entry.value) +
                            ": the model is another one than the file's, and "
                            "the file's weights are not for it");
}

/// Says which row of the embedding the class does not train, and this does.
static void notePadding(const json::Object &object, ArrayRef<Entry> given,
                        ArrayRef<RawMember> members, const Family &family,
                        Origin start, Diagnostics &diagnostics) {
  constexpr StringLiteral name = "pad_token_id";
  const json::Value *value = object.get(name);
  std::optional<int64_t> id;
  if (value)
    id = value->getAsInteger();
  else if (family.padToken >= 0)
    id = family.padToken;
  if (!id || !family.padsEmbedding)
    return;
  double rows =
      HubModel{family, object, given}.getNumber(modelField<&Model::vocabSize>);
  // Negative ones count from the end.
  double row = double(*id) + (*id < 0 ? rows : 0);
  if (!(row >= 0 && row < rows))
    return;
  for (const RawMember &member : members)
    if (member.key == name)
      start = getOrigin(member);
  diagnostics.note(
      start,
      formatv("'pad_token_id' is {0}{1}: row {2} of the embedding has no "
              "gradient from its inputs in Hugging Face's class, but is "
              "trained as any other here; that is a difference where "
              "texts have this token",
              *id, value ? "" : " in files without it", int64_t(row)));
}

/// Positions that have no length before their stretching are stretched from
/// that of the longest text of the file; null would be a length.
static void addOriginal(const json::Object &object, ArrayRef<Entry> given,
                        const Family &family, Origin start,
                        std::vector<Entry> &entries) {
  const Key &key = *findKey("original_max_position_embeddings", kRopeScaling);
  bool isStretched = false, isThere = decides(given, kRopeScaling);
  for (const Entry &entry : entries) {
    isStretched |= entry.key->name == "rope_type" &&
                   is_contained({"llama3", "yarn"}, entry.value.text);
    isThere |= entry.key == &key;
  }
  for (StringRef map : {StringRef(kRopeScaling), StringRef("rope_parameters")})
    if (const json::Object *members = object.getObject(map))
      isThere |= members->get(key.name) != nullptr;
  double longest =
      HubModel{family, object, {}}.getNumber(modelField<&Model::numPositions>);
  if (isStretched && !isThere && !std::isnan(longest))
    entries.push_back(
        {&key,
         {GivenValue::Plain, formatv("{0}", int64_t(longest)), {}, start},
         key.name.str(),
         start});
}

void reprise::frontend::readHuggingFace(MemoryBufferRef buffer,
                                        ArrayRef<Entry> given,
                                        std::vector<Entry> &entries,
                                        Description &description,
                                        Diagnostics &diagnostics) {
  StringRef text = buffer.getBuffer();
  text.consume_front("\xEF\xBB\xBF"); // A byte order mark.
  Expected<json::Value> root = json::parse(text);
  if (!root)
    return reportJSONError(root.takeError(), text, diagnostics);
  if (reportOddNumber(text, diagnostics))
    return;
  const json::Object *object = root->getAsObject();
  if (!object)
    return diagnostics.error({SMLoc::getFromPointer(text.ltrim().data())},
                             "needs a JSON object");

  SmallVector<RawMember> members = findMembers(text);
  Origin start{SMLoc::getFromPointer(text.data())};
  for (const RawMember &member : members)
    if (!object->get(member.key))
      diagnostics.error(getOrigin(member), "needs keys without escapes");
  if (refuseInner(members, *object, diagnostics))
    return;
  ConfigReader reader(*object, given, entries, description, diagnostics);
  const Family *own = reader.readFamily(members);
  const Family *family = findFamily(given);
  if (family && own && family->className != own->className)
    warnOfOtherFamily(given, *own, diagnostics);
  if (!family)
    family = own;
  if (!family && entries.empty())
    family = recognize(*object);
  // Of a family that is not known, that is all there is to say.
  if (!family)
    return;
  reader.readMembers(members, *family, start);
  addOriginal(*object, given, *family, start, entries);
  if (!diagnostics.hasFailed())
    notePadding(*object, given, members, *family, start, diagnostics);
  for (const KeyUse &use : family->keys)
    if (!use.absent.empty() && !object->get(use.name))
      entries.push_back({findKey(use.name, "model", family),
                         {GivenValue::Plain, use.absent.str(), {}, start},
                         use.name.str(),
                         {}});
}
