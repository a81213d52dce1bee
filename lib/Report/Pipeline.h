//===- Pipeline.h - What reports say of a pipeline --------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_REPORT_PIPELINE_H
#define REPRISE_LIB_REPORT_PIPELINE_H

#include "reprise/Report/Plan.h"
#include "llvm/Support/JSON.h"

/// Nothing, or null, of a plan for one device, but for `writeStages`.
namespace reprise::report {
/// Whether the plan is for several devices.
bool isPipeline(const Plan &plan);

/// The stage that needs most, and a table of all stages.
void printPipeline(llvm::raw_ostream &os, const Plan &plan);

/// The key "stages".
void writeStages(llvm::json::OStream &json, const Plan &plan);

/// What lib/Report/Page.html names: the stage that needs most.
llvm::json::Value describeLargestStage(const Plan &plan);

/// And rows of a table of stages, a row for each chunk.
llvm::json::Value describeStages(const Plan &plan);
} // namespace reprise::report

#endif // REPRISE_LIB_REPORT_PIPELINE_H
