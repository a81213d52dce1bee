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
/// What layers keep, from the end of the forward pass to the position that
/// reads it last: an op of backward or a replay, of whatever layer.
class KeptChecker {
public:
  explicit KeptChecker(const Claims &claims);

  std::optional<Fault> check() const;

private:
  template <typename Visit>
  void visitSources(size_t layer, const Reads &reads, Visit visit) const;
  std::optional<Fault> checkForward() const;
  /// Bytes of what an op of backward reads that is not kept, each once.
  __int128 getMadeAgain(size_t layer, const Reads &reads) const;
  bool isRead(size_t layer, const Ref &kept) const {
    return lastReads[layer][kept.index] >= 0;
  }

  const Claims &claims;
  std::vector<int64_t> live;      ///< by position
  std::vector<int64_t> positions; ///< of the ops of backward, in their order
  std::vector<std::vector<bool>> isKept; ///< by layer and tensor
  /// By layer and tensor: the last position behind the forward pass that reads
  /// it; -1: none.
  std::vector<std::vector<int64_t>> lastReads;
};
} // namespace

KeptChecker::KeptChecker(const Claims &claims)
    : claims(claims), live(getLiveBytes(claims)),
      positions(getBackwardPositions(claims)) {
  for (size_t l = 0; l < claims.layers.size(); ++l) {
    size_t count = claims.classOf(l).tensors.size();
    lastReads.emplace_back(count, -1);
    isKept.emplace_back(count);
    for (const Ref &kept : claims.layers[l].keeps)
      isKept[l][kept.index] = true;
  }
  auto add = [&](size_t layer, const Reads &reads, int64_t position) {
    visitSources(layer, reads, [&](const Source &source) {
      int64_t &last = lastReads[source.layer][source.tensor];
      last = std::max(last, position);
    });
  };
  size_t number = 0;
  for (size_t l = claims.layers.size(); l-- > 0;)
    for (const Gradient &gradient : claims.classOf(l).backward)
      add(l, gradient.reads, positions[number++]);
  for (size_t p = 0; p < claims.schedule.size(); ++p)
    for (const ReplayRef &replay : claims.schedule[p].replays)
      add(replay.layer, claims.classOf(replay.layer).ops[replay.op].reads, p);
}

template <typename Visit>
void KeptChecker::visitSources(size_t layer, const Reads &reads,
                               Visit visit) const {
  for (int64_t tensor : reads.tensors)
    visit(Source{int64_t(layer), tensor});
  for (int64_t input : reads.inputs)
    visit(claims.layers[layer].inputs[input]);
}

static std::string print(__int128 bytes) {
  return std::to_string(int64_t(std::min<__int128>(bytes, INT64_MAX)));
}

std::optional<Fault> KeptChecker::checkForward() const {
  int64_t end = countForward(claims) - 1;
  __int128 bytes = 0;
  for (size_t l = 0; l < claims.layers.size(); ++l)
    for (const Ref &kept : claims.layers[l].keeps) {
      if (!isRead(l, kept))
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

__int128 KeptChecker::getMadeAgain(size_t layer, const Reads &reads) const {
  std::vector<std::pair<int64_t, int64_t>> sources;
  visitSources(layer, reads, [&](const Source &source) {
    if (!isKept[source.layer][source.tensor])
      sources.emplace_back(source.layer, source.tensor);
  });
  std::sort(sources.begin(), sources.end());
  sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
  __int128 bytes = 0;
  for (auto [l, tensor] : sources)
    bytes += claims.classOf(l).tensors[tensor].bytes;
  return bytes;
}

std::optional<Fault> KeptChecker::check() const {
  if (std::optional<Fault> fault = checkForward())
    return fault;
  // Of what is kept, what no position from one on reads.
  std::vector<__int128> dead(claims.schedule.size() + 1);
  __int128 kept = 0;
  for (size_t l = 0; l < claims.layers.size(); ++l)
    for (const Ref &it : claims.layers[l].keeps)
      if (isRead(l, it)) {
        int64_t bytes = claims.classOf(l).tensors[it.index].bytes;
        dead[lastReads[l][it.index] + 1] += bytes;
        kept += bytes;
      }
  size_t number = 0;
  int64_t position = 0;
  for (size_t l = claims.layers.size(); l-- > 0;)
    for (const Gradient &gradient : claims.classOf(l).backward) {
      for (; position <= positions[number]; ++position)
        kept -= dead[position];
      int64_t at = positions[number++];
      __int128 beside = kept + gradient.bytes + getMadeAgain(l, gradient.reads);
      if (beside > live[at])
        return Fault{claims.layers[l].at,
                     "'" + gradient.name + "' of '" + claims.layers[l].name +
                         "' runs beside " + print(beside) +
                         " bytes, but the schedule has " + print(live[at]) +
                         " alive at position " + std::to_string(at)};
    }
  return std::nullopt;
}

std::optional<Fault> reprise::verify::checkKept(const Claims &claims) {
  return KeptChecker(claims).check();
}
