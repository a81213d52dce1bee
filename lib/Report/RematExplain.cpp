//===- RematExplain.cpp - Prints why values are kept or replayed *- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Report/Passes.h"
#include "reprise/Report/Plan.h"
#include "llvm/Support/raw_ostream.h"

namespace reprise::report {
#define GEN_PASS_DEF_REMATEXPLAIN
#include "reprise/Report/Passes.h.inc"
} // namespace reprise::report

using namespace mlir;
using namespace reprise;

namespace {
struct RematExplain : public report::impl::RematExplainBase<RematExplain> {
  void runOnOperation() override {
    FailureOr<report::Plan> plan = report::readDecisions(getOperation());
    if (failed(plan))
      return signalPassFailure();
    plan->explain(llvm::outs());
    markAllAnalysesPreserved();
  }
};
} // namespace
