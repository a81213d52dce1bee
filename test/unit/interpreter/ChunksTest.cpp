//===- ChunksTest.cpp - Chunks of a model compute what it does --*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A model is cut into chunks, each is differentiated by itself, and all of them
// are run as the table of a schedule says: entry by entry, with an interpreter
// in each slot, and parcels between stages. Loss and gradients must be those of
// the whole model, which goes through the micro-batches one by one, to the last
// bit: both add in one order.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "python-free-frontend/Frontend.h"
#include "reprise/Autodiff/Passes.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/Remat/RematOps.h"
#include "reprise/Interpreter/Interpreter.h"
#include "reprise/Remat/Passes.h"
#include "reprise/Solver/StageSchedule.h"
#include "reprise/Stages/Passes.h"
#include "llvm/Support/SourceMgr.h"
#include "gtest/gtest.h"
#include <deque>
#include <fstream>
#include <map>
#include <memory>
#include <random>

using namespace mlir;
using namespace reprise;
using interpreter::Interpreter;
using interpreter::Tensor;
using solver::ScheduleEntry;

namespace {
const char *const kGPT2 = R"(model:
  model_type: gpt2
  vocab_size: 19
  n_positions: 9
  n_embd: 12
  n_layer: 5
  n_head: 3
  n_inner: 20
)";
const char *const kUntied = "  tie_word_embeddings: false\n";
// Of Llama, and of Mixtral beside its experts.
const std::string kSizes = R"(  vocab_size: 17
  max_position_embeddings: 8
  hidden_size: 16
  intermediate_size: 12
  num_hidden_layers: 4
  num_attention_heads: 4
  num_key_value_heads: 2
)";
const std::string kLlama = "model:\n  model_type: llama\n" + kSizes;
const std::string kMixtral = "model:\n  model_type: mixtral\n" + kSizes +
                             R"(  num_local_experts: 3
  output_router_logits: true
  router_aux_loss_coef: 2.0
)";

struct Case {
  const char *name;
  std::string model;
  const char *schedule;
  int64_t stages, virtualStages, microBatches;
  const char *layout;
  const char *precision = "fp32";
  bool isRecomputed = false;
};

const Case kCases[] = {
    {"gpt2_2_gpipe", std::string(kGPT2) + kUntied, "gpipe", 2, 1, 3, ""},
    {"gpt2_2", std::string(kGPT2) + kUntied, "1f1b", 2, 1, 4, ""},
    {"gpt2_3_uneven", std::string(kGPT2) + kUntied, "1f1b", 3, 1, 4,
     "Et*2|tt|tL"},
    {"gpt2_3_ends_alone", std::string(kGPT2) + kUntied, "1f1b", 3, 1, 2,
     "E|t*5|L"},
    {"gpt2_4_one_batch", std::string(kGPT2) + kUntied, "1f1b", 4, 1, 1, ""},
    {"gpt2_tied_2", kGPT2, "1f1b", 2, 1, 3, ""},
    {"gpt2_2_of_2", std::string(kGPT2) + kUntied, "interleaved", 2, 2, 4, ""},
    {"llama_2_of_2", kLlama, "interleaved", 2, 2, 2, ""},
    {"llama_4_bf16", kLlama, "1f1b", 4, 1, 7, "", "bf16"},
    {"gpt2_3_zero_bubble", std::string(kGPT2) + kUntied, "zb-h1", 3, 1, 5, ""},
    {"llama_4_zero_bubble_full_bf16", kLlama, "zb-h1", 4, 1, 6, "", "bf16",
     true},
    {"gpt2_2_full", std::string(kGPT2) + kUntied, "1f1b", 2, 1, 3, "", "fp32",
     true},
    {"mixtral_2", kMixtral, "1f1b", 2, 1, 3, ""},
    {"mixtral_4_head_alone", kMixtral, "gpipe", 4, 1, 3, "E|tt|tt|L"},
    {"mixtral_2_of_2_full", kMixtral, "interleaved", 2, 2, 4, "", "fp32", true},
    {"mixtral_3_zero_bubble_bf16", kMixtral, "zb-h1", 3, 1, 5, "", "bf16"},
    {"llama_2_of_2_full_bf16", kLlama, "interleaved", 2, 2, 4, "Et|t|t|tL",
     "bf16", true},
};

constexpr int64_t kBatch = 2, kSeq = 8;

/// What crosses a border at one time.
using Parcel = std::vector<Tensor>;

/// What an argument or result is, by its name.
using Role = std::pair<std::string, std::string>;

