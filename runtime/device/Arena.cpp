//===- Arena.cpp - The one allocation of a training run -------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arena.h"

#include "Init.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

using namespace reprise::runtime;

static constexpr int64_t kAlignment = 256;
static constexpr unsigned char kPattern = 0xFF;

bool Arena::map(int64_t planBytes, Error &error) {
  size_t page = size_t(sysconf(_SC_PAGESIZE));
  size_t usable = (size_t(planBytes) + kAlignment + page - 1) / page * page;
  size_t total = usable + 2 * page;
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | (original ? MAP_NORESERVE : 0);
  void *memory = mmap(nullptr, total, PROT_NONE, flags, -1, 0);
  char *first = static_cast<char *>(memory) + page;
  if (memory == MAP_FAILED ||
      mprotect(first, usable, PROT_READ | PROT_WRITE) != 0) {
    int code = errno;
    if (memory != MAP_FAILED)
      munmap(memory, total);
    return error.set("the plan needs %" PRId64 " bytes of memory, which this "
                     "machine does not give: %s",
                     planBytes, strerror(code));
  }
  madvise(first, usable, MADV_HUGEPAGE); // Only faster; may be refused.
  mapping = memory;
  mappingBytes = total;
  bytes = planBytes;
  uintptr_t end = reinterpret_cast<uintptr_t>(first + usable);
  base = reinterpret_cast<char *>((end - uintptr_t(bytes)) &
                                  ~uintptr_t(kAlignment - 1));
  return true;
}

bool Arena::mapFor(PlanMemory &memory, int64_t planBytes, Error &error) {
  original = &memory;
  return map(planBytes, error);
}

bool Arena::upload(const RepriseBuffer &buffer, Error &error) const {
  return !original ||
         original->upload(buffer.offset, at<char>(buffer), buffer.bytes, error);
}

bool Arena::download(const RepriseBuffer &buffer, Error &error) const {
  return !original || original->download(buffer.offset, at<char>(buffer),
                                         buffer.bytes, error);
}

/// Whole pages; the rest may be its neighbours'.
void Arena::release(const RepriseBuffer &buffer) const {
  if (!original)
    return;
  auto page = uintptr_t(sysconf(_SC_PAGESIZE));
  auto begin = reinterpret_cast<uintptr_t>(base + buffer.offset);
  uintptr_t end = (begin + uintptr_t(buffer.bytes)) / page * page;
  begin = (begin + page - 1) / page * page;
  if (begin < end)
    madvise(reinterpret_cast<void *>(begin), end - begin, MADV_DONTNEED);
}

void Arena::fill(const RepriseBuffer &buffer, unsigned char byte) {
  Error later; // What failed on a device shows in whatever comes next.
  if (original)
    original->fill(buffer.offset, byte, buffer.bytes, later);
  else
    memset(at<char>(buffer), byte, size_t(buffer.bytes));
}

int64_t Arena::residentBytes(const RepriseBuffer &range) const {
  if (original)
    return range.bytes;
  auto page = uintptr_t(sysconf(_SC_PAGESIZE));
  uintptr_t begin = reinterpret_cast<uintptr_t>(base + range.offset);
  uintptr_t end = begin + uintptr_t(range.bytes);
  constexpr uintptr_t kPages = 4096; // At a time.
  unsigned char present[kPages];
  int64_t sum = 0;
  for (uintptr_t first = begin / page * page; first < end;
       first += kPages * page) {
    uintptr_t last = std::min(first + kPages * page, end);
    if (mincore(reinterpret_cast<void *>(first), last - first, present) != 0)
      return -1;
    for (uintptr_t at = first, i = 0; at < last; at += page, ++i)
      if (present[i] & 1)
        sum += int64_t(std::min(at + page, end) - std::max(at, begin));
  }
  return sum;
}

Arena::~Arena() {
  if (mapping)
    munmap(mapping, mappingBytes);
}

bool MemoryCheck::start(const RepriseModel &model, Arena &checked,
                        Error &error) {
  int most = model.numStates + model.numRotaries + 1, count = 0;
  gaps = static_cast<RepriseBuffer *>(
      calloc(size_t(most) + 1, sizeof(RepriseBuffer)));
  if (!gaps)
    return error.set("no memory left to note %d buffers", most);
  arena = &checked;
  for (int i = 0; i < model.numStates; ++i)
    if (outlivesStep(model.states[i]))
      gaps[count++] = model.states[i].buffer;
  for (int i = 0; i < model.numRotaries; ++i)
    gaps[count++] = model.rotaries[i].buffer;
  gaps[count++] = model.batches;
  std::sort(gaps, gaps + count,
            [](const RepriseBuffer &a, const RepriseBuffer &b) {
              return a.offset < b.offset;
            });
  int64_t end = 0;
  for (int i = 0; i < count; ++i) {
    RepriseBuffer kept = gaps[i];
    if (kept.offset > end)
      gaps[numGaps++] = {end, kept.offset - end};
    end = std::max(end, kept.offset + kept.bytes);
  }
  if (end < arena->size())
    gaps[numGaps++] = {end, arena->size() - end};
  return true;
}

MemoryCheck::~MemoryCheck() { free(gaps); }

void MemoryCheck::fillGaps() {
  // What nobody has filled yet are the system's zeros.
  if (filled)
    furthest = std::max(furthest, findEnd());
  filled = true;
  for (int i = 0; i < numGaps; ++i)
    arena->fill(gaps[i], kPattern);
}

int64_t MemoryCheck::writtenBytes() const {
  return filled ? std::max(furthest, findEnd()) : 0;
}

/// The end of the last byte in `range` that is not the pattern; its begin if
/// there is none.
static int64_t endOfWritten(const Arena &arena, const RepriseBuffer &range) {
  constexpr int64_t kPiece = 1 << 24; // Of a GPU's memory, at a time.
  int64_t end = range.offset + range.bytes;
  while (end > range.offset) {
    RepriseBuffer piece = {std::max(range.offset, end - kPiece), 0};
    piece.bytes = end - piece.offset;
    Error unreadable; // It is taken as written.
    if (!arena.download(piece, unreadable))
      return end;
    while (end > piece.offset && *arena.at<unsigned char>(end - 1) == kPattern)
      --end;
    arena.release(piece);
    if (end > piece.offset)
      return end;
  }
  return end;
}

int64_t MemoryCheck::findEnd() const {
  int64_t end = arena->size();
  for (int i = numGaps - 1; i >= 0; --i) {
    if (gaps[i].offset + gaps[i].bytes < end)
      return end; // What is kept lies between this gap and `end`.
    end = endOfWritten(*arena, gaps[i]);
    if (end > gaps[i].offset)
      return end;
  }
  return end;
}
