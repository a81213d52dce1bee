//===- Nccl.h - Bytes between GPUs ------------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DEVICE_NCCL_H
#define REPRISE_RUNTIME_DEVICE_NCCL_H

#include "CudaDevice.h"
#include "runtime/transport/Transport.h"

namespace reprise::runtime {

/// The GPUs of all ranks, connected by NCCL. It moves bytes, as work on the
/// device's stream, and adds nothing. Ranks are started, watched and ended by a
/// transport between their hosts, which also brings them together here.
///
/// Calls of the library return at once, and the host looks at how far it is: so
/// a rank whose peers are gone can give up.
class Nccl {
public:
  explicit Nccl(CudaDevice &device) : device(device) {}
  Nccl(const Nccl &) = delete;
  Nccl &operator=(const Nccl &) = delete;
  ~Nccl() { giveUp(); }

  /// Opens the library, connects this rank with all others, and lets the device
  /// look at the library whenever it waits. All ranks call it at once.
  bool connect(Transport &ranks, Error &error);
  bool isConnected() const { return all != nullptr; }

  /// Moves a few bytes between this rank and each of `peers`, so that the
  /// library takes the memory that it needs for them. They do the same at once.
  bool greet(const int *peers, int numPeers, Error &error);

  /// Begins to send and receive these parcels, of the device's memory, on its
  /// stream. They may cross. As for `Transport::exchange`, parcels between two
  /// ranks come in order.
  bool exchange(const char *what, const Parcel *sends, int numSends,
                const Parcel *receives, int numReceives, Error &error);

  /// Ends the connection behind everything that was begun. All ranks call it.
  bool disconnect(Error &error);

  /// Ends the connection with what is still under way.
  void giveUp();

  /// The bytes of all sends that were begun, or captured.
  int64_t begunBytes() const { return numBegun; }

  int rank() const { return own; }
  int version() const { return libraryVersion; } ///< 21803 for 2.18.3.

private:
  const NcclLibrary &library() const { return device.nccl(); }
  bool check(NcclResult code, const char *what, Error &error);
  bool look(const char *what, double waitedSeconds, NcclResult &state,
            Error &error);
  bool settle(const char *what, Error &error);

  CudaDevice &device;
  NcclRanks all = nullptr;
  Transport *hosts = nullptr;
  int own = 0, libraryVersion = 0;
  int64_t numBegun = 0;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DEVICE_NCCL_H
