//===- Places.cpp - Where files can be written ----------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/command-line/CommandLine.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <unistd.h>

namespace fs = std::filesystem;

std::string reprise::tools::checkPlace(const std::string &name) {
  if (name.empty() || name == "-")
    return "";
  std::string refusal = "cannot write '" + name + "': ";
  std::error_code error;
  fs::path path = fs::canonical(name, error);
  if (error)
    path = name; // Not there yet.
  if (fs::is_directory(path, error))
    return refusal + "it is a folder";
  if (fs::exists(path, error) && !fs::is_regular_file(path, error))
    return ""; // A device or a pipe, which has a place.
  fs::path folder = path.parent_path();
  if (folder.empty())
    folder = ".";
  std::string shown = "'" + folder.string() + "'";
  if (!fs::exists(folder, error))
    return refusal + "there is no folder " + shown;
  if (!fs::is_directory(folder, error))
    return refusal + shown + " is no folder";
  // Permissions do not tell all: no one makes files in /proc, for one.
  std::string unused = (folder / ".reprise-XXXXXX").string();
  const int file = mkstemp(unused.data());
  if (file < 0)
    return refusal + "no file can be made in " + shown + ": " +
           std::strerror(errno);
  close(file);
  unlink(unused.c_str());
  return "";
}
