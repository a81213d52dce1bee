//===- Schedule.h - What changes from step to step --------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_TRAINER_SCHEDULE_H
#define REPRISE_RUNTIME_TRAINER_SCHEDULE_H

#include "reprise/ABI/Model.h"

namespace reprise::runtime {

/// The learning rate of a step, counted from 0. With w = warmupIters and
/// n = decayIters, it rises as lr * (step + 1) / w while step < w; then it
/// falls from lr at step w to minLearningRate at step n, along a line or half a
/// cosine, and stays there; or it stays lr (constant).
///
/// Source of the decay: Megatron-LM, optimizer_param_scheduler.py, get_lr.
double learningRate(const RepriseModel &model, int64_t step);

/// 1 - beta^(step + 1), step from 0.
double biasCorrection(double beta, int64_t step);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_TRAINER_SCHEDULE_H
