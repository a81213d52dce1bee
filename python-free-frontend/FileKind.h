//===- FileKind.h - What a file is that is no description -------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_FRONTEND_FILEKIND_H
#define REPRISE_FRONTEND_FILEKIND_H

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace reprise::frontend {

enum class Syntax { YAML, JSON };

/// Of a file that is neither a description (`YAML`) nor a `config.json`
/// (`JSON`), which it would be for, but is of another known kind: what it is,
/// and what to do with it instead. `text` is the file, or how it begins.
std::optional<std::string> describeOther(llvm::StringRef path,
                                         llvm::StringRef text, Syntax syntax);

/// The same for a folder.
std::string describeFolder(llvm::StringRef path, Syntax syntax);

} // namespace reprise::frontend

#endif // REPRISE_FRONTEND_FILEKIND_H
