//===- NcclSums.h - Sums that NCCL makes ------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DEVICE_NCCLSUMS_H
#define REPRISE_RUNTIME_DEVICE_NCCLSUMS_H

#include "Nccl.h"
#include "runtime/transport/Collectives.h"

namespace reprise::runtime {

/// Sums of f32 by NCCL's own reductions: over all ranks, and over groups along
/// an axis of what no other group sums. Where several groups each make the sum
/// of the same value, their copies have to agree to the bit, and each
/// connection adds in an order of its own.
class NcclSums final : public EngineSums {
public:
  explicit NcclSums(Nccl &nccl) : nccl(nccl) {}

  /// Connects the ranks of these groups, of all of which this rank is a member,
  /// for what is on the stream of exchanges. All ranks call it at once, and
  /// have their groups in one order.
  bool connect(Transport &ranks, const Group *groups, int numGroups,
               Error &error);

  /// Whether sums of these numbers over the group, which has several members,
  /// are for it.
  bool makes(const Group &group, Number number) const {
    return number == Number::F32 &&
           (group.size == nccl.size() || findGroup(group) != Nccl::kAll);
  }

  bool allReduce(const Group &group, const char *what, const Span *spans,
                 int numSpans, Error &error) override;
  bool reduceScatter(const Group &group, const char *what, Blocks blocks,
                     const void *whole, void *part, Error &error) override;
  bool reduceShares(const Group &group, const char *what, const Span *spans,
                    int numSpans, Error &error) override;

private:
  bool begin(const Group &group, const char *what, Error &error);
  /// Its number; that of all without one, or if others sum the same.
  int findGroup(const Group &group) const;

  Nccl &nccl;
  List<Group> known;  ///< By their numbers.
  List<NcclSum> sums; ///< That are being begun.
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DEVICE_NCCLSUMS_H
