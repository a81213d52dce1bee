//===- Families.cpp - The table of families ---------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/Family.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace reprise::frontend;

ArrayRef<const Family *> reprise::frontend::allFamilies() {
  static constexpr const Family *families[] = {
#define FAMILY(NAME) &k##NAME,
#include "python-free-frontend/Families.def"
  };
  return families;
}

const KeyUse *Family::findUse(StringRef key) const {
  const KeyUse *use =
      llvm::find_if(keys, [&](const KeyUse &use) { return use.name == key; });
  return use == keys.end() ? nullptr : use;
}

const Family *reprise::frontend::parseFamily(StringRef name) {
  for (const Family *family : allFamilies()) {
    StringRef rest = name;
    if (name == family->name ||
        (rest.consume_front(family->className) &&
         (rest.starts_with("For") || rest.starts_with("LMHead") ||
          rest.starts_with("DoubleHeads") || rest == "Model")))
      return family;
  }
  return nullptr;
}

std::string
reprise::frontend::describeFamilies(ArrayRef<const Family *> families) {
  auto names = llvm::map_to_vector(
      families, [](const Family *family) { return StringRef(family->name); });
  StringRef last = names.pop_back_val();
  return names.empty() ? last.str() : join(names, ", ") + " and " + last.str();
}

std::string reprise::frontend::getClassName(const Family &family) {
  return (family.className + family.headClass).str();
}
