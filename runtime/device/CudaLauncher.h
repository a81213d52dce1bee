//===- CudaLauncher.h - Launches on a GPU -----------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DEVICE_CUDALAUNCHER_H
#define REPRISE_RUNTIME_DEVICE_CUDALAUNCHER_H

#include "CudaGemms.h"
#include "CudaKernels.h"
#include "CudaRankMemory.h"
#include "LaunchTimes.h"
#include "Nvtx.h"

namespace reprise::runtime {

struct CudaSettings {
  bool graph = true;     ///< Replay schedules as CUDA graphs.
  bool sync = false;     ///< Wait for each launch, without a graph.
  bool tf32 = false;     ///< Of f32 GEMMs.
  bool autotune = false; ///< Of GEMMs.
  bool nvtx = false;     ///< A range around each launch, without a graph.
  bool ncclSums = false; ///< NCCL sums f32 over all ranks.
};

/// Launches that run one after another.
struct CudaPart {
  const RepriseLaunch *launches = nullptr;
  int count = 0;
  LaunchTimes *times = nullptr; ///< Null unless it is timed.
  int64_t first = 0;            ///< The number of its first launch.
  /// Whether what runs once a step runs: in the last micro-batch.
  bool isLast = true;
};

/// Begins launches of all kinds on a GPU's stream: kernels, GEMMs, and what
/// ranks do together.
class CudaLauncher {
public:
  CudaLauncher(const RepriseModel &model, Gpu &gpu, Transport &ranks,
               const CudaSettings &settings)
      : model(model), gpu(gpu), ranks(ranks), settings(settings),
        kernels(model, gpu, ranks.rank()), gemms(model, gpu),
        memory(model, gpu, settings.ncclSums) {}
  CudaLauncher(const CudaLauncher &) = delete;
  CudaLauncher &operator=(const CudaLauncher &) = delete;
  ~CudaLauncher();

  /// Connects the GPUs of ranks.
  bool connect(Error &error);
  /// Loads the kernels, after `profile` has got what times all launches.
  bool load(bool profile, Error &error);
  /// Chooses the algorithms of GEMMs.
  bool chooseGemms(Error &error);

  RankMemory &rankMemory() { return memory; }
  /// What stages send and receive in launches.
  CudaLanes &parcels() { return memory.parcels(); }
  /// Begins the launches of `part`, which belongs to what an error calls `of`.
  bool run(const CudaPart &part, const char *of, const CudaInputs &inputs,
           int64_t microBatch, Error &error);
  /// Waits; what failed is one of the launches that were not waited for.
  bool wait(const char *of, Error &error) const;

  /// Behind all that ranks do together; they call it together.
  bool disconnect(Error &error) { return memory.disconnect(error); }
  /// What other ranks no longer take part in has no end.
  void giveUp() { memory.giveUp(); }
  /// To other ranks, begun or captured.
  int64_t begunBytes() const { return memory.begunBytes(); }
  /// Appends what the launches run on.
  void describe(char *text, size_t size) const;

private:
  bool takeMarks(Error &error);
  bool launch(const RepriseLaunch &launch, const CudaInputs &inputs,
              int64_t microBatch, Error &error);
  bool launchCollective(const RepriseLaunch &launch, Error &error);
  bool waitFor(const RepriseLaunch &launch, Error &error) const;
  bool mark(const CudaPart &part, int number, const char *what, Error &error);
  bool readTimes(const CudaPart &part, const char *of, double begin,
                 Error &error);

  const RepriseModel &model;
  Gpu &gpu;
  Transport &ranks;
  const CudaSettings settings;
  CudaKernels kernels;
  CudaGemms gemms;
  CudaRankMemory memory;
  Nvtx nvtx;
  List<void *> addresses; ///< Of a launch's buffers, if ranks meet in it.
  List<CudaEvent> marks;  ///< Before each launch, and at the end.
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DEVICE_CUDALAUNCHER_H
