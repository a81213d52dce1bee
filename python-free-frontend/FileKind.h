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

/// What files are read as.
enum class FileRole { Description, Config, IR, Plan, CostTable };

/// Of a file that is not of the kind that it is read as, but of another known
/// one: what it is, and what to do with it instead. `text` is the file, or how
/// it begins.
std::optional<std::string> describeOther(llvm::StringRef path,
                                         llvm::StringRef text, FileRole role);

/// The same for a folder.
std::string describeFolder(llvm::StringRef path, FileRole role);

} // namespace reprise::frontend

#endif // REPRISE_FRONTEND_FILEKIND_H
