//===- RTGemm.cpp - GEMMs ---------------------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Forms.h"
#include "mlir/IR/BuiltinOps.h"
#include "reprise/ABI/Gemm.h"
#include "reprise/Dialect/RT/ElementFormat.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Interfaces/EvenRows.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::rt;

void GemmOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  SmallVector<Value> reads = {getA(), getB()}, writes;
  for (Value read : {getBias(), getOffsets(), getOrder()})
    if (read)
      reads.push_back(read);
  if (getOutput()) {
    writes.push_back(getOutput());
    if (getAccumulate())
      reads.push_back(getOutput());
  }
  for (Value written : {Value(getAux()), Value(getWorkspace())})
    if (written)
      writes.push_back(written);
  addEffects(*this, reads, writes, effects);
}

int64_t GemmOp::getBatchCount() {
  int64_t count = 1;
  if (std::optional<ArrayRef<int64_t>> batch = getBatch())
    for (int64_t size : *batch)
      count *= size;
  return count;
}

int64_t GemmOp::getGroupCount() {
  return getOffsets()
             ? cast<ShapedType>(getOffsets().getType()).getNumElements() - 1
             : 0;
}

/// Counted as by the ops of nn that become a GEMM: for each element
/// a multiply-add for each `k`, the bias, a scale other than 1, and the sum
/// with what is there; and what an epilogue adds up.
int64_t GemmOp::getFlops() {
  // Of groups, the rows that come: of the sums, or of the terms.
  int64_t m = getM(), k = getK();
  (getTransposeA() ? k : m) =
      getEvenRows(*this, kEvenRTRowsAttr, getTransposeA() ? k : m);
  bool scales = !getAlpha().isExactlyValue(1.0);
  bool adds = getAccumulate() || getAddend();
  uint64_t flops = llvm::SaturatingMultiplyAdd<uint64_t>(
      2, k, uint64_t(bool(getBias())) + scales + adds);
  for (int64_t size : {m, int64_t(getN()), getBatchCount()})
    flops = llvm::SaturatingMultiply<uint64_t>(flops, size);
  // Each group has a matrix of sums that are there before.
  if (adds && getTransposeA())
    for (int64_t group = 1; group < getGroupCount(); ++group)
      flops = llvm::SaturatingMultiplyAdd<uint64_t>(getM(), getN(), flops);
  if (std::optional<Epilogue> epilogue = getEpilogue()) {
    bool areSquares = epilogue == Epilogue::SquaresOfC;
    flops = llvm::SaturatingMultiplyAdd<uint64_t>(
        epilogue == Epilogue::SumsOfB ? getN() : getM(),
        areSquares ? llvm::SaturatingMultiply<uint64_t>(2, getN()) : getK(),
        flops);
  }
  return std::min<uint64_t>(flops, std::numeric_limits<int64_t>::max());
}

ShapedType GemmOp::getCType() {
  return cast<ShapedType>(getResult() ? Type(getResult().getType())
                                      : Type(getOutput().getType()));
}

int64_t GemmOp::getPlaces() {
  if (!getGather())
    return 0;
  bool isA = getGather() == Gather::A;
  auto type = cast<ShapedType>((isA ? getA() : getB()).getType());
  int64_t cols = !isA ? getN() : getTransposeA() ? getM() : getK();
  return type.getNumElements() / cols * getSlots().value_or(1);
}

int64_t GemmOp::getWorkspaceBytes() {
  if (auto module = (*this)->getParentOfType<ModuleOp>())
    if (auto bytes = module->getAttrOfType<IntegerAttr>(kGemmWorkspaceAttr))
      return bytes.getInt();
  RepriseGemm gemm = {};
  gemm.m = getM(), gemm.n = getN(), gemm.k = getK();
  gemm.batch[0] = getBatchCount(), gemm.batch[1] = 1;
  gemm.typeAB = getElementCode(getA().getType());
  gemm.typeC = getElementCode(getCType());
  gemm.transposeA = getTransposeA();
  gemm.groups = getGroupCount();
  gemm.gather = getGather() ? int32_t(*getGather()) : REPRISE_GATHER_NONE;
  return repriseGemmWorkspaceBytes(&gemm);
}

