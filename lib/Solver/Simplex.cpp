//===- Simplex.cpp - Linear programs with few rows ------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Simplex.h"

#include <algorithm>

using namespace reprise::solver;

Simplex::Simplex(std::vector<double> limits)
    : numRows(limits.size()), inverse(numRows, std::vector<double>(numRows)),
      values(limits) {
  for (size_t i = 0; i < numRows; ++i) {
    inverse[i][i] = 1;
    basis.push_back(-1 - int64_t(i));
  }
}

std::vector<double> Simplex::getDuals() const {
  std::vector<double> duals(numRows);
  for (size_t i = 0; i < numRows; ++i)
    for (size_t j = 0; j < numRows; ++j)
      duals[j] += getGain(basis[i]) * inverse[i][j];
  return duals;
}

std::vector<double> Simplex::getValues() const {
  std::vector<double> all(columns.size());
  for (size_t i = 0; i < numRows; ++i)
    if (basis[i] >= 0)
      all[basis[i]] = values[i];
  return all;
}

bool Simplex::enter(int64_t column, const std::vector<double> &entries) {
  std::vector<double> direction(numRows);
  for (size_t i = 0; i < numRows; ++i)
    for (size_t j = 0; j < numRows; ++j)
      direction[i] += inverse[i][j] * entries[j];
  constexpr double kTiny = 1e-9;
  size_t leaving = numRows;
  for (size_t i = 0; i < numRows; ++i)
    if (direction[i] > kTiny &&
        (leaving == numRows ||
         values[i] * direction[leaving] < values[leaving] * direction[i]))
      leaving = i;
  if (leaving == numRows)
    return false; // By rounding: what paths gain is finite.
  double step = values[leaving] / direction[leaving];
  for (double &entry : inverse[leaving])
    entry /= direction[leaving];
  values[leaving] = step;
  basis[leaving] = column;
  for (size_t i = 0; i < numRows; ++i) {
    if (i == leaving || direction[i] == 0)
      continue;
    values[i] = std::max(values[i] - step * direction[i], 0.0);
    for (size_t j = 0; j < numRows; ++j)
      inverse[i][j] -= direction[i] * inverse[leaving][j];
  }
  return true;
}

void Simplex::solve(int64_t mostSteps) {
  for (int64_t k = 0; k < mostSteps; ++k) {
    std::vector<double> duals = getDuals();
    double scale = 0;
    for (const Column &column : columns)
      scale = std::max(scale, column.gain);
    double most = 1e-12 * scale;
    int64_t best = -1 - int64_t(numRows);
    for (size_t i = 0; i < numRows; ++i)
      if (-duals[i] > most) {
        most = -duals[i];
        best = -1 - int64_t(i);
      }
    for (size_t c = 0; c < columns.size(); ++c) {
      double gain = columns[c].gain;
      for (size_t i = 0; i < numRows; ++i)
        gain -= duals[i] * columns[c].entries[i];
      if (gain > most) {
        most = gain;
        best = c;
      }
    }
    if (best == -1 - int64_t(numRows))
      return;
    std::vector<double> slack(numRows);
    if (best < 0)
      slack[-1 - best] = 1;
    // A column that changes nothing would be the best again.
    if (!enter(best, best < 0 ? slack : columns[best].entries))
      return;
  }
}
