//===- YAMLErrors.h - What is wrong with text that is not YAML --*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_FRONTEND_YAMLERRORS_H
#define REPRISE_FRONTEND_YAMLERRORS_H

#include "python-free-frontend/Keys.h"

#include "llvm/Support/SourceMgr.h"

namespace reprise::frontend {

/// While it lives, what the parser of `text` says of a mistake is said once, in
/// other words, and at the place of the mistake.
class YAMLErrors {
public:
  YAMLErrors(llvm::StringRef text, Diagnostics &diagnostics);
  ~YAMLErrors();

private:
  static void forward(const llvm::SMDiagnostic &given, void *context);

  llvm::StringRef text;
  Diagnostics &diagnostics;
  llvm::SourceMgr::DiagHandlerTy handler;
  void *context;
  bool isSaid = false;
};

} // namespace reprise::frontend

#endif // REPRISE_FRONTEND_YAMLERRORS_H
