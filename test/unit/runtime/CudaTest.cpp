//===- CudaTest.cpp - A GPU that is none ------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The runtime against the stand-ins for the driver and cuBLASLt: what it asks
// them for, and what it says when they refuse. Each test is a process of its
// own where the environment or a failure would outlive it.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/Arena.h"
#include "runtime/device/CudaGemms.h"
#include "runtime/device/Placement.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <unistd.h>
#include <vector>

using namespace reprise::runtime;

namespace {

class Cuda : public testing::Test {
protected:
  void SetUp() override { setenv("REPRISE_CUDA_PATH", REPRISE_STANDINS, 1); }
  void TearDown() override {
    unsetenv("REPRISE_STANDIN_MEMORY");
    unsetenv("REPRISE_STANDIN_SUMS");
  }
  Error error;
};

float fromBF16(uint16_t half) {
  uint32_t bits = uint32_t(half) << 16;
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

uint16_t toBF16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return uint16_t((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

/// A GEMM beside the one of the library: f32 on the host, rows of C
/// one after another.
class Matmul {
public:
  explicit Matmul(RepriseGemm gemm) : gemm(gemm) {
    auto elements = [&](const int64_t *strides, int64_t rows, int64_t stride,
                        int64_t columns) {
      return (gemm.batch[0] - 1) * strides[0] +
             (gemm.batch[1] - 1) * strides[1] + (rows - 1) * stride + columns;
    };
    sizes[0] = elements(gemm.strideA, gemm.transposeA ? gemm.k : gemm.m,
                        gemm.lda, gemm.transposeA ? gemm.m : gemm.k);
    sizes[1] = elements(gemm.strideB, gemm.transposeB ? gemm.n : gemm.k,
                        gemm.ldb, gemm.transposeB ? gemm.k : gemm.n);
    sizes[2] = gemm.bias ? gemm.n : 0;
    sizes[3] = elements(gemm.strideC, gemm.m, gemm.ldc, gemm.n);
    sizes[4] = gemm.epilogue == REPRISE_EPILOGUE_SUMS_OF_A   ? gemm.m
               : gemm.epilogue == REPRISE_EPILOGUE_SUMS_OF_B ? gemm.n
                                                             : 0;
    sizes[5] = 256;
    types[0] = types[1] = gemm.typeAB;
    types[2] = types[3] = types[4] = gemm.typeC;
    uint32_t state = 1;
    for (int i = 0; i < 5; ++i)
      for (int64_t j = 0; j < sizes[i]; ++j) {
        state = state * 1664525 + 1013904223;
        float value = float(int32_t(state >> 8) % 1000) / 500.0f - 1.0f;
        values[i].push_back(types[i] == REPRISE_BF16 ? fromBF16(toBF16(value))
                                                     : value);
      }
  }

  /// Computes both; the largest difference, relative to the sums' size.
  double difference(Gpu &device, Error &error) {
    std::vector<RepriseBuffer> buffers;
    for (int i = 0; i < 6; ++i)
      if (sizes[i])
        buffers.push_back(allocate(sizes[i] * (types[i] ? 2 : 4)));
    RepriseLaunch launch = {};
    launch.kind = REPRISE_LAUNCH_GEMM;
    launch.numBuffers = int32_t(buffers.size());
    launch.name = "product";
    RepriseModel model = {};
    model.gemms = &gemm, model.numGemms = 1;
    RepriseSchedule schedule = {"micro", &launch, 1, 0};
    model.schedules = &schedule, model.numSchedules = 1;
    model.buffers = buffers.data();
    CudaGemms matmuls(model, device);
    if (!matmuls.prepare(/*tf32=*/false, /*autotune=*/false, error))
      return INFINITY;
    hasSeparateSums = matmuls.numSeparateSums() == 1;
    for (int i = 0, at = 0; i < 5; ++i)
      if (sizes[i])
        upload(device, buffers[size_t(at++)], values[i], types[i], error);
    if (!matmuls.run(launch, error))
      return INFINITY;
    compute();
    size_t output = gemm.bias ? 3 : 2;
    double worst = compare(device, buffers[output], values[3], error);
    if (gemm.epilogue)
      worst = std::fmax(worst,
                        compare(device, buffers[output + 1], values[4], error));
    return worst;
  }

  bool hasSeparateSums = false; ///< As the library has no such epilogue.

private:
  RepriseBuffer allocate(int64_t bytes) {
    RepriseBuffer buffer = {end, bytes};
    end += (bytes + 255) / 256 * 256;
    return buffer;
  }

  static void upload(Gpu &device, const RepriseBuffer &buffer,
                     const std::vector<float> &values, int type, Error &error) {
    std::vector<uint16_t> halves;
    for (float value : values)
      halves.push_back(toBF16(value));
    EXPECT_TRUE(device.upload(buffer.offset,
                              type ? static_cast<const void *>(halves.data())
                                   : values.data(),
                              buffer.bytes, error))
        << error.text;
  }

  /// The largest difference of what is in `buffer` from what should be.
  double compare(Gpu &device, const RepriseBuffer &buffer,
                 const std::vector<float> &wanted, Error &error) const {
    std::vector<char> bytes(size_t(buffer.bytes));
    if (!device.download(buffer.offset, bytes.data(), buffer.bytes, error))
      return INFINITY;
    double worst = 0;
    for (size_t i = 0; i < wanted.size(); ++i) {
      float got;
      if (gemm.typeC == REPRISE_BF16) {
        uint16_t half;
        memcpy(&half, &bytes[2 * i], 2);
        got = fromBF16(half);
      } else {
        memcpy(&got, &bytes[4 * i], 4);
      }
      worst = std::fmax(worst, std::fabs(double(got) - double(wanted[i])) /
                                   (1 + std::fabs(double(wanted[i]))));
    }
    return worst;
  }

  void compute() {
    bool isOfA = gemm.epilogue == REPRISE_EPILOGUE_SUMS_OF_A;
    for (int64_t i = 0; i < sizes[4]; ++i) {
      double sum = 0;
      for (int64_t p = 0; p < gemm.k; ++p)
        sum += double(
            isOfA ? values[0][size_t(gemm.transposeA ? p * gemm.lda + i
                                                     : i * gemm.lda + p)]
                  : values[1][size_t(gemm.transposeB ? i * gemm.ldb + p
                                                     : p * gemm.ldb + i)]);
      values[4][size_t(i)] = float(sum);
    }
    for (int64_t b0 = 0; b0 < gemm.batch[0]; ++b0)
      for (int64_t b1 = 0; b1 < gemm.batch[1]; ++b1)
        for (int64_t i = 0; i < gemm.m; ++i)
          for (int64_t j = 0; j < gemm.n; ++j) {
            auto entry = [&](const int64_t *s) {
              return b0 * s[0] + b1 * s[1];
            };
            const float *a = &values[0][size_t(entry(gemm.strideA))];
            const float *b = &values[1][size_t(entry(gemm.strideB))];
            float &c =
                values[3][size_t(entry(gemm.strideC) + i * gemm.ldc + j)];
            double sum = 0;
            for (int64_t p = 0; p < gemm.k; ++p)
              sum += double(gemm.transposeA ? a[p * gemm.lda + i]
                                            : a[i * gemm.lda + p]) *
                     double(gemm.transposeB ? b[j * gemm.ldb + p]
                                            : b[p * gemm.ldb + j]);
            c = float(double(gemm.alpha) * sum +
                      (gemm.accumulate ? double(c) : 0) +
                      (gemm.bias ? double(values[2][size_t(j)]) : 0));
          }
  }

  RepriseGemm gemm;
  int64_t sizes[6] = {}, end = 0;
  int types[6] = {};
  std::vector<float> values[5];
};

RepriseGemm makeGemm(bool transposeA, bool transposeB) {
  RepriseGemm gemm = {};
  gemm.m = 7, gemm.n = 5, gemm.k = 11;
  gemm.lda = (transposeA ? gemm.m : gemm.k) + 2;
  gemm.ldb = (transposeB ? gemm.k : gemm.n) + 1;
  gemm.ldc = gemm.n + 3;
  gemm.batch[0] = gemm.batch[1] = 1;
  gemm.alpha = 0.5f;
  gemm.transposeA = transposeA, gemm.transposeB = transposeB;
  return gemm;
}

} // namespace

TEST_F(Cuda, GemmsOfEveryForm) {
  Gpu device;
  ASSERT_TRUE(device.open(0, 0, error) && device.allocate(1 << 20, error))
      << error.text;
  for (int form = 0; form < 64; ++form) {
    SCOPED_TRACE(form);
    RepriseGemm gemm = makeGemm(form & 1, form & 2);
    gemm.bias = form >> 2 & 1;
    gemm.accumulate = form >> 3 & 1;
    gemm.typeAB = form >> 4 & 1;
    gemm.typeC = form >> 5 & 1;
    if (gemm.typeC && (!gemm.typeAB || gemm.accumulate))
      continue;
    // A C of bf16 is rounded once, to half a unit in its last place.
    EXPECT_LT(Matmul(gemm).difference(device, error),
              gemm.typeC ? 0.00196 : 1e-5)
        << error.text;
  }
}

// Sums of rows of either operand, beside C in f32, replace what was there. The
// library has them of rows that lie side by side, or of none: then they are a
// GEMM of their own, to the same sums.
TEST_F(Cuda, GemmsWithSums) {
  Gpu device;
  ASSERT_TRUE(device.open(0, 0, error) && device.allocate(1 << 20, error))
      << error.text;
  for (int form = 0; form < 64; ++form) {
    SCOPED_TRACE(form);
    bool isRefused = form >> 5 & 1;
    setenv("REPRISE_STANDIN_SUMS", isRefused ? "none" : "", 1);
    RepriseGemm gemm = makeGemm(form & 1, form & 2);
    gemm.alpha = 1;
    gemm.accumulate = form >> 2 & 1;
    gemm.typeAB = form >> 3 & 1;
    gemm.epilogue =
        form >> 4 & 1 ? REPRISE_EPILOGUE_SUMS_OF_A : REPRISE_EPILOGUE_SUMS_OF_B;
    bool isSideBySide = form >> 4 & 1 ? gemm.transposeA : !gemm.transposeB;
    Matmul matmul(gemm);
    EXPECT_LT(matmul.difference(device, error), 1e-5) << error.text;
    EXPECT_EQ(matmul.hasSeparateSums, isRefused || !isSideBySide);
  }
}

TEST_F(Cuda, BatchesOfGemms) {
  Gpu device;
  ASSERT_TRUE(device.open(0, 0, error) && device.allocate(1 << 20, error))
      << error.text;
  struct {
    int64_t batch[2], a[2], b[2], c[2];
  } cases[] = {{{3, 4}, {400, 100}, {400, 100}, {400, 100}}, // As one of 12.
               {{3, 4}, {500, 100}, {0, 100}, {400, 100}},
               {{4, 3}, {100, 400}, {0, 100}, {100, 400}},
               {{1, 3}, {0, 100}, {0, 100}, {0, 100}},
               {{3, 1}, {100, 0}, {100, 0}, {100, 0}}};
  for (auto &[batch, a, b, c] : cases) {
    RepriseGemm gemm = makeGemm(false, true);
    for (int d : {0, 1}) {
      gemm.batch[d] = batch[d], gemm.strideA[d] = a[d];
      gemm.strideB[d] = b[d], gemm.strideC[d] = c[d];
    }
    EXPECT_LT(Matmul(gemm).difference(device, error), 1e-5) << error.text;
  }
}

TEST_F(Cuda, GemmThatTheLibraryDoesNotHave) {
  Gpu device;
  ASSERT_TRUE(device.open(0, 0, error) && device.allocate(1 << 20, error));
  RepriseGemm gemm = makeGemm(false, false);
  gemm.typeC = REPRISE_BF16; // Of f32.
  EXPECT_EQ(Matmul(gemm).difference(device, error), INFINITY);
  EXPECT_STREQ(error.text, "GEMM product: cuBLASLt 130000 has no algorithm "
                           "for m 7, n 5, k 11 of f32 in 1024 bytes of "
                           "workspace");

  // Ones for sums of their own have to fit into the workspace.
  setenv("REPRISE_STANDIN_SUMS", "none", 1);
  gemm = makeGemm(true, false);
  gemm.alpha = 1, gemm.k = 257;
  gemm.epilogue = REPRISE_EPILOGUE_SUMS_OF_B;
  EXPECT_EQ(Matmul(gemm).difference(device, error), INFINITY);
  EXPECT_STREQ(error.text, "GEMM product: cuBLASLt 130000 has no algorithm "
                           "for m 7, n 5, k 257 of f32 in 1024 bytes of "
                           "workspace, with the gradient of a bias; reprisec "
                           "--cuda-bias-gradients=kernel asks for none");
  gemm.k = 256;
  EXPECT_LT(Matmul(gemm).difference(device, error), 1e-5) << error.text;
}

TEST_F(Cuda, MemoryThatIsNotThere) {
  setenv("REPRISE_STANDIN_MEMORY", "1000000", 1);
  Gpu device;
  ASSERT_TRUE(device.open(0, 0, error)) << error.text;
  EXPECT_FALSE(device.allocate(2'000'000, error));
  EXPECT_STREQ(
      error.text,
      "the plan needs 1.91 MiB = 2,000,000 bytes on GPU 0 (stand-in "
      "0), but of its 976.56 KiB only 976.56 KiB are free; a recompute "
      "plan needs less");
}

TEST_F(Cuda, WaitingSpoilsACapture) {
  Gpu device;
  ASSERT_TRUE(device.open(0, 0, error)) << error.text;
  const CudaDriver &driver = device.driver();
  ASSERT_EQ(driver.captureBegin(device.stream(), kCudaCaptureRelaxed), 0);
  EXPECT_FALSE(device.synchronize("a wait", error));
  EXPECT_STREQ(error.text, "a wait: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED "
                           "(900): see its name");
  CudaGraph graph = nullptr;
  EXPECT_EQ(driver.captureEnd(device.stream(), &graph), 901);
  EXPECT_TRUE(device.synchronize("a wait", error));
}

TEST_F(Cuda, GPUThatIsNotThere) {
  Gpu device;
  EXPECT_FALSE(device.open(3, 0, error));
  EXPECT_STREQ(error.text, "--device cuda:3 needs a GPU of that number, but "
                           "the driver has 1, from 0 on");
}

TEST_F(Cuda, ArenaIsACopyOfTheDevices) {
  Gpu device;
  Arena arena;
  constexpr int64_t kBytes = 100'000;
  ASSERT_TRUE(device.open(0, 0, error) && device.allocate(kBytes, error) &&
              arena.mapFor(device, kBytes, error))
      << error.text;
  RepriseBuffer buffer = {512, 60'000}, neighbour = {60'512, 64};
  memset(arena.at<char>(buffer), 7, size_t(buffer.bytes));
  memset(arena.at<char>(neighbour), 9, size_t(neighbour.bytes));
  ASSERT_TRUE(arena.handOver(buffer, error)) << error.text;
  // Released pages are empty, those shared with a neighbour are not.
  EXPECT_EQ(*arena.at<char>(30'000), 0);
  EXPECT_EQ(*arena.at<char>(neighbour), 9);
  ASSERT_TRUE(arena.download(buffer, error)) << error.text;
  EXPECT_EQ(*arena.at<char>(30'000), 7);
  arena.fill({600, 10}, 3);
  ASSERT_TRUE(arena.download(buffer, error)) << error.text;
  EXPECT_EQ(*arena.at<char>(599), 7);
  EXPECT_EQ(*arena.at<char>(609), 3);
  EXPECT_EQ(arena.residentBytes(buffer), buffer.bytes);
}

/// In a process of its own: a GPU that went wrong stays so.
TEST_F(Cuda, CopyBehindThePlan) {
  Gpu device;
  ASSERT_TRUE(device.open(0, 0, error) && device.allocate(1000, error));
  char bytes[8] = {};
  EXPECT_EXIT(
      {
        device.upload(1000, bytes, 8, error);
        fprintf(stderr, "%s\n", error.text);
        _exit(1);
      },
      testing::ExitedWithCode(1),
      "stand-in: copy to the device: target of 8 bytes at .* is not on the "
      "device\ncopy to the GPU: CUDA_ERROR_ILLEGAL_ADDRESS \\(700\\): an "
      "illegal memory access was encountered");
}

TEST_F(Cuda, WhatADeviceNeeds) {
  RepriseModel cpu = {}, cuda = {};
  cuda.target = REPRISE_TARGET_CUDA;
  const RepriseModel *both[] = {&cpu, &cuda};
  auto status = [&](const char *device, int first, int count) {
    Placement placement;
    DeviceOptions options;
    options.device = device;
    return place(both + first, count, options, 0, placement, error);
  };
  EXPECT_EQ(status("cpu", 0, 2), 0);
  EXPECT_EQ(status("gpu", 0, 2), 2);
  EXPECT_STREQ(error.text,
               "--device needs auto, cpu, cuda or cuda:N, but got 'gpu'");
  EXPECT_EQ(status("cuda:x", 0, 2), 2);
  EXPECT_EQ(status("cpu", 1, 1), 2);
  EXPECT_STREQ(error.text, "--device cpu needs a program that was compiled "
                           "with --target=cpu, but this one is for "
                           "--target=cuda alone");
  EXPECT_EQ(status("cuda", 0, 1), 2);
  EXPECT_EQ(status("cuda:7", 0, 2), 3);

  Placement placement;
  DeviceOptions options;
  options.tf32 = true;
  options.device = "cpu";
  EXPECT_EQ(place(both, 2, options, 0, placement, error), 2);
  EXPECT_STREQ(error.text, "--tf32 needs a GPU, but this run is on the CPU");
}