/// Checks one matrix of a GEMM, `rows` times `cols`: its strides, and that
/// `type` has its last element.
static LogicalResult verifyMatrix(GemmOp op, StringRef name, ShapedType type,
                                  int64_t rows, int64_t cols, int64_t stride,
                                  std::optional<ArrayRef<int64_t>> strides) {
  if (stride < cols) // C4
    return op.emitOpError("needs a row stride of at least ")
           << cols << " for '" << name << "', but got " << stride;
  // The numbers come from text: they may be beyond all reason.
  uint64_t last =
      llvm::SaturatingMultiplyAdd<uint64_t>(rows - 1, stride, cols - 1);
  ArrayRef<int64_t> batch = op.getBatch().value_or(ArrayRef<int64_t>());
  ArrayRef<int64_t> batchStrides = strides.value_or(ArrayRef<int64_t>());
  if (batchStrides.size() != batch.size()) // C4
    return op.emitOpError("needs ")
           << batch.size() << " batch strides for '" << name << "', but got "
           << batchStrides.size();
  for (auto [size, batchStride] : llvm::zip_equal(batch, batchStrides)) {
    if (batchStride < 0) // C4
      return op.emitOpError("needs batch strides of at least 0 for '")
             << name << "', but got " << batchStride;
    last = llvm::SaturatingMultiplyAdd<uint64_t>(size - 1, batchStride, last);
  }
  if (last >= uint64_t(type.getNumElements())) // C5
    return op.emitOpError("needs more than ")
           << last << " elements in '" << name << "', but got "
           << type.getNumElements() << " in " << type;
  return success();
}

/// That `type` has `count` matrices of `rows` and `cols` one behind the other,
/// with `stride` from row to row.
static LogicalResult verifyMatrices(GemmOp op, StringRef name, ShapedType type,
                                    int64_t count, int64_t rows, int64_t cols,
                                    int64_t stride) {
  if (stride != cols) // C4
    return op.emitOpError("needs a row stride of ")
           << cols << " for '" << name << "' with groups, but got " << stride;
  uint64_t elements = llvm::SaturatingMultiply<uint64_t>(
      llvm::SaturatingMultiply<uint64_t>(rows, cols), count);
  if (elements != uint64_t(type.getNumElements())) // C5
    return op.emitOpError("needs ")
           << elements << " elements in '" << name << "', but got "
           << type.getNumElements() << " in " << type;
  return success();
}

/// A list of row numbers of `count` elements, or more if `isLeast`.
static LogicalResult verifyIndices(GemmOp op, StringRef name, Value value,
                                   int64_t count, bool isLeast) {
  auto type = cast<ShapedType>(value.getType());
  if (type.getElementType().isInteger(32) &&
      (isLeast ? type.getNumElements() >= count
               : type.getNumElements() == count))
    return success();
  return op.emitOpError("needs '")
         << name << "' to be i32 of " << (isLeast ? "at least " : "") << count
         << " elements, but got " << Type(type); // C9
}

