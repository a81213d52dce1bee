//===- Device.h - From the module of kernels to machine code ----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX is made by LLVM, inside the compiler: no CUDA toolkit is needed. Machine
// code is made by `ptxas`, where there is one. A chip or a version of PTX that
// LLVM would stop the process for is refused before it gets there.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_CODEGEN_CUDA_DEVICE_H
#define REPRISE_CODEGEN_CUDA_DEVICE_H

#include "mlir/IR/BuiltinOps.h"
#include <array>
#include <optional>
#include <string>
#include <vector>

namespace reprise::cuda {

//===----------------------------------------------------------------------===//
// Chips
//===----------------------------------------------------------------------===//

/// A chip that kernels can be compiled for.
struct Chip {
  llvm::StringLiteral name; ///< sm_90a
  int32_t major, minor;     ///< 9, 0
  /// Whether the code runs on this very chip and not on later ones.
  bool archSpecific;
  /// The oldest version of PTX that has the chip and what kernels need, times
  /// 10. The default: the older the version, the older the drivers that take
  /// it.
  unsigned ptxVersion;
};

/// All of them, oldest first.
llvm::ArrayRef<Chip> getChips();

/// The chip called `name`, or null.
const Chip *findChip(llvm::StringRef name);

/// The same, or an error at `location` that names the known ones.
mlir::FailureOr<const Chip *> findChip(mlir::Location location,
                                       llvm::StringRef name);

/// Says at `location` why there is no PTX of `version` (86 is 8.6) for `chip`.
mlir::LogicalResult checkPTXVersion(mlir::Location location, const Chip &chip,
                                    unsigned version);

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// The PTX of `@device` in `module`, which is in the phase `nvvm`.
/// \param ptxVersion  86 for 8.6; 0 for the chip's own.
mlir::FailureOr<std::string>
emitPTX(mlir::ModuleOp module, llvm::StringRef chip, unsigned ptxVersion = 0);

/// The LLVM IR that PTX is made of, optimised, as text.
mlir::FailureOr<std::string> translateDeviceToLLVMIR(mlir::ModuleOp module,
                                                     llvm::StringRef chip,
                                                     unsigned ptxVersion = 0);

//===----------------------------------------------------------------------===//
// Machine code
//===----------------------------------------------------------------------===//

/// What a kernel takes of a multiprocessor, as `ptxas` says.
struct KernelResources {
  std::string name;
  int64_t registers = 0;   ///< of a thread
  int64_t stackBytes = 0;  ///< of a thread
  int64_t spillStores = 0; ///< bytes
  int64_t spillLoads = 0;  ///< bytes
  int64_t sharedBytes = 0; ///< static
  int64_t barriers = 0;
};

struct Assembly {
  std::vector<char> cubin;
  std::vector<KernelResources> kernels; ///< In the order of `ptxas`.
  std::string log;                      ///< Its output, line by line.
};

/// The path of `ptxas`: in `bin` of REPRISE_CUDA_PATH, CUDA_PATH or CUDA_HOME,
/// or found along PATH.
std::optional<std::string> findAssembler();

/// Assembles `ptx` for `chip`; an error at `location` if there is no `ptxas` or
/// it refuses.
mlir::FailureOr<Assembly> assemble(mlir::Location location, llvm::StringRef ptx,
                                   llvm::StringRef chip);

//===----------------------------------------------------------------------===//
// Facts
//===----------------------------------------------------------------------===//

/// How a kernel of `@device` is launched, in the order of the module.
struct KernelFacts {
  std::string name;
  std::array<int64_t, 3> grid, block;
  int64_t sharedBytes; ///< dynamic
  int64_t bytes;       ///< least that a launch reads and writes
};

/// Elements that a block of a kernel for sums over ranks adds up.
constexpr int64_t kRankSumElements = 1024;

/// The kernel that adds up `numTerms` terms of `element`, f32 or bf16. There is
/// one in `@device` for each kind of sum over ranks in the schedule. Its
/// buffers are the terms and the sum, which may be one of them; its id is the
/// number of elements.
std::string getRankSumName(int64_t numTerms, mlir::Type element);

/// The kernel for rows of experts that moves `unitBytes` at a time; with 0 the
/// one that makes offsets. See RepriseCudaRows.
std::string getRankRowsName(int64_t unitBytes);

/// The units that the schedule of `module` needs, 0 among them.
llvm::SmallVector<int64_t> getRankRowsUnits(mlir::ModuleOp module);

/// Of all kernels of `@device`, in the phase `gpu` or `nvvm`.
std::vector<KernelFacts> getKernelFacts(mlir::ModuleOp module);

/// A table of them: how often the schedule of `module`, which is in the phase
/// `nvvm`, launches each, and where there is a `ptxas` its registers on `chip`.
mlir::FailureOr<std::string> describeKernels(mlir::ModuleOp module,
                                             llvm::StringRef chip);

} // namespace reprise::cuda

#endif // REPRISE_CODEGEN_CUDA_DEVICE_H
