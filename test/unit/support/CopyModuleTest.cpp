//===- CopyModuleTest.cpp - Modules in another context --------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Support/CopyModule.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>
#include <thread>

using namespace mlir;
using namespace reprise;

namespace {
/// Nested modules, as those of stages, and attributes whose order is kept.
constexpr const char *kText = R"(
module @whole attributes {b.second = [1, 2], a.first = dense<3.0> : tensor<4xf32>} {
  module @stage {
    func.func @step(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
      cf.br ^next(%y : tensor<4xf32>)
    ^next(%z: tensor<4xf32>):
      return %z : tensor<4xf32>
    }
  }
})";

class CopyModule : public testing::Test {
protected:
  CopyModule()
      : there(registry(), MLIRContext::Threading::DISABLED),
        here(registry(), MLIRContext::Threading::DISABLED),
        module(parseSourceString<ModuleOp>(kText, &there)) {}

  static DialectRegistry registry() {
    DialectRegistry registry;
    registry.insert<func::FuncDialect, cf::ControlFlowDialect>();
    return registry;
  }
  static std::string textOf(ModuleOp module) {
    std::string text;
    llvm::raw_string_ostream os(text);
    module.print(os);
    return text;
  }

  MLIRContext there, here;
  OwningOpRef<ModuleOp> module;
};
} // namespace

TEST_F(CopyModule, IsTheSameInTheOtherContext) {
  OwningOpRef<ModuleOp> copy = copyInto(here, *module);
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->getContext(), &here);
  EXPECT_EQ(textOf(*copy), textOf(*module));
  // Neither one hears of changes of the other.
  (*copy->getOps<ModuleOp>().begin()).erase();
  EXPECT_NE(textOf(*copy), textOf(*module));
  EXPECT_EQ(textOf(*module).find("@step") == std::string::npos, false);
}

TEST_F(CopyModule, LeavesLocationsBehind) {
  OwningOpRef<ModuleOp> copy = copyInto(here, *module);
  ASSERT_TRUE(copy);
  int numArguments = 0;
  copy->walk([&](Operation *op) {
    EXPECT_TRUE(isa<UnknownLoc>(op->getLoc()));
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments()) {
          EXPECT_TRUE(isa<UnknownLoc>(argument.getLoc()));
          ++numArguments;
        }
  });
  EXPECT_EQ(numArguments, 3); // Those of the second block, too.
  EXPECT_FALSE(isa<UnknownLoc>(module->getLoc()));
}

TEST_F(CopyModule, IsReadByThreadsAtOneTime) {
  FailureOr<std::string> bytes = writeModule(*module);
  ASSERT_TRUE(succeeded(bytes));
  std::vector<std::string> texts(4);
  std::vector<std::thread> threads;
  for (std::string &text : texts)
    threads.emplace_back([&] {
      MLIRContext own(registry(), MLIRContext::Threading::DISABLED);
      OwningOpRef<ModuleOp> copy = readModule(*bytes, own);
      text = copy ? textOf(*copy) : "none";
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const std::string &text : texts)
    EXPECT_EQ(text, textOf(*module));
}

TEST_F(CopyModule, IsNoneOfOtherBytes) {
  FailureOr<std::string> bytes = writeModule(*module);
  ASSERT_TRUE(succeeded(bytes));
  ScopedDiagnosticHandler silent(&here, [](Diagnostic &) { return success(); });
  EXPECT_FALSE(readModule(StringRef(*bytes).drop_back(8), here));
}
