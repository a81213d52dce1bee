//===- TokensTarget.cpp - Files of tokens, and of text --------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The input is a file, read under a name that says nothing, and under one that
// says that it has tokens of u16 if nothing else is found.
//
//===----------------------------------------------------------------------===//

#include "Target.h"

#include "runtime/data/TokenStream.h"

#include <vector>

using namespace reprise::runtime;
using namespace reprise::fuzz;

static void read(const std::string &path, const TokenFormat &format,
                 size_t bytes) {
  Error error;
  TokenStream stream;
  if (!stream.add(path.c_str(), format, error)) {
    require(error.text[0], "a refusal says why");
    return;
  }
  require(stream.size() <= int64_t(bytes), "no byte belongs to two tokens");
  constexpr int64_t kVocabulary = 1000;
  bool good = stream.check(kVocabulary, nullptr, error);
  std::vector<int32_t> values(size_t(stream.size()) + 1);
  require(good ==
              (stream.size() == 0 || stream.read(0, stream.size(), kVocabulary,
                                                 values.data(), error)),
          "what was checked can be read");
  require(good == !error.text[0], "a refusal says why");
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const Folder folder;
  std::string_view bytes(reinterpret_cast<const char *>(data), size);
  read(folder.write("x", bytes), {}, size);
  read(folder.write("x.bin", bytes), {TokenType::U16}, size);
  return 0;
}
