//===- Clock.h - Seconds ----------------------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_BASE_CLOCK_H
#define REPRISE_RUNTIME_BASE_CLOCK_H

namespace reprise::runtime {

/// Seconds of a clock that only goes forward.
double now();

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_BASE_CLOCK_H
