//===- Saves.cpp - When a run saves ---------------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Saves.h"

#include "runtime/base/Text.h"
#include "runtime/transport/Mesh.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>

using namespace reprise::runtime;

/// What a disk takes in a second, until one has been seen.
static constexpr double kDiskBytes = 1e9;

/// Files of parameters get no larger, if they have more than one tensor.
static constexpr int64_t kShardBytes = INT64_C(5'000'000'000);

bool Saves::start(const Resumed &resumed, const DataMark &data,
                  const char *tokenizer, Error &error) {
  const SaveRoom room = {options.saveFromCopy, model.budgetBytes};
  if (options.saveOfFirst)
    return tensorWriter.start(options.saveOfFirst, kShardBytes, room, error);
  if (!options.save)
    return true;
  bool goesOn = resumed.folder.chars[0];
  SaveSettings settings = {options.save, options.keepLast,
                           options.seed, options.shuffled,
                           data,         options.data};
  settings.options = &options;
  if (options.data.size() == 0 && goesOn)
    settings.data = resumed.data;
  settings.companionsFrom = goesOn ? resumed.folder.chars : options.initFrom;
  settings.tokenizer = tokenizer;
  // Bits that depend on them remain when another run goes on.
  settings.sums =
      options.ncclSums || resumed.hasOtherSums ? kNcclSums : nullptr;
  if (!writer.start(settings, goesOn ? resumed.folder.chars : nullptr,
                    resumed.state.step, error) ||
      !tensorWriter.start(options.save, kShardBytes, room, error))
    return false;
  seconds = double(tensorWriter.files().bytes()) / kDiskBytes;
  firstStep = resumed.state.step;
  return true;
}

/// The most checkpoints that lie beside those which are there already, in a run
/// that begins behind `firstStep`; the last one there is of `lastStep`.
static int64_t countPlaces(const Options &options, int64_t firstStep,
                           int64_t lastStep) {
  if (options.steps <= firstStep)
    return lastStep == firstStep ? 0 : 1;
  int64_t count = 1; // Of the last step.
  if (int64_t interval = options.saveInterval)
    count += (options.steps - 1) / interval - firstStep / interval;
  List<int64_t> there;
  Error ignored;
  if (options.keepLast == 0 || !findCheckpoints(options.save, there, ignored))
    return count;
  // One is removed when the next is whole.
  const int64_t kept = options.keepLast - int64_t(there.size());
  return std::min(count, std::max<int64_t>(kept, 0) + 1);
}

void Saves::warn() const {
  if (!options.save)
    return;
  const int64_t left = freeSpace(options.save);
  const int64_t places = countPlaces(options, firstStep, writer.lastStep());
  const int64_t bytes = writer.leastBytes();
  if (left < 0 || places == 0 || left / places >= bytes)
    return;
  Error text, most, advice;
  if (places > 1)
    most.set(", and up to %" PRId64 " lie there at a time", places);
  if (places > 2 && options.keepLast == 0)
    advice.set("; --keep-last 2 takes room for 3");
  text.set("--save %s has %s left on its disk, but a checkpoint of this run "
           "takes %s%s%s",
           options.save, human(left).chars, human(bytes).chars, most.text,
           advice.text);
  log.warning(text.text);
}

void Saves::announce() {
  const SavedStates &source = tensorWriter.source();
  if (options.save)
    log.saving(source);
  if (options.save && source.isCopy() && *source.reason()) {
    Error warning;
    warning.set("--save takes more than --memory-budget: %s", source.reason());
    log.warning(warning.text);
  }
  if (const int other = tensorWriter.firstOther(); other >= 0) {
    Text name;
    Error note;
    nameRank(model, other, name.chars, sizeof(name.chars));
    note.set("%d of %d ranks write checkpoints: %s has no folder '%s', or "
             "another one, and gives them what it has",
             tensorWriter.numWriters(), ranks.size(), name.chars, options.save);
    log.note(note.text);
  }
  if (Error note; writer.takeNote(note))
    log.note(note.text);
}

/// Shows what was written, and what could not be removed. False if something
/// could not be written.
bool Saves::showWritten(Error &failure) {
  SaveReport report;
  if (writer.takeReport(report)) {
    seconds = report.seconds;
    log.saved(report);
  }
  if (Error note; writer.takeNote(note))
    log.note(note.text);
  bool isRefused = refused.text[0];
  if (isRefused)
    failure = refused;
  refused = {};
  return !isRefused && !writer.takeFailure(failure);
}

/// False if other ranks have ended, or this one cannot go on. A rescue looks at
/// the states, also those that are saved already.
bool Saves::begin(const RunState &state, bool isRescue, Error &error) {
  if (isRescue)
    return writer.rescue(state, refused, error);
  if (writer.lastStep() != state.step)
    return writer.save(state, refused, error);
  writer.catchUp(refused);
  return true;
}

/// Says that the run goes on without it, or at its end, that it is tried again.
void Saves::showFailure(const Error &failure, int64_t step) {
  Error note;
  if (step >= options.steps) {
    note.set("%s; it is tried once more", failure.text);
    return log.note(note.text);
  }
  int64_t next = options.steps;
  if (options.saveInterval)
    next = std::min(next,
                    (step / options.saveInterval + 1) * options.saveInterval);
  note.set("%s; training goes on, and step %" PRId64 " is saved next",
           failure.text, next);
  log.note(note.text);
}

bool Saves::afterStep(const RunState &state, bool isAsked, Error &error) {
  if (options.saveOfFirst)
    return tensorWriter.follow(state.step, error);
  if (!options.save) {
    if (isAsked)
      log.note("SIGUSR1 saves, but there is no --save DIR");
    return true;
  }
  bool isDue = options.saveInterval && state.step % options.saveInterval == 0;
  bool saves = isAsked || isDue;
  Error failure;
  if (!(saves ? writer.wait(error) : writer.poll(error)))
    return false;
  if (!showWritten(failure))
    showFailure(failure, state.step - 1);
  if (!saves)
    return tensorWriter.release(error);
  if (!begin(state, /*isRescue=*/false, error) || !writer.poll(error))
    return false;
  if (!showWritten(failure))
    showFailure(failure, state.step);
  return tensorWriter.release(error);
}

bool Saves::atEnd(const RunState &state, Error &error) {
  if (options.saveOfFirst)
    return tensorWriter.follow(state.step, error);
  return !options.save || (end(state, error) && tensorWriter.release(error));
}

bool Saves::end(const RunState &state, Error &error) {
  Error failure;
  if (!writer.wait(error))
    return false;
  if (!showWritten(failure))
    showFailure(failure, options.steps);
  if (!begin(state, /*isRescue=*/false, error) || !writer.wait(error))
    return false;
  isLost = !showWritten(error);
  return !isLost;
}

void Saves::rescue(const RunState &state, Others others, Error &error) {
  if (options.saveOfFirst && others == Others::Ending) {
    // Rank 0 ends the run when it has saved: this never lets go.
    Error ignored;
    tensorWriter.follow(state.step, ignored);
    return;
  }
  if (!options.save || isLost || state.step == firstStep)
    return;
  const bool isAlone = ranks.size() > 1 && others == Others::Elsewhere;
  // Where another rank ends the run, this one may have no time for it.
  if (isAlone && (tensors.haveParts() || ranks.hasEnded()))
    return;
  Error failure, earlier;
  bool isBegun =
      (!isAlone || writer.becomeAlone(failure)) && writer.wait(failure);
  showWritten(earlier);
  isBegun = isBegun && begin(state, /*isRescue=*/true, failure) &&
            writer.wait(failure);
  if (showWritten(isBegun ? failure : earlier) && isBegun)
    return;
  if (failure.text[0])
    error.add(". %s", failure.text);
}

void Saves::giveUp(Error &error) {
  writer.giveUp(); // What all have written may still be the last one.
  if (const char *path = writer.lastComplete())
    error.add(". The last checkpoint is '%s'", path);
}
