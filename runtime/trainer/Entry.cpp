//===- Entry.cpp - Where a training program begins ------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled for any x86-64, so that a processor that is too old gets a sentence
// and not an illegal instruction.
//
//===----------------------------------------------------------------------===//

#include "runtime/compute/Cpu.h"

#include <cstdio>

using namespace reprise::runtime;

int repriseMain(int argc, char **argv, const RepriseModel *const *models,
                int32_t numModels) {
  if (cpuLevel() < 3) {
    fprintf(stderr, "error: this program needs an x86-64-v3 processor (AVX2, "
                    "FMA, BMI2), but this one lacks some of that\n");
    return 1;
  }
  return trainingMain(argc, argv, models, numModels);
}
