//===- Device.cpp - Kernels from text, run in the simulator -----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Device.h"
#include "test/simulator/Lowering.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/SourceMgr.h"

using namespace reprise;

std::vector<SimulatorOptions> simulator::allOptions() {
  return {{SIMULATOR_LATE, SIMULATOR_ASCENDING, 0},
          {SIMULATOR_LATE, SIMULATOR_SHUFFLED, 17},
          {SIMULATOR_AT_ONCE, SIMULATOR_DESCENDING, 0},
          {SIMULATOR_AT_ONCE, SIMULATOR_SHUFFLED, 18}};
}

std::string simulator::describe(const SimulatorOptions &options) {
  static const char *const orders[] = {"ascending", "descending", "shuffled"};
  return std::string(options.landing == SIMULATOR_LATE ? "late" : "at once") +
         ", " + orders[options.order];
}

std::string simulator::load(const std::string &text) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic diagnostic;
  auto module = llvm::parseAssemblyString(text, diagnostic, context);
  if (!module)
    return "line " + std::to_string(diagnostic.getLineNo()) + ": " +
           diagnostic.getMessage().str();
  llvm::SmallString<128> path;
  if (llvm::sys::fs::createTemporaryFile("kernels", "so", path))
    return "there is no temporary file";
  std::string error;
  if (llvm::Error failure = writeSharedObject(*module, path))
    error = llvm::toString(std::move(failure));
  else if (const char *refusal = simulatorLoad(path.c_str()))
    error = refusal;
  llvm::sys::fs::remove(path);
  return error;
}

std::string simulator::launch(const char *kernel, std::vector<uint32_t> grid,
                              std::vector<uint32_t> block,
                              std::vector<void *> params, size_t sharedBytes) {
  grid.resize(3, 1), block.resize(3, 1);
  const char *error =
      simulatorLaunch(kernel, grid.data(), block.data(), sharedBytes,
                      params.data(), params.size() * sizeof(void *));
  return error ? error : "";
}
