//===- CheckpointWriter.cpp - Saves while training goes on ----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CheckpointWriter.h"

#include "Resume.h"
#include "runtime/base/Clock.h"

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <sys/stat.h>

using namespace reprise::runtime;

//===----------------------------------------------------------------------===//
// Start and end
//===----------------------------------------------------------------------===//

/// Whether both names mean the same folder.
static bool sameFolder(const char *a, const char *b) {
  struct stat first, second;
  return stat(a, &first) == 0 && stat(b, &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

/// Of a folder with checkpoints that this run does not go on from.
bool CheckpointWriter::refuseOther(int64_t last, Error &error) const {
  const bool isSame =
      settings.options && isOfRun(model, *settings.options, settings.data,
                                  checkpointPath(settings.folder, last));
  if (!isSame)
    return error.set(
        "'%s' has checkpoints of another run, the last one of step "
        "%" PRId64 "; --resume auto goes on from there, or name "
        "another folder",
        settings.folder, last);
  Error more;
  if (settings.options->steps <= last)
    more.set(" with --steps %" PRId64 " or more", last + 1);
  return error.set("'%s' has checkpoints of this run, up to step %" PRId64
                   "; --resume auto%s goes on from there, or name another "
                   "folder to begin anew",
                   settings.folder, last, more.text);
}

bool CheckpointWriter::prepareFolder(const char *resumedFrom,
                                     int64_t resumedStep, Error &error) {
  if (!folder.open(settings.folder, error))
    return false;
  settings.folder = folder.path();
  const char *path = settings.folder;
  List<int64_t> steps;
  if (!findCheckpoints(path, steps, error))
    return false;
  bool isOwn =
      resumedFrom && sameFolder(resumedFrom, checkpointPath(path, resumedStep));
  if (!steps.empty() && !isOwn)
    return refuseOther(steps.back(), error);
  if (isOwn) {
    completeStep = resumedStep;
    completePath = checkpointPath(path, resumedStep);
    // Before later ones lose their names: it always names one that is there.
    if (!folder.isLatest(resumedStep) && !folder.pointLatest(resumedStep))
      return error.set("cannot write '%s/LATEST': %s", path, strerror(errno));
  }
  for (int64_t step : steps)
    if (step > resumedStep && !folder.setAside(step, error))
      return false;
  return true;
}

bool CheckpointWriter::start(const SaveSettings &chosen,
                             const char *resumedFrom, int64_t resumedStep,
                             Error &error) {
  settings = chosen;
  return prepareFolder(resumedFrom, resumedStep, error) &&
         texts.start(settings, error);
}

int64_t CheckpointWriter::leastBytes() const {
  return writer.files().bytes() + texts.companionBytes();
}

bool CheckpointWriter::takeNote(Error &taken) {
  return !task.isRunning() && folder.takeNote(taken);
}

CheckpointWriter::~CheckpointWriter() { task.wait(); }

//===----------------------------------------------------------------------===//
// The thread and the run
//===----------------------------------------------------------------------===//

bool CheckpointWriter::save(const RunState &now, Error &refused, Error &error) {
  if (!wait(error))
    return false;
  const double start = runtime::now();
  // Many ranks do not know from where on to go on.
  if (!writer.take(writer.isAlone() ? refused : error))
    return writer.isAlone();
  return begin(now, start, refused, error);
}

bool CheckpointWriter::rescue(const RunState &now, Error &refused,
                              Error &error) {
  if (!wait(error))
    return false;
  const double start = runtime::now();
  Error broken;
  if (!writer.take(writer.isAlone() ? refused : error))
    return writer.isAlone();
  if (!writer.check(broken, error))
    return false;
  if (broken.text[0]) {
    const bool isSaved = completeStep == now.step;
    refused.set("Parameters are of no use after step %" PRId64
                ", and not saved%s%s%s: %s",
                now.step, isSaved ? " again (they are in '" : "",
                isSaved ? completePath.chars : "", isSaved ? "')" : "",
                broken.text);
    if (isSaved)
      passOver(now.step);
    return true;
  }
  if (completeStep != now.step)
    return begin(now, start, refused, error);
  catchUp(refused);
  return true;
}

/// The last one is that of an earlier step.
void CheckpointWriter::passOver(int64_t step) {
  completeStep = -1;
  completePath = Path("%s", "");
  List<int64_t> steps;
  Error ignored;
  if (!findCheckpoints(settings.folder, steps, ignored))
    return;
  for (int64_t each : steps)
    if (each < step) {
      completeStep = each;
      completePath = checkpointPath(settings.folder, each);
    }
}

/// Lets ranks write what was taken, in threads unless training has to wait.
bool CheckpointWriter::begin(const RunState &now, double start, Error &refused,
                             Error &error) {
  state = now;
  hasReport = false;
  failure = {};
  report = {state.step, 0, start};
  const Path path = unfinished();
  if (mkdir(path, 0777) != 0) {
    refused.set("cannot save step %" PRId64 ": cannot make the folder '%s': %s",
                state.step, path.chars, strerror(errno));
    return true;
  }
  if (!writer.isAlone()) {
    Error reason;
    if (!writer.begin(state.step, reason, error))
      return false;
    if (!writer.isOpen())
      finish(reason);
  } else {
    startTask([](void *self) {
      static_cast<CheckpointWriter *>(self)->writeAlone();
    });
  }
  if (!writer.source().isCopy())
    endTask();
  return true;
}

/// Goes on when all tensors are written, or could not be.
void CheckpointWriter::finish(const Error &reason) {
  if (reason.text[0])
    return fail(reason.text);
  startTask(
      [](void *self) { static_cast<CheckpointWriter *>(self)->complete(); });
}

void CheckpointWriter::fail(const char *reason) {
  CheckpointFolder::removeFiles(unfinished());
  failure.set("cannot save step %" PRId64 " in '%s': %s", state.step,
              checkpointPath(settings.folder, state.step).chars, reason);
}

void CheckpointWriter::startTask(void (*function)(void *)) {
  Error reason;
  if (int code = task.start(function, this)) {
    reason.set("cannot start a thread: %s", strerror(code));
    fail(reason.text);
  }
}

void CheckpointWriter::endTask() {
  if (!task.isRunning())
    return;
  task.wait();
  hasReport = !failure.text[0];
}

bool CheckpointWriter::poll(Error &error) {
  bool haveFinished = false;
  if (writer.isOpen() && !writer.ask(haveFinished, error))
    return false;
  if (haveFinished) {
    Error reason;
    if (!writer.close(reason, error))
      return false;
    finish(reason);
  }
  if (task.hasFinished())
    endTask();
  return true;
}

bool CheckpointWriter::wait(Error &error) {
  if (writer.isOpen()) {
    Error reason;
    if (!writer.close(reason, error))
      return false;
    finish(reason);
  }
  endTask();
  return true;
}

/// Threads of this rank read what is dealt anew, and write to the folder.
bool CheckpointWriter::becomeAlone(Error &error) {
  endTask();
  writer.giveUp();
  if (writer.isOpen())
    abandon();
  return writer.becomeAlone(error);
}

/// Removes what other ranks may still write to: they make no file in a folder
/// that has lost its name. The next run removes what cannot be removed now.
void CheckpointWriter::abandon() {
  const Path path = unfinishedPath(settings.folder, state.step);
  const Path left("%s%s", path.chars, kAbandoned);
  if (rename(path, left) == 0)
    CheckpointFolder::removeFiles(left);
  end = kAlone;
}

Path CheckpointWriter::unfinished() const {
  return Path("%s%s", unfinishedPath(settings.folder, state.step).chars, end);
}

void CheckpointWriter::giveUp() { endTask(); }

bool CheckpointWriter::takeFailure(Error &taken) {
  if (task.isRunning() || !failure.text[0])
    return false;
  taken = failure;
  failure = {};
  return true;
}

bool CheckpointWriter::takeReport(SaveReport &taken) {
  if (!hasReport)
    return false;
  hasReport = false;
  taken = report;
  return true;
}

void CheckpointWriter::writeAlone() {
  if (writer.write(unfinished()))
    complete();
  else
    fail(strerror(errno));
}

/// Adds what is no tensor, and gives the folder its name.
void CheckpointWriter::complete() {
  const Path path = checkpointPath(settings.folder, state.step);
  const Path made = unfinished();
  if (!texts.write(made, state) || !syncFolder(made))
    return fail(strerror(errno));
  if (Error damage; !texts.areWhole(made, damage))
    return fail(damage.text);
  if (rename(made, path) != 0)
    return fail(strerror(errno));
  completePath = path;
  completeStep = state.step;
  isLatestBehind = true;
  if (!catchUp(failure))
    return;
  folder.removeOld(settings.keepLast);
  report.bytes = texts.bytes();
  report.seconds = now() - report.seconds;
}

bool CheckpointWriter::catchUp(Error &error) {
  if (!isLatestBehind)
    return true;
  if (!syncFolder(settings.folder) || !folder.pointLatest(completeStep))
    return error.set("cannot write '%s/LATEST': %s", settings.folder,
                     strerror(errno));
  isLatestBehind = false;
  return true;
}
