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
#include "runtime/base/Crc32c.h"
#include "runtime/base/Text.h"
#include "runtime/text/JsonWriter.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <csignal>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <iterator>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

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

/// What programs of the hub look for beside weights, besides the configuration.
static constexpr const char *kCompanions[] = {
    "added_tokens.json", "chat_template.jinja",     "generation_config.json",
    "merges.txt",        "special_tokens_map.json", "tokenizer.json",
    "tokenizer.model",   "tokenizer_config.json",   "vocab.json"};

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

/// The ends of the names of a folder that ranks have ended in while they wrote
/// it, and of one that rank 0 writes alone then.
static constexpr char kAbandoned[] = "-abandoned", kAlone[] = "-alone";

/// Whether this was being written.
static bool isUnfinished(const char *name) {
  int64_t step;
  const char *rest = parseCheckpointName(name, step);
  return rest && !strncmp(rest, ".tmp", 4) &&
         (!rest[4] || !strcmp(rest + 4, kAbandoned) ||
          !strcmp(rest + 4, kAlone));
}

void CheckpointWriter::noteLeft(const char *path, const char *reason) {
  note.set("cannot remove '%s', which is not needed any more: %s", path,
           reason);
}

void CheckpointWriter::remove(const char *name) {
  Path path("%s/%s", settings.folder, name);
  struct stat info;
  // A link stays, and so does what is behind it.
  if (lstat(path, &info) == 0 && !S_ISDIR(info.st_mode))
    return noteLeft(path, strerror(ENOTDIR));
  // It loses its name before it loses a file.
  int step = 5 + int(strspn(name + 5, "0123456789")); // step-00000001
  Path nameless("%s/%.*s.tmp", settings.folder, step, name);
  if (isUnfinished(name))
    nameless = path;
  else if (rename(path, nameless) != 0)
    return noteLeft(path, strerror(errno));
  if (removeFolder(nameless, isOurs))
    return;
  if (errno != ENOTEMPTY && errno != EEXIST)
    return noteLeft(nameless, strerror(errno));
  // What others put there stays, under a name that nobody goes on from.
  Path rest("%s/%.*s.rest", settings.folder, step, name);
  for (int i = 2; lstat(rest, &info) == 0; ++i)
    rest = Path("%s/%.*s.rest%d", settings.folder, step, name, i);
  if (rename(nameless, rest) != 0)
    return noteLeft(nameless, strerror(errno));
  note.set("'%s' has files that no run wrote; they are all that is left of an "
           "old checkpoint",
           rest.chars);
}

/// Whether this was later than a checkpoint that a run went on from.
static bool isSetAside(const char *name) {
  int64_t step;
  const char *rest = parseCheckpointName(name, step);
  return rest && !strncmp(rest, ".old", 4) &&
         strspn(rest + 4, "0123456789") == strlen(rest + 4);
}

void CheckpointWriter::removeAll(bool (*isOne)(const char *name)) {
  DIR *entries = opendir(settings.folder);
  if (!entries)
    return noteLeft(settings.folder, strerror(errno));
  while (const dirent *entry = readdir(entries))
    if (isOne(entry->d_name))
      remove(entry->d_name);
  closedir(entries);
}

bool CheckpointWriter::takeNote(Error &taken) {
  if (task.isRunning() || !note.text[0])
    return false;
  taken = note;
  note = {};
  return true;
}

bool CheckpointWriter::setAside(int64_t step, Error &error) {
  Path path = checkpointPath(settings.folder, step);
  struct stat info;
  Path old("%s.old", path.chars);
  for (int i = 2; lstat(old, &info) == 0; ++i)
    old = Path("%s.old%d", path.chars, i);
  return rename(path, old) == 0 ||
         error.set("cannot rename '%s', which is later than the step this run "
                   "goes on from, to '%s': %s",
                   path.chars, old.chars, strerror(errno));
}

