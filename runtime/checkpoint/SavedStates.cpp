//===- SavedStates.cpp - Where a save reads the states from ---------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SavedStates.h"

#include "Delivery.h"

#include "runtime/base/FreeMemory.h"
#include "runtime/base/Text.h"
#include "runtime/device/ExchangeTimes.h"
#include "runtime/transport/Agreement.h"
#include "runtime/transport/Collectives.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdlib>
#include <cstring>

using namespace reprise::runtime;

/// What a rank takes beside plan and copy: threads' stacks, scratch of GEMMs,
/// tables, pages of files that are in use. Some MiB for each thread.
static constexpr int64_t kReserve = INT64_C(64) << 20;

namespace {
/// What ranks of one machine take together.
struct Needs {
  uint64_t machine;
  int64_t plan; ///< What the plan has not touched yet, but will.
  int64_t copy;
};
} // namespace

/// Whether a copy fits beside the plan into what was allowed; sets the reason
/// if not. (What is allowed of a GPU says nothing of this machine.)
bool SavedStates::isInBudget(const SaveRoom &room) {
  const int64_t left = room.budgetBytes - arena.size();
  if (room.budgetBytes == 0 || arena.isCopy() || left >= bytes + messages)
    return true;
  why.set("a copy of %s is more than the %s that the budget leaves",
          human(bytes + messages).chars,
          human(std::max<int64_t>(left, 0)).chars);
  return false;
}

/// Whether copies fit beside the plans; sets the reason if not.
bool SavedStates::findRoom(Transport &ranks, bool &hasRoom, Error &error) {
  const int64_t touched = arena.residentBytes({0, arena.size()});
  const Needs own = {ranks.size() > 1 ? findMachine(kBootId) : 0,
                     arena.size() - std::max<int64_t>(touched, 0),
                     bytes + messages};
  List<Needs> all;
  if (!all.resize(size_t(ranks.size())))
    return error.set("no memory left for the memory of %d ranks", ranks.size());
  const Group group = {0, 1, ranks.size()};
  const char *what = "the memory of ranks";
  if (!collect(ranks, what, &own, all.begin(), sizeof(own), error) ||
      !broadcast(ranks, group, what, all.begin(), all.size() * sizeof(own),
                 error))
    return false;
  int64_t left = freeMemory(), copies = 0, reserve = 0;
  for (const Needs &each : all)
    if (each.machine == own.machine) {
      left -= left == kUnlimited ? 0 : each.plan;
      copies += each.copy;
      reserve += kReserve;
    }
  hasRoom = left == kUnlimited || left - reserve >= copies;
  if (!hasRoom)
    why.set("a copy of %s does not fit into the %s of memory that are free",
            human(copies).chars, human(std::max<int64_t>(left, 0)).chars);
  return true;
}

bool SliceCopy::allocate(const List<TensorSlice> &slices, Share some,
                         ThreadPool &pool) {
  first = some.begin;
  places.clear();
  int64_t bytes = 0;
  for (int64_t i = some.begin; i < some.end; ++i)
    bytes += slices[size_t(i)].bytes();
  values = static_cast<float *>(malloc(size_t(std::max<int64_t>(bytes, 1))));
  bool good = values;
  float *next = values;
  for (int64_t i = some.begin; i < some.end && good; ++i) {
    good = places.push(next);
    next += slices[size_t(i)].bytes() / int64_t(sizeof(float));
  }
  if (!good) {
    release();
    return false;
  }
  constexpr int64_t kPiece = 1 << 20;
  pool.parallelFor((bytes + kPiece - 1) / kPiece, 1,
                   [&](int, int64_t begin, int64_t end) {
                     begin *= kPiece;
                     end = std::min(end * kPiece, bytes);
                     memset(reinterpret_cast<char *>(values) + begin, 0,
                            size_t(end - begin));
                   });
  return true;
}

void SliceCopy::release() {
  free(values);
  values = nullptr;
}

bool SavedStates::takeCopy(Error &error) {
  return copy.allocate(files.slices(), own, pool) ||
         error.set("--save needs another %" PRId64 " bytes of memory for a "
                   "copy, which this machine does not give; %s",
                   bytes,
                   isNeeded() ? "more ranks, or fewer per machine, need less"
                              : "--save-from arena does without");
}

