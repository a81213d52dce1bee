//===- AbiTest.cpp - The version of the interface -------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/ABI/ElementFormat.h"
#include "reprise/ABI/Model.h"

#include <gtest/gtest.h>
#include <string>

namespace {
/// The version of definitions in which `before` has become `after`.
uint32_t versionWith(const std::string &before, const std::string &after) {
  std::string text = kRepriseDefinitions;
  size_t at = text.find(before);
  EXPECT_NE(at, std::string::npos) << before;
  if (at != std::string::npos)
    text.replace(at, before.size(), after);
  return repriseHash(text.c_str());
}
} // namespace

// The published values of FNV-1a with 32 bits.
TEST(Abi, HashIsFnv1a) {
  static_assert(repriseHash("") == 0x811C9DC5u);
  static_assert(repriseHash("a") == 0xE40C292Cu);
  static_assert(repriseHash("foobar") == 0xBF9CF968u);
}

TEST(Abi, VersionIsOfNamesTypesAndOrder) {
  EXPECT_EQ(versionWith("int64_t arenaBytes;", "int64_t arenaBytes;"),
            REPRISE_ABI_VERSION);
  EXPECT_NE(versionWith("int64_t arenaBytes;int64_t arenaAlignment;",
                        "int64_t arenaAlignment;int64_t arenaBytes;"),
            REPRISE_ABI_VERSION);
  EXPECT_NE(versionWith("int32_t lrDecayStyle;", "uint32_t lrDecayStyle;"),
            REPRISE_ABI_VERSION);
  EXPECT_NE(versionWith("int64_t strideA[2];", "int64_t strideA[3];"),
            REPRISE_ABI_VERSION);
}

// Of GEMMs, devices and the model, with functions and numbers that have no
// place in a struct.
TEST(Abi, VersionIsOfAllDefinitions) {
  for (const char *definition :
       {"RepriseGemm{", "RepriseTile{", "RepriseMicroKernel{", "RepriseCubin{",
        "RepriseCudaModule{", "RepriseLaunch{", "RepriseState{",
        "RepriseModel{uint32_t abiVersion;", "REPRISE_GEMM_KC=256;",
        "const RepriseEntry * program;", "RepriseBuffer gradNorm;",
        "void RepriseKernelFn(void *const *buffers, const int64_t *ids, "
        "int64_t begin, int64_t end);"})
    EXPECT_NE(versionWith(definition, ""), REPRISE_ABI_VERSION);
}

// A code is the index of its row.
TEST(Abi, FormatsOfElements) {
  int32_t code = 0;
  for (const RepriseElementFormat &format : kRepriseElementFormats) {
    EXPECT_EQ(format.code, code++);
    EXPECT_EQ(repriseElementFormat(format.code), &format);
    EXPECT_LE(format.bytes, repriseElementBytes(format.accumulator));
  }
  EXPECT_EQ(repriseElementBytes(REPRISE_F32), 4);
  EXPECT_EQ(repriseElementBytes(REPRISE_BF16), 2);
  EXPECT_STREQ(repriseElementName(REPRISE_BF16), "bf16");
  for (int32_t none : {-1, code, INT32_MAX})
    EXPECT_EQ(repriseElementFormat(none), kRepriseElementFormats);
}
