//===- RTDialect.cpp - The rt dialect ---------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Forms.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "reprise/ABI/Gemm.h"
#include "reprise/Dialect/RT/GroupSums.h"
#include "reprise/Dialect/RT/KnownOffsets.h"
#include "reprise/Dialect/RT/RTExpertRankOps.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Dialect/RT/RTWaitOp.h"
#include "reprise/Dialect/RT/ScheduledOp.h"
#include "reprise/Support/Shares.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace reprise;
using namespace reprise::rt;

static FailureOr<SmallVector<CutAttr>> parseCuts(AsmParser &parser) {
  SmallVector<CutAttr> cuts;
  if (failed(parser.parseCommaSeparatedList(
          AsmParser::Delimiter::Square, [&]() -> ParseResult {
            FailureOr<CutAttr> cut = FieldParser<CutAttr>::parse(parser);
            if (failed(cut))
              return failure();
            cuts.push_back(*cut);
            return success();
          })))
    return failure();
  return cuts;
}

static void printCuts(AsmPrinter &printer, ArrayRef<CutAttr> cuts) {
  printer << '[';
  llvm::interleaveComma(cuts, printer, [&](CutAttr cut) {
    printer.printStrippedAttrOrType(cut);
  });
  printer << ']';
}

static ParseResult parseExactFloats(AsmParser &parser,
                                    DenseF32ArrayAttr &floats) {
  SmallVector<float> values;
  auto parseValue = [&]() -> ParseResult {
    double value = 0;
    if (parser.parseFloat(value))
      return failure();
    values.push_back(float(value));
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseValue))
    return failure();
  floats = DenseF32ArrayAttr::get(parser.getContext(), values);
  return success();
}

/// With the digits that make the same numbers when they are read: arrays of
/// MLIR's have six.
static void printExactFloats(AsmPrinter &printer, DenseF32ArrayAttr floats) {
  printer << '[';
  llvm::interleaveComma(floats.asArrayRef(), printer, [&](float value) {
    printer.printFloat(APFloat(value));
  });
  printer << ']';
}

#include "reprise/Dialect/RT/RTDialect.cpp.inc"
#include "reprise/Dialect/RT/RTEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "reprise/Dialect/RT/RTAttributes.cpp.inc"
#define GET_OP_CLASSES
#include "reprise/Dialect/RT/RTOps.cpp.inc"

void RTDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "reprise/Dialect/RT/RTAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "reprise/Dialect/RT/RTOps.cpp.inc"
      >();
  attachScheduledOps(*getContext());
  attachScheduledRows(*getContext());
  attachScheduledWait(*getContext());
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

LogicalResult CutAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                              StringRef axis, int64_t dim, int64_t extent) {
  if (axis.empty() || dim < 0 || extent < 1)
    return emitError() << "needs an axis, a dimension of at least 0 and an "
                          "extent of at least 1, but got '"
                       << axis << "', " << dim << " and " << extent;
  return success();
}

/// In the order of dimensions, each of which has one cut at most, as has each
/// axis.
static LogicalResult verifyCuts(function_ref<InFlightDiagnostic()> emitError,
                                ArrayRef<CutAttr> cuts) {
  for (auto [index, cut] : llvm::enumerate(cuts))
    for (CutAttr before : cuts.take_front(index)) {
      if (before.getDim() >= cut.getDim())
        return emitError() << "needs cuts in the order of dimensions, each of "
                              "which is cut once, but got dimension "
                           << cut.getDim() << " behind " << before.getDim();
      if (before.getAxis() == cut.getAxis())
        return emitError() << "needs cuts along axes that are there once, but "
                              "got '"
                           << cut.getAxis() << "' again";
    }
  return success();
}

