//===- StageStep.h - The step of one stage of a pipeline --------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_STAGES_STAGESTEP_H
#define REPRISE_LIB_STAGES_STAGESTEP_H

#include "BorderLanes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/Pipe/PipeOps.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

namespace reprise::stages {

/// What is measured: a number's mean over micro-batches, or a sum of counts.
struct Measured {
  mlir::Type type;
  mlir::DictionaryAttr argument, result;
};

/// The steps of all chunks, by their numbers, and what they have in common.
struct Chunks {
  llvm::SmallVector<mlir::func::FuncOp> steps;
  int64_t microBatches = 1;
  /// Of equal size, whose sums are added up by a tree.
  int64_t groups = 1;
  /// Of the inputs of a micro-batch: "tokens", "targets", "rng".
  llvm::StringMap<mlir::Type> inputs;
  /// Parameters that are trained on the first and on the last chunk.
  llvm::SetVector<llvm::StringRef> tied;
  /// What chunks measure, by its name, in their order. All stages show it.
  llvm::MapVector<mlir::StringAttr, Measured> measures;
  BorderLanes lanes;
};

/// Finds the modules `@chunk0` and so on of the chunks that `schedule` is of.
llvm::FailureOr<Chunks> findChunks(mlir::ModuleOp module,
                                   pipe::ScheduleOp schedule);

/// The list of a stage.
pipe::StageOp findStage(pipe::ScheduleOp schedule, int64_t number);

/// The names of the parameters that are trained on the first and on the last of
/// these chunks, of whatever phase.
llvm::SetVector<llvm::StringRef>
findTied(llvm::ArrayRef<mlir::func::FuncOp> chunks);

/// Makes the module of a stage, whose step is its list.
class StageStep {
public:
  StageStep(const Chunks &chunks, pipe::ScheduleOp schedule,
            pipe::StageOp stage);

  /// Inserts it.
  llvm::FailureOr<mlir::ModuleOp> build(mlir::OpBuilder &builder);

private:
  /// A micro-batch on a chunk.
  struct Pass {
    mlir::IRMapping values;
    llvm::SmallVector<mlir::Value> inputs, gradients; ///< of borders, received
    llvm::SmallVector<mlir::Value> passedOn, passedBack; ///< and to be sent
    llvm::DenseSet<mlir::Operation *> below; ///< that were made of it
  };

  void addArguments();
  mlir::Value addArgument(mlir::Type type, mlir::DictionaryAttr attributes);
  void addParameters(mlir::func::FuncOp chunk);
  llvm::LogicalResult addEntry(mlir::Operation &entry);
  Pass &getPass(int64_t chunk, int64_t microBatch);
  llvm::LogicalResult goForward(pipe::ForwardOp task);
  llvm::LogicalResult goBackward(pipe::BackwardOp task);
  void addGradients(int64_t chunk, int64_t microBatch);
  void mapSums(mlir::func::FuncOp chunk, Pass &pass);
  void takeSums(mlir::func::FuncOp chunk, Pass &pass, int64_t microBatch,
                llvm::function_ref<bool(mlir::Operation *)> isMade);
  llvm::LogicalResult send(pipe::SendOp transfer);
  llvm::LogicalResult receive(pipe::ReceiveOp transfer);
  void findOwnMeasures(mlir::func::FuncOp chunk);
  void addPartials();
  void takeShown(mlir::func::FuncOp chunk, unsigned index, mlir::Value value,
                 int64_t microBatch);
  mlir::Value pushSum(llvm::StringRef name, mlir::Value sum,
                      int64_t microBatch);
  mlir::Value addWaiting(llvm::StringRef name, mlir::Value sum);
  void finish();
  bool isHome(llvm::StringRef parameter);
  bool hasLoss();
  mlir::DictionaryAttr getOwnRole(mlir::DictionaryAttr role,
                                  nn::ParameterAttr parameter);

  const Chunks &chunks;
  pipe::ScheduleOp schedule;
  pipe::StageOp stage;
  bool splits; ///< whether gradients of weights are tasks of their own
  mlir::OpBuilder builder;
  mlir::func::FuncOp step;
  mlir::Block *block = nullptr;
  llvm::SmallVector<mlir::DictionaryAttr> attributes; ///< of arguments
  /// Arguments by their attributes, but for inputs of micro-batches.
  llvm::DenseMap<mlir::Attribute, mlir::Value> arguments;
  llvm::StringMap<llvm::SmallVector<mlir::Value>> inputs; ///< by micro-batch
  /// Sums of gradients so far, by parameter.
  llvm::MapVector<mlir::StringAttr, mlir::Value> sums;
  mlir::Value loss;
  /// What is measured so far; of other stages nothing is added.
  llvm::MapVector<mlir::StringAttr, mlir::Value> measures;
  llvm::DenseSet<mlir::StringAttr> ownMeasures; ///< that the stage adds to
  /// The micro-batch that goes forward next on each chunk that measures.
  llvm::DenseMap<int64_t, int64_t> nextMeasured;
  /// Sums of groups that wait for others, by what they are sums of and their
  /// levels: what a level has, and was given first.
  llvm::MapVector<mlir::StringAttr, llvm::SmallVector<mlir::Value>> partials;
  std::map<std::pair<int64_t, int64_t>, Pass> passes;
};

} // namespace reprise::stages

#endif // REPRISE_LIB_STAGES_STAGESTEP_H
