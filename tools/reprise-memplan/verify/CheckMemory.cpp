//===- CheckMemory.cpp - Lives, offsets and peak --------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Claims.h"

#include <algorithm>
#include <map>

using namespace reprise::verify;

namespace {
/// Positions, both included.
struct Life {
  int64_t first = -1, last = -1;
};
} // namespace

static std::string describe(const Claims &claims, int64_t buffer) {
  const Buffer &it = claims.buffers[buffer];
  return "buffer " + std::to_string(buffer) + " '" + it.name + "'";
}

static std::string describe(const Claims &claims, int64_t buffer,
                            const Life &life) {
  const Buffer &it = claims.buffers[buffer];
  return describe(claims, buffer) + " at bytes [" + std::to_string(it.offset) +
         ", " + std::to_string(it.offset + it.bytes) + ") and positions " +
         std::to_string(life.first) + " to " + std::to_string(life.last);
}

/// Sizes count as rounded up to the alignment: what lies behind is aligned.
static int64_t getRoundedBytes(const Buffer &buffer) {
  int64_t pieces = (buffer.bytes + buffer.alignment - 1) / buffer.alignment;
  return pieces * buffer.alignment;
}

/// From the first position that writes a buffer to the last that touches it.
static std::vector<Life> getLives(const Claims &claims) {
  std::vector<Life> lives(claims.buffers.size());
  for (size_t p = 0; p < claims.schedule.size(); ++p) {
    for (const Ref &read : claims.schedule[p].reads)
      lives[read.index].last = p;
    for (const Ref &write : claims.schedule[p].writes) {
      Life &life = lives[write.index];
      life.last = p;
      if (life.first < 0)
        life.first = p;
    }
  }
  return lives;
}

static std::optional<Fault> checkReads(const Claims &claims) {
  std::vector<bool> isWritten(claims.buffers.size());
  bool isUpdate = false;
  for (size_t p = 0; p < claims.schedule.size(); ++p) {
    const Launch &launch = claims.schedule[p];
    if (isUpdate && !launch.isUpdate)
      return Fault{launch.at, "position " + std::to_string(p) +
                                  " runs for each micro-batch, but comes "
                                  "behind the update"};
    isUpdate = launch.isUpdate;
    for (const Ref &read : launch.reads)
      if (!isWritten[read.index])
        return Fault{read.at, "position " + std::to_string(p) + " '" +
                                  launch.name + "' reads " +
                                  describe(claims, read.index) +
                                  ", which no position before it writes"};
    for (const Ref &write : launch.writes)
      isWritten[write.index] = true;
  }
  for (size_t b = 0; b < claims.buffers.size(); ++b)
    if (!isWritten[b])
      return Fault{claims.buffers[b].at,
                   "nothing writes " + describe(claims, b)};
  return std::nullopt;
}

/// Bytes may change hands at one position: where the old buffer is read last
/// and the new one is written first.
static std::optional<Fault> checkInPlace(const Claims &claims,
                                         const std::vector<Life> &lives) {
  std::vector<int64_t> heirs(claims.buffers.size(), -1);
  for (size_t b = 0; b < claims.buffers.size(); ++b) {
    const Buffer &buffer = claims.buffers[b];
    if (!buffer.inPlaceOf)
      continue;
    int64_t other = buffer.inPlaceOf->index;
    size_t at = buffer.inPlaceOf->at;
    std::string taking = describe(claims, b, lives[b]) + " takes over " +
                         describe(claims, other, lives[other]);
    if (heirs[other] >= 0)
      return Fault{at, taking + ", and so does buffer " +
                           std::to_string(heirs[other])};
    heirs[other] = b;
    if (int64_t(b) == other || lives[other].last != lives[b].first ||
        lives[other].first == lives[other].last)
      return Fault{at, taking + ", but the one needs to be read last where the "
                                "other is written first"};
    const Launch &launch = claims.schedule[lives[b].first];
    if (std::none_of(launch.reads.begin(), launch.reads.end(),
                     [&](const Ref &read) { return read.index == other; }))
      return Fault{at, taking + ", but position " +
                           std::to_string(lives[b].first) +
                           " does not read it"};
    const Buffer &old = claims.buffers[other];
    if (old.offset != buffer.offset || old.bytes < buffer.bytes)
      return Fault{at, taking + ", but not its first bytes"};
  }
  return std::nullopt;
}

namespace {
/// The buffers alive at a position, by offset.
class Arena {
public:
  Arena(const Claims &claims, const std::vector<Life> &lives)
      : claims(claims), lives(lives) {}

  std::optional<Fault> insert(int64_t buffer);
  void erase(int64_t buffer) { byOffset.erase(claims.buffers[buffer].offset); }

private:
  std::optional<Fault> overlap(int64_t one, int64_t other) const {
    return Fault{claims.buffers[one].at,
                 describe(claims, one, lives[one]) + " overlaps " +
                     describe(claims, other, lives[other])};
  }

