//===- TestFiles.h - Token files as others would write them -----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TEST_UNIT_RUNTIME_TESTFILES_H
#define REPRISE_TEST_UNIT_RUNTIME_TESTFILES_H

#include "runtime/data/TokenStream.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>
#include <vector>

namespace reprise::runtime::test {

/// A folder for one test; tests may run side by side.
class Folder {
public:
  Folder()
      : path(testing::TempDir() + "reprise-" + std::to_string(getpid()) + "-" +
             std::to_string(counter++) + "/") {
    std::filesystem::create_directory(path);
  }
  Folder(const Folder &) = delete;
  Folder &operator=(const Folder &) = delete;
  ~Folder() { std::filesystem::remove_all(path); }

  /// A new file: some file systems wait for the disk when one is overwritten.
  std::string write(const std::string &name, const std::string &bytes) const {
    std::filesystem::remove(path + name);
    std::ofstream(path + name, std::ios::binary) << bytes;
    return path + name;
  }

  const std::string path;

private:
  static inline int counter = 0;
};

/// The values as integers of type T side by side, little-endian.
template <typename T>
std::string bytesAs(const std::vector<int64_t> &values) {
  std::string bytes;
  for (int64_t value : values) {
    T narrow = T(value);
    bytes.append(reinterpret_cast<const char *>(&narrow), sizeof(narrow));
  }
  return bytes;
}

/// A file with llm.c's header.
inline std::string llmcFile(int32_t magic, int32_t version, int32_t count,
                            const std::string &tokens) {
  std::vector<int64_t> header(256, 0);
  header[0] = magic, header[1] = version, header[2] = count;
  return bytesAs<int32_t>(header) + tokens;
}

/// A Megatron index, whatever its numbers mean.
struct IndexFile {
  std::vector<int64_t> lengths, offsets, boundaries;
  TokenType type = TokenType::U16;

  std::string bytes() const {
    return std::string("MMIDIDX\0\0", 9) + bytesAs<int64_t>({1}) + char(type) +
           bytesAs<int64_t>(
               {int64_t(lengths.size()), int64_t(boundaries.size())}) +
           bytesAs<int32_t>(lengths) + bytesAs<int64_t>(offsets) +
           bytesAs<int64_t>(boundaries);
  }
};

/// All tokens of the files, or, after "error: ", why there are none.
struct Tokens {
  std::vector<int32_t> values;
  std::string error;

  Tokens(const std::vector<std::string> &patterns,
         std::optional<TokenType> stated = std::nullopt,
         int64_t vocabSize = INT32_MAX) {
    TokenStream stream;
    Error failure;
    bool good = true;
    for (const std::string &pattern : patterns)
      good = good && stream.add(pattern.c_str(), {stated}, failure);
    if (good) {
      values.resize(size_t(stream.size()));
      good = values.empty() ||
             stream.read(0, stream.size(), vocabSize, values.data(), failure);
    }
    EXPECT_EQ(good, failure.text[0] == '\0');
    error = failure.text;
  }
};

using Values = std::vector<int32_t>;

} // namespace reprise::runtime::test

#endif // REPRISE_TEST_UNIT_RUNTIME_TESTFILES_H
