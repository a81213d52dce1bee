//===- CudaRankMemory.cpp - What ranks do together on GPUs ----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaRankMemory.h"

#include "runtime/transport/Mesh.h"

#include <algorithm>
#include <cinttypes>
#include <cstdlib>
#include <cstring>

using namespace reprise::runtime;

CudaRankMemory::~CudaRankMemory() {
  for (CudaEvent event : ends)
    device.driver().eventDestroy(event);
}

/// Of the rows that are begun; those of other stages may have none.
template <typename Visit>
static void forEachBegun(const RepriseModel &model, Visit visit) {
  for (int i = 0; i < model.numSchedules; ++i)
    for (int j = 0; j < model.schedules[i].numLaunches; ++j) {
      const RepriseLaunch &launch = model.schedules[i].launches[j];
      if (launch.kind == REPRISE_LAUNCH_BEGIN)
        visit(model.collectives[launch.callee]);
    }
}

static int countBegun(const RepriseModel &model) {
  int count = 0;
  forEachBegun(model, [&](const RepriseCollective &row) {
    count = std::max(count, row.number + 1);
  });
  return count;
}

static bool beginsAlong(const RepriseModel &model, int axis) {
  bool begins = false;
  forEachBegun(
      model, [&](const RepriseCollective &row) { begins |= row.axis == axis; });
  return begins;
}

/// The other ranks along the axes with which `has` something to do.
template <typename Has>
static bool findPeers(const RepriseModel &model, int rank, Has has,
                      List<int> &peers, Error &error) {
  for (int axis = 0; axis < model.numAxes; ++axis) {
    const Group group = groupOf(model, rank, axis);
    for (int i = 0; i < group.size && has(axis); ++i)
      if (group.rankOf(i) != rank && !peers.push(group.rankOf(i)))
        return error.set("no memory left for the peers of a rank");
  }
  return true;
}

namespace {
/// What ranks need of NCCL: of one, or the most of all.
struct Needs {
  int begun, pairs;
  int multiprocessors; ///< That there are; the least of all.
};
} // namespace

/// Of all ranks, from this one's.
static bool combine(Transport &ranks, Needs &needs, Error &error) {
  Needs own = needs;
  List<Needs> theirs;
  List<Parcel> sends, receives;
  bool good = theirs.resize(size_t(ranks.size()));
  for (int rank = 0; good && rank < ranks.size(); ++rank) {
    theirs[size_t(rank)] = own;
    good =
        rank == ranks.rank() ||
        (sends.push({rank, reinterpret_cast<char *>(&own), sizeof(own)}) &&
         receives.push({rank, reinterpret_cast<char *>(&theirs[size_t(rank)]),
                        sizeof(own)}));
  }
  if (!good)
    return error.set("no memory left to ask %d ranks", ranks.size());
  good = ranks.exchange("what ranks need of NCCL", Patience::Limited,
                        sends.begin(), int(sends.size()), receives.begin(),
                        int(receives.size()), error);
  for (const Needs &each : theirs)
    needs = {std::max(needs.begun, each.begun),
             std::max(needs.pairs, each.pairs),
             std::min(needs.multiprocessors, each.multiprocessors)};
  return good;
}

/// The groups along several axes whose sums NCCL can make.
static int countGroups(const RepriseModel &model) {
  const SampleAxes axes = sampleAxesOf(model);
  const bool areBoth = axes.areAll && axes.samples >= 0 && axes.parts >= 0 &&
                       model.axes[axes.samples].size > 1 &&
                       model.axes[axes.parts].size > 1;
  return areBoth ? 2 : 0;
}

bool CudaRankMemory::connectSums(Transport &ranks, Error &error) {
  if (!usesSums)
    return true;
  const SampleAxes axes = sampleAxesOf(model);
  const int numGroups = countGroups(model);
  Group groups[2] = {};
  for (int i = 0; i < numGroups; ++i)
    groups[i] = groupOf(model, ranks.rank(), i ? axes.parts : axes.samples);
  return nccl.greetSums(Nccl::kAll, error) &&
         sums.connect(ranks, groups, numGroups, error);
}

