//===- Entries.cpp - Keys as they were given --------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a name means depends on the family of the model, which may be said after
// it, in another file or by an option. So files are read first, with the first
// key of any family that has the name; families come afterwards.
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/Keys.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;
using namespace reprise::frontend;

//===----------------------------------------------------------------------===//
// One file
//===----------------------------------------------------------------------===//

/// `'factor' in 'rope_scaling'`.
static std::string describePlace(StringRef name, StringRef map) {
  std::string place = ("'" + name + "'").str();
  return map.empty() ? place : place + (" in '" + map + "'").str();
}

static bool isEmpty(const GivenValue &value) {
  return value.kind == GivenValue::Null ||
         (value.kind == GivenValue::Map && value.members.empty());
}

void EntryList::add(const Key &key, Member given, StringRef map) {
  bool isMap = key.name == kRopeScaling;
  // Published files have both spellings of the map, one of them empty.
  if (isMap && isEmpty(given.value))
    return;
  if (passesRotary && key.section == kRopeScaling)
    return;
  auto [place, isNew] = seen.try_emplace((key.section + "." + key.name).str(),
                                         Seen{given, map.str()});
  Seen &first = place->second;
  bool isSpelling = given.name != first.member.name || map != first.map;
  if (!isNew && !isSpelling)
    return diagnostics.error(given.origin,
                             "'" + given.name + "' is given twice");
  // They also say one thing by an old and a new name, or in two places.
  if (!isNew && isMap && given.value.kind == GivenValue::Map &&
      first.member.value.kind == GivenValue::Map)
    return compareMaps(key, given, first.member);
  if (!isNew && given.value.kind == GivenValue::Null)
    return;
  else if (!isNew && first.member.value.kind == GivenValue::Null)
    first = {given, map.str()};
  else if (!isNew) {
    if (!isSameValue(key, given.value, first.member.value))
      diagnostics.error(
          given.origin,
          describePlace(given.name, map) + " is " + describeBare(given.value) +
              ", but " + describePlace(first.member.name, first.map) +
              ", which means the same, is " + describeBare(first.member.value));
    return;
  }
  if (isMap && given.value.kind == GivenValue::Map)
    return addMap(key, given.name, given.value);
  entries.push_back({&key, std::move(given.value), std::move(given.name),
                     std::move(given.origin)});
}

/// What such a map says of a key, by any of its names; null if nothing.
static const GivenValue *findInMap(const Member &map, const Key &key) {
  for (const Member &member : map.value.members)
    if (findKey(member.name, key.section) == &key)
      return &member.value;
  return nullptr;
}

/// Keys with a place outside, as the base of the angles, may be in one of them
/// alone, and are compared by that place.
void EntryList::compareMaps(const Key &key, const Member &given,
                            const Member &first) {
  std::vector<std::string> differences;
  SmallPtrSet<const Key *, 8> compared;
  for (const Member *map : {&given, &first})
    for (const Member &member : map->value.members) {
      const Key *inner = findKey(member.name, key.name);
      if (!inner || !compared.insert(inner).second)
        continue;
      const GivenValue *value = findInMap(given, *inner);
      const GivenValue *other = findInMap(first, *inner);
      bool isNull =
          value && other &&
          (value->kind == GivenValue::Null || other->kind == GivenValue::Null);
      if (isNull || (value && other && isSameValue(*inner, *value, *other)))
        continue;
      differences.push_back(
          formatv("'{0}' ({1} and {2})", member.name,
                  describeBare(value ? *value : GivenValue()),
                  describeBare(other ? *other : GivenValue())));
    }
  if (passesRotary || differences.empty()) {
    GivenValue map = given.value;
    return addMap(key, given.name, map);
  }
  diagnostics.error(given.origin,
                    "'" + given.name + "' and '" + first.name + "' differ in " +
                        join(differences, ", ") +
                        ": transformers lets 'rope_scaling' replace "
                        "'rope_parameters' whole; take one of them out, and "
                        "write 'rope_theta' beside the other");
}

/// Whether a value that is given switches nothing on.
static bool isOff(const GivenValue &value) {
  double number;
  switch (value.kind) {
  case GivenValue::Null:
    return false;
  case GivenValue::Plain:
    return value.text == "false" ||
           (!StringRef(value.text).getAsDouble(number) && number == 0);
  case GivenValue::Quoted:
    return value.text.empty();
  case GivenValue::List:
    return llvm::all_of(value.items, isOff);
  case GivenValue::Map:
    return value.members.empty();
  }
  llvm_unreachable("all kinds are handled");
}

/// Whether no reader of published maps computes something else by it: a note
/// of where the map is from, or a factor of the first programs with `yarn`
/// that is 1.
static bool isUnused(const Member &member) {
  double number;
  if (is_contained({"attn_factor", "extrapolation_factor"}, member.name))
    return member.value.kind == GivenValue::Plain &&
           !StringRef(member.value.text).getAsDouble(number) && number == 1;
  return member.name == "finetuned" || StringRef(member.name).starts_with("_");
}

/// A key that other programs have in the map: an error, unless it has no
/// effect.
void EntryList::addUnknown(const Key &key, StringRef map,
                           const Member &member) {
  std::string suggestion = suggestKey(member.name, key.name);
  bool isNothing = suggestion.empty() && isOff(member.value);
  if (!passesRotary && !isNothing && !isUnused(member))
    diagnostics.error(member.origin, "unknown key '" + member.name + "' in '" +
                                         map.str() + "'" + suggestion);
}

