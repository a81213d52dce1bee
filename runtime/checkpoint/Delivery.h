//===- Delivery.h - States on their way to who writes them ------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_CHECKPOINT_DELIVERY_H
#define REPRISE_RUNTIME_CHECKPOINT_DELIVERY_H

#include "runtime/base/List.h"
#include "runtime/base/ThreadPool.h"
#include "runtime/device/Arena.h"
#include "runtime/transport/Parts.h"
#include "runtime/transport/Transport.h"

namespace reprise::runtime {

/// Where elements of a whole state of f32 go: element `base + e` of it to
/// `first[e / width * stride + e % width + offset]`.
struct WholePlace {
  float *first;
  int64_t width, stride;
  int64_t base = 0, offset = 0;

  /// Puts elements of the whole from number `element` on.
  void put(int64_t element, const float *values, int64_t count) const;
};

/// Elements of states that ranks get, each from whoever has them. All ranks
/// know all of them.
///
/// In round k every rank sends to the one k behind it, and receives from the
/// one k before it, in messages of some MiB, which cross. So all are busy, and
/// with two messages' room each.
class Deliveries {
public:
  Deliveries() = default;
  Deliveries(const Deliveries &) = delete;
  Deliveries &operator=(const Deliveries &) = delete;

  /// The bytes of a rank's two messages, where no state or part of one that is
  /// added has more elements.
  static int64_t roomFor(int64_t elements);

  /// Adds elements of a state, whose place counts at the receiver. Receivers
  /// come in their order. False if there is no memory left.
  bool add(const RepriseState &state, Share elements, int receiver,
           const WholePlace &place);

  /// Brings all of them to their places. Ranks wait for each other without a
  /// limit.
  bool run(const RepriseModel &model, const Arena &arena, Transport &ranks,
           ThreadPool &pool, Error &error);

private:
  /// What fits in a message.
  struct Delivery {
    const RepriseState *state;
    Share elements;
    int receiver;
    WholePlace place;
  };
  struct Round;
  const Delivery *firstOf(int receiver) const;
  bool keepOwn(const Round &round, ThreadPool &pool, Error &error) const;
  bool exchange(const Round &round, int64_t index, Error &error);

  List<Delivery> list;
  List<float> sent, received; ///< A message each.
  int64_t largest = 0;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_CHECKPOINT_DELIVERY_H
