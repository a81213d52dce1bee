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

using namespace llvm;
using namespace reprise::frontend;

//===----------------------------------------------------------------------===//
// One file
//===----------------------------------------------------------------------===//

static bool isSameValue(const Value &lhs, const Value &rhs) {
  double left, right;
  if (!StringRef(lhs.text).getAsDouble(left) &&
      !StringRef(rhs.text).getAsDouble(right))
    return lhs.kind == rhs.kind && left == right;
  return lhs.kind == rhs.kind && lhs.text == rhs.text;
}

void EntryList::add(const Key &key, Member given, bool inMap) {
  bool isMap = key.name == kRopeScaling;
  // Published files have both spellings of the map, one of them empty.
  if (isMap &&
      (given.value.kind == Value::Null ||
       (given.value.kind == Value::Map && given.value.members.empty())))
    return;
  auto [place, isNew] = seen.try_emplace((key.section + "." + key.name).str(),
                                         Seen{given, inMap});
  if (!isNew) {
    const Seen &first = place->second;
    // They also say one thing in an old and in a new place or word.
    bool isSpelling =
        inMap != first.inMap || (inMap && given.name != first.member.name);
    if (!isSpelling || !isSameValue(given.value, first.member.value))
      diagnostics.error(given.origin,
                        describeRepetition(given.name, first.member.name));
    return;
  }
  if (isMap && given.value.kind == Value::Map)
    return addMap(key, given.value);
  entries.push_back({&key, std::move(given.value), std::move(given.name),
                     std::move(given.origin)});
}

void EntryList::addMap(const Key &key, Value &map) {
  for (Member &member : map.members) {
    // The newer form of the map has the base of the angles inside.
    const Key *inner = member.name == "rope_theta"
                           ? findKey(member.name, key.section)
                           : findKey(member.name, key.name);
    if (inner)
      add(*inner, std::move(member), /*inMap=*/true);
    else
      diagnostics.error(member.origin, "unknown key '" + member.name +
                                           "' in '" + key.name + "'" +
                                           suggestKey(member.name, key.name));
  }
}

//===----------------------------------------------------------------------===//
// Families
//===----------------------------------------------------------------------===//

std::optional<Family> reprise::frontend::findFamily(ArrayRef<Entry> entries) {
  std::optional<Family> family;
  for (const Entry &entry : entries)
    if (entry.key->name == "model_type" && entry.value.kind != Value::Null)
      family = parseFamily(entry.value.text);
  return family;
}

void reprise::frontend::resolveFamily(std::vector<Entry> &entries,
                                      Family family, Diagnostics &diagnostics) {
  for (Entry &entry : entries) {
    const Key &key = *entry.key;
    if (const Key *own = findKey(entry.name, key.section, family)) {
      entry.key = own;
      continue;
    }
    std::string message = "is a key of " + describeFamilies(key.families) +
                          ", not of " + describeFamilies(family);
    if (const Key *counterpart = findCounterpart(key, family))
      message += ", where it is '" + counterpart->name.str() + "'";
    diagnostics.error(key, entry.origin, message);
  }
}
