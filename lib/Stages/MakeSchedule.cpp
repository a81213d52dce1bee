//===- MakeSchedule.cpp - Write the table of a schedule -------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StageStep.h"
#include "Table.h"
#include "mlir/IR/BuiltinOps.h"
#include "reprise/Interfaces/CostModel.h"
#include "reprise/Solver/BorderBytes.h"
#include "reprise/Stages/Passes.h"
#include "reprise/Support/Borders.h"
#include "llvm/Support/MathExtras.h"

namespace reprise::stages {
#define GEN_PASS_DEF_MAKESCHEDULE
#include "reprise/Stages/Passes.h.inc"
} // namespace reprise::stages

using namespace mlir;
using namespace reprise;

namespace {
struct MakeSchedule : public stages::impl::MakeScheduleBase<MakeSchedule> {
  using MakeScheduleBase::MakeScheduleBase;

  void runOnOperation() override {
    if (failed(make()))
      signalPassFailure();
  }

  LogicalResult make();
  LogicalResult readModule();
  LogicalResult readBorders(ArrayRef<func::FuncOp> chunks);

  std::optional<solver::BorderBytes> borders; ///< of chunks that are there
};
} // namespace

/// The bytes of what each chunk passes on, and of the gradients of these. If
/// none has one, as where nothing in front is trained, no transfer is made of
/// those that a table lists.
LogicalResult MakeSchedule::readBorders(ArrayRef<func::FuncOp> chunks) {
  borders.emplace();
  for (auto [front, behind] :
       llvm::zip(chunks.drop_back(), chunks.drop_front())) {
    int64_t all = 0, trained = 0;
    for (Type type : stages::getOutputTypes(front, kBorder))
      all += getTypeBytes(type);
    if (all == 0)
      return front->emitOpError("needs to return what crosses the border to "
                                "the next chunk, but returns nothing");
    func::FuncOp reader = behind;
    for (BlockArgument argument : reader.getArguments())
      if (unsigned index = argument.getArgNumber();
          stages::getInput(reader, index) == kBorder &&
          !reader.getArgAttr(index, kUntrainedAttr))
        trained += getTypeBytes(argument.getType());
    borders->activations.push_back(all);
    borders->gradients.push_back(trained > 0 ? trained : all);
  }
  return success();
}

/// Takes from the chunks of a pipeline, if the module has any, what a schedule
/// is made for.
LogicalResult MakeSchedule::readModule() {
  ModuleOp module = getOperation();
  auto layers = module->getAttrOfType<DenseI64ArrayAttr>(nn::kChunkLayersAttr);
  if (!layers)
    return success();
  SmallVector<func::FuncOp> chunks;
  for (size_t number = 0; number < size_t(layers.size()); ++number) {
    std::string name = "chunk" + std::to_string(number);
    auto chunk = module.lookupSymbol<ModuleOp>(name);
    auto forward = chunk
                       ? chunk.lookupSymbol<func::FuncOp>(nn::kForwardFunction)
                       : func::FuncOp();
    if (!forward)
      return module.emitError("needs a module @")
             << name << " with a function @forward, for the "
             << int64_t(layers.size()) << " chunks of '" << nn::kChunkLayersAttr
             << "'";
    chunks.push_back(forward);
  }
  stages = nn::getAxisSize(module, nn::kPipeAxis);
  if (chunks.size() % stages != 0)
    return module.emitError("needs as many chunks on each of ")
           << int64_t(stages) << " stages, but got " << chunks.size() << " of '"
           << nn::kChunkLayersAttr << "'";
  if (failed(readBorders(chunks)))
    return failure();
  virtualStages = chunks.size() / stages;
  if (auto count = chunks[0]->getAttrOfType<IntegerAttr>(nn::kMicroBatchesAttr))
    microBatches = count.getInt();
  if (auto name = module->getAttrOfType<StringAttr>(nn::kScheduleAttr))
    schedule = name.str();
  if (auto size = module->getAttrOfType<IntegerAttr>(nn::kMicroBatchGroupAttr))
    microBatchGroup = size.getInt();
  int64_t bytes = 0;
  llvm::SetVector<StringRef> tied = stages::findTied(chunks);
  for (unsigned index = 0; index < chunks[0].getNumArguments(); ++index)
    if (auto parameter = chunks[0].getArgAttrOfType<nn::ParameterAttr>(
            index, nn::kParameterAttr);
        parameter && tied.contains(parameter.getName()))
      bytes += getTypeBytes(chunks[0].getArgumentTypes()[index]);
  tiedBytes = bytes;
  return success();
}

LogicalResult MakeSchedule::make() {
  ModuleOp module = getOperation();
  if (failed(readModule()))
    return failure();
  auto others = module.getOps<pipe::ScheduleOp>();
  if (!others.empty())
    return (*others.begin())
        .emitOpError("needs to be the only schedule, but another is to be "
                     "made beside it");
  const solver::NamedSchedule *named = solver::findSchedule(schedule);
  if (!named) {
    InFlightDiagnostic error = module.emitError("needs one of ");
    llvm::interleaveComma(solver::getSchedules(), error,
                          [&](const solver::NamedSchedule &known) {
                            error << "'" << known.name << "'";
                          });
    return error << " for 'schedule', but got '" << schedule << "'";
  }
  solver::PipelineShape shape = {stages, virtualStages, microBatches,
                                 microBatchGroup};
  if (std::optional<std::string> fault = solver::check(*named, shape))
    return module.emitError() << *fault;
  constexpr uint64_t kMostTasks = 1 << 20;
  uint64_t tasks = llvm::SaturatingMultiply<uint64_t>(
      llvm::SaturatingMultiply<uint64_t>(stages, virtualStages), microBatches);
  if (tasks > kMostTasks)
    return module.emitError("needs at most ")
           << kMostTasks << " micro-batches through chunks, but got "
           << int64_t(microBatches) << " through " << int64_t(virtualStages)
           << " on each of " << int64_t(stages) << " stages";
  if (borderBytes < 1 || tiedBytes < 0)
    return module.emitError("needs at least 1 byte that crosses a border, and "
                            "0 of a table on both ends, but got ")
           << int64_t(borderBytes) << " and " << int64_t(tiedBytes);
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  solver::ScheduleTable table =
      solver::makeTable(*named, shape, {borderBytes, tiedBytes});
  if (borders)
    solver::setBorderBytes(table, *borders);
  stages::writeTable(builder, module.getLoc(), table);
  return success();
}
