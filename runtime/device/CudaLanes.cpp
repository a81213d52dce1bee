//===- CudaLanes.cpp - Parcels between the GPUs of stages -----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaLanes.h"

#include "runtime/transport/Lanes.h"
#include "runtime/transport/Mesh.h"

#include <algorithm>
#include <cinttypes>
#include <tuple>

using namespace reprise::runtime;

/// Where each place begins: an allocation's alignment.
static constexpr size_t kAlignment = 256;
/// Places of a receiver: the next parcel comes while one is computed with.
static constexpr int kPlacesOfReceiver = 1;

//===----------------------------------------------------------------------===//
// Start
//===----------------------------------------------------------------------===//

/// Those of the model's rows, once each; the rows have been checked.
bool CudaLanes::findLanes(int rank, Error &error) {
  for (int i = 0; i < model.numCollectives; ++i) {
    const RepriseCollective &row = model.collectives[i];
    if (!isTransfer(row))
      continue;
    const bool isSend = row.operation == REPRISE_COLLECTIVE_SEND;
    const int peer = groupOf(model, rank, row.axis).rankOf(row.peer);
    const LaneParcel parcel = {peer, row.lane, nullptr, 0, 0};
    Error none;
    if (find(parcel, isSend, none))
      continue;
    Lane lane = {};
    lane.from = isSend ? rank : peer;
    lane.to = isSend ? peer : rank;
    lane.number = row.lane;
    lane.isSend = isSend;
    lane.size = size_t(parcelBytes(row));
    lane.places = isSend ? int(row.blocks) : kPlacesOfReceiver;
    if (!lanes.push(lane))
      return error.set("no memory left for %zu lanes", lanes.size() + 1);
  }
  auto key = [](const Lane &lane) {
    return std::tuple(lane.from, lane.to, lane.ownerOfPair(), lane.number);
  };
  std::sort(lanes.begin(), lanes.end(),
            [&](const Lane &a, const Lane &b) { return key(a) < key(b); });
  for (Lane &lane : lanes) {
    bool isOld = &lane != lanes.begin();
    if (isOld) {
      const Lane &before = *(&lane - 1);
      isOld = before.from == lane.from && before.to == lane.to &&
              before.ownerOfPair() == lane.ownerOfPair();
    }
    lane.pair = isOld ? numPairs - 1 : numPairs++;
  }
  return true;
}

/// The first rank of each pair makes its number, and gives it to the second.
bool CudaLanes::shareIds(Transport &ranks, List<NcclId> &ids, Error &error) {
  List<Parcel> sends, receives;
  if (!ids.resize(size_t(numPairs)))
    return error.set("no memory left for %d pairs of GPUs", numPairs);
  int known = -1;
  for (const Lane &lane : lanes) {
    if (lane.pair == known)
      continue;
    known = lane.pair;
    NcclId &id = ids[size_t(lane.pair)];
    if (lane.isSend && !nccl.makeId(id, error))
      return false;
    if (!(lane.isSend ? sends : receives)
             .push({lane.peer(), id.bytes, sizeof(id.bytes)}))
      return error.set("no memory left for %d pairs of GPUs", numPairs);
  }
  return ranks.exchange("the numbers of pairs of GPUs", Patience::Limited,
                        sends.begin(), int(sends.size()), receives.begin(),
                        int(receives.size()), error);
}

/// One after another, in the order of all ranks: so none waits in a circle.
bool CudaLanes::connectPairs(const List<NcclId> &ids, Error &error) {
  int known = -1;
  for (const Lane &lane : lanes) {
    if (lane.pair == known)
      continue;
    known = lane.pair;
    if (!nccl.connectPair(ids[size_t(lane.pair)], lane.isSend, error))
      return false;
  }
  return true;
}

static size_t align(size_t size) {
  return (size + kAlignment - 1) / kAlignment * kAlignment;
}

bool CudaLanes::takePlaces(Error &error) {
  const CudaDriver &driver = device.driver();
  size_t bytes = 0, numEvents = 0;
  for (Lane &lane : lanes) {
    lane.room = bytes;
    lane.firstEvent = numEvents;
    bytes += align(lane.size) * size_t(lane.places);
    numEvents += size_t(lane.places) + 1;
  }
  if (!device.check(driver.memoryAllocate(&places, bytes),
                    "cannot take memory for parcels of stages", error))
    return false;
  for (Lane &lane : lanes)
    lane.room += places;
  for (size_t i = 0; i < numEvents; ++i) {
    CudaEvent event = nullptr;
    if (!device.check(driver.eventCreate(&event, kCudaNoTiming),
                      "cuEventCreate", error) ||
        !events.push(event))
      return error.set("no memory left for events of %zu places", numEvents);
  }
  return true;
}

/// A few bytes through each pair, so that the library takes the memory that it
/// needs for it.
bool CudaLanes::greet(Error &error) {
  const char *what = "greeting other stages";
  int known = -1;
  for (const Lane &lane : lanes) {
    if (lane.pair == known)
      continue;
    known = lane.pair;
    CudaStream stream = nccl.streamOf(lane.pair);
    if (!nccl.move(what, lane.pair, reinterpret_cast<char *>(lane.room),
                   std::min(lane.size, kAlignment), error) ||
        !order(events[lane.firstEvent], stream, device.stream(), error))
      return false;
  }
  return device.synchronize(what, error);
}

