//===- CpuDevice.h - Schedules on the CPU -----------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DEVICE_CPUDEVICE_H
#define REPRISE_RUNTIME_DEVICE_CPUDEVICE_H

#include "Arena.h"
#include "Device.h"
#include "runtime/base/List.h"
#include "runtime/base/ThreadPool.h"
#include "runtime/compute/Cpu.h"
#include "runtime/compute/GemmAmx.h"
#include "runtime/compute/MachineName.h"
#include "runtime/transport/Collectives.h"

namespace reprise::runtime {

/// Inputs that are written where launches read them.
class HostInputs final : public DeviceInputs {
public:
  HostInputs(const RepriseModel &model, const Arena &arena)
      : model(model), arena(arena) {}

  int64_t count() const override {
    return model.numInputs ? model.numInputs : 1;
  }
  bool begin(Error &) override { return true; }
  MicroBatch at(int64_t i) const override;
  bool send(Error &) override { return true; }

private:
  const RepriseModel &model;
  const Arena &arena;
};

/// Executes launches in order on the arena's buffers, one at a time, each with
/// all threads. They can fail where ranks do something together.
class CpuDevice final : public Device {
public:
  /// \param ranks  as many as the model is for.
  CpuDevice(const RepriseModel &model, Arena &arena, ThreadPool &pool,
            Transport &ranks, Processor processor)
      : Device(model), arena(arena), pool(pool), ranks(ranks), memory(ranks),
        processor(processor), inputs(model, arena), launchTimes(model) {}
  ~CpuDevice();

  bool allocate(Error &error) override;
  bool prepare(bool profile, int numNorm, Error &error) override;
  DeviceInputs &nextInputs() override { return inputs; }
  bool isAhead() const override { return false; }
  bool beginStep(Error &error) override;
  bool runTurn(const Turn &turn, int end, Error &error) override;
  bool endStep(Error &) override { return true; }
  bool runNorm(Error &error) override;
  bool runOptimizer(Error &error) override;
  bool clearGradients(Error &error) override;
  bool runForward(Forward what, Error &error) override;
  bool finish(Error &) override { return true; }
  RankMemory &rankMemory() override { return memory; }
  void *addressOf(const RepriseBuffer &buffer) const override {
    return arena.at<void>(buffer);
  }
  bool disconnect(Error &) override { return true; }
  void describe(char *text, size_t size) const override;
  DeviceFacts facts() const override;
  LaunchTimes &profile() override { return launchTimes; }

private:
  bool chooseKernels(Error &error);
  bool takeTables(Error &error);
  bool runShares(int schedule, Error &error);
  bool runPart(int schedule, int begin, int end, Error &error);
  bool runLaunch(const RepriseLaunch &launch, Error &error);
  bool runGemm(const RepriseLaunch &launch, void **buffers, Error &error);
  void runKernel(const RepriseLaunch &launch, void **buffers, int64_t bytes);

  Arena &arena;
  ThreadPool &pool;
  Transport &ranks;
  HostMemory memory;
  const Processor processor;
  HostInputs inputs;
  LaunchTimes launchTimes;
  MachineName name = {};
  MicroKernels chosen, chosenForBF16;
  AmxScratches scratches;
  int numNorm = 0; ///< Launches of the update up to that of the norm.
  void **addresses = nullptr; ///< Of every entry of `model.buffers`.
  /// Those of the model, with the rank's numbers in place of axes.
  List<int64_t> ids;
  /// Whether a micro-batch is the last one of its step: only then squares of
  /// gradients are those of the sums, and are read, and gradients are summed
  /// over ranks.
  bool isLast = false;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DEVICE_CPUDEVICE_H