Role getRole(DictionaryAttr attributes) {
  for (StringRef key :
       {nn::kInputAttr, nn::kGradientAttr, nn::kOutputAttr, nn::kParameterAttr})
    if (Attribute value = attributes ? attributes.get(key) : Attribute()) {
      if (auto parameter = dyn_cast<nn::ParameterAttr>(value))
        return {key.str(), parameter.getName().str()};
      return {key.str(), cast<StringAttr>(value).str()};
    }
  return {};
}

const Role kBorderIn = {"nn.input", "border"},
           kBorderOut = {"nn.output", "border"},
           kGradientIn = {"nn.input", "border_gradient"},
           kGradientOut = {"nn.output", "border_gradient"};

/// Parameters by name, samples by micro-batch, and sums of gradients by chunk
/// and name.
struct World {
  std::mt19937 random{5};
  std::map<std::string, Tensor> parameters;
  std::map<std::pair<std::string, int64_t>, Tensor> samples;
  std::map<std::pair<int64_t, std::string>, Tensor> gradients;
  Tensor loss{ArrayRef<int64_t>{}};

  const Tensor &getParameter(const std::string &name, ArrayRef<int64_t> shape) {
    auto [place, isNew] = parameters.try_emplace(name, shape);
    std::normal_distribution<double> normal;
    if (isNew)
      for (double &value : place->second.values)
        value = double(float(0.3 * normal(random)));
    return place->second;
  }
  const Tensor &getSample(const std::string &name, int64_t batch,
                          ArrayRef<int64_t> shape) {
    auto [place, isNew] = samples.try_emplace({name, batch}, shape);
    if (isNew)
      for (double &value : place->second.values)
        value = double(random() % 17);
    return place->second;
  }
  Tensor &getGradient(int64_t chunk, const std::string &name,
                      ArrayRef<int64_t> shape) {
    return gradients.try_emplace({chunk, name}, shape).first->second;
  }
};

/// A micro-batch on a chunk.
class Machine {
public:
  Machine(World &world, func::FuncOp step, int64_t chunk, int64_t batch)
      : world(world), step(step), chunk(chunk), machine(step) {
    for (BlockArgument argument : step.getArguments()) {
      Role role = getRole(step.getArgAttrDict(argument.getArgNumber()));
      ArrayRef<int64_t> shape = cast<ShapedType>(argument.getType()).getShape();
      if (role.first == nn::kParameterAttr)
        machine.set(argument, world.getParameter(role.second, shape));
      else if (role.first == nn::kInputAttr && role != kBorderIn &&
               role != kGradientIn && role.second != "loss_sum")
        machine.set(argument, world.getSample(role.second, batch, shape));
      else if (step.getArgAttr(argument.getArgNumber(), nn::kMeasureAttr))
        machine.set(argument, Tensor(shape));
    }
  }

  /// The ops before `nn.backward`; what is passed on.
  Parcel goForward(const Parcel *border) {
    if (border)
      set(kBorderIn, *border);
    set({"nn.input", "loss_sum"}, {world.loss});
    Block &block = step.getBody().front();
    EXPECT_TRUE(succeeded(machine.run(block.begin(), getBackward())));
    for (const Tensor &loss : get({"nn.output", "loss"}))
      world.loss = loss;
    return get(kBorderOut);
  }

  /// The ops behind it that what is passed back needs; that.
  Parcel goBackward(const Parcel *gradient) {
    if (gradient)
      set(kGradientIn, *gradient);
    Operation *exit = step.getBody().front().getTerminator();
    SmallVector<Operation *> open;
    auto need = [&](Value value) {
      Operation *maker = value.getDefiningOp();
      if (maker && getBackward()->isBeforeInBlock(maker) &&
          needed.insert(maker).second)
        open.push_back(maker);
    };
    for (auto [index, value] : llvm::enumerate(exit->getOperands()))
      if (getRole(step.getResultAttrDict(index)) == kGradientOut)
        need(value);
    while (!open.empty())
      for (Value operand : open.pop_back_val()->getOperands())
        need(operand);
    runBelow([&](Operation *op) { return needed.contains(op); });
    return get(kGradientOut);
  }

