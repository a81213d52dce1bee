//===- Executor.cpp - Runs the schedules of a model -----------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Executor.h"

#include "Init.h"
#include "Peak.h"
#include "runtime/compute/Cpu.h"
#include "runtime/compute/Gemm.h"
#include "runtime/compute/GroupedGemm.h"
#include "runtime/transport/Collectives.h"
#include "runtime/transport/Mesh.h"

#include <algorithm>
#include <cinttypes>
#include <cstdlib>
#include <cstring>
#include <ctime>

using namespace reprise::runtime;

/// Launches below both limits are over before a second thread is awake.
static constexpr int64_t kSerialBytes = 32 << 10;
static constexpr int64_t kSerialFlops = 100'000;

/// More than anybody trains on, and few enough to count.
static constexpr int64_t kMostRanks = 1 << 20;

/// Chunks per thread: few enough to cost nothing, enough to even out threads
/// that are held up.
static constexpr int64_t kChunksPerThread = 8;

double reprise::runtime::now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
}

static Number numberOf(const RepriseCollective &collective) {
  return collective.elementType == REPRISE_BF16 ? Number::BF16 : Number::F32;
}

static int buffersOfGemm(const RepriseGemm &gemm) {
  return 4 + (gemm.bias ? 1 : 0) + (gemm.groups ? 1 : 0) +
         (gemm.gather ? 1 : 0) + (gemm.epilogue ? 1 : 0);
}

/// Checks that a buffer of at least `least` bytes lies in the arena.
static bool checkRange(const char *what, const RepriseBuffer &buffer,
                       int64_t least, int64_t arenaBytes, Error &error) {
  if (buffer.offset >= 0 && buffer.bytes >= least &&
      buffer.offset <= arenaBytes - buffer.bytes)
    return true;
  return error.set("damaged model: %s needs at least %" PRId64
                   " bytes in the arena of %" PRId64 ", but got %" PRId64
                   " at %" PRId64,
                   what, least, arenaBytes, buffer.bytes, buffer.offset);
}

/// Checks that a part and the whole are as long as the blocks.
static bool checkBlocks(const RepriseModel &model, const RepriseLaunch &launch,
                        const RepriseCollective &collective, Error &error) {
  constexpr int64_t kMost = int64_t(1) << 48;
  const int64_t blocks = collective.blocks, elements = collective.blockElements;
  const int64_t ranks = model.axes[collective.axis].size;
  if (blocks < 1 || elements < 1 || blocks > kMost / elements / ranks)
    return error.set("damaged model: %s has %" PRId64 " blocks of %" PRId64,
                     launch.name, blocks, elements);
  const RepriseBuffer *buffers = model.buffers + launch.firstBuffer;
  const bool isGather = collective.operation == REPRISE_COLLECTIVE_ALL_GATHER;
  const int64_t part = blocks * elements * sizeOf(numberOf(collective));
  return checkRange(launch.name, buffers[isGather ? 0 : 1], part,
                    model.arenaBytes, error) &&
         checkRange(launch.name, buffers[isGather ? 1 : 0], part * ranks,
                    model.arenaBytes, error);
}

/// Checks that there is room for a share.
static bool checkShare(const RepriseModel &model, const RepriseLaunch &launch,
                       const RepriseCollective &collective, Error &error) {
  const RepriseBuffer *buffers = model.buffers + launch.firstBuffer;
  const int64_t bytes = sizeOf(numberOf(collective));
  const int size = int(model.axes[collective.axis].size);
  return checkRange(launch.name, buffers[2], bytes, model.arenaBytes, error) &&
         checkRange(launch.name, buffers[0],
                    shareOf(buffers[2].bytes / bytes, 0, size).end * bytes,
                    model.arenaBytes, error);
}

