//===- RawJSON.h - Where the members of an object are -----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// llvm::json keeps no positions; this finds those of an object's members.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_SUPPORT_RAWJSON_H
#define REPRISE_SUPPORT_RAWJSON_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

namespace reprise {

/// A member of an object, as it is in the text.
struct RawMember {
  llvm::StringRef key; ///< without quotes
  llvm::StringRef value;
};

/// The members of the object that `text` is, or begins with if it is cut off.
/// What no JSON is ends them.
llvm::SmallVector<RawMember> findMembers(llvm::StringRef text);

/// How many lists and objects may be in each other in what users write.
constexpr int kMostLevels = 32;

/// The bracket in `text` that begins a level too many; null if none does.
/// llvm::json::parse has no limit, and its stack has one.
const char *findLevelTooMany(llvm::StringRef text);

/// What llvm::json::parse takes for a number, and JSON does not.
struct OddNumber {
  llvm::StringRef text; ///< Empty if there is none.
  llvm::StringRef why;  ///< What JSON has in its place.
};

/// The first of them in `text`, which the parser has taken.
OddNumber findOddNumber(llvm::StringRef text);

} // namespace reprise

#endif // REPRISE_SUPPORT_RAWJSON_H
