//===- Output.cpp - Programs and objects as files ---------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Output.h"
#include "Files.h"
#include "reprise/Codegen/CUDA/Device.h"
#include "reprise/Target/DeviceImage.h"
#include "reprise/Target/Executable.h"
#include "llvm/BinaryFormat/Magic.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <deque>

using namespace mlir;
using namespace reprise;
using namespace reprise::driver;

void driver::printMessage(const llvm::SMDiagnostic &message, void *) {
  constexpr size_t kMost = 240, kShown = 100;
  llvm::StringRef line = message.getLineContents();
  size_t column = std::max(message.getColumnNo(), 0);
  if (line.size() <= kMost || column >= line.size())
    return message.print(nullptr, llvm::errs());
  size_t begin = column - std::min(column, kShown / 2);
  std::string part = line.substr(begin, kShown).str();
  llvm::StringRef before = begin > 0 ? "... " : "";
  if (begin + kShown < line.size())
    part += " ...";
  llvm::errs() << message.getFilename() << ":" << message.getLineNo() << ":"
               << column + 1 << ": ";
  llvm::SMDiagnostic(*message.getSourceMgr(), message.getLoc(),
                     message.getFilename(), message.getLineNo(),
                     int(column - begin + before.size()), message.getKind(),
                     message.getMessage(), (before + part).str(), {})
      .print(nullptr, llvm::errs(), /*ShowColors=*/true,
             /*ShowKindLabel=*/true, /*ShowLocation=*/false);
}

static std::string findRuntime(const Options &options) {
  if (!options.runtime.empty())
    return options.runtime;
  llvm::SmallString<128> beside(llvm::sys::fs::getMainExecutable(
      options.path.c_str(), reinterpret_cast<void *>(&findRuntime)));
  llvm::sys::path::remove_filename(beside);
  llvm::sys::path::append(beside, REPRISE_LIBRARIES_BESIDE,
                          "libreprise_runtime.a");
  return beside.str().str();
}

static LogicalResult checkRuntime(llvm::StringRef path) {
  std::string reason;
  llvm::file_magic magic;
  if (!llvm::sys::fs::exists(path))
    reason = "there is no '" + path.str() + "'";
  else if (llvm::identify_magic(path, magic) ||
           magic != llvm::file_magic::archive)
    reason = "'" + path.str() + "' is none";
  if (reason.empty())
    return success();
  return failure(fail("option --runtime: needs the archive that programs are "
                      "linked with, but " +
                      reason));
}

LogicalResult driver::checkOutput(Options &options, bool isProgram) {
  if (isProgram && failed(checkRuntime(findRuntime(options))))
    return failure();
  if (options.output == "-")
    return failure(fail("option -o: needs a file for a program, but got '-'"));
  llvm::sys::fs::file_status status;
  if (llvm::sys::fs::status(options.output, status))
    return success(); // What is not there is not lost.
  if (!llvm::sys::fs::is_regular_file(status))
    return failure(fail("option -o: needs a plain file, but '" +
                        options.output + "' is a folder or a device"));
  llvm::SmallString<128> real;
  if (!llvm::sys::fs::real_path(options.output, real))
    options.output = real.str().str();
  return success();
}

int driver::writeDeviceCode(ModuleOp module, const Options &options,
                            const Goal &goal, llvm::StringRef chip) {
  FailureOr<std::string> ptx = cuda::emitPTX(module, chip);
  if (failed(ptx))
    return 1;
  if (goal.kind == Goal::PTX)
    return failed(writeFile(options.output, *ptx));
  FailureOr<cuda::Assembly> assembly =
      cuda::assemble(module.getLoc(), *ptx, chip);
  if (failed(assembly))
    return 1;
  llvm::StringRef cubin(assembly->cubin.data(), assembly->cubin.size());
  return failed(writeFile(options.output, cubin));
}

int driver::writeKernels(ModuleOp module, const Options &options,
                         llvm::ArrayRef<std::string> chips) {
  std::string text;
  for (const std::string &chip : chips) {
    FailureOr<std::string> table = cuda::describeKernels(module, chip);
    if (failed(table))
      return 1;
    text += (text.empty() ? "" : "\n") + *table;
  }
  return failed(writeFile(options.output, text));
}

/// The modules that are a model each: those of stages, or the whole.
static llvm::SmallVector<ModuleOp> getModels(ModuleOp module) {
  if (module && isPipeline(module))
    return llvm::to_vector(module.getOps<ModuleOp>());
  return module ? llvm::SmallVector<ModuleOp>{module}
                : llvm::SmallVector<ModuleOp>();
}

int driver::writeProgram(ModuleOp cpu, ModuleOp cuda, const Options &options,
                         llvm::ArrayRef<std::string> chips) {
  llvm::SmallVector<target::CompiledModel> models;
  for (ModuleOp module : getModels(cpu))
    models.push_back({module});
  std::deque<target::DeviceImage> images;
  for (ModuleOp module : getModels(cuda)) {
    FailureOr<target::DeviceImage> image = target::buildImage(module, chips);
    if (failed(image))
      return 1;
    images.push_back(std::move(*image));
    models.push_back({module, &images.back()});
  }
  FailureOr<std::vector<target::ObjectFile>> objects =
      target::compileModels(models, target::resolveCPU(options.cpu));
  if (failed(objects))
    return 1;
  if (options.emit == "obj")
    return failed(target::linkObject(*objects, options.output));
  return failed(
      target::linkExecutable(*objects, findRuntime(options), options.output));
}
