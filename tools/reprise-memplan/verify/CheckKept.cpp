//===- CheckKept.cpp - Room for what layers keep --------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Claims.h"

#include <algorithm>

using namespace reprise::verify;

namespace {
/// Tensors behind the forward pass: what is kept from its end on, and what
/// runs again from the position behind, to the position that reads it last, an
/// op of backward or a replay, of whatever layer.
class KeptChecker {
public:
  explicit KeptChecker(const Claims &claims);

  std::optional<Fault> check() const;

private:
  void addReads(size_t layer, const Reads &reads, int64_t position);
  std::optional<Fault> checkForward() const;
  std::vector<__int128> getAlive() const;

  const Claims &claims;
  std::vector<int64_t> live;      ///< by position
  std::vector<int64_t> positions; ///< of the ops of backward, in their order
  /// By layer and tensor, behind the forward pass: the first position that it
  /// may be read at, -1: none; and the last one that reads it, -1: none.
  std::vector<std::vector<int64_t>> begins, lastReads;
};
} // namespace

KeptChecker::KeptChecker(const Claims &claims)
    : claims(claims), live(getLiveBytes(claims)),
      positions(getBackwardPositions(claims)) {
  for (size_t l = 0; l < claims.layers.size(); ++l) {
    size_t count = claims.classOf(l).tensors.size();
    lastReads.emplace_back(count, -1);
    begins.emplace_back(count, -1);
  }
  size_t number = 0;
  for (size_t l = claims.layers.size(); l-- > 0;)
    for (const Gradient &gradient : claims.classOf(l).backward)
      addReads(l, gradient.reads, positions[number++]);
  for (size_t p = 0; p < claims.schedule.size(); ++p)
    for (const ReplayRef &replay : claims.schedule[p].replays) {
      const Op &op = claims.classOf(replay.layer).ops[replay.op];
      addReads(replay.layer, op.reads, p);
      for (int64_t tensor : op.writes)
        begins[replay.layer][tensor] = p + 1;
    }
  for (size_t l = 0; l < claims.layers.size(); ++l)
    for (const Ref &kept : claims.layers[l].keeps)
      begins[l][kept.index] = countForward(claims);
}

void KeptChecker::addReads(size_t layer, const Reads &reads, int64_t position) {
  auto add = [&](const Source &source) {
    int64_t &last = lastReads[source.layer][source.tensor];
    last = std::max(last, position);
  };
  for (int64_t tensor : reads.tensors)
    add({int64_t(layer), tensor});
  for (int64_t input : reads.inputs)
    add(claims.layers[layer].inputs[input]);
}

static std::string print(__int128 bytes) {
  return std::to_string(int64_t(std::min<__int128>(bytes, INT64_MAX)));
}

std::optional<Fault> KeptChecker::checkForward() const {
  int64_t end = countForward(claims) - 1;
  __int128 bytes = 0;
  for (size_t l = 0; l < claims.layers.size(); ++l)
    for (const Ref &kept : claims.layers[l].keeps) {
      if (lastReads[l][kept.index] < 0)
        continue;
      const Tensor &tensor = claims.classOf(l).tensors[kept.index];
      bytes += tensor.bytes;
      if (bytes > live[end])
        return Fault{kept.at, "with '" + tensor.name + "' of '" +
                                  claims.layers[l].name +
                                  "' the forward pass keeps " + print(bytes) +
                                  " bytes, but the schedule has " +
                                  print(live[end]) + " alive at its end"};
    }
  return std::nullopt;
}

/// Bytes of tensors at each position behind the forward pass.
std::vector<__int128> KeptChecker::getAlive() const {
  std::vector<__int128> bytes(claims.schedule.size() + 1);
  for (size_t l = 0; l < claims.layers.size(); ++l)
    for (size_t t = 0; t < begins[l].size(); ++t)
      if (begins[l][t] >= 0 && begins[l][t] <= lastReads[l][t]) {
        int64_t own = claims.classOf(l).tensors[t].bytes;
        bytes[begins[l][t]] += own;
        bytes[lastReads[l][t] + 1] -= own;
      }
  for (size_t p = 1; p < bytes.size(); ++p)
    bytes[p] += bytes[p - 1];
  return bytes;
}

std::optional<Fault> KeptChecker::check() const {
  if (std::optional<Fault> fault = checkForward())
    return fault;
  std::vector<__int128> alive = getAlive();
  size_t number = 0;
  for (size_t l = claims.layers.size(); l-- > 0;)
    for (const Gradient &gradient : claims.classOf(l).backward) {
      int64_t at = positions[number++];
      __int128 beside = alive[at] + gradient.bytes;
      if (beside > live[at])
        return Fault{claims.layers[l].at,
                     "'" + gradient.name + "' of '" + claims.layers[l].name +
                         "' runs beside " + print(beside) +
                         " bytes, but the schedule has " + print(live[at]) +
                         " alive at position " + std::to_string(at)};
    }
  for (size_t p = countForward(claims); p < claims.schedule.size(); ++p)
    if (alive[p] > live[p])
      return Fault{
          claims.schedule[p].at,
          "'" + claims.schedule[p].name + "' runs beside " + print(alive[p]) +
              " bytes of tensors, but the schedule has " + print(live[p]) +
              " alive at position " + std::to_string(p)};
  return std::nullopt;
}

std::optional<Fault> reprise::verify::checkKept(const Claims &claims) {
  return KeptChecker(claims).check();
}
