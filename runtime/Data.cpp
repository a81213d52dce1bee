//===- Data.cpp - Training samples from a file ----------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Data.h"

#include "reprise/ABI/Philox.h"

#include <cerrno>
#include <cinttypes>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace reprise::runtime;

/// Rounds of the Feistel network; four make it a good permutation when the
/// round function is one (Luby and Rackoff), small domains want more.
static constexpr uint32_t kRounds = 8;

/// The micro-batch number under which the order of the data is drawn; no
/// micro-batch has it.
static constexpr uint32_t kOrderStream = 0xFFFFFFFFu;

uint64_t reprise::runtime::permute(uint64_t index, uint64_t size, uint64_t seed,
                                   uint64_t epoch) {
  int halfBits = 1;
  while (uint64_t(1) << 2 * halfBits < size)
    ++halfBits;
  uint64_t mask = (uint64_t(1) << halfBits) - 1;
  do {
    uint64_t left = index >> halfBits, right = index & mask;
    for (uint32_t round = 0; round < kRounds; ++round) {
      uint32_t word =
          reprisePhilox(seed, uint32_t(epoch), kOrderStream, round, right * 4);
      uint64_t next = left ^ (word & mask);
      left = right;
      right = next;
    }
    index = left << halfBits | right;
  } while (index >= size);
  return index;
}

TextData::~TextData() {
  if (bytes)
    munmap(const_cast<unsigned char *>(bytes), size_t(tokens));
}

bool TextData::open(const char *path, const BatchShape &batch,
                    int64_t vocabSize, Error &error) {
  shape = batch;
  int file = ::open(path, O_RDONLY | O_CLOEXEC);
  struct stat info;
  if (file < 0 || fstat(file, &info) != 0) {
    int code = errno;
    if (file >= 0)
      close(file);
    return error.set("cannot read '%s': %s", path, strerror(code));
  }
  int64_t needed = shape.globalRows() * shape.length + 1;
  if (!S_ISREG(info.st_mode)) {
    close(file);
    return error.set("cannot read '%s': it is not a plain file", path);
  }
  if (info.st_size < needed) {
    close(file);
    return error.set("'%s' has %" PRId64 " tokens (bytes), but one step needs "
                     "%" PRId64 ": %" PRId64 " rows of %" PRId64
                     " and one more; use more text, or compile with a smaller "
                     "global_batch_size or seq_length",
                     path, int64_t(info.st_size), needed, shape.globalRows(),
                     shape.length);
  }
  void *memory =
      mmap(nullptr, size_t(info.st_size), PROT_READ, MAP_PRIVATE, file, 0);
  int code = errno;
  close(file);
  if (memory == MAP_FAILED)
    return error.set("cannot map '%s': %s", path, strerror(code));
  bytes = static_cast<const unsigned char *>(memory);
  tokens = info.st_size;

  for (int64_t i = 0; vocabSize < 256 && i < tokens; ++i)
    if (bytes[i] >= vocabSize)
      return error.set("'%s' has the token %d (a byte) at offset %" PRId64
                       ", but the model's vocabulary has %" PRId64
                       " tokens, 0 to %" PRId64,
                       path, int(bytes[i]), i, vocabSize, vocabSize - 1);
  return true;
}

int64_t TextData::sampleOf(int64_t step, int64_t row) const {
  int64_t index = step * shape.globalRows() + row;
  int64_t epoch = index / numSamples(), place = index % numSamples();
  if (!shuffled)
    return place;
  return int64_t(
      permute(uint64_t(place), uint64_t(numSamples()), seed, uint64_t(epoch)));
}

void TextData::fill(int64_t step, int64_t microBatch, int32_t *inputs,
                    int32_t *targets) const {
  for (int64_t row = 0; row < shape.rows; ++row) {
    const unsigned char *sample =
        bytes + sampleOf(step, microBatch * shape.rows + row) * shape.length;
    for (int64_t i = 0; i < shape.length; ++i) {
      inputs[row * shape.length + i] = sample[i];
      targets[row * shape.length + i] = sample[i + 1];
    }
  }
}
