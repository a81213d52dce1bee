//===- CheckModel.cpp - Whether the tables of a model can be run ----------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CheckModel.h"

#include "CollectiveLaunch.h"
#include "Init.h"
#include "runtime/base/List.h"
#include "runtime/base/Program.h"
#include "runtime/base/Targets.h"
#include "runtime/transport/Collectives.h"
#include "runtime/transport/Mesh.h"

#include <algorithm>
#include <cinttypes>
#include <initializer_list>

using namespace reprise::runtime;

/// More than anybody trains on, and few enough to count.
static constexpr int64_t kMostRanks = 1 << 20;

static int buffersOfGemm(const RepriseGemm &gemm) {
  return 4 + (gemm.bias ? 1 : 0) + (gemm.groups ? 1 : 0) +
         (gemm.gather ? 1 : 0) + (gemm.epilogue ? 1 : 0);
}

bool reprise::runtime::checkRange(const char *what, const RepriseBuffer &buffer,
                                  int64_t least, int64_t arenaBytes,
                                  Error &error) {
  if (buffer.offset >= 0 && buffer.bytes >= least &&
      buffer.offset <= arenaBytes - buffer.bytes)
    return true;
  return error.set("damaged model: %s needs at least %" PRId64
                   " bytes in the arena of %" PRId64 ", but got %" PRId64
                   " at %" PRId64,
                   what, least, arenaBytes, buffer.bytes, buffer.offset);
}

