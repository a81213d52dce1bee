//===- Ranks.h - What Megatron would have on a rank -------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_REPORT_RANKS_H
#define REPRISE_LIB_REPORT_RANKS_H

#include "reprise/Report/Plan.h"
#include "llvm/Support/JSON.h"

/// All but `countModel` give nothing, or null, without a reference.
namespace reprise::report {
/// The parameters of all layers, of which `shapes` has the experts.
ModelSize countModel(mlir::func::FuncOp step,
                     const std::map<int64_t, LayerShape> &shapes);

/// A table of the ranks, by pipeline stage.
void printRanks(llvm::raw_ostream &os, const Plan &plan);

/// The keys "parameters" and "active_parameters" of a model with experts, and
/// "ranks"; needs `plan.reference`.
void writeRanks(llvm::json::OStream &json, const Plan &plan);

/// What lib/Report/Page.html names.
llvm::json::Value describeRanks(const Plan &plan);
} // namespace reprise::report

#endif // REPRISE_LIB_REPORT_RANKS_H
