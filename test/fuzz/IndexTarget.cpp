//===- IndexTarget.cpp - Indices of Megatron data sets --------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The input is an .idx file; its .bin file has 256 bytes.
//
//===----------------------------------------------------------------------===//

#include "Target.h"

#include "runtime/data/TokenStream.h"

#include <vector>

using namespace reprise::runtime;
using namespace reprise::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  constexpr int64_t kBytes = 256;
  static const Folder folder;
  static const std::string tokens =
      folder.write("x.bin", std::string(size_t(kBytes), '\1'));
  std::string index =
      folder.write("x.idx", {reinterpret_cast<const char *>(data), size});
  Error error;
  TokenStream stream;
  if (!stream.add(index.c_str(), {}, error)) {
    require(error.text[0], "a refusal says why");
    return 0;
  }
  require(stream.size() <= kBytes, "no byte belongs to two tokens");
  std::vector<int32_t> values(size_t(stream.size()) + 1);
  if (stream.size() > 0 &&
      !stream.read(0, stream.size(), 1 << 30, values.data(), error))
    require(error.text[0], "a refusal says why");
  return 0;
}
