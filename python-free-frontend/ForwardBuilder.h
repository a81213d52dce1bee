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

/// Where a parameter is in published weights: block `part` of `parts` equal
/// blocks of columns of the tensor `hub`, or the tensors that have a number in
/// the place of its `*`.
struct Published {
  std::string hub;
  int64_t part = 0, parts = 1;
};

/// A value that is shown by its name.
struct Measure {
  std::string name;
  mlir::Value value;
  std::string termOf; ///< with others the measure of this name; or empty
};

/// Writes a function `@forward` from top to bottom. Inputs and parameters are
/// arguments in the order in which they are asked for; ops get their scope and
/// location from the layer that was set last, and from a module and a name.
class ForwardBuilder {
public:
  /// Begins with the inputs that all models have.
  ForwardBuilder(mlir::ModuleOp module, const Description &description);

  mlir::Value getTokens() const { return tokens; }
  /// The token behind each.
  mlir::Value getTargets() const { return targets; }

  /// The table of angles of rotary positions.
  mlir::Value addRotary(nn::RotaryAttr rotary);

  /// `std`: 0 for a parameter that starts as `init` says. Without `published`,
  /// it is published under its own name. In bf16, a matrix is rounded to what
  /// GEMMs read; a vector, which is added or multiplied, is not, nor is one
  /// that `isExact`.
  mlir::Value addParameter(const llvm::Twine &name,
                           llvm::ArrayRef<int64_t> shape, nn::Init init,
                           double std = 0, const Published &published = {},
                           bool isExact = false);
  /// A vector of zeros that is read, saved and never trained; it may follow a
  /// measure.
  mlir::Value addConstant(const llvm::Twine &name, int64_t size,
                          llvm::StringRef follows = "");

  /// Ops from here on belong to this layer; -1 is none.
  void setLayer(int64_t index) { layer = index; }

  /// Creates `OpTy`, the value `name` of the model in `module`.
  template <typename OpTy, typename... Args>
  OpTy create(llvm::StringRef module, llvm::StringRef name, Args &&...args) {
    auto op = OpTy::create(builder, location, std::forward<Args>(args)...);
    op->setLoc(getLocation(op, module, name));
    op->setAttr(nn::kScopeAttr,
                nn::ScopeAttr::get(builder.getContext(), layer, module, name));
    return op;
  }

  mlir::Value embed(llvm::StringRef name, mlir::Value table);
  /// Of the tokens `depth` behind those of each position, zero where the text
  /// has none.
  mlir::Value embedFurther(const llvm::Twine &name, mlir::Value table,
                           int64_t depth);
  /// `bias` may be null.
  mlir::Value linear(llvm::StringRef module, llvm::StringRef name,
                     mlir::Value input, mlir::Value weight, mlir::Value bias,
                     nn::WeightLayout layout);
  mlir::Value add(llvm::StringRef name, mlir::Value lhs, mlir::Value rhs);
  /// `input`, or that in f32.
  mlir::Value toF32(llvm::StringRef module, llvm::StringRef name,
                    mlir::Value input);
  /// `input` itself if the rate is 0.
  mlir::Value dropout(llvm::StringRef module, llvm::StringRef name,
                      mlir::Value input, double rate, int64_t stream);
  /// Causal attention of the model's heads, in the form that the description
  /// asks for: from q, k and v to `ctx`.
  mlir::Value attention(mlir::Value q, mlir::Value k, mlir::Value v,
                        int64_t stream);
  /// The weight of the head: `table` if the description ties them, otherwise a
  /// parameter of its own.
  mlir::Value addHead(mlir::Value table);
  /// The mean loss `name` of `hidden` as it comes out of the last norm; `end`
  /// follows the names of logits and losses.
  mlir::Value predict(mlir::Value hidden, mlir::Value head, mlir::Value targets,
                      const llvm::Twine &end, llvm::StringRef name);
  /// The same of the tokens that are `depth` behind the targets, of those
  /// positions that have one.
  mlir::Value predictFurther(mlir::Value hidden, mlir::Value head,
                             int64_t depth);
  /// The sum of `loss` and `terms`, called `name`.
  mlir::Value addTerms(mlir::Value loss, llvm::ArrayRef<Measure> terms,
                       llvm::StringRef name);
  /// Completes the function, whose loss this is; `shown` are beside it.
  void finish(mlir::Value loss, llvm::ArrayRef<Measure> shown);

  mlir::MLIRContext *getContext() { return builder.getContext(); }
  mlir::RankedTensorType getType(llvm::ArrayRef<int64_t> shape) {
    return mlir::RankedTensorType::get(shape, builder.getF32Type());
  }
  /// Of the precision that the description asks for.
  mlir::RankedTensorType getActivationType(llvm::ArrayRef<int64_t> shape);
  /// `parameter` as GEMMs read it: cast, unless it is of that type.
  mlir::Value toActivation(mlir::Value parameter);
  mlir::FloatAttr getF32(double value) {
    return builder.getF32FloatAttr(static_cast<float>(value));
  }
  mlir::IntegerAttr getI64(int64_t value) {
    return builder.getI64IntegerAttr(value);
  }

private:
  /// The name of a value, and the key that its size comes from.
  mlir::Location getLocation(mlir::Operation *op, llvm::StringRef module,
                             llvm::StringRef name);
  mlir::Location getSource(mlir::Operation *op, llvm::StringRef module);
  mlir::Value addInput(llvm::StringRef role, llvm::ArrayRef<int64_t> shape);
  mlir::Value addArgument(mlir::Type type, llvm::StringRef name,
                          llvm::StringRef role, mlir::Attribute value);

  mlir::OpBuilder builder;
  mlir::Location location;
  mlir::func::FuncOp function;
  mlir::Block *body;
  llvm::SmallVector<mlir::DictionaryAttr> argumentAttrs;
  const Description &description;
  const Model &model;
  const Train &train;
  mlir::Value tokens, targets, rng;
  int64_t layer = -1;
};

} // namespace reprise::frontend

#endif // REPRISE_FRONTEND_FORWARDBUILDER_H
