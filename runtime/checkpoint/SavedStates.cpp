//===- SavedStates.cpp - Where a save reads the states from ---------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SavedStates.h"

#include "runtime/base/FreeMemory.h"
#include "runtime/base/Text.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

using namespace reprise::runtime;

/// What a run takes beside plan and copy: threads' stacks, rooms of products,
/// tables, pages of files that are in use. Some MiB for each thread.
static constexpr int64_t kReserve = INT64_C(64) << 20;

/// Whether a copy fits beside the plan; sets the reason if not.
bool SavedStates::hasRoom(const SaveRoom &room, const Arena &arena) {
  if (room.budgetBytes > 0) {
    int64_t left = room.budgetBytes - arena.size();
    if (left >= bytes)
      return true;
    why.set("a copy of %s is more than the %s that the budget leaves",
            human(bytes).chars, human(std::max<int64_t>(left, 0)).chars);
    return false;
  }
  // What the plan has not touched yet it will.
  int64_t untouched =
      arena.size() -
      std::max<int64_t>(arena.residentBytes({0, arena.size()}), 0);
  int64_t left = freeMemory();
  if (left == kUnlimited || left - untouched - kReserve >= bytes)
    return true;
  left = std::max<int64_t>(left - untouched, 0);
  why.set("a copy of %s does not fit into the %s of memory that are free",
          human(bytes).chars, human(left).chars);
  return false;
}

bool SavedStates::allocate(ThreadPool &pool, Error &error) {
  copy = static_cast<float *>(malloc(size_t(std::max<int64_t>(bytes, 1))));
  bool good = copy;
  float *next = copy;
  for (int i = 0; i < tensors.size() && good; ++i) {
    good = places.push(next);
    next += tensors[i].elements();
  }
  if (!good) {
    free(copy);
    copy = nullptr;
    return error.set("--save needs another %" PRId64 " bytes of memory for a "
                     "copy, which this machine does not give; --save-from "
                     "arena does without",
                     bytes);
  }
  constexpr int64_t kPiece = 1 << 20;
  pool.parallelFor(
      (bytes + kPiece - 1) / kPiece, 1, [&](int, int64_t begin, int64_t end) {
        begin *= kPiece;
        end = std::min(end * kPiece, bytes);
        memset(reinterpret_cast<char *>(copy) + begin, 0, size_t(end - begin));
      });
  return true;
}

bool SavedStates::start(const SaveRoom &room, const Arena &arena,
                        ThreadPool &pool, Transport &all, Error &error) {
  for (int i = 0; i < tensors.size(); ++i)
    bytes += tensors[i].elements() * 4;
  source = &arena;
  if (tensors.haveParts())
    ranks = &all;
  if (arena.isCopy()) {
    if (room.isCopy && !*room.isCopy)
      return error.set("--save-from arena needs the CPU: what is on a GPU is "
                       "copied to be written");
    return allocate(pool, error);
  }
  if (ranks) {
    if (room.isCopy && !*room.isCopy)
      return error.set("--save-from arena needs ranks that have all of the "
                       "model: what they have parts of is copied to be "
                       "written");
    return allocate(pool, error);
  }
  if (room.isCopy ? !*room.isCopy : !hasRoom(room, arena))
    return true;
  Error refused;
  if (allocate(pool, refused))
    return true;
  if (room.isCopy) {
    error = refused;
    return false;
  }
  why.set("this machine does not give %s for a copy", human(bytes).chars);
  return true;
}

bool SavedStates::take(const Arena &arena, ThreadPool &pool, Error &error) {
  if (ranks)
    return tensors.gather(arena, places.begin(), *ranks, error);
  return !copy || tensors.copyOut(arena, places.begin(), pool, error);
}

bool SavedStates::areFinite(Error &error) const {
  for (int i = 0; i < tensors.numParameters(); ++i) {
    int64_t before = 0;
    const bool good = read(i, [&](const void *bytes, size_t size) {
      const float *values = static_cast<const float *>(bytes);
      const float *end = values + size / sizeof(float);
      const float *bad = std::find_if_not(
          values, end, [](float value) { return std::isfinite(value); });
      if (bad != end)
        return error.set("'%s' is %s at element %" PRId64, tensors[i].name,
                         shown(double(*bad)).chars, before + (bad - values));
      before += end - values;
      return true;
    });
    if (!good)
      return false;
  }
  return true;
}

SavedStates::~SavedStates() { free(copy); }
