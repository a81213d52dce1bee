//===- CudaSequences.h - What the host begins at a time ---------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DEVICE_CUDASEQUENCES_H
#define REPRISE_RUNTIME_DEVICE_CUDASEQUENCES_H

#include "Arena.h"
#include "CudaLauncher.h"
#include "Device.h"

namespace reprise::runtime {

/// The scalars that a step reads of the host, and makes for it, in pinned
/// memory, from where and to where they are copied on the GPU's stream.
class CudaMailbox {
public:
  CudaMailbox(const RepriseModel &model, const Gpu &gpu, const Arena &arena)
      : model(model), gpu(gpu), arena(arena) {}
  CudaMailbox(const CudaMailbox &) = delete;
  CudaMailbox &operator=(const CudaMailbox &) = delete;
  ~CudaMailbox();

  bool allocate(Error &error);
  /// From the arena. The step before has been waited for: nobody reads the old
  /// values any more.
  void take();
  /// On the stream: to the GPU, and back from it.
  bool send(Error &error) const;
  bool fetch(Error &error) const;
  bool fetchEvalLoss(Error &error) const;
  /// To the arena, when what was fetched is there.
  void give() const;
  void giveEvalLoss() const;

private:
  bool copyIn(const RepriseBuffer &buffer, const float &from,
              Error &error) const;
  bool copyOut(float &to, const RepriseBuffer &buffer, Error &error) const;

  struct Scalars {
    float lr, biasCorrection1, biasCorrection2, loss, gradNorm, evalLoss;
  };
  const RepriseModel &model;
  const Gpu &gpu;
  const Arena &arena;
  Scalars *scalars = nullptr;
};

/// What the host begins at a time.
struct CudaSequence {
  const char *name = "";
  /// Runs for each micro-batch that is there; that of a stage has all of them.
  CudaPart micro;
  CudaPart then;               ///< Runs once.
  int first = 0, numParts = 0; ///< Of those between the two, which run once.
  bool isLast = false;         ///< Of `CudaSequences::isLast`.
  bool hasNorm = false; ///< `then` reads scalars of the host, and makes some.
  CudaGraphExec graph = nullptr;
  bool isTouched = false;
  int64_t sentBytes = 0; ///< To other ranks, each time that the graph runs.
};

/// The sequences of a model. Each, a whole step as a rule, is captured into a
/// CUDA graph when it first runs, and the graph is replayed from then on. What
/// changes from step to step is read from memory.
class CudaSequences {
public:
  CudaSequences(const RepriseModel &model, const Gpu &gpu, Arena &arena,
                CudaLauncher &launcher, const CudaInputs &inputs,
                const CudaMailbox &mailbox)
      : model(model), gpu(gpu), arena(arena), launcher(launcher),
        inputs(inputs), mailbox(mailbox) {}
  CudaSequences(const CudaSequences &) = delete;
  CudaSequences &operator=(const CudaSequences &) = delete;
  ~CudaSequences() { forget(); }

  /// Finds all of them. `hasGraphs`: whether they are captured. `numNorm`: the
  /// launches of the update up to the norm of the gradients. `times`: of each
  /// launch, by its number, or null.
  bool start(bool hasGraphs, int numNorm, LaunchTimes *times, Error &error);

  /// That of the entries of `turn` up to `end`; there is one for each turn, and
  /// for the last one without the update.
  CudaSequence &of(const Turn &turn, int end) { return *find(turn, end); }
  CudaSequence norm, optimizer, evaluate, sample;

  /// Destroys all graphs, which may still run; they are made anew if need be.
  /// NCCL ends nothing of which there is a part in a graph.
  void forget();

  /// Begins all of it.
  bool run(CudaSequence &sequence, Error &error);
  /// To other ranks, so far.
  int64_t sentBytes() const { return numSent; }

private:
  CudaPart partOf(int schedule, LaunchTimes *times) const;
  bool takeTurns(LaunchTimes *times, Error &error);
  bool takeSequence(const Turn &turn, int end, LaunchTimes *times,
                    Error &error);
  /// Whether the entries up to the turn's end have the last micro-batch of a
  /// step, and that one runs launches which the others leave out.
  bool isLast(const Turn &turn) const;
  CudaSequence *find(const Turn &turn, int end);
  void touch(CudaSequence &sequence);
  int64_t runsOfMicro() const;
  bool beginParcels(const CudaSequence &sequence, Error &error);
  int64_t countLaunches(const CudaSequence &sequence) const;
  bool capture(CudaSequence &sequence, Error &error);
  bool launchAll(const CudaSequence &sequence, Error &error);
  bool launchMicros(const CudaSequence &sequence, Error &error);

  const RepriseModel &model;
  const Gpu &gpu;
  Arena &arena;
  CudaLauncher &launcher;
  const CudaInputs &inputs;
  const CudaMailbox &mailbox;
  bool hasGraphs = true;
  List<CudaPart> parts;
  List<CudaSequence> turns; ///< Those of a step; equal ones are there once.
  int64_t numSent = 0;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DEVICE_CUDASEQUENCES_H
