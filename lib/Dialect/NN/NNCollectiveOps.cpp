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
#include "reprise/Dialect/NN/Axes.h"
#include "reprise/Dialect/NN/GroupSums.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Support/Runs.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;

//===----------------------------------------------------------------------===//
// #nn.mesh
//===----------------------------------------------------------------------===//

Attribute MeshAttr::parse(AsmParser &parser, Type) {
  SmallVector<StringAttr> names;
  SmallVector<int64_t> sizes, steps;
  auto parseAxis = [&]() -> ParseResult {
    std::string name;
    if (parser.parseKeywordOrString(&name) || parser.parseEqual() ||
        parser.parseInteger(sizes.emplace_back()))
      return failure();
    names.push_back(StringAttr::get(parser.getContext(), name));
    steps.push_back(0);
    if (failed(parser.parseOptionalKeyword("step")))
      return success();
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseInteger(steps.back()))
      return failure();
    if (steps.back() < 1)
      return parser.emitError(loc, "needs a step of at least 1, but got ")
             << steps.back();
    return success();
  };
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater,
                                     parseAxis))
    return {};
  return MeshAttr::getChecked([&]() { return parser.emitError(loc); },
                              parser.getContext(), ArrayRef(names),
                              ArrayRef(sizes), ArrayRef(steps));
}

void MeshAttr::print(AsmPrinter &printer) const {
  printer << "<";
  llvm::interleaveComma(llvm::zip_equal(getNames(), getSizes(), getSteps()),
                        printer.getStream(), [&](auto axis) {
                          auto [name, size, step] = axis;
                          printer.printKeywordOrString(name);
                          printer << " = " << size;
                          if (step != 0)
                            printer << " step " << step;
                        });
  printer << ">";
}

/// Whether `size` ranks at a distance of `step` lie within an axis of `ranks`
/// at a distance of `stride`.
static bool isWithin(int64_t ranks, int64_t stride, int64_t size,
                     int64_t step) {
  return step % stride == 0 && size <= ranks && step / stride <= ranks &&
         ranks % (step / stride * size) == 0;
}

/// Whether `size` ranks at a distance of `step` lie within one of the axes that
/// add ranks; or those of experts within `dp` and `tp` together.
static bool isWithinAxis(ArrayRef<StringAttr> names, ArrayRef<int64_t> sizes,
                         ArrayRef<int64_t> steps, bool isOfExperts,
                         int64_t size, int64_t step) {
  int64_t stride = 1;
  for (auto [name, ranks, part] :
       llvm::reverse(llvm::zip_equal(names, sizes, steps))) {
    if (part != 0)
      continue;
    if (isWithin(ranks, stride, size, step))
      return true;
    stride *= ranks;
    if (isOfExperts && name == kDataAxis && isWithin(stride, 1, size, step))
      return true;
  }
  return false;
}

LogicalResult MeshAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               ArrayRef<StringAttr> names,
                               ArrayRef<int64_t> sizes,
                               ArrayRef<int64_t> steps) {
  constexpr int64_t kMostRanks = 1 << 20;
  if (names.empty()) // C1
    return emitError() << "needs an axis, but got none";
  int64_t ranks = 1;
  for (auto [index, name, size, step] :
       llvm::enumerate(names, sizes, steps)) { // C1
    if (!llvm::is_contained(kMeshAxes, name.getValue()))
      return emitError() << "needs axes of "
                         << llvm::join(ArrayRef(kMeshAxes), ", ")
                         << ", but got " << name;
    if (llvm::is_contained(names.take_front(index), name))
      return emitError() << "needs each axis once, but got " << name
                         << " again";
    if (size < 1 || size > kMostRanks / (step == 0 ? ranks : 1))
      return emitError() << "needs 1 to " << kMostRanks
                         << " ranks in all, but got " << size << " along "
                         << name;
    if (step == 0)
      ranks *= size;
  }
  for (auto [name, size, step] : llvm::zip_equal(names, sizes, steps)) {
    bool isOfExperts = name == kExpertAxis || name == kExpertCopiesAxis;
    if (step != 0 &&
        !isWithinAxis(names, sizes, steps, isOfExperts, size, step)) // C2
      return emitError() << "needs " << name << " within an axis without a "
                         << "step, but got " << size << " ranks at a step of "
                         << step;
  }
  return success();
}

int64_t MeshAttr::getSize(StringRef axis) const {
  for (auto [name, size] : llvm::zip_equal(getNames(), getSizes()))
    if (name == axis)
      return size;
  return 1;
}

int64_t MeshAttr::getStride(StringRef axis) const {
  int64_t stride = 1;
  for (auto [name, size, step] :
       llvm::reverse(llvm::zip_equal(getNames(), getSizes(), getSteps()))) {
    if (name == axis)
      return step != 0 ? step : stride;
    if (step == 0)
      stride *= size;
  }
  return 0;
}

int64_t MeshAttr::getCoordinate(int64_t rank, StringRef axis) const {
  int64_t stride = getStride(axis);
  return stride == 0 ? 0 : rank / stride % getSize(axis);
}

int64_t MeshAttr::getNumRanks() const {
  int64_t ranks = 1;
  for (auto [size, step] : llvm::zip_equal(getSizes(), getSteps()))
    ranks *= step == 0 ? size : 1;
  return ranks;
}

int64_t nn::getAxisSize(Operation *module, StringRef axis) {
  auto mesh = module->getAttrOfType<MeshAttr>(kMeshAttr);
  return mesh ? mesh.getSize(axis) : 1;
}

//===----------------------------------------------------------------------===//
// nn.all_reduce
//===----------------------------------------------------------------------===//

