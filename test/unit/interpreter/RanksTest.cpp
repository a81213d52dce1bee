//===- RanksTest.cpp - Many ranks compute what one does ---------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A model's whole step on one rank, and on the ranks of a mesh behind the
// passes that share it among them: each part that a rank has of a result must
// be that part of the one rank's.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "python-free-frontend/Frontend.h"
#include "reprise/Autodiff/Passes.h"
#include "reprise/Dialect/NN/Axes.h"
#include "reprise/Interfaces/ExpertRounds.h"
#include "reprise/Interpreter/Interpreter.h"
#include "reprise/Partition/Passes.h"
#include "llvm/Support/SourceMgr.h"
#include "gtest/gtest.h"
#include <cmath>
#include <fstream>
#include <map>
#include <random>

using namespace mlir;
using namespace reprise;
using interpreter::Ranks;
using interpreter::Tensor;

namespace {
const char *const kTrain = R"(train:
  seq_length: 12
  micro_batch_size: 3
  lr: 1e-3
  train_iters: 10
)";

const char *const kGPT2 = R"(model:
  model_type: gpt2
  vocab_size: 28
  n_positions: 15
  n_embd: 20
  n_layer: 2
  n_head: 4
  n_inner: 36
)";
/// A vocabulary that no number of ranks divides.
const char *const kOddGPT2 = R"(model:
  model_type: gpt2
  vocab_size: 29
  n_positions: 15
  n_embd: 20
  n_layer: 1
  n_head: 4
  n_inner: 36
)";
/// Two blocks of shares for the MLP, three for the table.
const char *const kWide = R"(model:
  model_type: gpt2
  vocab_size: 1701
  n_positions: 15
  n_embd: 20
  n_layer: 1
  n_head: 4
  n_inner: 1000
)";
const char *const kNoDropout = R"(  embd_pdrop: 0.0
  attn_pdrop: 0.0
  resid_pdrop: 0.0
)";
const char *const kUntied = R"(  tie_word_embeddings: false
)";
/// Norms of heads, and fewer heads of keys.
const std::string kQwen3 = R"(model:
  model_type: qwen3
  vocab_size: 36
  max_position_embeddings: 16
  hidden_size: 20
  intermediate_size: 28
  num_hidden_layers: 2
  num_attention_heads: 8
  head_dim: 6
)";
const std::string kFourKeys = "  num_key_value_heads: 4\n";
/// Fewer heads of keys than ranks.
const std::string kTwoKeys = "  num_key_value_heads: 2\n";
const std::string kOneKey = "  num_key_value_heads: 1\n";
/// Biases of queries, keys and values alone.
const std::string kQwen2 = R"(model:
  model_type: qwen2
  vocab_size: 20
  max_position_embeddings: 16
  hidden_size: 24
  intermediate_size: 20
  num_hidden_layers: 1
  num_attention_heads: 4
)";

/// Experts in every layer.
const std::string kMixtral = R"(model:
  model_type: mixtral
  vocab_size: 28
  max_position_embeddings: 16
  hidden_size: 24
  intermediate_size: 12
  num_hidden_layers: 2
  num_attention_heads: 4
  num_key_value_heads: 2
  num_local_experts: 4
)";
/// Latent attention; experts of groups, and one that all tokens share, behind a
/// layer without.
const std::string kDeepSeek = R"(model:
  model_type: deepseek_v3
  vocab_size: 28
  max_position_embeddings: 16
  hidden_size: 20
  intermediate_size: 28
  num_hidden_layers: 2
  num_attention_heads: 4
  q_lora_rank: 14
  kv_lora_rank: 11
  qk_nope_head_dim: 5
  qk_rope_head_dim: 4
  v_head_dim: 7
  n_routed_experts: 8
  num_experts_per_tok: 3
  moe_intermediate_size: 6
  first_k_dense_replace: 1
  n_group: 4
  topk_group: 2
)";
/// Experts whose states have three blocks of shares.
const std::string kWideExperts = R"(model:
  model_type: mixtral
  vocab_size: 28
  max_position_embeddings: 16
  hidden_size: 20
  intermediate_size: 900
  num_hidden_layers: 1
  num_attention_heads: 2
  num_local_experts: 4
)";

