//===- Delivery.cpp - States on their way to who writes them --------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Delivery.h"

#include <algorithm>
#include <cstring>

using namespace reprise::runtime;

/// What is sent at a time.
static constexpr int64_t kMessageElements = 1 << 20;

void WholePlace::put(int64_t element, const float *values,
                     int64_t count) const {
  element -= base;
  while (count > 0) {
    const int64_t column = element % width;
    const int64_t run =
        stride == width ? count : std::min(count, width - column);
    memcpy(first + (element / width * stride + column + offset), values,
           size_t(run) * sizeof(float));
    element += run;
    values += run;
    count -= run;
  }
}

int64_t Deliveries::roomFor(int64_t elements) {
  return 2 * int64_t(sizeof(float)) * std::min(elements, kMessageElements);
}

bool Deliveries::add(const RepriseState &state, Share elements, int receiver,
                     const WholePlace &place) {
  for (int64_t begin = elements.begin; begin < elements.end;
       begin += kMessageElements) {
    const int64_t end = std::min(begin + kMessageElements, elements.end);
    largest = std::max(largest, end - begin);
    if (!list.push({&state, {begin, end}, receiver, place}))
      return false;
  }
  return true;
}

const Deliveries::Delivery *Deliveries::firstOf(int receiver) const {
  return std::lower_bound(
      list.begin(), list.end(), receiver,
      [](const Delivery &each, int rank) { return each.receiver < rank; });
}

/// What happens at the same time: what this rank sends to `to`, or keeps, and
/// what it gets from `from`.
struct Deliveries::Round {
  const RepriseModel &model;
  const Arena &arena;
  Transport &ranks;
  int to, from;
  const Delivery *out, *outEnd, *in, *inEnd;

  bool sends(const Delivery &delivery) const {
    return sendsPart(model, *delivery.state, ranks.rank(), to);
  }
  bool gets(const Delivery &delivery) const {
    return sendsPart(model, *delivery.state, from, ranks.rank());
  }
  /// Calls `visit(whole, values, count)` with this rank's own of the elements.
  template <typename Visit>
  bool forOwn(const Delivery &delivery, Visit visit, Error &error) const;
};

template <typename Visit>
bool Deliveries::Round::forOwn(const Delivery &delivery, Visit visit,
                               Error &error) const {
  const auto [begin, end] = delivery.elements;
  const RepriseState &state = *delivery.state;
  const Part part = partOf(model, state, ranks.rank());
  const float *own = arena.at<float>(state.buffer);
  RepriseBuffer used = {state.buffer.offset, 0}; // Of a GPU, only these.
  if (arena.isCopy()) {
    int64_t first = INT64_MAX, last = 0;
    part.forEachRun(begin, end, [&](int64_t, int64_t at, int64_t count) {
      first = std::min(first, at), last = std::max(last, at + count);
      return true;
    });
    if (first >= last)
      return true;
    used = {state.buffer.offset + first * 4, (last - first) * 4};
  }
  if (!arena.download(used, error))
    return false;
  part.forEachRun(begin, end, [&](int64_t whole, int64_t at, int64_t count) {
    visit(whole, own + at, count);
    return true;
  });
  arena.release(used);
  return true;
}

/// What this rank has itself.
bool Deliveries::keepOwn(const Round &round, ThreadPool &pool,
                         Error &error) const {
  auto keep = [&](const Delivery &each, Error &failure) {
    return !round.sends(each) ||
           round.forOwn(
               each,
               [&](int64_t whole, const float *values, int64_t count) {
                 each.place.put(whole, values, count);
               },
               failure);
  };
  if (round.arena.isCopy())
    return std::all_of(round.out, round.outEnd,
                       [&](const Delivery &each) { return keep(each, error); });
  pool.parallelFor(round.outEnd - round.out, 1,
                   [&](int, int64_t begin, int64_t end) {
                     Error none; // Only copies can fail.
                     for (int64_t i = begin; i < end; ++i)
                       keep(round.out[i], none);
                   });
  return true;
}

/// One message there, and one from elsewhere, if there is something in it.
bool Deliveries::exchange(const Round &round, int64_t index, Error &error) {
  int64_t numSent = 0, numReceived = 0;
  const Delivery *out = round.out + index, *in = round.in + index;
  if (out < round.outEnd && round.sends(*out) &&
      !round.forOwn(
          *out,
          [&](int64_t, const float *values, int64_t count) {
            memcpy(sent.begin() + numSent, values,
                   size_t(count) * sizeof(float));
            numSent += count;
          },
          error))
    return false;
  if (in < round.inEnd && round.gets(*in))
    numReceived = partOf(round.model, *in->state, round.from)
                      .elements(in->elements.begin, in->elements.end);
  if (numSent == 0 && numReceived == 0)
    return true;
  const Parcel there = {round.to, reinterpret_cast<char *>(sent.begin()),
                        size_t(numSent) * sizeof(float)};
  const Parcel here = {round.from, reinterpret_cast<char *>(received.begin()),
                       size_t(numReceived) * sizeof(float)};
  if (!round.ranks.exchange("the parts of states", Patience::Limited, &there,
                            numSent > 0, &here, numReceived > 0, error))
    return false;
  const float *next = received.begin();
  if (numReceived > 0)
    partOf(round.model, *in->state, round.from)
        .forEachRun(in->elements.begin, in->elements.end,
                    [&](int64_t whole, int64_t, int64_t count) {
                      in->place.put(whole, next, count);
                      next += count;
                      return true;
                    });
  return true;
}

bool Deliveries::run(const RepriseModel &model, const Arena &arena,
                     Transport &ranks, ThreadPool &pool, Error &error) {
  const int self = ranks.rank(), size = ranks.size();
  const size_t room = size > 1 ? size_t(largest) : 0;
  if (!sent.resize(room) || !received.resize(room))
    return error.set("no memory left for two messages of %" PRId64 " bytes",
                     largest * 4);
  for (int k = 0; k < size; ++k) {
    const int to = (self + k) % size, from = (self + size - k) % size;
    const Round round = {model,
                         arena,
                         ranks,
                         to,
                         from,
                         firstOf(to),
                         firstOf(to + 1),
                         firstOf(self),
                         firstOf(self + 1)};
    if (k == 0) {
      if (!keepOwn(round, pool, error))
        return false;
      continue;
    }
    const int64_t count =
        std::max(round.outEnd - round.out, round.inEnd - round.in);
    for (int64_t i = 0; i < count; ++i)
      if (!exchange(round, i, error))
        return false;
  }
  return true;
}
