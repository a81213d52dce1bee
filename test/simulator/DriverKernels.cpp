//===- DriverKernels.cpp - Modules, functions, launches ---------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Driver.h"
#include "Simulator.h"
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

using namespace reprise::runtime;
using namespace reprise::simulator;

// As handles of the driver, but for their contents.
namespace reprise::runtime {
struct CudaModuleObject {
  int unused;
};
struct CudaFunctionObject {
  std::string name;
  unsigned maxSharedBytes = 48 << 10; ///< until somebody asks for more
};
} // namespace reprise::runtime

/// The driver has codes; what they are about is said here.
static CudaResult refuse(CudaResult code, const std::string &text) {
  std::fprintf(stderr, "simulator: %s\n", text.c_str());
  return code;
}

extern "C" {

CudaResult cuModuleLoadDataEx(CudaModule *module, const void *image, unsigned,
                              int *, void **) {
  if (!image)
    return kInvalidValue;
  const char *path = std::getenv("REPRISE_SIMULATOR_KERNELS");
  if (!path)
    return refuse(kNotFound, "REPRISE_SIMULATOR_KERNELS names no kernels");
  if (const char *error = simulatorLoad(path))
    return refuse(kNotFound, error);
  *module = new CudaModuleObject();
  return 0;
}

CudaResult cuModuleUnload(CudaModule module) {
  delete module;
  return 0;
}

CudaResult cuModuleGetFunction(CudaFunction *function, CudaModule,
                               const char *name) {
  if (!simulatorHas(name))
    return refuse(kNotFound, std::string("there is no kernel '") + name + "'");
  *function = new CudaFunctionObject{name}; // lives as long as the program
  return 0;
}

CudaResult cuFuncSetAttribute(CudaFunction function, int attribute, int value) {
  if (attribute != kCudaMaxDynamicSharedBytes || value < 0)
    return kInvalidValue;
  function->maxSharedBytes = value;
  return 0;
}

CudaResult cuLaunchKernel(CudaFunction function, unsigned gridX, unsigned gridY,
                          unsigned gridZ, unsigned blockX, unsigned blockY,
                          unsigned blockZ, unsigned sharedBytes,
                          CudaStream stream, void **parameters, void **extra) {
  if (!function)
    return kInvalidHandle;
  if (parameters || !extra)
    return refuse(kInvalidValue, "parameters need to come as a buffer");
  const char *buffer = nullptr;
  size_t bytes = 0;
  for (; *extra != kCudaLaunchEnd; extra += 2) {
    if (*extra == kCudaLaunchBuffer)
      buffer = static_cast<const char *>(extra[1]);
    else if (*extra == kCudaLaunchBufferBytes)
      bytes = *static_cast<const size_t *>(extra[1]);
    else
      return kInvalidValue;
  }
  if (!buffer)
    return kInvalidValue;
  if (sharedBytes > function->maxSharedBytes)
    return refuse(kInvalidValue, "kernel '" + function->name + "' asks for " +
                                     std::to_string(sharedBytes) +
                                     " bytes of shared memory, but may have " +
                                     std::to_string(function->maxSharedBytes));
  // The driver copies the parameters when it is called.
  std::vector<char> params(buffer, buffer + bytes);
  return submit(stream, [=]() -> CudaResult {
    const uint32_t grid[3] = {gridX, gridY, gridZ};
    const uint32_t block[3] = {blockX, blockY, blockZ};
    const char *error =
        simulatorLaunch(function->name.c_str(), grid, block, sharedBytes,
                        params.data(), params.size());
    return error ? refuse(kLaunchFailed, error) : 0;
  });
}

} // extern "C"