struct Case {
  const char *name;
  std::string model;
  const char *attention;
  int64_t data, tensor; ///< ranks along `dp` and `tp`
  bool isSequenceParallel;
  bool hasShares = false;
  /// Ranks of those along `dp` that have other experts, each all or a part.
  int64_t experts = 1;
  /// Experts are not shared along `tp`: `experts` are among ranks of both axes.
  bool hasWholeExperts = false;
  int64_t expertRows = 0; ///< of a round; 0: there is one of all
};

const Case kCases[] = {
    {"gpt2_2", std::string(kGPT2) + kNoDropout, "flash", 1, 2, false},
    {"gpt2_4_sequence", std::string(kGPT2) + kNoDropout, "flash", 1, 4, true},
    {"gpt2_2_sequence_unfused", std::string(kGPT2) + kNoDropout, "unfused", 1,
     2, true},
    {"gpt2_untied_4_unfused", std::string(kGPT2) + kNoDropout + kUntied,
     "unfused", 1, 4, false},
    {"gpt2_2_dropout", kGPT2, "flash", 1, 2, false},
    {"gpt2_4_sequence_dropout", kGPT2, "unfused", 1, 4, true},
    {"gpt2_data_2_of_2_sequence_dropout", kGPT2, "flash", 2, 2, true},
    {"gpt2_odd_2", std::string(kOddGPT2) + kNoDropout, "flash", 1, 2, false},
    {"gpt2_odd_untied_4_sequence", std::string(kOddGPT2) + kUntied, "flash", 1,
     4, true},
    {"gpt2_data_2", std::string(kGPT2) + kNoDropout, "flash", 2, 1, false},
    {"gpt2_data_3_of_2_sequence", std::string(kGPT2) + kNoDropout, "flash", 3,
     2, true},
    {"gpt2_data_2_of_2_shares", kGPT2, "flash", 2, 2, true, true},
    {"wide_data_3_shares", kWide, "flash", 3, 1, false, true},
    {"qwen3_2", kQwen3 + kFourKeys, "flash", 1, 2, false},
    {"qwen3_2_sequence", kQwen3 + kFourKeys, "flash", 1, 2, true},
    {"qwen3_4", kQwen3 + kFourKeys, "unfused", 1, 4, false},
    {"qwen3_4_sequence", kQwen3 + kFourKeys, "flash", 1, 4, true},
    {"qwen3_data_2_of_4_sequence", kQwen3 + kFourKeys, "unfused", 2, 4, true},
    {"qwen3_4_two_keys", kQwen3 + kTwoKeys, "flash", 1, 4, false},
    {"qwen3_4_two_keys_sequence", kQwen3 + kTwoKeys, "unfused", 1, 4, true},
    {"qwen3_data_2_of_4_two_keys_sequence", kQwen3 + kTwoKeys, "flash", 2, 4,
     true},
    {"qwen3_4_one_key", kQwen3 + kOneKey, "unfused", 1, 4, false},
    {"qwen3_4_one_key_sequence", kQwen3 + kOneKey, "flash", 1, 4, true},
    {"qwen2_2", kQwen2 + kFourKeys, "flash", 1, 2, false},
    {"qwen2_4_two_keys_sequence", kQwen2 + kTwoKeys, "flash", 1, 4, true},
    {"qwen2_tied_4_sequence",
     kQwen2 + kFourKeys + "  tie_word_embeddings: true\n", "flash", 1, 4, true},
    {"mixtral_2", kMixtral, "flash", 1, 2, false},
    {"mixtral_4_sequence", kMixtral, "unfused", 1, 4, true},
    {"deepseek_2", kDeepSeek, "flash", 1, 2, false},
    {"deepseek_data_2_of_2_sequence", kDeepSeek, "flash", 2, 2, true},
    {"mixtral_data_2_experts_2", kMixtral, "flash", 2, 1, false, false, 2},
    {"mixtral_data_4_experts_2", kMixtral, "flash", 4, 1, false, false, 2},
    {"deepseek_data_4_experts_4", kDeepSeek, "flash", 4, 1, false, false, 4},
    {"deepseek_data_4_experts_2_shares", kDeepSeek, "unfused", 4, 1, false,
     true, 2},
    {"wide_experts_data_4_experts_2_shares", kWideExperts, "flash", 4, 1, false,
     true, 2},
    {"mixtral_2_sequence_experts_2", kMixtral, "flash", 1, 2, true, false, 2,
     true},
    {"mixtral_2_experts_2", kMixtral, "flash", 1, 2, false, false, 2, true},
    {"mixtral_4_sequence_experts_2", kMixtral, "unfused", 1, 4, true, false, 2,
     true},
    {"mixtral_2_sequence_whole_experts", kMixtral, "flash", 1, 2, true, false,
     1, true},
    {"deepseek_data_2_of_2_sequence_experts_4", kDeepSeek, "flash", 2, 2, true,
     false, 4, true},
    {"deepseek_data_2_of_2_sequence_experts_2_shares", kDeepSeek, "flash", 2, 2,
     true, true, 2, true},
    {"deepseek_data_2_of_2_sequence_whole_experts_shares", kDeepSeek, "flash",
     2, 2, true, true, 1, true},
    {"wide_experts_data_2_of_2_sequence_experts_2_shares", kWideExperts,
     "flash", 2, 2, true, true, 2, true},
    {"mixtral_4_sequence_experts_2_shares", kMixtral, "flash", 1, 4, true, true,
     2, true},
    {"mixtral_data_2_of_2_parts_of_experts_2", kMixtral, "flash", 2, 2, false,
     false, 2},
    {"deepseek_data_4_of_2_sequence_parts_of_experts_2_shares", kDeepSeek,
     "unfused", 4, 2, true, true, 2},
    {"wide_experts_data_4_of_2_sequence_parts_of_experts_2_shares",
     kWideExperts, "flash", 4, 2, true, true, 2},
    {"mixtral_data_4_experts_2_in_rounds", kMixtral, "flash", 4, 1, false,
     false, 2, false, 7},
    {"deepseek_data_4_experts_4_in_rounds", kDeepSeek, "unfused", 4, 1, false,
     true, 4, false, 20},
    {"deepseek_data_2_of_2_sequence_experts_4_in_rounds", kDeepSeek, "flash", 2,
     2, true, false, 4, true, 5},
};

