//===- Saves.cpp - When a run saves ---------------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Saves.h"

#include "runtime/base/Text.h"
#include "runtime/transport/Collectives.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>

using namespace reprise::runtime;

/// What a disk takes in a second, until one has been seen.
static constexpr double kDiskBytes = 1e9;

bool Saves::start(const Resumed &resumed, const DataMark &data,
                  const char *tokenizer, Error &error) {
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
  settings.room = {options.saveFromCopy, model.budgetBytes};
  if (!writer.start(settings, goesOn ? resumed.folder.chars : nullptr,
                    resumed.state.step, arena, pool, ranks, error))
    return false;
  seconds = double(writer.source().size()) / kDiskBytes;
  firstStep = resumed.state.step;
  return true;
}

/// The most checkpoints that lie beside those which are there already.
int64_t Saves::countPlaces() const {
  if (options.steps <= firstStep)
    return writer.lastStep() == firstStep ? 0 : 1;
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
  const int64_t left = freeSpace(options.save), places = countPlaces();
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
  if (options.save)
    log.saving(writer.source());
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

/// Lets ranks that have other parts know whether theirs are taken now.
bool Saves::tell(bool &takes, Error &error) {
  return !tensors.haveParts() ||
         broadcast(ranks, {0, 1, ranks.size()}, "the end of a step", &takes,
                   sizeof(takes), error);
}

/// What a rank does that has other parts than rank 0, which writes.
bool Saves::help(Error &error) {
  bool takes = false;
  return tell(takes, error) &&
         (!takes || tensors.gather(arena, nullptr, ranks, error));
}

/// False if other ranks have ended, or cannot be told from where on to go on.
/// A rescue looks at the states, also those that are saved already.
bool Saves::begin(const RunState &state, bool isRescue, Error &error) {
  bool takes = isRescue || writer.lastStep() != state.step;
  if (!tell(takes, error))
    return false;
  if (!takes)
    return writer.catchUp(refused), true;
  if (isRescue ? writer.rescue(state, arena, pool, refused)
               : writer.save(state, arena, pool, refused))
    return true;
  if (!tensors.haveParts())
    return true;
  error = refused;
  return false;
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
  if (helpsOthers())
    return help(error);
  if (!options.save) {
    if (isAsked)
      log.note("SIGUSR1 saves, but there is no --save DIR");
    return true;
  }
  bool saves = isAsked || isDue(state.step);
  Error failure;
  if (saves)
    writer.wait();
  writer.poll();
  if (!showWritten(failure))
    showFailure(failure, state.step - 1);
  if (!saves)
    return tell(saves, error);
  if (!begin(state, /*isRescue=*/false, error))
    return false;
  writer.poll();
  if (!showWritten(failure))
    showFailure(failure, state.step);
  return true;
}

bool Saves::atEnd(const RunState &state, Error &error) {
  if (helpsOthers())
    return help(error);
  if (!options.save)
    return true;
  Error failure;
  writer.wait();
  if (!showWritten(failure))
    showFailure(failure, options.steps);
  if (!begin(state, /*isRescue=*/false, error))
    return false;
  writer.wait();
  isLost = !showWritten(error);
  return !isLost;
}

/// Rank 0 ends the run when it has saved, so what it would say never comes.
void Saves::standBy() {
  bool ends = false;
  if (Error ignored; !tensors.haveParts() || help(ignored))
    broadcast(ranks, {0, 1, ranks.size()}, "the last save", &ends, sizeof(ends),
              ignored);
}

void Saves::rescue(const RunState &state, Others others, Error &error) {
  if (options.isSavedElsewhere && others == Others::Ending)
    return standBy();
  if (!options.save || isLost || state.step == firstStep ||
      (tensors.haveParts() && others == Others::Elsewhere))
    return;
  Error failure, earlier;
  writer.wait();
  showWritten(earlier);
  const bool isBegun = begin(state, /*isRescue=*/true, failure);
  writer.wait();
  if (showWritten(isBegun ? failure : earlier) && isBegun)
    return;
  size_t length = strlen(error.text);
  snprintf(error.text + length, sizeof(error.text) - length, ". %s",
           failure.text);
}

void Saves::giveUp(Error &error) {
  writer.wait(); // What is being written may still be the last one.
  if (const char *path = writer.lastComplete()) {
    size_t length = strlen(error.text);
    snprintf(error.text + length, sizeof(error.text) - length,
             ". The last checkpoint is '%s'", path);
  }
}
