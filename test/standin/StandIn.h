//===- StandIn.h - Work on streams that are none ----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the stand-in for cuBLASLt needs of the one for the driver. Both are
// libraries that a training program opens in place of NVIDIA's, where there is
// no GPU: the driver's memory is the host's, and its kernels are run by the
// simulator. Tests only.
//
// Work that is begun on a stream is done when somebody waits for it, and no
// sooner, so a missing wait, or a buffer on the host that is written again too
// early, shows. With REPRISE_SIMULATOR_LANDING=once it is done at once, which
// shows what relies on being late.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TEST_STANDIN_STANDIN_H
#define REPRISE_TEST_STANDIN_STANDIN_H

#include "runtime/device/CudaApi.h"

#include <functional>
#include <string>

namespace reprise::standin {

using runtime::CudaAddress;
using runtime::CudaStream;

/// Does something, and says what is wrong; empty: nothing.
using Work = std::function<std::string()>;

/// Begins `work`, which an error calls `what`.
void enqueue(CudaStream stream, const std::string &what, Work work);

/// Whether these bytes are within what one call of cuMemAlloc gave.
bool isAllocated(CudaAddress address, size_t bytes);

/// The same as an error, or empty.
std::string checkAllocated(const char *what, const void *address, size_t bytes);

} // namespace reprise::standin

#endif // REPRISE_TEST_STANDIN_STANDIN_H