/// Checks that there is an axis, and a workspace with a place for each of its
/// ranks.
static bool checkCollective(const RepriseModel &model,
                            const RepriseLaunch &launch, Error &error) {
  const RepriseCollective &collective = model.collectives[launch.callee];
  const int operation = collective.operation;
  bool isKnown = operation >= REPRISE_COLLECTIVE_ALL_REDUCE &&
                 operation <= REPRISE_COLLECTIVE_GATHER_SHARES;
  const int needed[] = {launch.numBuffers, 2, 3, launch.numBuffers, 3};
  if (!isKnown || collective.axis < 0 || collective.axis >= model.numAxes ||
      (collective.elementType != REPRISE_F32 &&
       collective.elementType != REPRISE_BF16) ||
      launch.numBuffers == 0 || launch.numBuffers != needed[operation])
    return error.set("damaged model: %s has operation %d along axis %d of %d "
                     "on %d buffers of type %d",
                     launch.name, operation, collective.axis, model.numAxes,
                     launch.numBuffers, collective.elementType);
  if ((operation == REPRISE_COLLECTIVE_ALL_GATHER ||
       operation == REPRISE_COLLECTIVE_REDUCE_SCATTER) &&
      !checkBlocks(model, launch, collective, error))
    return false;
  if (operation == REPRISE_COLLECTIVE_GATHER_SHARES)
    return checkShare(model, launch, collective, error);
  return operation == REPRISE_COLLECTIVE_ALL_GATHER ||
         checkRange(launch.name,
                    model.buffers[launch.firstBuffer + launch.numBuffers - 1],
                    4 * model.axes[collective.axis].size, model.arenaBytes,
                    error);
}

/// Checks a product with groups: what it gathers, and that there is an offset
/// for each group and one behind the last.
static bool checkGroups(const RepriseModel &model, const RepriseLaunch &launch,
                        const RepriseGemm &gemm, Error &error) {
  bool gathers = gemm.gather != REPRISE_GATHER_NONE;
  if (gemm.groups < 0 || (gathers && (!gemm.groups || gemm.slots < 1)) ||
      (gathers && gemm.gather != REPRISE_GATHER_A &&
       gemm.gather != REPRISE_GATHER_B))
    return error.set("damaged model: product %s has %d groups, gathers operand "
                     "%d and has %d slots",
                     launch.name, gemm.groups, gemm.gather, gemm.slots);
  return !gemm.groups ||
         checkRange(launch.name, model.buffers[launch.firstBuffer + 2],
                    4 * (int64_t(gemm.groups) + 1), model.arenaBytes, error);
}

/// Checks that the ids which are no streams are axes.
static bool checkIds(const RepriseModel &model, const RepriseLaunch &launch,
                     Error &error) {
  for (int i = 0; i < launch.numIds; ++i)
    if (int64_t id = model.ids[launch.firstId + i]; id < -model.numAxes)
      return error.set("damaged model: launch %s has id %" PRId64
                       " with %d axes",
                       launch.name, id, model.numAxes);
  return true;
}

static bool checkLaunch(const RepriseModel &model, const RepriseLaunch &launch,
                        Error &error) {
  const int numCallees[] = {model.numKernels, model.numGemms,
                            model.numCollectives};
  bool isKnown = launch.kind >= REPRISE_LAUNCH_KERNEL &&
                 launch.kind <= REPRISE_LAUNCH_COLLECTIVE;
  int callees = isKnown ? numCallees[launch.kind] : 0;
  if (launch.callee < 0 || launch.callee >= callees || launch.firstBuffer < 0 ||
      launch.numBuffers < 0 || launch.firstId < 0 || launch.numIds < 0)
    return error.set("damaged model: launch %s names kind %d, callee %d of %d",
                     launch.name, launch.kind, launch.callee, callees);
  for (int i = 0; i < launch.numBuffers; ++i)
    if (!checkRange(launch.name, model.buffers[launch.firstBuffer + i],
                    /*least=*/0, model.arenaBytes, error))
      return false;
  if (launch.kind == REPRISE_LAUNCH_COLLECTIVE)
    return checkCollective(model, launch, error);
  if (launch.kind != REPRISE_LAUNCH_GEMM)
    return checkIds(model, launch, error);
  const RepriseGemm &gemm = model.gemms[launch.callee];
  if (launch.numBuffers != buffersOfGemm(gemm))
    return error.set("damaged model: product %s needs %d buffers, but got %d",
                     launch.name, buffersOfGemm(gemm), launch.numBuffers);
  if (!checkGroups(model, launch, gemm, error))
    return false;
  bool hasSquares = gemm.epilogue == REPRISE_EPILOGUE_SQUARES_OF_C;
  bool isOfCPU = model.target == REPRISE_TARGET_CPU;
  if (gemm.epilogue && hasSquares != isOfCPU)
    return error.set("damaged model: product %s has epilogue %d, which its "
                     "target does not have",
                     launch.name, gemm.epilogue);
  if (hasSquares && (gemm.typeC != REPRISE_F32 || gemm.bias ||
                     gemm.batch[0] * gemm.batch[1] != 1))
    return error.set("damaged model: product %s needs one C of f32 without a "
                     "bias for its squares",
                     launch.name);
  if (hasSquares &&
      !checkRange(launch.name,
                  model.buffers[launch.firstBuffer + launch.numBuffers - 2],
                  4 * repriseGemmSquares(&gemm), model.arenaBytes, error))
    return false;
  int64_t needed = isOfCPU ? repriseGemmWorkspaceBytes(&gemm) : 0;
  int64_t given =
      model.buffers[launch.firstBuffer + launch.numBuffers - 1].bytes;
  if (given < needed)
    return error.set("damaged model: product %s needs a workspace of %" PRId64
                     " bytes, but got %" PRId64,
                     launch.name, needed, given);
  return true;
}

