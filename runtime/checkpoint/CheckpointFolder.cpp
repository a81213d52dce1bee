//===- CheckpointFolder.cpp - Where a run has its checkpoints -------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CheckpointFolder.h"

#include "Checkpoint.h"
#include "TensorFiles.h"
#include "runtime/base/Text.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <iterator>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace reprise::runtime;

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

/// Whether runs write files of this name into checkpoints.
static bool isOurs(const char *name) {
  constexpr const char *kOwn[] = {kConfigFile,    kModelFile,
                                  kIndexFile,     kDescriptionFile,
                                  kOptimizerFile, kTrainerFile};
  auto isName = [&](const char *known) { return !strcmp(known, name); };
  return std::any_of(std::begin(kOwn), std::end(kOwn), isName) ||
         std::any_of(std::begin(kCompanions), std::end(kCompanions), isName) ||
         isShardName(name);
}

/// Whether this was being written.
static bool isUnfinished(const char *name) {
  int64_t step;
  const char *rest = parseCheckpointName(name, step);
  return rest && !strncmp(rest, ".tmp", 4) &&
         (!rest[4] || !strcmp(rest + 4, kAbandoned) ||
          !strcmp(rest + 4, kAlone));
}

/// Whether this was later than a checkpoint that a run went on from.
static bool isSetAside(const char *name) {
  int64_t step;
  const char *rest = parseCheckpointName(name, step);
  return rest && !strncmp(rest, ".old", 4) &&
         strspn(rest + 4, "0123456789") == strlen(rest + 4);
}

//===----------------------------------------------------------------------===//
// The folder
//===----------------------------------------------------------------------===//

bool CheckpointFolder::open(const char *path, Error &error) {
  root = withoutSlashes(path);
  if (Path made("%s", root.chars); makeFolders(made))
    folder = ::open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0 || access(root, W_OK | X_OK) != 0)
    return error.set("cannot save in '%s': %s", root.chars, strerror(errno));
  syncFolder(Path("%s/..", root.chars)); // It may be new there.
  if (flock(folder, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return error.set("cannot save in '%s': another run does", root.chars);
  // What a run left that was killed while it saved.
  removeAll(isUnfinished);
  unlink(Path("%s/LATEST.tmp", root.chars));
  unlink(Path("%s/%s", root.chars, kProbeFile));
  return true;
}

void CheckpointFolder::removeProbe(const char *path) {
  const Path root = withoutSlashes(path);
  const int folder = ::open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0)
    return;
  if (flock(folder, LOCK_EX | LOCK_NB) == 0)
    unlink(Path("%s/%s", root.chars, kProbeFile));
  close(folder);
}

CheckpointFolder::~CheckpointFolder() {
  if (folder >= 0)
    close(folder);
}

bool CheckpointFolder::removeFiles(const char *path) {
  return removeFolder(path, isOurs);
}

void CheckpointFolder::noteLeft(const char *path, const char *reason) {
  note.set("cannot remove '%s', which is not needed any more: %s", path,
           reason);
}

void CheckpointFolder::remove(const char *name) {
  Path path("%s/%s", root.chars, name);
  struct stat info;
  // A link stays, and so does what is behind it.
  if (lstat(path, &info) == 0 && !S_ISDIR(info.st_mode))
    return noteLeft(path, strerror(ENOTDIR));
  // It loses its name before it loses a file.
  int step = 5 + int(strspn(name + 5, "0123456789")); // step-00000001
  Path nameless("%s/%.*s.tmp", root.chars, step, name);
  if (isUnfinished(name))
    nameless = path;
  else if (rename(path, nameless) != 0)
    return noteLeft(path, strerror(errno));
  if (removeFolder(nameless, isOurs))
    return;
  if (errno != ENOTEMPTY && errno != EEXIST)
    return noteLeft(nameless, strerror(errno));
  // What others put there stays, under a name that nobody goes on from.
  Path rest("%s/%.*s.rest", root.chars, step, name);
  for (int i = 2; lstat(rest, &info) == 0; ++i)
    rest = Path("%s/%.*s.rest%d", root.chars, step, name, i);
  if (rename(nameless, rest) != 0)
    return noteLeft(nameless, strerror(errno));
  note.set("'%s' has files that no run wrote; they are all that is left of an "
           "old checkpoint",
           rest.chars);
}

void CheckpointFolder::removeAll(bool (*isOne)(const char *name)) {
  DIR *entries = opendir(root);
  if (!entries)
    return noteLeft(root, strerror(errno));
  while (const dirent *entry = readdir(entries))
    if (isOne(entry->d_name))
      remove(entry->d_name);
  closedir(entries);
}

bool CheckpointFolder::takeNote(Error &taken) {
  if (!note.text[0])
    return false;
  taken = note;
  note = {};
  return true;
}

bool CheckpointFolder::setAside(int64_t step, Error &error) {
  Path path = checkpointPath(root, step);
  struct stat info;
  Path old("%s.old", path.chars);
  for (int i = 2; lstat(old, &info) == 0; ++i)
    old = Path("%s.old%d", path.chars, i);
  return rename(path, old) == 0 ||
         error.set("cannot rename '%s', which is later than the step this run "
                   "goes on from, to '%s': %s",
                   path.chars, old.chars, strerror(errno));
}

/// What LATEST says of a step.
static Text latestLine(int64_t step) {
  Text line;
  snprintf(line.chars, sizeof(line.chars), "step-%08" PRId64 "\n", step);
  return line;
}

bool CheckpointFolder::isLatest(int64_t step) const {
  MappedFile file;
  Error ignored;
  Text line = latestLine(step);
  bool same = file.map(Path("%s/LATEST", root.chars), ignored) &&
              file.size == int64_t(strlen(line.chars)) &&
              !memcmp(file.data, line.chars, size_t(file.size));
  file.unmap();
  return same;
}

bool CheckpointFolder::pointLatest(int64_t step) {
  Path partial("%s/LATEST.tmp", root.chars);
  Path latest("%s/LATEST", root.chars);
  Text line = latestLine(step);
  OutputFile file;
  unlink(partial);
  return file.create(partial) && file.write(line.chars, strlen(line.chars)) &&
         file.finish() && rename(partial, latest) == 0 && syncFolder(root);
}

void CheckpointFolder::removeOld(int64_t keepLast) {
  if (keepLast == 0)
    return;
  List<int64_t> steps;
  Error reason;
  if (!findCheckpoints(root, steps, reason))
    return noteLeft(root, reason.text);
  for (int64_t i = 0; i + keepLast < int64_t(steps.size()); ++i) {
    char name[32];
    snprintf(name, sizeof(name), "step-%08" PRId64, steps[size_t(i)]);
    remove(name);
  }
  if (++saves >= 2) // Those of this run would do now.
    removeAll(isSetAside);
}
