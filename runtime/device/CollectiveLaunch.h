//===- CollectiveLaunch.h - What ranks do together in a launch --*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DEVICE_COLLECTIVELAUNCH_H
#define REPRISE_RUNTIME_DEVICE_COLLECTIVELAUNCH_H

#include "runtime/transport/Collectives.h"

#include "reprise/ABI/Model.h"

namespace reprise::runtime {

/// Checks a launch of REPRISE_LAUNCH_COLLECTIVE, whose buffers lie in the
/// arena: its row, whether `rank` takes part, and what the buffers have room
/// for.
bool checkCollective(const RepriseModel &model, const RepriseLaunch &launch,
                     int rank, Error &error);

/// Runs it with its buffers at `addresses` of `memory`; `ranks` has the lanes
/// of the host's.
bool runCollective(const RepriseModel &model, const RepriseLaunch &launch,
                   void *const *addresses, RankMemory &memory, Error &error);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DEVICE_COLLECTIVELAUNCH_H
