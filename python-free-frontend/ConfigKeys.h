//===- ConfigKeys.h - Other keys of config.json -----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a published `config.json` has besides the keys of a family.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_FRONTEND_CONFIGKEYS_H
#define REPRISE_FRONTEND_CONFIGKEYS_H

#include "python-free-frontend/Description.h"

#include "llvm/Support/JSON.h"

namespace reprise::frontend {
/// Whether a value switches nothing on: null, false, 0, an empty text, list or
/// map, or a list of nothing else. The same of a key without a row among the
/// refused ones says nothing, whatever the key is about.
bool isOff(const llvm::json::Value &value);

/// Whether a key, with this value, changes what models of the family compute in
/// a way that is not supported; nothing if it is no such key.
std::optional<bool> isRefused(llvm::StringRef key,
                              const llvm::json::Value &value,
                              const Family &family);

/// Whether nothing that the key says, of a model of any family, has a meaning
/// for training.
bool isMeaningless(llvm::StringRef key);

} // namespace reprise::frontend

#endif // REPRISE_FRONTEND_CONFIGKEYS_H