/// The table `name` of a model: its rows have an address.
static bool checkRows(const char *name, const void *rows, int32_t count,
                      Error &error) {
  if (count == 0 || (count > 0 && rows))
    return true;
  return error.set("damaged model: %s needs the address of 0 or more rows, but "
                   "has %d rows and %s address",
                   name, count, rows ? "an" : "no");
}

static bool checkSchedules(const RepriseModel &model, Error &error) {
  for (int i = 0; i < model.numSchedules; ++i) {
    const RepriseSchedule &schedule = model.schedules[i];
    if (!checkRows(schedule.name, schedule.launches, schedule.numLaunches,
                   error))
      return false;
    for (int j = 0; j < schedule.numLaunches; ++j)
      if (!checkLaunch(model, schedule.launches[j], error))
        return false;
  }
  for (int schedule : {model.evaluate, model.sample})
    if (schedule < -1 || schedule >= model.numSchedules)
      return error.set("damaged model: goes forward by schedule %d of %d",
                       schedule, model.numSchedules);
  return true;
}

/// A step has each micro-batch of the rank once, in order, and ends with the
/// update.
static bool checkProgram(const RepriseModel &model, Error &error) {
  int micros = 0;
  for (int i = 0; i < model.numEntries; ++i) {
    const RepriseEntry &entry = model.program[i];
    bool readsInputs = entry.microBatch >= 0;
    if (entry.schedule < 0 || entry.schedule >= model.numSchedules ||
        entry.microBatch < -1 || (readsInputs && entry.microBatch != micros))
      return error.set("damaged model: entry %d of a step has schedule %d of "
                       "%d, and micro-batch %d behind %d others",
                       i, entry.schedule, model.numSchedules, entry.microBatch,
                       micros);
    micros += readsInputs;
  }
  if (micros == model.microBatchesPerRank && micros > 0 &&
      model.program[0].microBatch == 0 &&
      model.program[model.numEntries - 1].microBatch < 0)
    return true;
  return error.set("damaged model: a step needs to begin with the first of %d "
                   "micro-batches and to end with an update, but has %d "
                   "entries with %d micro-batches",
                   model.microBatchesPerRank, model.numEntries, micros);
}

