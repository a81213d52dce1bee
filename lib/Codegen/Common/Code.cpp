//===- Code.cpp - Writing loops over vectors --------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Codegen/Common/Code.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace reprise::codegen;

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

/// The element in a lane where the even ones come first.
static int64_t elementOf(int64_t lane, int64_t lanes) {
  int64_t half = lanes / 2;
  return lane < half ? 2 * lane : 2 * (lane - half) + 1;
}

Value Code::scalar(Type type, double value) {
  TypedAttr attribute;
  if (isa<FloatType>(type))
    attribute = getFloatAttr(type, value);
  else
    attribute = getIntegerAttr(type, int64_t(value));
  return arith::ConstantOp::create(*this, attribute);
}

Value Code::i64(int64_t value) {
  return arith::ConstantOp::create(*this, getI64IntegerAttr(value));
}

Value Code::splat(Value scalar) {
  return vector::BroadcastOp::create(*this, lanesOf(scalar.getType()), scalar);
}

Value Code::iota(Type element) {
  SmallVector<Attribute> lanes;
  for (int64_t lane = 0; lane < this->lanes; ++lane)
    lanes.push_back(getIntegerAttr(
        element, evenFirst ? elementOf(lane, this->lanes) : lane));
  return arith::ConstantOp::create(
      *this, DenseElementsAttr::get(lanesOf(element), lanes));
}

