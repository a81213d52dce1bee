//===- Pipeline.h - What the stages of a pipeline need ----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_REPORT_PIPELINE_H
#define REPRISE_REPORT_PIPELINE_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace reprise::report {
/// Bytes of one device of a pipeline.
struct StageNeed {
  int64_t stateBytes = 0; ///< what outlives a step
  /// What lives within it: of all micro-batches in flight what is kept, of one
  /// of them what its step takes, offsets included.
  int64_t activationBytes = 0;

  int64_t getBytes() const { return stateBytes + activationBytes; }
};

/// What a step needs on the stages of a pipeline, each a device; a program is
/// for one device that has all layers.
struct PipelineNeed {
  std::vector<StageNeed> stages; ///< none if it is not known
  std::string fault;             ///< why it is not known
  int64_t budgetBytes = 0;       ///< of each stage; 0: none was asked for
  bool isOfActivations = false;  ///< what a budget counts

  /// What the budget is compared with.
  int64_t getBytes(const StageNeed &stage) const {
    return isOfActivations ? stage.activationBytes : stage.getBytes();
  }

  /// The stage of which that is most, the first of several; there are stages.
  size_t getLargest() const;
};
} // namespace reprise::report

#endif // REPRISE_REPORT_PIPELINE_H
