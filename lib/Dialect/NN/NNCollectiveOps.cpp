//===- NNCollectiveOps.cpp - Ranks and what they do together ----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Verify.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;

//===----------------------------------------------------------------------===//
// #nn.mesh
//===----------------------------------------------------------------------===//

Attribute MeshAttr::parse(AsmParser &parser, Type) {
  SmallVector<StringAttr> names;
  SmallVector<int64_t> sizes;
  auto parseAxis = [&]() -> ParseResult {
    std::string name;
    if (parser.parseKeywordOrString(&name) || parser.parseEqual() ||
        parser.parseInteger(sizes.emplace_back()))
      return failure();
    names.push_back(StringAttr::get(parser.getContext(), name));
    return success();
  };
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater,
                                     parseAxis))
    return {};
  return MeshAttr::getChecked([&]() { return parser.emitError(loc); },
                              parser.getContext(), ArrayRef(names),
                              ArrayRef(sizes));
}

void MeshAttr::print(AsmPrinter &printer) const {
  printer << "<";
  llvm::interleaveComma(llvm::zip_equal(getNames(), getSizes()),
                        printer.getStream(), [&](auto axis) {
                          printer.printKeywordOrString(std::get<0>(axis));
                          printer << " = " << std::get<1>(axis);
                        });
  printer << ">";
}

LogicalResult MeshAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               ArrayRef<StringAttr> names,
                               ArrayRef<int64_t> sizes) {
  constexpr int64_t kMostRanks = 1 << 20;
  if (names.empty())
    return emitError() << "needs an axis, but got none";
  int64_t ranks = 1;
  for (auto [index, name, size] : llvm::enumerate(names, sizes)) {
    if (!llvm::is_contained(kAxes, name.getValue()))
      return emitError() << "needs axes of "
                         << llvm::join(ArrayRef(kAxes), ", ") << ", but got "
                         << name;
    if (llvm::is_contained(names.take_front(index), name))
      return emitError() << "needs each axis once, but got " << name
                         << " again";
    if (size < 1 || size > kMostRanks / ranks)
      return emitError() << "needs 1 to " << kMostRanks
                         << " ranks in all, but got " << size << " along "
                         << name;
    ranks *= size;
  }
  return success();
}

int64_t MeshAttr::getSize(StringRef axis) const {
  for (auto [name, size] : llvm::zip_equal(getNames(), getSizes()))
    if (name == axis)
      return size;
  return 1;
}

int64_t MeshAttr::getNumRanks() const {
  int64_t ranks = 1;
  for (int64_t size : getSizes())
    ranks *= size;
  return ranks;
}

int64_t nn::getAxisSize(Operation *module, StringRef axis) {
  auto mesh = module->getAttrOfType<MeshAttr>(kMeshAttr);
  return mesh ? mesh.getSize(axis) : 1;
}

//===----------------------------------------------------------------------===//
// nn.all_reduce
//===----------------------------------------------------------------------===//

LogicalResult AllReduceOp::inferReturnTypes(MLIRContext *,
                                            std::optional<Location>,
                                            ValueRange operands, DictionaryAttr,
                                            OpaqueProperties, RegionRange,
                                            SmallVectorImpl<Type> &types) {
  llvm::append_range(types, operands.getTypes());
  return success();
}

LogicalResult nn::verifyAxis(Operation *op, StringAttr axis) {
  auto module = op->getParentOfType<ModuleOp>();
  auto mesh = module ? module->getAttrOfType<MeshAttr>(kMeshAttr) : MeshAttr();
  if (mesh && !llvm::is_contained(mesh.getNames(), axis))
    return op->emitOpError("needs an axis of ") << mesh << ", but got " << axis;
  return success();
}

//===----------------------------------------------------------------------===//
// Shares
//===----------------------------------------------------------------------===//

LogicalResult ReduceSharesOp::inferReturnTypes(
    MLIRContext *, std::optional<Location>, ValueRange operands, DictionaryAttr,
    OpaqueProperties, RegionRange, SmallVectorImpl<Type> &types) {
  llvm::append_range(types, operands.getTypes());
  return success();
}

LogicalResult ReduceSharesOp::verify() {
  if (getValues().empty()) // C1
    return emitOpError("needs a value to sum, but got none");
  return verifyAxis(*this, getAxisAttr()); // C2
}

static int64_t countAll(TypeRange types) {
  int64_t elements = 0;
  for (Type type : types)
    elements += cast<ShapedType>(type).getNumElements();
  return elements;
}

/// At most one addition for each element.
int64_t ReduceSharesOp::getFlops() { return countAll(getValues().getTypes()); }

LogicalResult SharesNormOp::verify() {
  if (getGradients().empty()) // C1
    return emitOpError("needs a gradient, but got none");
  return verifyAxis(*this, getAxisAttr()); // C2
}

/// As of the norm of whole gradients.
int64_t SharesNormOp::getFlops() {
  return 2 * countAll(getGradients().getTypes()) + 1;
}

//===----------------------------------------------------------------------===//
// nn.all_reduce
//===----------------------------------------------------------------------===//

LogicalResult AllReduceOp::verify() {
  if (getValues().empty()) // C1
    return emitOpError("needs a value to sum, but got none");
  return verifyAxis(*this, getAxisAttr());
}

/// At most one addition for each element and rank.
int64_t AllReduceOp::getFlops() {
  int64_t elements = 0;
  for (Type type : getValues().getTypes())
    elements += cast<ShapedType>(type).getNumElements();
  return elements;
}