LogicalResult StateAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                StateKind kind, StringRef parameter,
                                StateInit init, FloatAttr std, StringRef hub,
                                int64_t part, int64_t parts, int64_t rows,
                                ArrayRef<CutAttr> cuts, StringRef share,
                                DenseI64ArrayAttr shareOf, int64_t level) {
  if (parameter.empty())
    return emitError() << "needs a parameter name, but got an empty one";
  if ((init == StateInit::Normal) != bool(std))
    return emitError()
           << "needs 'std' with init normal and only there, but got "
           << (std ? "one" : "none") << " with init "
           << stringifyStateInit(init);
  if (init == StateInit::None && kind != StateKind::Gradient)
    return emitError() << "needs a gradient for init none, but got a "
                       << stringifyStateKind(kind);
  if (level < 0 || (level > 0 && kind != StateKind::Partial))
    return emitError() << "needs a level of at least 0 of a partial, and of "
                          "others none, but got "
                       << level << " of a " << stringifyStateKind(kind);
  if (parts < 1 || part < 0 || part >= parts)
    return emitError() << "needs a part from 0 to one below the number of "
                          "parts, but got part "
                       << part << " of " << parts;
  if (rows < 0)
    return emitError() << "needs rows of at least 0, but got " << rows;
  if (failed(verifyCuts(emitError, cuts)))
    return failure();
  if (share.empty() == bool(shareOf))
    return emitError() << "needs 'share_of' with 'share' and only there";
  if (hub.empty() && parts != 1)
    return emitError() << "needs the published tensor that it is part " << part
                       << " of " << parts << " of, but got no 'hub'";
  if (hub.count('*') > 1 || (hub.contains('*') && parts != 1))
    return emitError() << "needs one '*' in 'hub' at most, and no parts with "
                       << "it, but got '" << hub << "' and " << parts
                       << " parts";
  return success();
}

LogicalResult RotaryAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 DenseF32ArrayAttr frequencies,
                                 FloatAttr scale) {
  if (frequencies.empty())
    return emitError() << "needs at least one frequency, but got none";
  for (float frequency : frequencies.asArrayRef())
    if (!std::isfinite(frequency))
      return emitError() << "needs finite frequencies, but got " << frequency;
  if (!scale.getType().isF32() || !scale.getValue().isFinite())
    return emitError() << "needs a finite 'scale' in f32, but got " << scale;
  return success();
}

LogicalResult PlaceAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                Space, int64_t offset) {
  if (offset < 0)
    return emitError() << "needs an offset of at least 0, but got " << offset;
  return success();
}

LogicalResult
CategoryBytesAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                          Category category, int64_t bytes) {
  if (bytes < 0)
    return emitError() << "needs at least 0 bytes of "
                       << stringifyCategory(category) << ", but got " << bytes;
  return success();
}

LogicalResult ArenaAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                Space space, int64_t bytes, int64_t least,
                                int64_t begin, int64_t peak, int64_t bound,
                                ArrayRef<CategoryBytesAttr> categories) {
  if (begin < 0 || begin > least || least > bytes) // C1
    return emitError() << "needs 0 <= begin <= least <= bytes, but got begin "
                       << begin << ", least " << least << " and bytes "
                       << bytes;
  if (bound < 0 || bound > peak || peak > bytes - begin) // C1
    return emitError() << "needs 0 <= bound <= peak, and a peak of at most "
                       << bytes - begin << " bytes, those behind begin, but "
                       << "got bound " << bound << " and peak " << peak;
  uint64_t sum = 0;
  for (auto [number, category] : llvm::enumerate(categories)) {
    for (CategoryBytesAttr other : categories.take_front(number))
      if (other.getCategory() == category.getCategory()) // C2
        return emitError() << "needs each category once, but "
                           << stringifyCategory(category.getCategory())
                           << " is there again";
    sum = llvm::SaturatingAdd(sum, uint64_t(category.getBytes()));
  }
  if (sum != uint64_t(bytes)) // C2
    return emitError() << "needs categories that add up to the "
                       << stringifySpace(space) << "'s arena of " << bytes
                       << " bytes, but got " << sum;
  return success();
}

int64_t ArenaAttr::getBytesOf(Category category) const {
  for (CategoryBytesAttr part : getCategories())
    if (part.getCategory() == category)
      return part.getBytes();
  return 0;
}