/// What an argument or result is, by the parameter it belongs to.
using Role = std::pair<std::string, std::string>;

Role getRole(DictionaryAttr attributes) {
  for (StringRef key : {nn::kInputAttr, nn::kGradientAttr, nn::kMoment1Attr,
                        nn::kMoment2Attr, nn::kOutputAttr, nn::kParameterAttr})
    if (Attribute value = attributes ? attributes.get(key) : Attribute()) {
      if (auto parameter = dyn_cast<nn::ParameterAttr>(value))
        return {key.str(), parameter.getName().str()};
      return {key.str(), cast<StringAttr>(value).str()};
    }
  return {};
}

using Values = std::map<Role, Tensor>;

class RanksTest : public ::testing::TestWithParam<Case> {
protected:
  OwningOpRef<ModuleOp> build() {
    const Case &test = GetParam();
    std::string path = ::testing::TempDir() + "ranks_" + test.name + ".yaml";
    std::ofstream(path) << test.model << kTrain
                        << "  attention: " << test.attention
                        << "\n  global_batch_size: " << 3 * test.data << "\n";
    llvm::SourceMgr sources;
    auto description = frontend::DescriptionReader(sources).read(path);
    std::remove(path.c_str());
    return failed(description) ? OwningOpRef<ModuleOp>()
                               : frontend::buildModel(context, *description);
  }