bool CudaLanes::connect(Transport &ranks, Error &error) {
  List<NcclId> ids;
  return lanes.empty() ||
         (shareIds(ranks, ids, error) && connectPairs(ids, error) &&
          takePlaces(error) && greet(error));
}

CudaLanes::~CudaLanes() {
  nccl.giveUp(); // The driver gives memory back when nothing runs any more.
  for (CudaEvent event : events)
    device.driver().eventDestroy(event);
  if (places)
    device.driver().memoryFree(places);
}

//===----------------------------------------------------------------------===//
// Parcels
//===----------------------------------------------------------------------===//

CudaLanes::Lane *CudaLanes::find(const LaneParcel &parcel, bool isSend,
                                 Error &error) {
  for (Lane &lane : lanes)
    if (lane.peer() == parcel.rank && lane.number == parcel.lane &&
        lane.isSend == isSend)
      return &lane;
  error.set("damaged model: no lane %d %s rank %d is known", parcel.lane,
            isSend ? "to" : "from", parcel.rank);
  return nullptr;
}

CudaAddress CudaLanes::placeOf(const Lane &lane, int64_t parcel) const {
  return lane.room + CudaAddress(parcel % lane.places) * align(lane.size);
}

/// Recorded where the pair's stream is done with the place of `parcel`.
CudaEvent CudaLanes::eventOf(const Lane &lane, int64_t parcel) const {
  return events[lane.firstEvent + 1 + size_t(parcel % lane.places)];
}

/// What is begun on `then` from now on waits for what was begun on `first`.
bool CudaLanes::order(CudaEvent event, CudaStream first, CudaStream then,
                      Error &error) {
  const CudaDriver &driver = device.driver();
  const char *what = "parcels between stages";
  return device.check(driver.eventRecord(event, first), what, error) &&
         device.check(driver.streamWait(then, event, 0), what, error);
}

bool CudaLanes::copy(CudaAddress to, CudaAddress from, size_t size,
                     Error &error) {
  return device.check(
      device.driver().copyOnDevice(to, from, size, device.stream()),
      "copy of a parcel on the GPU", error);
}

/// Behind what the device's stream has now: sends the next parcel from its
/// place, or receives it there.
bool CudaLanes::beginMove(const char *what, Lane &lane, Error &error) {
  CudaStream own = nccl.streamOf(lane.pair);
  if (!order(events[lane.firstEvent], device.stream(), own, error) ||
      !nccl.move(what, lane.pair,
                 reinterpret_cast<char *>(placeOf(lane, lane.begun)), lane.size,
                 error) ||
      !device.check(device.driver().eventRecord(eventOf(lane, lane.begun), own),
                    what, error))
    return false;
  ++lane.begun;
  return true;
}

void CudaLanes::clear() {
  for (Lane &lane : lanes)
    lane.expected = lane.begun = lane.taken = 0;
}

bool CudaLanes::expect(const RepriseLaunch *launches, int count, int64_t times,
                       Error &error) {
  if (lanes.empty())
    return true;
  for (int i = 0; i < count; ++i) {
    if (launches[i].kind != REPRISE_LAUNCH_COLLECTIVE)
      continue;
    const RepriseCollective &row = model.collectives[launches[i].callee];
    if (row.operation != REPRISE_COLLECTIVE_RECEIVE)
      continue;
    const int peer = groupOf(model, nccl.rank(), row.axis).rankOf(row.peer);
    Lane *lane = find({peer, row.lane, nullptr, 0, 0}, /*isSend=*/false, error);
    if (!lane)
      return false;
    lane->expected += times;
  }
  return true;
}

bool CudaLanes::begin(Error &error) {
  for (Lane &lane : lanes)
    while (lane.begun < std::min<int64_t>(lane.expected, lane.places))
      if (!beginMove("the first parcel of a lane", lane, error))
        return false;
  return true;
}

bool CudaLanes::send(const char *what, const LaneParcel &parcel, Error &error) {
  Lane *lane = find(parcel, /*isSend=*/true, error);
  if (!lane)
    return false;
  const bool isTaken = lane->begun >= lane->places;
  if (isTaken &&
      !device.check(device.driver().streamWait(device.stream(),
                                               eventOf(*lane, lane->begun), 0),
                    what, error))
    return false;
  return copy(placeOf(*lane, lane->begun),
              reinterpret_cast<CudaAddress>(parcel.bytes), lane->size, error) &&
         beginMove(what, *lane, error);
}

bool CudaLanes::receive(const char *what, const LaneParcel &parcel,
                        Error &error) {
  Lane *lane = find(parcel, /*isSend=*/false, error);
  if (!lane)
    return false;
  if (lane->taken == lane->begun)
    return error.set("damaged model: %s is one parcel more than the %" PRId64
                     " that its sequence has",
                     what, lane->expected);
  if (!device.check(device.driver().streamWait(device.stream(),
                                               eventOf(*lane, lane->taken), 0),
                    what, error) ||
      !copy(reinterpret_cast<CudaAddress>(parcel.bytes),
            placeOf(*lane, lane->taken), lane->size, error))
    return false;
  ++lane->taken;
  return lane->begun == lane->expected || beginMove(what, *lane, error);
}

bool CudaLanes::end(Error &error) {
  for (Lane &lane : lanes)
    if (lane.begun > 0 &&
        !device.check(device.driver().streamWait(
                          device.stream(), eventOf(lane, lane.begun - 1), 0),
                      "parcels between stages", error))
      return false;
  return true;
}
