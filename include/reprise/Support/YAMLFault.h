//===- YAMLFault.h - What is wrong with text that is not YAML ---*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_SUPPORT_YAMLFAULT_H
#define REPRISE_SUPPORT_YAMLFAULT_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace llvm::yaml {
class Stream;
} // namespace llvm::yaml

namespace reprise {

/// A mistake in a text, in words of our own.
struct YAMLFault {
  const char *place; ///< in the text, or its end
  std::string message;
};

/// Says of `text`, at `place` of which LLVM's parser of YAML stopped with
/// `message`, what is wrong and where: a bracket or quote without its other
/// half comes first. A null place is the beginning.
YAMLFault explainYAMLFault(llvm::StringRef text, const char *place,
                           llvm::StringRef message);

/// Reads all of `stream` in place of its `validate`, so that its parser tells
/// mistakes. Where in the text a list or map begins that is a level too many
/// (RawJSON.h); null if none does. The parser recurses with levels, and goes no
/// deeper.
const char *findLevelTooMany(llvm::yaml::Stream &stream);

} // namespace reprise

#endif // REPRISE_SUPPORT_YAMLFAULT_H