/// Checks which operands of a GEMM with groups are given.
static LogicalResult verifyGroupOperands(GemmOp op) {
  int64_t rows = op.getGroupedRows(), slots = op.getSlots().value_or(1);
  std::optional<Gather> gather = op.getGather();
  if (op.getBatch() || op.getStrideA() || op.getStrideB() || op.getStrideC() ||
      op.getBias() || op.getEpilogue() || op.getPackedB() ||
      !op.getAlpha().isExactlyValue(1.0)) // C9
    return op.emitOpError("needs no batch, no bias, no epilogue, no packed_b "
                          "and an alpha of 1 with groups");
  if (failed(verifyIndices(op, "offsets", op.getOffsets(), 2,
                           /*isLeast=*/true)))
    return failure();
  if (bool(gather) != bool(op.getOrder()) ||
      bool(gather) != bool(op.getSlots())) // C9
    return op.emitOpError("needs gather, order and slots together");
  if (gather && slots < 1) // C9
    return op.emitOpError("needs slots of at least 1, but got ") << slots;
  if (gather && failed(verifyIndices(op, "order", op.getOrder(), rows,
                                     /*isLeast=*/false)))
    return failure();
  if (gather == Gather::B && !op.getTransposeA()) // C9
    return op.emitOpError("needs 'transpose_a' to gather 'b'");
  if (op.getTransposeA() && op.getTransposeB()) // C9
    return op.emitOpError("needs no 'transpose_b' with 'transpose_a' and "
                          "groups");
  return success();
}

static LogicalResult verifyGroups(GemmOp op, ShapedType a, ShapedType b,
                                  ShapedType c) {
  if (failed(verifyGroupOperands(op)))
    return failure();
  int64_t m = op.getM(), n = op.getN(), k = op.getK();
  int64_t groups = op.getGroupCount();
  int64_t rows = op.getGroupedRows();
  std::optional<Gather> gather = op.getGather();
  bool isSum = op.getTransposeA();
  if (isSum && !c.getElementType().isF32()) // C9
    return op.emitOpError("needs 'c' to be f32 with 'transpose_a' and groups, "
                          "whose rows are summed in parts, but got ")
           << Type(c);
  constexpr int64_t kMostRows = std::numeric_limits<int32_t>::max();
  if (rows > kMostRows) // C9
    return op.emitOpError("needs at most ")
           << kMostRows << " rows with groups, but got " << rows;
  // Of a gathered operand there are as many rows as its buffer has.
  auto countRows = [&](Gather operand, ShapedType type, int64_t cols) {
    return gather == operand ? type.getNumElements() / cols : rows;
  };
  int64_t rowsOfA = countRows(Gather::A, a, isSum ? m : k);
  int64_t rowsOfB = countRows(Gather::B, b, n);
  if (isSum)
    return success(
        succeeded(verifyMatrices(op, "a", a, 1, rowsOfA, m, op.getLda())) &&
        succeeded(verifyMatrices(op, "b", b, 1, rowsOfB, n, op.getLdb())) &&
        succeeded(verifyMatrices(op, "c", c, groups, m, n, op.getLdc())));
  return success(
      succeeded(verifyMatrices(op, "a", a, 1, rowsOfA, k, op.getLda())) &&
      succeeded(verifyMatrices(op, "b", b, groups, op.getTransposeB() ? n : k,
                               op.getTransposeB() ? k : n, op.getLdb())) &&
      succeeded(verifyMatrices(op, "c", c, 1, m, n, op.getLdc())));
}

/// The elements that an epilogue makes.
static int64_t countSums(GemmOp op) {
  switch (*op.getEpilogue()) {
  case Epilogue::SumsOfA:
    return op.getM();
  case Epilogue::SumsOfB:
    return op.getN();
  case Epilogue::SquaresOfC:
    return int64_t(llvm::divideCeil(op.getM(), REPRISE_GEMM_SQUARES_ROWS)) *
           int64_t(llvm::divideCeil(op.getN(), REPRISE_GEMM_SQUARES_COLS));
  }
  llvm_unreachable("unknown epilogue");
}

std::optional<SmallVector<int64_t, 4>> rt::getPackedShape(int64_t rows,
                                                          int64_t cols) {
  constexpr int64_t kRows = REPRISE_PACKED_ROWS, kCols = REPRISE_PACKED_COLS;
  if (rows < kRows || rows % kRows != 0 || cols < kCols || cols % kCols != 0)
    return std::nullopt;
  return SmallVector<int64_t, 4>{cols / kCols, rows / 2, kCols, 2};
}

