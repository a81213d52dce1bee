//===- Warp.cpp - Writing what the threads of a warp do ---------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Warp.h"
#include "AsyncCopies.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::cuda;

Warp::Warp(const Code &code, Value shared) : Code(code), shared(shared) {
  thread = NVVM::ThreadIdXOp::create(*this, getI32Type());
  lane = rem(thread, kWarpSize), warp = div(thread, kWarpSize);
  group = div(lane, 4), quad = rem(lane, 4);
}

Value Warp::blockIndex() {
  return NVVM::BlockIdXOp::create(*this, getI32Type());
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Value Warp::constant(Type type, int64_t value) {
  return arith::ConstantOp::create(*this, getIntegerAttr(type, value));
}
Value Warp::add(Value a, int64_t b) {
  return b == 0 ? a : add(a, constant(a.getType(), b));
}
Value Warp::mul(Value a, int64_t b) { return mul(a, constant(a.getType(), b)); }
Value Warp::div(Value a, Value b) {
  return arith::DivUIOp::create(*this, a, b);
}
Value Warp::div(Value a, int64_t b) { return div(a, constant(a.getType(), b)); }
Value Warp::rem(Value a, Value b) {
  return arith::RemUIOp::create(*this, a, b);
}
Value Warp::rem(Value a, int64_t b) { return rem(a, constant(a.getType(), b)); }
Value Warp::bits(Value a, int64_t mask) {
  return arith::AndIOp::create(*this, a, constant(a.getType(), mask));
}
Value Warp::both(Value a, Value b) {
  return arith::AndIOp::create(*this, a, b);
}
Value Warp::widen(Value a) {
  return arith::ExtUIOp::create(*this, getI64Type(), a);
}
Value Warp::isLess(Value a, Value b) {
  return arith::CmpIOp::create(*this, arith::CmpIPredicate::slt, a, b);
}
Value Warp::isLess(Value a, int64_t b) {
  return isLess(a, constant(a.getType(), b));
}
/// What would be below the normal numbers is zero: no instructions for that.
Value cuda::exp2(Warp &code, Value a) {
  return LLVM::CallIntrinsicOp::create(
             code, code.getF32Type(),
             code.getStringAttr("llvm.nvvm.ex2.approx.ftz.f32"), ValueRange(a))
      .getResult(0);
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

Warp::Values Warp::repeat(Value from, Value to, int64_t step,
                          ValueRange carried, Body body) {
  auto op = scf::ForOp::create(*this, from, to, constant(from.getType(), step),
                               carried);
  InsertionGuard guard(*this);
  // With nothing carried the loop comes with its terminator.
  if (carried.empty())
    setInsertionPoint(op.getBody()->getTerminator());
  else
    setInsertionPointToStart(op.getBody());
  Values next = body(op.getInductionVar(), op.getRegionIterArgs());
  if (!carried.empty())
    scf::YieldOp::create(*this, next);
  return Values(op.getResults());
}

Warp::Values Warp::choose(Value condition, function_ref<Values()> yes,
                          function_ref<Values()> no) {
  InsertionGuard guard(*this);
  // The regions are filled by this builder, wherever the op's own would be.
  auto fill = [this](function_ref<Values()> body) {
    return [this, body](OpBuilder &inner, Location) {
      restoreInsertionPoint(inner.saveInsertionPoint());
      scf::YieldOp::create(*this, body());
    };
  };
  OpBuilder outer(*this);
  auto op = scf::IfOp::create(outer, getLoc(), condition, fill(yes), fill(no));
  return Values(op.getResults());
}

//===----------------------------------------------------------------------===//
// Threads together
//===----------------------------------------------------------------------===//

void cuda::barrier(Warp &code) { NVVM::BarrierOp::create(code); }

void cuda::syncWarp(Warp &code) {
  NVVM::SyncWarpOp::create(code, code.i32(-1));
}

Value cuda::shuffleXor(Warp &code, Value value, int64_t lanes) {
  return NVVM::ShflOp::create(code, value.getType(), code.i32(-1), value,
                              code.i32(lanes), code.i32(31),
                              NVVM::ShflKind::bfly, UnitAttr());
}

Value cuda::reduceLanes(Warp &code, Value value, int64_t width,
                        function_ref<Value(Value, Value)> op) {
  for (int64_t distance = 1; distance < width; distance *= 2)
    value = op(value, shuffleXor(code, value, distance));
  return value;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static unsigned alignmentOf(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  unsigned bits = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  return bits / 8 * (vector ? vector.getNumElements() : 1);
}

Value cuda::toDevice(Warp &code, Value pointer) {
  auto type = LLVM::LLVMPointerType::get(code.getContext(), 1);
  if (pointer.getType() == type)
    return pointer;
  return LLVM::AddrSpaceCastOp::create(code, type, pointer);
}

Value cuda::loadDevice(Warp &code, Type type, Value base, Value offset) {
  Value from = code.address(base, getElementTypeOrSelf(type), offset);
  return LLVM::LoadOp::create(code, type, from, alignmentOf(type));
}

void cuda::storeDevice(Warp &code, Value value, Value base, Value offset) {
  Type type = value.getType();
  Value to = code.address(base, getElementTypeOrSelf(type), offset);
  LLVM::StoreOp::create(code, value, to, alignmentOf(type));
}

Value Warp::sharedAddress(Value offset) {
  return address(shared, getI8Type(), offset);
}

Value cuda::loadShared(Warp &code, Type type, Value offset) {
  return LLVM::LoadOp::create(code, type, code.sharedAddress(offset),
                              alignmentOf(type));
}

void cuda::storeShared(Warp &code, Value value, Value offset) {
  LLVM::StoreOp::create(code, value, code.sharedAddress(offset),
                        alignmentOf(value.getType()));
}

void cuda::copyVector(Warp &code, Value offset, Value from, Value valid) {
  copyAsync(code, code.sharedAddress(offset), from, /*bytes=*/16, valid);
}

//===----------------------------------------------------------------------===//
// Matrices
//===----------------------------------------------------------------------===//

Warp::Values cuda::loadMatrices(Warp &code, Value offset, bool transposed) {
  Type i32 = code.getI32Type();
  auto type =
      LLVM::LLVMStructType::getLiteral(code.getContext(), {i32, i32, i32, i32});
  Value loaded = NVVM::LdMatrixOp::create(
      code, type, code.sharedAddress(offset), 4,
      transposed ? NVVM::MMALayout::col : NVVM::MMALayout::row,
      NVVM::LdStMatrixShapeAttr::get(code.getContext(), 8, 8),
      NVVM::LdStMatrixEltType::B16);
  Warp::Values parts;
  for (int64_t i = 0; i < 4; ++i)
    parts.push_back(LLVM::ExtractValueOp::create(code, loaded, i));
  return parts;
}

Warp::Values cuda::multiply(Warp &code, ValueRange a, ValueRange b,
                            ValueRange c) {
  SmallVector<Type> four(4, code.getF32Type());
  auto type = LLVM::LLVMStructType::getLiteral(code.getContext(), four);
  Value mma = NVVM::MmaOp::create(
      code, type, a, b, c, {16, 8, 16}, std::nullopt, std::nullopt,
      std::array{NVVM::MMATypes::bf16, NVVM::MMATypes::bf16},
      std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
  Warp::Values parts;
  for (int64_t i = 0; i < 4; ++i)
    parts.push_back(LLVM::ExtractValueOp::create(code, mma, i));
  return parts;
}

Value cuda::pack(Warp &code, Value low, Value high) {
  auto pair = VectorType::get({2}, code.getF32Type());
  auto packed = VectorType::get({2}, code.getBF16Type());
  Value wide =
      vector::FromElementsOp::create(code, pair, ValueRange{low, high});
  Value narrow = arith::TruncFOp::create(code, packed, wide);
  return LLVM::BitcastOp::create(code, code.getI32Type(), narrow);
}