  const Claims &claims;
  const std::vector<Life> &lives;
  std::map<int64_t, int64_t> byOffset;
};
} // namespace

std::optional<Fault> Arena::insert(int64_t buffer) {
  const Buffer &it = claims.buffers[buffer];
  auto next = byOffset.lower_bound(it.offset);
  if (next != byOffset.end() && next->first < it.offset + it.bytes)
    return overlap(buffer, next->second);
  if (next != byOffset.begin()) {
    int64_t other = std::prev(next)->second;
    if (claims.buffers[other].offset + claims.buffers[other].bytes > it.offset)
      return overlap(buffer, other);
  }
  byOffset[it.offset] = buffer;
  return std::nullopt;
}

static std::optional<Fault> checkOverlaps(const Claims &claims,
                                          const std::vector<Life> &lives) {
  std::vector<std::vector<int64_t>> begin(claims.schedule.size()),
      end(claims.schedule.size());
  for (size_t b = 0; b < claims.buffers.size(); ++b)
    if (claims.buffers[b].bytes > 0) {
      begin[lives[b].first].push_back(b);
      end[lives[b].last].push_back(b);
    }
  Arena arena(claims, lives);
  std::vector<bool> isThere(claims.buffers.size());
  for (size_t p = 0; p < claims.schedule.size(); ++p) {
    // Where bytes change hands the old buffer stands for both.
    for (int64_t b : begin[p])
      if (!claims.buffers[b].inPlaceOf) {
        if (std::optional<Fault> fault = arena.insert(b))
          return fault;
        isThere[b] = true;
      }
    for (int64_t b : end[p])
      if (isThere[b])
        arena.erase(b);
    for (int64_t b : begin[p])
      if (claims.buffers[b].inPlaceOf && lives[b].last > int64_t(p)) {
        if (std::optional<Fault> fault = arena.insert(b))
          return fault;
        isThere[b] = true;
      }
  }
  return std::nullopt;
}

/// What layers keep, of `getCount` micro-batches for each.
template <typename GetCount>
static int64_t getKept(const Claims &claims, GetCount getCount) {
  __int128 bytes = 0;
  // They are buffers, too, somewhere else.
  Buffer piece;
  for (const Buffer &buffer : claims.buffers)
    piece.alignment = std::max(piece.alignment, buffer.alignment);
  for (size_t l = 0; l < claims.layers.size(); ++l) {
    const Layer &layer = claims.layers[l];
    for (const Ref &kept : layer.keeps) {
      piece.bytes = claims.classOf(l).tensors[kept.index].bytes;
      bytes += __int128(getCount(layer)) * getRoundedBytes(piece);
    }
  }
  return std::min<__int128>(bytes, INT64_MAX / 2);
}

int64_t reprise::verify::getBytesInFlight(const Claims &claims) {
  return getKept(claims, [](const Layer &layer) { return layer.inFlight - 1; });
}

int64_t reprise::verify::getKeptBytes(const Claims &claims) {
  return getKept(claims, [](const Layer &) { return 1; });
}

std::vector<int64_t> reprise::verify::getLiveBytes(const Claims &claims) {
  std::vector<Life> lives = getLives(claims);
  std::vector<int64_t> changes(claims.schedule.size() + 1);
  for (size_t b = 0; b < claims.buffers.size(); ++b) {
    const Buffer &buffer = claims.buffers[b];
    // What takes over bytes is counted from the position behind.
    changes[lives[b].first + buffer.inPlaceOf.has_value()] +=
        getRoundedBytes(buffer);
    changes[lives[b].last + 1] -= getRoundedBytes(buffer);
  }
  std::vector<int64_t> live;
  int64_t bytes = 0;
  for (size_t p = 0; p < claims.schedule.size(); ++p)
    live.push_back(bytes += changes[p]);
  return live;
}

/// Tensors that ops read, of any layer and pass. What none does may outlive the
/// step, and is in no buffer.
static std::vector<std::vector<bool>> getRead(const Claims &claims) {
  std::vector<std::vector<bool>> isRead;
  for (const Class &kind : claims.classes) {
    isRead.emplace_back(kind.tensors.size());
    for (const Op &op : kind.ops)
      for (int64_t tensor : op.reads.tensors)
        isRead.back()[tensor] = true;
    for (const Gradient &gradient : kind.backward)
      for (int64_t tensor : gradient.reads.tensors)
        isRead.back()[tensor] = true;
  }
  for (const Layer &layer : claims.layers)
    for (const Source &source : layer.inputs)
      isRead[claims.layers[source.layer].kind][source.tensor] = true;
  return isRead;
}

namespace {
/// What a launch of an op of the forward pass has to have room for.
struct Result {
  const Layer *layer;
  const Tensor *tensor;
  bool isRead;
};
} // namespace

