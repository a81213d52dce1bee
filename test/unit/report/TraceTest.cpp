//===- TraceTest.cpp - The timeline is one that viewers read ----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Pipelines/Pipelines.h"
#include "reprise/Pipelines/Registration.h"
#include "reprise/Report/Plan.h"
#include "llvm/Support/JSON.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace mlir;
using namespace reprise;

/// Three pointwise ops of a layer, one of them decided by hand, and what reads
/// them in backward.
static constexpr char kStep[] = R"mlir(
func.func @step(%x: tensor<16xf32> {nn.parameter = #nn.parameter<name = "x", init = ones>}) -> tensor<16xf32> {
  %u = nn.gelu %x tanh {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "u">, remat.decision = #remat.recompute<segment = 0, label = "hand">} : tensor<16xf32>
  %g = nn.gelu %u tanh {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "g">} : tensor<16xf32>
  %y = nn.gelu %g tanh {nn.scope = #nn.scope<layer = 1, module = "mlp", value = "y">} : tensor<16xf32>
  nn.backward
  %dy = nn.gelu_backward %g, %y tanh {nn.scope = #nn.scope<layer = 1, module = "mlp", value = "y">} : tensor<16xf32>
  %dg = nn.gelu_backward %u, %dy tanh {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "g">} : tensor<16xf32>
  return %dg : tensor<16xf32>
}
)mlir";

/// Nanoseconds; the format counts in microseconds.
static int64_t getTime(const llvm::json::Object &event, llvm::StringRef key) {
  return std::llround(*event.getNumber(key) * 1e3);
}

TEST(Trace, SlicesNestAndTheCounterReachesThePeak) {
  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry);
  auto module = parseSourceString<ModuleOp>(kStep, &context);
  ASSERT_TRUE(module);
  auto run = [&](Phase from, Phase to) {
    PassManager manager(&context);
    buildPipeline(manager, from, to, RecomputeOptions());
    return manager.run(*module);
  };
  ASSERT_TRUE(succeeded(run(Phase::Joint, Phase::Remat)));
  auto plan = report::readDecisions(
      module->lookupSymbol<func::FuncOp>(nn::kStepFunction),
      CostTable::getCPU());
  ASSERT_TRUE(succeeded(plan));
  ASSERT_TRUE(succeeded(run(Phase::Remat, Phase::RT)));
  ASSERT_TRUE(succeeded(report::readSchedule(*plan, *module)));
  std::string text;
  llvm::raw_string_ostream os(text);
  plan->writeTrace(os);

  llvm::Expected<llvm::json::Value> trace = llvm::json::parse(text);
  ASSERT_TRUE(bool(trace)) << llvm::toString(trace.takeError());
  const auto *events = trace->getAsObject()->getArray("traceEvents");
  ASSERT_NE(events, nullptr);
  std::vector<std::pair<int64_t, int64_t>> slices; // Begin, end.
  std::vector<std::string> names;
  int64_t most = 0;
  for (const llvm::json::Value &value : *events) {
    const llvm::json::Object &event = *value.getAsObject();
    if (event.getString("ph") == "C")
      most = std::max(most, *event.getObject("args")->getInteger("bytes"));
    if (event.getString("ph") != "X")
      continue;
    int64_t begin = getTime(event, "ts");
    slices.push_back({begin, begin + getTime(event, "dur")});
    names.push_back(event.getString("name")->str());
  }
  EXPECT_EQ(most, plan->memory->arenaBytes);
  // The forward pass is one launch, named after its last op.
  EXPECT_EQ(names,
            std::vector<std::string>(
                {"forward", "backward", "layer1 forward", "layer1 backward",
                 "layer0 backward", "layer1/mlp/y", "layer1/mlp/y/backward",
                 "layer0/mlp/u@replay", "layer0/mlp/g/backward"}));
  for (auto [begin, end] : slices) {
    EXPECT_LT(begin, end);
    for (auto [otherBegin, otherEnd] : slices) {
      bool isApart = otherEnd <= begin || end <= otherBegin;
      bool isInside = otherBegin <= begin && end <= otherEnd;
      bool isAround = begin <= otherBegin && otherEnd <= end;
      EXPECT_TRUE(isApart || isInside || isAround)
          << begin << " to " << end << " crosses " << otherBegin << " to "
          << otherEnd;
    }
  }
}
