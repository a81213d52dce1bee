//===- CostTable.h - How fast a machine is ----------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_INTERFACES_COSTTABLE_H
#define REPRISE_INTERFACES_COSTTABLE_H

#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>

namespace reprise {
/// What a launch mostly does: each runs at a speed of its own.
enum class Work {
  Product,   ///< a matrix product
  Attention, ///< attention in one kernel
  Pointwise, ///< everything else
};

/// How fast a machine is, all its processors together: enough to put a time
/// beside work that is counted in FLOPs and bytes. What it gives is an
/// estimate to compare plans by, not a promise.
struct CostTable {
  std::string machine;            ///< what the figures are of
  double productFlopsPerSecond;   ///< of matrix products
  double attentionFlopsPerSecond; ///< of attention in one kernel
  double pointwiseFlopsPerSecond; ///< of everything else; exp counts as one
  double memoryBytesPerSecond;    ///< read and written together
  double secondsPerLaunch;        ///< of a launch that does nothing

  /// Seconds of one launch, as a roofline: arithmetic and memory go on side by
  /// side, so that the slower of them counts.
  double getSeconds(int64_t flops, int64_t bytes, Work work) const;

  /// Two cores of a server with AVX2, the default target. The figures are
  /// explained in docs/report.md.
  static CostTable getCPU();

  /// From a JSON object: `machine` and the rates, named as here in
  /// snake_case; those that are left out are as in `getCPU`. Refuses other keys
  /// and rates that are not above 0.
  static llvm::Expected<CostTable> parse(llvm::StringRef text);
};
} // namespace reprise

#endif // REPRISE_INTERFACES_COSTTABLE_H