/// Whether the buffers that position `p` writes hold `results`: each its own,
/// in their order, or if there are fewer buffers each in all of them.
static std::optional<Fault> checkResults(const Claims &claims, size_t p,
                                         const std::vector<Result> &results) {
  const Launch &launch = claims.schedule[p];
  auto explain = [&](const Result &result, const std::string &buffers) {
    return Fault{result.tensor->at,
                 "'" + result.tensor->name + "' of '" + result.layer->name +
                     "' has " + std::to_string(result.tensor->bytes) +
                     " bytes, but position " + std::to_string(p) + " '" +
                     launch.name + "' writes " + buffers};
  };
  if (launch.writes.size() >= results.size()) {
    for (size_t k = 0; k < results.size(); ++k) {
      int64_t number = launch.writes[k].index;
      const Buffer &buffer = claims.buffers[number];
      if (results[k].isRead && buffer.bytes < results[k].tensor->bytes)
        return explain(results[k], describe(claims, number) + " of " +
                                       std::to_string(buffer.bytes) +
                                       " for it");
    }
    return std::nullopt;
  }
  // What one op hands to another of the same launch may be in none.
  int64_t bytes = 0;
  for (const Ref &write : launch.writes)
    bytes += getRoundedBytes(claims.buffers[write.index]);
  for (const Result &result : results)
    if (result.isRead && result.tensor->bytes > bytes)
      return explain(result, "buffers of " + std::to_string(bytes));
  return std::nullopt;
}

/// Whether what each launch writes is as large as it says.
static std::optional<Fault> checkLaunches(const Claims &claims) {
  for (size_t p = 0; p < claims.schedule.size(); ++p) {
    const Launch &launch = claims.schedule[p];
    __int128 bytes = 0;
    for (const Ref &write : launch.writes)
      bytes += claims.buffers[write.index].bytes;
    if (bytes != launch.bytes)
      return Fault{launch.at, "position " + std::to_string(p) + " '" +
                                  launch.name + "' writes " +
                                  std::to_string(launch.bytes) +
                                  " bytes, but its buffers have " +
                                  std::to_string(int64_t(bytes))};
  }
  return std::nullopt;
}

std::optional<Fault> reprise::verify::checkTensors(const Claims &claims) {
  std::vector<std::vector<bool>> isRead = getRead(claims);
  auto add = [&](size_t number, const Op &op, std::vector<Result> &results) {
    const Layer &layer = claims.layers[number];
    for (int64_t t : op.writes)
      results.push_back(
          {&layer, &claims.classOf(number).tensors[t], isRead[layer.kind][t]});
  };
  size_t p = 0;
  for (size_t l = 0; l < claims.layers.size(); ++l)
    for (const Op &op : claims.classOf(l).ops) {
      std::vector<Result> results;
      add(l, op, results);
      if (std::optional<Fault> fault = checkResults(claims, p++, results))
        return fault;
    }
  for (; p < claims.schedule.size(); ++p) {
    std::vector<Result> results;
    for (const ReplayRef &replay : claims.schedule[p].replays)
      add(replay.layer, claims.classOf(replay.layer).ops[replay.op], results);
    if (std::optional<Fault> fault = checkResults(claims, p, results))
      return fault;
  }
  return checkLaunches(claims);
}

std::optional<Fault> reprise::verify::checkMemory(const Claims &claims) {
  if (std::optional<Fault> fault = checkReads(claims))
    return fault;
  std::vector<Life> lives = getLives(claims);
  if (std::optional<Fault> fault = checkInPlace(claims, lives))
    return fault;

  int64_t top = claims.base;
  for (size_t b = 0; b < claims.buffers.size(); ++b) {
    const Buffer &buffer = claims.buffers[b];
    if (buffer.offset % buffer.alignment != 0)
      return Fault{buffer.at, describe(claims, b) + " needs an offset that " +
                                  std::to_string(buffer.alignment) +
                                  " divides, but got " +
                                  std::to_string(buffer.offset)};
    if (buffer.offset < claims.base)
      return Fault{buffer.at, describe(claims, b) + " begins at byte " +
                                  std::to_string(buffer.offset) + " of the " +
                                  std::to_string(claims.base) +
                                  " that outlive the step"};
    top = std::max(top, buffer.offset + getRoundedBytes(buffer));
  }
  if (std::optional<Fault> fault = checkOverlaps(claims, lives))
    return fault;

  int64_t beside = getBytesInFlight(claims);
  int64_t peak = top + beside - (claims.isOfActivations ? claims.base : 0);
  if (peak != claims.peak)
    return Fault{
        claims.peakAt,
        "needs a peak of " + std::to_string(peak) +
            ", the end of the last buffer" +
            (beside ? " and what is kept of micro-batches in flight" : "") +
            ", but got " + std::to_string(claims.peak)};
  if (peak > claims.budget)
    return Fault{claims.peakAt, "the peak of " + std::to_string(peak) +
                                    " bytes is above the budget of " +
                                    std::to_string(claims.budget)};
  return std::nullopt;
}
