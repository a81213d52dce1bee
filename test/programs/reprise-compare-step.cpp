//===- reprise-compare-step.cpp - A run against the interpreter -----------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Usage: reprise-compare-step JOINT.mlir DUMP.safetensors [--tolerance=1e-4]
//                             [--next=DUMP.safetensors]
//                             [--inputs=DUMP.safetensors]
//
// A step of many ranks is interpreted for all of them, in one micro-batch of
// each. A dump has the inputs of rank 0: where ranks have samples of their own,
// those of all come from the dump of the same step by one rank. Interprets
// `@step` on the parameters, tokens and random keys of a dump that a training
// program wrote with --dump, and compares loss, norm and every gradient: for
// each tensor the largest difference of an element, over the largest element.
// Where a whole gradient is below a thousandth of the norm of all (that of a
// key's bias is zero but for rounding), over that thousandth. Fails if one of
// these exceeds the tolerance. With the dump of the same run one step later,
// compares parameters and moments after the update, too; second moments by
// their roots, as a square is off by twice what its number is.
//
//===----------------------------------------------------------------------===//

#include "Dump.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Pipelines/Registration.h"
#include "test/common/Words.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::test;
namespace cl = llvm::cl;

static cl::OptionCategory category("reprise-compare-step options");
static cl::opt<std::string> inputIR(cl::Positional, cl::Required,
                                    cl::desc("<joint IR>"));
static cl::opt<std::string> inputDump(cl::Positional, cl::Required,
                                      cl::desc("<dump>"));
static cl::opt<std::string>
    nextDump("next", cl::desc("The dump of the same run, one step later"),
             cl::cat(category));
static cl::opt<std::string>
    inputsDump("inputs", cl::desc("The dump of the same step by one rank"),
               cl::cat(category));
static cl::opt<double> tolerance("tolerance", cl::init(1e-4),
                                 cl::desc("Largest relative difference"),
                                 cl::cat(category));

/// Row `index` of a tensor with a leading dimension, in the shape `type`.
static Tensor getRow(const Tensor &all, int64_t index, Type type) {
  Tensor row(cast<ShapedType>(type).getShape());
  std::copy_n(all.values.begin() + index * row.size(), row.size(),
              row.values.begin());
  return row;
}

namespace {
/// The dimensions that ranks have equal parts of, each along an axis, and their
/// sizes in the whole.
struct Cuts {
  struct Cut {
    int64_t dim, extent;
    StringAttr axis;
  };
  nn::MeshAttr mesh;
  SmallVector<Cut> cuts;

  SmallVector<int64_t> getWhole(ArrayRef<int64_t> part) const {
    SmallVector<int64_t> whole(part);
    for (const Cut &cut : cuts)
      whole[cut.dim] = cut.extent;
    return whole;
  }
  /// Calls `copy` for each element of the part of `rank` that the whole has,
  /// with its number there and in the whole.
  void forElements(ArrayRef<int64_t> part, int64_t rank,
                   llvm::function_ref<void(int64_t, int64_t)> copy) const {
    SmallVector<int64_t> whole = getWhole(part), first(part.size(), 0);
    for (const Cut &cut : cuts)
      first[cut.dim] = mesh.getCoordinate(rank, cut.axis) * part[cut.dim];
    for (int64_t e = 0, size = Tensor(part).size(); e < size; ++e) {
      int64_t rest = e, number = 0, stride = 1;
      bool isThere = true;
      for (int64_t dim = int64_t(part.size()) - 1; dim >= 0; --dim) {
        int64_t at = first[dim] + rest % part[dim];
        rest /= part[dim];
        isThere &= at < whole[dim];
        number += at * stride;
        stride *= whole[dim];
      }
      if (isThere)
        copy(e, number);
    }
  }
};

/// How the ranks of a step share its parameters.
class Parts {
public:
  Parts(func::FuncOp step, nn::MeshAttr mesh) {
    for (BlockArgument argument : step.getArguments()) {
      unsigned index = argument.getArgNumber();
      auto parameter =
          step.getArgAttrOfType<nn::ParameterAttr>(index, nn::kParameterAttr);
      auto layout =
          step.getArgAttrOfType<nn::LayoutAttr>(index, nn::kLayoutAttr);
      auto whole = step.getArgAttrOfType<IntegerAttr>(index, nn::kWholeAttr);
      if (!parameter || !layout)
        continue;
      for (StringAttr axis : mesh.getNames())
        if (int64_t dim = layout.getShardDim(axis); dim >= 0) {
          auto type = cast<ShapedType>(argument.getType());
          int64_t even = mesh.getSize(axis) * type.getDimSize(dim);
          Cuts &all = cuts[parameter.getName()];
          all.mesh = mesh;
          // Of one dimension alone ranks may have no even parts.
          int64_t extent = whole && all.cuts.empty() ? whole.getInt() : even;
          all.cuts.push_back({dim, extent, axis});
        }
    }
  }

