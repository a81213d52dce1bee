//===- NNShardOps.cpp - Parts of values and what makes them -----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Verify.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/TypeUtilities.h"
#include "reprise/Dialect/NN/Axes.h"
#include "reprise/Dialect/NN/NNExpertRankOps.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Support/Shares.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;

//===----------------------------------------------------------------------===//
// #nn.layout
//===----------------------------------------------------------------------===//

/// `tp = S(1)`.
static ParseResult parseAxisWord(AsmParser &parser, std::string &name,
                                 Word &word, int64_t &dim) {
  std::string text;
  SMLoc loc;
  if (parser.parseKeywordOrString(&name) || parser.parseEqual() ||
      parser.getCurrentLocation(&loc) || parser.parseKeywordOrString(&text))
    return failure();
  std::optional<Word> known = symbolizeWord(text);
  if (!known)
    return parser.emitError(loc, "needs a word of R, I, V, P or S(d), but got ")
           << text;
  word = *known;
  dim = 0;
  if (word != Word::Shard)
    return success();
  return failure(parser.parseLParen() || parser.parseInteger(dim) ||
                 parser.parseRParen());
}

Attribute LayoutAttr::parse(AsmParser &parser, Type) {
  SmallVector<StringAttr> names;
  SmallVector<Word> words;
  SmallVector<int64_t> dims;
  SMLoc loc = parser.getCurrentLocation();
  auto parseOne = [&]() -> ParseResult {
    std::string name;
    if (parseAxisWord(parser, name, words.emplace_back(), dims.emplace_back()))
      return failure();
    names.push_back(StringAttr::get(parser.getContext(), name));
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater,
                                     parseOne))
    return {};
  return LayoutAttr::getChecked([&]() { return parser.emitError(loc); },
                                parser.getContext(), ArrayRef(names),
                                ArrayRef(words), ArrayRef(dims));
}

void LayoutAttr::print(AsmPrinter &printer) const {
  printer << "<";
  llvm::interleaveComma(llvm::zip_equal(getNames(), getWords(), getDims()),
                        printer.getStream(), [&](auto axis) {
                          auto [name, word, dim] = axis;
                          printer.printKeywordOrString(name);
                          printer << " = " << stringifyWord(word);
                          if (word == Word::Shard)
                            printer << "(" << dim << ")";
                        });
  printer << ">";
}

LogicalResult LayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 ArrayRef<StringAttr> names,
                                 ArrayRef<Word> words, ArrayRef<int64_t> dims) {
  for (auto [index, name, dim] : llvm::enumerate(names, dims)) {
    if (!llvm::is_contained(kMeshAxes, name.getValue())) // C1
      return emitError() << "needs axes of "
                         << llvm::join(ArrayRef(kMeshAxes), ", ")
                         << ", but got " << name;
    if (llvm::is_contained(names.take_front(index), name)) // C1
      return emitError() << "needs each axis once, but got " << name
                         << " again";
    if (dim < 0) // C2
      return emitError() << "needs a dimension of at least 0, but got " << dim;
    if (words[index] != Word::Shard)
      continue;
    for (size_t before = 0; before < index; ++before)
      if (words[before] == Word::Shard && dims[before] == dim)
        return emitError() << "needs blocks of a dimension along one axis, but "
                              "got dimension "
                           << dim << " along " << names[before] << " and "
                           << name;
  }
  return success();
}

LayoutAttr LayoutAttr::get(MLIRContext *context, StringRef axis, Word word,
                           int64_t dim) {
  return get(context, ArrayRef(StringAttr::get(context, axis)), ArrayRef(word),
             ArrayRef(word == Word::Shard ? dim : int64_t(0)));
}

Word LayoutAttr::getWord(StringRef axis) const {
  for (auto [name, word] : llvm::zip_equal(getNames(), getWords()))
    if (name == axis)
      return word;
  return Word::Invariant;
}

int64_t LayoutAttr::getShardDim(StringRef axis) const {
  for (auto [name, word, dim] :
       llvm::zip_equal(getNames(), getWords(), getDims()))
    if (name == axis && word == Word::Shard)
      return dim;
  return -1;
}

