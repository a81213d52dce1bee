//===- RowsTest.cpp - Structs of the interface as constants ---------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Target/Rows.h"

#include "llvm/IR/DataLayout.h"
#include "llvm/IR/LLVMContext.h"
#include <gtest/gtest.h>

using namespace reprise::target;

namespace {
class Rows : public testing::Test {
protected:
  /// The element of `row` that lies `offset` bytes from its beginning on
  /// x86-64.
  llvm::Constant *at(llvm::Constant *row, uint64_t offset) {
    llvm::DataLayout layout("e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-"
                            "i128:128-f80:128-n8:16:32:64-S128");
    const llvm::StructLayout *fields =
        layout.getStructLayout(llvm::cast<llvm::StructType>(row->getType()));
    unsigned index = fields->getElementContainingOffset(offset);
    EXPECT_EQ(fields->getElementOffset(index), offset);
    return row->getAggregateElement(index);
  }
  int64_t integerAt(llvm::Constant *row, uint64_t offset) {
    return llvm::cast<llvm::ConstantInt>(at(row, offset))->getSExtValue();
  }

  llvm::LLVMContext context;
  ConstantMaker constants{context};
};

using B = Fields<RepriseBuffer>;
using G = Fields<RepriseGemm>;
using L = Fields<RepriseLaunch>;
} // namespace

// What makes a field that is missing or given twice an error of the compiler.
static_assert(kTimesGiven<B::bytes, B::offset> == 0);
static_assert(kTimesGiven<B::bytes, B::bytes, B::offset> == 1);
static_assert(kTimesGiven<B::bytes, B::bytes, B::offset, B::bytes> == 2);
static_assert(kTimesGiven<B::bytes, Fields<RepriseCubin>::bytes> == 0);
static_assert(B::bytes::isGivenOnce<B::bytes, B::offset>());

// Tables and texts of another type are no values of a field.
static_assert(std::is_constructible_v<Fields<RepriseModel>::states,
                                      Typed<const RepriseState *>>);
static_assert(!std::is_constructible_v<Fields<RepriseModel>::states,
                                       Typed<const RepriseGemm *>>);
static_assert(!std::is_constructible_v<L::name, Typed<const int64_t *>>);

namespace {
struct Gap {
  int32_t narrow;
  int64_t wide;
};
template <typename T, size_t Offset>
struct Placed {
  using CType = T;
  static constexpr size_t kOffset = Offset;
};
} // namespace
static_assert(
    !hasNoGaps(FieldList<Gap, Placed<int32_t, 0>, Placed<int64_t, 8>>()));
static_assert(
    hasNoGaps(FieldList<Gap, Placed<int64_t, 0>, Placed<int64_t, 8>>()));

// Both are of eight bytes: nothing but their names tells them apart.
TEST_F(Rows, FieldsAreWhereTheStructHasThem) {
  Row<RepriseBuffer> row{constants, B::bytes(4), B::offset(64)};
  EXPECT_EQ(integerAt(row.constant, offsetof(RepriseBuffer, offset)), 64);
  EXPECT_EQ(integerAt(row.constant, offsetof(RepriseBuffer, bytes)), 4);
}

TEST_F(Rows, SeveralFieldsMayComeInATuple) {
  Row<RepriseLaunch> row{constants,
                         std::tuple{L::kind(1), L::callee(2),
                                    L::name(constants.null<const char *>())},
                         L::firstBuffer(3),
                         std::tuple{L::numBuffers(4), L::firstId(5)},
                         L::numIds(6),
                         L::tasks(7),
                         L::flops(8)};
  EXPECT_EQ(integerAt(row.constant, offsetof(RepriseLaunch, callee)), 2);
  EXPECT_EQ(integerAt(row.constant, offsetof(RepriseLaunch, firstId)), 5);
  EXPECT_EQ(integerAt(row.constant, offsetof(RepriseLaunch, flops)), 8);
}

TEST_F(Rows, FieldsHaveTheTypesOfTheStruct) {
  const int64_t batch[] = {2, 3}, strides[] = {-5, 1LL << 40};
  Row<RepriseGemm> row{constants,
                       G::groups(0),
                       G::gather(0),
                       G::slots(1),
                       G::places(0),
                       G::packedB(1),
                       G::epilogue(3),
                       G::typeC(0),
                       G::typeAB(1),
                       G::accumulate(0),
                       G::bias(1),
                       G::transposeB(0),
                       G::transposeA(1),
                       G::alpha(0.5),
                       G::strideC(strides),
                       G::strideB(batch),
                       G::strideA(strides),
                       G::batch(batch),
                       G::ldc(13),
                       G::ldb(12),
                       G::lda(11),
                       G::k(3),
                       G::n(2),
                       G::m(1LL << 33)};
  auto *type = llvm::cast<llvm::StructType>(row.constant->getType());
  EXPECT_EQ(integerAt(row.constant, offsetof(RepriseGemm, m)), 1LL << 33);
  EXPECT_EQ(integerAt(row.constant, offsetof(RepriseGemm, ldb)), 12);
  EXPECT_EQ(integerAt(row.constant, offsetof(RepriseGemm, epilogue)), 3);
  EXPECT_TRUE(at(row.constant, offsetof(RepriseGemm, bias))
                  ->getType()
                  ->isIntegerTy(32));
  auto *alpha = llvm::cast<llvm::ConstantFP>(
      at(row.constant, offsetof(RepriseGemm, alpha)));
  EXPECT_TRUE(alpha->getType()->isFloatTy());
  EXPECT_EQ(alpha->getValueAPF().convertToFloat(), 0.5f);
  llvm::Constant *strideA = at(row.constant, offsetof(RepriseGemm, strideA));
  EXPECT_EQ(llvm::cast<llvm::ConstantInt>(strideA->getAggregateElement(0u))
                ->getSExtValue(),
            -5);
  EXPECT_EQ(type->getNumElements(), 23u);
}

// A version has all 32 bits of a hash.
TEST_F(Rows, NumbersWithoutASignKeepTheirHighestBit) {
  auto version = llvm::cast<llvm::ConstantInt>(
      constants.make<uint32_t>(0xFFFFFFFEu).constant);
  EXPECT_EQ(version->getZExtValue(), 0xFFFFFFFEu);
  auto word =
      llvm::cast<llvm::ConstantInt>(constants.make<int32_t>(-2).constant);
  EXPECT_EQ(word->getSExtValue(), -2);
}
