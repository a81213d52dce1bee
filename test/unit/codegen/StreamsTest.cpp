//===- StreamsTest.cpp - What goes past the caches --------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelRunner.h"
#include "gtest/gtest.h"
#include <cstring>

using namespace reprise::codegen;

/// Layer norm and GELU over `rows` rows of 512 elements, by row and flat.
static std::string kernelsOver(int64_t rows, const std::string &element,
                               const std::string &suffix) {
  const std::string all =
      "tensor<1x" + std::to_string(rows) + "x512x" + element + ">";
  const std::string row = "tensor<1x" + std::to_string(rows) + "xf32>";
  return "func.func private @norm_" + suffix + "(%x: " + all +
         ", %g: tensor<512xf32>, %b: tensor<512xf32>) -> (" + all + ", " + row +
         ", " + row + ") attributes {rt.kernel} {\n" +
         "%y, %m, %s = nn.layer_norm %x, %g, %b eps 1.0e-05 : (" + all +
         ", tensor<512xf32>, tensor<512xf32>) -> (" + all + ", " + row + ", " +
         row + ")\n" + "return %y, %m, %s : " + all + ", " + row + ", " + row +
         "\n}\n" + "func.func private @gelu_" + suffix + "(%x: " + all +
         ") -> " + all + " attributes {rt.kernel} {\n" +
         "%y = nn.gelu %x tanh : " + all + "\n" + "return %y : " + all +
         "\n}\n";
}

// A kernel that moves 32 MiB has the bits that the same one has over few rows
// at a time, which leaves them in the caches.
TEST(Streams, HaveTheBitsOfWhatStays) {
  constexpr int64_t kFew = 64, kCols = 512;
  for (bool isBF16 : {false, true}) {
    const int64_t size = isBF16 ? 2 : 4, rows = (16 << 20) / kCols / size;
    const std::string element = isBF16 ? "bf16" : "f32";
    const std::string text = asLoops(kernelsOver(rows, element, "large") +
                                     kernelsOver(kFew, element, "few"));
    // Words of bits that are numbers in either type.
    Floats x = randomFloats(size_t(rows * kCols * size / 4), 1);
    if (isBF16)
      for (float &pair : x) {
        uint32_t bits;
        std::memcpy(&bits, &pair, 4);
        bits = (bits & 0xFFFF0000) | bits >> 16;
        std::memcpy(&pair, &bits, 4);
      }
    Floats g = randomFloats(kCols, 2), b = randomFloats(kCols, 3);
    for (bool wide : widths()) {
      KernelRunner runner(text, wide);
      Floats room(x.size() + 2 * kLine, 7), few(x.size());
      float *y = alignToLine(room);
      Floats mean(rows), rstd(rows), meanOfFew(rows), rstdOfFew(rows);
      auto *from = reinterpret_cast<char *>(x.data());
      auto *to = reinterpret_cast<char *>(few.data());
      const int64_t bytes = kFew * kCols * size;
      runner.run("norm_large",
                 {x.data(), g.data(), b.data(), y, mean.data(), rstd.data()},
                 {}, 3, true);
      for (int64_t row = 0; row < rows; row += kFew)
        runner.run("norm_few",
                   {from + row / kFew * bytes, g.data(), b.data(),
                    to + row / kFew * bytes, &meanOfFew[row], &rstdOfFew[row]});
      EXPECT_EQ(std::memcmp(y, few.data(), x.size() * 4), 0) << element;
      EXPECT_EQ(mean, meanOfFew);
      EXPECT_EQ(rstd, rstdOfFew);
      runner.run("gelu_large", {x.data(), y}, {}, 3, true);
      for (int64_t row = 0; row < rows; row += kFew)
        runner.run("gelu_few",
                   {from + row / kFew * bytes, to + row / kFew * bytes});
      EXPECT_EQ(std::memcmp(y, few.data(), x.size() * 4), 0) << element;
      EXPECT_EQ(y[x.size()], 7) << "written behind the output";
    }
  }
}