  /// The others, which add to gradients.
  void addGradients() {
    for (BlockArgument argument : step.getArguments()) {
      Role role = getRole(step.getArgAttrDict(argument.getArgNumber()));
      if (role.first == nn::kGradientAttr)
        machine.set(
            argument,
            world.getGradient(chunk, role.second,
                              cast<ShapedType>(argument.getType()).getShape()));
    }
    runBelow([&](Operation *op) { return !needed.contains(op); });
    Operation *exit = step.getBody().front().getTerminator();
    for (auto [index, value] : llvm::enumerate(exit->getOperands()))
      if (Role role = getRole(step.getResultAttrDict(index));
          role.first == nn::kGradientAttr)
        world.gradients.at({chunk, role.second}) = machine.get(value);
  }

private:
  Block::iterator getBackward() {
    return (*step.getBody().front().getOps<nn::BackwardOp>().begin())
        ->getIterator();
  }
  void runBelow(llvm::function_ref<bool(Operation *)> isOne) {
    auto end = step.getBody().front().getTerminator()->getIterator();
    for (auto at = std::next(getBackward()); at != end; ++at)
      if (isOne(&*at))
        EXPECT_TRUE(succeeded(machine.run(at, std::next(at))));
  }
  void set(const Role &role, const Parcel &tensors) {
    auto next = tensors.begin();
    for (BlockArgument argument : step.getArguments())
      if (getRole(step.getArgAttrDict(argument.getArgNumber())) == role) {
        ASSERT_NE(next, tensors.end());
        machine.set(argument, *next++);
      }
  }
  Parcel get(const Role &role) {
    Parcel tensors;
    Operation *exit = step.getBody().front().getTerminator();
    for (auto [index, value] : llvm::enumerate(exit->getOperands()))
      if (getRole(step.getResultAttrDict(index)) == role)
        tensors.push_back(machine.get(value));
    return tensors;
  }

  World &world;
  func::FuncOp step;
  int64_t chunk;
  Interpreter machine;
  DenseSet<Operation *> needed; ///< For what is passed back.
};

/// Runs the lists of all stages, on chunks.
class Stages {
public:
  Stages(World &world, const solver::ScheduleTable &table,
         ArrayRef<func::FuncOp> steps)
      : world(world), table(table), steps(steps), next(table.stages.size()) {
    for (const ScheduleEntry &entry : table.stages[0].entries)
      splits |= entry.kind == ScheduleEntry::Weight;
  }

  void run() {
    for (bool goesOn = true; goesOn;) {
      goesOn = false;
      for (size_t stage = 0; stage < next.size(); ++stage)
        while (next[stage] < table.stages[stage].entries.size() &&
               step(stage, table.stages[stage].entries[next[stage]])) {
          ++next[stage];
          goesOn = true;
        }
    }
    for (size_t stage = 0; stage < next.size(); ++stage)
      EXPECT_EQ(next[stage], table.stages[stage].entries.size());
  }

private:
  /// By stage, chunk and slot.
  using Place = std::tuple<int64_t, int64_t, int64_t>;

  bool step(int64_t stage, const ScheduleEntry &entry) {
    Place slot = {stage, entry.chunk, entry.slot};
    std::pair<int64_t, int64_t> gradient = {stage, entry.gradientSlot};
    bool isFirst = entry.chunk == 0;
    bool isLast = entry.chunk == int64_t(steps.size()) - 1;
    switch (entry.kind) {
    case ScheduleEntry::Forward:
      machines[slot] = std::make_unique<Machine>(world, steps[entry.chunk],
                                                 entry.chunk, entry.microBatch);
      activations[slot] =
          machines[slot]->goForward(isFirst ? nullptr : &activations.at(slot));
      return true;
    case ScheduleEntry::Backward: {
      Parcel back = machines.at(slot)->goBackward(
          isLast ? nullptr : &gradients.at(gradient));
      if (entry.gradientSlot >= 0)
        gradients[gradient] = back;
      if (!splits)
        machines.at(slot)->addGradients();
      return true;
    }
    case ScheduleEntry::Weight:
      machines.at(slot)->addGradients();
      return true;
    case ScheduleEntry::Send:
      channels[{stage, entry.peer, entry.isGradient}].push_back(
          entry.isGradient ? gradients.at({stage, entry.slot})
                           : activations.at(slot));
      return true;
    case ScheduleEntry::Receive: {
      std::deque<Parcel> &parcels =
          channels[{entry.peer, stage, entry.isGradient}];
      if (parcels.empty())
        return false;
      (entry.isGradient ? gradients[{stage, entry.slot}] : activations[slot]) =
          parcels.front();
      parcels.pop_front();
      return true;
    }
    default: // Sums over stages are made when all is there.
      return true;
    }
  }

  World &world;
  const solver::ScheduleTable &table;
  ArrayRef<func::FuncOp> steps;
  bool splits = false; ///< Gradients of weights are made apart.
  std::vector<size_t> next;
  std::map<Place, std::unique_ptr<Machine>> machines;
  std::map<Place, Parcel> activations;
  std::map<std::pair<int64_t, int64_t>, Parcel> gradients;
  std::map<std::tuple<int64_t, int64_t, bool>, std::deque<Parcel>> channels;
};

