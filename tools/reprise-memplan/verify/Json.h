//===- Json.h - A strict reader of JSON -------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_MEMPLAN_JSON_H
#define REPRISE_MEMPLAN_JSON_H

#include "Verify.h"

#include <vector>

namespace reprise::verify {

/// A value and where it begins in the text.
struct Json {
  enum class Kind { Null, Bool, Number, String, Array, Object };

  Kind kind = Kind::Null;
  size_t at = 0;
  std::string text; ///< of a string its letters, of a number its digits
  bool isTrue = false;
  std::vector<std::string> keys; ///< of an object, one an element
  std::vector<Json> elements;

  /// The element of `key`; null if there is none.
  const Json *find(std::string_view key) const;
};

/// "a number", "an object"
const char *getName(Json::Kind kind);

/// Reads RFC 8259 and nothing else: no comments, no commas too many, no key
/// twice, nothing behind the value, at most 32 levels deep.
std::optional<Fault> readJson(std::string_view text, Json &value);

} // namespace reprise::verify

#endif // REPRISE_MEMPLAN_JSON_H
