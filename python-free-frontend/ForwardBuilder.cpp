//===- ForwardBuilder.cpp - What builders of models share -------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/ForwardBuilder.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::frontend;

ForwardBuilder::ForwardBuilder(ModuleOp module, const Description &description)
    : builder(OpBuilder::atBlockEnd(module.getBody())),
      location(module.getLoc()),
      function(func::FuncOp::create(builder, location, nn::kForwardFunction,
                                    builder.getFunctionType({}, {}))),
      body(function.addEntryBlock()) {
  function->setAttr(
      nn::kMicroBatchesAttr,
      builder.getI64IntegerAttr(description.train.getNumMicroBatches()));
  builder.setInsertionPointToEnd(body);
}

Location ForwardBuilder::getLocation(const Twine &name) {
  std::string full =
      ((layer < 0 ? Twine() : "layer" + Twine(layer) + ".") + name).str();
  return NameLoc::get(builder.getStringAttr(full), location);
}

Value ForwardBuilder::addArgument(Type type, StringRef name, StringRef role,
                                  Attribute value) {
  argumentAttrs.push_back(
      builder.getDictionaryAttr(builder.getNamedAttr(role, value)));
  return body->addArgument(type,
                           NameLoc::get(builder.getStringAttr(name), location));
}

Value ForwardBuilder::addInput(StringRef role, ArrayRef<int64_t> shape) {
  return addArgument(RankedTensorType::get(shape, builder.getI32Type()), role,
                     nn::kInputAttr, builder.getStringAttr(role));
}

Value ForwardBuilder::addParameter(const Twine &name, ArrayRef<int64_t> shape,
                                   nn::Init init, double std) {
  std::string text = name.str();
  auto parameter = nn::ParameterAttr::get(
      builder.getContext(), text, init,
      init == nn::Init::Normal ? getF32(std) : FloatAttr(),
      /*decay=*/shape.size() >= 2, /*frozen=*/false, /*hub=*/"", /*part=*/0,
      /*parts=*/1);
  return addArgument(getType(shape), text, nn::kParameterAttr, parameter);
}

void ForwardBuilder::finish(Value loss) {
  func::ReturnOp::create(builder, location, loss);
  function.setType(
      builder.getFunctionType(body->getArgumentTypes(), loss.getType()));
  function.setAllArgAttrs(argumentAttrs);
}
