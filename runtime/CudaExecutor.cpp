//===- CudaExecutor.cpp - Runs the schedules of a model on a GPU ----------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaExecutor.h"

#include <algorithm>
#include <cinttypes>
#include <cstdlib>
#include <cstring>

using namespace reprise::runtime;

static constexpr int64_t kAlignment = 256;

static int64_t aligned(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

//===----------------------------------------------------------------------===//
// Start
//===----------------------------------------------------------------------===//

bool CudaExecutor::allocate(Error &error) {
  slotBytes = aligned(model.tokens.bytes) + aligned(model.targets.bytes) +
              aligned(model.rng.bytes);
  if (!device.allocate(aligned(model.arenaBytes) + 2 * slotBytes, error) ||
      !arena.mapFor(device, model.arenaBytes, error))
    return false;
  const CudaDriver &driver = device.driver();
  void *pinned = nullptr;
  auto mailboxBytes = aligned(int64_t(sizeof(Mailbox)));
  if (!check(
          driver.hostAllocate(&pinned, size_t(mailboxBytes + 2 * slotBytes), 0),
          "cannot take pinned memory for inputs", error) ||
      !check(driver.streamCreate(&inputStream, kCudaNonBlocking),
             "cuStreamCreate", error))
    return false;
  mailbox = static_cast<Mailbox *>(pinned);
  for (int i = 0; i < 2; ++i) {
    Slot &slot = slots[i];
    slot.host = static_cast<char *>(pinned) + mailboxBytes + i * slotBytes;
    slot.device = device.base() + CudaAddress(aligned(model.arenaBytes)) +
                  CudaAddress(i * slotBytes);
    for (CudaEvent *event : {&slot.copied, &slot.consumed})
      if (!check(driver.eventCreate(event, kCudaNoTiming), "cuEventCreate",
                 error))
        return false;
  }
  return true;
}

bool CudaExecutor::load(const void *image, const char *what, Error &error) {
  char log[512] = "";
  int options[] = {kCudaJitErrorLog, kCudaJitErrorLogBytes};
  void *values[] = {log, reinterpret_cast<void *>(sizeof(log) - 1)};
  CudaResult code =
      device.driver().moduleLoad(&module, image, 2, options, values);
  if (code == 0) {
    snprintf(imageName, sizeof(imageName), "%s", what);
    return true;
  }
  module = nullptr;
  char text[768];
  snprintf(text, sizeof(text),
           "GPU %d (%s, sm_%d%d) does not take kernels as %s%s%s",
           device.ordinal(), device.name(), device.major(), device.minor(),
           what, log[0] ? ", " : "", log);
  return check(code, text, error);
}

/// Machine code for this very chip if there is some, else for an older one of
/// its kind, else PTX, which the driver compiles. A driver that is older than
/// the assembler takes no machine code of it, but the older PTX.
bool CudaExecutor::loadKernels(Error &error) {
  const RepriseCudaModule &image = *model.cuda;
  const RepriseCubin *best = nullptr;
  for (int i = 0; i < image.numCubins; ++i) {
    const RepriseCubin &cubin = image.cubins[i];
    bool exact =
        cubin.smMajor == device.major() && cubin.smMinor == device.minor();
    bool fits =
        exact || (!cubin.archSpecific && cubin.smMajor == device.major() &&
                  cubin.smMinor <= device.minor());
    if (fits && (!best || cubin.smMinor > best->smMinor ||
                 (exact && cubin.archSpecific)))
      best = &cubin;
  }
  char what[64];
  if (best) {
    snprintf(what, sizeof(what), "machine code for sm_%d%d%s", best->smMajor,
             best->smMinor, best->archSpecific ? "a" : "");
    if (load(best->data, what, error))
      return true;
  }
  int chip = 10 * device.major() + device.minor();
  bool isNewer = chip >= 10 * image.ptxMajor + image.ptxMinor;
  snprintf(what, sizeof(what), "PTX for sm_%d%d", image.ptxMajor,
           image.ptxMinor);
  if (best) {
    Error other; // What the machine code lacks is the cause.
    return isNewer && load(image.ptx, what, other);
  }
  return isNewer ? load(image.ptx, what, error)
                 : error.set("GPU %d (%s) is an sm_%d, but this program was "
                             "compiled for sm_%d%d and later",
                             device.ordinal(), device.name(), chip,
                             image.ptxMajor, image.ptxMinor);
}

/// Whether all launches of kernels have what these take.
static bool checkLaunches(const RepriseModel &model,
                          const RepriseLaunch *launches, int count,
                          int &mostParameters, Error &error) {
  for (int i = 0; i < count; ++i) {
    const RepriseLaunch &launch = launches[i];
    if (launch.kind != REPRISE_LAUNCH_KERNEL)
      continue;
    const RepriseCudaKernel &kernel = model.cuda->kernels[launch.callee];
    if (kernel.numBuffers != launch.numBuffers || kernel.numIds > launch.numIds)
      return error.set("damaged model: launch %s has %d buffers and %d ids, "
                       "but its kernel %s takes %d and %d",
                       launch.name, launch.numBuffers, launch.numIds,
                       kernel.name, kernel.numBuffers, kernel.numIds);
    mostParameters =
        std::max(mostParameters, kernel.numBuffers + kernel.numIds);
  }
  return true;
}

bool CudaExecutor::prepare(const CudaSettings &chosen, int numNorm,
                           Error &error) {
  settings = chosen;
  if (settings.sync || settings.nvtx || settings.profile)
    settings.graph = false;
  micro = {"micro-batch", model.micro, model.numMicro, nullptr, nullptr};
  norm = {"norm", model.update, numNorm, nullptr, nullptr};
  optimizer = {"optimizer", model.update + numNorm, model.numUpdate - numNorm,
               nullptr, nullptr};
  evaluate = {"validation", model.evaluate, model.numEvaluate, nullptr,
              nullptr};
  sample = {"sampling", model.sample, model.numSample, nullptr, nullptr};
  int mostParameters = 0, mostLaunches = 0;
  for (const Sequence *s : {&micro, &norm, &optimizer, &evaluate, &sample}) {
    if (!checkLaunches(model, s->launches, s->count, mostParameters, error))
      return false;
    mostLaunches = std::max(mostLaunches, s->count);
  }
  size_t timed = size_t(model.numMicro) + size_t(model.numUpdate);
  if (settings.profile)
    seconds = static_cast<double *>(calloc(timed + 1, sizeof(double)));
  if (!functions.resize(size_t(model.numKernels)) ||
      !parameters.resize(size_t(mostParameters) + 1) ||
      (settings.profile && !seconds))
    return error.set("no memory left for the tables of %zu launches", timed);
  const CudaDriver &driver = device.driver();
  if (settings.profile) {
    micro.seconds = seconds;
    norm.seconds = seconds + model.numMicro;
    optimizer.seconds = norm.seconds + numNorm;
    for (int i = 0; i <= mostLaunches; ++i) {
      CudaEvent event = nullptr;
      if (!check(driver.eventCreate(&event, 0), "cuEventCreate", error) ||
          !marks.push(event))
        return error.set("no memory left to time %d launches", mostLaunches);
    }
  }
  if (settings.nvtx && !nvtx.open(error))
    return false;
  if (!loadKernels(error))
    return false;
  for (int i = 0; i < model.numKernels; ++i) {
    const RepriseCudaKernel &kernel = model.cuda->kernels[i];
    CudaFunction &function = functions[size_t(i)];
    if (!check(driver.moduleFunction(&function, module, kernel.name),
               kernel.name, error))
      return false;
    // Only beyond 48 KiB, static memory included, does it have to be said.
    if (kernel.sharedBytes > 0 &&
        !check(driver.functionSet(function, kCudaMaxDynamicSharedBytes,
                                  int(kernel.sharedBytes)),
               kernel.name, error))
      return false;
  }
  return products.prepare(settings.tf32, settings.autotune, error) &&
         finish(error);
}

void CudaExecutor::describe(char *text, size_t size) const {
  int driver = device.driverVersion();
  size_t blas = device.blas().version();
  snprintf(text, size,
           "GPU %d: %s (sm_%d%d), %s, CUDA %d.%d, cuBLASLt %zu.%zu.%zu",
           device.ordinal(), device.name(), device.major(), device.minor(),
           imageName, driver / 1000, driver % 1000 / 10, blas / 10000,
           blas / 100 % 100, blas % 100);
}

bool CudaExecutor::measure(DeviceMemory &memory) const {
  size_t free = 0, total = 0;
  Error unknown;
  if (!device.memoryInfo(free, total, unknown))
    return false;
  memory = {model.arenaBytes, stagingBytes(), device.contextBytes(), 0};
  memory.other = int64_t(total - free) - memory.context - memory.inputs -
                 aligned(model.arenaBytes);
  return true;
}

CudaExecutor::~CudaExecutor() {
  if (!device.isOpen())
    return;
  const CudaDriver &driver = device.driver();
  driver.streamSynchronize(device.stream());
  for (Sequence *s : {&micro, &norm, &optimizer, &evaluate, &sample})
    if (s->graph)
      driver.graphExecDestroy(s->graph);
  for (Slot &slot : slots)
    for (CudaEvent event : {slot.copied, slot.consumed})
      if (event)
        driver.eventDestroy(event);
  for (CudaEvent event : marks)
    driver.eventDestroy(event);
  if (inputStream)
    driver.streamDestroy(inputStream);
  if (module)
    driver.moduleUnload(module);
  if (mailbox)
    driver.hostFree(mailbox);
  free(seconds);
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

bool CudaExecutor::launch(const RepriseLaunch &launch, Error &error) {
  if (launch.kind == REPRISE_LAUNCH_GEMM)
    return products.run(launch, error);
  const RepriseCudaKernel &kernel = model.cuda->kernels[launch.callee];
  for (int i = 0; i < kernel.numBuffers; ++i)
    parameters[size_t(i)] = at(model.buffers[launch.firstBuffer + i]);
  for (int i = 0; i < kernel.numIds; ++i)
    parameters[size_t(kernel.numBuffers + i)] =
        CudaAddress(model.ids[launch.firstId + i]);
  size_t bytes =
      size_t(kernel.numBuffers + kernel.numIds) * sizeof(CudaAddress);
  void *extra[] = {kCudaLaunchBuffer, parameters.begin(),
                   kCudaLaunchBufferBytes, &bytes, kCudaLaunchEnd};
  CudaResult code = device.driver().launch(
      functions[size_t(launch.callee)], unsigned(kernel.grid[0]),
      unsigned(kernel.grid[1]), unsigned(kernel.grid[2]),
      unsigned(kernel.block[0]), unsigned(kernel.block[1]),
      unsigned(kernel.block[2]), unsigned(kernel.sharedBytes), device.stream(),
      nullptr, extra);
  if (code == 0)
    return true;
  char what[256];
  snprintf(what, sizeof(what),
           "launch %s of kernel %s, %d x %d x %d blocks of %d x %d x %d "
           "threads with %" PRId64 " bytes of shared memory",
           launch.name, kernel.name, kernel.grid[0], kernel.grid[1],
           kernel.grid[2], kernel.block[0], kernel.block[1], kernel.block[2],
           kernel.sharedBytes);
  return check(code, what, error);
}

bool CudaExecutor::launchAll(const Sequence &sequence, Error &error) {
  const CudaDriver &driver = device.driver();
  for (int i = 0; i < sequence.count; ++i) {
    const RepriseLaunch &next = sequence.launches[i];
    if (sequence.seconds &&
        !check(driver.eventRecord(marks[size_t(i)], device.stream()), next.name,
               error))
      return false;
    nvtx.push(next.name);
    bool good = launch(next, error) && (!settings.sync || waitFor(next, error));
    nvtx.pop();
    if (!good)
      return false;
  }
  return !sequence.seconds ||
         (check(driver.eventRecord(marks[size_t(sequence.count)],
                                   device.stream()),
                sequence.name, error) &&
          readTimes(sequence, error));
}

bool CudaExecutor::waitFor(const RepriseLaunch &launch, Error &error) {
  char what[256];
  if (launch.kind == REPRISE_LAUNCH_GEMM)
    snprintf(what, sizeof(what), "product %s", launch.name);
  else
    snprintf(what, sizeof(what), "launch %s of kernel %s", launch.name,
             model.cuda->kernels[launch.callee].name);
  return device.synchronize(what, error);
}

bool CudaExecutor::readTimes(const Sequence &sequence, Error &error) {
  if (!wait(sequence, error))
    return false;
  for (int i = 0; i < sequence.count; ++i) {
    float milliseconds = 0;
    if (!check(device.driver().eventElapsed(&milliseconds, marks[size_t(i)],
                                            marks[size_t(i) + 1]),
               sequence.launches[i].name, error))
      return false;
    sequence.seconds[i] += double(milliseconds) * 1e-3;
  }
  return true;
}

/// Waits; what failed is one of the launches that were not waited for.
bool CudaExecutor::wait(const Sequence &sequence, Error &error) {
  char what[160];
  snprintf(what, sizeof(what),
           "a launch of %s or before it failed; --cuda-sync names which one",
           sequence.name);
  return device.synchronize(what, error);
}

bool CudaExecutor::capture(Sequence &sequence, Error &error) {
  const CudaDriver &driver = device.driver();
  CudaGraph graph = nullptr;
  if (!check(driver.captureBegin(device.stream(), kCudaCaptureRelaxed),
             "cuStreamBeginCapture", error))
    return false;
  bool good = launchAll(sequence, error);
  Error other; // What launching says is the cause.
  good = check(driver.captureEnd(device.stream(), &graph), "cuStreamEndCapture",
               good ? error : other) &&
         good;
  char what[96];
  snprintf(what, sizeof(what), "cannot make a graph of the %d launches of %s",
           sequence.count, sequence.name);
  good = good &&
         check(driver.graphInstantiate(&sequence.graph, graph, 0), what, error);
  if (graph)
    driver.graphDestroy(graph);
  return good;
}

bool CudaExecutor::run(Sequence &sequence, Error &error) {
  for (int i = 0; i < sequence.count; ++i)
    for (int j = 0; j < sequence.launches[i].numBuffers; ++j)
      arena.touch(model.buffers[sequence.launches[i].firstBuffer + j]);
  if (!settings.graph)
    return launchAll(sequence, error);
  if (sequence.count == 0)
    return true;
  if (!sequence.graph && !capture(sequence, error))
    return false;
  char what[64];
  snprintf(what, sizeof(what), "graph of %s", sequence.name);
  return check(device.driver().graphLaunch(sequence.graph, device.stream()),
               what, error);
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

bool CudaExecutor::copyIn(const RepriseBuffer &buffer, const void *from,
                          Error &error) {
  return check(device.driver().copyToDevice(at(buffer), from, sizeof(float),
                                            device.stream()),
               "copy to the GPU", error);
}

bool CudaExecutor::copyOut(void *to, const RepriseBuffer &buffer,
                           Error &error) {
  return check(device.driver().copyToHost(to, at(buffer), sizeof(float),
                                          device.stream()),
               "copy from the GPU", error);
}

bool CudaExecutor::beginStep(Error &error) {
  return check(device.driver().fillBytes(at(model.loss), 0, sizeof(float),
                                         device.stream()),
               "loss of a new step", error);
}

/// Sends the inputs that are in the arena's copy to the plan, by way of a slot.
bool CudaExecutor::takeInputs(Error &error) {
  const CudaDriver &driver = device.driver();
  Slot &slot = slots[numMicro++ % 2];
  const char *what = "copy of tokens to the GPU";
  // Both of its places are free when the last copy from it was made.
  if (numMicro > 2 && !check(driver.eventSynchronize(slot.consumed),
                             "a launch of an earlier micro-batch failed; "
                             "--cuda-sync names which one",
                             error))
    return false;
  const RepriseBuffer buffers[] = {model.tokens, model.targets, model.rng};
  int64_t place = 0;
  for (const RepriseBuffer &buffer : buffers) {
    memcpy(slot.host + place, arena.at<char>(buffer), size_t(buffer.bytes));
    place += aligned(buffer.bytes);
  }
  if (!check(driver.copyToDevice(slot.device, slot.host, size_t(slotBytes),
                                 inputStream),
             what, error) ||
      !check(driver.eventRecord(slot.copied, inputStream), what, error) ||
      !check(driver.streamWait(device.stream(), slot.copied, 0), what, error))
    return false;
  place = 0;
  for (const RepriseBuffer &buffer : buffers) {
    if (!check(driver.copyOnDevice(at(buffer), slot.device + CudaAddress(place),
                                   size_t(buffer.bytes), device.stream()),
               what, error))
      return false;
    place += aligned(buffer.bytes);
  }
  return check(driver.eventRecord(slot.consumed, device.stream()), what, error);
}

bool CudaExecutor::runMicro(Error &error) {
  return takeInputs(error) && run(micro, error);
}

bool CudaExecutor::runNorm(Error &error) {
  // The step before has been waited for: nobody reads the old values any more.
  mailbox->lr = *arena.at<float>(model.lr);
  mailbox->biasCorrection1 = *arena.at<float>(model.biasCorrection1);
  mailbox->biasCorrection2 = *arena.at<float>(model.biasCorrection2);
  if (!copyIn(model.lr, &mailbox->lr, error) ||
      !copyIn(model.biasCorrection1, &mailbox->biasCorrection1, error) ||
      !copyIn(model.biasCorrection2, &mailbox->biasCorrection2, error) ||
      !run(norm, error) || !copyOut(&mailbox->loss, model.loss, error) ||
      !copyOut(&mailbox->gradNorm, model.gradNorm, error) || !wait(norm, error))
    return false;
  *arena.at<float>(model.loss) = mailbox->loss;
  *arena.at<float>(model.gradNorm) = mailbox->gradNorm;
  return true;
}

bool CudaExecutor::runOptimizer(Error &error) { return run(optimizer, error); }

bool CudaExecutor::clearGradients(Error &error) {
  for (int i = 0; i < model.numStates; ++i) {
    const RepriseState &state = model.states[i];
    if (state.kind == REPRISE_STATE_GRADIENT &&
        !check(device.driver().fillBytes(at(state.buffer), 0,
                                         size_t(state.buffer.bytes),
                                         device.stream()),
               state.name, error))
      return false;
  }
  return true;
}

bool CudaExecutor::runEvaluate(Error &error) {
  if (!arena.upload(model.tokens, error) ||
      !arena.upload(model.targets, error) || !run(evaluate, error) ||
      !copyOut(&mailbox->evalLoss, model.evalLoss, error) ||
      !wait(evaluate, error))
    return false;
  *arena.at<float>(model.evalLoss) = mailbox->evalLoss;
  return true;
}

bool CudaExecutor::runSample(Error &error) {
  return arena.upload(model.sampleTokens, error) &&
         arena.upload(model.position, error) && run(sample, error) &&
         wait(sample, error) && arena.download(model.logits, error);
}

bool CudaExecutor::finish(Error &error) {
  return device.synchronize(
      "a launch before the end failed; --cuda-sync names which one", error);
}
