//===- Tables.cpp - What a model's tables say -------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tables.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::target;

std::string target::getCodeSymbol(StringRef name,
                                  std::optional<int64_t> stage) {
  if (!stage)
    return ("kernel." + name).str();
  return ("kernel." + Twine(*stage) + "." + name).str();
}

std::optional<int64_t> target::getStage(ModuleOp module) {
  auto number = module->getAttrOfType<IntegerAttr>(nn::kStageAttr);
  return number ? std::optional(number.getInt()) : std::nullopt;
}

int64_t target::getAxis(nn::MeshAttr mesh, StringRef name) {
  if (!mesh)
    return -1;
  const auto *axis = llvm::find_if(
      mesh.getNames(), [&](StringAttr other) { return other == name; });
  return axis == mesh.getNames().end() ? -1 : axis - mesh.getNames().begin();
}

ArrayRef<int64_t> target::getStateShape(rt::BufferOp buffer) {
  auto state = buffer->getAttrOfType<rt::StateAttr>(rt::kStateAttr);
  if (state && state.getShareOf())
    return state.getShareOf();
  return buffer.getType().getShape();
}

/// The first stage has the input, the last one what comes out.
static bool isFirstStage(const Tables &tables) {
  return tables.stage.value_or(0) == 0;
}
static bool isLastStage(const Tables &tables) {
  return !tables.stage ||
         *tables.stage + 1 == tables.mesh.getSize(nn::kPipeAxis);
}

/// `@sample` reads one text, as long as those of the step.
static LogicalResult checkSample(const Tables &tables, int64_t vocabSize) {
  int64_t length = tables.roles.lookup("tokens").getType().getDimSize(1);
  rt::BufferOp tokens = tables.roles.lookup("sample_tokens");
  rt::BufferOp logits = tables.roles.lookup("logits");
  if (isFirstStage(tables) &&
      tokens.getType().getShape() != ArrayRef<int64_t>({1, length}))
    return tokens.emitOpError("needs one row of ")
           << length << " ids, as long as those of 'tokens', but got "
           << tokens.getType();
  if (!isLastStage(tables))
    return success();
  ArrayRef<int64_t> shape = logits.getType().getShape();
  if (shape.size() != 2 || shape[0] != 1 || shape[1] < vocabSize)
    return logits.emitOpError("needs one row of ")
           << vocabSize << " logits, but got " << logits.getType();
  return success();
}

LogicalResult Tables::checkRoles(ModuleOp module, int64_t vocabSize) const {
  auto check = [&](ArrayRef<StringRef> needed,
                   StringRef function) -> LogicalResult {
    for (StringRef role : needed)
      if (!roles.count(role))
        return module.emitError("needs a buffer with the role '")
               << role << "' in @" << function;
    return success();
  };
  if (failed(check({"tokens", "targets", "lr", "bias_correction1",
                    "bias_correction2", "loss", "grad_norm"},
                   nn::kStepFunction)))
    return failure();
  rt::BufferOp tokens = roles.lookup("tokens");
  rt::BufferOp targets = roles.lookup("targets");
  if (targets.getType() != tokens.getType())
    return targets.emitOpError("needs 'targets' of the type of 'tokens', ")
           << tokens.getType() << ", but got " << targets.getType();
  if (evaluate >= 0 && isLastStage(*this) &&
      failed(check({"eval_loss"}, nn::kEvaluateFunction)))
    return failure();
  if (sample < 0)
    return success();
  SmallVector<StringRef> needed;
  if (isFirstStage(*this))
    needed.push_back("sample_tokens");
  if (isLastStage(*this))
    needed.append({"position", "logits"});
  return failure(failed(check(needed, nn::kSampleFunction)) ||
                 failed(checkSample(*this, vocabSize)));
}