  LogicalResult makeStep(ModuleOp module) {
    PassManager manager(&context);
    manager.addPass(createCSEPass());
    manager.addPass(createCanonicalizerPass());
    manager.addPass(autodiff::createDifferentiate());
    manager.addPass(createCSEPass());
    manager.addPass(createCanonicalizerPass());
    manager.addPass(autodiff::createAddOptimizer());
    return manager.run(module);
  }

  /// The same module for all ranks of the test's mesh.
  OwningOpRef<ModuleOp> share(ModuleOp whole) {
    const Case &test = GetParam();
    OwningOpRef<ModuleOp> module = whole.clone();
    Builder builder(&context);
    int64_t step = test.hasWholeExperts ? 1 : test.tensor;
    (*module)->setAttr(
        nn::kMeshAttr,
        nn::MeshAttr::get(&context,
                          {builder.getStringAttr(nn::kDataAxis),
                           builder.getStringAttr(nn::kTensorAxis),
                           builder.getStringAttr(nn::kExpertAxis),
                           builder.getStringAttr(nn::kExpertCopiesAxis)},
                          {test.data, test.tensor, test.experts,
                           test.data * test.tensor / step / test.experts},
                          {0, 0, step, step * test.experts}));
    if (test.hasShares)
      (*module)->setAttr(nn::kDistributedOptimizerAttr, builder.getUnitAttr());
    if (test.expertRows)
      (*module)->setAttr(kExpertRowsAttr,
                         builder.getI64IntegerAttr(test.expertRows));
    module->lookupSymbol("forward")->setAttr(nn::kMicroBatchesAttr,
                                             builder.getI64IntegerAttr(1));
    PassManager manager(&context);
    partition::AnnotateLayoutOptions options;
    options.sequenceParallel = test.isSequenceParallel;
    manager.addPass(partition::createAnnotateLayout(options));
    manager.addPass(partition::createPartition());
    manager.addPass(partition::createPartitionExperts());
    if (failed(manager.run(*module)) || failed(makeStep(*module)))
      return {};
    return module;
  }

  MLIRContext context;
};

/// Values of all roles of a step, and tokens for each of `micro` micro-batches.
Values makeValues(func::FuncOp step, int64_t micro) {
  std::mt19937 random(11);
  std::normal_distribution<double> normal;
  Values values;
  for (BlockArgument argument : step.getArguments()) {
    Role role = getRole(step.getArgAttrDict(argument.getArgNumber()));
    auto type = cast<RankedTensorType>(argument.getType());
    bool isIds = role.second == "tokens" || role.second == "targets";
    for (int64_t batch = 0; batch < (isIds ? micro : 1); ++batch) {
      Tensor tensor(type.getShape());
      for (double &value : tensor.values)
        if (role.first == nn::kParameterAttr)
          value = 0.4 * normal(random);
        else if (role.first == nn::kMoment1Attr ||
                 role.first == nn::kMoment2Attr)
          value = 0.01;
        else if (isIds || role.second == "rng")
          value = double(random() % 20);
        else if (role.second != "loss_sum" && role.first == nn::kInputAttr)
          value = 0.1;
      Role key = role;
      if (isIds)
        key.second += std::to_string(batch);
      values[key] = tensor;
    }
  }
  return values;
}

/// Of the role of an argument, for micro-batch or rank `batch`.
const Tensor &getValue(const Values &values, Role role, int64_t batch) {
  if (role.second == "tokens" || role.second == "targets")
    role.second += std::to_string(batch);
  return values.at(role);
}

Values collect(func::FuncOp step, std::vector<Tensor> tensors) {
  Values results;
  for (auto [index, tensor] : llvm::enumerate(tensors))
    results[getRole(step.getResultAttrDict(index))] = std::move(tensor);
  return results;
}

