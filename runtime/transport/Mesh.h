//===- Mesh.h - The ranks that a program is for -----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_TRANSPORT_MESH_H
#define REPRISE_RUNTIME_TRANSPORT_MESH_H

#include "Collectives.h"
#include "runtime/base/Shard.h"

#include "reprise/ABI/Model.h"

#include <cstddef>

namespace reprise::runtime {

/// The product of the sizes of all axes that are no parts of others; 1 without
/// any.
int64_t countRanks(const RepriseModel &model);

/// The number of `rank` along an axis.
int64_t coordinateOf(const RepriseModel &model, int rank, int axis);

/// "rank 5 (dp 1, tp 1)": the number of a rank, and its coordinates.
void nameRank(const RepriseModel &model, int rank, char *text, size_t size);

/// "dp 2 x tp 4, ep 2": the axes and their sizes, and of how many ranks each
/// has some of the experts.
void describeMesh(const RepriseModel &model, char *text, size_t size);

/// The samples of a rank: one shard for each coordinate of "dp".
Shard dataShardOf(const RepriseModel &model, int rank);

/// The ranks that are where `rank` is, but for this axis.
Group groupOf(const RepriseModel &model, int rank, int axis);

/// Where ranks have samples of their own, or parts of a model, or both.
struct SampleAxes {
  int samples, parts; ///< The axes "dp" and "tp"; -1 without one.
  bool areAll;        ///< Ranks are along no other axis.
};
SampleAxes sampleAxesOf(const RepriseModel &model);

/// Whether one of two axes has a part of the other, or is it.
bool overlap(const RepriseModel &model, int axis, int other);

/// The axis of the stages of a pipeline.
inline constexpr char kStageAxis[] = "pp";
/// That of ranks with other experts, a part of others.
inline constexpr char kExpertAxis[] = "ep";

/// How many stages there are, and which is that of `rank`; 1 and 0 without that
/// axis.
int64_t countStages(const RepriseModel &model);
int64_t stageOf(const RepriseModel &model, int rank);

/// Whether the model has what comes out: it is whole, or that of the last
/// stage.
bool hasOutput(const RepriseModel &model);

/// The ranks with the stages of one model, from the first on, or from the last
/// one on.
Group stagesFrom(const RepriseModel &model, int rank, bool isLast);

/// The ranks that have parts of the same parameters as `rank`, along "tp", "ep"
/// or both.
Group modelGroupOf(const RepriseModel &model, int rank);

/// Whether `rank` is one of those that rank 0 needs to compute something: they
/// have parts of its parameters.
bool isWithFirst(const RepriseModel &model, int rank);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_TRANSPORT_MESH_H
