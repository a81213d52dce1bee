//===- YAMLErrors.cpp - What is wrong with text that is not YAML ----------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/YAMLErrors.h"
#include "reprise/Support/YAMLFault.h"

#include <utility>

using namespace llvm;
using namespace reprise::frontend;

YAMLErrors::YAMLErrors(StringRef text, Diagnostics &diagnostics)
    : text(text), diagnostics(diagnostics),
      handler(diagnostics.getSources().getDiagHandler()),
      context(diagnostics.getSources().getDiagContext()) {
  diagnostics.getSources().setDiagHandler(forward, this);
}

YAMLErrors::~YAMLErrors() {
  diagnostics.getSources().setDiagHandler(handler, context);
}

void YAMLErrors::forward(const SMDiagnostic &given, void *context) {
  auto *self = static_cast<YAMLErrors *>(context);
  SourceMgr &sources = self->diagnostics.getSources();
  // What is not the parser's is in the project's own words.
  bool isOwn = self->diagnostics.isPrinting();
  if (!isOwn && std::exchange(self->isSaid, true))
    return;
  sources.setDiagHandler(self->handler, self->context);
  if (isOwn) {
    sources.PrintMessage(errs(), given);
  } else {
    YAMLFault fault = explainYAMLFault(self->text, given.getLoc().getPointer(),
                                       given.getMessage());
    self->diagnostics.error({SMLoc::getFromPointer(fault.place)},
                            fault.message);
  }
  sources.setDiagHandler(forward, self);
}
