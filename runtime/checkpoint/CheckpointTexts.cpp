//===- CheckpointTexts.cpp - Files beside the tensors ---------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CheckpointTexts.h"

#include "runtime/base/Crc32c.h"
#include "runtime/text/JsonWriter.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/stat.h>

using namespace reprise::runtime;

//===----------------------------------------------------------------------===//
// Files that go along
//===----------------------------------------------------------------------===//

bool CheckpointTexts::addCompanion(const char *name, const char *path,
                                   Error &error) {
  Companion companion = {name, {}};
  if (!companion.file.map(path, error))
    return false;
  if (companions.push(companion))
    return true;
  companion.file.unmap();
  return error.set("no memory left for the name '%s'", path);
}

bool CheckpointTexts::start(const SaveSettings &chosen, Error &error) {
  settings = chosen;
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

int64_t CheckpointTexts::companionBytes() const {
  int64_t bytes = 0;
  for (const Companion &companion : companions)
    bytes += companion.file.size;
  return bytes;
}

CheckpointTexts::~CheckpointTexts() {
  for (Companion &companion : companions)
    companion.file.unmap();
}

//===----------------------------------------------------------------------===//
// Files of one checkpoint
//===----------------------------------------------------------------------===//

int64_t CheckpointTexts::bytes() const {
  int64_t bytes = 0;
  for (const FileSum &file : files)
    bytes += file.bytes;
  return bytes;
}

/// Whether the compiler says what the model was described with.
static bool hasSection(const RepriseModel &model) {
  return model.trainJson && *model.trainJson;
}

bool CheckpointTexts::write(const char *path, const RunState &state) {
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
         writeTrainer(path, state);
}

bool CheckpointTexts::areWhole(const char *path, Error &error) const {
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

bool CheckpointTexts::writeText(const char *path, const char *name,
                                const char *text, size_t size) {
  FileSum sum = {"", int64_t(size), int64_t(size), 0};
  snprintf(sum.name, sizeof(sum.name), "%s", name);
  OutputFile file;
  return file.create(Path("%s/%s", path, name)) &&
         file.write(text, size, &sum.crc) && file.finish() && files.push(sum);
}

/// Notes a file that ranks have written.
bool CheckpointTexts::sumTensors(int index) {
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

bool CheckpointTexts::writeIndex(const char *path) {
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

bool CheckpointTexts::writeDescription(const char *path) {
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

void CheckpointTexts::writeRun(JsonWriter &json, const RunState &state) const {
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

void CheckpointTexts::writeSums(JsonWriter &json) const {
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

bool CheckpointTexts::writeTrainer(const char *path, const RunState &state) {
  TextFile out;
  if (!out.file)
    return false;
  FILE *file = out.file;
  JsonWriter json(file);
  json.object(JsonWriter::Lines);
  writeRun(json, state);
  writeSums(json);
  // The sum of all before it; the reader expects exactly this line.
  if (fflush(file) != 0)
    return false;
  json.key("crc32c").hex(crc32c(out.text, out.size)).finish();
  return out.close() && writeText(path, kTrainerFile, out.text, out.size);
}
