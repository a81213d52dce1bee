//===- Files.h - Files that are read and written ----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TOOLS_REPRISEC_FILES_H
#define REPRISE_TOOLS_REPRISEC_FILES_H

#include "Options.h"
#include "python-free-frontend/FileKind.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/LogicalResult.h"

namespace reprise::driver {
/// Writes a file, all or nothing, with a message: what was there before stays
/// until all of the new bytes are. The standard output for "-", nothing for an
/// empty path.
llvm::LogicalResult
writeFile(llvm::StringRef path,
          llvm::function_ref<void(llvm::raw_ostream &)> write);
llvm::LogicalResult writeFile(llvm::StringRef path, llvm::StringRef bytes);

/// Refuses to write one file for two options, or over what is read: the input,
/// a table of costs, or `planFile`, which may be empty.
llvm::LogicalResult checkFiles(const Options &options,
                               llvm::StringRef planFile);

/// Refuses the text of a file that is of another known kind than `role`; the
/// message has `begin` first.
llvm::LogicalResult checkKind(llvm::StringRef begin, llvm::StringRef path,
                              llvm::StringRef text, frontend::FileRole role);

/// Writes what the standard output still holds, or says why not.
llvm::LogicalResult flushOutput();
} // namespace reprise::driver

#endif // REPRISE_TOOLS_REPRISEC_FILES_H