LogicalResult PlanAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               ArrayRef<ArenaAttr> arenas) {
  for (auto [number, arena] : llvm::enumerate(arenas))
    for (ArenaAttr other : arenas.take_front(number))
      if (other.getSpace() == arena.getSpace()) // C1
        return emitError() << "needs one arena for each space, but "
                           << stringifySpace(arena.getSpace())
                           << " has another one";
  return success();
}

ArenaAttr PlanAttr::getArena(Space space) const {
  for (ArenaAttr arena : getArenas())
    if (arena.getSpace() == space)
      return arena;
  return {};
}

Space rt::getSpace(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  auto space = tensor ? dyn_cast_if_present<SpaceAttr>(tensor.getEncoding())
                      : SpaceAttr();
  return space ? space.getValue() : Space::Device;
}

std::string rt::getDisplayName(Category category) {
  std::string name = stringifyCategory(category).str();
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

//===----------------------------------------------------------------------===//
// Effects
//===----------------------------------------------------------------------===//

void rt::addEffects(
    Operation *op, ValueRange reads, ValueRange writes,
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    if (llvm::is_contained(reads, operand.get()))
      effects.emplace_back(MemoryEffects::Read::get(), &operand);
    if (llvm::is_contained(writes, operand.get()))
      effects.emplace_back(MemoryEffects::Write::get(), &operand);
  }
}

//===----------------------------------------------------------------------===//
// Buffers and their parts
//===----------------------------------------------------------------------===//

BufferOp BufferOp::getRoot() {
  BufferOp root = *this;
  while (Value whole = root.getWhole()) {
    auto next = whole.getDefiningOp<BufferOp>();
    if (!next)
      break;
    root = next;
  }
  return root;
}

static int64_t getBytes(MemRefType type) {
  return type.getNumElements() * type.getElementTypeBitWidth() / 8;
}

LogicalResult BufferOp::verify() {
  if (!getWhole())
    return success();
  auto whole = getWhole().getDefiningOp<BufferOp>();
  if (!whole)
    return emitOpError("needs an rt.buffer to be part of, but got ")
           << getWhole();
  Type element = getType().getElementType();
  if (!element.isIntOrFloat() || element != whole.getType().getElementType())
    return emitOpError("needs the element type, an integer or float, of what "
                       "it is part of, ")
           << whole.getType() << ", but got " << getType();
  if (getSpace() != whole.getSpace()) // C1
    return emitOpError("needs the space of what it is part of, ")
           << stringifySpace(whole.getSpace()) << ", but got "
           << stringifySpace(getSpace());
  int64_t begin = getOffset() - whole.getOffset();
  int64_t bytes = getBytes(getType()), wholeBytes = getBytes(whole.getType());
  if (begin < 0 || bytes > wholeBytes || begin > wholeBytes - bytes) // C1
    return emitOpError("needs to lie within the ")
           << wholeBytes << " bytes from " << whole.getOffset()
           << " on that it is part of, but has " << bytes << " bytes from "
           << getOffset() << " on";
  return success();
}

LogicalResult ViewOp::verify() {
  RankedTensorType from = getInput().getType(), to = getOut().getType();
  int64_t have = from.getNumElements(), want = to.getNumElements();
  if (from.getElementType() != to.getElementType() || want > have ||
      int64_t(getFirst()) > have - want) // C1
    return emitOpError("needs ")
           << want << " elements of " << to.getElementType() << " from "
           << getFirst() << " on, but got " << from;
  if (rt::getSpace(from) != rt::getSpace(to)) // C1
    return emitOpError("needs a part in the space of ")
           << from << ", but got " << to;
  return success();
}

LogicalResult JoinOp::verify() {
  RankedTensorType whole = getOut().getType();
  int64_t elements = 0;
  for (Type type : getParts().getTypes()) {
    auto part = cast<RankedTensorType>(type);
    if (part.getElementType() != whole.getElementType()) // C1
      return emitOpError("needs parts of ")
             << whole.getElementType() << ", but got " << part;
    if (rt::getSpace(part) != rt::getSpace(whole)) // C1
      return emitOpError("needs parts in the space of ")
             << whole << ", but got " << part;
    elements += part.getNumElements();
  }
  if (elements != whole.getNumElements()) // C1
    return emitOpError("needs parts of ")
           << whole.getNumElements() << " elements in all, but got "
           << elements;
  return success();
}

