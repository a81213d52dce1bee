//===- LinkClockTest.cpp - When ranks meet beside launches ----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Report/LinkClock.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Pipelines/Registration.h"
#include "reprise/Report/StepTime.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace reprise;
using namespace reprise::report;

/// A sum of two messages, which runs once, beside two gathers of one each.
static constexpr char kStep[] = R"mlir(
module {
  func.func private @work(%x: tensor<4xf32>) -> tensor<4xf32> attributes {rt.kernel} {
    return %x : tensor<4xf32>
  }
  func.func @step() attributes {nn.micro_batches = 3 : i64} {
    %a = rt.buffer at <device, 0> : memref<4xf32>
    %b = rt.buffer at <device, 64> : memref<8xf32>
    %w = rt.buffer at <device, 128> : memref<4xf32>
    rt.launch @work(%a) to(%a) {rt.name = "a"} : (memref<4xf32>, memref<4xf32>) -> ()
    rt.collective all_gather(%a) to(%b) over "tp" ranks 2 {rt.begun = 0 : i64, rt.name = "g"} : (memref<4xf32>, memref<8xf32>) -> ()
    rt.launch @work(%a) to(%a) {rt.name = "b"} : (memref<4xf32>, memref<4xf32>) -> ()
    rt.wait 0 for(%b) keeping(%a) to(%b) {rt.name = "g"} : (memref<8xf32>, memref<4xf32>, memref<8xf32>) -> ()
    rt.collective all_reduce(%a) to(%a) workspace(%w) over "dp" ranks 2 {rt.begun = 1 : i64, rt.once, rt.name = "s"} : (memref<4xf32>, memref<4xf32>, memref<4xf32>) -> ()
    rt.collective all_gather(%a) to(%b) over "tp" ranks 2 {rt.begun = 0 : i64, rt.name = "h"} : (memref<4xf32>, memref<8xf32>) -> ()
    rt.launch @work(%a) to(%a) {rt.name = "c"} : (memref<4xf32>, memref<4xf32>) -> ()
    rt.wait 0 for(%b) keeping(%a) to(%b) {rt.name = "h"} : (memref<8xf32>, memref<4xf32>, memref<8xf32>) -> ()
    rt.launch @work(%a) to(%a) {rt.name = "d"} : (memref<4xf32>, memref<4xf32>) -> ()
    rt.wait 1 for(%a) to(%a) workspace(%w) {rt.once, rt.name = "s"} : (memref<4xf32>, memref<4xf32>, memref<4xf32>) -> ()
    rt.update
    rt.launch @work(%a) to(%a) {rt.name = "e"} : (memref<4xf32>, memref<4xf32>) -> ()
    return
  }
}
)mlir";

namespace {
class LinkClockTest : public testing::Test {
protected:
  LinkClockTest() {
    DialectRegistry registry;
    registerDialects(registry);
    context.appendDialectRegistry(registry);
    module = parseSourceString<ModuleOp>(kStep, &context);
    // A second for each launch and each message.
    costs.gemmFlopsPerSecond = costs.pointwiseFlopsPerSecond = 1e30;
    costs.memoryBytesPerSecond = costs.linkBytesPerSecond = 1e30;
    costs.secondsPerLaunch = costs.secondsPerMessage = 1;
  }
  func::FuncOp step() {
    return module->lookupSymbol<func::FuncOp>(nn::kStepFunction);
  }
  std::vector<double> times(bool isLast) {
    std::vector<double> seconds;
    for (const PositionTime &time :
         timeMicroBatch(MemoryProfile(step(), /*begin=*/0), costs, isLast))
      seconds.push_back(time.seconds);
    return seconds;
  }
  double stepSeconds() {
    StepShape shape;
    shape.pipeline.microBatches = 3;
    shape.chunks = {0};
    LayerSeconds like;
    like[kBeforeLayers].update = 1;
    return getStepTime("", timeAsPlanned(step(), costs, like), shape)
        .getSeconds();
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  CostTable costs = CostTable::getCPU();
};
} // namespace

// On a GPU the gathers run beside launches, but in the last micro-batch the
// second one waits for the sum before it.
//
//   launches  a b c . . d e
//   link        g s s h
TEST_F(LinkClockTest, LinkIsInOrder) {
  ASSERT_TRUE(module);
  (*module)->setAttr(rt::kGemmWorkspaceAttr,
                     Builder(&context).getI64IntegerAttr(64));
  EXPECT_EQ(times(/*isLast=*/false),
            (std::vector<double>{1, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0}));
  EXPECT_EQ(times(/*isLast=*/true),
            (std::vector<double>{1, 0, 1, 0, 0, 0, 1, 2, 1, 0, 1}));
  EXPECT_EQ(stepSeconds(), 4 + 4 + 7);
}

// Processors do at the wait what is begun.
TEST_F(LinkClockTest, ProcessorsHideNothing) {
  ASSERT_TRUE(module);
  EXPECT_EQ(times(/*isLast=*/false),
            (std::vector<double>{1, 0, 1, 1, 0, 0, 1, 1, 1, 0, 0}));
  EXPECT_EQ(times(/*isLast=*/true),
            (std::vector<double>{1, 0, 1, 1, 0, 0, 1, 1, 1, 2, 1}));
  EXPECT_EQ(stepSeconds(), 6 + 6 + 9);
}
