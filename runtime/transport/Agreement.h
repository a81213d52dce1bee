//===- Agreement.h - What all ranks of a run have in common -----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_TRANSPORT_AGREEMENT_H
#define REPRISE_RUNTIME_TRANSPORT_AGREEMENT_H

#include "Transport.h"

namespace reprise::runtime {

/// Hashes of what a rank runs.
struct RunMark {
  uint64_t program = 0; ///< The bytes of its file.
  uint64_t options = 0; ///< Its command line, but for its own name.

  /// Reads the file of this process.
  bool find(int argc, const char *const *argv, Error &error);
};

/// Compares the mark with that of rank 0: ranks that run something else would
/// wait for each other, or add up what does not belong together.
bool agree(Transport &ranks, const RunMark &own, Error &error);

/// `isTrue` becomes whether it is so in all ranks.
bool agreeOnAll(Transport &ranks, bool &isTrue, Error &error);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_TRANSPORT_AGREEMENT_H
