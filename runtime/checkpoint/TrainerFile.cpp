//===- TrainerFile.cpp - What a checkpoint says of its run ----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TrainerFile.h"

#include "runtime/base/Crc32c.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>

using namespace reprise::runtime;

bool TrainerFile::read(Error &error) {
  if (!file.map(ownPath, error))
    return damaged();
  auto *text = reinterpret_cast<const char *>(file.data);
  size_t size = size_t(file.size);
  // The last line is the checksum of all before it.
  char line[64];
  size_t length =
      size_t(snprintf(line, sizeof(line), ",\n  \"crc32c\": \"%08x\"\n}\n", 0));
  if (size < length) {
    error.set("'%s' is damaged: it has %zu bytes", file.path, size);
    return damaged();
  }
  uint32_t crc = crc32c(text, size - length);
  snprintf(line, sizeof(line), ",\n  \"crc32c\": \"%08" PRIx32 "\"\n}\n", crc);
  if (memcmp(text + size - length, line, length) != 0) {
    error.set("'%s' is damaged: its checksum is %08" PRIx32
              ", but it does not end with that",
              file.path, crc);
    return damaged();
  }
  if (!json.parse({text, size}, file.path, error))
    return damaged();
  int64_t format = 0;
  if (!integer("format", format, error))
    return false;
  return format == kCheckpointFormat ||
         error.set("'%s' has format %" PRId64 ", but this program reads "
                   "%" PRId64,
                   file.path, format, kCheckpointFormat);
}

bool TrainerFile::integer(const char *key, int64_t &value, Error &error) {
  JsonValue found = json.root().find(key);
  if (found.asInteger(value) && value >= 0)
    return true;
  json.fail(found, error, "\"%s\" needs a whole number, but got %s", key,
            found.kindName());
  return damaged();
}

/// Whether a number of the checkpoint is that of this run.
bool TrainerFile::same(const char *key, const char *what, int64_t ours,
                       Error &error) {
  int64_t theirs = 0;
  if (!integer(key, theirs, error))
    return false;
  if (theirs == ours)
    return true;
  return error.set("'%s' was trained with %s %" PRId64 ", but this run has "
                   "%" PRId64 "%s",
                   path, what, theirs, ours,
                   OtherRun(path, strcmp(key, "vocab_size") != 0).chars);
}

/// Whether the checkpoint belongs to a run like this one.
bool TrainerFile::checkRun(Error &error) {
  std::string_view name = json.root().find("model").text();
  if (name != model.name)
    return error.set("'%s' is of the model '%.*s', but this program trains "
                     "'%s'%s",
                     path, int(std::min<size_t>(name.size(), 200)), name.data(),
                     model.name, OtherRun(path, /*fits=*/false).chars);
  std::string_view order = json.root().find("data_order").text();
  const char *ours = options.shuffled ? "shuffled" : "sequential";
  if (order != ours)
    return error.set("'%s' was trained with --data-order %.*s, but this run "
                     "has %s%s",
                     path, int(std::min<size_t>(order.size(), 40)),
                     order.data(), ours, OtherRun(path, /*fits=*/true).chars);
  return same("seed", "--seed", int64_t(options.seed), error) &&
         same("micro_batches",
              "micro-batches (global_batch_size / "
              "micro_batch_size):",
              model.numMicroBatches, error) &&
         same("micro_batch_size", "micro_batch_size", model.microBatchSize,
              error) &&
         same("seq_length", "seq_length", model.seqLength, error) &&
         same("vocab_size", "vocab_size", model.vocabSize, error);
}

/// A number, a text or a switch as it is written; empty for all else.
static std::string_view getWord(JsonValue value) {
  if (value.is(JsonKind::True) || value.is(JsonKind::False))
    return value.is(JsonKind::True) ? "true" : "false";
  return value.text();
}

/// Whether two words say another thing; numbers by their value.
static bool differ(JsonValue a, JsonValue b) {
  double left = 0, right = 0;
  if (a.asDouble(left) && b.asDouble(right))
    return left != right;
  return getWord(a) != getWord(b);
}

/// What this program trains with otherwise; it is what counts from here on.
bool TrainerFile::findChanges(Error &changes, Error &error) const {
  JsonDocument now;
  if (!model.trainJson || !*model.trainJson)
    return true;
  if (!now.parse(model.trainJson, "the program's section 'train'", error))
    return false;
  JsonValue then = json.root().find("train");
  size_t length = 0;
  for (JsonItem item : now.root()) {
    JsonValue before = then.find(item.key.text());
    std::string_view key = item.key.text(), old = getWord(before),
                     own = getWord(item.value);
    if (old.empty() || own.empty() || !differ(before, item.value) ||
        length >= sizeof(changes.text))
      continue;
    length += size_t(snprintf(
        changes.text + length, sizeof(changes.text) - length,
        "%s%.*s %.*s then, %.*s now", length ? "; " : "", int(key.size()),
        key.data(), int(old.size()), old.data(), int(own.size()), own.data()));
  }
  return true;
}

/// Old checkpoints have no such checksums.
int64_t TrainerFile::readSum(const char *key) const {
  JsonValue found = json.root().find(key);
  char text[9] = "";
  std::string_view digits = found.text();
  memcpy(text, digits.data(), std::min(digits.size(), sizeof(text) - 1));
  return found.is(JsonKind::String) ? strtoll(text, nullptr, 16)
         : found.is(JsonKind::Null) ? DataMark::kNone
                                    : DataMark::kUnknown;
}

bool TrainerFile::readMark(DataMark &mark, Error &error) {
  mark.crc = readSum("data_crc32c");
  mark.tokenizer = readSum("tokenizer_crc32c");
  mark.isText = json.root().find("data_is_text").is(JsonKind::True);
  return integer("data_tokens", mark.tokens, error);
}

bool TrainerFile::readOutliers(const char *key, Outliers &outliers,
                               Error &error) {
  JsonValue found = json.root().find(key);
  JsonValue values = found.find("values");
  bool good = found.find("count").asInteger(outliers.count) &&
              values.is(JsonKind::Array) &&
              values.size() == std::min(outliers.count, Outliers::kWindow);
  double *next = outliers.values;
  for (JsonItem item : values)
    good = good && item.value.asDouble(*next++);
  if (good)
    return true;
  json.fail(found, error, "\"%s\" needs a count and that many values", key);
  return damaged();
}

bool TrainerFile::open(Resumed &resumed, Error &error) {
  if (!read(error))
    return false;
  resumed.hasOtherSums = bool(json.root().find("sums"));
  return integer("step", resumed.state.step, error) && checkRun(error) &&
         readMark(resumed.data, error) && findChanges(resumed.changes, error) &&
         readOutliers("losses", resumed.state.losses, error) &&
         readOutliers("grad_norms", resumed.state.gradNorms, error);
}
