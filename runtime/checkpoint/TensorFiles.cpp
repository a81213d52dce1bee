//===- TensorFiles.cpp - Which rank writes what of which file -------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorFiles.h"

#include "Checkpoint.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace reprise::runtime;

static constexpr char kShardFormat[] = "model-%05d-of-%05d.safetensors";

/// Of a file: no two ranks write to one.
static constexpr int64_t kPage = 4096;

bool reprise::runtime::isShardName(const char *name) {
  int number = 0, count = 0;
  char exactly[64];
  if (sscanf(name, "model-%d-of-%d", &number, &count) != 2)
    return false;
  snprintf(exactly, sizeof(exactly), kShardFormat, number, count);
  return !strcmp(name, exactly);
}

bool TensorFiles::add(int first, int count, int64_t bytes) {
  TensorFile file = {"", first, count, 0, bytes};
  return files.push(file);
}

bool TensorFiles::find(int64_t shardBytes, Error &error) {
  const int parameters = tensors.numParameters();
  bool good = add(0, 0, 0);
  for (int i = 0; i < parameters && good; ++i) {
    const int64_t bytes = tensors[i].elements() * 4;
    TensorFile *file = &files.back();
    if (file->count && file->tensorBytes + bytes > shardBytes) {
      good = add(i, 0, 0);
      file = &files.back();
    }
    ++file->count;
    file->tensorBytes += bytes;
  }
  const int shards = size();
  int64_t moments = 0;
  for (int i = parameters; i < tensors.size(); ++i)
    moments += tensors[i].elements() * 4;
  good = good && add(parameters, tensors.size() - parameters, moments);
  for (int i = 0; i < size() && good; ++i) {
    TensorFile &file = files[size_t(i)];
    if (i == shards)
      snprintf(file.name, sizeof(file.name), "%s", kOptimizerFile);
    else if (shards == 1)
      snprintf(file.name, sizeof(file.name), "%s", kModelFile);
    else
      snprintf(file.name, sizeof(file.name), kShardFormat, i + 1, shards);
    size_t header = 0;
    char *text = makeHeader(i, header);
    good = text;
    free(text);
    file.headerBytes = int64_t(header);
  }
  return good || error.set("no memory left to note %d tensors", tensors.size());
}

char *TensorFiles::makeHeader(int index, size_t &size) const {
  const TensorFile &file = files[size_t(index)];
  List<OutputTensor> outputs;
  for (int i = file.first; i < file.end(); ++i) {
    const ModelTensor &tensor = tensors[i];
    OutputTensor output = {tensor.prefix, tensor.name, false,
                           tensor.rank,   {},          nullptr};
    memcpy(output.shape, tensor.shape, sizeof(output.shape));
    if (!outputs.push(output))
      return nullptr;
  }
  // They are sorted already, so it changes nothing that this sorts.
  return makeSafeTensorsHeader(outputs.begin(), file.count, size);
}

int64_t TensorFiles::bytes() const {
  int64_t sum = 0;
  for (const TensorFile &file : files)
    sum += file.tensorBytes;
  return sum;
}

/// How many bytes of a file's tensors come before the cut that is closest to
/// `wanted`, which are whole elements: headers are multiples of 8 bytes.
static int64_t cutBefore(const TensorFile &file, int64_t wanted) {
  if (wanted >= file.tensorBytes)
    return file.tensorBytes;
  const int64_t end = (file.headerBytes + wanted) / kPage * kPage;
  return std::max<int64_t>(end - file.headerBytes, 0);
}

bool TensorFiles::deal(const char *writes, int ranks, Error &error) {
  all.clear();
  const int64_t total = bytes(),
                writers = std::count(writes, writes + ranks, true);
  int64_t number = 0; // Of the writer.
  for (int rank = 0; rank < ranks; ++rank) {
    if (!writes[rank])
      continue;
    // In bytes of all tensors, before those of a file, and before a tensor.
    const int64_t from = total * number / writers,
                  to = total * (number + 1) / writers;
    ++number;
    int64_t before = 0;
    for (const TensorFile &file : files) {
      const int64_t begin =
          cutBefore(file, std::max(from - before, INT64_C(0)));
      const int64_t end = cutBefore(file, std::max(to - before, INT64_C(0)));
      before += file.tensorBytes;
      int64_t at = 0;
      for (int i = file.first; i < file.end(); ++i) {
        const int64_t size = tensors[i].elements() * 4;
        const int64_t first = std::clamp<int64_t>(begin - at, 0, size),
                      last = std::clamp<int64_t>(end - at, 0, size);
        at += size;
        if (first < last && !all.push({i, first / 4, last / 4, rank}))
          return error.set("no memory left to note %d tensors", tensors.size());
      }
    }
  }
  return true;
}

Share TensorFiles::slicesOf(int rank) const {
  const auto [first, last] =
      std::equal_range(all.begin(), all.end(), TensorSlice{0, 0, 0, rank},
                       [](const TensorSlice &a, const TensorSlice &b) {
                         return a.rank < b.rank;
                       });
  return {first - all.begin(), last - all.begin()};
}

int64_t TensorFiles::bytesOf(int rank) const {
  const Share own = slicesOf(rank);
  int64_t sum = 0;
  for (int64_t i = own.begin; i < own.end; ++i)
    sum += all[size_t(i)].bytes();
  return sum;
}
