//===- LanesRun.h - Parcels on their way ------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TEST_UNIT_RUNTIME_LANESRUN_H
#define REPRISE_TEST_UNIT_RUNTIME_LANESRUN_H

#include "runtime/transport/Ranks.h"

#include <algorithm>
#include <random>
#include <unistd.h>
#include <vector>

namespace reprise::runtime::test {

/// What parcel `number` of a lane has at byte `i`.
inline char byteOf(int from, int to, int lane, int number, size_t i) {
  return char(size_t(from * 7 + to * 31 + lane * 101 + number * 13) + i * 5);
}

/// Sends and receives, and compares what comes.
struct End {
  Transport &ranks;
  Error &error;

  bool send(const Lane &lane, int number) const {
    std::vector<char> bytes(lane.size);
    for (size_t i = 0; i < lane.size; ++i)
      bytes[i] = byteOf(lane.from, lane.to, lane.number, number, i);
    bool good = ranks.send(
        "a send", {lane.to, lane.number, bytes.data(), lane.size, lane.places},
        error);
    // It may be written over, at once.
    std::fill(bytes.begin(), bytes.end(), char(-1));
    return good;
  }
  bool receive(const Lane &lane, int number) const {
    std::vector<char> bytes(lane.size);
    if (!ranks.receive(
            "a receipt",
            {lane.from, lane.number, bytes.data(), lane.size, lane.places},
            error))
      return false;
    for (size_t i = 0; i < lane.size; ++i)
      if (bytes[i] != byteOf(lane.from, lane.to, lane.number, number, i))
        return error.set("byte %zu of parcel %d on lane %d differs", i, number,
                         lane.number);
    return true;
  }
};

/// The lanes of a ring of three ranks, in both directions; the first of each
/// rank has parcels of `size` bytes.
inline std::vector<Lane> lanesOfRing(size_t size) {
  std::vector<Lane> lanes;
  for (int rank = 0; rank < 3; ++rank) {
    lanes.push_back({rank, (rank + 1) % 3, 0, size, 3});
    lanes.push_back({rank, (rank + 2) % 3, 1, 77, 2});
    lanes.push_back({rank, (rank + 1) % 3, 1, 64, 1});
  }
  return lanes;
}

/// Sends `count` parcels on each of these lanes, and receives as many, at every
/// pace, with exchanges in between.
inline bool runRing(const std::vector<Lane> &lanes, int count, Transport &ranks,
                    Error &error) {
  const End end = {ranks, error};
  const int self = ranks.rank();
  std::minstd_rand random(unsigned(1 + self));
  for (int number = 0; number < count; ++number) {
    for (const Lane &lane : lanes)
      if (lane.from == self && !end.send(lane, number))
        return false;
    if (random() % 8 == 0)
      usleep(random() % 1000);
    ranks.progress();
    for (size_t i = lanes.size(); i-- > 0;)
      if (lanes[i].to == self && !end.receive(lanes[i], number))
        return false;
    char out[2] = {}, in[2];
    Parcel send = {(self + 1) % 3, out, 2}, receive = {(self + 2) % 3, in, 2};
    if (number % 10 == 0 && !ranks.exchange("a test", Patience::Limited, &send,
                                            1, &receive, 1, error))
      return false;
  }
  return true;
}

} // namespace reprise::runtime::test

#endif // REPRISE_TEST_UNIT_RUNTIME_LANESRUN_H
