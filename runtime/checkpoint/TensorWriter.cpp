//===- TensorWriter.cpp - Ranks write a checkpoint's tensors --------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorWriter.h"

#include "Checkpoint.h"
#include "runtime/base/Crc32c.h"
#include "runtime/base/MappedFile.h"
#include "runtime/base/Text.h"
#include "runtime/transport/Agreement.h"
#include "runtime/transport/Collectives.h"
#include "runtime/transport/Mesh.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstring>
#include <sys/random.h>
#include <unistd.h>

using namespace reprise::runtime;

/// What it is all about, in errors.
static constexpr char kWhat[] = "the save";

TensorWriter::TensorWriter(const RepriseModel &model,
                           const ModelTensors &tensors, const Arena &arena,
                           ThreadPool &pool, Transport &ranks)
    : model(model), tensors(tensors), ranks(ranks), all(tensors),
      states(tensors, all, arena, pool), alone(ranks.size() == 1) {}

//===----------------------------------------------------------------------===//
// Who writes
//===----------------------------------------------------------------------===//

/// Whether this rank's folder of the name is that of rank 0, and it may write
/// there: it has a file in which rank 0 has just written what nobody guesses.
bool TensorWriter::probe(const char *folder, bool &isSeen, Error &error) const {
  const bool isFirst = ranks.rank() == 0;
  const Path path("%s/%s", folder, kProbeFile);
  unsigned char mark[16] = {};
  if (isFirst) {
    OutputFile file;
    unlink(path);
    if (getrandom(mark, sizeof(mark), 0) < 0 || !file.create(path) ||
        !file.write(mark, sizeof(mark)) || !file.finish())
      return error.set("cannot save in '%s': %s", folder, strerror(errno));
  }
  if (!broadcast(ranks, {0, 1, ranks.size()}, kWhat, mark, sizeof(mark), error))
    return false;
  Error ignored;
  MappedFile file;
  isSeen = isFirst ||
           (file.map(path, ignored) && file.size == int64_t(sizeof(mark)) &&
            !memcmp(file.data, mark, sizeof(mark)) &&
            access(folder, W_OK | X_OK) == 0);
  file.unmap();
  return true;
}

bool TensorWriter::findWriters(const char *folder, Error &error) {
  const size_t size = size_t(ranks.size());
  bool isSeen = true;
  if (!writes.resize(size))
    return error.set("no memory left to note %d ranks", ranks.size());
  writes[0] = true;
  if (size == 1)
    return true;
  bool good = probe(folder, isSeen, error);
  const char own = isSeen;
  good = good && collect(ranks, kWhat, &own, writes.begin(), 1, error) &&
         broadcast(ranks, {0, 1, ranks.size()}, kWhat, writes.begin(), size,
                   error);
  if (ranks.rank() == 0)
    unlink(Path("%s/%s", folder, kProbeFile));
  return good;
}

bool TensorWriter::start(const char *folder, int64_t shardBytes,
                         const SaveRoom &room, Error &error) {
  root = withoutSlashes(folder);
  if (!all.find(shardBytes, error) || !findWriters(root, error) ||
      !all.deal(writes.begin(), ranks.size(), error))
    return false;
  const char *none = std::find(writes.begin(), writes.end(), false);
  writers = int(std::count(writes.begin(), writes.end(), true));
  other = none == writes.end() ? -1 : int(none - writes.begin());
  return (sums.resize(all.slices().size()) ||
          error.set("no memory left to note %d tensors", tensors.size())) &&
         states.start(room, ranks, error);
}

bool TensorWriter::becomeAlone(Error &error) {
  giveUp();
  isWriting = false;
  alone = true;
  for (char &each : writes)
    each = &each == writes.begin();
  return all.deal(writes.begin(), ranks.size(), error) &&
         (sums.resize(all.slices().size()) ||
          error.set("no memory left to note %d tensors", tensors.size())) &&
         states.startAlone(error);
}

//===----------------------------------------------------------------------===//
// What ranks do together
//===----------------------------------------------------------------------===//

bool TensorWriter::say(Word word, Error &error) {
  return alone || broadcast(ranks, {0, 1, ranks.size()}, kWhat, &word,
                            sizeof(word), error);
}

bool TensorWriter::follow(int64_t step, Error &error) {
  for (Word word = Word::Ask; word != Word::GoOn;)
    if (!broadcast(ranks, {0, 1, ranks.size()}, kWhat, &word, sizeof(word),
                   error) ||
        !obey(word, step, error))
      return false;
  return true;
}

/// As a rank other than 0.
bool TensorWriter::obey(Word word, int64_t step, Error &error) {
  Error own, nobody;
  const char finished = task.hasFinished();
  switch (word) {
  case Word::Take:
    return states.take(ranks, error);
  case Word::Check:
    states.areFinite(own);
    return collectReasons(own, nobody, error);
  case Word::Write:
    beginOwn(step);
    return true;
  case Word::Ask:
    return collect(ranks, kWhat, &finished, nullptr, 1, error);
  case Word::Close:
    task.wait();
    return collectReasons(reason, nobody, error) && collectSums(error);
  case Word::GoOn:
    return true;
  }
  return true;
}

bool TensorWriter::take(Error &error) {
  if (!say(Word::Take, error))
    return false;
  Transport self;
  return states.take(alone ? self : ranks, error);
}

bool TensorWriter::check(Error &broken, Error &error) {
  Error own;
  if (!say(Word::Check, error))
    return false;
  states.areFinite(own);
  return collectReasons(own, broken, error);
}

bool TensorWriter::begin(int64_t step, Error &failure, Error &error) {
  isWriting = true;
  if (!say(Word::Write, error))
    return false;
  beginOwn(step);
  return states.isCopy() || close(failure, error);
}

