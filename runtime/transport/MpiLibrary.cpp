//===- MpiLibrary.cpp - An MPI library, opened at run time ----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MpiLibrary.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

using namespace reprise::runtime;

namespace {
/// A name that a library may have, and the family that it has it in.
struct Name {
  const char *file;
  MpiFamily family;
};

/// What a version begins with, and the family of that library.
struct Maker {
  const char *begin, *name;
  MpiFamily family;
};
} // namespace

/// libmpi.so.12 is MPICH's own name, and that of libraries with its types.
static constexpr Name kNames[] = {{"libmpi.so.40", MpiFamily::OpenMpi},
                                  {"libmpich.so.12", MpiFamily::Mpich},
                                  {"libmpi.so.12", MpiFamily::Mpich}};
static constexpr Maker kMakers[] = {
    {"Open MPI", "Open MPI", MpiFamily::OpenMpi},
    {"MPICH", "MPICH", MpiFamily::Mpich},
    {"Intel(R) MPI", "Intel MPI", MpiFamily::Mpich},
    {"MVAPICH", "MVAPICH", MpiFamily::Mpich}};

/// MPICH's numbers, part of the interface that its libraries share.
static constexpr MpiWord kMpichWorld = 0x44000000, kMpichByte = 0x4c00010d,
                         kMpichErrorsReturn = 0x54000001;

/// MPI_MAX_LIBRARY_VERSION_STRING is 256 in Open MPI and 8192 in MPICH.
static constexpr size_t kMostVersion = 8192;

static void *openLibrary(const Launch &launch, Error &error) {
  char names[128] = "";
  for (const Name &each : kNames) {
    if (launch.family != MpiFamily::Any && launch.family != each.family)
      continue;
    if (void *library = dlopen(each.file, RTLD_NOW | RTLD_LOCAL))
      return library;
    size_t length = strlen(names);
    snprintf(names + length, sizeof(names) - length, "%s%s",
             length ? " or " : "", each.file);
  }
  const char *reason = dlerror();
  error.set("ranks that %s has started need %s, of the MPI it comes with, but "
            "it cannot be opened: %s",
            launch.name, names, reason ? reason : "not found");
  return nullptr;
}

/// "Open MPI v4.1.4, package: ..." or "MPICH Version:\t4.0.2\n...": the first
/// word that begins with a digit is the version.
static const Maker *readVersion(const char *text, char *version, size_t size) {
  for (const Maker &each : kMakers) {
    const char *place = strstr(text, each.begin);
    if (!place)
      continue;
    place += strlen(each.begin);
    place += strcspn(place, "0123456789");
    snprintf(version, size, "%s %.*s", each.name, int(strcspn(place, ", \t\n")),
             place);
    return &each;
  }
  return nullptr;
}

bool MpiLibrary::open(const Launch &launch, Error &error) {
  // UCX, below MPICH, would print the stack where another rank is gone.
  setenv("UCX_HANDLE_ERRORS", "none", /*overwrite=*/0);
  setenv("UCX_LOG_LEVEL", "fatal", /*overwrite=*/0);
  void *library = openLibrary(launch, error);
  if (!library)
    return false;
  const struct {
    const char *symbol;
    void **function;
  } entries[] = {
#define REPRISE_FIND(member, symbol, parameters)                               \
  {#symbol, reinterpret_cast<void **>(&member)},
      REPRISE_MPI(REPRISE_FIND)
#undef REPRISE_FIND
  };
  for (const auto &each : entries) {
    *each.function = dlsym(library, each.symbol);
    if (!*each.function)
      return error.set("the MPI library that %s needs has no function %s",
                       launch.name, each.symbol);
  }
  char text[kMostVersion] = "";
  int length = 0;
  getVersion(text, &length); // Legal before the start.
  const Maker *maker = readVersion(text, version, sizeof(version));
  if (!maker)
    return error.set("needs Open MPI or MPICH, but got '%.64s'", text);
  if (maker->family == MpiFamily::OpenMpi) {
    auto find = [&](const char *symbol) {
      return reinterpret_cast<MpiWord>(dlsym(library, symbol));
    };
    world = find("ompi_mpi_comm_world");
    byte = find("ompi_mpi_byte");
    errorsReturn = find("ompi_mpi_errors_return");
    return (world && byte && errorsReturn) ||
           error.set("%s has no ompi_mpi_comm_world, ompi_mpi_byte and "
                     "ompi_mpi_errors_return",
                     version);
  }
  world = kMpichWorld;
  byte = kMpichByte;
  errorsReturn = kMpichErrorsReturn;
  return true;
}
