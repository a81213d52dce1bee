//===- TokenizerTarget.cpp - tokenizer.json, and text through it ----------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The input is JSON, and behind a zero the text that is encoded.
//
//===----------------------------------------------------------------------===//

#include "Target.h"

#include "runtime/text/Tokenizer.h"

using namespace reprise::runtime;
using namespace reprise::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Parts input(data, size);
  Error error;
  Tokenizer tokenizer;
  if (!tokenizer.read(input.first, "tokenizer.json", error)) {
    require(error.text[0], "a refusal says why");
    return 0;
  }
  ThreadPool pool;
  List<uint32_t> tokens;
  const auto *text =
      reinterpret_cast<const unsigned char *>(input.second.data());
  if (!tokenizer.encode("text", text, int64_t(input.second.size()), pool,
                        tokens, error)) {
    require(error.text[0], "a refusal says why");
    return 0;
  }
  for (uint32_t token : tokens) {
    require(int64_t(token) < tokenizer.vocabSize(), "tokens are in range");
    require(!tokenizer.decode(token).empty(), "tokens stand for something");
  }
  return 0;
}
