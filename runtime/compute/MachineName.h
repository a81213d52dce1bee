//===- MachineName.h - What a machine is called -----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_COMPUTE_MACHINENAME_H
#define REPRISE_RUNTIME_COMPUTE_MACHINENAME_H

#include <cstdint>

namespace reprise::runtime {

struct MachineName {
  char chars[128];
};

/// "2 threads of AMD EPYC 9B14", as far as the system tells.
MachineName describeProcessor(int64_t threads);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_COMPUTE_MACHINENAME_H
