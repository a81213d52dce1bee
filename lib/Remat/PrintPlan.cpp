//===- PrintPlan.cpp - Prints the effective plan --------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Remat/Passes.h"
#include "reprise/Remat/Summary.h"

namespace reprise::remat {
#define GEN_PASS_DEF_PRINTPLAN
#include "reprise/Remat/Passes.h.inc"
} // namespace reprise::remat

using namespace mlir;
using namespace reprise;

namespace {
struct PrintPlan : public remat::impl::PrintPlanBase<PrintPlan> {
  void runOnOperation() override {
    FailureOr<remat::Summary> summary = remat::summarize(getOperation());
    if (failed(summary))
      return signalPassFailure();
    summary->print(llvm::outs());
    markAllAnalysesPreserved();
  }
};
} // namespace
