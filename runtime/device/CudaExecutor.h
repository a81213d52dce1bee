//===- CudaExecutor.h - Runs the schedules of a model on a GPU --*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DEVICE_CUDAEXECUTOR_H
#define REPRISE_RUNTIME_DEVICE_CUDAEXECUTOR_H

#include "Arena.h"
#include "CudaInputs.h"
#include "CudaProducts.h"
#include "CudaRankMemory.h"
#include "Nvtx.h"
#include "runtime/base/Program.h"
#include "runtime/show/Metrics.h"

namespace reprise::runtime {

/// Bytes of a GPU that are in use.
struct DeviceMemory {
  int64_t plan;      ///< What was asked for, at once.
  int64_t allocated; ///< What that took.
  int64_t context;   ///< What there was before, other programs included.
  int64_t network;   ///< What connecting ranks has taken.
  int64_t kernels;   ///< Since then until they are loaded.
  int64_t library;   ///< Since then until the products are known.
  int64_t other;     ///< Since then: graphs, and what drivers load late.
};

struct CudaSettings {
  bool graph = true;     ///< Replay schedules as CUDA graphs.
  bool sync = false;     ///< Wait for each launch, without a graph.
  bool tf32 = false;     ///< Of f32 products.
  bool autotune = false; ///< Of products.
  bool nvtx = false;     ///< A range around each launch, without a graph.
  bool profile = false;  ///< Time each launch, without a graph.
};

/// The schedules on a GPU. What the host begins at a time, a whole step as a
/// rule, is captured into a CUDA graph when it first runs, and the graph is
/// replayed from then on. What changes from step to step is read from memory.
/// All run on one stream, so nothing has to be waited for but what the host
/// reads: loss and norm, what goes forward alone, and copies of states.
class CudaExecutor {
public:
  /// \param ranks  as many as the model is for.
  CudaExecutor(const RepriseModel &model, CudaDevice &device, Arena &arena,
               Transport &ranks)
      : model(model), device(device), arena(arena), ranks(ranks),
        products(model, device), inputs(model, device), memory(model, device) {}
  CudaExecutor(const CudaExecutor &) = delete;
  CudaExecutor &operator=(const CudaExecutor &) = delete;
  ~CudaExecutor();

  /// Connects the GPUs of ranks, and takes this one's memory: the plan.
  bool allocate(Error &error);
  /// Loads kernels and chooses the algorithms of products. `numNorm`: the
  /// launches of the update up to the norm of the gradients.
  bool prepare(const CudaSettings &settings, int numNorm, Error &error);

  /// Inputs of the micro-batches that run next.
  CudaInputs &nextInputs() { return inputs; }

  /// As those of Executor. What they read of the arena they take from its copy
  /// on the host, and what the host reads they put there.
  bool beginStep(Error &error);
  bool runTurn(const Turn &turn, int end, Error &error);
  bool endStep(Error &error);
  bool runNorm(Error &error);
  bool runOptimizer(Error &error);
  bool clearGradients(Error &error);
  bool runEvaluate(Error &error);
  bool runSample(Error &error);
  /// Waits for all of it.
  bool finish(Error &error);
  /// Behind all that ranks do together; they call it together.
  bool disconnect(Error &error) { return memory.disconnect(error); }

  /// Seconds of each launch, by its number (`forEachLaunch`); null unless
  /// profiling.
  const double *profile() const { return seconds; }
  /// Begins anew with them.
  void forgetProfile();
  /// The GPU, its libraries, and what the kernels were loaded from.
  void describe(char *text, size_t size) const;
  /// What the GPU's memory holds at the moment. False if the driver does not
  /// say.
  bool measure(DeviceMemory &memory) const;
  /// To other ranks, so far.
  int64_t sentBytes() const { return taken.sent; }
  /// Of the step that ended last.
  const DeviceTimes &times() const { return stepTimes; }

private:
  /// Launches that run one after another.
  struct Part {
    const RepriseLaunch *launches;
    int count;
    double *seconds; ///< Null unless it is timed.
  };
  /// What the host begins at a time.
  struct Sequence {
    const char *name;
    Part micro;          ///< Runs for each micro-batch whose inputs are there.
    Part then;           ///< Runs once.
    int first, numParts; ///< Of `parts`, which run between these two, once.
    bool hasNorm; ///< `then` reads scalars of the host, and makes some for it.
    CudaGraphExec graph;
    bool isTouched;
    int64_t sentBytes; ///< To other ranks, each time that the graph runs.
  };
  /// What is read and written once a step, in pinned memory.
  struct Mailbox {
    float lr, biasCorrection1, biasCorrection2, loss, gradNorm, evalLoss;
  };

  bool loadKernels(Error &error);
  bool load(const void *image, const char *what, Error &error);
  Part partOf(int schedule) const;
  bool takeTables(int numNorm, Error &error);
  bool takeTurns(Error &error);
  bool takeSequence(const Turn &turn, int end, Error &error);
  Sequence *findSequence(const Turn &turn, int end);
  bool takeMarks(Error &error);
  bool check(CudaResult code, const char *what, Error &error) const {
    return device.check(code, what, error);
  }
  bool copyIn(const RepriseBuffer &buffer, const void *from, Error &error);
  bool copyOut(void *to, const RepriseBuffer &buffer, Error &error);
  void touch(Sequence &sequence);
  bool run(Sequence &sequence, Error &error);
  bool capture(Sequence &sequence, Error &error);
  bool launchAll(const Sequence &sequence, Error &error);
  bool launchMicros(const Sequence &sequence, Error &error);
  int64_t countLaunches(const Sequence &sequence) const;
  bool launchPart(const Sequence &sequence, const Part &part,
                  int64_t microBatch, Error &error);
  bool launch(const RepriseLaunch &launch, int64_t microBatch, Error &error);
  bool launchCollective(const RepriseLaunch &launch, Error &error);
  bool waitFor(const RepriseLaunch &launch, Error &error);
  bool readTimes(const Sequence &sequence, const Part &part, Error &error);
  bool wait(const Sequence &sequence, Error &error);
  void takeScalars();
  bool takeResults(const Sequence &sequence, Error &error);
  int64_t usedBytes() const;
  CudaAddress at(const RepriseBuffer &buffer) const {
    return device.base() + CudaAddress(buffer.offset);
  }

  const RepriseModel &model;
  CudaDevice &device;
  Arena &arena;
  Transport &ranks;
  CudaProducts products;
  CudaInputs inputs;
  CudaRankMemory memory;
  Nvtx nvtx;
  CudaSettings settings;
  CudaModule module = nullptr;
  char imageName[64] = "";
  List<CudaFunction> functions; ///< Of `model.kernels`.
  List<CudaAddress> parameters; ///< Of the launch that is being begun.
  List<void *> addresses;       ///< Of its buffers, if ranks meet in it.
  List<CudaEvent> marks;        ///< Before each launch, and at the end.
  double *seconds = nullptr;
  List<Part> parts;
  List<Sequence> turns; ///< Those of a step; equal ones are there once.
  Sequence norm = {}, optimizer = {}, evaluate = {}, sample = {};
  Mailbox *mailbox = nullptr;
  CudaEvent begun[2] = {}; ///< Of this step and of the one before, by turns.
  CudaEvent done = nullptr;
  int64_t numBegun = 0;
  DeviceTimes stepTimes = {};
  /// In use before kernels were loaded; what was taken since; what was sent.
  struct {
    int64_t before = 0, kernels = 0, library = 0, network = 0, sent = 0;
  } taken;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DEVICE_CUDAEXECUTOR_H
