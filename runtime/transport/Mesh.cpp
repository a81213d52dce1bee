//===- Mesh.cpp - The ranks that a program is for -------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mesh.h"

#include <cinttypes>
#include <cstdio>
#include <cstring>

using namespace reprise::runtime;

int64_t reprise::runtime::countRanks(const RepriseModel &model) {
  int64_t count = 1;
  for (int i = 0; i < model.numAxes; ++i)
    count *= model.axes[i].size;
  return count;
}

/// From one rank along an axis to the next: the axes behind it count first.
static int64_t strideOf(const RepriseModel &model, int axis) {
  int64_t stride = 1;
  for (int i = axis + 1; i < model.numAxes; ++i)
    stride *= model.axes[i].size;
  return stride;
}

int64_t reprise::runtime::coordinateOf(const RepriseModel &model, int rank,
                                       int axis) {
  return rank / strideOf(model, axis) % model.axes[axis].size;
}

void reprise::runtime::nameRank(const RepriseModel &model, int rank, char *text,
                                size_t size) {
  int length = snprintf(text, size, "rank %d", rank);
  for (int i = 0; i < model.numAxes && size_t(length) < size; ++i)
    length += snprintf(text + length, size - size_t(length),
                       "%s%s %" PRId64 "%s", i == 0 ? " (" : ", ",
                       model.axes[i].name, coordinateOf(model, rank, i),
                       i + 1 == model.numAxes ? ")" : "");
}

void reprise::runtime::describeMesh(const RepriseModel &model, char *text,
                                    size_t size) {
  int length = snprintf(text, size, "%s", "");
  for (int i = 0; i < model.numAxes && size_t(length) < size; ++i)
    length +=
        snprintf(text + length, size - size_t(length), "%s%s %" PRId64,
                 i == 0 ? "" : " x ", model.axes[i].name, model.axes[i].size);
}

/// The index of an axis; -1 if there is none of the name.
static int findAxis(const RepriseModel &model, const char *name) {
  for (int i = 0; i < model.numAxes; ++i)
    if (!strcmp(model.axes[i].name, name))
      return i;
  return -1;
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

Group reprise::runtime::modelGroupOf(const RepriseModel &model, int rank) {
  const int axis = findAxis(model, "tp");
  return axis < 0 ? Group{rank, 1, 1} : groupOf(model, rank, axis);
}
