//===- FactsTest.cpp - What ops of nn say about themselves ------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Interfaces/Facts.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace reprise;

namespace {
struct Facts : testing::Test {
  Facts() { context.loadDialect<func::FuncDialect, nn::NNDialect>(); }

  /// The only `Fact` of a function with `ops` on arguments of that name.
  template <typename Fact>
  Fact find(const std::string &ops) {
    module = parseSourceString<ModuleOp>(
        "func.func @f(%x: tensor<2x8x24xf32>, %w: tensor<24x96xf32>,"
        " %dy: tensor<2x8x96xf32>, %other: tensor<2x8x96xf32>,"
        " %ids: tensor<2x8xi32>, %rows: tensor<2x8xf32>) {" +
            ops + " return }",
        &context);
    Fact found;
    if (module)
      module->walk([&](Fact op) { found = op; });
    return found;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};
} // namespace

// A launch of many ops is named by what they say, since it is none of them.
TEST_F(Facts, EachOfManySaysHowTheyAreCalled) {
  unsigned count = 0;
  for (RegisteredOperationName name : context.getRegisteredOperations())
    if (name.hasTrait<nn::OneOfMany>()) {
      ++count;
      EXPECT_TRUE(name.hasInterface<InPlaceUpdate>())
          << name.getStringRef().str();
    }
  EXPECT_GE(count, 2u);
}

// What may be added to a sum in place goes on from it.
TEST_F(Facts, EachRunningSumCarriesItsSum) {
  auto sum = find<RunningSum>("%s = nn.accumulate %other, %dy"
                              " : tensor<2x8x96xf32>");
  ASSERT_TRUE(sum);
  auto carrier = dyn_cast<SumCarrier>(sum.getOperation());
  ASSERT_TRUE(carrier);
  EXPECT_EQ(carrier.getSumBefore(0), sum.getSum());
  sum.setSum(sum.getTerm());
  EXPECT_EQ(carrier.getSumBefore(0), sum.getTerm());
}

// A gradient is one of a layer with its own weight and cotangent.
TEST_F(Facts, GradientOfALayer) {
  std::string layer = "%y = nn.linear %x, %w in_out : (tensor<2x8x24xf32>,"
                      " tensor<24x96xf32>) -> tensor<2x8x96xf32>\n";
  auto gradient = find<GemmGradient>(
      layer + "%dx = nn.linear_backward_input %dy, %w in_out :"
              " (tensor<2x8x96xf32>, tensor<24x96xf32>) -> tensor<2x8x24xf32>");
  ASSERT_TRUE(gradient);
  Operation *linear = gradient->getPrevNode();
  Value cotangent = gradient->getOperand(0);
  EXPECT_FALSE(gradient.isOfWeight());
  EXPECT_TRUE(gradient.isGradientOf(linear, cotangent));
  EXPECT_FALSE(gradient.isGradientOf(linear, linear->getResult(0)));
  EXPECT_FALSE(gradient.isGradientOf(gradient, cotangent));
}

// The gradient of a loss counts the same classes.
TEST_F(Facts, GradientOfALoss) {
  std::string loss =
      "%l, %lse = nn.cross_entropy %dy, %ids classes 90 : (tensor<2x8x96xf32>,"
      " tensor<2x8xi32>) -> (tensor<2x8xf32>, tensor<2x8xf32>)\n"
      "%d = nn.cross_entropy_backward %dy, %ids, %lse, %rows classes ";
  std::string types = " : (tensor<2x8x96xf32>, tensor<2x8xi32>,"
                      " tensor<2x8xf32>, tensor<2x8xf32>)"
                      " -> tensor<2x8x96xf32>";
  auto own = find<LogitsLoss>(loss + "90" + types);
  ASSERT_TRUE(own);
  EXPECT_EQ(own.getClassesAttr().getInt(), 90);
  EXPECT_TRUE(own.isGradient(own->getNextNode()));
  EXPECT_FALSE(own.isGradient(nullptr));
  auto other = find<LogitsLoss>(loss + "91" + types);
  ASSERT_TRUE(other);
  EXPECT_FALSE(other.isGradient(other->getNextNode()));
}

// A row for each class of the table is a column of the logits.
TEST_F(Facts, ClassesOfALinear) {
  auto linear = find<ClassRows>(
      "%y = nn.linear %x, %w in_out : (tensor<2x8x24xf32>, tensor<24x96xf32>)"
      " -> tensor<2x8x96xf32>");
  ASSERT_TRUE(linear);
  std::vector<bool> columns;
  auto found = [&](Value, bool areColumns) { columns.push_back(areColumns); };
  // Classes are rows of a weight that is stored the other way round alone.
  EXPECT_FALSE(
      linear.followClasses(linear->getOperand(1), /*areColumns=*/false, found));
  EXPECT_EQ(columns, (std::vector<bool>{true, false}));
}
