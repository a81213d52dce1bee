//===- DeviceKernels.cpp - The same for the stand-in of a GPU -------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A shared object as `reprise-simulate` makes them, of kernels that are written
// by hand. A launch has one thread, whose parameters are the addresses of its
// buffers.
//
//===----------------------------------------------------------------------===//

#include "DeviceKernels.h"

#include "test/simulator/Module.h"

using namespace reprise;
using namespace reprise::runtime::test;

template <int kernel>
static void run(const void *params) {
  kFewKernels[kernel].fn(static_cast<void *const *>(params));
}

template <int kernel>
static constexpr simulator::KernelEntry entry() {
  return {kFewKernels[kernel].name,
          run<kernel>,
          uint64_t(kFewKernels[kernel].numBuffers) * sizeof(void *),
          {1, 1, 1},
          0,
          0,
          0};
}

extern "C" {
extern const simulator::KernelEntry simulatorKernels[];
const simulator::KernelEntry simulatorKernels[] = {entry<kLook>(),
                                                   entry<kWeigh>(),
                                                   entry<kAddUp>(),
                                                   entry<kDescend>(),
                                                   entry<kEvaluate>(),
                                                   entry<kSample>(),
                                                   {}};
}
