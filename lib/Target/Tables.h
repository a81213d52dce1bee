//===- Tables.h - What a model's tables say ---------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_TARGET_TABLES_H
#define REPRISE_LIB_TARGET_TABLES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "reprise/ABI/Model.h"
#include "reprise/Codegen/CPU/MicroKernels.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Target/Executable.h"
#include "llvm/ADT/MapVector.h"

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm

namespace reprise::target {

/// What the tables say, before it is constant data. The members follow
/// `RepriseModel`.
struct Tables {
  struct Launch {
    int32_t kind, callee;
    llvm::SmallVector<rt::BufferOp> buffers;
    llvm::SmallVector<int64_t> ids;
    int64_t tasks, flops;
    std::string name;
  };
  /// A tile of GEMMs.
  struct MicroKernel {
    const codegen::MicroKernel *tile;
    std::string function;
  };
  struct Schedule {
    llvm::StringRef name;
    llvm::SmallVector<Launch> launches;
  };
  llvm::SmallVector<Schedule> schedules;
  llvm::SmallVector<RepriseEntry> program;
  int32_t evaluate = -1, sample = -1; ///< indices into `schedules`
  llvm::MapVector<llvm::StringRef, int64_t> kernels; ///< name to index
  /// Of kernels that have one, the version for x86-64-v4.
  llvm::DenseMap<llvm::StringRef, llvm::StringRef> avx512Kernels;
  /// The one for AVX512_BF16.
  llvm::DenseMap<llvm::StringRef, llvm::StringRef> avx512BF16Kernels;
  /// And the one for AMX.
  llvm::DenseMap<llvm::StringRef, llvm::StringRef> amxKernels;
  llvm::SmallVector<RepriseGemm> gemms;
  llvm::SmallVector<RepriseCollective> collectives;
  nn::MeshAttr mesh; ///< null for one rank
  llvm::SmallVector<MicroKernel> microKernels;
  llvm::SmallVector<rt::BufferOp> states, rotaries;
  llvm::StringMap<rt::BufferOp> roles;
  double modelFlops = 0, replayFlops = 0; ///< of one step and rank
  int64_t microBatchesPerRank = 1, reductionGroups = 1;
  /// Of a stage of a pipeline: its number, and the inputs of each micro-batch.
  std::optional<int64_t> stage;
  struct Inputs {
    rt::BufferOp tokens, targets, rng;
  };
  llvm::SmallVector<Inputs> inputs;
  bool isLibrary = false; ///< whether GEMMs are a library's
  bool isDevice = false;  ///< whether kernels are those of `@device`

  /// Whether the schedules have the inputs and outputs that the runtime writes
  /// and reads, of one batch.
  llvm::LogicalResult checkRoles(mlir::ModuleOp module,
                                 int64_t vocabSize) const;
};

/// Reads the schedules of a module whose kernels are LLVM's: functions of the
/// CPU, or those of `@device`.
llvm::FailureOr<Tables> readTables(mlir::ModuleOp module);

/// The index of an axis that the mesh has; -1 for another.
int64_t getAxis(nn::MeshAttr mesh, llvm::StringRef name);

/// The shape of the state in `buffer`, or of what that is a share of.
llvm::ArrayRef<int64_t> getStateShape(rt::BufferOp buffer);

/// What the function `name` of the code is called among object files: as no
/// function of a library is, nor one of another stage.
std::string getCodeSymbol(llvm::StringRef name, std::optional<int64_t> stage);

/// The stage of a pipeline that a module is of, if it is that.
std::optional<int64_t> getStage(mlir::ModuleOp module);

/// For code symbols without code of their own, those with the same.
using Aliases = llvm::StringMap<std::string>;

/// Takes functions out of the modules of stages that an earlier stage has, too.
Aliases takeEqualCode(llvm::ArrayRef<CompiledModel> models);

/// Writes the tables of models as constant data of a module, where functions of
/// the code are declared, and `main`, which hands them to the runtime. Null,
/// with a diagnostic, if something is missing in a model.
std::unique_ptr<llvm::Module> writeTables(llvm::ArrayRef<CompiledModel> models,
                                          llvm::ArrayRef<Tables> tables,
                                          const Aliases &aliases,
                                          llvm::LLVMContext &context);

} // namespace reprise::target

#endif // REPRISE_LIB_TARGET_TABLES_H