//===----------------------------------------------------------------------===//
// rt.launch
//===----------------------------------------------------------------------===//

void LaunchOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  addEffects(*this, getInputs(), getOutputs(), effects);
}

LogicalResult rt::verifyForm(Operation *op, bool buffers) {
  for (auto [index, type] : llvm::enumerate(op->getOperandTypes()))
    if (isa<MemRefType>(type) != buffers)
      return op->emitOpError("needs all operands to be ")
             << (buffers ? "buffers" : "tensors") << ", but got " << type
             << " as operand #" << index;
  return success();
}

LogicalResult LaunchOp::verify() {
  if (getNumResults() != 0 && !getOutputs().empty()) // C1
    return emitOpError("needs either results or outputs, but got ")
           << getNumResults() << " results and " << getOutputs().size()
           << " outputs";
  if (int64_t flops = getFlops(); flops < 0) // C4
    return emitOpError("needs 'flops' of at least 0, but got ") << flops;
  return verifyForm(*this, /*buffers=*/getNumResults() == 0); // C1
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<FunctionOpInterface>(
      *this, getKernelAttr());
  // Kernels for a GPU are in a module of their own.
  if (!kernel)
    for (Operation &inner :
         SymbolTable::getNearestSymbolTable(*this)->getRegion(0).front())
      if (inner.hasTrait<OpTrait::SymbolTable>())
        kernel = symbols.lookupSymbolIn<FunctionOpInterface>(&inner,
                                                             getKernelAttr());
  if (!kernel || !kernel->hasAttr(kKernelAttr)) // C2
    return emitOpError("needs a function with 'rt.kernel', but got '@")
           << getKernel() << "'";
  // Emission turns a kernel into a function of pointers: nothing to compare.
  if (kernel->hasAttr(kTasksAttr) || kernel->hasAttr(kGridAttr))
    return success();
  SmallVector<Type> results(getResultTypes());
  if (results.empty())
    llvm::append_range(results, getOutputs().getTypes());
  auto check = [&](TypeRange have, TypeRange want,
                   StringRef what) -> LogicalResult { // C3
    if (have.size() != want.size())
      return emitOpError("needs as many ")
             << what << "s as '@" << getKernel() << "', " << want.size()
             << ", but got " << have.size();
    for (auto [index, a, b] : llvm::enumerate(have, want)) {
      auto type = cast<ShapedType>(a);
      auto like = dyn_cast<ShapedType>(b);
      if (!like || type.getShape() != like.getShape() ||
          type.getElementType() != like.getElementType())
        return emitOpError("needs ")
               << what << " #" << index << " of '@" << getKernel() << "' like "
               << b << ", but got " << a;
    }
    return success();
  };
  if (failed(check(getInputs().getTypes(), kernel.getArgumentTypes(), "input")))
    return failure();
  return check(results, kernel.getResultTypes(), "output");
}

bool rt::isScheduled(Operation *op) { return isa<ScheduledOp>(op); }

//===----------------------------------------------------------------------===//
// rt.collective
//===----------------------------------------------------------------------===//

void CollectiveOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  SmallVector<Value> writes(getOutputs());
  if (getWorkspace())
    writes.push_back(getWorkspace());
  addEffects(*this, getInputs(), writes, effects);
  // Ranks meet in it: it is never dropped, nor merged with another.
  effects.emplace_back(MemoryEffects::Write::get());
}

static int64_t countElements(TypeRange types) {
  int64_t elements = 0;
  for (Type type : types)
    elements += cast<ShapedType>(type).getNumElements();
  return elements;
}

/// The bytes of an element of a value of `type`.
static int64_t getElementBytes(Type type) {
  return cast<ShapedType>(type).getElementTypeBitWidth() / 8;
}

bool CollectiveOp::isSum() {
  return getKind() != Collective::AllGather &&
         getKind() != Collective::GatherShares;
}

bool CollectiveOp::isInPlace() {
  return getKind() == Collective::AllReduce ||
         getKind() == Collective::ReduceShares;
}