int64_t nn::getPartAxis(Operation *module, LayoutAttr layout) {
  for (auto [index, axis] : llvm::enumerate(kCutAxes))
    if (layout && layout.getWord(axis) == Word::Shard &&
        getAxisSize(module, axis) > 1)
      return index;
  return -1;
}

ArrayRef<StringLiteral> nn::getAxes(CutKind kind) {
  static constexpr StringLiteral kAxes[] = {kHeadsAxis, kTensorAxis,
                                            kExpertAxis};
  ArrayRef<StringLiteral> axes(kAxes);
  switch (kind) {
  case CutKind::None:
    return {};
  case CutKind::Heads:
    return axes.slice(0, 1);
  case CutKind::Tensor:
    return axes.slice(1, 1);
  case CutKind::Expert:
    return axes.slice(2, 1);
  case CutKind::TensorOfExpert:
    return axes.slice(1, 2);
  }
  llvm_unreachable("unknown kind of parts");
}

CutKind nn::getCutKind(Operation *module, LayoutAttr layout) {
  CutKind first = CutKind(1 + getPartAxis(module, layout));
  bool hasExperts = layout && layout.getShardDim(kExpertAxis) >= 0 &&
                    getAxisSize(module, kExpertAxis) > 1;
  return first == CutKind::Tensor && hasExperts ? CutKind::TensorOfExpert
                                                : first;
}

StringRef nn::getSamplesAxis(StringRef cutAxis) {
  return cutAxis == kExpertAxis ? StringRef(kExpertCopiesAxis)
                                : StringRef(kDataAxis);
}

StringRef nn::getSamplesAxis(LayoutAttr layout) {
  bool isOfExperts = layout && layout.getShardDim(kExpertAxis) >= 0;
  return getSamplesAxis(isOfExperts ? StringRef(kExpertAxis) : StringRef());
}

//===----------------------------------------------------------------------===//
// #nn.part
//===----------------------------------------------------------------------===//

LogicalResult PartAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               StringAttr axis, int64_t dim, int64_t ranks) {
  if (dim < 0 || ranks < 1) // C1
    return emitError()
           << "needs a dimension of at least 0 and at least 1 rank, "
              "but got "
           << dim << " and " << ranks;
  return success();
}

LogicalResult nn::verifyPart(Operation *op, PartAttr part, int64_t rank) {
  if (failed(verifyAxis(op, part.getAxis())))
    return failure();
  if (part.getDim() >= rank)
    return op->emitOpError("needs a part along one of ")
           << rank << " dimensions, but got " << part;
  auto module = op->getParentOfType<ModuleOp>();
  if (module && module->hasAttr(kMeshAttr) &&
      getAxisSize(module, part.getAxis()) != part.getRanks())
    return op->emitOpError("needs a part of ")
           << getAxisSize(module, part.getAxis()) << " ranks along "
           << part.getAxis() << ", but got " << part;
  return success();
}

StringAttr nn::getCoordinateAxis(Operation *op) {
  if (isa<SliceOp, TakeShareOp, EmbeddingPartOp, EmbeddingPartBackwardOp,
          CrossEntropyPartOp, CrossEntropyPartBackwardOp>(op))
    return op->getAttrOfType<StringAttr>("axis");
  auto part = op->getAttrOfType<PartAttr>("part");
  return part ? part.getAxis() : StringAttr();
}

//===----------------------------------------------------------------------===//
// From one word to another
//===----------------------------------------------------------------------===//

bool nn::isCollective(Operation *op) {
  if (auto head = dyn_cast<LinearCrossEntropyOp>(op))
    return bool(head.getAxis());
  return isa<AllReduceOp, AllGatherOp, ReduceScatterOp, ReduceSharesOp,
             GatherSharesOp, SharesNormOp, GatherOffsetsOp, SendRowsOp,
             ReturnRowsOp>(op);
}

