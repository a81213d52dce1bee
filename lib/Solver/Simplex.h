//===- Simplex.h - Linear programs with few rows ----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_SOLVER_SIMPLEX_H
#define REPRISE_LIB_SOLVER_SIMPLEX_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace reprise::solver {

/// The simplex method with an explicit inverse of the basis:
///
///   maximize gain x,  A x <= limits,  x >= 0,  with limits >= 0
///
/// Columns of A may be added between calls of `solve`.
class Simplex {
public:
  explicit Simplex(std::vector<double> limits);

  struct Column {
    std::vector<double> entries;
    double gain;
  };
  std::vector<Column> columns;

  /// Takes x to the optimum of the present columns, in so many steps at most.
  void solve(int64_t mostSteps);

  /// The dual value of each row.
  std::vector<double> getDuals() const;
  std::vector<double> getValues() const;

private:
  /// False if no row limits the column, which then stays out.
  bool enter(int64_t column, const std::vector<double> &entries);
  double getGain(int64_t column) const {
    return column < 0 ? 0 : columns[column].gain;
  }

  size_t numRows;
  std::vector<std::vector<double>> inverse;
  std::vector<int64_t> basis; ///< columns; -1 - i: the slack of row i
  std::vector<double> values; ///< of the basis
};

} // namespace reprise::solver

#endif // REPRISE_LIB_SOLVER_SIMPLEX_H
