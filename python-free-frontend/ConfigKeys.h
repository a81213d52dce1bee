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

#include "python-free-frontend/Keys.h"

#include "llvm/Support/JSON.h"

namespace reprise::frontend {
/// Whether a value switches nothing on: null, false, 0, an empty text, list or
/// map. In a list a 0 says something: it may be the first layer.
bool isOff(const llvm::json::Value &value);

/// The model of a file, as far as values of refused keys depend on it.
struct HubModel {
  const Family &family;
  const llvm::json::Object &file;
  llvm::ArrayRef<Entry> given; ///< In places of higher rank.

  /// By the key for a member of Model, from the place of highest rank; NaN if
  /// that has no number, as where other keys make it.
  double getNumber(Field (*member)(Description &)) const;
};

/// What is wrong with a key that changes what the model computes: empty if its
/// value is neutral. Nothing if it is no such key.
std::optional<std::string> findRefusal(llvm::StringRef key,
                                       const llvm::json::Value &value,
                                       const HubModel &model);

/// Whether nothing that the key says, of a model of any family, has a meaning
/// for training.
bool isMeaningless(llvm::StringRef key);

} // namespace reprise::frontend

#endif // REPRISE_FRONTEND_CONFIGKEYS_H