/// C2 and C3 of what has a part and the whole.
static LogicalResult verifyParts(Operation *op, StringAttr axis, int64_t dim,
                                 Shaped part, Shaped whole) {
  if (failed(verifyAxis(op, axis))) // C2
    return failure();
  ArrayRef<int64_t> own = getShape(part.value), all = getShape(whole.value);
  if (dim < 0 || dim >= int64_t(own.size())) // C3
    return op->emitOpError("needs a dimension from 0 to ")
           << int64_t(own.size()) - 1 << ", but got " << dim;
  bool fits = own.size() == all.size() && all[dim] % own[dim] == 0 &&
              own.take_front(dim) == all.take_front(dim) &&
              own.drop_front(dim + 1) == all.drop_front(dim + 1);
  auto module = op->getParentOfType<ModuleOp>();
  bool hasMesh = module && module->hasAttr(kMeshAttr);
  int64_t ranks = hasMesh ? getAxisSize(module, axis) : 0;
  if (fits && (!hasMesh || all[dim] / own[dim] == ranks))
    return success();
  InFlightDiagnostic error = op->emitOpError("needs '")
                             << whole.name << "' to be '" << part.name << "'";
  if (hasMesh)
    error << " " << ranks << " times";
  else
    error << " some times";
  return error << " along dimension " << dim << ", but got "
               << whole.value.getType() << " and " << part.value.getType();
}

static int64_t countRanks(Value whole, Value part) {
  return countElements(whole) / countElements(part);
}

LogicalResult AllGatherOp::verify() {
  if (getWord() != Word::Replicated && getWord() != Word::Invariant) // C4
    return emitOpError("needs to make R or I, but got ")
           << stringifyWord(getWord());
  return verifyParts(*this, getAxisAttr(), getDim(), {"input", getInput(), ""},
                     {"out", getOut(), ""});
}

int64_t AllGatherOp::getFlops() { return 0; }

LogicalResult ReduceScatterOp::verify() {
  return verifyParts(*this, getAxisAttr(), getDim(), {"out", getOut(), ""},
                     {"input", getInput(), ""});
}

int64_t ReduceScatterOp::getFlops() {
  return multiply(
      {countRanks(getInput(), getOut()) - 1, countElements(getOut())});
}

LogicalResult SliceOp::verify() {
  return verifyParts(*this, getAxisAttr(), getDim(), {"out", getOut(), ""},
                     {"input", getInput(), ""});
}

int64_t SliceOp::getFlops() { return 0; }

/// C2 and C3 of what has a share and the whole. Without a mesh a share may be
/// that of any number of ranks.
static LogicalResult verifyShare(Operation *op, StringAttr axis, Shaped share,
                                 Shaped whole) {
  if (failed(verifyAxis(op, axis))) // C2
    return failure();
  auto module = op->getParentOfType<ModuleOp>();
  bool hasMesh = module && module->hasAttr(kMeshAttr);
  int64_t elements = countElements(whole.value);
  int64_t own = countElements(share.value);
  int64_t wanted =
      hasMesh ? getShareSize(elements, getAxisSize(module, axis)) : own;
  if (getShape(share.value).size() == 1 && own == wanted &&
      own <= elements) // C3
    return success();
  return op->emitOpError("needs '")
         << share.name << "' to have one dimension and " << wanted << " of the "
         << elements << " elements of '" << whole.name << "', but got "
         << share.value.getType();
}

LogicalResult TakeShareOp::verify() {
  return verifyShare(*this, getAxisAttr(), {"out", getOut(), ""},
                     {"input", getInput(), ""});
}

int64_t TakeShareOp::getFlops() { return 0; }

LogicalResult GatherSharesOp::verify() {
  if (getShare().getType().getElementType() !=
      getWhole().getType().getElementType()) // C3
    return emitOpError("needs 'share' to have elements as 'whole', but got ")
           << getShare().getType() << " and " << getWhole().getType();
  return verifyShare(*this, getAxisAttr(), {"share", getShare(), ""},
                     {"whole", getWhole(), ""});
}

int64_t GatherSharesOp::getFlops() { return 0; }

