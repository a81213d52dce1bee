//===- KeyLookup.cpp - Finding keys by name and member ----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/Keys.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace llvm;
using namespace reprise::frontend;

SmallVector<StringRef> reprise::frontend::splitWords(StringRef words) {
  SmallVector<StringRef> result;
  words.split(result, '|', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  return result;
}

bool reprise::frontend::isNamed(StringRef names, StringRef name) {
  return any_of(splitWords(names), [&](StringRef pattern) {
    return pattern.consume_back("*") ? name.starts_with(pattern)
                                     : name == pattern;
  });
}

std::string Key::getOption(StringRef name) const {
  return section == kRopeScaling ? (kRopeScaling + "_" + name).str()
                                 : name.str();
}

SmallVector<StringRef> Key::getAliases() const {
  SmallVector<StringRef> all = splitWords(aliases);
  all.append(splitWords(megatron));
  return all;
}

bool Key::hasName(StringRef given) const {
  return given == name || is_contained(getAliases(), given);
}

/// The keys of each name or alias, or of these as options, in order. Made once:
/// every program start looks all names of Megatron's options up.
static const StringMap<SmallVector<const Key *, 2>> &
getKeysByName(bool asOption) {
  auto index = [](bool asOption) {
    StringMap<SmallVector<const Key *, 2>> keys;
    for (const Key &key : allKeys()) {
      SmallVector<StringRef> names = key.getAliases();
      names.push_back(key.name);
      for (StringRef name : names) {
        SmallVector<const Key *, 2> &same =
            keys[asOption ? key.getOption(name) : name.str()];
        if (!is_contained(same, &key))
          same.push_back(&key);
      }
    }
    return keys;
  };
  static const auto options = index(true), names = index(false);
  return asOption ? options : names;
}

const Key *reprise::frontend::findKey(StringRef name, StringRef section,
                                      const Family *family) {
  for (const Key *key : getKeysByName(section.empty()).lookup(name))
    if (key->isOf(family) && (section.empty() || key->section == section))
      return key;
  return nullptr;
}

const Key *reprise::frontend::findHubKey(StringRef name, const Family &family) {
  const Key *key = findKey(name, "model", &family);
  return key && is_contained(splitWords(key->megatron), name) ? nullptr : key;
}

//===----------------------------------------------------------------------===//
// Members
//===----------------------------------------------------------------------===//

/// Where a key puts its value, if that is a place.
static const void *getAddress(const Field &field) {
  return std::visit(
      [](auto member) -> const void * {
        if constexpr (std::is_pointer_v<decltype(member)>)
          return member;
        else
          return nullptr;
      },
      field);
}

const Key *reprise::frontend::findKeyOf(const Family *family,
                                        Field (*field)(Description &)) {
  Description none;
  const void *member = getAddress(field(none));
  for (const Key &key : allKeys())
    if (member && key.isOf(family) && getAddress(key.field(none)) == member)
      return &key;
  return nullptr;
}

const Key *reprise::frontend::findCounterpart(const Key &key,
                                              const Family *family) {
  return findKeyOf(family, key.field);
}
