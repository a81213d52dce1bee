//===- ScheduledOpTest.cpp - What ops of a schedule touch -------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Dialect/RT/ScheduledOp.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Parser/Parser.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace reprise;

namespace {
/// A module whose function @f has one op of a schedule.
struct Scheduled : testing::Test {
  Scheduled() { context.loadDialect<func::FuncDialect, rt::RTDialect>(); }

  rt::ScheduledOp parse(const char *text) {
    module = parseSourceString<ModuleOp>(text, &context);
    rt::ScheduledOp found;
    if (module)
      module->walk([&](rt::ScheduledOp op) { found = op; });
    return found;
  }
  /// The numbers of arguments of @f that `values` are.
  static std::vector<unsigned> getArguments(ArrayRef<Value> values) {
    std::vector<unsigned> numbers;
    for (Value value : values)
      numbers.push_back(cast<BlockArgument>(value).getArgNumber());
    return numbers;
  }
  std::vector<std::tuple<unsigned, int64_t, bool>>
  getSharing(rt::ScheduledOp op) {
    SymbolTable symbols(*module);
    std::vector<std::tuple<unsigned, int64_t, bool>> all;
    FailureOr<SmallVector<rt::Sharing>> sharing = op.getSharing(symbols);
    EXPECT_TRUE(succeeded(sharing));
    for (rt::Sharing pair : *sharing)
      all.emplace_back(pair.read, pair.write, pair.isForced);
    return all;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};
using Numbers = std::vector<unsigned>;
using Pairs = std::vector<std::tuple<unsigned, int64_t, bool>>;
} // namespace

/// What is forced comes first.
TEST_F(Scheduled, LaunchOnTensors) {
  rt::ScheduledOp op = parse(R"(
    func.func private @k(%a: tensor<4xf32> {rt.may_alias = 1 : i64},
                         %b: tensor<4xf32> {rt.in_place = 0 : i64})
        -> (tensor<4xf32>, tensor<4xf32>) attributes {rt.kernel} {
      return %b, %a : tensor<4xf32>, tensor<4xf32>
    }
    func.func @f(%a: tensor<4xf32>, %b: tensor<4xf32>) {
      %c:2 = rt.launch @k(%a, %b)
        : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
      return
    })");
  ASSERT_TRUE(op);
  EXPECT_EQ(getArguments(op.getReads()), Numbers({0, 1}));
  EXPECT_EQ(op.getWrites(), SmallVector<Value>(op->getResults()));
  EXPECT_EQ(getSharing(op), Pairs({{1, 0, true}, {0, 1, false}}));
  EXPECT_EQ(op.getWorkspaceBytes(), 0);
  Block *fused = op.getFusedOps(SymbolTable(*module));
  ASSERT_TRUE(fused);
  EXPECT_EQ(fused->getOperations().size(), 1u);
}

TEST_F(Scheduled, LaunchOnBuffers) {
  rt::ScheduledOp op = parse(R"(
    func.func private @k(memref<?xi64>) attributes {rt.kernel, rt.tasks = 1}
    func.func @f(%a: memref<4xf32>, %b: memref<4xf32>) {
      rt.launch @k(%a) to (%b) : (memref<4xf32>, memref<4xf32>) -> ()
      return
    })");
  ASSERT_TRUE(op);
  EXPECT_EQ(getArguments(op.getReads()), Numbers({0}));
  EXPECT_EQ(getArguments(op.getWrites()), Numbers({1}));
  EXPECT_FALSE(op.addsTo(0));
  EXPECT_FALSE(op.getWorkspaceBuffer());
  // An emitted kernel says nothing of what it shares.
  EXPECT_TRUE(failed(op.getSharing(SymbolTable(*module))));
}

TEST_F(Scheduled, GemmOnTensors) {
  rt::ScheduledOp op = parse(R"(
    func.func @f(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>, %c: tensor<4xf32>, %d: tensor<4x4xf32>) {
      %y = rt.gemm %a, %b bias(%c) addend(%d) m 4 n 4 k 4 lda 4 ldb 4 ldc 4
        : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      return
    })");
  ASSERT_TRUE(op);
  EXPECT_EQ(getArguments(op.getReads()), Numbers({0, 1, 2, 3}));
  EXPECT_EQ(op.getWrites(), SmallVector<Value>(op->getResults()));
  EXPECT_EQ(getSharing(op), Pairs({{3, 0, true}}));
  EXPECT_EQ(op.getWorkspaceBytes(), 896);
  EXPECT_FALSE(op.addsTo(0));
  EXPECT_FALSE(op.getFusedOps(SymbolTable(*module)));
}

/// On buffers there is no addend: what is in the output is added to.
TEST_F(Scheduled, GemmOnBuffers) {
  rt::ScheduledOp op = parse(R"(
    func.func @f(%a: memref<4x4xf32>, %b: memref<4x4xf32>, %c: memref<4x4xf32>, %s: memref<224xf32>) {
      rt.gemm %a, %b to (%c) workspace(%s) accumulate m 4 n 4 k 4 lda 4 ldb 4 ldc 4
        : (memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32>, memref<224xf32>) -> ()
      return
    })");
  ASSERT_TRUE(op);
  EXPECT_EQ(getArguments(op.getReads()), Numbers({0, 1}));
  EXPECT_EQ(getArguments(op.getWrites()), Numbers({2}));
  EXPECT_TRUE(op.addsTo(0));
  EXPECT_EQ(getArguments(op.getWorkspaceBuffer()), Numbers({3}));
}
