//===- reprise-device.cpp - A module of kernels as text ---------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// reprise-device DEVICE.mlir --to=ptx|llvm|resources --chip=sm_90a: what a
// module in the phase nvvm becomes for a chip.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/AsmState.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "reprise/Codegen/CUDA/Device.h"
#include "reprise/Codegen/CUDA/Passes.h"
#include "reprise/Pipelines/Registration.h"
#include "test/common/Words.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace reprise;

enum class Form { PTX, LLVM, Resources };

static llvm::cl::OptionCategory category("reprise-device options");
static llvm::cl::opt<std::string>
    input(llvm::cl::Positional, llvm::cl::init("-"), llvm::cl::cat(category));
static llvm::cl::opt<Form>
    form("to", llvm::cl::desc("What to write:"),
         llvm::cl::values(clEnumValN(Form::PTX, "ptx", "PTX"),
                          clEnumValN(Form::LLVM, "llvm", "optimised LLVM IR"),
                          clEnumValN(Form::Resources, "resources",
                                     "what ptxas says of each kernel")),
         llvm::cl::init(Form::PTX), llvm::cl::cat(category));
static llvm::cl::opt<std::string> chip("chip", llvm::cl::init("sm_80"),
                                       llvm::cl::cat(category));
static llvm::cl::opt<unsigned> ptxVersion("ptx-version", llvm::cl::init(0),
                                          llvm::cl::cat(category));

static LogicalResult write(ModuleOp module, raw_ostream &os) {
  FailureOr<std::string> text =
      form == Form::LLVM
          ? cuda::translateDeviceToLLVMIR(module, chip, ptxVersion)
          : cuda::emitPTX(module, chip, ptxVersion);
  if (failed(text))
    return failure();
  if (form != Form::Resources) {
    os << *text;
    return success();
  }
  FailureOr<cuda::Assembly> assembly =
      cuda::assemble(module.getLoc(), *text, chip);
  if (failed(assembly))
    return failure();
  for (const cuda::KernelResources &kernel : assembly->kernels)
    os << kernel.name << " for " << chip << ": " << kernel.registers
       << " registers, " << kernel.spillStores + kernel.spillLoads
       << " bytes spilled, " << kernel.stackBytes << " bytes of stack\n";
  return success();
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  test::readWords(argc, argv, category, "Machine code of kernels\n");
  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry);
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler handler(sources, &context);
  std::string message;
  auto file = openInputFile(input, &message);
  if (!file) {
    llvm::errs() << "reprise-device: " << message << "\n";
    return 1;
  }
  sources.AddNewSourceBuffer(std::move(file), llvm::SMLoc());
  auto module = parseSourceFile<ModuleOp>(sources, &context);
  return failed(failure(!module)) || failed(write(*module, llvm::outs()));
}
