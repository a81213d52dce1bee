//===- Assemble.cpp - Machine code by ptxas ---------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Codegen/CUDA/Device.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::cuda;

std::optional<std::string> cuda::findAssembler() {
  for (StringRef variable : {"REPRISE_CUDA_PATH", "CUDA_PATH", "CUDA_HOME"})
    if (auto folder = llvm::sys::Process::GetEnv(variable)) {
      SmallString<128> path(*folder);
      llvm::sys::path::append(path, "bin", "ptxas");
      if (llvm::sys::fs::can_execute(path))
        return std::string(path);
    }
  if (auto path = llvm::sys::findProgramByName("ptxas"))
    return *path;
  return std::nullopt;
}

/// The number before `unit` in `line`, as in "24 registers".
static int64_t numberBefore(StringRef line, StringRef unit) {
  size_t at = line.find(unit);
  if (at == StringRef::npos)
    return 0;
  StringRef before = line.take_front(at).rtrim();
  int64_t number = 0;
  before.substr(before.find_last_not_of("0123456789") + 1)
      .getAsInteger(10, number);
  return number;
}

/// Reads what `ptxas -v` says of each kernel:
///   ptxas info    : Compiling entry function 'k' for 'sm_80'
///   ptxas info    : Function properties for k
///       0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
///   ptxas info    : Used 24 registers, used 1 barriers, 16 bytes smem, …
static std::vector<KernelResources> readResources(StringRef log) {
  std::vector<KernelResources> kernels;
  for (StringRef line : llvm::split(log, '\n')) {
    if (line.contains("Compiling entry function")) {
      StringRef name = line.split('\'').second.split('\'').first;
      kernels.emplace_back();
      kernels.back().name = name.str();
    } else if (!kernels.empty() && line.contains("bytes stack frame")) {
      KernelResources &kernel = kernels.back();
      kernel.stackBytes = numberBefore(line, " bytes stack frame");
      kernel.spillStores = numberBefore(line, " bytes spill stores");
      kernel.spillLoads = numberBefore(line, " bytes spill loads");
    } else if (!kernels.empty() && line.contains(" registers")) {
      KernelResources &kernel = kernels.back();
      kernel.registers = numberBefore(line, " registers");
      kernel.barriers = numberBefore(line, " barriers");
      kernel.sharedBytes = numberBefore(line, " bytes smem");
    }
  }
  return kernels;
}

/// Writes a file of its own, whose name `path` becomes.
static std::error_code writeTemporary(StringRef ptx,
                                      SmallVectorImpl<char> &path) {
  int descriptor = -1;
  std::error_code error =
      llvm::sys::fs::createTemporaryFile("reprise", "ptx", descriptor, path);
  if (error)
    return error;
  llvm::raw_fd_ostream os(descriptor, /*shouldClose=*/true);
  os << ptx;
  os.close();
  error = os.error();
  os.clear_error();
  return error;
}

FailureOr<Assembly> cuda::assemble(Location location, StringRef ptx,
                                   StringRef chip) {
  std::optional<std::string> program = findAssembler();
  if (!program)
    return emitError(location,
                     "needs 'ptxas', but it is neither in 'bin' of "
                     "REPRISE_CUDA_PATH, CUDA_PATH or CUDA_HOME nor in PATH");
  if (failed(findChip(location, chip)))
    return failure();

  SmallString<128> input, output, log;
  llvm::scope_exit cleanUp([&] {
    for (StringRef file : {input.str(), output.str(), log.str()})
      if (!file.empty())
        llvm::sys::fs::remove(file);
  });
  std::error_code error = writeTemporary(ptx, input);
  if (!error)
    error = llvm::sys::fs::createTemporaryFile("reprise", "cubin", output);
  if (!error)
    error = llvm::sys::fs::createTemporaryFile("reprise", "log", log);
  if (error)
    return emitError(location, "cannot write '")
           << input << "': " << error.message();

  std::string architecture = ("-arch=" + chip).str();
  StringRef arguments[] = {*program, "-v", architecture, input, "-o", output};
  std::optional<StringRef> redirects[] = {std::nullopt, log.str(), log.str()};
  std::string message;
  int status = llvm::sys::ExecuteAndWait(*program, arguments, std::nullopt,
                                         redirects, 0, 0, &message);
  Assembly assembly;
  if (auto text = llvm::MemoryBuffer::getFile(log))
    assembly.log = (*text)->getBuffer().str();
  if (status != 0)
    return emitError(location, "'")
           << *program << "' does not assemble for " << chip << ": "
           << (message.empty() ? assembly.log : message);
  auto cubin = llvm::MemoryBuffer::getFile(output);
  if (!cubin)
    return emitError(location, "cannot read '")
           << output << "': " << cubin.getError().message();
  assembly.cubin.assign((*cubin)->getBufferStart(), (*cubin)->getBufferEnd());
  assembly.kernels = readResources(assembly.log);
  return assembly;
}
