//===- RanksRun.h - Ranks that run a test -----------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TEST_UNIT_RUNTIME_RANKSRUN_H
#define REPRISE_TEST_UNIT_RUNTIME_RANKSRUN_H

#include "runtime/transport/Embedded.h"

#include <chrono>
#include <cstdlib>
#include <functional>
#include <gtest/gtest.h>
#include <string>

namespace reprise::runtime::test {

/// Ranks on GPUs that are none: the stand-ins for driver and NCCL, as a test
/// sets them.
class OnStandIns : public testing::Test {
protected:
  void SetUp() override {
    setenv("REPRISE_CUDA_PATH", REPRISE_STANDINS, 1);
    setenv("REPRISE_STANDIN_DEVICES", "8", 1);
  }
  void TearDown() override {
    for (const char *variable :
         {"REPRISE_STANDIN_DEVICES", "REPRISE_STANDIN_NCCL",
          "REPRISE_STANDIN_MULTIPROCESSORS", "REPRISE_STANDIN_NETWORK",
          "REPRISE_STANDIN_STREAMS", "REPRISE_SIMULATOR_LANDING"})
      unsetenv(variable);
  }
};

using Body = std::function<bool(Transport &, Error &)>;

/// What a run of ranks has ended with.
struct Ended {
  int status;
  std::string error;
  double seconds;
};

inline int runBody(Transport &transport, void *context) {
  Error error;
  if ((*static_cast<Body *>(context))(transport, error))
    return 0;
  transport.abort(error.text);
  return 1;
}

/// Runs `body` in each rank, a process of its own.
inline Ended run(RankSettings settings, Body body) {
  auto begin = std::chrono::steady_clock::now();
  Error error;
  int status = runRanks(settings, runBody, &body, error);
  std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - begin;
  return {status, error.text, seconds.count()};
}

inline Ended run(int numRanks, Body body) {
  RankSettings settings;
  settings.numRanks = numRanks;
  return run(settings, std::move(body));
}

} // namespace reprise::runtime::test

#endif // REPRISE_TEST_UNIT_RUNTIME_RANKSRUN_H
