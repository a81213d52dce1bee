//===- reprise-stages.cpp - Stages and lanes, by any engine ---------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Usage: reprise-stages OPTION...   trains the toy of the unit tests in two
//                                   stages, with the options of a program
//        reprise-stages ring BYTES  three ranks send each other 100 parcels of
//                                   so many bytes on lanes, and smaller ones
//        reprise-stages full        a lane that nobody reads is given up
//        reprise-stages short       a parcel is smaller than its receiver knows
//
// Ranks are those of a launcher, or are started here.
//
//===----------------------------------------------------------------------===//

#include "test/unit/runtime/LanesRun.h"
#include "test/unit/runtime/StagedToy.h"

#include "runtime/transport/Embedded.h"
#include "runtime/transport/Launched.h"

#include <cstdio>
#include <functional>

using namespace reprise::runtime;
using namespace reprise::runtime::test;

using Body = std::function<bool(Transport &, Error &)>;

static int runBody(Transport &ranks, void *context) {
  Error error;
  if ((*static_cast<Body *>(context))(ranks, error))
    return 0;
  ranks.abort(error.text);
  return 1;
}

static int runRanksWith(const std::vector<Lane> &lanes, int numRanks,
                        Body body) {
  RankSettings settings;
  settings.numRanks = numRanks;
  settings.lanes = lanes.data(), settings.numLanes = int(lanes.size());
  settings.operationSeconds = 2;
  Error error;
  const Launch launch = findLaunch();
  const int status =
      launch.name ? runLaunchedRank(launch, settings, runBody, &body, error)
                  : runRanks(settings, runBody, &body, error);
  if (error.text[0])
    fprintf(stderr, "error: %s\n", error.text);
  return status;
}

static int runRing(size_t size) {
  const std::vector<Lane> lanes = lanesOfRing(size);
  return runRanksWith(lanes, 3, [&](Transport &ranks, Error &error) {
    if (!runRing(lanes, 100, ranks, error))
      return false;
    if (ranks.rank() == 0)
      printf("all parcels are there\n");
    return true;
  });
}

static int runFull() {
  // More than a library, or the system, sends without a receiver.
  const std::vector<Lane> lanes = {{0, 1, 0, 16 << 20, 2}};
  return runRanksWith(lanes, 2, [&](Transport &ranks, Error &error) {
    const End end = {ranks, error};
    if (ranks.rank() == 0)
      return end.send(lanes[0], 0) && end.send(lanes[0], 1) &&
             end.send(lanes[0], 2);
    sleep(8);
    return true;
  });
}

static int runShort() {
  const std::vector<Lane> lanes = {{0, 1, 0, 2000, 2}};
  return runRanksWith(lanes, 2, [&](Transport &ranks, Error &error) {
    char bytes[2000] = {};
    if (ranks.rank() == 0)
      return ranks.send("a send", {1, 0, bytes, 1000, 2}, error);
    return ranks.receive("a receive", {0, 0, bytes, 2000, 2}, error);
  });
}

int main(int argc, char **argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "ring" && argc == 3)
    return runRing(size_t(std::stoul(argv[2])));
  if (mode == "full")
    return runFull();
  if (mode == "short")
    return runShort();
  const ToyModel toy;
  const StagedToy staged(toy);
  const std::vector<const RepriseModel *> models = staged.models();
  return repriseMain(argc, argv, models.data(), int32_t(models.size()));
}
