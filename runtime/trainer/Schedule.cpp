//===- Schedule.cpp - What changes from step to step ----------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Schedule.h"

#include <cmath>

using namespace reprise::runtime;

double reprise::runtime::learningRate(const RepriseModel &model, int64_t step) {
  double highest = model.learningRate, lowest = model.minLearningRate;
  if (step < model.warmupIters)
    return highest * double(step + 1) / double(model.warmupIters);
  if (model.lrDecayStyle == REPRISE_LR_CONSTANT)
    return highest;
  if (step >= model.decayIters)
    return lowest;
  double passed = double(step - model.warmupIters) /
                  double(model.decayIters - model.warmupIters);
  double left = model.lrDecayStyle == REPRISE_LR_COSINE
                    ? 0.5 * (std::cos(M_PI * passed) + 1.0)
                    : 1.0 - passed;
  return lowest + left * (highest - lowest);
}

double reprise::runtime::biasCorrection(double beta, int64_t step) {
  return 1.0 - std::pow(beta, double(step + 1));
}
