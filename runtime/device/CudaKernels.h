//===- CudaKernels.h - Generated kernels on a GPU ---------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DEVICE_CUDAKERNELS_H
#define REPRISE_RUNTIME_DEVICE_CUDAKERNELS_H

#include "CudaInputs.h"
#include "Gpu.h"
#include "runtime/base/List.h"

namespace reprise::runtime {

/// The kernels of a model, loaded on a GPU.
class CudaKernels {
public:
  /// \param rank  whose coordinates kernels are given.
  CudaKernels(const RepriseModel &model, const Gpu &gpu, int rank)
      : model(model), gpu(gpu), rank(rank) {}
  CudaKernels(const CudaKernels &) = delete;
  CudaKernels &operator=(const CudaKernels &) = delete;
  ~CudaKernels();

  /// Takes room for what launching needs, after all launches have been found to
  /// have what their kernels take.
  bool takeTables(Error &error);
  /// Loads machine code or PTX, whatever the GPU takes, and finds the kernels.
  bool load(Error &error);

  /// Begins a launch; it reads the inputs of `microBatch`.
  bool launch(const RepriseLaunch &launch, const CudaInputs &inputs,
              int64_t microBatch, Error &error);

  CudaModule image() const { return module; }
  /// What was loaded: "machine code for sm_90a".
  const char *imageName() const { return name; }

private:
  bool checkLaunches(const RepriseSchedule &schedule, int &mostParameters,
                     Error &error) const;
  const RepriseCubin *findCubin() const;
  bool loadImage(Error &error);
  bool load(const void *image, const char *what, Error &error);
  bool findFunctions(Error &error);
  bool refuse(CudaResult code, const RepriseLaunch &launch, Error &error) const;

  const RepriseModel &model;
  const Gpu &gpu;
  const int rank;
  CudaModule module = nullptr;
  char name[64] = "";
  List<CudaFunction> functions; ///< Of `model.kernels`.
  List<CudaAddress> parameters; ///< Of the launch that is being begun.
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DEVICE_CUDAKERNELS_H