/// Of a folder with checkpoints that this run does not go on from.
bool CheckpointWriter::refuseOther(int64_t last, Error &error) const {
  const bool isSame = settings.options &&
                      isOfRun(model, *settings.options, tensors, settings.data,
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
  const char *path = settings.folder;
  if (Path made("%s", path); makeFolders(made))
    folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0 || access(path, W_OK | X_OK) != 0)
    return error.set("cannot save in '%s': %s", path, strerror(errno));
  syncFolder(Path("%s/..", path)); // It may be new there.
  if (flock(folder, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return error.set("cannot save in '%s': another run does", path);
  // What a run left that was killed while it saved.
  removeAll(isUnfinished);
  unlink(Path("%s/LATEST.tmp", path));
  unlink(Path("%s/%s", path, kProbeFile));
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
    if (!isLatest(resumedStep) && !pointLatest(resumedStep))
      return error.set("cannot write '%s/LATEST': %s", path, strerror(errno));
  }
  for (int64_t step : steps)
    if (step > resumedStep && !setAside(step, error))
      return false;
  return true;
}

bool CheckpointWriter::addCompanion(const char *name, const char *path,
                                    Error &error) {
  Companion companion = {name, {}};
  if (!companion.file.map(path, error))
    return false;
  if (companions.push(companion))
    return true;
  companion.file.unmap();
  return error.set("no memory left for the name '%s'", path);
}

bool CheckpointWriter::openCompanions(Error &error) {
  for (const char *name : kCompanions) {
    Path path("%s/%s", settings.companionsFrom ? settings.companionsFrom : "",
              name);
    struct stat info;
    bool isThere = settings.companionsFrom && stat(path, &info) == 0;
    const char *chosen = isThere ? path.chars : nullptr;
    if (settings.tokenizer && !strcmp(name, "tokenizer.json"))
      chosen = settings.tokenizer;
    if (chosen && !addCompanion(name, chosen, error))
      return false;
  }
  return true;
}

bool CheckpointWriter::start(const SaveSettings &chosen,
                             const char *resumedFrom, int64_t resumedStep,
                             Error &error) {
  settings = chosen;
  root = withoutSlashes(chosen.folder);
  settings.folder = root;
  return prepareFolder(resumedFrom, resumedStep, error) &&
         openCompanions(error);
}

int64_t CheckpointWriter::leastBytes() const {
  int64_t bytes = writer.files().bytes();
  for (const Companion &companion : companions)
    bytes += companion.file.size;
  return bytes;
}

CheckpointWriter::~CheckpointWriter() {
  task.wait();
  for (Companion &companion : companions)
    companion.file.unmap();
  if (folder >= 0)
    close(folder);
}

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
  removeFolder(unfinished(), isOurs);
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
    removeFolder(left, isOurs);
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
  if (!writeFolder(made) || !syncFolder(made))
    return fail(strerror(errno));
  if (Error damage; !areWhole(made, damage))
    return fail(damage.text);
  if (rename(made, path) != 0)
    return fail(strerror(errno));
  completePath = path;
  completeStep = state.step;
  isLatestBehind = true;
  if (!catchUp(failure))
    return;
  removeOld();
  for (const FileSum &file : files)
    report.bytes += file.bytes;
  report.seconds = now() - report.seconds;
}

bool CheckpointWriter::catchUp(Error &error) {
  if (!isLatestBehind)
    return true;
  if (!syncFolder(settings.folder) || !pointLatest(completeStep))
    return error.set("cannot write '%s/LATEST': %s", settings.folder,
                     strerror(errno));
  isLatestBehind = false;
  return true;
}

/// What LATEST says of a step.
static Text latestLine(int64_t step) {
  Text line;
  snprintf(line.chars, sizeof(line.chars), "step-%08" PRId64 "\n", step);
  return line;
}

bool CheckpointWriter::isLatest(int64_t step) const {
  MappedFile file;
  Error ignored;
  Text line = latestLine(step);
  bool same = file.map(Path("%s/LATEST", settings.folder), ignored) &&
              file.size == int64_t(strlen(line.chars)) &&
              !memcmp(file.data, line.chars, size_t(file.size));
  file.unmap();
  return same;
}

