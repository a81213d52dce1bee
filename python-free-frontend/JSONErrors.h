//===- JSONErrors.h - What is wrong with JSON -------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_FRONTEND_JSONERRORS_H
#define REPRISE_FRONTEND_JSONERRORS_H

#include "python-free-frontend/Keys.h"

#include "llvm/Support/JSON.h"

namespace reprise::frontend {

/// Says what `llvm::json::parse` said of `text`, at the place of the mistake.
void reportJSONError(llvm::Error error, llvm::StringRef text,
                     Diagnostics &diagnostics);

/// Refuses what the parser takes for a number, and JSON does not; whether there
/// is one.
bool reportOddNumber(llvm::StringRef text, Diagnostics &diagnostics);

} // namespace reprise::frontend

#endif // REPRISE_FRONTEND_JSONERRORS_H
