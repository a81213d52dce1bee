//===- CudaLibraries.cpp - Opens CUDA's libraries -------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaLibraries.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <initializer_list>

using namespace reprise::runtime;

static constexpr char kPathVariable[] = "REPRISE_CUDA_PATH";

namespace {
/// A library, under the names that it may have; the first is the preferred one.
struct Library {
  const char *const *names;
  const char *what; ///< What it comes with.
  const char *user; ///< Who needs it.
};
} // namespace

static constexpr const char *kDriverNames[] = {"libcuda.so.1", nullptr};
static constexpr const char *kBlasNames[] = {"libcublasLt.so.13",
                                             "libcublasLt.so.12", nullptr};
static constexpr const char *kNcclNames[] = {"libnccl.so.2", nullptr};
static constexpr Library kDriverLibrary = {kDriverNames, "NVIDIA's driver",
                                           "CUDA"};
static constexpr Library kBlasLibrary = {
    kBlasNames, "the CUDA toolkit 12 or 13, or Python's nvidia-cublas", "CUDA"};
static constexpr Library kNcclLibrary = {
    kNcclNames, "NVIDIA's NCCL, or Python's nvidia-nccl-cu12 or -cu13",
    "a run of several GPUs"};

/// Opens `name` in the folder of `length` characters, or its lib64 or lib.
static void *openIn(const char *folder, size_t length, const char *name) {
  for (const char *below : {"", "/lib64", "/lib"}) {
    char path[4096];
    snprintf(path, sizeof(path), "%.*s%s/%s", int(length), folder, below, name);
    if (void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL))
      return library;
  }
  return nullptr;
}

/// The library's first name that can be opened, in the folders that the user
/// names before all others.
static void *openLibrary(const Library &library, Error &error) {
  const char *folders = getenv(kPathVariable);
  for (const char *folder = folders; folder && *folder;) {
    size_t length = strcspn(folder, ":");
    for (int i = 0; length && library.names[i]; ++i)
      if (void *opened = openIn(folder, length, library.names[i]))
        return opened;
    folder += length + (folder[length] == ':');
  }
  for (int i = 0; library.names[i]; ++i)
    if (void *opened = dlopen(library.names[i], RTLD_NOW | RTLD_LOCAL))
      return opened;
  const char *reason = dlerror(); // Of the last, under its oldest name.
  char names[128] = "";
  for (int i = 0; library.names[i]; ++i) {
    size_t length = strlen(names);
    snprintf(names + length, sizeof(names) - length, "%s%s", i ? " or " : "",
             library.names[i]);
  }
  error.set("%s needs %s, which comes with %s, but it cannot be opened: %s; "
            "%s%s%s",
            library.user, names, library.what, reason ? reason : "not found",
            kPathVariable,
            folders ? " is " : " can name the folder where it lies",
            folders ? folders : "");
  return nullptr;
}

namespace {
/// A function of a library, and where it goes.
struct Entry {
  const char *symbol;
  void **function;
};
} // namespace

/// Opens a library and finds its functions.
static bool fill(const Library &described, const Entry *entries, size_t count,
                 Error &error) {
  void *library = openLibrary(described, error);
  for (size_t i = 0; library && i < count; ++i) {
    *entries[i].function = dlsym(library, entries[i].symbol);
    if (!*entries[i].function)
      return error.set("%s needs %s with the function %s; the installed one is "
                       "too old",
                       described.user, described.names[0], entries[i].symbol);
  }
  return library != nullptr;
}

#define REPRISE_FIND(member, symbol, parameters)                               \
  {#symbol, reinterpret_cast<void **>(&table.member)},

bool CudaLibraries::open(Error &error) {
  auto openDriver = [&](CudaDriver &table) {
    const Entry entries[] = {REPRISE_CUDA_DRIVER(REPRISE_FIND)};
    return fill(kDriverLibrary, entries, sizeof(entries) / sizeof(Entry),
                error);
  };
  auto openBlas = [&](CublasLt &table) {
    const Entry entries[] = {
        REPRISE_CUBLASLT(REPRISE_FIND){
            "cublasLtGetVersion", reinterpret_cast<void **>(&table.version)},
        {"cublasLtGetStatusName",
         reinterpret_cast<void **>(&table.statusName)}};
    return fill(kBlasLibrary, entries, sizeof(entries) / sizeof(Entry), error);
  };
  return openDriver(driver) && openBlas(blas);
}

bool CudaLibraries::openNccl(Error &error) {
  NcclLibrary &table = nccl;
  const Entry entries[] = {
      REPRISE_NCCL(REPRISE_FIND){"ncclGetErrorString",
                                 reinterpret_cast<void **>(&table.errorText)},
      {"ncclGetLastError", reinterpret_cast<void **>(&table.lastError)}};
  return fill(kNcclLibrary, entries, sizeof(entries) / sizeof(Entry), error);
}
#undef REPRISE_FIND