bool CudaRankMemory::connect(Transport &ranks, Error &error) {
  if (!lanes.findLanes(ranks.rank(), error))
    return false;
  Needs needs = {countBegun(model), lanes.countPairs(),
                 device.info().multiprocessors};
  ConnectionBlocks blocks;
  if (!combine(ranks, needs, error) ||
      !shareBlocks((needs.begun > 0 ? 2 : 1) *
                       (1 + (usesSums ? countGroups(model) : 0)),
                   needs.pairs, needs.multiprocessors, blocks, error))
    return false;
  nccl.setBlocks(blocks);
  if (!nccl.connect(ranks, error))
    return false;
  List<int> peers;
  auto always = [](int) { return true; };
  return findPeers(model, ranks.rank(), always, peers, error) &&
         nccl.greet(peers.begin(), int(peers.size()), error) &&
         lanes.connect(ranks, error) &&
         (needs.begun == 0 || connectBeside(ranks, error)) &&
         connectSums(ranks, error);
}

bool CudaRankMemory::connectBeside(Transport &ranks, Error &error) {
  List<int> peers;
  auto begins = [&](int axis) { return beginsAlong(model, axis); };
  if (!findPeers(model, ranks.rank(), begins, peers, error))
    return false;
  const int count = countBegun(model);
  for (int i = 0; i < count; ++i) {
    CudaEvent event = nullptr;
    if (!device.check(device.driver().eventCreate(&event, kCudaNoTiming),
                      "cuEventCreate", error))
      return false;
    if (!ends.push(event))
      return error.set("no memory left for %d events", count);
  }
  const char *what = "greeting GPUs once more";
  bool good = nccl.connectBeside(ranks, error) && nccl.goBeside(what, error) &&
              nccl.greet(peers.begin(), int(peers.size()), error) &&
              connectSums(ranks, error);
  nccl.comeBack();
  return good;
}

bool CudaRankMemory::begin(const char *what, Error &error) {
  return nccl.goBeside(what, error);
}

bool CudaRankMemory::leave(const char *what, int number, Error &error) {
  CudaStream stream = nccl.stream();
  nccl.comeBack();
  return device.check(device.driver().eventRecord(ends[size_t(number)], stream),
                      what, error);
}

bool CudaRankMemory::wait(const char *what, int number, Error &error) {
  return device.check(
      device.driver().streamWait(device.stream(), ends[size_t(number)], 0),
      what, error);
}

bool CudaRankMemory::findKernel(CudaModule module, const char *name,
                                List<CudaFunction> &found, Error &error) const {
  CudaFunction function = nullptr;
  return device.check(device.driver().moduleFunction(&function, module, name),
                      name, error) &&
         (found.push(function) ||
          error.set("no memory left for kernels between ranks"));
}

bool CudaRankMemory::load(CudaModule module, Error &error) {
  const RepriseCudaModule &image = *model.cuda;
  int most = 0;
  for (int i = 0; i < image.numSums; ++i) {
    most = std::max<int>(most, image.sums[i].numTerms);
    if (!findKernel(module, image.sums[i].name, functions, error))
      return false;
  }
  for (int64_t i = 0; i < image.numRows; ++i)
    if (!findKernel(module, image.rows[i].name, ofRows, error))
      return false;
  return parameters.resize(size_t(most) + 2) ||
         error.set("no memory left for sums of %d terms", most);
}

/// On the stream of what ranks do together; a kernel's one parameter are its
/// values.
bool CudaRankMemory::launch(CudaFunction function, const char *name,
                            int64_t blocks, int threads, CudaAddress *values,
                            size_t numValues, Error &error) const {
  size_t bytes = numValues * sizeof(CudaAddress);
  void *extra[] = {kCudaLaunchBuffer, values, kCudaLaunchBufferBytes, &bytes,
                   kCudaLaunchEnd};
  return device.check(device.driver().launch(function, unsigned(blocks), 1, 1,
                                             unsigned(threads), 1, 1,
                                             /*sharedBytes=*/0, nccl.stream(),
                                             nullptr, extra),
                      name, error);
}

/// The groups of each rank whose terms it adds up.
static int64_t groupsOf(const RepriseCudaSum &kernel) {
  const char *of = strstr(kernel.name, "_of_");
  return of ? strtoll(of + strlen("_of_"), nullptr, 10) : 1;
}

bool CudaRankMemory::sum(Number number, void *out, const void *const *parts,
                         int numParts, int64_t groups, int64_t count,
                         Error &error) {
  if (count == 0)
    return true;
  const RepriseCudaModule &image = *model.cuda;
  const int type = int(number);
  const RepriseCudaSum *end = image.sums + image.numSums;
  const RepriseCudaSum *kernel =
      std::find_if(image.sums, end, [&](const RepriseCudaSum &each) {
        return each.elementType == type && each.numTerms == numParts &&
               groupsOf(each) == groups;
      });
  if (kernel == end)
    return error.set("damaged model: no kernel adds up %d terms of %s of "
                     "%" PRId64 " groups of a rank",
                     numParts, repriseElementName(type), groups);
  for (int i = 0; i < numParts; ++i)
    parameters[size_t(i)] = reinterpret_cast<CudaAddress>(parts[i]);
  parameters[size_t(numParts)] = reinterpret_cast<CudaAddress>(out);
  parameters[size_t(numParts) + 1] = CudaAddress(count);
  const int64_t blocks = (count + kernel->perBlock - 1) / kernel->perBlock;
  return launch(functions[size_t(kernel - image.sums)], kernel->name, blocks,
                kernel->threads, parameters.begin(), size_t(numParts) + 2,
                error);
}

