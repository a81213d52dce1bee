//===- DeviceCode.cpp - Writing what the threads of a GPU do ----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceCode.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "reprise/Codegen/Common/LoopNest.h"
#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;
using namespace reprise::cuda;

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Value DeviceCode::divide(Value a, int64_t b) {
  return arith::DivUIOp::create(*this, a, i64(b));
}

Value DeviceCode::remainder(Value a, int64_t b) {
  return arith::RemUIOp::create(*this, a, i64(b));
}

Value DeviceCode::less(Value a, Value b) {
  return arith::CmpIOp::create(*this, arith::CmpIPredicate::slt, a, b);
}

Value DeviceCode::equal(Value a, Value b) {
  return arith::CmpIOp::create(*this, arith::CmpIPredicate::eq, a, b);
}

Value DeviceCode::both(Value a, Value b) {
  return arith::AndIOp::create(*this, a, b);
}

//===----------------------------------------------------------------------===//
// Threads among themselves
//===----------------------------------------------------------------------===//

void DeviceCode::fence() {
  LLVM::FenceOp::create(*this, LLVM::AtomicOrdering::acq_rel, "device");
}

void DeviceCode::barrier() { gpu::BarrierOp::create(*this); }

Value DeviceCode::shuffle(Value value, int64_t distance) {
  return gpu::ShuffleOp::create(*this, value, distance, kWarp,
                                gpu::ShuffleMode::XOR)
      .getShuffleResult();
}

