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

} // namespace reprise

#endif // REPRISE_SUPPORT_YAMLFAULT_H