/// The matrix B as it is stored.
static LogicalResult verifyB(GemmOp op, ShapedType type) {
  int64_t rows = op.getK(), cols = op.getN(), stride = op.getLdb();
  if (op.getTransposeB())
    std::swap(rows, cols);
  if (!op.getPackedB())
    return verifyMatrix(op, "b", type, rows, cols, stride, op.getStrideB());
  std::optional<SmallVector<int64_t, 4>> shape = getPackedShape(rows, cols);
  if (!shape || !type.getElementType().isBF16()) // C8
    return op.emitOpError("needs multiples of ")
           << REPRISE_PACKED_ROWS << " rows and " << REPRISE_PACKED_COLS
           << " columns of bf16 to be packed, but got " << rows << "x" << cols
           << "x" << type.getElementType();
  if (type.getShape() != ArrayRef<int64_t>(*shape)) // C8
    return op.emitOpError("needs 'b' to have the shape [")
           << *shape << "] to be " << rows << "x" << cols << " packed, but got "
           << Type(type);
  if (stride != rows || op.getBatch() || op.getStrideB()) // C8
    return op.emitOpError("needs 'ldb' ")
           << rows << " and no batch to be packed, but got " << stride
           << (op.getBatch()     ? " and a batch"
               : op.getStrideB() ? " and batch strides"
                                 : "");
  return success();
}

static LogicalResult verifyEpilogue(GemmOp op) {
  Value aux = op.getAuxiliary();
  std::optional<Epilogue> epilogue = op.getEpilogue();
  if (bool(aux) != bool(epilogue) || op.getMade().size() > 2 ||
      (op.getOutput() && !op.getMade().empty())) // C7
    return op.emitOpError("needs an auxiliary output for an epilogue, and none "
                          "without, but got ")
           << op.getMade().size() << " results and "
           << (op.getAux() ? "one" : "no") << " 'aux'";
  if (!epilogue)
    return success();
  int64_t count = countSums(op);
  auto type = cast<ShapedType>(aux.getType());
  Type element = op.getCType().getElementType();
  if (type.getNumElements() != count || type.getElementType() != element ||
      !element.isF32()) // C7
    return op.emitOpError("needs 'c' and an auxiliary output of ")
           << count << " elements to be f32, but got " << Type(op.getCType())
           << " and " << Type(type);
  if (op.getBias() || op.getBatch() || !op.getAlpha().isExactlyValue(1.0)) // C7
    return op.emitOpError(
        "needs no bias, no batch and an alpha of 1 with an epilogue");
  bool isTaken = epilogue == Epilogue::SquaresOfC ||
                 (epilogue == Epilogue::SumsOfA ? op.getTransposeA()
                                                : !op.getTransposeB());
  if (!isTaken) // C7
    return op.emitOpError("needs 'transpose_a' for sums_of_a, and no "
                          "'transpose_b' for sums_of_b, as libraries do, but "
                          "got ")
           << stringifyEpilogue(*epilogue)
           << (epilogue == Epilogue::SumsOfA ? " without 'transpose_a'"
                                             : " with 'transpose_b'");
  return success();
}

static LogicalResult verifySizes(GemmOp op) {
  int64_t m = op.getM(), n = op.getN(), k = op.getK();
  if (m < 1 || n < 1 || k < 1) // C1
    return op.emitOpError("needs m, n and k of at least 1, but got ")
           << m << ", " << n << " and " << k;
  std::optional<ArrayRef<int64_t>> batch = op.getBatch();
  if (!batch)
    return success();
  if (batch->size() != 2) // C1
    return op.emitOpError("needs two batch dimensions, but got ")
           << batch->size();
  if ((*batch)[0] < 1 || (*batch)[1] < 1) // C1
    return op.emitOpError("needs batch dimensions of at least 1, but got ")
           << (*batch)[0] << " and " << (*batch)[1];
  return success();
}

