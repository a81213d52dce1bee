//===- CudaSequences.cpp - What the host begins at a time -----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaSequences.h"

#include <cinttypes>

using namespace reprise::runtime;

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

bool CudaMailbox::allocate(Error &error) {
  void *pinned = nullptr;
  if (!gpu.check(gpu.driver().hostAllocate(&pinned, sizeof(Scalars), 0),
                 "cannot take pinned memory for scalars", error))
    return false;
  scalars = static_cast<Scalars *>(pinned);
  return true;
}

CudaMailbox::~CudaMailbox() {
  if (scalars)
    gpu.driver().hostFree(scalars);
}

bool CudaMailbox::copyIn(const RepriseBuffer &buffer, const float &from,
                         Error &error) const {
  return gpu.check(gpu.driver().copyToDevice(gpu.at(buffer), &from,
                                             sizeof(float), gpu.stream()),
                   "copy to the GPU", error);
}

bool CudaMailbox::copyOut(float &to, const RepriseBuffer &buffer,
                          Error &error) const {
  return gpu.check(
      gpu.driver().copyToHost(&to, gpu.at(buffer), sizeof(float), gpu.stream()),
      "copy from the GPU", error);
}

void CudaMailbox::take() {
  scalars->lr = *arena.at<float>(model.lr);
  scalars->biasCorrection1 = *arena.at<float>(model.biasCorrection1);
  scalars->biasCorrection2 = *arena.at<float>(model.biasCorrection2);
}

bool CudaMailbox::send(Error &error) const {
  return copyIn(model.lr, scalars->lr, error) &&
         copyIn(model.biasCorrection1, scalars->biasCorrection1, error) &&
         copyIn(model.biasCorrection2, scalars->biasCorrection2, error);
}

bool CudaMailbox::fetch(Error &error) const {
  return copyOut(scalars->loss, model.loss, error) &&
         copyOut(scalars->gradNorm, model.gradNorm, error);
}

bool CudaMailbox::fetchEvalLoss(Error &error) const {
  return copyOut(scalars->evalLoss, model.evalLoss, error);
}

void CudaMailbox::give() const {
  *arena.at<float>(model.loss) = scalars->loss;
  *arena.at<float>(model.gradNorm) = scalars->gradNorm;
}

void CudaMailbox::giveEvalLoss() const {
  *arena.at<float>(model.evalLoss) = scalars->evalLoss;
}

//===----------------------------------------------------------------------===//
// What there is
//===----------------------------------------------------------------------===//

/// A whole schedule; nothing for -1.
CudaPart CudaSequences::partOf(int schedule, LaunchTimes *times) const {
  if (schedule < 0)
    return {};
  const RepriseSchedule &all = model.schedules[schedule];
  return {all.launches, all.numLaunches, times, firstLaunch(model, schedule)};
}

bool CudaSequences::start(bool captures, int numNorm, LaunchTimes *times,
                          Error &error) {
  hasGraphs = captures;
  CudaPart toNorm = partOf(updateOf(model), times), fromNorm = toNorm;
  toNorm.count = numNorm;
  fromNorm.launches += numNorm;
  fromNorm.count -= numNorm;
  fromNorm.first += numNorm;
  norm.name = "norm";
  norm.then = toNorm;
  norm.hasNorm = true;
  optimizer.name = "optimizer";
  optimizer.then = fromNorm;
  evaluate.name = "validation";
  evaluate.then = partOf(model.evaluate, nullptr);
  sample.name = "sampling";
  sample.then = partOf(model.sample, nullptr);
  return takeTurns(times, error);
}

/// The turns of a step, of which the last one runs with and without the update.
bool CudaSequences::takeTurns(LaunchTimes *times, Error &error) {
  for (int begin = 0; begin < model.numEntries;) {
    Turn turn = turnFrom(model, begin, inputs.count());
    if (turn.once - turn.begin != runsOfMicro())
      return error.set("damaged model: entry %d of a step begins with %d "
                       "micro-batches, which run %" PRId64 " at a time",
                       begin, turn.once - turn.begin, runsOfMicro());
    bool isLast = turn.end == model.numEntries;
    if (!takeSequence(turn, turn.end, times, error) ||
        (isLast && !takeSequence(turn, turn.end - 1, times, error)))
      return false;
    begin = turn.end;
  }
  return true;
}

/// That of the entries of `turn` up to `end`, unless there is one.
bool CudaSequences::takeSequence(const Turn &turn, int end, LaunchTimes *times,
                                 Error &error) {
  if (find(turn, end))
    return true;
  bool hasUpdate = end == model.numEntries;
  CudaSequence sequence;
  sequence.name = hasUpdate ? "the step" : "micro-batches";
  sequence.micro = partOf(model.program[turn.begin].schedule, times);
  sequence.then = hasUpdate ? partOf(updateOf(model), times) : CudaPart{};
  sequence.first = int(parts.size());
  sequence.numParts = end - hasUpdate - turn.once;
  sequence.isLast = isLast(turn);
  sequence.hasNorm = hasUpdate;
  for (int i = turn.once; i < end - hasUpdate; ++i)
    if (!parts.push(partOf(model.program[i].schedule, times)))
      return error.set("no memory left for the parts of a step");
  return turns.push(sequence) ||
         error.set("no memory left for the parts of a step");
}

bool CudaSequences::isLast(const Turn &turn) const {
  for (int i = 0; i < model.numCollectives; ++i)
    if (model.collectives[i].isOnce)
      return turn.end == model.numEntries;
  return false;
}