/// Checks a GEMM with groups: what it gathers, and that there is an offset
/// for each group and one behind the last.
static bool checkGroups(const RepriseModel &model, const RepriseLaunch &launch,
                        const RepriseGemm &gemm, Error &error) {
  bool gathers = gemm.gather != REPRISE_GATHER_NONE;
  if (gemm.groups < 0 || (gathers && (!gemm.groups || gemm.slots < 1)) ||
      (gathers && gemm.gather != REPRISE_GATHER_A &&
       gemm.gather != REPRISE_GATHER_B) ||
      (gathers && gemm.places < 1))
    return error.set("damaged model: GEMM %s has %d groups, gathers operand "
                     "%d and has %d slots and %" PRId64 " places",
                     launch.name, gemm.groups, gemm.gather, gemm.slots,
                     gemm.places);
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

/// Checks the epilogue of a GEMM, of which sums of squares need room.
static bool checkEpilogue(const RepriseModel &model,
                          const RepriseLaunch &launch, const RepriseGemm &gemm,
                          Error &error) {
  if (!gemm.epilogue)
    return true;
  bool hasSquares = gemm.epilogue == REPRISE_EPILOGUE_SQUARES_OF_C;
  if (hasSquares != factsOf(model.target).hasOwnGemms)
    return error.set("damaged model: GEMM %s has epilogue %d, which its "
                     "target does not have",
                     launch.name, gemm.epilogue);
  if (!hasSquares)
    return true;
  if (gemm.typeC != REPRISE_F32 || gemm.bias ||
      gemm.batch[0] * gemm.batch[1] != 1)
    return error.set("damaged model: GEMM %s needs one C of f32 without a "
                     "bias for its squares",
                     launch.name);
  return checkRange(launch.name,
                    model.buffers[launch.firstBuffer + launch.numBuffers - 2],
                    4 * repriseGemmSquares(&gemm), model.arenaBytes, error);
}

static bool checkGemm(const RepriseModel &model, const RepriseLaunch &launch,
                      Error &error) {
  const RepriseGemm &gemm = model.gemms[launch.callee];
  if (launch.numBuffers != buffersOfGemm(gemm))
    return error.set("damaged model: GEMM %s needs %d buffers, but got %d",
                     launch.name, buffersOfGemm(gemm), launch.numBuffers);
  if (!checkGroups(model, launch, gemm, error) ||
      !checkEpilogue(model, launch, gemm, error))
    return false;
  bool hasOwnGemms = factsOf(model.target).hasOwnGemms;
  int64_t needed = hasOwnGemms ? repriseGemmWorkspaceBytes(&gemm) : 0;
  int64_t given =
      model.buffers[launch.firstBuffer + launch.numBuffers - 1].bytes;
  if (given < needed)
    return error.set("damaged model: GEMM %s needs a workspace of %" PRId64
                     " bytes, but got %" PRId64,
                     launch.name, needed, given);
  return true;
}

static bool checkLaunch(const RepriseModel &model, const RepriseLaunch &launch,
                        int rank, Error &error) {
  const int numCallees[] = {model.numKernels, model.numGemms,
                            model.numCollectives, model.numCollectives,
                            model.numCollectives};
  bool isKnown = launch.kind >= REPRISE_LAUNCH_KERNEL &&
                 launch.kind <= REPRISE_LAUNCH_WAIT;
  int callees = isKnown ? numCallees[launch.kind] : 0;
  if (launch.callee < 0 || launch.callee >= callees || launch.firstBuffer < 0 ||
      launch.numBuffers < 0 || launch.firstId < 0 || launch.numIds < 0)
    return error.set("damaged model: launch %s names kind %d, callee %d of %d",
                     launch.name, launch.kind, launch.callee, callees);
  for (int i = 0; i < launch.numBuffers; ++i)
    if (!checkRange(launch.name, model.buffers[launch.firstBuffer + i],
                    /*least=*/0, model.arenaBytes, error))
      return false;
  if (isTogether(launch))
    return checkCollective(model, launch, rank, error);
  return launch.kind == REPRISE_LAUNCH_GEMM ? checkGemm(model, launch, error)
                                            : checkIds(model, launch, error);
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

/// Each launch that begins something has one wait behind it, of the same row
/// and buffers, and each wait such a launch.
static bool checkWaits(const RepriseModel &model,
                       const RepriseSchedule &schedule, Error &error) {
  List<const RepriseLaunch *> begun;
  if (!begun.resize(size_t(model.numCollectives)))
    return error.set("no memory left for %d rows", model.numCollectives);
  std::fill(begun.begin(), begun.end(), nullptr);
  auto refuse = [&](const RepriseLaunch &launch, const char *why) {
    return error.set("damaged model: %s of schedule %s %s", launch.name,
                     schedule.name, why);
  };
  for (int i = 0; i < schedule.numLaunches; ++i) {
    const RepriseLaunch &launch = schedule.launches[i];
    const bool isWait = launch.kind == REPRISE_LAUNCH_WAIT;
    if (!isWait && launch.kind != REPRISE_LAUNCH_BEGIN)
      continue;
    const RepriseLaunch *&first = begun[size_t(launch.callee)];
    const int number = model.collectives[launch.callee].number;
    if (number < 0 || number >= model.numCollectives)
      return refuse(launch, "has a number that no row has");
    if (!isWait && first)
      return refuse(launch, "is begun, and not waited for before");
    if (isWait && (!first || first->numBuffers != launch.numBuffers))
      return refuse(launch, "is waited for, but not begun before");
    for (int j = 0; isWait && j < launch.numBuffers; ++j)
      if (model.buffers[launch.firstBuffer + j].offset !=
          model.buffers[first->firstBuffer + j].offset)
        return refuse(launch, "is waited for in other buffers");
    first = isWait ? nullptr : &launch;
  }
  for (const RepriseLaunch *launch : begun)
    if (launch)
      return refuse(*launch, "is begun, and not waited for");
  return true;
}

static bool checkSchedules(const RepriseModel &model, int rank, Error &error) {
  for (int i = 0; i < model.numSchedules; ++i) {
    const RepriseSchedule &schedule = model.schedules[i];
    if (!checkRows(schedule.name, schedule.launches, schedule.numLaunches,
                   error))
      return false;
    for (int j = 0; j < schedule.numLaunches; ++j)
      if (!checkLaunch(model, schedule.launches[j], rank, error))
        return false;
    if (!checkWaits(model, schedule, error))
      return false;
  }
  for (int schedule : {model.evaluate, model.sample})
    if (schedule < -1 || schedule >= model.numSchedules)
      return error.set("damaged model: goes forward by schedule %d of %d",
                       schedule, model.numSchedules);
  return true;
}

/// Of a model that has the inputs of all micro-batches at once: there is a row
/// for each, and the first is the model's.
static bool checkInputs(const RepriseModel &model, Error &error) {
  if (model.numInputs == 0)
    return true;
  if (model.numInputs != model.microBatchesPerRank)
    return error.set("damaged model: %d micro-batches of a rank need as many "
                     "rows of inputs, but got %d",
                     model.microBatchesPerRank, model.numInputs);
  for (int i = 0; i < model.numInputs; ++i) {
    const RepriseInputs &row = model.inputs[i];
    const int64_t bytes = model.microBatchSize * model.seqLength * 4;
    if (!checkRange("inputs", row.tokens, bytes, model.arenaBytes, error) ||
        !checkRange("inputs", row.targets, bytes, model.arenaBytes, error) ||
        !checkRange("inputs", row.rng, 16, model.arenaBytes, error))
      return false;
  }
  const RepriseInputs &first = model.inputs[0];
  return (first.tokens.offset == model.tokens.offset &&
          first.targets.offset == model.targets.offset &&
          first.rng.offset == model.rng.offset) ||
         error.set("damaged model: the first row of inputs needs to be where "
                   "the model has its tokens, targets and rng");
}

/// A step has each micro-batch of the rank once, in order, and ends with the
/// update. With rows of inputs the first entry stands for all micro-batches.
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
  if (model.reductionGroups < 1 ||
      model.microBatchesPerRank % model.reductionGroups != 0)
    return error.set("damaged model: %d micro-batches of a rank cannot be in "
                     "%d groups",
                     model.microBatchesPerRank, model.reductionGroups);
  const int expected = model.numInputs > 0 ? 1 : model.microBatchesPerRank;
  if (micros == expected && micros > 0 && model.program[0].microBatch == 0 &&
      model.program[model.numEntries - 1].microBatch < 0)
    return true;
  return error.set("damaged model: a step needs to begin with the first of %d "
                   "micro-batches and to end with an update, but has %d "
                   "entries with %d micro-batches",
                   expected, model.numEntries, micros);
}

/// What goes forward alone has its inputs on the first stage, and what comes
/// out on the last one.
static bool isElsewhere(const RepriseModel &model,
                        const RepriseBuffer &buffer) {
  const bool isFirst = model.stage == 0, isLast = hasOutput(model);
  const bool isInput = &buffer == &model.sampleTokens;
  const bool isOutput = &buffer == &model.evalLoss ||
                        &buffer == &model.position || &buffer == &model.logits;
  return (isInput && !isFirst) || (isOutput && !isLast);
}

/// Checks an input or output: it has at least so many bytes in the arena, or
/// none if another stage has it.
static bool checkRole(const RepriseModel &model, const char *name,
                      const RepriseBuffer &buffer, int64_t least,
                      Error &error) {
  if (!isElsewhere(model, buffer))
    return checkRange(name, buffer, least, model.arenaBytes, error);
  return (buffer.offset == 0 && buffer.bytes == 0) ||
         error.set("damaged model: %s is on another stage than %d, but got "
                   "%" PRId64 " bytes at %" PRId64 " here",
                   name, model.stage, buffer.bytes, buffer.offset);
}

/// The inputs and outputs of a model lie in its arena, and its tables are
/// there.
static bool checkFields(const RepriseModel &model, Error &error) {
#define REPRISE_ROWS(TYPE, NAME, COUNT)                                        \
  if (!checkRows(#NAME, model.NAME, model.COUNT, error))                       \
    return false;
#define REPRISE_ROLE(NAME, BYTES)                                              \
  if (!checkRole(model, #NAME, model.NAME, BYTES, error))                      \
    return false;
#include "reprise/ABI/Model.def"
  return true;
}

/// Checks that a state is of its type, and has room for what ranks have of it.
static bool checkState(const RepriseModel &model, const RepriseState &state,
                       Error &error) {
  const int32_t type =
      state.kind == REPRISE_STATE_WORKING ? REPRISE_BF16 : REPRISE_F32;
  if (state.elementType != type)
    return error.set("damaged model: %s needs to be %s, but has type %d",
                     state.name, repriseElementName(type), state.elementType);
  int64_t elements = elementCount(state);
  if (state.shareForm != REPRISE_SHARE_NONE &&
      (state.shareForm > REPRISE_SHARE_WITHIN || state.shareForm < 0 ||
       state.shareAxis < 0 || state.shareAxis >= model.numAxes))
    return error.set("damaged model: %s has shares of form %d along axis %d",
                     state.name, state.shareForm, state.shareAxis);
  for (int dim = 0; dim < 4; ++dim)
    if (state.wholeExtents[dim] < 0 ||
        (state.wholeExtents[dim] > 0 &&
         (dim >= state.rank || state.cutAxes[dim] < 0 ||
          state.cutAxes[dim] >= model.numAxes)))
      return error.set("damaged model: %s has parts of %" PRId64
                       " elements of dimension %d along axis %d",
                       state.name, state.wholeExtents[dim], dim,
                       state.cutAxes[dim]);
  const int64_t stages = countStages(model);
  if (state.stage < 0 || state.stage >= stages ||
      (state.isElsewhere && (state.stage == model.stage ||
                             state.buffer.offset || state.buffer.bytes)))
    return error.set("damaged model: %s is at home on stage %d of %" PRId64
                     ", but stage %d has %s with %" PRId64 " bytes",
                     state.name, state.stage, stages, model.stage,
                     state.isElsewhere ? "none" : "it", state.buffer.bytes);
  if (state.isElsewhere)
    return true;
  if (state.shareForm == REPRISE_SHARE_APART)
    elements = shareOf(elements, 0, int(model.axes[state.shareAxis].size)).end;
  return checkRange(state.name, state.buffer,
                    elements * repriseElementBytes(type), model.arenaBytes,
                    error);
}

bool reprise::runtime::checkModel(const RepriseModel &model, int rank,
                                  Error &error) {
  if (!checkFields(model, error))
    return false;
  for (int i = 0; i < model.numAxes; ++i)
    if (model.axes[i].size < 1 || model.axes[i].size > kMostRanks ||
        model.axes[i].step < 0 || model.axes[i].step > kMostRanks)
      return error.set("damaged model: axis %d has %" PRId64
                       " ranks at a step of %" PRId64,
                       i, model.axes[i].size, model.axes[i].step);
  if (model.stage != stageOf(model, rank))
    return error.set("damaged model: stage %d needs to run where the axis '%s' "
                     "has this number, but runs on rank %d",
                     model.stage, kStageAxis, rank);
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
  return checkSchedules(model, rank, error) && checkProgram(model, error) &&
         checkInputs(model, error);
}
