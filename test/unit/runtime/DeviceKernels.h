//===- DeviceKernels.h - Kernels for every device ---------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TEST_UNIT_RUNTIME_DEVICEKERNELS_H
#define REPRISE_TEST_UNIT_RUNTIME_DEVICEKERNELS_H

#include <cstdint>

namespace reprise::runtime::test {

/// Tokens of a micro-batch, and of the vocabulary: all vectors have so many.
constexpr int64_t kFew = 4;

/// As a `RepriseKernelFn`, of all tasks.
using FewFn = void (*)(void *const *buffers);

inline float *floats(void *const *buffers, int i) {
  return static_cast<float *>(buffers[i]);
}
inline const int32_t *ints(void *const *buffers, int i) {
  return static_cast<const int32_t *>(buffers[i]);
}

/// tokens, rng, w -> x: w of each token, plus the number of the micro-batch.
inline void look(void *const *b) {
  for (int64_t i = 0; i < kFew; ++i)
    floats(b, 3)[i] = floats(b, 2)[ints(b, 0)[i]] + float(ints(b, 1)[3]);
}

/// targets, y, loss, g, count: the loss, the gradient and the count are added.
inline void weigh(void *const *b) {
  for (int64_t i = 0; i < kFew; ++i) {
    *floats(b, 2) += floats(b, 1)[i] * float(ints(b, 0)[i]);
    floats(b, 3)[i] += floats(b, 1)[i];
  }
  *floats(b, 4) += 1;
}

/// g -> norm, which is their sum here.
inline void addUp(void *const *b) {
  *floats(b, 1) = 0;
  for (int64_t i = 0; i < kFew; ++i)
    *floats(b, 1) += floats(b, 0)[i];
}

/// lr, corrections 1 and 2, w, g (set to zero).
inline void descend(void *const *b) {
  for (int64_t i = 0; i < kFew; ++i) {
    floats(b, 3)[i] -=
        *floats(b, 0) * *floats(b, 1) * *floats(b, 2) * floats(b, 4)[i];
    floats(b, 4)[i] = 0;
  }
}

/// tokens, targets, w -> evalLoss.
inline void evaluateFew(void *const *b) {
  *floats(b, 3) = 0;
  for (int64_t i = 0; i < kFew; ++i)
    *floats(b, 3) += floats(b, 2)[ints(b, 0)[i]] * float(ints(b, 1)[i]);
}

/// sampleTokens, position, w -> logits.
inline void sampleFew(void *const *b) {
  for (int64_t i = 0; i < kFew; ++i)
    floats(b, 3)[i] = floats(b, 2)[i] * float(ints(b, 0)[*ints(b, 1)]);
}

/// By the names under which a GPU has them.
struct FewKernel {
  const char *name;
  FewFn fn;
  int numBuffers;
};
constexpr FewKernel kFewKernels[] = {{"look", look, 4},
                                     {"weigh", weigh, 5},
                                     {"add_up", addUp, 2},
                                     {"descend", descend, 5},
                                     {"evaluate", evaluateFew, 4},
                                     {"sample", sampleFew, 4}};
enum { kLook, kWeigh, kAddUp, kDescend, kEvaluate, kSample, kNumFewKernels };

} // namespace reprise::runtime::test

#endif // REPRISE_TEST_UNIT_RUNTIME_DEVICEKERNELS_H
