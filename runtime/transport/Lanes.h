//===- Lanes.h - The lanes of a program -------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_TRANSPORT_LANES_H
#define REPRISE_RUNTIME_TRANSPORT_LANES_H

#include "Ranks.h"
#include "runtime/base/List.h"

#include "reprise/ABI/Model.h"

namespace reprise::runtime {

/// The bytes of a parcel that `row`, which sends or receives, moves.
int64_t parcelBytes(const RepriseCollective &row);

/// Checks what `row`, of the launch `name`, says of its lane.
bool checkLane(const RepriseModel &model, const RepriseCollective &row,
               const char *name, Error &error);

/// Whether `row` is a send or a receive.
inline bool isTransfer(const RepriseCollective &row) {
  return row.operation == REPRISE_COLLECTIVE_SEND ||
         row.operation == REPRISE_COLLECTIVE_RECEIVE;
}

/// Finds the lanes between all ranks that run the models for `target`, each the
/// one of its stage: those that one sends and another receives on, with parcels
/// of the same size in as many places.
bool findLanes(const RepriseModel *const *models, int numModels, int target,
               List<Lane> &lanes, Error &error);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_TRANSPORT_LANES_H
