//===- Simulator.h - Device kernels on the host -------------------*- C -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The library libRepriseSimulator.so runs the kernels of a shared object that
// `reprise-simulate` made: every thread of a block is a fiber, the blocks of a
// grid run one after another on the calling thread. Errors are texts that stay
// until the next call; no error is a null pointer.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TEST_SIMULATOR_SIMULATOR_H
#define REPRISE_TEST_SIMULATOR_SIMULATOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// When a cp.async writes shared memory: at the last moment that is legal,
/// within the wait, or at once. A missing wait shows in the first, a copy into
/// a buffer that is still read in the second.
enum SimulatorLanding { SIMULATOR_LATE = 0, SIMULATOR_AT_ONCE = 1 };

/// In what order blocks run, and the ready threads of one.
enum SimulatorOrder {
  SIMULATOR_ASCENDING = 0,
  SIMULATOR_DESCENDING = 1,
  SIMULATOR_SHUFFLED = 2 ///< by `seed`
};

struct SimulatorOptions {
  enum SimulatorLanding landing;
  enum SimulatorOrder order;
  uint32_t seed;
};

/// The options of all later launches. At first they come from the environment:
/// REPRISE_SIMULATOR_LANDING=late|once and
/// REPRISE_SIMULATOR_ORDER=ascending|descending|SEED; without it, zeros.
void simulatorSetOptions(const struct SimulatorOptions *options);

/// Opens a shared object of kernels and adds its kernels to those known. One of
/// the same name replaces an older one.
const char *simulatorLoad(const char *path);

/// Whether a kernel of that name is known.
int simulatorHas(const char *kernel);

/// Runs `kernel` to its end. `params` is what CU_LAUNCH_PARAM_BUFFER_POINTER
/// would have: the parameters one after another, each at its alignment.
/// `sharedBytes` is the dynamic part of the shared memory. An error names
/// kernel, block and thread.
const char *simulatorLaunch(const char *kernel, const uint32_t grid[3],
                            const uint32_t block[3], size_t sharedBytes,
                            const void *params, size_t bytes);

/// Device memory: aligned to 256 bytes, every byte 0xFF (so that each f32 and
/// each bf16 is NaN), and with pages that must not be touched before it and
/// after its last multiple of 256 bytes. Null if there is not so much.
void *simulatorAllocate(size_t bytes);
void simulatorFree(void *memory);

/// What was executed since the program started, by all launches.
struct SimulatorCounts {
  uint64_t blocks, switches, barriers, warpOps, matrixOps, copies;
};
struct SimulatorCounts simulatorCounts(void);

#ifdef __cplusplus
}
#endif

#endif // REPRISE_TEST_SIMULATOR_SIMULATOR_H
