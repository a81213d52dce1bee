//===- Frozen.cpp - Parameters that are not trained -------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/Families.h"

#include "llvm/Support/GlobPattern.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::frontend;

/// Says it at the pattern, or of the option.
static LogicalResult refuse(MLIRContext *context,
                            const SourcePosition &position,
                            const Twine &message) {
  if (position.file.empty()) {
    llvm::WithColor::error() << "option --frozen: " << message << "\n";
    return failure();
  }
  auto location = FileLineColLoc::get(context, position.file, position.line,
                                      position.column);
  return emitError(location, "'frozen' " + message);
}

/// "; the nearest is 'h.0.w'": the name that a part of is `pattern`, which has
/// more than two letters, or that is like it but for a third of its letters;
/// else one of the names.
static std::string suggestParameter(StringRef pattern, func::FuncOp function) {
  StringRef nearest, first;
  unsigned least = UINT_MAX;
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (auto parameter = function.getArgAttrOfType<nn::ParameterAttr>(
            i, nn::kParameterAttr)) {
      StringRef name = parameter.getName();
      first = first.empty() ? name : first;
      unsigned distance = pattern.edit_distance(name);
      bool isPart = pattern.size() > 2 && name.contains(pattern);
      bool isNear = isPart || 3 * distance <= pattern.size();
      if (isNear && distance < least) {
        least = distance;
        nearest = name;
      }
    }
  return (nearest.empty() ? "; one is '" + first + "'"
                          : "; the nearest is '" + nearest + "'")
      .str();
}

static nn::ParameterAttr freeze(nn::ParameterAttr parameter) {
  return nn::ParameterAttr::get(
      parameter.getContext(), parameter.getName(), parameter.getInit(),
      parameter.getStd(), parameter.getDecay(), /*frozen=*/true,
      parameter.getHub(), parameter.getPart(), parameter.getParts());
}

LogicalResult
reprise::frontend::freezeParameters(func::FuncOp function,
                                    const Description &description) {
  if (!description.train.frozen)
    return success();
  MLIRContext *context = function.getContext();
  for (auto [pattern, position] : llvm::zip_equal(
           *description.train.frozen, description.frozenPositions)) {
    // The checks let no pattern through that is none.
    llvm::GlobPattern glob = llvm::cantFail(llvm::GlobPattern::create(pattern));
    bool isUsed = false;
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      auto parameter =
          function.getArgAttrOfType<nn::ParameterAttr>(i, nn::kParameterAttr);
      if (!parameter || (!glob.match(parameter.getName()) &&
                         !glob.match(parameter.getHubName())))
        continue;
      isUsed = true;
      function.setArgAttr(i, nn::kParameterAttr, freeze(parameter));
      function.removeArgAttr(i, nn::kFollowsAttr);
    }
    if (!isUsed)
      return refuse(context, position,
                    "has '" + pattern + "', which no parameter is called" +
                        suggestParameter(pattern, function));
  }

  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    auto parameter =
        function.getArgAttrOfType<nn::ParameterAttr>(i, nn::kParameterAttr);
    if (parameter && !parameter.getFrozen())
      return success();
  }
  if (description.frozenPositions.empty())
    return success();
  return refuse(context, description.frozenPositions.front(),
                "needs to leave a parameter to train, but takes all of them");
}
