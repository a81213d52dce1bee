//===- RTDialect.cpp - The rt dialect ---------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "reprise/ABI/Model.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::rt;

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
}

/// Buffers are read and written; values of tensor type have no effects.
static void
addEffects(Operation *op, ValueRange reads, ValueRange writes,
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
// rt.launch
//===----------------------------------------------------------------------===//

void LaunchOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  addEffects(*this, getInputs(), getOutputs(), effects);
}

LogicalResult LaunchOp::verify() {
  bool buffers = getNumResults() == 0;
  if (!buffers && !getOutputs().empty())
    return emitOpError("needs either results or outputs, but got ")
           << getNumResults() << " results and " << getOutputs().size()
           << " outputs";
  for (auto [index, operand] : llvm::enumerate(getOperands()))
    if (isa<MemRefType>(operand.getType()) != buffers)
      return emitOpError("needs all operands to be ")
             << (buffers ? "buffers" : "tensors") << ", but operand #" << index
             << " is " << operand.getType();
  return success();
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<FunctionOpInterface>(
      *this, getKernelAttr());
  if (!kernel || !kernel->hasAttr(kKernelAttr))
    return emitOpError("needs a function with 'rt.kernel', but got '@")
           << getKernel() << "'";
  // Emission turns a kernel into a function of pointers: nothing to compare.
  if (kernel->hasAttr(kTasksAttr))
    return success();
  SmallVector<Type> results(getResultTypes());
  if (results.empty())
    llvm::append_range(results, getOutputs().getTypes());
  auto check = [&](TypeRange have, TypeRange want, StringRef what) {
    if (have.size() != want.size())
      return emitOpError("needs ")
             << want.size() << " " << what << " for '@" << getKernel()
             << "', but got " << have.size();
    for (auto [index, pair] : llvm::enumerate(llvm::zip(have, want))) {
      auto a = cast<ShapedType>(std::get<0>(pair));
      auto b = cast<ShapedType>(std::get<1>(pair));
      if (a.getShape() != b.getShape() ||
          a.getElementType() != b.getElementType())
        return emitOpError("needs ")
               << what << " #" << index << " of '@" << getKernel()
               << "' like " << Type(b) << ", but got " << Type(a);
    }
    return InFlightDiagnostic();
  };
  if (failed(LogicalResult(check(getInputs().getTypes(),
                                 kernel.getArgumentTypes(), "input"))))
    return failure();
  return check(results, kernel.getResultTypes(), "output");
}

//===----------------------------------------------------------------------===//
// rt.gemm
//===----------------------------------------------------------------------===//

void GemmOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  SmallVector<Value> reads = {getA(), getB()}, writes;
  if (getBias())
    reads.push_back(getBias());
  if (getOutput()) {
    writes.push_back(getOutput());
    if (getAccumulate())
      reads.push_back(getOutput());
  }
  if (getWorkspace())
    writes.push_back(getWorkspace());
  addEffects(*this, reads, writes, effects);
}

int64_t GemmOp::getBatchCount() {
  int64_t count = 1;
  if (std::optional<ArrayRef<int64_t>> batch = getBatch())
    for (int64_t size : *batch)
      count *= size;
  return count;
}

int64_t GemmOp::getFlops() {
  return 2 * getM() * getN() * getK() * getBatchCount();
}

int64_t GemmOp::getWorkspaceBytes() {
  RepriseGemm gemm = {};
  gemm.m = getM(), gemm.n = getN(), gemm.k = getK();
  gemm.batch[0] = getBatchCount(), gemm.batch[1] = 1;
  return repriseGemmWorkspaceBytes(&gemm);
}

LogicalResult GemmOp::verify() {
  int64_t m = getM(), n = getN(), k = getK();
  if (m < 1 || n < 1 || k < 1)
    return emitOpError("needs m, n and k of at least 1, but got ")
           << m << ", " << n << " and " << k;
  SmallVector<int64_t> batch(getBatch().value_or(ArrayRef<int64_t>()));
  if (!batch.empty() && batch.size() != 2)
    return emitOpError("needs two batch dimensions, but got ") << batch.size();

  // The last element each operand is read or written at.
  auto check = [&](StringRef name, Type type, int64_t rows, int64_t cols,
                   int64_t stride,
                   std::optional<ArrayRef<int64_t>> batchStrides) {
    if (stride < cols)
      return LogicalResult(emitOpError("needs a row stride of at least ")
                           << cols << " for " << name << ", but got " << stride);
    int64_t last = (rows - 1) * stride + cols - 1;
    if (!batch.empty()) {
      if (!batchStrides || batchStrides->size() != 2)
        return LogicalResult(emitOpError("needs two batch strides for ") << name);
      for (unsigned d : {0u, 1u})
        last += (batch[d] - 1) * (*batchStrides)[d];
    }
    int64_t have = cast<ShapedType>(type).getNumElements();
    if (last >= have)
      return LogicalResult(emitOpError("needs ")
                           << last + 1 << " elements in " << name << ", but got "
                           << have << " in " << type);
    return success();
  };
  if (failed(check("a", getA().getType(), getTransposeA() ? k : m,
                   getTransposeA() ? m : k, getLda(), getStrideA())) ||
      failed(check("b", getB().getType(), getTransposeB() ? n : k,
                   getTransposeB() ? k : n, getLdb(), getStrideB())))
    return failure();
  if (getBias() &&
      cast<ShapedType>(getBias().getType()).getNumElements() != n)
    return emitOpError("needs a bias of ")
           << n << " elements, but got " << getBias().getType();
  if (bool(getResult()) == bool(getOutput()))
    return emitOpError("needs either a result or an output");
  if (getResult() && (getAccumulate() || getWorkspace()))
    return emitOpError("needs 'accumulate' and 'workspace' only with an output");
  if (getOutput() && getAddend())
    return emitOpError("needs 'accumulate' instead of an addend with an output");
  Type c = getResult() ? Type(getResult().getType()) : Type(getOutput().getType());
  if (getAddend() && getAddend().getType() != c)
    return emitOpError("needs an addend of the result's type ")
           << c << ", but got " << getAddend().getType();
  return check("c", c, m, n, getLdc(), getStrideC());
}

//===----------------------------------------------------------------------===//
// rt.block_sums
//===----------------------------------------------------------------------===//

LogicalResult BlockSumsOp::verify() {
  int64_t blocks = 0;
  for (Type type : getInputs().getTypes())
    blocks += llvm::divideCeil(cast<ShapedType>(type).getNumElements(), kBlock);
  auto type = cast<ShapedType>(getOut().getType());
  if (type.getNumElements() != blocks)
    return emitOpError("needs a result of ")
           << blocks << " elements, one for each block of " << kBlock
           << ", but got " << Type(type);
  return success();
}