/// The inputs and outputs of a model lie in its arena, and its tables are
/// there.
static bool checkFields(const RepriseModel &model, Error &error) {
#define REPRISE_ROWS(TYPE, NAME, COUNT)                                        \
  if (!checkRows(#NAME, model.NAME, model.COUNT, error))                       \
    return false;
#define REPRISE_ROLE(NAME, BYTES)                                              \
  if (!checkRange(#NAME, model.NAME, BYTES, model.arenaBytes, error))          \
    return false;
#include "reprise/ABI/Model.def"
  return true;
}

/// Checks that a state is of its type, and has room for what ranks have of it.
static bool checkState(const RepriseModel &model, const RepriseState &state,
                       Error &error) {
  bool isWorking = state.kind == REPRISE_STATE_WORKING;
  if (state.elementType != (isWorking ? REPRISE_BF16 : REPRISE_F32))
    return error.set("damaged model: %s needs to be %s, but has type %d",
                     state.name, isWorking ? "bf16" : "f32", state.elementType);
  int64_t elements = elementCount(state);
  if (state.shareForm != REPRISE_SHARE_NONE &&
      (state.shareForm > REPRISE_SHARE_WITHIN || state.shareForm < 0 ||
       state.shareAxis < 0 || state.shareAxis >= model.numAxes))
    return error.set("damaged model: %s has shares of form %d along axis %d",
                     state.name, state.shareForm, state.shareAxis);
  if (state.shareForm == REPRISE_SHARE_APART)
    elements = shareOf(elements, 0, int(model.axes[state.shareAxis].size)).end;
  return checkRange(state.name, state.buffer, elements * (isWorking ? 2 : 4),
                    model.arenaBytes, error);
}

static bool checkModel(const RepriseModel &model, Error &error) {
  if (!checkFields(model, error))
    return false;
  for (int i = 0; i < model.numAxes; ++i)
    if (model.axes[i].size < 1 || model.axes[i].size > kMostRanks)
      return error.set("damaged model: axis %d has %" PRId64 " ranks", i,
                       model.axes[i].size);
  for (int i = 0; i < model.numStates; ++i)
    if (!checkState(model, model.states[i], error))
      return false;
  for (int i = 0; i < model.numRotaries; ++i) {
    const RepriseRotary &rotary = model.rotaries[i];
    if (rotary.length < 1 || rotary.width < 2 || rotary.width % 2 != 0)
      return error.set(
          "damaged model: rotary table %d needs rows of pairs, but "
          "got %" PRId64 " rows of %" PRId64,
          i, rotary.length, rotary.width);
    if (!checkRange("rotary table", rotary.buffer,
                    rotary.length * rotary.width * 4, model.arenaBytes, error))
      return false;
  }
  return checkSchedules(model, error) && checkProgram(model, error);
}

/// Whether the norm of the gradients is the last thing that `launch` names:
/// what a launch writes comes after what it reads.
static bool writesNorm(const RepriseModel &model, const RepriseLaunch &launch) {
  if (launch.numBuffers == 0)
    return false;
  int last = launch.firstBuffer + launch.numBuffers - 1;
  return model.buffers[last].offset == model.gradNorm.offset;
}

bool Executor::hasBF16() const {
  for (int i = 0; i < model.numGemms; ++i)
    if (model.gemms[i].typeAB == REPRISE_BF16)
      return true;
  return false;
}

bool Executor::prepare(Processor onCpu, bool profile, Error &error,
                       const CudaSettings &onGpu) {
  processor = onCpu;
  const int level = processor.levelOfProducts();
  if (!checkModel(model, error))
    return false;
  if (!hasRun.resize(size_t(model.numSchedules)))
    return error.set("no memory left for %d schedules", model.numSchedules);
  std::fill(hasRun.begin(), hasRun.end(), false);
  while (numNorm < update().numLaunches &&
         !writesNorm(model, update().launches[numNorm]))
    ++numNorm;
  numNorm = std::min(numNorm + 1, update().numLaunches);
  if (gpu) {
    CudaSettings settings = onGpu;
    settings.profile = profile;
    return gpu->prepare(settings, numNorm, error);
  }
  chosen = chooseMicroKernels(model.microKernels, model.numMicroKernels, level);
  if (model.numGemms > 0 && !chosen.full)
    return error.set("none of the %d micro-kernels of this program runs on "
                     "this processor (x86-64-v%d)",
                     model.numMicroKernels, level < 4 ? level : 4);
  if (hasBF16())
    chosenForBF16 =
        chooseForBF16(model.microKernels, model.numMicroKernels, level, pool);
  if (chosenForBF16.full && chosenForBF16.full->isa == REPRISE_ISA_AMX_BF16) {
    if (!rooms.allocate(pool.size(), error))
      return false;
    chosenForBF16.rooms = rooms.get();
  }
  int numBuffers = 0, numIds = 0;
  for (int i = 0; i < model.numSchedules; ++i)
    for (int j = 0; j < model.schedules[i].numLaunches; ++j) {
      const RepriseLaunch &launch = model.schedules[i].launches[j];
      numBuffers = std::max(numBuffers, launch.firstBuffer + launch.numBuffers);
      numIds = std::max(numIds, launch.firstId + launch.numIds);
    }

  auto launches = size_t(firstLaunch(model, model.numSchedules));
  addresses =
      static_cast<void **>(calloc(size_t(numBuffers) + 1, sizeof(void *)));
  seconds = profile
                ? static_cast<double *>(calloc(launches + 1, sizeof(double)))
                : nullptr;
  if (!addresses || (profile && !seconds))
    return error.set("no memory left for the tables of %zu launches", launches);
  for (int i = 0; i < numBuffers; ++i)
    addresses[i] = arena.at<void>(model.buffers[i]);
  if (!ids.append(model.ids, size_t(numIds)))
    return error.set("no memory left for %d ids", numIds);
  for (int64_t &id : ids)
    if (id < 0)
      id = coordinateOf(model, ranks.rank(), int(-1 - id));
  return true;
}

int64_t Executor::endOf(bool all) const {
  int64_t end = 0;
  auto take = [&](const RepriseBuffer &buffer) {
    end = std::max(end, buffer.offset + buffer.bytes);
  };
  auto takeAll = [&](const RepriseSchedule &schedule) {
    for (int i = 0; i < schedule.numLaunches; ++i)
      for (int j = 0; j < schedule.launches[i].numBuffers; ++j)
        take(model.buffers[schedule.launches[i].firstBuffer + j]);
  };
  for (int i = 0; i < model.numStates; ++i)
    if (outlivesStep(model.states[i]))
      take(model.states[i].buffer);
  for (int i = 0; i < model.numRotaries; ++i)
    take(model.rotaries[i].buffer);
  if (all || hasRun[size_t(model.program[0].schedule)])
    for (const RepriseBuffer &buffer : {model.tokens, model.targets, model.rng})
      take(buffer);
  for (int i = 0; i < model.numSchedules; ++i)
    if (all || hasRun[size_t(i)])
      takeAll(model.schedules[i]);
  return end;
}

int64_t Executor::withPadding(int64_t end) const {
  bool isLast = end == endOf(/*all=*/true);
  int64_t padding = model.arenaBytes - end;
  return isLast && padding < model.arenaAlignment ? model.arenaBytes : end;
}

int64_t Executor::plannedBytes() const {
  int64_t end = endOf(/*all=*/false);
  return end == endOf(/*all=*/true) ? model.arenaBytes : end;
}

int64_t Executor::highWaterBytes() const {
  return withPadding(arena.highWaterBytes());
}

Executor::~Executor() {
  free(addresses);
  free(seconds);
}

MicroBatch Executor::inputs(int64_t i) {
  for (const RepriseBuffer &buffer : {model.tokens, model.targets, model.rng})
    arena.touch(buffer);
  if (gpu)
    return gpu->nextInputs().at(i);
  return {arena.at<int32_t>(model.tokens), arena.at<int32_t>(model.targets),
          arena.at<uint32_t>(model.rng)};
}

bool Executor::beginStep(Error &error) {
  if (gpu)
    return gpu->beginStep(error);
  arena.touch(model.loss);
  *arena.at<float>(model.loss) = 0.0f;
  return true;
}

bool Executor::runTurn(const Turn &turn, bool isApart, Error &error) {
  isLast = turn.end == model.numEntries;
  int end = turn.end - (isLast && isApart ? 1 : 0);
  // What has run of a step without its update counts as all of it.
  for (int i = turn.begin; i < turn.end; ++i)
    hasRun[size_t(model.program[i].schedule)] = true;
  if (gpu)
    return gpu->runTurn(turn, end, error);
  for (int i = turn.begin; i < end; ++i)
    if (!runSchedule(model.program[i].schedule, error))
      return false;
  return true;
}

bool Executor::clearGradients(Error &error) {
  if (gpu)
    return gpu->clearGradients(error);
  for (int i = 0; i < model.numStates; ++i)
    if (model.states[i].kind == REPRISE_STATE_GRADIENT &&
        outlivesStep(model.states[i])) {
      const RepriseBuffer &buffer = model.states[i].buffer;
      memset(arena.at<char>(buffer), 0, size_t(buffer.bytes));
    }
  return true;
}

bool Executor::runAll(const RepriseLaunch *launches, int count, double *times,
                      Error &error) {
  if (!times) {
    for (int i = 0; i < count; ++i)
      if (!runLaunch(launches[i], error))
        return false;
    return true;
  }
  double last = now();
  for (int i = 0; i < count; ++i) {
    if (!runLaunch(launches[i], error))
      return false;
    double end = now();
    times[i] += end - last;
    last = end;
  }
  return true;
}

/// With its addresses in `addresses`, that of a workspace behind the others.
bool Executor::runCollective(const RepriseLaunch &launch, Error &error) {
  const RepriseCollective &collective = model.collectives[launch.callee];
  const RepriseBuffer *buffers = model.buffers + launch.firstBuffer;
  const Number number = numberOf(collective);
  const Group group = groupOf(model, ranks.rank(), collective.axis);
  const Blocks blocks = {collective.blocks, collective.blockElements};
  auto span = [&](int i) -> Span {
    return {addresses[launch.firstBuffer + i],
            buffers[i].bytes / sizeOf(number)};
  };
  if (collective.operation == REPRISE_COLLECTIVE_ALL_GATHER)
    return allGather(ranks, group, launch.name, number, blocks, span(0).values,
                     span(1).values, error);
  if (collective.operation == REPRISE_COLLECTIVE_REDUCE_SCATTER)
    return reduceScatter(ranks, group, launch.name, number, blocks,
                         span(0).values, span(1).values, span(2), error);
  if (collective.operation == REPRISE_COLLECTIVE_GATHER_SHARES)
    return gatherShares(ranks, group, launch.name, number, span(0).values,
                        span(2), error);
  int last = launch.numBuffers - 1;
  List<Span> spans;
  for (int i = 0; i < last; ++i)
    if (!spans.push(span(i)))
      return error.set("no memory left for %d buffers of %s", last,
                       launch.name);
  auto sum = collective.operation == REPRISE_COLLECTIVE_ALL_REDUCE
                 ? allReduce
                 : reduceShares;
  return sum(ranks, group, launch.name, number, spans.begin(), last, span(last),
             error);
}

bool Executor::runLaunch(const RepriseLaunch &launch, Error &error) {
  int64_t bytes = 0;
  for (int i = 0; i < launch.numBuffers; ++i) {
    const RepriseBuffer &buffer = model.buffers[launch.firstBuffer + i];
    arena.touch(buffer);
    bytes += buffer.bytes;
  }
  void **buffers = addresses + launch.firstBuffer;
  if (launch.kind == REPRISE_LAUNCH_COLLECTIVE)
    return runCollective(launch, error);
  if (launch.kind == REPRISE_LAUNCH_GEMM) {
    const RepriseGemm &shape = model.gemms[launch.callee];
    void **indices = buffers + (shape.bias ? 3 : 2);
    void **c = indices + (shape.groups ? 1 : 0) + (shape.gather ? 1 : 0);
    void **workspace = c + (shape.epilogue ? 2 : 1);
    const MicroKernels &kernels =
        shape.typeAB == REPRISE_BF16 ? chosenForBF16 : chosen;
    if (shape.groups)
      return groupedGemm(
          shape,
          {buffers[0], buffers[1], static_cast<int32_t *>(indices[0]),
           shape.gather ? static_cast<int32_t *>(indices[1]) : nullptr, c[0],
           static_cast<float *>(*workspace)},
          kernels, pool, launch.name, error);
    gemm(shape,
         {buffers[0], buffers[1], shape.bias ? buffers[2] : nullptr, c[0],
          static_cast<float *>(*workspace),
          shape.epilogue && isLast ? static_cast<float *>(c[1]) : nullptr},
         kernels, pool);
    return true;
  }
  const RepriseKernel &kernel = model.kernels[launch.callee];
  RepriseKernelFn fn = chooseKernel(kernel, processor);
  const int64_t *own = ids.begin() + launch.firstId;
  int64_t chunk = launch.tasks / (kChunksPerThread * pool.size());
  if (bytes < kSerialBytes && launch.flops < kSerialFlops)
    chunk = launch.tasks;
  pool.parallelFor(launch.tasks, std::max<int64_t>(chunk, 1),
                   [&](int, int64_t begin, int64_t end) {
                     TileRegisters tiles(fn == kernel.amxFn);
                     fn(buffers, own, begin, end);
                   });
  return true;
}
