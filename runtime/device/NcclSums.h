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

#include "reprise/ABI/Model.h"

namespace reprise::runtime {

/// Sums of f32 over ranks by NCCL's own reductions, for each group of ranks
/// that the model's schedules sum over, and once more for what runs beside
/// launches. Groups of all ranks have Nccl's own connections.
class NcclSums final : public EngineSums {
public:
  NcclSums(const RepriseModel &model, Nccl &nccl) : model(model), nccl(nccl) {}

  /// Finds the groups of `rank`, in an order that all ranks have in common.
  bool findGroups(int rank, Error &error);
  /// How many connections they need.
  int countGroups() const { return int(groups.size()); }
  /// Connects them, and lets the library take the memory that it needs for
  /// sums. All ranks call it at once.
  bool connect(Transport &ranks, Error &error);

  bool allReduce(const Group &group, const char *what, const Span *spans,
                 int numSpans, Error &error) override;
  bool reduceScatter(const Group &group, const char *what, Blocks blocks,
                     const void *whole, void *part, Error &error) override;
  bool reduceShares(const Group &group, const char *what, const Span *spans,
                    int numSpans, Error &error) override;

private:
  /// A group with a connection of its own: the number of that is its index.
  struct Connected {
    Group group;
    bool isBeside;
  };

  int find(const Group &group, bool isBeside) const;
  bool add(const Group &group, bool isBeside, Error &error);
  bool begin(const Group &group, const char *what, Error &error);

  const RepriseModel &model;
  Nccl &nccl;
  int numRanks = 1;
  List<Connected> groups;
  List<NcclSum> sums; ///< That are being begun.
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DEVICE_NCCLSUMS_H
