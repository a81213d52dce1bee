//===- Link.cpp - Executables -----------------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lld/Common/Driver.h"
#include "reprise/Target/Executable.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/WithColor.h"

LLD_HAS_DRIVER(elf)

using namespace llvm;

/// Where the C library keeps what a program starts with, or empty.
static std::string findSystemLibraries() {
  for (StringRef directory :
       {"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"})
    if (sys::fs::exists(directory + "/Scrt1.o"))
      return directory.str();
  return "";
}

LogicalResult reprise::target::linkExecutable(StringRef object,
                                              StringRef runtime,
                                              StringRef outputName) {
  // The linker resets all options of the command line, where the name may live.
  std::string output = outputName.str();
  std::string system = findSystemLibraries();
  if (system.empty()) {
    WithColor::error() << "needs the C library's Scrt1.o to link a program "
                          "(Debian: libc6-dev), but found none\n";
    return failure();
  }
  if (!sys::fs::exists(runtime)) {
    WithColor::error() << "needs the runtime archive, but found none at '"
                       << runtime << "'; --runtime=FILE says where it is\n";
    return failure();
  }
  // A program appears whole or not at all.
  SmallString<128> temporary;
  if (std::error_code error =
          sys::fs::createUniqueFile(output + ".%%%%%%", temporary)) {
    WithColor::error() << "cannot write '" << output << "': " << error.message()
                       << "\n";
    return failure();
  }
  // The linker writes through a mapping, where a full disk is a signal: what it
  // can need at most has to be there before.
  uint64_t objectBytes = 0, runtimeBytes = 0;
  (void)sys::fs::file_size(object, objectBytes);
  (void)sys::fs::file_size(runtime, runtimeBytes);
  ErrorOr<sys::fs::space_info> space = sys::fs::disk_space(temporary);
  if (space && space->available < objectBytes + runtimeBytes) {
    sys::fs::remove(temporary);
    WithColor::error() << "cannot write '" << output << "': needs up to "
                       << objectBytes + runtimeBytes
                       << " bytes, but the disk has " << space->available
                       << "\n";
    return failure();
  }
  std::string start = system + "/Scrt1.o", prologue = system + "/crti.o",
              epilogue = system + "/crtn.o", search = "-L" + system;
  std::string archive = runtime.str(), input = object.str();
  const char *arguments[] = {"ld.lld",
                             "-pie",
                             "--hash-style=gnu",
                             "--build-id",
                             "--eh-frame-hdr",
                             "--gc-sections",
                             "--as-needed",
                             "-z",
                             "relro",
                             "-z",
                             "now",
                             "-dynamic-linker",
                             "/lib64/ld-linux-x86-64.so.2",
                             "-o",
                             temporary.c_str(),
                             start.c_str(),
                             prologue.c_str(),
                             input.c_str(),
                             archive.c_str(),
                             search.c_str(),
                             "-lm",
                             "-lc",
                             epilogue.c_str()};
  lld::Result result =
      lld::lldMain(arguments, outs(), errs(), {{lld::Gnu, &lld::elf::link}});
  std::error_code error;
  if (result.retCode == 0)
    error = sys::fs::rename(temporary, output);
  if (result.retCode == 0 && !error)
    return success();
  sys::fs::remove(temporary);
  if (error)
    WithColor::error() << "cannot write '" << output << "': " << error.message()
                       << "\n";
  return failure();
}
