//===- StandIn.h - Work on streams that are none ----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the stand-ins for cuBLASLt and NCCL need of the one for the driver. They
// are libraries that a training program opens in place of NVIDIA's, where there
// is no GPU: the driver's memory is the host's, and its kernels are run by the
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
#include <optional>
#include <string>

namespace reprise::standin {

using runtime::CudaAddress;
using runtime::CudaStream;

/// Does something, and says what is wrong; empty: nothing.
using Work = std::function<std::string()>;

/// Begins `work`, which an error calls `what`.
void enqueue(CudaStream stream, const std::string &what, Work work);

/// Looks whether something is done, and says what is wrong; nothing: not yet.
using Poll = std::function<std::optional<std::string>()>;

/// Begins what waits for others.
void enqueuePoll(CudaStream stream, const std::string &what, Poll poll);

/// Lets all streams go on that wait for nobody.
void goOn();

/// Of each GPU.
int multiprocessors();

/// The GPU that this process uses.
int deviceNumber();

/// Takes memory of the GPU beside allocations, or gives it back.
void takeMemory(long bytes);

/// Writes a line of REPRISE_STANDIN_LOG.
void note(const std::string &line);

/// Whether these bytes are within what one call of cuMemAlloc gave.
bool isAllocated(CudaAddress address, size_t bytes);

/// The same as an error, or empty.
std::string checkAllocated(const char *what, const void *address, size_t bytes);

} // namespace reprise::standin

#endif // REPRISE_TEST_STANDIN_STANDIN_H
