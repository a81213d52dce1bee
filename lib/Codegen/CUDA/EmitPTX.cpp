//===- EmitPTX.cpp - Kernels as LLVM IR and as PTX --------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "reprise/Codegen/CUDA/Device.h"
#include "reprise/Codegen/Common/RunPasses.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::cuda;

static FailureOr<gpu::GPUModuleOp> findDevice(ModuleOp module) {
  for (auto device : module.getOps<gpu::GPUModuleOp>())
    if (device.getName() == "device")
      return device;
  return module.emitError("needs a gpu.module '@device'");
}

/// Bytes of parameters that a kernel may have. More would be refused where the
/// code is loaded, which is not where it is compiled.
static constexpr int64_t kParameterBytes = 4096, kManyParameterBytes = 32764;
/// The version of PTX that has the larger number of parameters.
static constexpr unsigned kManyParametersVersion = 81;

/// Of the kernel that has most, in bytes.
static int64_t getParameterBytes(gpu::GPUModuleOp device) {
  int64_t most = 0;
  for (auto function : device.getOps<LLVM::LLVMFuncOp>())
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (auto type = function.getArgAttrOfType<TypeAttr>(
              i, LLVM::LLVMDialect::getByValAttrName()))
        most = std::max(most, int64_t(DataLayout::closest(function).getTypeSize(
                                  type.getValue())));
  return most;
}

/// The version of PTX that the kernels are written in unless somebody wants
/// another one.
static unsigned chooseVersion(const Chip &chip, gpu::GPUModuleOp device) {
  if (getParameterBytes(device) <= kParameterBytes)
    return chip.ptxVersion;
  return std::max(chip.ptxVersion, kManyParametersVersion);
}

static LogicalResult checkParameters(gpu::GPUModuleOp device,
                                     unsigned ptxVersion) {
  int64_t bytes = getParameterBytes(device);
  int64_t most = ptxVersion < kManyParametersVersion ? kParameterBytes
                                                     : kManyParameterBytes;
  if (bytes <= most)
    return success();
  return device.emitOpError("needs kernels of at most ")
         << most << " bytes of parameters in PTX " << ptxVersion / 10 << "."
         << ptxVersion % 10 << ", but one has " << bytes;
}

/// Of kernels with a form for one chip of their own, that chip gets this form
/// and others the common one. Fails for a form whose chip nobody knows.
static LogicalResult chooseForms(gpu::GPUModuleOp device, llvm::Module &module,
                                 StringRef chip) {
  for (auto function : device.getOps<LLVM::LLVMFuncOp>()) {
    auto common = function->getAttrOfType<StringAttr>(rt::kInsteadAttr);
    if (!common)
      continue;
    auto own = function->getAttrOfType<StringAttr>(rt::kChipAttr);
    if (failed(findChip(function.getLoc(), own)))
      return failure();
    llvm::Function *form = module.getFunction(function.getName());
    if (own.getValue() != chip) {
      form->eraseFromParent();
      continue;
    }
    module.getFunction(common)->eraseFromParent();
    form->setName(common.getValue());
  }
  return success();
}

namespace {
/// The kernels in LLVM's own representation, optimised for a chip.
struct Translation {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module;
  std::unique_ptr<llvm::TargetMachine> machine;

  LogicalResult translate(ModuleOp source, StringRef chipName,
                          unsigned ptxVersion);
};
} // namespace

LogicalResult Translation::translate(ModuleOp source, StringRef chipName,
                                     unsigned ptxVersion) {
  Location location = source.getLoc();
  FailureOr<const Chip *> chip = findChip(location, chipName);
  FailureOr<gpu::GPUModuleOp> device = findDevice(source);
  if (failed(chip) || failed(device))
    return failure();
  if (ptxVersion == 0)
    ptxVersion = chooseVersion(**chip, *device);
  if (failed(checkPTXVersion(location, **chip, ptxVersion)) ||
      failed(checkParameters(*device, ptxVersion)))
    return failure();

  static bool initialized = [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    return true;
  }();
  (void)initialized;
  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string message;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, message);
  if (!target)
    return emitError(location, "has no code generator for GPUs: ") << message;
  machine.reset(target->createTargetMachine(
      triple, (*chip)->name, "+ptx" + std::to_string(ptxVersion),
      llvm::TargetOptions(), std::nullopt, std::nullopt,
      llvm::CodeGenOptLevel::Aggressive));

  module = translateModuleToLLVMIR(*device, context, "device");
  if (!module || failed(chooseForms(*device, *module, chipName)))
    return failure();
  module->setTargetTriple(triple);
  module->setDataLayout(machine->createDataLayout());
  llvm::raw_string_ostream os(message);
  if (llvm::verifyModule(*module, &os))
    return emitError(location, "makes LLVM IR that is not valid: ") << message;
  llvm::PipelineTuningOptions tuning;
  // Loads and stores are as wide as they are written; an order of sums is not
  // to be touched.
  tuning.LoopVectorization = tuning.SLPVectorization = false;
  if (llvm::Error error =
          codegen::runPasses(*module, *machine, "default<O3>", tuning))
    return emitError(location) << llvm::toString(std::move(error));
  return success();
}

FailureOr<std::string> cuda::translateDeviceToLLVMIR(ModuleOp module,
                                                     StringRef chip,
                                                     unsigned ptxVersion) {
  Translation translation;
  if (failed(translation.translate(module, chip, ptxVersion)))
    return failure();
  std::string text;
  llvm::raw_string_ostream os(text);
  translation.module->print(os, nullptr);
  return text;
}

FailureOr<std::string> cuda::emitPTX(ModuleOp module, StringRef chip,
                                     unsigned ptxVersion) {
  Translation translation;
  if (failed(translation.translate(module, chip, ptxVersion)))
    return failure();
  SmallString<0> text;
  llvm::raw_svector_ostream os(text);
  llvm::legacy::PassManager passes;
  if (translation.machine->addPassesToEmitFile(
          passes, os, nullptr, llvm::CodeGenFileType::AssemblyFile))
    return module.emitError("needs a code generator that writes PTX");
  passes.run(*translation.module);
  return std::string(text);
}

std::vector<KernelFacts> cuda::getKernelFacts(ModuleOp module) {
  std::vector<KernelFacts> facts;
  for (auto device : module.getOps<gpu::GPUModuleOp>())
    for (auto function : device.getOps<FunctionOpInterface>()) {
      auto grid = function->getAttrOfType<DenseI64ArrayAttr>(rt::kGridAttr);
      auto block = function->getAttrOfType<DenseI64ArrayAttr>(rt::kBlockAttr);
      if (!grid || !block || function->hasAttr(rt::kInsteadAttr))
        continue;
      auto number = [&](StringRef name) {
        auto value = function->getAttrOfType<IntegerAttr>(name);
        return value ? value.getInt() : 0;
      };
      KernelFacts kernel{function.getName().str(),
                         {},
                         {},
                         number(rt::kSharedAttr),
                         number(rt::kBytesAttr)};
      llvm::copy(grid.asArrayRef(), kernel.grid.begin());
      llvm::copy(block.asArrayRef(), kernel.block.begin());
      facts.push_back(std::move(kernel));
    }
  return facts;
}
