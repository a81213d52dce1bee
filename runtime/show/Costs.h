//===- Costs.h - What launches took, for the compiler -----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_SHOW_COSTS_H
#define REPRISE_RUNTIME_SHOW_COSTS_H

#include "runtime/base/Error.h"
#include "runtime/base/List.h"
#include "runtime/base/ReplacedFile.h"
#include "runtime/device/ExchangeTimes.h"

#include "reprise/ABI/Model.h"

namespace reprise::runtime {

/// Measures the machine by the launches of a run, and writes the table of costs
/// that `reprisec --cost-table` reads: how long each kernel, each shape of
/// GEMM and each exchange of ranks takes, and rates for those that another
/// plan may need.
class Costs {
public:
  explicit Costs(const RepriseModel &model) : model(model) {}

  /// Finds out whether `path` can be written.
  bool start(const char *path, Error &error) { return file.start(path, error); }

  /// Whether so many steps are enough; the first one, which touches all memory
  /// for the first time, does not count.
  static bool checkSteps(int64_t steps, Error &error);

  /// Writes the table. `seconds` are those spent in each launch in `steps`
  /// steps, the first not among them; `machine` says where; `exchanges` are
  /// those of ranks.
  bool write(const double *seconds, int64_t steps, const char *machine,
             const ExchangeTimes &exchanges, Error &error);

private:
  const RepriseModel &model;
  ReplacedFile file;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_SHOW_COSTS_H
