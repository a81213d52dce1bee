//===- Placement.cpp - On what a run computes -----------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Placement.h"

#include "runtime/base/Targets.h"
#include "runtime/transport/Collectives.h"
#include "runtime/transport/Mesh.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

using namespace reprise::runtime;

static constexpr int kNoSuchCode = 2, kNoSuchDevice = 3;

static const RepriseModel *findModel(const RepriseModel *const *models,
                                     int numModels, int target) {
  for (int i = 0; i < numModels; ++i)
    if (models[i]->target == target)
      return models[i];
  return nullptr;
}

/// N of "cuda:N", 0 of "cuda"; -1 if `text` is neither.
static int parseOrdinal(const char *text) {
  if (strncmp(text, "cuda", 4) != 0)
    return -1;
  if (!text[4])
    return 0;
  char *end = nullptr;
  long number = strtol(text + 5, &end, 10);
  bool isNumber = text[4] == ':' && text[5] >= '0' && text[5] <= '9' && !*end;
  return isNumber && number < 1024 ? int(number) : -1;
}

/// Whether NCCL can sum something: what all ranks sum, or with samples of their
/// own and parts of a model what other groups of ranks do not sum.
static bool checkSums(const RepriseModel &model, Error &error) {
  if (model.numAxes <= 0)
    return error.set("--nccl-sums needs a program for several ranks, but this "
                     "one is for one");
  const bool isOne = std::any_of(
      model.axes, model.axes + model.numAxes, [&](const RepriseAxis &axis) {
        return axis.step == 0 && axis.size == countRanks(model);
      });
  char mesh[200];
  describeMesh(model, mesh, sizeof(mesh));
  return isOne || sampleAxesOf(model).areAll ||
         error.set(
             "--nccl-sums needs a program whose ranks are along one axis, "
             "or along dp and tp, but this one has %s, and sums along "
             "one axis at a time, each of which several groups of ranks "
             "need to the bit; without the option the program makes them",
             mesh);
}

/// Whether what only a GPU understands is asked for on one.
static bool checkOptions(const DeviceOptions &options,
                         const RepriseModel &model, Error &error) {
  const struct {
    bool given;
    const char *name;
  } needing[] = {{options.noCudaGraph, "no-cuda-graph"},
                 {options.cudaSync, "cuda-sync"},
                 {options.tf32, "tf32"},
                 {options.autotune, "autotune"},
                 {options.nvtx, "nvtx"},
                 {options.ncclSums, "nccl-sums"}};
  for (auto [given, name] : needing)
    if (given && model.target != REPRISE_TARGET_CUDA)
      return error.set("--%s needs a GPU, but this run is on the CPU", name);
  return !options.ncclSums || checkSums(model, error);
}

int reprise::runtime::place(const RepriseModel *const *models, int numModels,
                            const DeviceOptions &options, int localRank,
                            Placement &placement, Error &error) {
  const RepriseModel *cpu = findModel(models, numModels, REPRISE_TARGET_CPU);
  const RepriseModel *cuda = findModel(models, numModels, REPRISE_TARGET_CUDA);
  const char *wanted = options.device ? options.device : "auto";
  bool isAuto = !strcmp(wanted, "auto"), isCpu = !strcmp(wanted, "cpu");
  int ordinal = isAuto ? 0 : parseOrdinal(wanted);
  if (!isCpu && ordinal < 0) {
    error.set("--device needs auto, cpu, cuda or cuda:N, but got '%s'", wanted);
    return kNoSuchCode;
  }
  if (!cpu && !cuda) {
    error.set("damaged model: needs target %d or %d, but got %d",
              int(REPRISE_TARGET_CPU), int(REPRISE_TARGET_CUDA),
              numModels > 0 ? int(models[0]->target) : -1);
    return kNoSuchCode;
  }
  if (isCpu ? !cpu : !isAuto && !cuda) {
    error.set("--device %s needs a program that was compiled with "
              "--target=%s, but this one is for --target=%s alone",
              wanted, isCpu ? "cpu" : "cuda", isCpu ? "cuda" : "cpu");
    return kNoSuchCode;
  }
  placement.model = isCpu || !cuda ? cpu : cuda;
  // Before a GPU is asked for, so that all ranks refuse an option alike.
  if (!checkOptions(options, *placement.model, error))
    return kNoSuchCode;
  if (placement.model != cuda || placement.gpu.open(ordinal, localRank, error))
    return 0;
  if (!isAuto || !cpu)
    return kNoSuchDevice;
  snprintf(placement.note, sizeof(placement.note), "on the CPU: %.900s",
           error.text);
  placement.model = cpu;
  return checkOptions(options, *cpu, error) ? 0 : kNoSuchCode;
}

Device &DeviceSlot::make(Placement &placement, const DeviceOptions &options,
                         Arena &arena, ThreadPool &pool, Transport &ranks) {
  const RepriseModel &model = *placement.model;
  if (model.target == REPRISE_TARGET_CUDA)
    return cuda.emplace(model, placement.gpu, arena, ranks,
                        CudaSettings{!options.noCudaGraph, options.cudaSync,
                                     options.tf32, options.autotune,
                                     options.nvtx, options.ncclSums});
  return cpu.emplace(model, arena, pool, ranks,
                     Processor(cpuLevel(), options.portableBits));
}

bool reprise::runtime::agreeOnDevice(const Placement &placement,
                                     Transport &ranks, Error &error) {
  const int own = placement.model->target;
  int first = own;
  if (!broadcast(ranks, {0, 1, ranks.size()}, "the device of ranks", &first,
                 sizeof(first), error))
    return false;
  return first == own ||
         error.set("all ranks need the same kind of device, but rank 0 has %s "
                   "and rank %d %s%s%.700s",
                   factsOf(first).device, ranks.rank(), factsOf(own).device,
                   placement.note[0] ? ": " : "", placement.note);
}
