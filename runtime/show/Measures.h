//===- Measures.h - What a step shows besides its loss ----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_SHOW_MEASURES_H
#define REPRISE_RUNTIME_SHOW_MEASURES_H

#include "runtime/base/Error.h"
#include "runtime/base/List.h"
#include "runtime/device/Arena.h"

#include "reprise/ABI/Model.h"

namespace reprise::runtime {

/// A number of a step, such as a part of its loss.
struct NamedNumber {
  const char *name;
  float value;
};

/// How unevenly something is spread, such as rows over the experts of a layer:
/// the least and the most, each as a multiple of the mean; 1 where there is
/// nothing to spread. Behind them the numbers themselves, one for each expert.
struct Load {
  const char *name;
  double least, most;
  const float *rows;
  int64_t size;
};

/// Whether a state is shown: terms of a number, such as those of layers, have
/// its name and what is behind a dot.
bool isShownMeasure(const RepriseState &state);

/// The measures of a step, as they were when it was done. Without a state of
/// their kind there are none.
class Measures {
public:
  explicit Measures(const RepriseModel &model) : model(model) {}

  /// Makes room for all, with numbers that are not known yet.
  bool start(Error &error);
  /// Reads those of the step that has just been done.
  void take(Arena &arena);

  const List<NamedNumber> &numbers() const { return scalars; }
  const List<Load> &loads() const { return vectors; }
  /// The least and the most of all loads; both NaN without any.
  Load extremes() const;

private:
  const RepriseModel &model;
  List<NamedNumber> scalars;
  List<Load> vectors;
  List<float> rows; ///< Of all vectors, one behind the other.
};

/// A table of the loads of the last step: a line for each layer, with a digit
/// for each expert, or for the fullest of neighbours where there are many.
void printLoads(const Measures &measures);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_SHOW_MEASURES_H
