//===- OtherFiles.h - Files that other commands take ------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TOOLS_MEMPLAN_OTHERFILES_H
#define REPRISE_TOOLS_MEMPLAN_OTHERFILES_H

#include <string>
#include <string_view>

namespace reprise::tools {

/// What a file is asked for as.
enum class FileUse { Rows, Plan, Step };

/// That a file, whose text begins with `begin`, is of another kind than it is
/// asked for as, and which command takes it; empty if it is not, or of no kind
/// that is known.
std::string explainOtherFile(const std::string &name, std::string_view begin,
                             FileUse use);

} // namespace reprise::tools

#endif // REPRISE_TOOLS_MEMPLAN_OTHERFILES_H
