//===- Mesh.cpp - The ranks that a program is for -------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mesh.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>

using namespace reprise::runtime;

int64_t reprise::runtime::countRanks(const RepriseModel &model) {
  int64_t count = 1;
  for (int i = 0; i < model.numAxes; ++i)
    count *= model.axes[i].step == 0 ? model.axes[i].size : 1;
  return count;
}

/// From one rank along an axis to the next: the axes behind it count first.
static int64_t strideOf(const RepriseModel &model, int axis) {
  if (model.axes[axis].step != 0)
    return model.axes[axis].step;
  int64_t stride = 1;
  for (int i = axis + 1; i < model.numAxes; ++i)
    stride *= model.axes[i].step == 0 ? model.axes[i].size : 1;
  return stride;
}

bool reprise::runtime::overlap(const RepriseModel &model, int axis, int other) {
  const int64_t stride = strideOf(model, axis);
  const int64_t otherStride = strideOf(model, other);
  return stride < otherStride * model.axes[other].size &&
         otherStride < stride * model.axes[axis].size;
}

int64_t reprise::runtime::coordinateOf(const RepriseModel &model, int rank,
                                       int axis) {
  return rank / strideOf(model, axis) % model.axes[axis].size;
}

void reprise::runtime::nameRank(const RepriseModel &model, int rank, char *text,
                                size_t size) {
  int length = snprintf(text, size, "rank %d", rank);
  const char *before = " (";
  for (int i = 0; i < model.numAxes && size_t(length) < size; ++i)
    if (model.axes[i].step == 0) {
      length +=
          snprintf(text + length, size - size_t(length), "%s%s %" PRId64,
                   before, model.axes[i].name, coordinateOf(model, rank, i));
      before = ", ";
    }
  if (model.numAxes > 0 && size_t(length) < size)
    snprintf(text + length, size - size_t(length), ")");
}

/// The index of an axis; -1 if there is none of the name.
static int findAxis(const RepriseModel &model, const char *name) {
  for (int i = 0; i < model.numAxes; ++i)
    if (!strcmp(model.axes[i].name, name))
      return i;
  return -1;
}

void reprise::runtime::describeMesh(const RepriseModel &model, char *text,
                                    size_t size) {
  int length = snprintf(text, size, "%s", "");
  for (int i = 0; i < model.numAxes && size_t(length) < size; ++i)
    if (model.axes[i].step == 0)
      length += snprintf(text + length, size - size_t(length), "%s%s %" PRId64,
                         length == 0 ? "" : " x ", model.axes[i].name,
                         model.axes[i].size);
  const int experts = findAxis(model, kExpertAxis);
  if (experts >= 0 && size_t(length) < size)
    snprintf(text + length, size - size_t(length), ", %s %" PRId64, kExpertAxis,
             model.axes[experts].size);
}

SampleAxes reprise::runtime::sampleAxesOf(const RepriseModel &model) {
  const int samples = findAxis(model, "dp"), parts = findAxis(model, "tp");
  int64_t ranks = 1;
  for (const int axis : {samples, parts})
    ranks *= axis < 0 ? 1 : model.axes[axis].size;
  return {samples, parts, ranks == countRanks(model)};
}

Shard reprise::runtime::dataShardOf(const RepriseModel &model, int rank) {
  const int axis = findAxis(model, "dp");
  if (axis < 0)
    return {};
  return {coordinateOf(model, rank, axis), model.axes[axis].size};
}

int64_t reprise::runtime::countStages(const RepriseModel &model) {
  const int axis = findAxis(model, kStageAxis);
  return axis < 0 ? 1 : model.axes[axis].size;
}

int64_t reprise::runtime::stageOf(const RepriseModel &model, int rank) {
  const int axis = findAxis(model, kStageAxis);
  return axis < 0 ? 0 : coordinateOf(model, rank, axis);
}

Group reprise::runtime::groupOf(const RepriseModel &model, int rank, int axis) {
  int64_t stride = strideOf(model, axis);
  return {int(rank - coordinateOf(model, rank, axis) * stride), int(stride),
          int(model.axes[axis].size)};
}

bool reprise::runtime::hasOutput(const RepriseModel &model) {
  return model.stage + 1 == countStages(model);
}

Group reprise::runtime::stagesFrom(const RepriseModel &model, int rank,
                                   bool isLast) {
  const int axis = findAxis(model, kStageAxis);
  if (axis < 0)
    return {rank, 1, 1};
  const Group group = groupOf(model, rank, axis);
  return isLast ? Group{group.rankOf(group.size - 1), -group.stride, group.size}
                : group;
}

Group reprise::runtime::modelGroupOf(const RepriseModel &model, int rank) {
  // Ranks along "tp" have neighbouring numbers; those along "ep" are among
  // them, or go on behind the last.
  int64_t size = 1;
  for (const char *name : {"tp", "ep"})
    if (const int axis = findAxis(model, name); axis >= 0)
      size = std::max(size, strideOf(model, axis) * model.axes[axis].size);
  return {int(rank - rank % size), 1, int(size)};
}

bool reprise::runtime::isWithFirst(const RepriseModel &model, int rank) {
  // As many on each stage.
  const int64_t ofStage = countRanks(model) / countStages(model);
  return rank % ofStage < modelGroupOf(model, rank).size;
}