/// The results of one rank, which goes through the micro-batches one by one.
Values runWhole(func::FuncOp step, Values values, int64_t micro) {
  Values results;
  for (int64_t batch = 0; batch < micro; ++batch) {
    interpreter::Interpreter machine(step);
    machine.setExact();
    for (BlockArgument argument : step.getArguments()) {
      Role role = getRole(step.getArgAttrDict(argument.getArgNumber()));
      if (!role.first.empty())
        machine.set(argument, getValue(values, role, batch));
    }
    FailureOr<std::vector<Tensor>> tensors = machine.run();
    EXPECT_TRUE(succeeded(tensors));
    results = collect(step, *tensors);
    for (auto &[role, tensor] : results)
      if (role.first == nn::kGradientAttr)
        values[role] = tensor;
    values[{"nn.input", "loss_sum"}] = results.at({"nn.output", "loss"});
  }
  return results;
}

/// Block `index` of `count` of `whole` along `dim`, with zeros where that ends.
Tensor getPart(const Tensor &whole, int64_t dim, int64_t index, int64_t count) {
  std::vector<int64_t> shape = whole.shape;
  shape[dim] = (shape[dim] + count - 1) / count;
  Tensor part(shape);
  int64_t inner = 1, outer = 1;
  for (size_t d = dim + 1; d < shape.size(); ++d)
    inner *= shape[d];
  for (int64_t d = 0; d < dim; ++d)
    outer *= shape[d];
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t row = 0; row < shape[dim]; ++row) {
      int64_t from = index * shape[dim] + row;
      for (int64_t e = 0; e < inner && from < whole.shape[dim]; ++e)
        part.values[(o * shape[dim] + row) * inner + e] =
            whole.values[(o * whole.shape[dim] + from) * inner + e];
    }
  return part;
}

/// Of `tensor` seen flat, the share of rank `index` of `count`: whole blocks of
/// 16384 elements, as many on each rank. Apart, with zeros where that ends, or
/// where it belongs, among zeros.
Tensor getShare(const Tensor &tensor, bool isApart, int64_t index,
                int64_t count) {
  int64_t blocks = (tensor.size() + 16383) / 16384;
  int64_t size = std::min(tensor.size(), (blocks + count - 1) / count * 16384);
  Tensor share(isApart ? std::vector<int64_t>{size} : tensor.shape);
  for (int64_t e = 0; e < size && index * size + e < tensor.size(); ++e)
    share.values[isApart ? e : index * size + e] =
        tensor.values[index * size + e];
  return share;
}

/// The roles that ranks have shares of, and whether apart.
std::map<Role, bool> getShares(func::FuncOp step) {
  std::map<Role, bool> shares;
  for (BlockArgument argument : step.getArguments())
    if (auto whole = step.getArgAttrOfType<DenseI64ArrayAttr>(
            argument.getArgNumber(), nn::kShareOfAttr))
      shares[getRole(step.getArgAttrDict(argument.getArgNumber()))] =
          cast<RankedTensorType>(argument.getType()).getShape() !=
          whole.asArrayRef();
  return shares;
}

/// The dimension that ranks along an axis have parts of.
struct Cut {
  StringRef axis;
  int64_t dim;
};

/// By parameter.
std::map<std::string, std::vector<Cut>> getCuts(func::FuncOp step) {
  std::map<std::string, std::vector<Cut>> cuts;
  for (unsigned index = 0; index < step.getNumArguments(); ++index) {
    auto parameter =
        step.getArgAttrOfType<nn::ParameterAttr>(index, nn::kParameterAttr);
    auto layout = step.getArgAttrOfType<nn::LayoutAttr>(index, nn::kLayoutAttr);
    for (StringRef axis : nn::kCutAxes)
      if (int64_t dim = layout ? layout.getShardDim(axis) : -1;
          parameter && dim >= 0)
        cuts[parameter.getName().str()].push_back({axis, dim});
  }
  return cuts;
}