static LogicalResult verifyForms(GemmOp op) {
  if (bool(op.getResult()) == bool(op.getOutput())) // C3
    return op.emitOpError("needs either a result or an output, but got ")
           << (op.getResult() ? "both" : "neither");
  if (failed(verifyForm(op, /*buffers=*/bool(op.getOutput())))) // C3
    return failure();
  if (op.getResult() && op.getAccumulate()) // C3
    return op.emitOpError("needs an addend instead of 'accumulate' with a "
                          "result");
  if (op.getOutput() && !op.getWorkspace()) // C3
    return op.emitOpError("needs a workspace of ")
           << op.getWorkspaceBytes() << " bytes with an output, but got none";
  return success();
}

static LogicalResult verifyTypes(GemmOp op, ShapedType a, ShapedType b,
                                 ShapedType c) {
  Type ab = a.getElementType(), sum = c.getElementType();
  if (!ab.isF32() && !ab.isBF16()) // C2
    return op.emitOpError("needs 'a' to be f32 or bf16, but got ") << Type(a);
  if (b.getElementType() != ab) // C2
    return op.emitOpError("needs 'b' to be ")
           << ab << " like 'a', but got " << Type(b);
  bool adds = op.getAddend() || op.getAccumulate();
  if (!sum.isF32() && !(sum.isBF16() && ab.isBF16() && !adds)) // C2
    return op.emitOpError("needs 'c' to be f32") << (!ab.isBF16() ? ""
                                                     : adds ? " to be added to"
                                                            : " or bf16")
                                                 << ", but got " << Type(c);
  return success();
}

/// Bias, epilogue, addend and workspace.
static LogicalResult verifyRest(GemmOp op, ShapedType c) {
  if (op.getBias()) {
    auto bias = cast<ShapedType>(op.getBias().getType());
    if (bias.getElementType() != c.getElementType() ||
        bias.getNumElements() != int64_t(op.getN())) // C2, C5
      return op.emitOpError("needs a bias of ")
             << op.getN() << " elements of " << c.getElementType()
             << ", but got " << Type(bias);
  }
  if (failed(verifyEpilogue(op)))
    return failure();
  if (op.getAddend() && op.getAddend().getType() != Type(c)) // C5
    return op.emitOpError("needs an addend of the result's type ")
           << Type(c) << ", but got " << op.getAddend().getType();
  if (!op.getWorkspace())
    return success();
  MemRefType workspace = op.getWorkspace().getType();
  int64_t bytes =
      workspace.getNumElements() * workspace.getElementTypeBitWidth() / 8;
  if (bytes < op.getWorkspaceBytes()) // C6
    return op.emitOpError("needs a workspace of ")
           << op.getWorkspaceBytes() << " bytes, but got " << bytes << " in "
           << workspace;
  return success();
}

LogicalResult GemmOp::verify() {
  if (failed(verifySizes(*this)) || failed(verifyForms(*this)))
    return failure();
  ShapedType c = getCType();
  auto a = cast<ShapedType>(getA().getType());
  auto b = cast<ShapedType>(getB().getType());
  if (failed(verifyTypes(*this, a, b, c)))
    return failure();
  if (!getOffsets() && (getOrder() || getGather() || getSlots())) // C9
    return emitOpError("needs groups to gather rows");
  if (getOffsets())
    return success(succeeded(verifyGroups(*this, a, b, c)) &&
                   succeeded(verifyRest(*this, c)));
  int64_t m = getM(), n = getN(), k = getK();
  if (failed(verifyMatrix(*this, "a", a, getTransposeA() ? k : m,
                          getTransposeA() ? m : k, getLda(), getStrideA())) ||
      failed(verifyB(*this, b)) ||
      failed(verifyMatrix(*this, "c", c, m, n, getLdc(), getStrideC())))
    return failure();
  return verifyRest(*this, c);
}