bool SavedStates::start(const SaveRoom &room, Transport &ranks, Error &error) {
  own = files.slicesOf(ranks.rank());
  bytes = files.bytesOf(ranks.rank());
  int64_t largest = 0;
  for (const TensorSlice &slice : files.slices())
    largest = std::max(largest, slice.end - slice.begin);
  messages = ranks.size() > 1 ? Deliveries::roomFor(largest) : 0;
  const bool isRefused = room.isCopy && !*room.isCopy;
  if (arena.isCopy() && isRefused)
    return error.set("--save-from arena needs the CPU: what is on a GPU is "
                     "copied to be written");
  if (tensors.haveParts() && isRefused)
    return error.set("--save-from arena needs ranks that have all of the "
                     "model: what they have parts of is copied to be "
                     "written");
  return isNeeded() ? startCopy(room, ranks, error)
                    : choose(room, ranks, error);
}

/// There has to be a copy. Where it is more than was allowed, `reason` says so;
/// where it does not fit, nobody would know why the system ends the run.
bool SavedStates::startCopy(const SaveRoom &room, Transport &ranks,
                            Error &error) {
  bool isAllowed = true, hasRoom = true;
  if (!room.isCopy) {
    const bool isOwn = isAllowed = isInBudget(room);
    if (!agreeOnAll(ranks, isAllowed, error))
      return false;
    if (!isAllowed && isOwn)
      why.set("a copy is more than the budget of another rank leaves");
    if (!findRoom(ranks, hasRoom, error))
      return false;
  }
  if (!hasRoom)
    return error.set("--save needs a copy of what ranks write, but %s; more "
                     "ranks, or fewer per machine, need less; --save-from copy "
                     "tries it",
                     why.text);
  return takeCopy(error);
}

/// Where there may be a copy or none.
bool SavedStates::choose(const SaveRoom &room, Transport &ranks, Error &error) {
  const bool isRefused = room.isCopy && !*room.isCopy;
  bool isOwn = !isRefused;
  if (room.budgetBytes > 0 && !room.isCopy)
    isOwn = isInBudget(room);
  else if (!room.isCopy && !findRoom(ranks, isOwn, error))
    return false;
  bool isCopied = isOwn;
  if (!agreeOnAll(ranks, isCopied, error))
    return false;
  Error refused;
  if (isCopied) {
    isOwn = isCopied = takeCopy(refused);
    if (!isOwn && room.isCopy) {
      error = refused;
      return false;
    }
    if (!isOwn)
      why.set("this machine does not give %s for a copy", human(bytes).chars);
    if (!agreeOnAll(ranks, isCopied, error))
      return false;
  }
  if (isCopied)
    return true;
  copy.release();
  if (isOwn && !isRefused)
    why.set("another rank has no room for a copy");
  return true;
}

bool SavedStates::startAlone(Error &error) {
  copy.release();
  own = files.slicesOf(0);
  bytes = files.bytesOf(0);
  messages = 0;
  if (!arena.isCopy())
    return true;
  const int64_t left = freeMemory();
  if (left != kUnlimited && left - kReserve < bytes)
    return error.set("Nothing is saved, as a copy of %s does not fit into the "
                     "%s of memory that are free",
                     human(bytes).chars, human(left).chars);
  return takeCopy(error);
}

bool SavedStates::take(Transport &ranks, Error &error) {
  return !copy || tensors.gather(files.slices(), copy.begin(), arena, ranks,
                                 pool, error);
}

bool SavedStates::areFinite(Error &error) const {
  for (int64_t i = own.begin; i < own.end; ++i) {
    const TensorSlice &slice = files.slices()[size_t(i)];
    if (slice.tensor >= tensors.numParameters())
      return true;
    int64_t before = slice.begin;
    const bool good = read(i, [&](const void *bytes, size_t size) {
      const float *values = static_cast<const float *>(bytes);
      const float *end = values + size / sizeof(float);
      const float *bad = std::find_if_not(
          values, end, [](float value) { return std::isfinite(value); });
      if (bad != end)
        return error.set("'%s' is %s at element %" PRId64,
                         tensors[slice.tensor].name, shown(double(*bad)).chars,
                         before + (bad - values));
      before += end - values;
      return true;
    });
    if (!good)
      return false;
  }
  return true;
}