/// The sequence that runs these entries, or null.
CudaSequence *CudaSequences::find(const Turn &turn, int end) {
  bool hasUpdate = end == model.numEntries;
  for (CudaSequence &sequence : turns) {
    const RepriseEntry &first = model.program[turn.begin];
    bool isSame =
        sequence.micro.launches == model.schedules[first.schedule].launches &&
        sequence.hasNorm == hasUpdate && sequence.isLast == isLast(turn) &&
        sequence.numParts == end - hasUpdate - turn.once;
    for (int i = 0; isSame && i < sequence.numParts; ++i)
      isSame = parts[size_t(sequence.first + i)].launches ==
               model.schedules[model.program[turn.once + i].schedule].launches;
    if (isSame)
      return &sequence;
  }
  return nullptr;
}

void CudaSequences::forget() {
  auto destroy = [&](CudaSequence &sequence) {
    if (sequence.graph)
      gpu.driver().graphExecDestroy(sequence.graph);
    sequence.graph = nullptr;
  };
  for (CudaSequence *sequence : {&norm, &optimizer, &evaluate, &sample})
    destroy(*sequence);
  for (CudaSequence &turn : turns)
    destroy(turn);
}

//===----------------------------------------------------------------------===//
// What runs
//===----------------------------------------------------------------------===//

int64_t CudaSequences::runsOfMicro() const {
  return model.numInputs > 0 ? 1 : inputs.count();
}

int64_t CudaSequences::countLaunches(const CudaSequence &sequence) const {
  int64_t count = sequence.micro.count * runsOfMicro() + sequence.then.count;
  for (int i = 0; i < sequence.numParts; ++i)
    count += parts[size_t(sequence.first + i)].count;
  return count;
}

/// What comes before `then`.
bool CudaSequences::launchMicros(const CudaSequence &sequence, Error &error) {
  CudaPart micro = sequence.micro;
  for (int64_t i = 0; micro.count > 0 && i < runsOfMicro(); ++i) {
    micro.isLast = sequence.isLast && i + 1 == runsOfMicro();
    if (!launcher.run(micro, sequence.name, inputs, i, error))
      return false;
  }
  for (int i = 0; i < sequence.numParts; ++i)
    if (!launcher.run(parts[size_t(sequence.first + i)], sequence.name, inputs,
                      0, error))
      return false;
  return true;
}

/// Lets receives begin before their turn.
bool CudaSequences::beginParcels(const CudaSequence &sequence, Error &error) {
  CudaLanes &parcels = launcher.parcels();
  auto expect = [&](const CudaPart &part, int64_t times) {
    return parcels.expect(part.launches, part.count, times, error);
  };
  parcels.clear();
  if (!expect(sequence.micro, runsOfMicro()) || !expect(sequence.then, 1))
    return false;
  for (int i = 0; i < sequence.numParts; ++i)
    if (!expect(parts[size_t(sequence.first + i)], 1))
      return false;
  return parcels.begin(error);
}

bool CudaSequences::launchAll(const CudaSequence &sequence, Error &error) {
  return beginParcels(sequence, error) && launchMicros(sequence, error) &&
         (!sequence.hasNorm || mailbox.send(error)) &&
         launcher.run(sequence.then, sequence.name, inputs, 0, error) &&
         (!sequence.hasNorm || mailbox.fetch(error)) &&
         launcher.parcels().end(error);
}

bool CudaSequences::capture(CudaSequence &sequence, Error &error) {
  const CudaDriver &driver = gpu.driver();
  CudaGraph graph = nullptr;
  if (!gpu.check(driver.captureBegin(gpu.stream(), kCudaCaptureRelaxed),
                 "cuStreamBeginCapture", error))
    return false;
  bool good = launchAll(sequence, error);
  Error other; // What launching says is the cause.
  good = gpu.check(driver.captureEnd(gpu.stream(), &graph),
                   "cuStreamEndCapture", good ? error : other) &&
         good;
  char what[96];
  snprintf(what, sizeof(what),
           "cannot make a graph of the %" PRId64 " launches of %s",
           countLaunches(sequence), sequence.name);
  good = good && gpu.check(driver.graphInstantiate(&sequence.graph, graph, 0),
                           what, error);
  if (graph)
    driver.graphDestroy(graph);
  return good;
}

void CudaSequences::touch(CudaSequence &sequence) {
  auto touchPart = [&](const CudaPart &part) {
    for (int i = 0; i < part.count; ++i)
      for (int j = 0; j < part.launches[i].numBuffers; ++j)
        arena.touch(model.buffers[part.launches[i].firstBuffer + j]);
  };
  touchPart(sequence.micro);
  for (int i = 0; i < sequence.numParts; ++i)
    touchPart(parts[size_t(sequence.first + i)]);
  touchPart(sequence.then);
  sequence.isTouched = true;
}

bool CudaSequences::run(CudaSequence &sequence, Error &error) {
  if (!sequence.isTouched)
    touch(sequence);
  const int64_t before = launcher.begunBytes();
  if (!hasGraphs) {
    bool good = launchAll(sequence, error);
    numSent += launcher.begunBytes() - before;
    return good;
  }
  if (countLaunches(sequence) == 0)
    return true;
  if (!sequence.graph) {
    if (!capture(sequence, error))
      return false;
    sequence.sentBytes = launcher.begunBytes() - before;
  }
  numSent += sequence.sentBytes;
  char what[64];
  snprintf(what, sizeof(what), "graph of %s", sequence.name);
  return gpu.check(gpu.driver().graphLaunch(sequence.graph, gpu.stream()), what,
                   error);
}
