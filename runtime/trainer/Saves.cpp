//===- Saves.cpp - When a run saves ---------------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Saves.h"

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
  if (options.data.size() == 0 && goesOn)
    settings.data = resumed.data;
  settings.companionsFrom = goesOn ? resumed.folder.chars : options.initFrom;
  settings.tokenizer = tokenizer;
  settings.room = {options.saveFromCopy, model.budgetBytes};
  if (!writer.start(settings, goesOn ? resumed.folder.chars : nullptr,
                    resumed.state.step, arena, pool, error))
    return false;
  seconds = double(writer.source().size()) / kDiskBytes;
  return true;
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

void Saves::begin(const RunState &state) {
  if (writer.lastStep() == state.step)
    writer.catchUp(refused);
  else
    writer.save(state, arena, pool, refused);
}

/// Says that the run goes on without it.
void Saves::showFailure(const Error &failure, int64_t step) {
  int64_t next = options.steps;
  if (options.saveInterval)
    next = std::min(next,
                    (step / options.saveInterval + 1) * options.saveInterval);
  Error note;
  note.set("%s; training goes on, and step %" PRId64 " is saved next",
           failure.text, next);
  log.note(note.text);
}

void Saves::afterStep(const RunState &state, bool isAsked) {
  if (!options.save) {
    if (isAsked)
      log.note("SIGUSR1 saves, but there is no --save DIR");
    return;
  }
  bool saves = isAsked || isDue(state.step);
  Error failure;
  if (saves)
    writer.wait();
  writer.poll();
  if (!showWritten(failure))
    showFailure(failure, state.step - 1);
  if (!saves)
    return;
  begin(state);
  writer.poll();
  if (!showWritten(failure))
    showFailure(failure, state.step);
}

bool Saves::atEnd(const RunState &state, Error &error) {
  if (!options.save)
    return true;
  Error failure;
  writer.wait();
  if (!showWritten(failure)) // It is tried once more.
    showFailure(failure, state.step - 1);
  begin(state);
  writer.wait();
  isLost = !showWritten(error);
  return !isLost;
}

void Saves::rescue(const RunState &state, Error &error) {
  if (!options.save || isLost)
    return;
  Error failure;
  writer.wait();
  showWritten(failure);
  begin(state);
  writer.wait();
  if (showWritten(failure))
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