bool CheckpointWriter::pointLatest(int64_t step) {
  Path partial("%s/LATEST.tmp", settings.folder);
  Path latest("%s/LATEST", settings.folder);
  Text line = latestLine(step);
  OutputFile file;
  unlink(partial);
  return file.create(partial) && file.write(line.chars, strlen(line.chars)) &&
         file.finish() && rename(partial, latest) == 0 &&
         syncFolder(settings.folder);
}

void CheckpointWriter::removeOld() {
  if (settings.keepLast == 0)
    return;
  List<int64_t> steps;
  Error reason;
  if (!findCheckpoints(settings.folder, steps, reason))
    return noteLeft(settings.folder, reason.text);
  for (int64_t i = 0; i + settings.keepLast < int64_t(steps.size()); ++i) {
    char name[32];
    snprintf(name, sizeof(name), "step-%08" PRId64, steps[size_t(i)]);
    remove(name);
  }
  if (++saves >= 2) // Those of this run would do now.
    removeAll(isSetAside);
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

/// Whether the compiler says what the model was described with.
static bool hasSection(const RepriseModel &model) {
  return model.trainJson && *model.trainJson;
}

bool CheckpointWriter::writeFolder(const char *path) {
  files.clear();
  if (model.configJson && *model.configJson &&
      !writeText(path, kConfigFile, model.configJson, strlen(model.configJson)))
    return false;
  if (hasSection(model) && !writeDescription(path))
    return false;
  for (const Companion &companion : companions)
    if (!writeText(path, companion.name,
                   reinterpret_cast<const char *>(companion.file.data),
                   size_t(companion.file.size)))
      return false;
  const int shards = writer.files().size() - 1;
  for (int i = 0; i < shards; ++i)
    if (!sumTensors(i))
      return false;
  return (shards == 1 || writeIndex(path)) && sumTensors(shards) &&
         writeTrainer(path);
}

/// Whether the folder has all that was written: that of another rank may have
/// changed meanwhile.
bool CheckpointWriter::areWhole(const char *path, Error &error) const {
  for (const FileSum &file : files) {
    struct stat info;
    if (stat(Path("%s/%s", path, file.name), &info) != 0)
      return error.set("'%s': %s", file.name, strerror(errno));
    if (int64_t(info.st_size) != file.bytes)
      return error.set("'%s' has %" PRId64 " bytes instead of %" PRId64,
                       file.name, int64_t(info.st_size), file.bytes);
  }
  return true;
}

bool CheckpointWriter::writeText(const char *path, const char *name,
                                 const char *text, size_t size) {
  FileSum sum = {"", int64_t(size), int64_t(size), 0};
  snprintf(sum.name, sizeof(sum.name), "%s", name);
  OutputFile file;
  return file.create(Path("%s/%s", path, name)) &&
         file.write(text, size, &sum.crc) && file.finish() && files.push(sum);
}

/// Notes a file that ranks have written.
bool CheckpointWriter::sumTensors(int index) {
  const TensorFile &file = writer.files()[index];
  size_t size = 0;
  char *header = writer.files().makeHeader(index, size);
  if (!header)
    return false;
  FileSum sum = {"", int64_t(size) + file.tensorBytes, int64_t(size),
                 crc32c(header, size)};
  free(header);
  snprintf(sum.name, sizeof(sum.name), "%s", file.name);
  return files.push(sum);
}

namespace {
/// A text in memory that is written like a file.
struct TextFile {
  ~TextFile() {
    close();
    free(text);
  }
  bool close() {
    bool good = file && !ferror(file);
    bool closed = file && fclose(file) == 0;
    file = nullptr;
    return good && closed;
  }

  char *text = nullptr;
  size_t size = 0;
  FILE *file = open_memstream(&text, &size);
};
} // namespace

bool CheckpointWriter::writeIndex(const char *path) {
  TextFile out;
  if (!out.file)
    return false;
  const TensorFiles &all = writer.files();
  const int shards = all.size() - 1;
  int64_t total = 0;
  for (int i = 0; i < shards; ++i)
    total += all[i].tensorBytes;
  JsonWriter json(out.file);
  json.object(JsonWriter::Lines).key("metadata").object(JsonWriter::Lines);
  json.member("total_size", total).end();
  json.key("weight_map").object(JsonWriter::Lines);
  for (int i = 0; i < shards; ++i)
    for (int j = all[i].first; j < all[i].end(); ++j)
      json.member(tensors[j].name, all[i].name);
  json.finish();
  return out.close() && writeText(path, kIndexFile, out.text, out.size);
}

bool CheckpointWriter::writeDescription(const char *path) {
  TextFile out;
  if (!out.file)
    return false;
  fprintf(out.file, "# %s, recompute: %s; %s\n", model.name, model.plan,
          model.compiler);
  fprintf(out.file, "model: {hf_config: %s}\ntrain: ", kConfigFile);
  writeNestedJson(out.file, model.trainJson);
  fprintf(out.file, "\n");
  return out.close() && writeText(path, kDescriptionFile, out.text, out.size);
}

/// The last values that outliers are measured against, oldest place first.
static void writeOutliers(JsonWriter &json, const char *key,
                          const Outliers &values) {
  json.key(key).object(JsonWriter::Spaced).member("count", values.count);
  json.key("values").array(JsonWriter::Spaced);
  int64_t known = std::min(values.count, Outliers::kWindow);
  for (int64_t i = 0; i < known; ++i)
    json.value(values.values[i]);
  json.end().end();
}

/// A checksum; null if there is nothing that has one.
static void writeSum(JsonWriter &json, const char *key, int64_t crc) {
  if (crc >= 0)
    json.key(key).hex(uint32_t(crc));
  else if (crc == DataMark::kNone)
    json.key(key).null();
}

void CheckpointWriter::writeRun(JsonWriter &json) const {
  json.member("format", kCheckpointFormat);
  json.member("interface", REPRISE_ABI_VERSION);
  json.member("model", model.name).member("plan", model.plan);
  if (hasSection(model))
    json.member("compiler", model.compiler).key("train").text(model.trainJson);
  json.member("step", state.step);
  json.member("samples",
              state.step * model.numMicroBatches * model.microBatchSize);
  json.member("seed", settings.seed);
  json.member("data_order", settings.shuffled ? "shuffled" : "sequential");
  if (settings.files.size() > 0) {
    json.key("data").array(JsonWriter::Spaced);
    for (const char *name : settings.files)
      json.value(name);
    json.end();
  }
  json.member("data_tokens", settings.data.tokens);
  json.member("data_is_text", settings.data.isText);
  writeSum(json, "data_crc32c", settings.data.crc);
  writeSum(json, "tokenizer_crc32c", settings.data.tokenizer);
  if (settings.sums)
    json.member("sums", settings.sums);
  json.member("micro_batches", model.numMicroBatches);
  json.member("micro_batch_size", model.microBatchSize);
  json.member("seq_length", model.seqLength);
  json.member("vocab_size", model.vocabSize);
  writeOutliers(json, "losses", state.losses);
  writeOutliers(json, "grad_norms", state.gradNorms);
}

void CheckpointWriter::writeSums(JsonWriter &json) const {
  json.key("files").object(JsonWriter::Lines);
  for (const FileSum &sum : files)
    json.key(sum.name)
        .object(JsonWriter::Spaced)
        .member("bytes", sum.bytes)
        .member("summed", sum.summed)
        .key("crc32c")
        .hex(sum.crc)
        .end();
  json.end().key("tensors").object(JsonWriter::Lines);
  for (int i = 0; i < tensors.size(); ++i)
    json.key(tensors[i].prefix, tensors[i].name).hex(writer.sumOf(i));
  json.end();
}

bool CheckpointWriter::writeTrainer(const char *path) {
  TextFile out;
  if (!out.file)
    return false;
  FILE *file = out.file;
  JsonWriter json(file);
  json.object(JsonWriter::Lines);
  writeRun(json);
  writeSums(json);
  // The sum of all before it; the reader expects exactly this line.
  if (fflush(file) != 0)
    return false;
  json.key("crc32c").hex(crc32c(out.text, out.size)).finish();
  return out.close() && writeText(path, kTrainerFile, out.text, out.size);
}