/// The kernel for offsets (0), or of those that move rows of so many bytes the
/// one that moves most at a time.
const RepriseCudaRows *CudaRankMemory::findRows(int64_t rowBytes,
                                                Error &error) const {
  const RepriseCudaModule &image = *model.cuda;
  const RepriseCudaRows *found = nullptr;
  for (int64_t i = 0; i < image.numRows; ++i) {
    const RepriseCudaRows &kernel = image.rows[i];
    const bool fits = rowBytes == 0 ? kernel.unitBytes == 0
                                    : kernel.unitBytes > 0 &&
                                          rowBytes % kernel.unitBytes == 0;
    if (fits && (!found || kernel.unitBytes > found->unitBytes))
      found = &kernel;
  }
  if (!found)
    error.set("damaged model: no kernel is for rows of experts of %" PRId64
              " bytes",
              rowBytes);
  return found;
}

bool CudaRankMemory::launchRows(const RepriseCudaRows &kernel, int64_t blocks,
                                CudaAddress *values, size_t numValues,
                                Error &error) {
  return launch(ofRows[size_t(&kernel - model.cuda->rows)], kernel.name, blocks,
                kernel.threads, values, numValues, error);
}

bool CudaRankMemory::moveRows(const RowSlots &slots, bool toSlots,
                              Error &error) {
  const RepriseCudaRows *kernel = findRows(slots.rowBytes, error);
  if (!kernel)
    return false;
  auto rows = reinterpret_cast<CudaAddress>(slots.rows);
  auto inSlots = reinterpret_cast<CudaAddress>(slots.slots);
  CudaAddress values[] = {toSlots ? rows : inSlots,
                          reinterpret_cast<CudaAddress>(slots.offsets),
                          toSlots ? inSlots : rows,
                          CudaAddress(slots.experts),
                          CudaAddress(slots.members),
                          CudaAddress(slots.self),
                          CudaAddress(slots.slotRows),
                          CudaAddress(slots.rowBytes / kernel->unitBytes),
                          CudaAddress(slots.numRows),
                          CudaAddress(slots.areOfTokens),
                          CudaAddress(toSlots)};
  const int64_t blocks =
      toSlots ? slots.members * slots.slotRows : slots.numBlocks();
  return launchRows(*kernel, blocks, values, sizeof(values) / sizeof(*values),
                    error);
}

bool CudaRankMemory::fillSlots(const RowSlots &slots, Error &error) {
  return moveRows(slots, /*toSlots=*/true, error);
}

bool CudaRankMemory::emptySlots(const RowSlots &slots, Error &error) {
  return moveRows(slots, /*toSlots=*/false, error);
}

bool CudaRankMemory::findOwnOffsets(const int32_t *all, int64_t experts,
                                    int64_t members, int64_t self, int32_t *own,
                                    Error &error) {
  const RepriseCudaRows *kernel = findRows(0, error);
  if (!kernel)
    return false;
  CudaAddress values[] = {
      reinterpret_cast<CudaAddress>(all), reinterpret_cast<CudaAddress>(own),
      CudaAddress(experts), CudaAddress(members), CudaAddress(self)};
  return launchRows(*kernel, 1, values, sizeof(values) / sizeof(*values),
                    error);
}

bool CudaRankMemory::copy(void *to, const void *from, size_t size,
                          Error &error) {
  if (to == from || size == 0)
    return true;
  return device.check(
      device.driver().copyOnDevice(reinterpret_cast<CudaAddress>(to),
                                   reinterpret_cast<CudaAddress>(from), size,
                                   nccl.stream()),
      "copy on the GPU", error);
}

bool CudaRankMemory::clear(void *bytes, size_t size, Error &error) {
  return size == 0 || device.check(device.driver().fillBytes(
                                       reinterpret_cast<CudaAddress>(bytes), 0,
                                       size, nccl.stream()),
                                   "fill of the GPU's memory", error);
}