int64_t CollectiveOp::getMadeInPlaceOf(unsigned input) {
  if (getKind() == Collective::GatherShares)
    return input == 1 ? 0 : -1;
  // Of several terms the last.
  const int64_t first = getInputs().size() - getMade(*this).size();
  return isInPlace() ? std::max<int64_t>(-1, int64_t(input) - first) : -1;
}

int64_t CollectiveOp::getWorkspaceElements() {
  if (!isSum())
    return 0;
  // 64 KiB from each rank: large enough for the speed of a processor's memory,
  // and small enough for L2. On a GPU 4 MiB, so that what goes over a link at a
  // time takes longer than to begin it, but no more than 64 MiB from all.
  constexpr int64_t kLeast = 16 << 10, kMost = 1 << 20, kFromAll = 16 << 20;
  int64_t ranks = getRanks();
  auto module = (*this)->getParentOfType<ModuleOp>();
  bool isOnGpu = module && module->hasAttr(kGemmWorkspaceAttr);
  const int64_t most =
      isOnGpu ? std::clamp(kFromAll / ranks, kLeast, kMost) : kLeast;
  int64_t shares =
      llvm::divideCeil(countElements(getInputs().getTypes()), ranks);
  int64_t words = llvm::divideCeil(
      shares * getElementBytes(getInputs().front().getType()), 4);
  return ranks * std::clamp<int64_t>(words, getNumTerms(*this), most);
}

/// The part of one rank.
static ShapedType getPart(CollectiveOp op) {
  return cast<ShapedType>(op.isSum() ? getMade(op).front().getType()
                                     : op.getInputs().front().getType());
}

int64_t CollectiveOp::getNumBlocks() {
  if (isInPlace())
    return 0;
  if (getKind() == Collective::GatherShares)
    return 1;
  int64_t blocks = 1;
  for (int64_t size : getPart(*this).getShape().take_front(getDim()))
    blocks *= size;
  return blocks;
}

int64_t CollectiveOp::getBlockElements() {
  if (isInPlace())
    return 0;
  return getPart(*this).getNumElements() / getNumBlocks();
}

int64_t CollectiveOp::getFlops() {
  if (!isSum())
    return 0;
  int64_t elements =
      countElements(getInputs()
                        .take_front(getInputs().size() / getNumTerms(*this))
                        .getTypes());
  return llvm::divideCeil(elements, getRanks()) *
         (getRanks() * getNumTerms(*this) - 1);
}

/// What `op` makes of its inputs; nothing if its ranks cannot have parts.
static SmallVector<Type> getTypesMade(CollectiveOp op) {
  if (op.isInPlace())
    return SmallVector<Type>(
        op.getInputs()
            .take_back(op.getInputs().size() / getNumTerms(op))
            .getTypes());
  if (op.getKind() == Collective::GatherShares)
    return {op.getInputs().back().getType()};
  auto type = cast<ShapedType>(op.getInputs().front().getType());
  SmallVector<int64_t> shape(type.getShape());
  int64_t dim = op.getDim(), ranks = op.getRanks();
  if (dim < 0 || dim >= int64_t(shape.size()) ||
      (op.getKind() == Collective::ReduceScatter && shape[dim] % ranks != 0))
    return {};
  if (op.getKind() == Collective::AllGather)
    shape[dim] *= ranks;
  else
    shape[dim] /= ranks;
  return {type.clone(shape)};
}

/// How many inputs and ranks there are, and whether outputs and a workspace go
/// with them.
static LogicalResult verifyOperands(CollectiveOp op) {
  constexpr int64_t kMostRanks = 1 << 20;
  if (op.getInputs().empty()) // C2
    return op.emitOpError("needs an input, but got none");
  if (op.getRanks() < 1 || int64_t(op.getRanks()) > kMostRanks) // C2
    return op.emitOpError("needs 1 to ")
           << kMostRanks << " ranks, but got " << op.getRanks();
  size_t wanted = op.getKind() == Collective::GatherShares ? 2 : 1;
  if (!op.isInPlace() && op.getInputs().size() != wanted) // C2
    return op.emitOpError("needs ")
           << (wanted == 1 ? "one input" : "a share and the whole")
           << ", but got " << op.getInputs().size();
  bool isOnTensors = op.getNumResults() != 0;
  bool needsWorkspace = !isOnTensors && op.isSum();
  if (needsWorkspace == !op.getWorkspace() ||
      isOnTensors != op.getOutputs().empty()) // C1
    return op.emitOpError("needs either results, or outputs")
           << (op.isSum() ? " and a workspace" : " and no workspace");
  return success();
}

