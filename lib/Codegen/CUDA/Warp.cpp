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
Value Warp::exp2(Value a) {
  return LLVM::CallIntrinsicOp::create(
             *this, getF32Type(), getStringAttr("llvm.nvvm.ex2.approx.ftz.f32"),
             ValueRange(a))
      .getResult(0);
}
Value Warp::toF32(Value a) {
  return a.getType().isF32() ? a
                             : arith::ExtFOp::create(*this, getF32Type(), a);
}
Value Warp::fromF32(Value a, Type type) {
  return type.isF32() ? a : arith::TruncFOp::create(*this, type, a);
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

void Warp::barrier() { NVVM::BarrierOp::create(*this); }

void Warp::syncWarp() { NVVM::SyncWarpOp::create(*this, i32(-1)); }

Value Warp::shuffleXor(Value value, int64_t lanes) {
  return NVVM::ShflOp::create(*this, value.getType(), i32(-1), value,
                              i32(lanes), i32(31), NVVM::ShflKind::bfly,
                              UnitAttr());
}

Value Warp::reduceLanes(Value value, int64_t width,
                        function_ref<Value(Value, Value)> op) {
  for (int64_t distance = 1; distance < width; distance *= 2)
    value = op(value, shuffleXor(value, distance));
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

Value Warp::toDevice(Value pointer) {
  auto type = LLVM::LLVMPointerType::get(getContext(), 1);
  if (pointer.getType() == type)
    return pointer;
  return LLVM::AddrSpaceCastOp::create(*this, type, pointer);
}

Value Warp::loadDevice(Type type, Value base, Value offset) {
  Value from = address(base, getElementTypeOrSelf(type), offset);
  return LLVM::LoadOp::create(*this, type, from, alignmentOf(type));
}

void Warp::storeDevice(Value value, Value base, Value offset) {
  Type type = value.getType();
  Value to = address(base, getElementTypeOrSelf(type), offset);
  LLVM::StoreOp::create(*this, value, to, alignmentOf(type));
}

Value Warp::sharedAddress(Value offset) {
  return address(shared, getI8Type(), offset);
}

Value Warp::loadShared(Type type, Value offset) {
  return LLVM::LoadOp::create(*this, type, sharedAddress(offset),
                              alignmentOf(type));
}

void Warp::storeShared(Value value, Value offset) {
  LLVM::StoreOp::create(*this, value, sharedAddress(offset),
                        alignmentOf(value.getType()));
}

void Warp::copyAsync(Value offset, Value from, Value valid) {
  cuda::copyAsync(*this, sharedAddress(offset), from, /*bytes=*/16, valid);
}

//===----------------------------------------------------------------------===//
// Matrices
//===----------------------------------------------------------------------===//

Warp::Values Warp::loadMatrices(Value offset, bool transposed) {
  Type i32 = getI32Type();
  auto type =
      LLVM::LLVMStructType::getLiteral(getContext(), {i32, i32, i32, i32});
  Value loaded = NVVM::LdMatrixOp::create(
      *this, type, sharedAddress(offset), 4,
      transposed ? NVVM::MMALayout::col : NVVM::MMALayout::row,
      NVVM::LdStMatrixShapeAttr::get(getContext(), 8, 8),
      NVVM::LdStMatrixEltType::B16);
  Values parts;
  for (int64_t i = 0; i < 4; ++i)
    parts.push_back(LLVM::ExtractValueOp::create(*this, loaded, i));
  return parts;
}

Warp::Values Warp::multiply(ValueRange a, ValueRange b, ValueRange c) {
  SmallVector<Type> four(4, getF32Type());
  auto type = LLVM::LLVMStructType::getLiteral(getContext(), four);
  Value product = NVVM::MmaOp::create(
      *this, type, a, b, c, {16, 8, 16}, std::nullopt, std::nullopt,
      std::array{NVVM::MMATypes::bf16, NVVM::MMATypes::bf16},
      std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
  Values parts;
  for (int64_t i = 0; i < 4; ++i)
    parts.push_back(LLVM::ExtractValueOp::create(*this, product, i));
  return parts;
}

Value Warp::pack(Value low, Value high) {
  auto pair = VectorType::get({2}, getF32Type());
  auto packed = VectorType::get({2}, getBF16Type());
  Value wide =
      vector::FromElementsOp::create(*this, pair, ValueRange{low, high});
  Value narrow = arith::TruncFOp::create(*this, packed, wide);
  return LLVM::BitcastOp::create(*this, getI32Type(), narrow);
}
