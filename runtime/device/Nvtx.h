//===- Nvtx.h - Names of launches for a profiler ----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DEVICE_NVTX_H
#define REPRISE_RUNTIME_DEVICE_NVTX_H

#include "runtime/base/Error.h"

namespace reprise::runtime {

/// Ranges with names on the timeline of a profiler that runs this program. A
/// profiler names a library in NVTX_INJECTION64_PATH, which is given a table
/// to write its functions into; that is all there is of NVTX without its
/// header.
class Nvtx {
public:
  /// Fails if there is no profiler.
  bool open(Error &error);

  void push(const char *name) const {
    if (rangePush)
      rangePush(name);
  }
  void pop() const {
    if (rangePop)
      rangePop();
  }

private:
  int (*rangePush)(const char *name) = nullptr;
  int (*rangePop)() = nullptr;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DEVICE_NVTX_H
