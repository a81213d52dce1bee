//===- Module.h - A shared object of kernels --------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What `reprise-simulate` puts into a shared object beside the code:
// simulatorKernels, an array that ends with a null name.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TEST_SIMULATOR_MODULE_H
#define REPRISE_TEST_SIMULATOR_MODULE_H

#include <cstdint>

namespace reprise::simulator {

struct KernelEntry {
  const char *name;
  void (*run)(const void *params); ///< one thread
  uint64_t paramBytes;
  uint32_t block[3]; ///< needed size of a block; zeros for any
  uint32_t padding;
  /// Bytes of static shared memory, which begins at offset 0, and the offset at
  /// which the dynamic begins.
  uint64_t staticShared, dynamicShared;
};

} // namespace reprise::simulator

#endif // REPRISE_TEST_SIMULATOR_MODULE_H
