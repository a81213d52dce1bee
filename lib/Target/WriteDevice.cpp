//===- WriteDevice.cpp - Tables of GPUs as constant data --------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DataWriter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "reprise/Codegen/CUDA/Device.h"
#include "reprise/Codegen/CUDA/RankSums.h"
#include "reprise/Dialect/RT/ElementFormat.h"
#include "reprise/Target/DeviceImage.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::target;

/// Bytes of the variables in device memory of the code in `source`.
static int64_t countGlobalBytes(ModuleOp source) {
  int64_t bytes = 0;
  DataLayout layout(source);
  source.walk([&](LLVM::GlobalOp global) {
    if (!global.getConstant() &&
        global.getAddrSpace() == unsigned(NVVM::NVVMMemorySpace::Global))
      bytes += layout.getTypeSize(global.getGlobalType()).getFixedValue();
  });
  return bytes;
}

/// By their names.
static llvm::StringMap<cuda::KernelFacts> getFacts(ModuleOp source) {
  llvm::StringMap<cuda::KernelFacts> facts;
  for (cuda::KernelFacts &kernel : cuda::getKernelFacts(source))
    facts[kernel.name] = kernel;
  return facts;
}

static SmallVector<Typed<RepriseCudaKernel>>
writeDeviceKernels(DataWriter &data, ModuleOp source, const Tables &tables) {
  using K = Fields<RepriseCudaKernel>;
  llvm::StringMap<cuda::KernelFacts> facts = getFacts(source);
  // Every launch of a kernel has as many buffers and ids.
  llvm::StringMap<const Tables::Launch *> launches;
  SmallVector<StringRef> names(tables.kernels.size());
  for (auto &[name, index] : tables.kernels)
    names[index] = name;
  for (const Tables::Schedule &schedule : tables.schedules)
    for (const Tables::Launch &launch : schedule.launches)
      if (launch.kind == REPRISE_LAUNCH_KERNEL)
        launches[names[launch.callee]] = &launch;

  SmallVector<Typed<RepriseCudaKernel>> kernels;
  for (StringRef name : names) {
    const cuda::KernelFacts &kernel = facts[name];
    const Tables::Launch *launch = launches[name];
    kernels.push_back(Row<RepriseCudaKernel>{
        data, K::name(data.string(name)), K::grid(kernel.grid),
        K::block(kernel.block), K::numBuffers(launch->buffers.size()),
        K::numIds(launch->ids.size()), K::sharedBytes(kernel.sharedBytes)});
  }
  return kernels;
}

static SmallVector<Typed<RepriseCudaSum>> writeDeviceSums(DataWriter &data,
                                                          ModuleOp source) {
  using S = Fields<RepriseCudaSum>;
  llvm::StringMap<cuda::KernelFacts> facts = getFacts(source);
  SmallVector<Typed<RepriseCudaSum>> rows;
  llvm::StringMap<bool> written;
  source.walk([&](rt::CollectiveOp op) {
    for (const cuda::RankSum &sum : cuda::getRankSums(op)) {
      std::string name = cuda::getRankSumName(sum);
      auto kernel = facts.find(name);
      if (kernel == facts.end() || !written.insert({name, true}).second)
        continue;
      rows.push_back(Row<RepriseCudaSum>{
          data, S::name(data.string(name)),
          S::elementType(rt::getElementCode(sum.element)),
          S::numTerms(sum.getNumTerms()), S::threads(kernel->second.block[0]),
          S::perBlock(cuda::kRankSumElements)});
    }
  });
  return rows;
}

static SmallVector<Typed<RepriseCudaRows>> writeDeviceRows(DataWriter &data,
                                                           ModuleOp source) {
  using R = Fields<RepriseCudaRows>;
  llvm::StringMap<cuda::KernelFacts> facts = getFacts(source);
  SmallVector<Typed<RepriseCudaRows>> rows;
  for (int64_t unit : cuda::getRankRowsUnits(source)) {
    std::string name = cuda::getRankRowsName(unit);
    auto kernel = facts.find(name);
    if (kernel == facts.end())
      continue;
    rows.push_back(Row<RepriseCudaRows>{data, R::name(data.string(name)),
                                        R::unitBytes(unit),
                                        R::threads(kernel->second.block[0])});
  }
  return rows;
}

Typed<const RepriseCudaModule *> target::writeDevice(DataWriter &data,
                                                     ModuleOp source,
                                                     const Tables &tables,
                                                     const DeviceImage &image) {
  using C = Fields<RepriseCubin>;
  using D = Fields<RepriseCudaModule>;
  SmallVector<Typed<RepriseCudaKernel>> kernels =
      writeDeviceKernels(data, source, tables);
  SmallVector<Typed<RepriseCudaSum>> sums = writeDeviceSums(data, source);
  SmallVector<Typed<RepriseCudaRows>> rows = writeDeviceRows(data, source);
  SmallVector<Typed<RepriseCubin>> cubins;
  for (const DeviceImage::Cubin &cubin : image.cubins) {
    StringRef code(cubin.code.data(), cubin.code.size());
    cubins.push_back(Row<RepriseCubin>{
        data, C::smMajor(cubin.major), C::smMinor(cubin.minor),
        C::archSpecific(cubin.archSpecific), C::reserved(0),
        C::data({data.bytes(code, "cubin", /*isText=*/false)}),
        C::bytes(code.size())});
  }
  Row<RepriseCudaModule> row{
      data,
      D::ptx({data.bytes(image.ptx, "ptx", /*isText=*/true)}),
      D::ptxBytes(image.ptx.size()),
      D::cubins(data.table(cubins, "cubins")),
      D::kernels(data.table(kernels, "device_kernels")),
      D::numCubins(cubins.size()),
      D::ptxMajor(image.major),
      D::ptxMinor(image.minor),
      D::numSums(sums.size()),
      D::sums(data.table(sums, "device_sums")),
      D::rows(data.table(rows, "device_rows")),
      D::numRows(rows.size()),
      D::globalBytes(countGlobalBytes(source))};
  return data.address(row, "device");
}