Value Code::maskOf(int64_t count) {
  assert(!evenFirst && "what is left of a row is in its own order");
  SmallVector<bool> lanes(this->lanes, false);
  std::fill_n(lanes.begin(), count, true);
  return arith::ConstantOp::create(
      *this, DenseElementsAttr::get(lanesOf(getI1Type()), lanes));
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

static bool isFloat(Value value) {
  return isa<FloatType>(getElementTypeOrSelf(value));
}

Value Code::add(Value a, Value b) {
  if (isFloat(a))
    return arith::AddFOp::create(*this, a, b);
  return arith::AddIOp::create(*this, a, b);
}

Value Code::sub(Value a, Value b) {
  if (isFloat(a))
    return arith::SubFOp::create(*this, a, b);
  return arith::SubIOp::create(*this, a, b);
}

Value Code::mul(Value a, Value b) {
  if (isFloat(a))
    return arith::MulFOp::create(*this, a, b);
  return arith::MulIOp::create(*this, a, b);
}

Value Code::min(Value a, Value b) {
  return arith::MinSIOp::create(*this, a, b);
}

Value Code::fma(Value a, Value b, Value c) {
  return math::FmaOp::create(*this, a, b, c);
}

Value Code::max(Value a, Value b) {
  return arith::MaximumFOp::create(*this, a, b);
}

Value Code::exp(Value a) { return math::ExpOp::create(*this, a); }

Value Code::select(Value mask, Value a, Value b) {
  return arith::SelectOp::create(*this, mask, a, b);
}

Value Code::cast(Value a, Type type) {
  Type from = getElementTypeOrSelf(a), to = getElementTypeOrSelf(type);
  if (from == to)
    return a;
  if (from.isIndex() || to.isIndex())
    return arith::IndexCastOp::create(*this, type, a);
  if (from.getIntOrFloatBitWidth() < to.getIntOrFloatBitWidth())
    return arith::ExtSIOp::create(*this, type, a);
  return arith::TruncIOp::create(*this, type, a);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Buffers are aligned to their elements, and no better by themselves: rows may
/// start anywhere.
static unsigned alignmentOf(Type type, int64_t aligned) {
  Type element = getElementTypeOrSelf(type);
  if (isa<LLVM::LLVMPointerType>(element))
    return 8;
  unsigned bytes = (element.getIntOrFloatBitWidth() + 7) / 8;
  return isa<VectorType>(type) ? std::min<int64_t>(bytes * aligned, 16) : bytes;
}

Value Code::address(Value base, Type element, Value offset) {
  return LLVM::GEPOp::create(*this, base.getType(), element, base, offset);
}

/// What numbers in bf16 are on their way from and to memory: where a processor
/// knows nothing of them, LLVM takes vectors of them apart, and calls a
/// function for each.
static Type getStoredType(Type type) {
  if (!getElementTypeOrSelf(type).isBF16())
    return type;
  Type bits = IntegerType::get(type.getContext(), 16);
  auto vector = dyn_cast<VectorType>(type);
  return vector ? Type(vector.clone(bits)) : bits;
}

Value Code::load(Type type, Value base, Value offset, Value mask,
                 int64_t aligned, bool constant) {
  if (Type stored = getStoredType(type); stored != type)
    return arith::BitcastOp::create(
        *this, type, load(stored, base, offset, mask, aligned, constant));
  Value from = address(base, getElementTypeOrSelf(type), offset);
  unsigned alignment = alignmentOf(type, aligned);
  if (auto vector = dyn_cast<VectorType>(type); vector && evenFirst) {
    assert(!mask && "whole vectors alone have another order");
    return loadEvenFirst(vector, from, alignment, constant);
  }
  if (!mask)
    return LLVM::LoadOp::create(*this, type, from, alignment,
                                /*isVolatile=*/false, /*isNonTemporal=*/false,
                                /*isInvariant=*/constant);
  Value zero = arith::ConstantOp::create(*this, getZeroAttr(type));
  return LLVM::MaskedLoadOp::create(*this, type, from, mask, zero,
                                    getI32IntegerAttr(alignment), UnitAttr());
}

void Code::store(Value value, Value base, Value offset, Value mask,
                 int64_t aligned) {
  Type type = value.getType();
  if (Type stored = getStoredType(type); stored != type)
    return store(arith::BitcastOp::create(*this, stored, value), base, offset,
                 mask, aligned);
  Value to = address(base, getElementTypeOrSelf(type), offset);
  unsigned alignment = alignmentOf(type, aligned);
  if (isa<VectorType>(type) && evenFirst) {
    assert(!mask && "whole vectors alone have another order");
    LLVM::StoreOp::create(*this, orderFromEvenFirst(value), to, alignment);
    return;
  }
  if (mask)
    LLVM::MaskedStoreOp::create(*this, value, to, mask,
                                getI32IntegerAttr(alignment));
  else
    LLVM::StoreOp::create(*this, value, to, alignment);
}

/// Two lanes of 16 bits are the halves of one of these.
static VectorType getWords(VectorType type) {
  return VectorType::get(type.getNumElements() / 2,
                         IntegerType::get(type.getContext(), 32));
}

static Value splatOf(Code &code, VectorType type, int64_t value) {
  return arith::ConstantOp::create(
      code, DenseElementsAttr::get(
                type, code.getIntegerAttr(type.getElementType(), value)));
}

Value Code::inOrder(Value vector, int64_t first, int64_t count) {
  int64_t half = mlir::cast<VectorType>(vector.getType()).getNumElements() / 2;
  SmallVector<int64_t> lanes;
  for (int64_t element = first; element < first + count; ++element)
    lanes.push_back(element / 2 + element % 2 * half);
  return vector::ShuffleOp::create(*this, vector, vector, lanes);
}

Value Code::loadEvenFirst(VectorType type, Value from, unsigned alignment,
                          bool constant) {
  auto loadAs = [&](Type type) -> Value {
    return LLVM::LoadOp::create(*this, type, from, alignment,
                                /*isVolatile=*/false, /*isNonTemporal=*/false,
                                /*isInvariant=*/constant);
  };
  if (!type.getElementType().isInteger(16)) {
    SmallVector<int64_t> elements;
    for (int64_t lane = 0; lane < lanes; ++lane)
      elements.push_back(elementOf(lane, lanes));
    Value all = loadAs(type);
    return vector::ShuffleOp::create(*this, all, all, elements);
  }
  Value words = loadAs(getWords(type)),
        sixteen = splatOf(*this, getWords(type), 16);
  VectorType halves = getWords(type).clone(getI16Type());
  Value even = arith::TruncIOp::create(*this, halves, words);
  Value odd = arith::TruncIOp::create(
      *this, halves, arith::ShRUIOp::create(*this, words, sixteen));
  return vector::ShuffleOp::create(*this, even, odd,
                                   llvm::to_vector(llvm::seq(lanes)));
}

/// The halves of a vector of 16 bits as those of words.
Value Code::pairHalves(Value value) {
  VectorType words = getWords(mlir::cast<VectorType>(value.getType()));
  auto halfFrom = [&](int64_t first) -> Value {
    auto lanesOfHalf = llvm::to_vector(llvm::seq(first, first + lanes / 2));
    return arith::ExtUIOp::create(
        *this, words,
        vector::ShuffleOp::create(*this, value, value, lanesOfHalf));
  };
  Value sixteen = splatOf(*this, words, 16);
  Value odd = arith::ShLIOp::create(*this, halfFrom(lanes / 2), sixteen);
  return arith::OrIOp::create(*this, halfFrom(0), odd);
}

Value Code::orderFromEvenFirst(Value value) {
  Type element = mlir::cast<VectorType>(value.getType()).getElementType();
  return element.isInteger(16) ? pairHalves(value) : inOrder(value, 0, lanes);
}

void Code::streamPairs(Value value, Value base, Value offset) {
  assert(!evenFirst && "pairs have an order of their own");
  Value bits =
      arith::BitcastOp::create(*this, getStoredType(value.getType()), value);
  Value words = pairHalves(bits);
  stream(words, address(base, getI16Type(), offset), i64(0));
}

void Code::fence() {
  LLVM::CallIntrinsicOp::create(*this, getStringAttr("llvm.x86.sse.sfence"),
                                ValueRange());
}

void Code::stream(Value value, Value base, Value offset) {
  if (Type stored = getStoredType(value.getType()); stored != value.getType())
    value = arith::BitcastOp::create(*this, stored, value);
  auto type = mlir::cast<VectorType>(value.getType());
  Value to = address(base, type.getElementType(), offset);
  if (evenFirst)
    value = orderFromEvenFirst(value);
  constexpr unsigned kLine = 64;
  unsigned bytes = type.getNumElements() * type.getElementTypeBitWidth() / 8;
  LLVM::StoreOp::create(*this, value, to, std::min(bytes, kLine),
                        /*isVolatile=*/false, /*isNonTemporal=*/true);
}

void Code::prefetch(Value base, Type element, Value offset, int64_t bytes,
                    bool isWritten) {
  Value from = address(address(base, element, offset), getI8Type(), i64(bytes));
  LLVM::Prefetch::create(*this, from, /*rw=*/isWritten, /*hint=*/2,
                         /*cache=*/1);
}

Value Code::scratch(int64_t elements) {
  InsertionGuard guard(*this);
  Block *block = getInsertionBlock();
  auto function = block->getParent()->getParentOfType<LLVM::LLVMFuncOp>();
  setInsertionPointToStart(&function.getBody().front());
  Value count = LLVM::ConstantOp::create(*this, getI64IntegerAttr(elements));
  // A cache line, so that a vector never straddles two.
  return LLVM::AllocaOp::create(*this, LLVM::LLVMPointerType::get(getContext()),
                                getF32Type(), count, /*alignment=*/64);
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

SmallVector<Value> Code::loop(Value from, Value to, int64_t step,
                              ValueRange carried, Body body) {
  auto op = scf::ForOp::create(*this, from, to, i64(step), carried);
  InsertionGuard guard(*this);
  // With nothing carried the loop comes with its terminator.
  if (carried.empty())
    setInsertionPoint(op.getBody()->getTerminator());
  else
    setInsertionPointToStart(op.getBody());
  SmallVector<Value> results =
      body(op.getInductionVar(), op.getRegionIterArgs());
  if (!carried.empty())
    scf::YieldOp::create(*this, results);
  return SmallVector<Value>(op.getResults());
}

void Code::loop(Value from, Value to, int64_t step,
                function_ref<void(Value)> body) {
  loop(from, to, step, ValueRange(), [&](Value i, ValueRange) {
    body(i);
    return SmallVector<Value>();
  });
}

void Code::when(Value condition, function_ref<void()> body) {
  auto op = scf::IfOp::create(*this, condition, /*withElseRegion=*/false);
  InsertionGuard guard(*this);
  setInsertionPoint(op.thenYield());
  body();
}

void Code::when(Value condition, function_ref<void()> body,
                function_ref<void()> otherwise) {
  auto op = scf::IfOp::create(*this, condition, /*withElseRegion=*/true);
  InsertionGuard guard(*this);
  setInsertionPoint(op.thenYield());
  body();
  setInsertionPoint(op.elseYield());
  otherwise();
}

SmallVector<Value> Code::choose(Value condition,
                                function_ref<SmallVector<Value>()> body,
                                function_ref<SmallVector<Value>()> otherwise) {
  auto yield = [&](function_ref<SmallVector<Value>()> values) {
    return [this, values](OpBuilder &, Location) {
      scf::YieldOp::create(*this, values());
    };
  };
  auto op = scf::IfOp::create(*this, condition, yield(body), yield(otherwise));
  return SmallVector<Value>(op.getResults());
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

Value Code::reduce(ValueRange vectors,
                   function_ref<Value(Value, Value)> combine) {
  SmallVector<Value> sums(vectors);
  for (size_t half = kSumVectors / 2; half > 0; half /= 2)
    for (size_t v = 0; v < half && v + half < sums.size(); ++v)
      sums[v] = combine(sums[v], sums[v + half]);
  Value vector = sums.front();
  for (int64_t half = lanes / 2; half > 0; half /= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t lane = 0; lane < half; ++lane) {
      low.push_back(lane);
      high.push_back(lane + half);
    }
    vector = combine(vector::ShuffleOp::create(*this, vector, vector, low),
                     vector::ShuffleOp::create(*this, vector, vector, high));
  }
  return vector::ExtractOp::create(*this, vector, int64_t(0));
}

Value Code::sum(ValueRange vectors) {
  return reduce(vectors, [&](Value a, Value b) { return add(a, b); });
}