/// With groups, one result for as many operands as these have runs.
static LogicalResult inferSums(ValueRange operands, DictionaryAttr attributes,
                               SmallVectorImpl<Type> &types) {
  auto groups = attributes.getAs<IntegerAttr>(kReductionGroupsAttr);
  int64_t terms =
      groups ? std::max<int64_t>(1, getNumRuns(groups.getInt())) : 1;
  llvm::append_range(types,
                     operands.take_front(operands.size() / terms).getTypes());
  return success();
}

/// Each sum has as many terms as the groups of a rank have runs.
static LogicalResult verifySums(Operation *op) {
  if (op->getNumOperands() == 0)
    return op->emitOpError("needs a value to sum, but got none");
  int64_t groups = getGroupsOfRank(op), terms = getNumRuns(groups);
  int64_t given = op->getNumOperands(), results = op->getNumResults();
  if (given % terms != 0)
    return op->emitOpError("needs ")
           << terms << " terms of each sum for " << groups
           << " groups of a rank, but got " << given << " in all";
  if (given != terms * results)
    return op->emitOpError("needs a result for each sum, ")
           << given / terms << " with " << given
           << (given == 1 ? " term" : " terms") << " for " << groups
           << (groups == 1 ? " group" : " groups") << " of a rank, but got "
           << results;
  for (auto [number, type] : llvm::enumerate(op->getOperandTypes()))
    if (Type first = op->getOperand(number % op->getNumResults()).getType();
        type != first)
      return op->emitOpError("needs terms of one type, but got ")
             << first << " and " << type;
  return success();
}

LogicalResult AllReduceOp::inferReturnTypes(MLIRContext *,
                                            std::optional<Location>,
                                            ValueRange operands,
                                            DictionaryAttr attributes,
                                            OpaqueProperties, RegionRange,
                                            SmallVectorImpl<Type> &types) {
  return inferSums(operands, attributes, types);
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

LogicalResult ReduceSharesOp::inferReturnTypes(MLIRContext *,
                                               std::optional<Location>,
                                               ValueRange operands,
                                               DictionaryAttr attributes,
                                               OpaqueProperties, RegionRange,
                                               SmallVectorImpl<Type> &types) {
  return inferSums(operands, attributes, types);
}

LogicalResult ReduceSharesOp::verify() {
  if (failed(verifySums(*this))) // C1
    return failure();
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

/// Some of the ranks along an axis: ascending and equally far from each other.
static LogicalResult verifyMembers(AllReduceOp op, ArrayRef<int64_t> members) {
  int64_t ranks = getAxisSize(op->getParentOfType<ModuleOp>(), op.getAxis());
  bool isRow = members.size() >= 2 && members.front() >= 0 &&
               (ranks == 1 || members.back() < ranks);
  for (size_t i = 1; isRow && i < members.size(); ++i)
    isRow = members[i] > members[i - 1] &&
            members[i] - members[i - 1] == members[1] - members[0];
  if (isRow)
    return success();
  return op.emitOpError("needs two or more members that ascend, equally far "
                        "from each other, of the ")
         << ranks << " ranks along '" << op.getAxis() << "', but got "
         << members;
}

LogicalResult AllReduceOp::verify() {
  if (failed(verifySums(*this))) // C1
    return failure();
  if (failed(verifyAxis(*this, getAxisAttr()))) // C2
    return failure();
  return getMembers() ? verifyMembers(*this, *getMembers()) : success(); // C3
}

/// At most one addition for each element and rank.
int64_t AllReduceOp::getFlops() {
  int64_t elements = 0;
  for (Type type : getValues().getTypes())
    elements += cast<ShapedType>(type).getNumElements();
  return elements;
}

//===----------------------------------------------------------------------===//
// Stages
//===----------------------------------------------------------------------===//

template <typename Op>
static LogicalResult verifyTransfer(Op op) {
  if (failed(verifyAxis(op, op.getAxisAttr()))) // C1
    return failure();
  auto module = op->template getParentOfType<ModuleOp>();
  int64_t peer = op.getPeer(), lane = op.getLane(), places = op.getPlaces();
  bool hasMesh = module && module->hasAttr(kMeshAttr);
  int64_t ranks = hasMesh ? getAxisSize(module, op.getAxis()) : peer + 1;
  if (peer < 0 || peer >= ranks) // C1
    return op.emitOpError("needs a peer from 0 to ")
           << ranks - 1 << " along '" << op.getAxis() << "', but got " << peer;
  if (lane < 0 || places < 1) // C2
    return op.emitOpError("needs a lane of at least 0 and at least 1 place, "
                          "but got ")
           << lane << " and " << places;
  return success();
}

LogicalResult SendOp::verify() { return verifyTransfer(*this); }
int64_t SendOp::getFlops() { return 0; }

LogicalResult ReceiveOp::verify() { return verifyTransfer(*this); }
int64_t ReceiveOp::getFlops() { return 0; }

LogicalResult StagesNormOp::verify() {
  ArrayRef<int64_t> places = getPlaces();
  int64_t count = getCount();
  bool areGood = count >= 1 && places.size() == getGradients().size() &&
                 llvm::all_of(places, [&](int64_t place) {
                   return place >= 0 && place < count;
                 });
  for (size_t i = 1; areGood && i < places.size(); ++i)
    areGood = places[i - 1] < places[i];
  if (!areGood) // C1
    return emitOpError("needs places that ascend for its ")
           << getGradients().size() << " gradients, of " << count
           << ", but got " << places;
  return verifyAxis(*this, getAxisAttr()); // C2
}

/// As of the norm of the gradients that are there, and of places.
int64_t StagesNormOp::getFlops() {
  return 2 * countAll(getGradients().getTypes()) + int64_t(getCount()) + 1;
}