bool TensorWriter::ask(bool &haveFinished, Error &error) {
  const char own = task.hasFinished();
  List<char> others;
  if (!others.resize(size_t(ranks.size())))
    return error.set("no memory left for %d answers", ranks.size());
  if (!say(Word::Ask, error) ||
      !collect(ranks, kWhat, &own, others.begin(), 1, error))
    return false;
  haveFinished = std::find(others.begin(), others.end(), 0) == others.end();
  return true;
}

bool TensorWriter::close(Error &failure, Error &error) {
  if (!say(Word::Close, error))
    return false;
  task.wait();
  if (!collectReasons(reason, failure, error) || !collectSums(error))
    return false;
  isWriting = false;
  return true;
}

bool TensorWriter::release(Error &error) { return say(Word::GoOn, error); }

/// Gives rank 0 the first of all reasons, with the name of the rank if that is
/// another one.
bool TensorWriter::collectReasons(const Error &own, Error &first,
                                  Error &error) {
  if (alone) {
    first = own;
    return true;
  }
  const bool isFirst = ranks.rank() == 0;
  List<Error> reasons;
  if (isFirst && !reasons.resize(size_t(ranks.size())))
    return error.set("no memory left for the reasons of %d ranks",
                     ranks.size());
  if (!collect(ranks, kWhat, &own, reasons.begin(), sizeof(own), error))
    return false;
  first = own;
  for (int rank = 1; isFirst && rank < ranks.size() && !first.text[0]; ++rank) {
    Text name;
    nameRank(model, rank, name.chars, sizeof(name.chars));
    if (const char *text = reasons[size_t(rank)].text; *text)
      first.set("%s: %s", name.chars, text);
  }
  return true;
}

/// Gives rank 0 the checksums of all slices.
bool TensorWriter::collectSums(Error &error) {
  if (alone)
    return true;
  List<Parcel> receives;
  auto parcelOf = [&](int rank, int other) {
    const Share part = all.slicesOf(rank);
    return Parcel{other, reinterpret_cast<char *>(sums.begin() + part.begin),
                  size_t(part.end - part.begin) * sizeof(uint32_t)};
  };
  if (ranks.rank() != 0) {
    const Parcel send = parcelOf(ranks.rank(), 0);
    return ranks.exchange(kWhat, Patience::Endless, &send, send.size > 0,
                          nullptr, 0, error);
  }
  for (int rank = 1; rank < ranks.size(); ++rank)
    if (const Parcel parcel = parcelOf(rank, rank);
        parcel.size > 0 && !receives.push(parcel))
      return error.set("no memory left for the sums of %d ranks", ranks.size());
  return ranks.exchange(kWhat, Patience::Endless, nullptr, 0, receives.begin(),
                        int(receives.size()), error);
}

uint32_t TensorWriter::sumOf(int tensor) const {
  const List<TensorSlice> &slices = all.slices();
  const TensorSlice *slice = std::lower_bound(
      slices.begin(), slices.end(), tensor,
      [](const TensorSlice &each, int number) { return each.tensor < number; });
  uint32_t sum = 0;
  for (; slice != slices.end() && slice->tensor == tensor; ++slice)
    sum =
        crc32cOfBoth(sum, sums[size_t(slice - slices.begin())], slice->bytes());
  return sum;
}

//===----------------------------------------------------------------------===//
// What a rank writes
//===----------------------------------------------------------------------===//

/// Without a copy it waits.
void TensorWriter::beginOwn(int64_t step) {
  unfinished = unfinishedPath(root, step);
  reason = {};
  if (int code = task.start(
          [](void *self) { static_cast<TensorWriter *>(self)->writeOwn(); },
          this))
    reason.set("cannot start a thread: %s", strerror(code));
  if (!states.isCopy())
    task.wait();
}

void TensorWriter::writeOwn() {
  if (!write(unfinished))
    reason.set("%s", strerror(errno));
}

bool TensorWriter::write(const char *folder) {
  const int self = alone ? 0 : ranks.rank();
  const Share own = all.slicesOf(self);
  int64_t first = own.begin;
  for (int file = 0; file < all.size(); ++file) {
    int64_t last = first;
    while (last < own.end &&
           all.slices()[size_t(last)].tensor < all[file].end())
      ++last;
    const bool isEmpty = all[file].count == 0 && self == 0;
    if ((first < last || isEmpty) && !writeFile(folder, file, first, last))
      return false;
    first = last;
  }
  return true;
}

/// Writes the slices [first, last) of a file, and what comes before its
/// tensors, if these are its first ones or there are none.
bool TensorWriter::writeFile(const char *folder, int index, int64_t first,
                             int64_t last) {
  const TensorFile &file = all[index];
  const List<TensorSlice> &slices = all.slices();
  int64_t place = 0;
  bool isBegin = first == last;
  if (!isBegin) {
    const TensorSlice &slice = slices[size_t(first)];
    for (int i = file.first; i < slice.tensor; ++i)
      place += tensors[i].elements() * 4;
    place += slice.begin * 4;
    isBegin = place == 0;
  }
  OutputFile out;
  if (!out.open(Path("%s/%s", folder, file.name),
                isBegin ? 0 : file.headerBytes + place))
    return false;
  if (isBegin) {
    size_t size = 0;
    char *header = all.makeHeader(index, size);
    const bool good = header && out.write(header, size);
    free(header);
    if (!good)
      return false;
  }
  for (int64_t i = first; i < last; ++i) {
    uint32_t &sum = sums[size_t(i)];
    sum = 0;
    if (!states.read(i, [&](const void *bytes, size_t count) {
          return out.write(bytes, count, &sum);
        }))
      return false;
    written += slices[size_t(i)].bytes();
  }
  return out.finish();
}