TEST_P(RanksTest, HaveThePartsOfOneRanksStep) {
  const Case &test = GetParam();
  OwningOpRef<ModuleOp> whole = build();
  ASSERT_TRUE(whole);
  OwningOpRef<ModuleOp> shared = share(*whole);
  ASSERT_TRUE(shared);
  ASSERT_TRUE(succeeded(makeStep(*whole)));
  auto wholeStep = whole->lookupSymbol<func::FuncOp>("step");
  auto step = shared->lookupSymbol<func::FuncOp>("step");
  Values values = makeValues(wholeStep, test.data);
  Values expected = runWhole(wholeStep, values, test.data);

  auto cuts = getCuts(step);
  EXPECT_EQ(cuts.empty(), test.tensor == 1 && test.experts == 1);
  auto shares = getShares(step);
  EXPECT_EQ(shares.empty(), !test.hasShares);
  auto mesh = (*shared)->getAttrOfType<nn::MeshAttr>(nn::kMeshAttr);
  auto take = [&](const Role &role, const Tensor &tensor, int64_t rank) {
    Tensor part = tensor;
    StringRef axis = nn::kDataAxis;
    if (auto found = cuts.find(role.second); found != cuts.end())
      for (const Cut &cut : found->second) {
        part = getPart(part, cut.dim, mesh.getCoordinate(rank, cut.axis),
                       mesh.getSize(cut.axis));
        if (cut.axis == nn::kExpertAxis)
          axis = nn::kExpertCopiesAxis;
      }
    auto share = shares.find(role);
    return share == shares.end()
               ? part
               : getShare(part, share->second, mesh.getCoordinate(rank, axis),
                          mesh.getSize(axis));
  };
  Ranks ranks(mesh, SmallVector<func::FuncOp>(mesh.getNumRanks(), step));
  for (int64_t rank = 0; rank < ranks.size(); ++rank) {
    ranks[rank].setExact();
    for (BlockArgument argument : step.getArguments()) {
      Role role = getRole(step.getArgAttrDict(argument.getArgNumber()));
      if (!role.first.empty())
        ranks[rank].set(
            argument,
            take(role, getValue(values, role, rank / test.tensor), rank));
    }
  }
  ASSERT_TRUE(succeeded(ranks.run()));
  for (int64_t rank = 0; rank < ranks.size(); ++rank) {
    Values results = collect(step, ranks[rank].getResults());
    ASSERT_EQ(results.size(), expected.size());
    for (auto &[role, have] : results) {
      Tensor want = take(role, expected.at(role), rank);
      ASSERT_EQ(have.shape, want.shape) << role.first << " " << role.second;
      for (int64_t e = 0; e < want.size(); ++e)
        ASSERT_NEAR(have.values[e], want.values[e],
                    1e-9 * std::max(1.0, std::abs(want.values[e])))
            << "rank " << rank << ": " << role.first << " " << role.second
            << "[" << e << "]";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, RanksTest, ::testing::ValuesIn(kCases),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

/// Runs `@a` on rank 0 and `@b` on rank 1, each on its number plus 1, and says
/// what went wrong.
std::string runPair(const std::string &body, std::vector<double> &results) {
  MLIRContext context;
  context.loadDialect<nn::NNDialect, func::FuncDialect>();
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    message = diagnostic.str();
    return success();
  });
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
      "module attributes {nn.mesh = #nn.mesh<tp = 2>} {" + body + "}",
      &context);
  if (!module)
    return message;
  SmallVector<func::FuncOp> functions = {
      module->lookupSymbol<func::FuncOp>("a"),
      module->lookupSymbol<func::FuncOp>("b")};
  Ranks ranks((*module)->getAttrOfType<nn::MeshAttr>(nn::kMeshAttr), functions);
  for (int64_t rank : {0, 1})
    ranks[rank].set(functions[rank].getArgument(0),
                    Tensor(ArrayRef<int64_t>{2}, double(rank + 1)));
  if (succeeded(ranks.run()))
    for (int64_t rank : {0, 1}) {
      std::vector<double> values = ranks[rank].getResults()[0].values;
      results.insert(results.end(), values.begin(), values.end());
    }
  return message;
}