  /// That of the parameter `name`, if `dump` has all parts as `key`.
  std::optional<Cuts> find(const Dump &dump, llvm::StringRef key,
                           llvm::StringRef name, ArrayRef<int64_t> part) const {
    auto found = cuts.find(name);
    if (found == cuts.end() ||
        dump.size(key) != Tensor(found->second.getWhole(part)).size())
      return std::nullopt;
    return found->second;
  }

private:
  llvm::StringMap<Cuts> cuts;
};
} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  readWords(argc, argv, category, "Compares a run with the interpreter\n");
  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry);
  OwningOpRef<ModuleOp> module =
      parseSourceFile<ModuleOp>(inputIR.getValue(), &context);
  llvm::Expected<Dump> dump = Dump::read(inputDump);
  if (!module || !dump) {
    if (!dump)
      llvm::WithColor::error() << toString(dump.takeError()) << "\n";
    return 1;
  }
  auto step = module->lookupSymbol<func::FuncOp>(nn::kStepFunction);
  auto count = step ? step->getAttrOfType<IntegerAttr>(nn::kMicroBatchesAttr)
                    : IntegerAttr();
  if (!count || step.isExternal() || step.getOps<nn::UpdateOp>().empty()) {
    llvm::WithColor::error()
        << "'" << inputIR
        << "' needs a function @step with an update, of the phase joint\n";
    return 1;
  }
  Block &block = step.getBody().front();
  auto exit = cast<func::ReturnOp>(block.getTerminator());
  auto update = *step.getOps<nn::UpdateOp>().begin();

  auto mesh = (*module)->getAttrOfType<nn::MeshAttr>(nn::kMeshAttr);
  int64_t numRanks = mesh ? mesh.getNumRanks() : 1;
  if (!mesh)
    mesh = nn::MeshAttr::get(&context, StringAttr::get(&context, nn::kDataAxis),
                             1);
  const int64_t shares = std::max<int64_t>(mesh.getSize(nn::kDataAxis), 1);
  if (numRanks > 1 && count.getInt() > 1) {
    llvm::WithColor::error() << "needs one micro-batch of each rank\n";
    return 1;
  }
  llvm::Expected<Dump> given =
      Dump::read(inputsDump.empty() ? inputDump : inputsDump);
  if (!given || (shares > 1 && inputsDump.empty())) {
    llvm::WithColor::error()
        << (given ? "needs --inputs, as a rank's dump has its own alone"
                  : toString(given.takeError()))
        << "\n";
    return 1;
  }
  interpreter::Ranks ranks(mesh, std::vector<func::FuncOp>(numRanks, step));
  interpreter::Interpreter &machine = ranks[0];
  Parts parts(step, mesh);
  auto setAll = [&](Value value, const Tensor &tensor) {
    for (int64_t rank = 0; rank < numRanks; ++rank)
      ranks[rank].set(value, tensor);
  };
  // What a dump has one part of, all ranks have alike.
  auto setState = [&](Value value, llvm::StringRef kind, llvm::StringRef name,
                      bool isRounded = false) {
    std::string key = (kind + "/" + name).str();
    ArrayRef<int64_t> shape = cast<ShapedType>(value.getType()).getShape();
    std::optional<Cuts> cut = parts.find(*dump, key, name, shape);
    Tensor whole = dump->get(key, cut ? cut->getWhole(shape)
                                      : SmallVector<int64_t>(shape));
    for (double &element : whole.values)
      element = isRounded ? interpreter::roundToBF16(element) : element;
    if (!cut)
      return setAll(value, whole);
    for (int64_t rank = 0; rank < numRanks; ++rank) {
      Tensor part(shape);
      cut->forElements(shape, rank, [&](int64_t own, int64_t all) {
        part.values[own] = whole.values[all];
      });
      ranks[rank].set(value, std::move(part));
    }
  };
  // What ranks have of `value`, as `from` has it.
  auto getState = [&](const Dump &from, Value value, llvm::StringRef key,
                      llvm::StringRef name) {
    ArrayRef<int64_t> shape = cast<ShapedType>(value.getType()).getShape();
    std::optional<Cuts> cut = parts.find(from, key, name, shape);
    if (!cut)
      return Tensor(machine.get(value));
    Tensor whole(cut->getWhole(shape));
    for (int64_t rank = 0; rank < numRanks; ++rank)
      cut->forElements(shape, rank, [&](int64_t own, int64_t all) {
        whole.values[all] = ranks[rank].get(value).values[own];
      });
    return whole;
  };
  llvm::StringMap<Value> sums;   // accumulators by role and name
  DenseMap<Value, Tensor> batch; // what all micro-batches are given
  for (BlockArgument argument : block.getArguments()) {
    unsigned index = argument.getArgNumber();
    auto text = [&](llvm::StringRef attribute) {
      auto value = step.getArgAttrOfType<StringAttr>(index, attribute);
      return value ? value.getValue() : llvm::StringRef();
    };
    ArrayRef<int64_t> shape = cast<ShapedType>(argument.getType()).getShape();
    Tensor zero(shape);
    llvm::StringRef role = text(nn::kInputAttr);
    if (auto parameter =
            step.getArgAttrOfType<nn::ParameterAttr>(index, nn::kParameterAttr))
      setState(argument, "parameter", parameter.getName());
    else if (auto name = text(nn::kMoment1Attr); !name.empty())
      setState(argument, "moment1", name);
    else if (auto name = text(nn::kMoment2Attr); !name.empty())
      setState(argument, "moment2", name);
    else if (auto name = text(nn::kWorkingAttr); !name.empty())
      setState(argument, "parameter", name, /*isRounded=*/true);
    else if (auto name = text(nn::kGradientAttr); !name.empty()) {
      setAll(argument, zero);
      sums["gradient/" + name.str()] = argument;
    } else if (auto name = text(nn::kMeasureAttr); !name.empty()) {
      setAll(argument, zero);
      sums["measure/" + name.str()] = argument;
    } else if (role == "loss_sum") {
      setAll(argument, zero);
      sums["loss"] = argument;
    } else if (role == "lr" || role.starts_with("bias_correction"))
      setAll(argument, dump->get(role, shape));
    else if (role == "tokens" || role == "targets" || role == "rng") {
      SmallVector<int64_t> rows = {count.getInt() * shares};
      llvm::append_range(rows, shape);
      batch[argument] = given->get(role, rows);
    }
  }
  if (!dump->isWhole() || !given->isWhole())
    return 1;

  // The value that each accumulator becomes, by its position in the results.
  llvm::StringMap<Value> results;
  Value norm;
  for (auto [index, value] : llvm::enumerate(exit.getOperands())) {
    if (auto name =
            step.getResultAttrOfType<StringAttr>(index, nn::kGradientAttr))
      results["gradient/" + name.getValue().str()] = value;
    if (auto name =
            step.getResultAttrOfType<StringAttr>(index, nn::kMeasureAttr))
      results["measure/" + name.getValue().str()] = value;
    if (auto name =
            step.getResultAttrOfType<StringAttr>(index, nn::kOutputAttr)) {
      if (name == "loss")
        results["loss"] = value;
      else
        norm = value;
    }
  }
  if (numRanks > 1) {
    for (auto &[argument, rows] : batch)
      for (int64_t rank = 0; rank < numRanks; ++rank) {
        int64_t row = shares > 1 ? mesh.getCoordinate(rank, nn::kDataAxis) : 0;
        ranks[rank].set(argument, getRow(rows, row, argument.getType()));
      }
    if (failed(ranks.run()))
      return 1;
    for (auto &sum : sums)
      for (int64_t rank = 0; rank < numRanks; ++rank)
        ranks[rank].set(sum.second,
                        Tensor(ranks[rank].get(results[sum.first()])));
  }
  // The sum that a micro-batch leaves: others are added to some once a step.
  auto getOfMicroBatch = [&](Value sum) {
    for (Operation *maker = sum.getDefiningOp();
         maker && !maker->isBeforeInBlock(update); maker = sum.getDefiningOp())
      sum = maker->getOperand(0);
    return sum;
  };
  for (int64_t micro = 0; numRanks == 1 && micro < count.getInt(); ++micro) {
    for (auto &[argument, rows] : batch)
      machine.set(argument, getRow(rows, micro, argument.getType()));
    if (failed(machine.run(block.begin(), update->getIterator())))
      return 1;
    for (auto &sum : sums)
      machine.set(sum.second,
                  Tensor(machine.get(getOfMicroBatch(results[sum.first()]))));
  }
  if (numRanks == 1) {
    if (failed(machine.run(update->getIterator(), exit->getIterator())))
      return 1;
    for (auto &sum : sums)
      machine.set(sum.second, Tensor(machine.get(results[sum.first()])));
  }

  Comparison comparison;
  double floor = 1e-3 * machine.get(norm).values[0];
  unsigned gradients = 0;
  for (auto &sum : sums) {
    llvm::StringRef name = sum.first();
    name.consume_front("gradient/");
    Tensor want = getState(*dump, sum.second, sum.first(), name);
    const Tensor &have = dump->get(sum.first(), want.shape);
    bool isGradient = sum.first().starts_with("gradient/");
    comparison.add(sum.first(), have, want, isGradient ? floor : 0);
    gradients += isGradient;
  }
  comparison.add("grad_norm", dump->get("grad_norm", {}), machine.get(norm));
  if (!dump->isWhole())
    return 1;
  if (!nextDump.empty()) {
    llvm::Expected<Dump> next = Dump::read(nextDump);
    if (!next) {
      llvm::WithColor::error() << toString(next.takeError()) << "\n";
      return 1;
    }
    unsigned states = 0;
    for (auto [index, value] : llvm::enumerate(exit.getOperands()))
      for (auto [attribute, kind] :
           {std::pair(nn::kParameterAttr, "parameter/"),
            std::pair(nn::kMoment1Attr, "moment1/"),
            std::pair(nn::kMoment2Attr, "moment2/")})
        if (auto name =
                step.getResultAttrOfType<StringAttr>(index, attribute)) {
          std::string full = kind + name.getValue().str();
          // Adam turns any gradient into a step of the size of the learning
          // rate, also one that is rounding and nothing else.
          Value gradient = results.lookup("gradient/" + name.getValue().str());
          if (gradient && getNorm(machine.get(gradient)) <
                              1e-6 * machine.get(norm).values[0])
            continue;
          Tensor want = getState(*next, value, full, name.getValue()),
                 have = next->get(full, want.shape);
          if (attribute == nn::kMoment2Attr)
            for (Tensor *squares : {&want, &have})
              for (double &element : squares->values)
                element = std::sqrt(element);
          comparison.addNorm(full, have, want);
          ++states;
        }
    if (!next->isWhole())
      return 1;
    llvm::outs() << "compared " << states << " states after the update\n";
  }
  llvm::outs() << "compared the loss and " << gradients
               << " gradients: largest relative difference "
               << llvm::format("%.3g", comparison.worst) << " in "
               << comparison.where << "\n";
  if (comparison.worst <= tolerance)
    return 0;
  llvm::WithColor::error() << "needs differences of at most "
                           << llvm::format("%.3g", double(tolerance)) << "\n";
  return 1;
}