Value DeviceCode::combineInWarp(Value value, int64_t width, int64_t step,
                                function_ref<Value(Value, Value)> op) {
  for (int64_t distance = width / 2; distance > 0; distance /= 2)
    value = op(value, shuffle(value, distance * step));
  return value;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

Type cuda::pointerTo(MLIRContext *context, AddressSpace space) {
  return LLVM::LLVMPointerType::get(context, space);
}

void DeviceKernel::setLaunch(DeviceCode &code, int64_t blocks,
                             int64_t threads) {
  function->setAttr(rt::kGridAttr, code.getDenseI64ArrayAttr({blocks, 1, 1}));
  function->setAttr(rt::kBlockAttr, code.getDenseI64ArrayAttr({threads, 1, 1}));
  function.setKnownBlockSizeAttr(
      code.getDenseI32ArrayAttr({int32_t(threads), 1, 1}));
}

Value DeviceKernel::takeShared(DeviceCode &code, int64_t bytes,
                               int64_t alignment) {
  assert(kSharedAlignment % alignment == 0 && "shared memory begins there");
  static constexpr StringLiteral kName = "reprise_shared";
  auto device = function->getParentOfType<gpu::GPUModuleOp>();
  if (!device.lookupSymbol(kName)) {
    OpBuilder::InsertionGuard guard(code);
    code.setInsertionPointToStart(device.getBody());
    LLVM::GlobalOp::create(code, LLVM::LLVMArrayType::get(code.getI8Type(), 0),
                           /*isConstant=*/false, LLVM::Linkage::External, kName,
                           Attribute(), kSharedAlignment, kShared);
  }
  Value base = LLVM::AddressOfOp::create(
      code, pointerTo(code.getContext(), kShared), kName);
  int64_t offset = llvm::alignTo(sharedBytes, alignment);
  sharedBytes = llvm::alignTo(offset + bytes, kSharedVector);
  function->setAttr(rt::kSharedAttr, code.getI64IntegerAttr(sharedBytes));
  return code.address(base, code.getI8Type(), code.i64(offset));
}

/// The array `name` of `count` elements or more in device memory, zero at
/// first.
static Value getArray(DeviceCode &code, gpu::GPUFuncOp function, StringRef name,
                      Type element, int64_t count) {
  auto device = function->getParentOfType<gpu::GPUModuleOp>();
  if (auto array = cast_or_null<LLVM::GlobalOp>(device.lookupSymbol(name))) {
    auto type = cast<LLVM::LLVMArrayType>(array.getGlobalType());
    count = std::max<int64_t>(count, type.getNumElements());
    array.erase();
  }
  {
    OpBuilder::InsertionGuard guard(code);
    code.setInsertionPointToStart(device.getBody());
    auto type = LLVM::LLVMArrayType::get(element, count);
    auto array = LLVM::GlobalOp::create(code, type, /*isConstant=*/false,
                                        LLVM::Linkage::Internal, name,
                                        Attribute(), /*alignment=*/16, kGlobal);
    code.createBlock(&array.getInitializerRegion());
    Value zero = LLVM::ZeroOp::create(code, type);
    LLVM::ReturnOp::create(code, zero);
  }
  return LLVM::AddressOfOp::create(code, pointerTo(code.getContext(), kGlobal),
                                   name);
}

Value DeviceKernel::takeScratch(DeviceCode &code, int64_t bytes) {
  return getArray(code, function, "reprise_scratch", code.getI8Type(), bytes);
}

Value DeviceKernel::takeCounters(DeviceCode &code, int64_t count) {
  return getArray(code, function, "reprise_counters", code.getI32Type(), count);
}

Value DeviceKernel::bufferAt(DeviceCode &code, Value number) {
  Value address = code.load(LLVM::LLVMPointerType::get(code.getContext()),
                            arguments, number);
  return LLVM::AddrSpaceCastOp::create(
      code, pointerTo(code.getContext(), kGlobal), address);
}

Value DeviceKernel::addressOf(Operation *op, unsigned index) const {
  auto root = cast<BlockArgument>(getRoot(op->getOperand(index)));
  return inputs[root.getArgNumber()];
}

/// Constant memory for the tables of all kernels, of the 64 KiB that there are.
static constexpr int64_t kConstantBytes = 60 << 10;

/// Constant memory as long as there is some, and device memory for the rest.
static AddressSpace chooseSpace(gpu::GPUModuleOp device, int64_t bytes) {
  for (auto table : device.getOps<LLVM::GlobalOp>())
    if (table.getAddrSpace() == kConstant)
      bytes +=
          8 * cast<LLVM::LLVMArrayType>(table.getGlobalType()).getNumElements();
  return bytes <= kConstantBytes ? kConstant : kGlobal;
}

Value DeviceKernel::constantTable(DeviceCode &code, StringRef suffix,
                                  ArrayRef<int64_t> values) {
  std::string name = (function.getName() + suffix).str();
  AddressSpace space = chooseSpace(
      function->getParentOfType<gpu::GPUModuleOp>(), values.size() * 8);
  {
    OpBuilder::InsertionGuard guard(code);
    code.setInsertionPoint(function);
    auto type = LLVM::LLVMArrayType::get(code.getI64Type(), values.size());
    LLVM::GlobalOp::create(
        code, type, /*isConstant=*/true, LLVM::Linkage::Internal, name,
        code.getI64TensorAttr(values), /*alignment=*/8, space);
  }
  return LLVM::AddressOfOp::create(code, pointerTo(code.getContext(), space),
                                   name);
}

//===----------------------------------------------------------------------===//
// Blocks of several arrays
//===----------------------------------------------------------------------===//

/// Entry 0 is 0, entry i the number of blocks of the arrays before array i;
/// what pads the table comes after every block.
BlockTable::BlockTable(DeviceCode &code, DeviceKernel &kernel,
                       ArrayRef<int64_t> counts)
    : padded(llvm::bit_ceil(counts.size() + 1)) {
  SmallVector<int64_t> table = {0};
  for (int64_t count : counts)
    table.push_back(numBlocks += count);
  table.resize(padded, INT64_MAX);
  begins = kernel.constantTable(code, ".blocks", table);
}

std::pair<Value, Value> BlockTable::find(DeviceCode &code, Value block) const {
  // The last entry that is not above `block`.
  Type i64 = code.getI64Type();
  Value array = code.i64(0);
  for (int64_t step = padded / 2; step > 0; step /= 2) {
    Value next = code.add(array, step);
    Value isBeyond = code.less(block, code.load(i64, begins, next));
    array = code.select(isBeyond, array, next);
  }
  return {array, code.sub(block, code.load(i64, begins, array))};
}