TEST(Meeting, IsInTheSameCollective) {
  std::vector<double> results;
  EXPECT_EQ(runPair(R"(
    func.func @a(%x: tensor<2xf32>) -> tensor<2xf32> {
      %y = nn.scale %x by 4.0 : tensor<2xf32>
      %z = nn.all_reduce %y over "tp" : tensor<2xf32>
      return %z : tensor<2xf32>
    }
    func.func @b(%x: tensor<2xf32>) -> tensor<2xf32> {
      %z = nn.all_reduce %x over "tp" : tensor<2xf32>
      return %z : tensor<2xf32>
    })",
                    results),
            "");
  EXPECT_EQ(results, (std::vector<double>{6, 6, 6, 6}));
}

// Of three groups a rank has the sums of two, and of one.
TEST(Meeting, AddsTheTermsOfGroups) {
  std::vector<double> results;
  std::string body;
  for (const char *name : {"a", "b"})
    body += std::string("func.func @") + name +
            R"((%x: tensor<2xf32>) -> tensor<2xf32> {
      %y = nn.scale %x by 10.0 : tensor<2xf32>
      %z = nn.all_reduce %x, %y over "tp" {nn.reduction_groups = 3 : i64} : tensor<2xf32>, tensor<2xf32>
      return %z : tensor<2xf32>
    })";
  EXPECT_EQ(runPair(body, results), "");
  EXPECT_EQ(results, (std::vector<double>{33, 33, 33, 33}));
}

TEST(Meeting, IsRefusedElsewhere) {
  std::vector<double> results;
  std::string first = R"(
    func.func @a(%x: tensor<2xf32>) -> tensor<2xf32> {
      %z = nn.all_reduce %x over "tp" : tensor<2xf32>
      return %z : tensor<2xf32>
    })";
  EXPECT_EQ(runPair(first + R"(
    func.func @b(%x: tensor<2xf32>) -> tensor<1xf32> {
      %z = nn.reduce_scatter %x over "tp" dim 0 : (tensor<2xf32>) -> tensor<1xf32>
      return %z : tensor<1xf32>
    })",
                    results),
            "'nn.reduce_scatter' op is where rank 1 waits for others, but rank "
            "0 is elsewhere");
  EXPECT_EQ(runPair(first + R"(
    func.func @b(%x: tensor<2xf32>) -> tensor<2xf32> {
      return %x : tensor<2xf32>
    })",
                    results),
            "'func.return' op is where rank 1 waits for others, but rank 0 is "
            "elsewhere");
  EXPECT_TRUE(results.empty());
}

/// In order of the ranks, and each the rows of its own block.
TEST(Meeting, KeepsTheOrderOfRanks) {
  std::vector<double> results;
  std::string body;
  for (const char *name : {"a", "b"})
    body += std::string("func.func @") + name +
            R"((%x: tensor<2xf32>) -> tensor<4xf32> {
      %all = nn.all_gather %x to R over "tp" dim 0 : (tensor<2xf32>) -> tensor<4xf32>
      %twice = nn.add %all, %all : tensor<4xf32>
      %own = nn.slice %twice over "tp" dim 0 : (tensor<4xf32>) -> tensor<2xf32>
      %part = nn.reduce_scatter %twice over "tp" dim 0 : (tensor<4xf32>) -> tensor<2xf32>
      %sum = nn.add %own, %part : tensor<2xf32>
      %back = nn.all_gather %sum to I over "tp" dim 0 : (tensor<2xf32>) -> tensor<4xf32>
      return %back : tensor<4xf32>
    })";
  EXPECT_EQ(runPair(body, results), "");
  EXPECT_EQ(results, (std::vector<double>{6, 6, 12, 12, 6, 6, 12, 12}));
}
} // namespace
