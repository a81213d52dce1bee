//===- RankTables.cpp - What Megatron would have on a rank, told ----------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ranks.h"
#include "TextTable.h"

using namespace reprise;
using namespace reprise::report;
namespace json = llvm::json;

using llvm::raw_ostream;
using llvm::SmallVector;
using remat::formatBytes;

/// Whether replays count at the peak of a rank; needs `plan.reference`.
static bool hasReplays(const Plan &plan) {
  return llvm::any_of(plan.reference->ranks, [](const megatron::Rank &rank) {
    return rank.replayBytes != 0;
  });
}

/// "a rank, one of 8 that share each layer and its positions, and one of 4 that
/// have other experts"
static std::string formatRank(const megatron::Parallelism &parallelism) {
  std::string text = "a rank";
  if (parallelism.tensor > 1) {
    text += ", one of " + std::to_string(parallelism.tensor) +
            " that share each layer";
    text += parallelism.sequence ? " and its positions" : "";
  }
  if (parallelism.experts > 1)
    text +=
        std::string(parallelism.tensor > 1 ? ", and one of " : ", one of ") +
        std::to_string(parallelism.experts) + " that have other experts";
  return text;
}

/// "46702792704 parameters, of which a token meets 12879925248"; empty without
/// experts.
static std::string formatModel(const Reference &reference) {
  if (!reference.model)
    return "";
  return std::to_string(reference.model->parameters) +
         " parameters, of which a token meets " +
         std::to_string(reference.model->activeParameters);
}

/// "18 bytes for each parameter that is trained, 2 of them its own, 4 of its
/// gradient and 12 of the optimizer"
static std::string formatStates(const megatron::Parallelism &parallelism) {
  int64_t ranks = parallelism.optimizerRanks,
          experts = parallelism.expertOptimizerRanks;
  std::string text = "18 bytes for each parameter that is trained, 2 of them "
                     "its own, 4 of its gradient and 12 of the optimizer";
  if (ranks > 1)
    text += ", which " + std::to_string(ranks) + " ranks share";
  if (experts != ranks)
    text += (ranks > 1 ? ", those of experts " : ", which of experts ") +
            (experts > 1 ? std::to_string(experts) + " ranks" : "none") +
            (ranks > 1 ? "" : " share");
  return text;
}

void report::printRanks(raw_ostream &os, const Plan &plan) {
  if (!plan.reference || plan.reference->ranks.empty())
    return;
  os << "\n";
  if (std::string model = formatModel(*plan.reference); !model.empty())
    printText(os, "the model has " + model);
  printText(os, "Megatron's accounting of " +
                    formatRank(plan.reference->parallelism) + ": " +
                    formatStates(plan.reference->parallelism) +
                    "; activations of micro-batches in flight" +
                    (hasReplays(plan) ? "; and what is replayed of one" : ""));
  using Kind = TextTable::Kind;
  SmallVector<TextTable::Column> columns = {{"stage", Kind::Number},
                                            {"parameters", Kind::Number},
                                            {"states", Kind::Number},
                                            {"activations", Kind::Number}};
  if (hasReplays(plan))
    columns.push_back({"replayed", Kind::Number});
  columns.push_back({"peak", Kind::Number});
  TextTable table(columns);
  for (auto [number, rank] : llvm::enumerate(plan.reference->ranks)) {
    TextTable::Line line = {
        std::to_string(number), std::to_string(rank.getParameters()),
        formatBytes(rank.getStateBytes()), formatBytes(rank.activationBytes)};
    if (hasReplays(plan))
      line.push_back(formatBytes(rank.replayBytes));
    line.push_back(formatBytes(rank.getPeakBytes()));
    table.add(std::move(line));
  }
  table.print(os);
}

void report::writeRanks(json::OStream &json, const Plan &plan) {
  if (const std::optional<ModelSize> &model = plan.reference->model) {
    json.attribute("parameters", model->parameters);
    json.attribute("active_parameters", model->activeParameters);
  }
  json.attributeArray("ranks", [&] {
    for (const megatron::Rank &rank : plan.reference->ranks)
      json.object([&] {
        json.attribute("parameters", rank.getParameters());
        json.attribute("parameter_bytes", rank.getParameterBytes());
        json.attribute("gradient_bytes", rank.getGradientBytes());
        json.attribute("optimizer_bytes", rank.getOptimizerBytes());
        json.attribute("activation_bytes", rank.activationBytes);
        json.attribute("replay_bytes", rank.replayBytes);
        json.attribute("peak_bytes", rank.getPeakBytes());
      });
  });
}

json::Value report::describeRanks(const Plan &plan) {
  if (!plan.reference || plan.reference->ranks.empty())
    return nullptr;
  json::Array rows;
  for (auto [number, rank] : llvm::enumerate(plan.reference->ranks)) {
    json::Object row{
        {"stage", std::to_string(number)},
        {"parameters", std::to_string(rank.getParameters())},
        {"own", formatBytes(rank.getParameterBytes())},
        {"gradients", formatBytes(rank.getGradientBytes())},
        {"optimizer", formatBytes(rank.getOptimizerBytes())},
        {"activations", formatBytes(rank.activationBytes)},
        {"peak", formatBytes(rank.getPeakBytes())},
    };
    if (hasReplays(plan))
      row["replayed"] = formatBytes(rank.replayBytes);
    rows.push_back(std::move(row));
  }
  return json::Object{{"who", formatRank(plan.reference->parallelism)},
                      {"states", formatStates(plan.reference->parallelism)},
                      {"model", formatModel(*plan.reference)},
                      {"replays", hasReplays(plan)},
                      {"rows", std::move(rows)}};
}
