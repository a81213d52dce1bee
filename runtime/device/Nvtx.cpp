//===- Nvtx.cpp - Names of launches for a profiler ------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Nvtx.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>

using namespace reprise::runtime;

static constexpr char kVariable[] = "NVTX_INJECTION64_PATH";

namespace {
using Function = void (*)();

/// Of NVTX's functions in the module that has plain ranges; each entry says
/// where the profiler puts its own.
constexpr uint32_t kCallbacks = 1, kVersion = 3; // Tables that it asks for.
constexpr int kCoreModule = 1;
constexpr unsigned kRangePush = 9, kRangePop = 11, kNumCore = 16;

struct Callbacks {
  size_t structSize;
  int (*getTable)(int module, Function ***table, unsigned *size);
};

struct VersionInfo {
  size_t structSize;
  uint32_t version, reserved;
  void (*setInjectionVersion)(uint32_t version);
};
} // namespace

static Function functions[kNumCore];
static Function *places[kNumCore + 1];

static int getTable(int module, Function ***table, unsigned *size) {
  if (module != kCoreModule)
    return 0;
  for (unsigned i = 0; i < kNumCore; ++i)
    places[i] = &functions[i];
  *table = places;
  *size = kNumCore;
  return 1;
}

static const void *getExportTable(uint32_t id) {
  static constexpr Callbacks kCallbackTable = {sizeof(Callbacks), getTable};
  static constexpr VersionInfo kVersionTable = {sizeof(VersionInfo), 3, 0,
                                                [](uint32_t) {}};
  return id == kCallbacks ? static_cast<const void *>(&kCallbackTable)
         : id == kVersion ? static_cast<const void *>(&kVersionTable)
                          : nullptr;
}

bool Nvtx::open(Error &error) {
  const char *path = getenv(kVariable);
  if (!path || !*path)
    return error.set("--nvtx needs a profiler to run this program, such as "
                     "nsys: %s is not set",
                     kVariable);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return error.set("--nvtx cannot open the profiler's library: %s",
                     dlerror());
  auto initialize = reinterpret_cast<int (*)(const void *(*)(uint32_t))>(
      dlsym(library, "InitializeInjectionNvtx2"));
  if (!initialize || !initialize(getExportTable))
    return error.set("--nvtx needs a library with InitializeInjectionNvtx2 "
                     "that can start, but got '%s'",
                     path);
  rangePush = reinterpret_cast<int (*)(const char *)>(functions[kRangePush]);
  rangePop = reinterpret_cast<int (*)()>(functions[kRangePop]);
  return true;
}
