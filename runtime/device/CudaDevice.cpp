//===- CudaDevice.cpp - Schedules on a GPU --------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaDevice.h"

#include "Init.h"
#include "Peak.h"
#include "runtime/base/Clock.h"

using namespace reprise::runtime;

//===----------------------------------------------------------------------===//
// Start and end
//===----------------------------------------------------------------------===//

bool CudaDevice::allocate(Error &error) {
  const int64_t before = usedBytes();
  if (!launcher.connect(error))
    return false;
  taken.network = usedBytes() - before;
  if (!gpu.allocate(model.arenaBytes, error))
    return false;
  taken.before = usedBytes();
  if (!arena.mapFor(gpu, model.arenaBytes, error) || !mailbox.allocate(error))
    return false;
  for (CudaEvent *event : {&begun[0], &begun[1], &done})
    if (!gpu.check(gpu.driver().eventCreate(event, 0), "cuEventCreate", error))
      return false;
  return inputs.prepare(error);
}

bool CudaDevice::prepare(bool profile, int numNorm, Error &error) {
  const bool hasGraphs =
      settings.graph && !settings.sync && !settings.nvtx && !profile;
  if ((profile && !launchTimes.start(error)) ||
      !sequences.start(hasGraphs, numNorm, profile ? &launchTimes : nullptr,
                       error) ||
      !launcher.load(profile, error))
    return false;
  taken.kernels = usedBytes() - taken.before;
  if (!launcher.chooseGemms(error) || !finish(error))
    return false;
  taken.library = usedBytes() - taken.before - taken.kernels;
  return true;
}

DeviceFacts CudaDevice::facts() const {
  return {gpu.info().name, nullptr,
          dataSheetFlops(gpu.info().major, gpu.info().minor,
                         hasGemmsOfBF16(model), settings.tf32)};
}

/// -1 if the driver does not say.
int64_t CudaDevice::usedBytes() const {
  size_t free = 0, total = 0;
  Error unknown;
  return gpu.memoryInfo(free, total, unknown) ? int64_t(total - free) : -1;
}

bool CudaDevice::measure(DeviceMemory &memory) const {
  int64_t used = usedBytes();
  memory = {model.arenaBytes,
            gpu.allocatedBytes(),
            gpu.info().contextBytes,
            taken.network,
            taken.kernels,
            taken.library,
            used - taken.before - taken.kernels - taken.library};
  return used >= 0;
}

bool CudaDevice::finish(Error &error) {
  return gpu.synchronize(
      "a launch before the end failed; --cuda-sync names which one", error);
}

bool CudaDevice::disconnect(Error &error) {
  sequences.forget();
  return launcher.disconnect(error);
}

CudaDevice::~CudaDevice() {
  sequences.forget();
  launcher.giveUp();
  gpu.driver().streamSynchronize(gpu.stream());
  for (CudaEvent event : {begun[0], begun[1], done})
    if (event)
      gpu.driver().eventDestroy(event);
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

bool CudaDevice::clear(const RepriseBuffer &buffer, const char *what,
                       Error &error) {
  return gpu.check(gpu.driver().fillBytes(gpu.at(buffer), 0,
                                          size_t(buffer.bytes), gpu.stream()),
                   what, error);
}

/// Whether a state is here and is of this kind.
static bool isHere(const RepriseState &state, int32_t kind) {
  return state.kind == kind && !state.isElsewhere;
}

bool CudaDevice::beginStep(Error &error) {
  stepTimes = {};
  launchTimes.beginStep();
  double start = now();
  CudaEvent event = begun[++numBegun % 2];
  bool good = gpu.check(gpu.driver().eventRecord(event, gpu.stream()),
                        "begin of a step", error) &&
              clear(model.loss, "loss of a new step", error);
  for (int i = 0; i < model.numStates && good; ++i)
    if (isHere(model.states[i], REPRISE_STATE_MEASURE))
      good = clear(model.states[i].buffer, model.states[i].name, error);
  stepTimes.host += now() - start;
  return good;
}

bool CudaDevice::runTurn(const Turn &turn, int end, Error &error) {
  double start = now();
  CudaSequence &sequence = sequences.of(turn, end);
  if (sequence.hasNorm)
    mailbox.take();
  bool good = inputs.take(error) && sequences.run(sequence, error) &&
              (!sequence.hasNorm ||
               gpu.check(gpu.driver().eventRecord(done, gpu.stream()),
                         "end of a step", error));
  stepTimes.host += now() - start;
  return good;
}

/// What was waited for, to the arena.
bool CudaDevice::takeResults(Error &error) {
  mailbox.give();
  for (int i = 0; i < model.numStates; ++i)
    if (isHere(model.states[i], REPRISE_STATE_MEASURE) &&
        !arena.download(model.states[i].buffer, error))
      return false;
  return true;
}

bool CudaDevice::endStep(Error &error) {
  if (!launcher.wait("the step", error) || !takeResults(error))
    return false;
  CudaEvent before = begun[(numBegun - 1) % 2], own = begun[numBegun % 2];
  auto elapsed = [&](double &to, CudaEvent from, CudaEvent until) {
    float milliseconds = 0;
    bool good = gpu.check(gpu.driver().eventElapsed(&milliseconds, from, until),
                          "time of a step", error);
    to = double(milliseconds) * 1e-3;
    return good;
  };
  return elapsed(stepTimes.span, own, done) &&
         (numBegun == 1 || elapsed(stepTimes.interval, before, own));
}

bool CudaDevice::runNorm(Error &error) {
  mailbox.take();
  return sequences.run(sequences.norm, error) &&
         launcher.wait(sequences.norm.name, error) && takeResults(error);
}

bool CudaDevice::runOptimizer(Error &error) {
  return sequences.run(sequences.optimizer, error);
}

bool CudaDevice::clearGradients(Error &error) {
  for (int i = 0; i < model.numStates; ++i) {
    const RepriseState &state = model.states[i];
    if (isHere(state, REPRISE_STATE_GRADIENT) && outlivesStep(state) &&
        !clear(state.buffer, state.name, error))
      return false;
  }
  return true;
}

/// What comes in on a stage, and out of it, may be on others.
bool CudaDevice::sendIfHere(const RepriseBuffer &buffer, Error &error) {
  return buffer.bytes == 0 || arena.upload(buffer, error);
}

bool CudaDevice::sampleForward(Error &error) {
  return sendIfHere(model.sampleTokens, error) &&
         sendIfHere(model.position, error) &&
         sequences.run(sequences.sample, error) &&
         launcher.wait(sequences.sample.name, error) &&
         (model.logits.bytes == 0 || arena.download(model.logits, error));
}

bool CudaDevice::runForward(Forward what, Error &error) {
  if (what == Forward::Sample)
    return sampleForward(error);
  const bool hasLoss = model.evalLoss.bytes > 0;
  if (!arena.upload(model.tokens, error) ||
      !arena.upload(model.targets, error) ||
      !sequences.run(sequences.evaluate, error) ||
      (hasLoss && !mailbox.fetchEvalLoss(error)) ||
      !launcher.wait(sequences.evaluate.name, error))
    return false;
  if (hasLoss)
    mailbox.giveEvalLoss();
  return true;
}