void EntryList::addMap(const Key &key, StringRef name, GivenValue &map) {
  for (Member &member : map.members) {
    // The newer form of the map has these inside.
    bool isOutside =
        is_contained({"rope_theta", "partial_rotary_factor"}, member.name);
    const Key *inner = isOutside ? findKey(member.name, key.section, family)
                                 : findKey(member.name, key.name);
    if (inner)
      add(*inner, std::move(member), name);
    else if (!isOutside || !checkForeignKey(member.name, member.value,
                                            member.origin, family, diagnostics))
      addUnknown(key, name, member);
  }
}

bool reprise::frontend::decides(ArrayRef<Entry> entries, StringRef section) {
  return llvm::any_of(entries, [&](const Entry &entry) {
    StringRef name = entry.key->name;
    return entry.key->section == section &&
           ((name == "rope_type" && entry.value.kind != GivenValue::Null) ||
            is_contained({"recompute_granularity", "recompute_activations",
                          "recompute_plan"},
                         name));
  });
}

//===----------------------------------------------------------------------===//
// Shorthands
//===----------------------------------------------------------------------===//

namespace {
struct Shorthand {
  StringLiteral name;
  StringLiteral keys = ""; ///< `a|b`; empty: resolved behind all others.
  /// What they are if it is true, and if it is false; `=` is its own value.
  StringLiteral value = "", off = "";
};
} // namespace

static constexpr Shorthand kShorthands[] = {
    {"bf16", "precision", "bf16", "fp32"},
    {"untie_embeddings_and_output_weights", "tie_word_embeddings", "false",
     "true"},
    {"moe_router_pre_softmax", "norm_topk_prob", "false", "true"},
    {"hidden_dropout", "resid_pdrop|embd_pdrop", "="},
    {"make_vocab_size_divisible_by"},
    {"group_query_attention"},
    {"moe_layer_freq"},
    {"moe_shared_expert_intermediate_size"},
    {"lr_warmup_fraction"},
    {"lr_warmup_samples"},
    {"lr_decay_samples"},
    {"train_samples"},
    {"start_weight_decay"},
    {"end_weight_decay"},
};

static const Shorthand *findShorthand(const Key &key) {
  const Shorthand *found = find_if(kShorthands, [&](const Shorthand &other) {
    return other.name == key.name;
  });
  return found == std::end(kShorthands) ? nullptr : found;
}

bool reprise::frontend::isShorthand(const Key &key) {
  return findShorthand(key);
}

/// What the shorthand of `entry` says of its key; null if it says nothing: that
/// it is off where nothing is said with that.
static GivenValue getMeaning(const Shorthand &shorthand, const Entry &entry) {
  if (shorthand.value == "=")
    return entry.value;
  StringRef text = entry.value.text;
  bool isOn = text.equals_insensitive("true");
  StringRef meant;
  if (isOn)
    meant = shorthand.value;
  else if (text.equals_insensitive("false"))
    meant = shorthand.off;
  return {meant.empty() ? GivenValue::Null : GivenValue::Plain,
          meant.str(),
          {},
          entry.origin};
}

/// Refuses another value of the same rank in `entries`.
static void checkMeaning(ArrayRef<Entry> entries, const Entry &entry,
                         const Key *key, const GivenValue &value,
                         Diagnostics &diagnostics) {
  for (const Entry &other : entries)
    if (other.key == key && other.value.kind != GivenValue::Null &&
        other.origin.isOption() == entry.origin.isOption() &&
        !isSameValue(*key, other.value, value))
      diagnostics.error(*entry.key, entry.origin,
                        "is " + entry.value.text + ", but '" + other.name +
                            "' is " + describeBare(other.value));
}

void reprise::frontend::resolveShorthands(std::vector<Entry> &entries,
                                          Diagnostics &diagnostics) {
  std::vector<Entry> resolved;
  for (const Entry &entry : entries) {
    const Shorthand *shorthand = findShorthand(*entry.key);
    GivenValue value;
    if (shorthand && !shorthand->keys.empty() &&
        entry.value.kind != GivenValue::Null)
      value = getMeaning(*shorthand, entry);
    if (value.kind == GivenValue::Null) {
      resolved.push_back(entry);
      continue;
    }
    for (StringRef name : splitWords(shorthand->keys)) {
      const Key *key = findKey(name);
      checkMeaning(entries, entry, key, value, diagnostics);
      resolved.push_back({key, value, entry.name, entry.origin});
    }
  }
  entries = std::move(resolved);
}

//===----------------------------------------------------------------------===//
// Families
//===----------------------------------------------------------------------===//

const Family *reprise::frontend::findFamily(ArrayRef<Entry> entries) {
  const Family *family = nullptr;
  for (const Entry &entry : entries)
    if (entry.key->name == "model_type" && entry.value.kind != GivenValue::Null)
      family = parseFamily(entry.value.text);
  return family;
}

void reprise::frontend::resolveFamily(std::vector<Entry> &entries,
                                      const Family &family,
                                      Diagnostics &diagnostics) {
  // What other families have as a key may be one that programs have for all.
  llvm::erase_if(entries, [&](const Entry &entry) {
    if (findKey(entry.name, entry.key->section, &family))
      return false;
    if (entry.value.kind == GivenValue::Null)
      return true;
    return checkForeignKey(entry.name, entry.value, entry.origin, &family,
                           diagnostics);
  });
  for (Entry &entry : entries) {
    const Key &key = *entry.key;
    if (const Key *own = findKey(entry.name, key.section, &family)) {
      entry.key = own;
      continue;
    }
    std::string message = "is a key of " + describeFamilies(key.families) +
                          ", not of " + family.name.str();
    if (const Key *counterpart = findCounterpart(key, &family))
      message += ", where it is '" + counterpart->name.str() + "'";
    diagnostics.error(key, entry.origin, message);
  }
}
