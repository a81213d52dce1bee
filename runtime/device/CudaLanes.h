//===- CudaLanes.h - Parcels between the GPUs of stages ---------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   the sender                              the receiver
//   device's stream  pair's stream          pair's stream  device's stream
//
//   copy to a place                         receive into the place
//          \------> send from the place --->       \-----> copy from it
//   what comes next                         receive the next one
//
// A send waits, on the device's stream, for the send from the same place that
// was before it; a receive waits for its bytes. Nothing else waits, so whoever
// sends goes on, and two ranks that send to each other never wait in a circle.
// Each lane from one rank to another is a pair of NCCL, but for texts, which
// never cross with activations, and have theirs.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DEVICE_CUDALANES_H
#define REPRISE_RUNTIME_DEVICE_CUDALANES_H

#include "Nccl.h"

#include "reprise/ABI/Lanes.h"
#include "reprise/ABI/Model.h"

namespace reprise::runtime {

/// The lanes that a rank sends or receives on. A sequence of launches is begun,
/// or captured, as a whole: nothing is on its way before it or behind it.
class CudaLanes {
public:
  CudaLanes(const RepriseModel &model, Gpu &device, Nccl &nccl)
      : model(model), device(device), nccl(nccl) {}
  CudaLanes(const CudaLanes &) = delete;
  CudaLanes &operator=(const CudaLanes &) = delete;
  ~CudaLanes();

  /// Looks which there are.
  bool findLanes(int rank, Error &error);
  /// Connections that they need.
  int countPairs() const { return numPairs; }
  /// Connects this rank with those beside it, and takes the places; all ranks
  /// call it at once, behind `Nccl::connect`.
  bool connect(Transport &ranks, Error &error);

  /// Before a sequence: forgets the one before.
  void clear();
  /// Counts what launches of it receive, which run so often.
  bool expect(const RepriseLaunch *launches, int count, int64_t times,
              Error &error);
  /// Begins to receive what comes first.
  bool begin(Error &error);

  /// As `Transport::send` and `Transport::receive`, on the device's stream.
  bool send(const char *what, const LaneParcel &parcel, Error &error);
  bool receive(const char *what, const LaneParcel &parcel, Error &error);

  /// Lets the device's stream wait for all that was begun on others.
  bool end(Error &error);

private:
  /// One end of a lane.
  struct Lane {
    int from, to, number;
    bool isSend;
    size_t size;
    int places; ///< Of this end.
    int pair;   ///< Of NCCL.
    CudaAddress room;
    /// Of the device's stream, then one for each place, of the pair's.
    size_t firstEvent;
    int64_t expected, begun, taken; ///< Parcels of this sequence.

    int peer() const { return isSend ? to : from; }
    /// The lane that has the pair, of those from one rank to another.
    int ownerOfPair() const {
      return number == REPRISE_LANE_TEXTS ? REPRISE_LANE_ACTIVATIONS : number;
    }
  };

  bool shareIds(Transport &ranks, List<NcclId> &ids, Error &error);
  bool connectPairs(const List<NcclId> &ids, Error &error);
  bool takePlaces(Error &error);
  bool greet(Error &error);
  Lane *find(const LaneParcel &parcel, bool isSend, Error &error);
  CudaAddress placeOf(const Lane &lane, int64_t parcel) const;
  CudaEvent eventOf(const Lane &lane, int64_t parcel) const;
  bool order(CudaEvent event, CudaStream first, CudaStream then, Error &error);
  bool copy(CudaAddress to, CudaAddress from, size_t size, Error &error);
  bool beginMove(const char *what, Lane &lane, Error &error);

  const RepriseModel &model;
  Gpu &device;
  Nccl &nccl;
  List<Lane> lanes; ///< By their pairs, in an order that all ranks share.
  int numPairs = 0;
  List<CudaEvent> events;
  CudaAddress places = 0;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DEVICE_CUDALANES_H