class ChunksTest : public ::testing::TestWithParam<Case> {
protected:
  OwningOpRef<ModuleOp> build() {
    const Case &test = GetParam();
    std::string path = ::testing::TempDir() + "chunks_" + test.name + ".yaml";
    std::ofstream(path) << test.model << "train:\n  seq_length: " << kSeq
                        << "\n  micro_batch_size: " << kBatch
                        << "\n  lr: 1e-3\n  train_iters: 10\n  precision: "
                        << test.precision << "\n  global_batch_size: "
                        << kBatch * test.microBatches << "\n";
    llvm::SourceMgr sources;
    auto description = frontend::DescriptionReader(sources).read(path);
    std::remove(path.c_str());
    return failed(description) ? OwningOpRef<ModuleOp>()
                               : frontend::buildModel(context, *description);
  }

  void addStep(OpPassManager &manager, bool recomputes) {
    manager.addPass(createCSEPass());
    manager.addPass(createCanonicalizerPass());
    manager.addPass(autodiff::createDifferentiate());
    manager.addPass(createCSEPass());
    manager.addPass(createCanonicalizerPass());
    if (!recomputes)
      return;
    OpPassManager &step = manager.nest<func::FuncOp>();
    remat::AnnotateFullOptions full;
    full.method = "uniform";
    full.numLayers = 1;
    step.addPass(remat::createAnnotateFull(full));
    step.addPass(remat::createApply());
    step.addPass(remat::createVerify());
  }

  MLIRContext context;
};

TEST_P(ChunksTest, HaveTheGradientsOfTheWhole) {
  const Case &test = GetParam();
  OwningOpRef<ModuleOp> whole = build();
  ASSERT_TRUE(whole);
  OwningOpRef<ModuleOp> cut = whole->clone();
  PassManager together(&context), apart(&context);
  addStep(together, false);
  stages::CutChunksOptions options;
  options.stages = test.stages;
  options.virtualStages = test.virtualStages;
  options.layout = test.layout;
  apart.addPass(stages::createCutChunks(options));
  addStep(apart.nest<ModuleOp>(), test.isRecomputed);
  ASSERT_TRUE(succeeded(together.run(*whole)));
  ASSERT_TRUE(succeeded(apart.run(*cut)));
  SmallVector<func::FuncOp> steps;
  for (auto chunk : cut->getOps<ModuleOp>())
    steps.push_back(chunk.lookupSymbol<func::FuncOp>("step"));
  ASSERT_EQ(int64_t(steps.size()), test.stages * test.virtualStages);
  int64_t replays = 0;
  cut->walk([&](Operation *op) { replays += op->hasAttr(remat::kReplayAttr); });
  EXPECT_EQ(replays > 0, test.isRecomputed);

  World world;
  auto step = whole->lookupSymbol<func::FuncOp>("step");
  for (int64_t batch = 0; batch < test.microBatches; ++batch) {
    Machine machine(world, step, 0, batch);
    machine.goForward(nullptr);
    machine.goBackward(nullptr);
    machine.addGradients();
  }
  Tensor loss = world.loss;
  std::map<std::string, Tensor> expected;
  for (auto &[key, tensor] : world.gradients)
    expected[key.second] = tensor;
  ASSERT_GT(expected.size(), 10u);

  world.loss.values[0] = 0;
  world.gradients.clear();
  solver::ScheduleTable table = solver::makeTable(
      *solver::findSchedule(test.schedule),
      {test.stages, test.virtualStages, test.microBatches}, {1});
  ASSERT_FALSE(solver::verify(table));
  Stages(world, table, steps).run();

  EXPECT_GT(loss.values[0], 1);
  EXPECT_EQ(world.loss.values, loss.values);
  std::map<std::string, Tensor> have;
  std::map<std::string, int> terms;
  for (auto &[key, tensor] : world.gradients) {
    auto [sum, isNew] = have.try_emplace(key.second, tensor);
    ++terms[key.second];
    for (int64_t e = 0; !isNew && e < tensor.size(); ++e)
      sum->second.values[e] += tensor.values[e];
  }
  ASSERT_EQ(have.size(), expected.size());
  int tied = 0;
  for (auto &[name, tensor] : expected) {
    ASSERT_EQ(have.at(name).shape, tensor.shape) << name;
    tied += terms[name] > 1;
    // The two sums of a tied table are added in another order.
    for (int64_t e = 0; e < tensor.size(); ++e)
      if (terms[name] == 1)
        ASSERT_EQ(have.at(name).values[e], tensor.values[e]) << name << e;
      else
        ASSERT_NEAR(have.at(name).values[e], tensor.values[e], 1e-12) << name;
  }
  EXPECT_EQ(tied, test.name == std::string("gpt2_tied_2"));
}

INSTANTIATE_TEST_SUITE_P(Models, ChunksTest, ::testing::ValuesIn(kCases),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });
} // namespace
