//===- CudaDevice.h - Schedules on a GPU ------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DEVICE_CUDADEVICE_H
#define REPRISE_RUNTIME_DEVICE_CUDADEVICE_H

#include "Arena.h"
#include "CudaSequences.h"
#include "Device.h"

namespace reprise::runtime {

/// The schedules on a GPU, as sequences of launches. All run on one stream, so
/// nothing has to be waited for but what the host reads: loss and norm, what
/// goes forward alone, and copies of states.
class CudaDevice final : public Device {
public:
  /// \param ranks  as many as the model is for.
  CudaDevice(const RepriseModel &model, Gpu &gpu, Arena &arena,
             Transport &ranks, const CudaSettings &settings)
      : Device(model), gpu(gpu), arena(arena), settings(settings),
        inputs(model, gpu), launcher(model, gpu, ranks, settings),
        mailbox(model, gpu, arena),
        sequences(model, gpu, arena, launcher, inputs, mailbox),
        launchTimes(model) {}
  ~CudaDevice();

  bool allocate(Error &error) override;
  bool prepare(bool profile, int numNorm, Error &error) override;
  DeviceInputs &nextInputs() override { return inputs; }
  bool isAhead() const override { return true; }
  bool beginStep(Error &error) override;
  bool runTurn(const Turn &turn, int end, Error &error) override;
  bool endStep(Error &error) override;
  bool runNorm(Error &error) override;
  bool runOptimizer(Error &error) override;
  bool clearGradients(Error &error) override;
  bool runForward(Forward what, Error &error) override;
  bool finish(Error &error) override;
  RankMemory &rankMemory() override { return launcher.rankMemory(); }
  void *addressOf(const RepriseBuffer &buffer) const override {
    return reinterpret_cast<void *>(gpu.at(buffer));
  }
  bool disconnect(Error &error) override;
  /// The GPU, its libraries, and what the kernels were loaded from.
  void describe(char *text, size_t size) const override {
    launcher.describe(text, size);
  }
  DeviceFacts facts() const override;
  LaunchTimes &profile() override { return launchTimes; }
  DeviceTimes times() const override { return stepTimes; }
  bool measure(DeviceMemory &memory) const override;
  int64_t sentBytes() const override { return sequences.sentBytes(); }

private:
  int64_t usedBytes() const;
  bool clear(const RepriseBuffer &buffer, const char *what, Error &error);
  bool takeResults(Error &error);
  bool sendIfHere(const RepriseBuffer &buffer, Error &error);
  bool sampleForward(Error &error);

  Gpu &gpu;
  Arena &arena;
  const CudaSettings settings;
  CudaInputs inputs;
  CudaLauncher launcher;
  CudaMailbox mailbox;
  CudaSequences sequences;
  LaunchTimes launchTimes;
  CudaEvent begun[2] = {}; ///< Of this step and of the one before, by turns.
  CudaEvent done = nullptr;
  int64_t numBegun = 0;
  DeviceTimes stepTimes = {};
  /// In use before kernels were loaded; what was taken since.
  struct {
    int64_t before = 0, kernels = 0, library = 0, network = 0;
  } taken;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DEVICE_CUDADEVICE_H
