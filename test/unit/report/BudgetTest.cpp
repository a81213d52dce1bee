//===- BudgetTest.cpp - What reports say of a budget ----------------------===//
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
#include <gtest/gtest.h>

using namespace mlir;
using namespace reprise;

/// Two pointwise ops, the first of them decided by hand.
static constexpr char kStep[] = R"mlir(
func.func @step(%x: tensor<1024xf32> {nn.parameter = #nn.parameter<name = "x", init = ones>}) -> tensor<1024xf32> {
  %u = nn.gelu %x tanh {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "u">, remat.decision = #remat.recompute<segment = 0, label = "budget">} : tensor<1024xf32>
  %y = nn.gelu %u tanh {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "y">} : tensor<1024xf32>
  nn.backward
  %dy = nn.gelu_backward %u, %y tanh {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "y">} : tensor<1024xf32>
  return %dy : tensor<1024xf32>
}
)mlir";

namespace {
class BudgetReport : public testing::Test {
protected:
  void SetUp() override {
    DialectRegistry registry;
    registerDialects(registry);
    context.appendDialectRegistry(registry);
    auto module = parseSourceString<ModuleOp>(kStep, &context);
    ASSERT_TRUE(module);
    auto run = [&](Phase from, Phase to) {
      PassManager manager(&context);
      buildPipeline(manager, from, to, RecomputeOptions());
      return manager.run(*module);
    };
    ASSERT_TRUE(succeeded(run(Phase::Joint, Phase::Remat)));
    CostTable costs = CostTable::getCPU();
    costs.measured["gelu_1024_2"] = 0.5;
    auto read = report::readDecisions(
        module->lookupSymbol<func::FuncOp>(nn::kStepFunction), costs);
    ASSERT_TRUE(succeeded(read));
    ASSERT_TRUE(succeeded(run(Phase::Remat, Phase::RT)));
    plan = std::move(*read);
    ASSERT_TRUE(succeeded(report::readSchedule(plan, *module)));
    plan.stepSeconds = 2;

    report::Budget budget;
    budget.bytes = 3LL << 30;
    budget.peakBytes = 5LL << 29;
    budget.replaySeconds = 0.5;
    budget.boundSeconds = 0.498;
    budget.secondsPerByte = 0.3 / (1 << 30);
    budget.curve = {
        {1LL << 30, 1.0}, {2LL << 30, 0.75}, {5LL << 29, 0.5}, {5LL << 30, 0}};
    budget.scenarios = {{"GEMMs 20 % slower", 0.6, 0.6},
                        {"attention 20 % faster", 0.5, 0.49}};
    budget.rivals = {{"full block 1", "reprisec x -o train", 2LL << 30, 0.8}};
    plan.budget = budget;
  }

  std::string explain() const {
    std::string text;
    llvm::raw_string_ostream os(text);
    plan.explain(os);
    return text;
  }
  std::string getPage() const {
    std::string text;
    llvm::raw_string_ostream os(text);
    plan.writePage(os, {});
    return text;
  }

  MLIRContext context;
  report::Plan plan;
};
} // namespace

static void expectText(const std::string &text, const char *part) {
  EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST_F(BudgetReport, ExplainsUseBoundPriceAndRegret) {
  std::string text = explain();
  expectText(
      text, "budget: 2.5 GiB of 3.0 GiB in all\n  replays 500.00 ms, 25 % of a "
            "step; any plan at least 498.00 ms, gap 0.1 % of a "
            "step\nprice of memory: 300.00 ms per GiB\n");
  expectText(text, "regret: with attention 20 % faster another plan would save "
                   "10.00 ms, 0.5 % of a step\n");
  expectText(text, "within the same budget: full block 1, peak 2.0 GiB, "
                   "replays 800.00 ms, 40 % of a step\n");
  plan.budget->scenarios.pop_back();
  plan.budget->scenarios[0].bestSeconds -= 1e-16;
  plan.budget->isOfActivations = true;
  text = explain();
  expectText(text, "regret: the same plan is chosen, or one as good, with "
                   "costs 20 % up or down\n");
  expectText(text, "2.5 GiB of 3.0 GiB for activations\n");
  plan.budget.reset();
  EXPECT_EQ(explain().find("budget: 2.5"), std::string::npos);
}

/// An op of 0.5 s for 4096 bytes.
TEST_F(BudgetReport, DecisionsHaveAPrice) {
  EXPECT_EQ(plan.measured.size(), 1u);
  expectText(explain(), "1.5 days\n");
  expectText(getPage(), "1.5 days</td>");
  std::string text;
  llvm::raw_string_ostream os(text);
  plan.writeJSON(os);
  expectText(text, "\"seconds_per_byte\":0.0001220703125");
  plan.budget.reset();
  EXPECT_EQ(explain().find("per GiB"), std::string::npos);
  EXPECT_EQ(getPage().find("price"), std::string::npos);
}

TEST_F(BudgetReport, JSONHasTheCurve) {
  std::string text;
  llvm::raw_string_ostream os(text);
  plan.writeJSON(os);
  llvm::Expected<llvm::json::Value> json = llvm::json::parse(text);
  ASSERT_TRUE(bool(json)) << llvm::toString(json.takeError());
  const llvm::json::Object *budget = json->getAsObject()->getObject("budget");
  ASSERT_TRUE(budget);
  EXPECT_EQ(budget->getString("kind"), "memory");
  EXPECT_EQ(budget->getInteger("bytes"), 3LL << 30);
  EXPECT_EQ(budget->getNumber("lower_bound_seconds"), 0.498);
  const llvm::json::Array &curve = *budget->getArray("curve");
  ASSERT_EQ(curve.size(), 4u);
  EXPECT_EQ(curve[1].getAsObject()->getInteger("peak_bytes"), 2LL << 30);
  EXPECT_EQ(budget->getArray("scenarios")->size(), 2u);
  EXPECT_EQ(budget->getArray("rivals")->size(), 1u);

  // Without a budget the curve is there all the same.
  plan.budget->bytes = 0;
  text.clear();
  plan.writeJSON(os);
  EXPECT_EQ(text.find("\"bytes\":0"), std::string::npos);
  expectText(text, "\"curve\":[{");
}

/// From 1 to 5 GiB, so that a GiB is 250 wide; a second is 300 high.
TEST_F(BudgetReport, PageDrawsStairsBoundAndBudget) {
  std::string page = getPage();
  expectText(page, "<path d=\"M0.00 0.00H250.00V75.00H375.00V150.00H1000.00"
                   "V300.00\"/>");
  // 0.498 s with 3 GiB, and with less.
  expectText(page, "<path class=\"bound\" d=\"M0.00 150.60L500.00 150.60\"/>");
  expectText(page, "<div class=\"peak\" style=\"left:50.00%\">");
  expectText(page, "style=\"left:37.50%;bottom:50.00%\" title=\"2.5 GiB of 3.0 "
                   "GiB in all, 500.00 ms\"");
  expectText(page,
             "style=\"left:25.00%;bottom:80.00%\" title=\"full block 1\"");
  plan.budget->bytes = 0;
  page = getPage();
  EXPECT_EQ(page.find("price of memory"), std::string::npos);
  expectText(page, "<h2>Every budget</h2>");
  plan.budget.reset();
  EXPECT_EQ(getPage().find("Every budget"), std::string::npos);
}
