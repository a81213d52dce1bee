//===- CudaExecutor.h - Runs the schedules of a model on a GPU --*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_CUDAEXECUTOR_H
#define REPRISE_RUNTIME_CUDAEXECUTOR_H

#include "Arena.h"
#include "CudaProducts.h"
#include "Nvtx.h"

namespace reprise::runtime {

/// Bytes of a GPU.
struct DeviceMemory {
  int64_t plan, inputs; ///< In the one allocation.
  int64_t context;      ///< What there was before, other programs included.
  int64_t other;        ///< Kernels, graphs, the library.
};

struct CudaSettings {
  bool graph = true;     ///< Replay schedules as CUDA graphs.
  bool sync = false;     ///< Wait for each launch, without a graph.
  bool tf32 = false;     ///< Of f32 products.
  bool autotune = false; ///< Of products.
  bool nvtx = false;     ///< A range around each launch, without a graph.
  bool profile = false;  ///< Time each launch, without a graph.
};

/// The schedules on a GPU. The launches of each are captured into a CUDA graph
/// when it first runs, and the graph is replayed from then on. All run on one
/// stream, so nothing has to be waited for but what the host reads: loss and
/// norm before the optimizer, what goes forward alone, and copies of states.
///
/// Tokens of the next micro-batch go to a place of their own beside the plan,
/// on a second stream while the one before is still worked on.
class CudaExecutor {
public:
  CudaExecutor(const RepriseModel &model, CudaDevice &device, Arena &arena)
      : model(model), device(device), arena(arena), products(model, device) {}
  CudaExecutor(const CudaExecutor &) = delete;
  CudaExecutor &operator=(const CudaExecutor &) = delete;
  ~CudaExecutor();

  /// Takes the GPU's memory: the plan, and two places for inputs.
  bool allocate(Error &error);
  /// Loads kernels and chooses the algorithms of products. `numNorm`: the
  /// launches of `update` up to the norm of the gradients.
  bool prepare(const CudaSettings &settings, int numNorm, Error &error);

  /// As those of Executor. What they read of the arena they take from its copy
  /// on the host, and what the host reads they put there.
  bool beginStep(Error &error);
  bool runMicro(Error &error);
  bool runNorm(Error &error);
  bool runOptimizer(Error &error);
  bool clearGradients(Error &error);
  bool runEvaluate(Error &error);
  bool runSample(Error &error);
  /// Waits for all of it.
  bool finish(Error &error);

  /// Seconds of each launch, first `micro`, then `update`; null unless
  /// profiling.
  const double *profile() const { return seconds; }
  /// Of the memory that `allocate` took, what is not the plan.
  int64_t stagingBytes() const { return 2 * slotBytes; }
  /// The GPU, its libraries, and what the kernels were loaded from.
  void describe(char *text, size_t size) const;
  /// What the GPU's memory holds at the moment. False if the driver does not
  /// say.
  bool measure(DeviceMemory &memory) const;

private:
  /// Launches that run one after another.
  struct Sequence {
    const char *name;
    const RepriseLaunch *launches;
    int count;
    double *seconds; ///< Null unless it is timed.
    CudaGraphExec graph;
  };
  /// Where the inputs of a micro-batch wait.
  struct Slot {
    char *host; ///< Pinned.
    CudaAddress device;
    CudaEvent copied;   ///< From host to device.
    CudaEvent consumed; ///< From there to the plan.
  };
  /// What is read and written once a step, in pinned memory.
  struct Mailbox {
    float lr, biasCorrection1, biasCorrection2, loss, gradNorm, evalLoss;
  };

  bool loadKernels(Error &error);
  bool load(const void *image, const char *what, Error &error);
  bool check(CudaResult code, const char *what, Error &error) const {
    return device.check(code, what, error);
  }
  bool copyIn(const RepriseBuffer &buffer, const void *from, Error &error);
  bool copyOut(void *to, const RepriseBuffer &buffer, Error &error);
  bool takeInputs(Error &error);
  bool run(Sequence &sequence, Error &error);
  bool capture(Sequence &sequence, Error &error);
  bool launchAll(const Sequence &sequence, Error &error);
  bool launch(const RepriseLaunch &launch, Error &error);
  bool waitFor(const RepriseLaunch &launch, Error &error);
  bool readTimes(const Sequence &sequence, Error &error);
  bool wait(const Sequence &sequence, Error &error);
  CudaAddress at(const RepriseBuffer &buffer) const {
    return device.base() + CudaAddress(buffer.offset);
  }

  const RepriseModel &model;
  CudaDevice &device;
  Arena &arena;
  CudaProducts products;
  Nvtx nvtx;
  CudaSettings settings;
  CudaModule module = nullptr;
  char imageName[64] = "";
  List<CudaFunction> functions; ///< Of `model.kernels`.
  List<CudaAddress> parameters; ///< Of the launch that is being begun.
  List<CudaEvent> marks;        ///< Before each launch, and at the end.
  double *seconds = nullptr;
  Sequence micro = {}, norm = {}, optimizer = {}, evaluate = {}, sample = {};
  CudaStream inputStream = nullptr;
  Slot slots[2] = {};
  int64_t slotBytes = 0, numMicro = 0;
  Mailbox *mailbox = nullptr;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_CUDAEXECUTOR_H
