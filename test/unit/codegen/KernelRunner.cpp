//===- KernelRunner.cpp - Compiles and runs kernels from text ---*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelRunner.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "reprise/ABI/Model.h"
#include "reprise/Codegen/CPU/Passes.h"
#include "reprise/Codegen/Common/RunPasses.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Kernels/Passes.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"
#include <cmath>
#include <cstring>
#include <random>

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;

static std::unique_ptr<llvm::TargetMachine> createTargetMachine(bool wide) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  llvm::Triple triple("x86_64-unknown-linux-gnu");
  std::string error;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    llvm::report_fatal_error(llvm::StringRef(error));
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(triple, wide ? kAVX512Processor : "x86-64-v3",
                                  "", options, llvm::Reloc::PIC_));
}

KernelRunner::KernelRunner(const std::string &text, bool wide) {
  DialectRegistry registry;
  registry.insert<arith::ArithDialect, func::FuncDialect, linalg::LinalgDialect,
                  LLVM::LLVMDialect, math::MathDialect, rt::RTDialect,
                  tensor::TensorDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  context.appendDialectRegistry(registry);

  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    llvm::report_fatal_error("the test's text does not parse");
  PassManager manager(&context);
  buildCPULoweringPipeline(manager, wide ? Registers::Wide : Registers::Base);
  if (failed(manager.run(*module)))
    llvm::report_fatal_error("the test's kernels have no code");
  for (auto function : module->getOps<LLVM::LLVMFuncOp>())
    if (auto count = function->getAttrOfType<IntegerAttr>(rt::kTasksAttr))
      counts[function.getName().str()] = count.getInt();

  std::unique_ptr<llvm::TargetMachine> machine = createTargetMachine(wide);
  ExecutionEngineOptions options;
  // Code is made as that of programs is.
  auto optimize = [&](llvm::Module *code) {
    return runPasses(*code, *machine, kKernelPasses);
  };
  options.transformer = optimize;
  options.jitCodeGenOptLevel = llvm::CodeGenOptLevel::Default;
  engine = llvm::cantFail(
      ExecutionEngine::create(*module, options, createTargetMachine(wide)));
}

std::vector<bool> codegen::widths() {
  return __builtin_cpu_supports("avx512f") &&
                 __builtin_cpu_supports("avx512bw") &&
                 __builtin_cpu_supports("avx512dq") &&
                 __builtin_cpu_supports("avx512vl")
             ? std::vector<bool>{false, true}
             : std::vector<bool>{false};
}

void *KernelRunner::address(const std::string &symbol) {
  return llvm::cantFail(engine->lookup(symbol));
}

void KernelRunner::run(const std::string &kernel,
                       const std::vector<void *> &buffers,
                       const std::vector<int64_t> &ids, int64_t chunk,
                       bool backwards) {
  auto fn = reinterpret_cast<RepriseKernelFn>(address(kernel));
  int64_t count = tasks(kernel);
  chunk = std::min(chunk, count);
  int64_t chunks = (count + chunk - 1) / chunk;
  for (int64_t i = 0; i < chunks; ++i) {
    int64_t begin = (backwards ? chunks - 1 - i : i) * chunk;
    fn(buffers.data(), ids.data(), begin, std::min(begin + chunk, count));
  }
}

std::string codegen::asLoops(const std::string &text) {
  MLIRContext context;
  context.loadDialect<func::FuncDialect, nn::NNDialect, rt::RTDialect>();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    llvm::report_fatal_error("the test's text does not parse");
  PassManager manager(&context);
  manager.addNestedPass<func::FuncOp>(kernels::createConvertNNToLinalg());
  if (failed(manager.run(*module)))
    llvm::report_fatal_error("the test's kernels have no loops");
  std::string loops;
  llvm::raw_string_ostream os(loops);
  module->print(os);
  return loops;
}

uint16_t codegen::randomBF16(std::mt19937 &random, bool extreme) {
  auto bits = uint16_t(random());
  if (!extreme)
    return uint16_t((bits & 0x807F) | (120 + random() % 12) << 7);
  switch (random() % 8) {
  case 0: // A zero.
    return bits & 0x8000;
  case 1: // A denormal number.
    return bits & 0x807F;
  case 2: // The smallest ones: products vanish.
    return uint16_t((bits & 0x807F) | (1 + random() % 60) << 7);
  case 3: // The largest ones: sums overflow, or an infinity.
    return random() % 512 ? bits & 0x3FFF : 0x7F80 - (random() & 1);
  default: // Products around the smallest number.
    return uint16_t((bits & 0x807F) | (62 + random() % 4) << 7);
  }
}

Floats codegen::randomFloats(size_t count, uint64_t seed) {
  std::mt19937_64 source(seed);
  Floats values(count);
  for (float &value : values)
    value = float(source() >> 40) * 0x1p-23f - 1.0f;
  return values;
}

float codegen::laneSum(const Floats &terms) {
  float lanes[64] = {};
  for (size_t i = 0; i < terms.size(); ++i)
    lanes[i % 64] += terms[i];
  for (int half = 32; half > 0; half /= 2)
    for (int lane = 0; lane < half; ++lane)
      lanes[lane] += lanes[lane + half];
  return lanes[0];
}

float *codegen::alignToLine(Floats &room) {
  auto address = reinterpret_cast<uintptr_t>(room.data());
  return room.data() + (-address / sizeof(float)) % kLine;
}

int64_t codegen::ulpsApart(float a, float b) {
  auto rank = [](float x) {
    int32_t bits;
    std::memcpy(&bits, &x, 4);
    return int64_t(bits < 0 ? INT32_MIN - bits : bits);
  };
  return std::abs(rank(a) - rank(b));
}