LogicalResult ReplicateOp::verify() {
  return verifyAxis(*this, getAxisAttr()); // C1
}

int64_t ReplicateOp::getFlops() { return 0; }

//===----------------------------------------------------------------------===//
// On parts of a vocabulary
//===----------------------------------------------------------------------===//

LogicalResult EmbeddingPartOp::verify() {
  Type table = getElementTypeOrSelf(getTable());
  Type out = getElementTypeOrSelf(getOut());
  if (out != table && !(out.isBF16() && table.isF32())) // C1
    return emitOpError("needs rows of ")
           << table << (table.isF32() ? " or bf16" : "") << ", but got " << out;
  if (failed(Dims(*this).match({{"ids", getIds(), "BT"},
                                {"table", getTable(), "VC"},
                                {"out", getOut(), "BTC"}}))) // C2
    return failure();
  return verifyAxis(*this, getAxisAttr()); // C3
}

int64_t EmbeddingPartOp::getFlops() { return 0; }

LogicalResult EmbeddingPartBackwardOp::verify() {
  if (failed(Dims(*this).match({{"ids", getIds(), "BT"},
                                {"dout", getDout(), "BTC"},
                                {"dtable", getDtable(), "VC"}}))) // C2
    return failure();
  return verifyAxis(*this, getAxisAttr()); // C3
}

/// An addition for each element that comes in, at most.
int64_t EmbeddingPartBackwardOp::getFlops() { return countElements(getDout()); }

LogicalResult CrossEntropyPartOp::verify() {
  if (failed(Dims(*this).match({{"logits", getLogits(), "BTV"},
                                {"targets", getTargets(), "BT"},
                                {"lse", getLse(), "BT"}}))) // C2
    return failure();
  if (getClasses() && int64_t(*getClasses()) < 1) // C4
    return emitOpError("needs at least 1 class, but got ")
           << int64_t(*getClasses());
  return verifyAxis(*this, getAxisAttr()); // C3
}

/// A column: maximum, difference, exponential, sum. A row: logarithm, sum.
int64_t CrossEntropyPartOp::getFlops() {
  return multiply({4, countElements(getLogits())}) +
         2 * countElements(getLse());
}

LogicalResult CrossEntropyPartBackwardOp::verify() {
  if (failed(Dims(*this).match({{"logits", getLogits(), "BTV"},
                                {"targets", getTargets(), "BT"},
                                {"lse", getLse(), "BT"}}))) // C2
    return failure();
  return verifyAxis(*this, getAxisAttr()); // C3
}

/// A column: difference, exponential, product, sum.
int64_t CrossEntropyPartBackwardOp::getFlops() {
  return multiply({4, countElements(getLogits())});
}

/// Blocks of rows, each of the shape of what they are joined to.
static LogicalResult verifyBlocks(Operation *op, Value parts, Value lse) {
  ArrayRef<int64_t> all = getShape(parts), one = getShape(lse);
  if (all.size() == 2 && one.size() == 2 && all[1] == one[1] &&
      all[0] % one[0] == 0)
    return success();
  return op->emitOpError("needs 'parts' [n*B, T] of 'lse' [B, T], but got ")
         << parts.getType() << " and " << lse.getType();
}

LogicalResult JoinLseOp::verify() { // C1
  return verifyBlocks(*this, getParts(), getLse());
}

/// A part: maximum, difference, exponential, sum. A row: logarithm, sum.
int64_t JoinLseOp::getFlops() {
  return multiply({4, countElements(getParts())}) + 2 * countElements(getLse());
}

LogicalResult JoinLseBackwardOp::verify() { // C2
  return verifyBlocks(*this, getParts(), getLse());
}

int64_t JoinLseBackwardOp::getFlops() {
  return multiply({3, countElements(getParts())});
}

LogicalResult AddBiasOp::verify() {
  return Dims(*this).match(
      {{"input", getInput(), ".N"}, {"bias", getBias(), "N"}}); // C2
}

int64_t AddBiasOp::getFlops() { return countElements(getOut()); }
