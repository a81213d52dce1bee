//===- Target.h - What every fuzz target is made of -------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TEST_FUZZ_TARGET_H
#define REPRISE_TEST_FUZZ_TARGET_H

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <unistd.h>

/// The target: may do anything with the input but die. Named by libFuzzer.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

namespace reprise::fuzz {

/// Ends the program if something is not as it has to be, for any input.
inline void require(bool fact, const char *what) {
  if (fact)
    return;
  fprintf(stderr, "not so: %s\n", what);
  abort();
}

/// The bytes up to the first zero, and those behind it.
struct Parts {
  Parts(const uint8_t *data, size_t size) {
    std::string_view all(reinterpret_cast<const char *>(data), size);
    size_t zero = all.find('\0');
    first = all.substr(0, zero);
    if (zero != all.npos)
      second = all.substr(zero + 1);
  }
  std::string_view first, second;
};

/// A folder for what a target can only read from files.
class Folder {
public:
  Folder()
      : path(std::filesystem::temp_directory_path() /
             ("reprise-fuzz-" + std::to_string(getpid()))) {
    std::filesystem::create_directory(path);
  }
  ~Folder() { std::filesystem::remove_all(path); }

  std::string write(const char *name, std::string_view bytes) const {
    std::filesystem::path file = path / name;
    std::filesystem::remove(file); // Overwriting may wait for the disk.
    std::ofstream(file, std::ios::binary) << bytes;
    return file.string();
  }

  const std::filesystem::path path;
};

} // namespace reprise::fuzz

#endif // REPRISE_TEST_FUZZ_TARGET_H
