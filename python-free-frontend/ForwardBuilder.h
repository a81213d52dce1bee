//===- ForwardBuilder.h - What builders of models share ---------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_FRONTEND_FORWARDBUILDER_H
#define REPRISE_FRONTEND_FORWARDBUILDER_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "python-free-frontend/Description.h"
#include "reprise/Dialect/NN/NNOps.h"

namespace reprise::frontend {

/// Writes a function `@forward` from top to bottom. Inputs and parameters are
/// arguments in the order in which they are asked for; ops get their scope and
/// location from the layer that was set last, and from a module and a name.
class ForwardBuilder {
public:
  ForwardBuilder(mlir::ModuleOp module, const Description &description);

  mlir::Value addInput(llvm::StringRef role, llvm::ArrayRef<int64_t> shape);

  /// `std`: 0 for a parameter that starts as `init` says.
  mlir::Value addParameter(const llvm::Twine &name,
                           llvm::ArrayRef<int64_t> shape, nn::Init init,
                           double std = 0);

  /// Ops from here on belong to this layer; -1 is none.
  void setLayer(int64_t index) { layer = index; }

  /// Creates `OpTy`, the value `name` of the model in `module`.
  template <typename OpTy, typename... Args>
  OpTy create(llvm::StringRef module, llvm::StringRef name, Args &&...args) {
    auto op =
        OpTy::create(builder, getLocation(name), std::forward<Args>(args)...);
    op->setAttr(nn::kScopeAttr,
                nn::ScopeAttr::get(builder.getContext(), layer, module, name));
    return op;
  }

  /// Returns `loss` and completes the function.
  void finish(mlir::Value loss);

  mlir::RankedTensorType getType(llvm::ArrayRef<int64_t> shape) {
    return mlir::RankedTensorType::get(shape, builder.getF32Type());
  }
  mlir::FloatAttr getF32(double value) {
    return builder.getF32FloatAttr(static_cast<float>(value));
  }
  mlir::IntegerAttr getI64(int64_t value) {
    return builder.getI64IntegerAttr(value);
  }

private:
  mlir::Location getLocation(const llvm::Twine &name);
  mlir::Value addArgument(mlir::Type type, llvm::StringRef name,
                          llvm::StringRef role, mlir::Attribute value);

  mlir::OpBuilder builder;
  mlir::Location location;
  mlir::func::FuncOp function;
  mlir::Block *body;
  llvm::SmallVector<mlir::DictionaryAttr> argumentAttrs;
  int64_t layer = -1;
};

} // namespace reprise::frontend

#endif // REPRISE_FRONTEND_FORWARDBUILDER_H
