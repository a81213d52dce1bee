//===- CudaExecutor.cpp - Runs the schedules of a model on a GPU ----------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaExecutor.h"

#include "CollectiveLaunch.h"
#include "Init.h"
#include "runtime/base/Clock.h"
#include "runtime/base/Text.h"
#include "runtime/transport/Mesh.h"

#include <algorithm>
#include <cinttypes>
#include <cstdlib>
#include <cstring>

using namespace reprise::runtime;

//===----------------------------------------------------------------------===//
// Start
//===----------------------------------------------------------------------===//

bool CudaExecutor::allocate(Error &error) {
  const int64_t before = usedBytes();
  if (ranks.size() > 1 && !memory.connect(ranks, error))
    return false;
  taken.network = usedBytes() - before;
  if (!device.allocate(model.arenaBytes, error))
    return false;
  taken.before = usedBytes();
  if (!arena.mapFor(device, model.arenaBytes, error))
    return false;
  const CudaDriver &driver = device.driver();
  void *pinned = nullptr;
  if (!check(driver.hostAllocate(&pinned, sizeof(Mailbox), 0),
             "cannot take pinned memory for scalars", error))
    return false;
  mailbox = static_cast<Mailbox *>(pinned);
  for (CudaEvent *event : {&begun[0], &begun[1], &done})
    if (!check(driver.eventCreate(event, 0), "cuEventCreate", error))
      return false;
  return inputs.prepare(error);
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

/// A whole schedule; nothing for -1.
CudaExecutor::Part CudaExecutor::partOf(int schedule) const {
  if (schedule < 0)
    return {};
  const RepriseSchedule &all = model.schedules[schedule];
  return {all.launches, all.numLaunches,
          seconds ? seconds + firstLaunch(model, schedule) : nullptr};
}

/// Of all sequences: what they run, and room for what launching needs.
bool CudaExecutor::takeTables(int numNorm, Error &error) {
  auto launches = size_t(firstLaunch(model, model.numSchedules));
  if (settings.profile) {
    seconds = static_cast<double *>(calloc(launches + 1, sizeof(double)));
    if (!seconds)
      return error.set("no memory left to time %zu launches", launches);
  }
  Part toNorm = partOf(updateOf(model)), fromNorm = toNorm;
  toNorm.count = numNorm;
  fromNorm.launches += numNorm;
  fromNorm.count -= numNorm;
  if (seconds)
    fromNorm.seconds += numNorm;
  norm = {"norm", {}, toNorm, 0, 0, true, nullptr, false, 0};
  optimizer = {"optimizer", {}, fromNorm, 0, 0, false, nullptr, false, 0};
  Part forward = partOf(model.evaluate), text = partOf(model.sample);
  forward.seconds = text.seconds = nullptr;
  evaluate = {"validation", {}, forward, 0, 0, false, nullptr, false, 0};
  sample = {"sampling", {}, text, 0, 0, false, nullptr, false, 0};
  int mostParameters = 0;
  for (int i = 0; i < model.numSchedules; ++i)
    if (!checkLaunches(model, model.schedules[i].launches,
                       model.schedules[i].numLaunches, mostParameters, error))
      return false;
  if (!functions.resize(size_t(model.numKernels)) ||
      !parameters.resize(size_t(mostParameters) + 1))
    return error.set("no memory left for the tables of %zu launches", launches);
  return takeTurns(error) && takeMarks(error);
}

/// The turns of a step, of which the last one runs with and without the update.
bool CudaExecutor::takeTurns(Error &error) {
  for (int begin = 0; begin < model.numEntries;) {
    Turn turn = turnFrom(model, begin, inputs.count());
    if (turn.once - turn.begin != inputs.count())
      return error.set("damaged model: entry %d of a step begins with %d "
                       "micro-batches, which run %" PRId64 " at a time",
                       begin, turn.once - turn.begin, inputs.count());
    bool isLast = turn.end == model.numEntries;
    if (!takeSequence(turn, turn.end, error) ||
        (isLast && !takeSequence(turn, turn.end - 1, error)))
      return false;
    begin = turn.end;
  }
  return true;
}

/// That of the entries of `turn` up to `end`, unless there is one.
bool CudaExecutor::takeSequence(const Turn &turn, int end, Error &error) {
  if (findSequence(turn, end))
    return true;
  bool hasUpdate = end == model.numEntries;
  Part update = hasUpdate ? partOf(updateOf(model)) : Part{};
  Sequence sequence = {hasUpdate ? "the step" : "micro-batches",
                       partOf(model.program[turn.begin].schedule),
                       update,
                       int(parts.size()),
                       end - hasUpdate - turn.once,
                       hasUpdate,
                       nullptr,
                       false,
                       0};
  for (int i = turn.once; i < end - hasUpdate; ++i)
    if (!parts.push(partOf(model.program[i].schedule)))
      return error.set("no memory left for the parts of a step");
  return turns.push(sequence) ||
         error.set("no memory left for the parts of a step");
}

/// The sequence that runs these entries, or null.
CudaExecutor::Sequence *CudaExecutor::findSequence(const Turn &turn, int end) {
  bool hasUpdate = end == model.numEntries;
  for (Sequence &sequence : turns) {
    const RepriseEntry &first = model.program[turn.begin];
    bool isSame =
        sequence.micro.launches == model.schedules[first.schedule].launches &&
        sequence.hasNorm == hasUpdate &&
        sequence.numParts == end - hasUpdate - turn.once;
    for (int i = 0; isSame && i < sequence.numParts; ++i)
      isSame = parts[size_t(sequence.first + i)].launches ==
               model.schedules[model.program[turn.once + i].schedule].launches;
    if (isSame)
      return &sequence;
  }
  return nullptr;
}

/// Events around each launch of the longest schedule.
bool CudaExecutor::takeMarks(Error &error) {
  int mostLaunches = 0;
  for (int i = 0; i < model.numSchedules; ++i)
    mostLaunches = std::max(mostLaunches, model.schedules[i].numLaunches);
  for (int i = 0; settings.profile && i <= mostLaunches; ++i) {
    CudaEvent event = nullptr;
    if (!check(device.driver().eventCreate(&event, 0), "cuEventCreate",
               error) ||
        !marks.push(event))
      return error.set("no memory left to time %d launches", mostLaunches);
  }
  return true;
}

bool CudaExecutor::prepare(const CudaSettings &chosen, int numNorm,
                           Error &error) {
  settings = chosen;
  if (settings.sync || settings.nvtx || settings.profile)
    settings.graph = false;
  const CudaDriver &driver = device.driver();
  if (!takeTables(numNorm, error) || (settings.nvtx && !nvtx.open(error)) ||
      !loadKernels(error))
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
  if (ranks.size() > 1 && !memory.load(module, error))
    return false;
  taken.kernels = usedBytes() - taken.before;
  if (!products.prepare(settings.tf32, settings.autotune, error) ||
      !finish(error))
    return false;
  taken.library = usedBytes() - taken.before - taken.kernels;
  return true;
}

void CudaExecutor::describe(char *text, size_t size) const {
  int driver = device.driverVersion();
  size_t blas = device.blas().version();
  snprintf(text, size,
           "GPU %d: %s (sm_%d%d), %s, CUDA %d.%d, cuBLASLt %zu.%zu.%zu",
           device.ordinal(), device.name(), device.major(), device.minor(),
           imageName, driver / 1000, driver % 1000 / 10, blas / 10000,
           blas / 100 % 100, blas % 100);
  size_t length = strlen(text);
  if (int64_t bytes = model.cuda->globalBytes)
    snprintf(text + length, size - length,
             ", %s bytes for sums of blocks beside the plan",
             grouped(bytes).chars);
  length = strlen(text);
  if (int count = products.numSeparateSums())
    snprintf(text + length, size - length,
             ", gradients of biases by %d products of their own", count);
  length = strlen(text);
  if (memory.isConnected())
    snprintf(text + length, size - length, ", NCCL %d.%d.%d",
             memory.version() / 10000, memory.version() / 100 % 100,
             memory.version() % 100);
}

/// -1 if the driver does not say.
int64_t CudaExecutor::usedBytes() const {
  size_t free = 0, total = 0;
  Error unknown;
  return device.memoryInfo(free, total, unknown) ? int64_t(total - free) : -1;
}

bool CudaExecutor::measure(DeviceMemory &memory) const {
  int64_t used = usedBytes();
  memory = {model.arenaBytes,
            device.allocatedBytes(),
            device.contextBytes(),
            taken.network,
            taken.kernels,
            taken.library,
            used - taken.before - taken.kernels - taken.library};
  return used >= 0;
}

void CudaExecutor::forgetProfile() {
  if (seconds)
    std::fill_n(seconds, firstLaunch(model, model.numSchedules), 0.0);
}

CudaExecutor::~CudaExecutor() {
  if (!device.isOpen())
    return;
  const CudaDriver &driver = device.driver();
  memory.giveUp(); // What other ranks no longer take part in has no end.
  driver.streamSynchronize(device.stream());
  for (Sequence *s : {&norm, &optimizer, &evaluate, &sample})
    if (s->graph)
      driver.graphExecDestroy(s->graph);
  for (Sequence &turn : turns)
    if (turn.graph)
      driver.graphExecDestroy(turn.graph);
  for (CudaEvent event : {begun[0], begun[1], done})
    if (event)
      driver.eventDestroy(event);
  for (CudaEvent event : marks)
    driver.eventDestroy(event);
  if (module)
    driver.moduleUnload(module);
  if (mailbox)
    driver.hostFree(mailbox);
  free(seconds);
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// What ranks do together; it reads no inputs of micro-batches.
bool CudaExecutor::launchCollective(const RepriseLaunch &launch, Error &error) {
  addresses.clear();
  for (int i = 0; i < launch.numBuffers; ++i)
    if (!addresses.push(reinterpret_cast<void *>(
            at(model.buffers[launch.firstBuffer + i]))))
      return error.set("no memory left for the %d buffers of %s",
                       launch.numBuffers, launch.name);
  return runCollective(model, launch, addresses.begin(), memory, ranks, error);
}

bool CudaExecutor::launch(const RepriseLaunch &launch, int64_t microBatch,
                          Error &error) {
  if (launch.kind == REPRISE_LAUNCH_GEMM)
    return products.run(launch, error);
  if (launch.kind == REPRISE_LAUNCH_COLLECTIVE)
    return launchCollective(launch, error);
  const RepriseCudaKernel &kernel = model.cuda->kernels[launch.callee];
  for (int i = 0; i < kernel.numBuffers; ++i)
    parameters[size_t(i)] =
        device.base() + CudaAddress(inputs.offsetOf(
                            model.buffers[launch.firstBuffer + i], microBatch));
  for (int i = 0; i < kernel.numIds; ++i) {
    int64_t id = model.ids[launch.firstId + i];
    if (id < 0) // An axis: the rank's number along it.
      id = coordinateOf(model, ranks.rank(), int(-1 - id));
    parameters[size_t(kernel.numBuffers + i)] = CudaAddress(id);
  }
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

bool CudaExecutor::launchPart(const Sequence &sequence, const Part &part,
                              int64_t microBatch, Error &error) {
  const CudaDriver &driver = device.driver();
  auto mark = [&](int i, const char *what) {
    return !part.seconds ||
           check(driver.eventRecord(marks[size_t(i)], device.stream()), what,
                 error);
  };
  for (int i = 0; i < part.count; ++i) {
    const RepriseLaunch &next = part.launches[i];
    if (!mark(i, next.name))
      return false;
    nvtx.push(next.name);
    bool good = launch(next, microBatch, error) &&
                (!settings.sync || waitFor(next, error));
    nvtx.pop();
    if (!good)
      return false;
  }
  return mark(part.count, sequence.name) &&
         (!part.seconds || readTimes(sequence, part, error));
}

int64_t CudaExecutor::countLaunches(const Sequence &sequence) const {
  int64_t count = sequence.micro.count * inputs.count() + sequence.then.count;
  for (int i = 0; i < sequence.numParts; ++i)
    count += parts[size_t(sequence.first + i)].count;
  return count;
}

/// What comes before `then`.
bool CudaExecutor::launchMicros(const Sequence &sequence, Error &error) {
  for (int64_t i = 0; sequence.micro.count > 0 && i < inputs.count(); ++i)
    if (!launchPart(sequence, sequence.micro, i, error))
      return false;
  for (int i = 0; i < sequence.numParts; ++i)
    if (!launchPart(sequence, parts[size_t(sequence.first + i)], 0, error))
      return false;
  return true;
}

bool CudaExecutor::launchAll(const Sequence &sequence, Error &error) {
  if (!launchMicros(sequence, error))
    return false;
  if (!sequence.hasNorm)
    return launchPart(sequence, sequence.then, 0, error);
  return copyIn(model.lr, &mailbox->lr, error) &&
         copyIn(model.biasCorrection1, &mailbox->biasCorrection1, error) &&
         copyIn(model.biasCorrection2, &mailbox->biasCorrection2, error) &&
         launchPart(sequence, sequence.then, 0, error) &&
         copyOut(&mailbox->loss, model.loss, error) &&
         copyOut(&mailbox->gradNorm, model.gradNorm, error);
}

bool CudaExecutor::waitFor(const RepriseLaunch &launch, Error &error) {
  char what[256];
  if (launch.kind == REPRISE_LAUNCH_GEMM)
    snprintf(what, sizeof(what), "product %s", launch.name);
  else if (launch.kind == REPRISE_LAUNCH_COLLECTIVE)
    snprintf(what, sizeof(what), "%s among ranks", launch.name);
  else
    snprintf(what, sizeof(what), "launch %s of kernel %s", launch.name,
             model.cuda->kernels[launch.callee].name);
  return device.synchronize(what, error);
}

bool CudaExecutor::readTimes(const Sequence &sequence, const Part &part,
                             Error &error) {
  if (!wait(sequence, error))
    return false;
  for (int i = 0; i < part.count; ++i) {
    float milliseconds = 0;
    if (!check(device.driver().eventElapsed(&milliseconds, marks[size_t(i)],
                                            marks[size_t(i) + 1]),
               part.launches[i].name, error))
      return false;
    part.seconds[i] += double(milliseconds) * 1e-3;
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
  snprintf(what, sizeof(what),
           "cannot make a graph of the %" PRId64 " launches of %s",
           countLaunches(sequence), sequence.name);
  good = good &&
         check(driver.graphInstantiate(&sequence.graph, graph, 0), what, error);
  if (graph)
    driver.graphDestroy(graph);
  return good;
}

void CudaExecutor::touch(Sequence &sequence) {
  auto touchPart = [&](const Part &part) {
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

bool CudaExecutor::run(Sequence &sequence, Error &error) {
  if (!sequence.isTouched)
    touch(sequence);
  const int64_t before = memory.begunBytes();
  if (!settings.graph) {
    bool good = launchAll(sequence, error);
    taken.sent += memory.begunBytes() - before;
    return good;
  }
  if (countLaunches(sequence) == 0)
    return true;
  if (!sequence.graph) {
    if (!capture(sequence, error))
      return false;
    sequence.sentBytes = memory.begunBytes() - before;
  }
  taken.sent += sequence.sentBytes;
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
  stepTimes = {};
  double start = now();
  CudaEvent event = begun[++numBegun % 2];
  bool good = check(device.driver().eventRecord(event, device.stream()),
                    "begin of a step", error) &&
              check(device.driver().fillBytes(at(model.loss), 0, sizeof(float),
                                              device.stream()),
                    "loss of a new step", error);
  stepTimes.host += now() - start;
  return good;
}

/// What the step reads of the host. The step before has been waited for: nobody
/// reads the old values any more.
void CudaExecutor::takeScalars() {
  mailbox->lr = *arena.at<float>(model.lr);
  mailbox->biasCorrection1 = *arena.at<float>(model.biasCorrection1);
  mailbox->biasCorrection2 = *arena.at<float>(model.biasCorrection2);
}

bool CudaExecutor::takeResults(const Sequence &sequence, Error &error) {
  if (!wait(sequence, error))
    return false;
  *arena.at<float>(model.loss) = mailbox->loss;
  *arena.at<float>(model.gradNorm) = mailbox->gradNorm;
  return true;
}

/// The entries of `turn` up to `end`.
bool CudaExecutor::runTurn(const Turn &turn, int end, Error &error) {
  double start = now();
  Sequence &sequence = *findSequence(turn, end);
  if (sequence.hasNorm)
    takeScalars();
  bool good = inputs.take(error) && run(sequence, error) &&
              (!sequence.hasNorm ||
               check(device.driver().eventRecord(done, device.stream()),
                     "end of a step", error));
  stepTimes.host += now() - start;
  return good;
}

bool CudaExecutor::endStep(Error &error) {
  const Sequence *last = std::find_if(
      turns.begin(), turns.end(), [](const Sequence &s) { return s.hasNorm; });
  if (!takeResults(*last, error))
    return false;
  CudaEvent before = begun[(numBegun - 1) % 2], own = begun[numBegun % 2];
  auto elapsed = [&](double &to, CudaEvent from, CudaEvent until) {
    float milliseconds = 0;
    bool good = check(device.driver().eventElapsed(&milliseconds, from, until),
                      "time of a step", error);
    to = double(milliseconds) * 1e-3;
    return good;
  };
  return elapsed(stepTimes.span, own, done) &&
         (numBegun == 1 || elapsed(stepTimes.interval, before, own));
}

bool CudaExecutor::runNorm(Error &error) {
  takeScalars();
  return run(norm, error) && takeResults(norm, error);
}

bool CudaExecutor::runOptimizer(Error &error) { return run(optimizer, error); }

bool CudaExecutor::clearGradients(Error &error) {
  for (int i = 0; i < model.numStates; ++i) {
    const RepriseState &state = model.states[i];
    if (state.kind == REPRISE_STATE_GRADIENT && outlivesStep(state) &&
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
