//===- Files.h - Files and folders that are written -------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_BASE_FILES_H
#define REPRISE_RUNTIME_BASE_FILES_H

#include <climits>
#include <cstddef>
#include <cstdint>

namespace reprise::runtime {

/// The name of a file. One that is too long is cut, and then not found.
struct Path {
  [[gnu::format(printf, 2, 3)]] explicit Path(const char *format, ...);
  operator const char *() const { return chars; }

  char chars[PATH_MAX];
};

/// Takes slashes off the end of a name.
Path withoutSlashes(const char *path);

/// A new file on its way to the disk. What returns false sets `errno`.
class OutputFile {
public:
  OutputFile() = default;
  OutputFile(const OutputFile &) = delete;
  OutputFile &operator=(const OutputFile &) = delete;
  ~OutputFile();

  /// Makes the file; whatever has its name already makes this fail.
  bool create(const char *path);

  /// Opens a file that others may write to as well, or makes it, to write from
  /// this byte on. Links are not followed.
  bool open(const char *path, int64_t offset);

  /// Appends bytes. If `crc` is given, it goes on with the checksum there.
  bool write(const void *bytes, size_t count, uint32_t *crc = nullptr);

  /// Waits until the disk has the file, and closes it.
  bool finish();

private:
  int file = -1;
};

/// Makes a folder and those above it. False with `errno`; `path` is then the
/// one that could not be made.
bool makeFolders(Path &path);

/// The bytes that this user can still write into the file system of a folder;
/// -1 if it does not say.
int64_t freeSpace(const char *folder);

/// Waits until the disk has the names of a folder's files; false with `errno`.
bool syncFolder(const char *path);

/// Removes those files of a folder for which `isOurs(name)`, and the folder if
/// nothing is left then. One that is not there is removed already. False with
/// `errno`: ENOTEMPTY if there are files of others, ENOTDIR for a link.
bool removeFolder(const char *path, bool (*isOurs)(const char *name));

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_BASE_FILES_H
