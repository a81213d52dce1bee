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
using reprise::target::ObjectFile;

/// Where the C library keeps what a program starts with, or empty.
static std::string findSystemLibraries() {
  for (StringRef directory :
       {"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"})
    if (sys::fs::exists(directory + "/Scrt1.o"))
      return directory.str();
  return "";
}

static void complain(StringRef output, std::error_code error) {
  WithColor::error() << "cannot write '" << output << "': " << error.message()
                     << "\n";
}

namespace {
/// Object files that are there as long as this is.
class Inputs {
public:
  ~Inputs() {
    for (StringRef path : paths)
      sys::fs::remove(path);
  }

  LogicalResult write(ArrayRef<ObjectFile> objects) {
    for (const ObjectFile &object : objects) {
      SmallString<128> path;
      int descriptor;
      if (std::error_code error =
              sys::fs::createTemporaryFile("reprise", "o", descriptor, path)) {
        WithColor::error() << "cannot write a temporary file: "
                           << error.message() << "\n";
        return failure();
      }
      paths.push_back(path.str().str());
      raw_fd_ostream os(descriptor, /*shouldClose=*/true);
      os << StringRef(object.data(), object.size());
      os.close();
      if (os.has_error()) {
        complain(path, os.error());
        os.clear_error();
        return failure();
      }
      bytes += object.size();
    }
    return success();
  }

  std::vector<std::string> paths;
  uint64_t bytes = 0; ///< of all
};
} // namespace

/// Runs the linker. At most `mostBytes` come out, and they appear whole or not
/// at all.
static LogicalResult link(ArrayRef<std::string> arguments, StringRef output,
                          uint64_t mostBytes) {
  SmallString<128> temporary;
  if (std::error_code error =
          sys::fs::createUniqueFile(output + ".%%%%%%", temporary)) {
    complain(output, error);
    return failure();
  }
  // The linker writes through a mapping, where a full disk is a signal: what it
  // can need at most has to be there before.
  ErrorOr<sys::fs::space_info> space = sys::fs::disk_space(temporary);
  if (space && space->available < mostBytes) {
    sys::fs::remove(temporary);
    WithColor::error() << "cannot write '" << output << "': needs up to "
                       << mostBytes << " bytes, but the disk has "
                       << space->available << "\n";
    return failure();
  }
  SmallVector<const char *> all = {"ld.lld", "-o", temporary.c_str()};
  for (const std::string &argument : arguments)
    all.push_back(argument.c_str());
  lld::Result result =
      lld::lldMain(all, outs(), errs(), {{lld::Gnu, &lld::elf::link}});
  std::error_code error;
  if (result.retCode == 0)
    error = sys::fs::rename(temporary, output);
  if (result.retCode == 0 && !error)
    return success();
  sys::fs::remove(temporary);
  if (error)
    complain(output, error);
  return failure();
}

LogicalResult reprise::target::linkObject(ArrayRef<ObjectFile> objects,
                                          StringRef outputName) {
  // The linker resets all options of the command line, where the name may live.
  std::string output = outputName.str();
  Inputs inputs;
  if (failed(inputs.write(objects)))
    return failure();
  std::vector<std::string> arguments = {"-r"};
  append_range(arguments, inputs.paths);
  return link(arguments, output, inputs.bytes);
}

LogicalResult reprise::target::linkExecutable(ArrayRef<ObjectFile> objects,
                                              StringRef runtimeName,
                                              StringRef outputName) {
  // The linker resets all options of the command line, where names may live.
  std::string runtime = runtimeName.str(), output = outputName.str();
  std::string system = findSystemLibraries();
  if (system.empty()) {
    WithColor::error() << "needs the C library's Scrt1.o to link a program "
                          "(Debian: libc6-dev), but found none\n";
    return failure();
  }
  uint64_t runtimeBytes = 0;
  if (sys::fs::file_size(runtime, runtimeBytes)) {
    WithColor::error() << "needs the runtime archive, but found none at '"
                       << runtime << "'; --runtime=FILE says where it is\n";
    return failure();
  }
  Inputs inputs;
  if (failed(inputs.write(objects)))
    return failure();
  std::vector<std::string> arguments = {"-pie",
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
                                        system + "/Scrt1.o",
                                        system + "/crti.o"};
  append_range(arguments, inputs.paths);
  append_range(arguments, ArrayRef<std::string>{runtime, "-L" + system, "-lm",
                                                "-lc", system + "/crtn.o"});
  return link(arguments, output, inputs.bytes + runtimeBytes);
}
