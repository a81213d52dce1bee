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

using namespace reprise::runtime;

bool CudaRankMemory::connect(Transport &ranks, Error &error) {
  if (!nccl.connect(ranks, error))
    return false;
  List<int> peers;
  for (int axis = 0; axis < model.numAxes; ++axis) {
    const Group group = groupOf(model, ranks.rank(), axis);
    for (int i = 0; i < group.size; ++i)
      if (group.rankOf(i) != ranks.rank() && !peers.push(group.rankOf(i)))
        return error.set("no memory left for the peers of a rank");
  }
  return nccl.greet(peers.begin(), int(peers.size()), error);
}

bool CudaRankMemory::load(CudaModule module, Error &error) {
  const RepriseCudaModule &image = *model.cuda;
  int most = 0;
  for (int i = 0; i < image.numSums; ++i) {
    CudaFunction function = nullptr;
    if (!device.check(device.driver().moduleFunction(&function, module,
                                                     image.sums[i].name),
                      image.sums[i].name, error))
      return false;
    most = std::max<int>(most, image.sums[i].numTerms);
    if (!functions.push(function))
      return error.set("no memory left for kernels of sums");
  }
  return parameters.resize(size_t(most) + 2) ||
         error.set("no memory left for sums of %d terms", most);
}

bool CudaRankMemory::sum(Number number, void *out, const void *const *parts,
                         int numParts, int64_t count, Error &error) {
  if (count == 0)
    return true;
  const RepriseCudaModule &image = *model.cuda;
  const int type = number == Number::F32 ? REPRISE_F32 : REPRISE_BF16;
  const RepriseCudaSum *end = image.sums + image.numSums;
  const RepriseCudaSum *kernel =
      std::find_if(image.sums, end, [&](const RepriseCudaSum &each) {
        return each.elementType == type && each.numTerms == numParts;
      });
  if (kernel == end)
    return error.set("damaged model: no kernel adds up %d terms of %s",
                     numParts, number == Number::F32 ? "f32" : "bf16");
  for (int i = 0; i < numParts; ++i)
    parameters[size_t(i)] = reinterpret_cast<CudaAddress>(parts[i]);
  parameters[size_t(numParts)] = reinterpret_cast<CudaAddress>(out);
  parameters[size_t(numParts) + 1] = CudaAddress(count);
  size_t bytes = size_t(numParts + 2) * sizeof(CudaAddress);
  void *extra[] = {kCudaLaunchBuffer, parameters.begin(),
                   kCudaLaunchBufferBytes, &bytes, kCudaLaunchEnd};
  const int64_t blocks = (count + kernel->perBlock - 1) / kernel->perBlock;
  return device.check(
      device.driver().launch(functions[size_t(kernel - image.sums)],
                             unsigned(blocks), 1, 1, unsigned(kernel->threads),
                             1, 1, /*sharedBytes=*/0, device.stream(), nullptr,
                             extra),
      kernel->name, error);
}

bool CudaRankMemory::copy(void *to, const void *from, size_t size,
                          Error &error) {
  if (to == from || size == 0)
    return true;
  return device.check(
      device.driver().copyOnDevice(reinterpret_cast<CudaAddress>(to),
                                   reinterpret_cast<CudaAddress>(from), size,
                                   device.stream()),
      "copy on the GPU", error);
}

bool CudaRankMemory::clear(void *bytes, size_t size, Error &error) {
  return size == 0 || device.check(device.driver().fillBytes(
                                       reinterpret_cast<CudaAddress>(bytes), 0,
                                       size, device.stream()),
                                   "fill of the GPU's memory", error);
}
