//===- ReplacedFile.h - A file that is written whole ------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_BASE_REPLACEDFILE_H
#define REPRISE_RUNTIME_BASE_REPLACEDFILE_H

#include "Error.h"

#include <cstdio>

namespace reprise::runtime {

/// A file that a run writes at its end, under another name until all is there:
/// whatever goes wrong, what had its name stays as it was.
class ReplacedFile {
public:
  ReplacedFile() = default;
  ReplacedFile(const ReplacedFile &) = delete;
  ReplacedFile &operator=(const ReplacedFile &) = delete;
  ~ReplacedFile();

  /// Finds out where `path` leads, over symbolic links: to a plain file or
  /// nothing yet, in a folder where files can be made. So what would fail at
  /// the end, fails before the run.
  bool start(const char *path, Error &error);

  /// Begins to write; null after an error. `finish` closes it.
  FILE *open(Error &error);

  /// Puts the file in its place if all of it could be written, and otherwise
  /// removes it.
  bool finish(bool isWhole, Error &error);

private:
  char *target = nullptr;  ///< No symbolic link.
  char *partial = nullptr; ///< The name until all is there.
  FILE *file = nullptr;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_BASE_REPLACEDFILE_H