/// Whether results or outputs are what the inputs come to.
static LogicalResult verifyMade(CollectiveOp op) {
  TypeRange made = getMade(op).getTypes();
  SmallVector<Type> wanted = getTypesMade(op); // C4
  if (wanted.empty())
    return op.emitOpError("needs a dimension ")
           << op.getDim() << " that " << op.getRanks()
           << " ranks have parts of, but got "
           << op.getInputs().front().getType();
  if (made != TypeRange(wanted)) // C4
    return op.emitOpError("needs ")
           << (op.getNumResults() != 0 ? "results" : "outputs")
           << " of the types " << wanted << ", but got " << made;
  if (op.getKind() == Collective::GatherShares) { // C4
    auto share = cast<ShapedType>(op.getInputs().front().getType());
    auto whole = cast<ShapedType>(made.front());
    int64_t size = getShareSize(whole.getNumElements(), int64_t(op.getRanks()));
    if (share.getElementType() != whole.getElementType() ||
        share.getNumElements() != size)
      return op.emitOpError("needs a share of ")
             << size << " elements of " << whole << ", but got " << share;
  }
  return success();
}

LogicalResult CollectiveOp::verify() {
  if (failed(verifyOperands(*this)) ||
      failed(verifyForm(*this, /*buffers=*/getNumResults() == 0)) ||
      (isInPlace() && failed(verifyTerms(*this))) || // C2
      failed(verifyMade(*this)))
    return failure();
  if (getMembers() && getMembers()->size() != getRanks()) // C5
    return emitOpError("needs ")
           << getRanks() << " members, but got " << *getMembers();
  TypeRange made = getMade(*this).getTypes();
  for (Type type : made) {
    Type element = cast<ShapedType>(type).getElementType();
    if ((!element.isF32() && !element.isBF16()) ||
        element != cast<ShapedType>(made.front()).getElementType()) // C4
      return emitOpError("needs elements of f32, or all of bf16, but got ")
             << type;
  }
  if (getWorkspace() && (!getWorkspace().getType().getElementType().isF32() ||
                         getWorkspace().getType().getNumElements() !=
                             getWorkspaceElements())) // C3
    return emitOpError("needs a workspace of ")
           << getWorkspaceElements() << " elements of f32, but got "
           << getWorkspace().getType();
  return success();
}

//===----------------------------------------------------------------------===//
// rt.send, rt.receive
//===----------------------------------------------------------------------===//

/// What they do with other ranks is never dropped.
void SendOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  addEffects(*this, getValue(), {}, effects);
  effects.emplace_back(MemoryEffects::Write::get());
}

void ReceiveOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  SmallVector<Value> writes;
  if (getOutput())
    writes.push_back(getOutput());
  addEffects(*this, ValueRange(), writes, effects);
  effects.emplace_back(MemoryEffects::Write::get());
}

template <typename Op>
static LogicalResult verifyTransfer(Op op) {
  int64_t peer = op.getPeer(), lane = op.getLane(), places = op.getPlaces();
  if (peer >= 0 && lane >= 0 && places >= 1) // C1
    return success();
  return op.emitOpError("needs a peer and a lane of at least 0 and at least 1 "
                        "place, but got ")
         << peer << ", " << lane << " and " << places;
}

LogicalResult SendOp::verify() { return verifyTransfer(*this); }

LogicalResult ReceiveOp::verify() {
  if (bool(getResult()) == bool(getOutput())) // C2
    return emitOpError("needs either a result or an output");
  return verifyTransfer(*this);
}
