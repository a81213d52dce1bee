//===- ForeignKeys.cpp - Keys of Megatron and NeMo --------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What their sections have and a description does not. Copied as it is, a
// section has many of them, null or with a value that changes nothing.
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/ForeignKeys.h"
#include "python-free-frontend/Keys.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace reprise::frontend;

static const ForeignKey *findForeignKey(StringRef name) {
  const ForeignKey *key = find_if(allForeignKeys(), [&](const ForeignKey &key) {
    return isNamed(key.names, name);
  });
  return key == allForeignKeys().end() ? nullptr : key;
}

StringRef reprise::frontend::explainForeignKey(StringRef name) {
  const ForeignKey *key = findKey(name) ? nullptr : findForeignKey(name);
  return key ? StringRef(key->reason) : "";
}

/// As an option, one that is refused may be a switch if that is what it is
/// refused to be switched to.
static ForeignOption::Kind getKind(const ForeignKey &key) {
  switch (key.form) {
  case Form::ByNeutral:
    return key.neutral == "false" ? ForeignOption::MaybeText
                                  : ForeignOption::Text;
  case Form::Switch:
    return ForeignOption::Switch;
  case Form::Text:
    return ForeignOption::Text;
  case Form::List:
    return ForeignOption::List;
  }
  llvm_unreachable("all forms are handled");
}

bool reprise::frontend::dependsOnFamily(StringRef name) {
  const ForeignKey *key = findForeignKey(name);
  return key && key->own;
}

bool reprise::frontend::dependsOnSharing(StringRef name) {
  const ForeignKey *key = findForeignKey(name);
  return key && !key->sharing.empty();
}

std::vector<ForeignOption> reprise::frontend::listForeignOptions() {
  std::vector<ForeignOption> options;
  for (const ForeignKey &key : allForeignKeys())
    for (StringRef name : splitWords(key.names))
      if (!name.ends_with("*") && !findKey(name))
        options.push_back({name, getKind(key)});
  return options;
}

/// Whether the value is one of `neutral`, `a|b`, as a word or as a number.
static bool isNeutral(const GivenValue &value, StringRef neutral) {
  if (value.kind == GivenValue::Null)
    return true;
  auto isIt = [&](StringRef word) {
    double number, same;
    return StringRef(value.text).equals_insensitive(word) ||
           (!StringRef(value.text).getAsDouble(number) &&
            !word.getAsDouble(same) && number == same);
  };
  // In quotes a word is the same word, but no number.
  auto isWord = [&](StringRef word) {
    double number;
    return word.getAsDouble(number) && isIt(word);
  };
  if (value.kind == GivenValue::Quoted)
    return any_of(splitWords(neutral), isWord);
  return value.kind == GivenValue::Plain && any_of(splitWords(neutral), isIt);
}

bool reprise::frontend::checkForeignKey(StringRef name, const GivenValue &value,
                                        const Origin &origin,
                                        const Family *family,
                                        Diagnostics &diagnostics,
                                        bool sharesStates) {
  const ForeignKey *key = findForeignKey(name);
  if (!key)
    return false;
  if (isNeutral(value, key->own && family ? key->own(*family)
                                          : StringRef(key->neutral)) ||
      (sharesStates && isNeutral(value, key->sharing)))
    return true;
  std::string begin = origin.isOption() ? "option --" + origin.option + ": "
                                        : ("'" + name + "' ").str();
  if (key->others == Others::Refused)
    diagnostics.error(origin, begin + "is " + describeBare(value) + ", but " +
                                  key->reason);
  else
    diagnostics.noEffect(origin, name, ": " + key->reason);
  return true;
}
