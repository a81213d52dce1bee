//===- WriteTables.cpp - Tables as constant data ----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DataWriter.h"
#include "reprise/ABI/Version.h"
#include "reprise/Codegen/CPU/MicroKernels.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/RT/ElementFormat.h"
#include "reprise/Support/RawJSON.h"
#include "reprise/Target/Executable.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::target;

namespace {
/// A state of the whole model.
struct WholeState {
  rt::BufferOp buffer; ///< that its home has
  int64_t home = 0;    ///< the first stage that has it
  rt::BufferOp own;    ///< null: it is elsewhere
};

/// What a model has in common with those of other stages.
struct Shared {
  std::vector<WholeState> states;
  double modelFlops = 0, replayFlops = 0; ///< of a step of all ranks
};

/// Writes the table of one model, and those that it has the addresses of.
class TableWriter {
public:
  TableWriter(llvm::Module &module, const Aliases &aliases,
              const Tables &tables)
      : tables(tables), data(module, aliases, tables.stage) {}

  /// The address of the model's table.
  FailureOr<Typed<const RepriseModel *>>
  write(ModuleOp source, const Shared &shared, const DeviceImage *image);

private:
  Typed<RepriseSchedule> writeSchedule(const Tables::Schedule &schedule);
  Typed<const RepriseEntry *> writeProgram();
  Typed<RepriseGemm> writeGemm(const RepriseGemm &gemm);
  Typed<RepriseCollective> writeCollective(const RepriseCollective &collective);
  SmallVector<Typed<RepriseAxis>> writeAxes();
  Typed<RepriseState> writeState(const WholeState &whole);
  Typed<RepriseInputs> writeInputs(const Tables::Inputs &inputs);
  Typed<RepriseRotary> writeRotary(rt::BufferOp op);
  Typed<RepriseMicroKernel> writeMicroKernel(const Tables::MicroKernel &kernel);
  SmallVector<Typed<RepriseKernel>> writeKernels(bool areOfDevice);
  SmallVector<Typed<RepriseCategory>> writeCategories(rt::ArenaAttr arena);
  // Some fields of the model's table, as a tuple.
  auto writeLists(rt::ArenaAttr arena, const Shared &shared, bool isDevice);
  auto writeNames(ModuleOp source, StringRef modelType);
  auto writeRoles();

  const Tables &tables;
  DataWriter data;
  // What launches have slices of.
  SmallVector<Typed<RepriseBuffer>> buffers;
  SmallVector<Typed<int64_t>> ids;
};
} // namespace

Typed<RepriseSchedule>
TableWriter::writeSchedule(const Tables::Schedule &schedule) {
  using L = Fields<RepriseLaunch>;
  SmallVector<Typed<RepriseLaunch>> rows;
  for (const Tables::Launch &launch : schedule.launches) {
    rows.push_back(Row<RepriseLaunch>{
        data, L::kind(launch.kind), L::callee(launch.callee),
        L::firstBuffer(buffers.size()), L::numBuffers(launch.buffers.size()),
        L::firstId(ids.size()), L::numIds(launch.ids.size()),
        L::tasks(launch.tasks), L::flops(launch.flops),
        L::name(data.string(launch.name))});
    for (rt::BufferOp op : launch.buffers)
      buffers.push_back(data.buffer(op));
    for (int64_t id : launch.ids)
      ids.push_back(data.make<int64_t>(id));
  }
  using S = Fields<RepriseSchedule>;
  return Row<RepriseSchedule>{data, S::name(data.string(schedule.name)),
                              S::launches(data.table(rows, schedule.name)),
                              S::numLaunches(rows.size()), S::reserved(0)};
}

Typed<const RepriseEntry *> TableWriter::writeProgram() {
  using E = Fields<RepriseEntry>;
  SmallVector<Typed<RepriseEntry>> rows;
  for (const RepriseEntry &entry : tables.program)
    rows.push_back(Row<RepriseEntry>{data, E::schedule(entry.schedule),
                                     E::microBatch(entry.microBatch)});
  return data.table(rows, "program");
}

Typed<RepriseGemm> TableWriter::writeGemm(const RepriseGemm &gemm) {
  using G = Fields<RepriseGemm>;
  return Row<RepriseGemm>{data,
                          G::m(gemm.m),
                          G::n(gemm.n),
                          G::k(gemm.k),
                          G::lda(gemm.lda),
                          G::ldb(gemm.ldb),
                          G::ldc(gemm.ldc),
                          G::batch(gemm.batch),
                          G::strideA(gemm.strideA),
                          G::strideB(gemm.strideB),
                          G::strideC(gemm.strideC),
                          G::alpha(gemm.alpha),
                          G::transposeA(gemm.transposeA),
                          G::transposeB(gemm.transposeB),
                          G::bias(gemm.bias),
                          G::accumulate(gemm.accumulate),
                          G::typeAB(gemm.typeAB),
                          G::typeC(gemm.typeC),
                          G::epilogue(gemm.epilogue),
                          G::packedB(gemm.packedB),
                          G::groups(gemm.groups),
                          G::gather(gemm.gather),
                          G::slots(gemm.slots),
                          G::places(gemm.places)};
}

Typed<RepriseCollective>
TableWriter::writeCollective(const RepriseCollective &collective) {
  using C = Fields<RepriseCollective>;
  return Row<RepriseCollective>{data,
                                C::operation(collective.operation),
                                C::axis(collective.axis),
                                C::elementType(collective.elementType),
                                C::peer(collective.peer),
                                C::lane(collective.lane),
                                C::firstMember(collective.firstMember),
                                C::memberStride(collective.memberStride),
                                C::numMembers(collective.numMembers),
                                C::blocks(collective.blocks),
                                C::blockElements(collective.blockElements),
                                C::number(collective.number),
                                C::isOnce(collective.isOnce),
                                C::round(collective.round),
                                C::keepsOthers(collective.keepsOthers),
                                C::roundRows(collective.roundRows)};
}

SmallVector<Typed<RepriseAxis>> TableWriter::writeAxes() {
  using A = Fields<RepriseAxis>;
  nn::MeshAttr mesh = tables.mesh;
  SmallVector<Typed<RepriseAxis>> axes;
  if (mesh)
    for (auto [name, size, step] :
         llvm::zip_equal(mesh.getNames(), mesh.getSizes(), mesh.getSteps()))
      axes.push_back(Row<RepriseAxis>{data,
                                      A::name(data.string(name.getValue())),
                                      A::size(size), A::step(step)});
  return axes;
}

Typed<RepriseInputs> TableWriter::writeInputs(const Tables::Inputs &inputs) {
  using I = Fields<RepriseInputs>;
  return Row<RepriseInputs>{data, I::tokens(data.buffer(inputs.tokens)),
                            I::targets(data.buffer(inputs.targets)),
                            I::rng(data.buffer(inputs.rng))};
}

Typed<RepriseState> TableWriter::writeState(const WholeState &whole) {
  using S = Fields<RepriseState>;
  nn::MeshAttr mesh = tables.mesh;
  // Stages that both have it may have shares of it in other forms.
  rt::BufferOp op = whole.own ? whole.own : whole.buffer;
  auto state = op->getAttrOfType<rt::StateAttr>(rt::kStateAttr);
  ArrayRef<int64_t> dims = getStateShape(op);
  int64_t shape[4] = {1, 1, 1, 1};
  llvm::copy(dims, shape);
  bool hasShares = !state.getShare().empty();
  bool isApart = op.getType().getShape() != dims;
  if (state.getRows() > 0) // The rest of the buffer is no part of the tensor.
    shape[0] = state.getRows();
  double std = state.getStd() ? state.getStd().getValueAsDouble() : 0.0;
  StringRef name = state.getParameter(), hub = state.getHub();
  int64_t cutAxes[4] = {}, wholeExtents[4] = {};
  for (rt::CutAttr cut : state.getCuts()) {
    cutAxes[cut.getDim()] = getAxis(mesh, cut.getAxis());
    wholeExtents[cut.getDim()] = cut.getExtent();
  }
  return Row<RepriseState>{
      data,
      S::name(data.string(name)),
      S::hubName(data.string(hub.empty() ? name : hub)),
      S::kind(int(state.getKind())),
      S::init(int(state.getInit())),
      S::initStd(std),
      S::part(state.getPart()),
      S::parts(state.getParts()),
      S::rank(dims.size()),
      S::elementType(rt::getElementCode(op.getType())),
      S::cutAxes(cutAxes),
      S::reserved(0),
      S::wholeExtents(wholeExtents),
      S::shareForm(!hasShares ? REPRISE_SHARE_NONE
                   : isApart  ? REPRISE_SHARE_APART
                              : REPRISE_SHARE_WITHIN),
      S::shareAxis(hasShares ? getAxis(mesh, state.getShare()) : 0),
      S::stage(whole.home),
      S::isElsewhere(!whole.own),
      S::shape(shape),
      S::buffer(data.buffer(whole.own))};
}

Typed<RepriseRotary> TableWriter::writeRotary(rt::BufferOp op) {
  using R = Fields<RepriseRotary>;
  auto rotary = op->getAttrOfType<rt::RotaryAttr>(rt::kRotaryAttr);
  SmallVector<Typed<float>> frequencies;
  for (float frequency : rotary.getFrequencies().asArrayRef())
    frequencies.push_back(data.make<float>(frequency));
  MemRefType type = op.getType();
  return Row<RepriseRotary>{
      data,
      R::buffer(data.buffer(op)),
      R::length(type.getDimSize(0)),
      R::width(type.getDimSize(1)),
      R::frequencies(data.table(frequencies, "frequencies")),
      R::scale(rotary.getScale().getValueAsDouble()),
      R::reserved(0)};
}

SmallVector<Typed<RepriseKernel>> TableWriter::writeKernels(bool areOfDevice) {
  using K = Fields<RepriseKernel>;
  auto find = [&](StringRef name) {
    return data.function<RepriseKernelFn>(name);
  };
  SmallVector<Typed<RepriseKernel>> rows;
  for (auto &[name, index] : tables.kernels)
    rows.push_back(Row<RepriseKernel>{
        data, K::fn(find(areOfDevice ? StringRef() : name)),
        K::avx512Fn(find(tables.avx512Kernels.lookup(name))),
        K::avx512BF16Fn(find(tables.avx512BF16Kernels.lookup(name))),
        K::amxFn(find(tables.amxKernels.lookup(name))),
        K::name(data.string(name))});
  return rows;
}

Typed<RepriseMicroKernel>
TableWriter::writeMicroKernel(const Tables::MicroKernel &kernel) {
  using K = Fields<RepriseMicroKernel>;
  return Row<RepriseMicroKernel>{
      data,
      K::fn(data.function<RepriseMicroKernelFn>(kernel.function)),
      K::rows(kernel.tile->rows),
      K::cols(kernel.tile->cols),
      K::isa(kernel.tile->isa),
      K::typeAB(kernel.tile->typeAB)};
}

/// Numbers and words of the module's `nn.train`.
static double getNumber(DictionaryAttr train, StringRef key) {
  if (auto number = train.getAs<FloatAttr>(key))
    return number.getValueAsDouble();
  return 0;
}
static int64_t getInteger(DictionaryAttr train, StringRef key) {
  if (auto number = train.getAs<IntegerAttr>(key))
    return number.getInt();
  return 0;
}
static StringRef getWord(DictionaryAttr train, StringRef key) {
  if (auto text = train.getAs<StringAttr>(key))
    return text.getValue();
  return "";
}

/// The family that the text of a `config.json` is of; "" without one.
static FailureOr<std::string> getModelType(ModuleOp source) {
  auto attribute = source->getAttrOfType<StringAttr>(nn::kHubConfigAttr);
  StringRef config = attribute ? attribute.getValue() : "";
  if (config.empty())
    return std::string();
  if (findLevelTooMany(config))
    return source.emitError("needs at most ")
           << kMostLevels << " levels of lists and objects in 'nn.hub_config'";
  llvm::Expected<llvm::json::Value> json = llvm::json::parse(config);
  if (!json) {
    source.emitError("needs JSON in 'nn.hub_config', but got something else: ")
        << llvm::toString(json.takeError());
    return failure();
  }
  const llvm::json::Object *object = json->getAsObject();
  std::optional<StringRef> type;
  if (object)
    type = object->getString("model_type");
  if (!type) {
    source.emitError("needs 'model_type' in 'nn.hub_config'");
    return failure();
  }
  return type->str();
}

/// The lines of the plan, in the order of the arena, but for gradients that lie
/// behind all else.
SmallVector<Typed<RepriseCategory>>
TableWriter::writeCategories(rt::ArenaAttr arena) {
  int64_t activations = arena.getBytesOf(rt::Category::Activations), at = 0;
  int64_t behind =
      std::clamp<int64_t>(arena.getBytes() - arena.getBegin() - activations, 0,
                          arena.getBytesOf(rt::Category::Gradients));
  using C = Fields<RepriseCategory>;
  SmallVector<rt::CategoryBytesAttr> inOrder(arena.getCategories());
  llvm::sort(inOrder,
             [](auto a, auto b) { return a.getCategory() < b.getCategory(); });
  SmallVector<Typed<RepriseCategory>> categories;
  for (rt::CategoryBytesAttr category : inOrder) {
    int64_t bytes = category.getBytes();
    int64_t rest =
        category.getCategory() == rt::Category::Gradients ? behind : 0;
    Typed<RepriseBuffer> places[] = {data.place(at, bytes - rest),
                                     data.place(arena.getBytes() - rest, rest)};
    std::string name = rt::getDisplayName(category.getCategory());
    categories.push_back(Row<RepriseCategory>{
        data, C::name(data.string(name)), C::bytes(bytes), C::places(places)});
    at += bytes - rest;
  }
  return categories;
}

/// The arena of the device that a module's plan has; null without one.
static rt::ArenaAttr getArena(ModuleOp source) {
  auto plan = source->getAttrOfType<rt::PlanAttr>(rt::kPlanAttr);
  return plan ? plan.getArena(rt::Space::Device) : rt::ArenaAttr();
}

/// Whether there is all that the table of a model says.
static LogicalResult check(ModuleOp source, const Tables &tables,
                           const DeviceImage *image) {
  auto train = source->getAttrOfType<DictionaryAttr>(nn::kTrainAttr);
  if (!train || !getArena(source))
    return source.emitError("needs 'nn.train', and 'rt.plan' with an arena "
                            "of the device, on the module");
  for (StringRef key : {"lr", "min_lr", "adam_beta1", "adam_beta2", "seed",
                        "lr_warmup_iters", "train_iters", "vocab_size"})
    if (!train.contains(key))
      return source.emitError("needs '") << key << "' in 'nn.train'";
  if (failed(tables.checkRoles(source, getInteger(train, "vocab_size"))))
    return failure();
  if (tables.isDevice && !image)
    return source.emitError("needs the machine code of '@device'");
  return success();
}

/// The lists of a model, with how many rows each has.
auto TableWriter::writeLists(rt::ArenaAttr arena, const Shared &shared,
                             bool isDevice) {
  auto writeAll = [&](const auto &all, auto write) {
    return llvm::map_to_vector(
        all, [&](const auto &one) { return (this->*write)(one); });
  };
  using W = TableWriter;
  auto categories = writeCategories(arena);
  auto states = writeAll(shared.states, &W::writeState);
  auto inputs = writeAll(tables.inputs, &W::writeInputs);
  auto rotaries = writeAll(tables.rotaries, &W::writeRotary);
  auto kernels = writeKernels(/*areOfDevice=*/isDevice);
  auto gemms = writeAll(tables.gemms, &W::writeGemm);
  auto microKernels = writeAll(tables.microKernels, &W::writeMicroKernel);
  auto collectives = writeAll(tables.collectives, &W::writeCollective);
  auto axes = writeAxes();
  auto schedules = writeAll(tables.schedules, &W::writeSchedule);
  using M = Fields<RepriseModel>;
  return std::tuple{M::numCategories(categories.size()),
                    M::numStates(states.size()),
                    M::numKernels(kernels.size()),
                    M::numGemms(gemms.size()),
                    M::numMicroKernels(microKernels.size()),
                    M::numSchedules(schedules.size()),
                    M::numEntries(tables.program.size()),
                    M::numRotaries(rotaries.size()),
                    M::numAxes(axes.size()),
                    M::numCollectives(collectives.size()),
                    M::numInputs(inputs.size()),
                    M::categories(data.table(categories, "categories")),
                    M::states(data.table(states, "states")),
                    M::rotaries(data.table(rotaries, "rotaries")),
                    M::kernels(data.table(kernels, "kernels")),
                    M::gemms(data.table(gemms, "gemms")),
                    M::microKernels(data.table(microKernels, "micro_kernels")),
                    M::axes(data.table(axes, "axes")),
                    M::collectives(data.table(collectives, "collectives")),
                    M::schedules(data.table(schedules, "schedules")),
                    M::program(writeProgram()),
                    M::inputs(data.table(inputs, "inputs")),
                    M::buffers(data.table(buffers, "buffers")),
                    M::ids(data.table(ids, "ids"))};
}

/// What the model is, and of whom, in words.
auto TableWriter::writeNames(ModuleOp source, StringRef modelType) {
  auto getText = [&](StringRef key, StringRef other) {
    auto text = source->getAttrOfType<StringAttr>(key);
    return data.string(text ? text.getValue() : other);
  };
  auto train = source->getAttrOfType<DictionaryAttr>(nn::kTrainAttr);
  using M = Fields<RepriseModel>;
  return std::tuple{M::name(getText(nn::kModelAttr, "model")),
                    M::plan(data.string(getWord(train, "recompute"))),
                    M::modelType(data.string(modelType)),
                    M::configJson(getText(nn::kHubConfigAttr, "")),
                    M::compiler(data.string("reprisec " REPRISE_VERSION
                                            ", LLVM " LLVM_VERSION_STRING)),
                    M::trainJson(getText(nn::kTrainJsonAttr, ""))};
}

/// Where the runtime writes what a step reads, and reads what comes out.
auto TableWriter::writeRoles() {
  auto role = [&](StringRef name) {
    return data.buffer(tables.roles.lookup(name));
  };
  using M = Fields<RepriseModel>;
  return std::tuple{M::tokens(role("tokens")),
                    M::targets(role("targets")),
                    M::rng(role("rng")),
                    M::lr(role("lr")),
                    M::biasCorrection1(role("bias_correction1")),
                    M::biasCorrection2(role("bias_correction2")),
                    M::loss(role("loss")),
                    M::gradNorm(role("grad_norm")),
                    M::evalLoss(role("eval_loss")),
                    M::sampleTokens(role("sample_tokens")),
                    M::position(role("position")),
                    M::logits(role("logits")),
                    M::batches(role("batches"))};
}

/// What `nn.train` says.
static auto getTraining(DictionaryAttr train) {
  StringRef style = getWord(train, "lr_decay_style");
  int64_t decay = style == "linear"   ? REPRISE_LR_LINEAR
                  : style == "cosine" ? REPRISE_LR_COSINE
                                      : REPRISE_LR_CONSTANT;
  StringRef decayIters =
      train.contains("lr_decay_iters") ? "lr_decay_iters" : "train_iters";
  using M = Fields<RepriseModel>;
  return std::tuple{M::vocabSize(getInteger(train, "vocab_size")),
                    M::budgetBytes(getInteger(train, nn::kMemoryBudget)),
                    M::learningRate(getNumber(train, "lr")),
                    M::minLearningRate(getNumber(train, "min_lr")),
                    M::beta1(getNumber(train, "adam_beta1")),
                    M::beta2(getNumber(train, "adam_beta2")),
                    M::warmupIters(getInteger(train, "lr_warmup_iters")),
                    M::decayIters(getInteger(train, decayIters)),
                    M::trainIters(getInteger(train, "train_iters")),
                    M::seed(getInteger(train, "seed")),
                    M::lrDecayStyle(decay)};
}

FailureOr<Typed<const RepriseModel *>>
TableWriter::write(ModuleOp source, const Shared &shared,
                   const DeviceImage *image) {
  if (failed(check(source, tables, image)))
    return failure();
  FailureOr<std::string> modelType = getModelType(source);
  if (failed(modelType))
    return failure();
  rt::ArenaAttr arena = getArena(source);
  auto alignment = source->getAttrOfType<IntegerAttr>(rt::kAlignmentAttr);
  ArrayRef<int64_t> shape = tables.roles.lookup("tokens").getType().getShape();
  using M = Fields<RepriseModel>;
  Row<RepriseModel> model{
      data,
      writeLists(arena, shared, image != nullptr),
      writeNames(source, *modelType),
      writeRoles(),
      getTraining(source->getAttrOfType<DictionaryAttr>(nn::kTrainAttr)),
      M::abiVersion(REPRISE_ABI_VERSION),
      M::numMicroBatches(tables.microBatchesPerRank *
                         nn::getAxisSize(source, nn::kDataAxis)),
      M::microBatchSize(shape[0]),
      M::seqLength(shape[1]),
      M::arenaBytes(arena.getBytes()),
      M::arenaAlignment(alignment ? alignment.getInt() : rt::kDefaultAlignment),
      M::evaluate(tables.evaluate),
      M::sample(tables.sample),
      M::microBatchesPerRank(tables.microBatchesPerRank),
      M::stage(tables.stage.value_or(0)),
      M::reductionGroups(tables.reductionGroups),
      M::target(image ? REPRISE_TARGET_CUDA : REPRISE_TARGET_CPU),
      M::modelFlops(shared.modelFlops),
      M::replayFlops(shared.replayFlops),
      M::cuda(image ? writeDevice(data, source, tables, *image)
                    : data.null<const RepriseCudaModule *>())};
  return data.address(model, "model");
}

/// Where states of a kind are among those of a step: parameters, sums of
/// gradients, working copies, both moments of each parameter, and measures.
static int getPlace(rt::StateKind kind) {
  switch (kind) {
  case rt::StateKind::Parameter:
    return 0;
  case rt::StateKind::Gradient:
  case rt::StateKind::Partial:
    return 1;
  case rt::StateKind::Working:
    return 2;
  case rt::StateKind::Moment1:
  case rt::StateKind::Moment2:
    return 3;
  case rt::StateKind::Measure:
    return 4;
  }
  llvm_unreachable("unknown kind of state");
}

/// How many of the states before `end` are measures.
static int64_t countMeasures(const Tables &tables, size_t end) {
  return llvm::count_if(
      ArrayRef(tables.states).take_front(end), [](rt::BufferOp op) {
        auto state = op->getAttrOfType<rt::StateAttr>(rt::kStateAttr);
        return state.getKind() == rt::StateKind::Measure;
      });
}

/// The states of all stages of a program, in the order of the model that is not
/// cut, as the one with `own` has them.
static std::vector<WholeState> getStates(ArrayRef<Tables> all,
                                         const Tables &own) {
  std::vector<WholeState> states;
  if (!own.stage) {
    for (rt::BufferOp op : own.states)
      states.push_back({op, /*home=*/0, op});
    return states;
  }
  llvm::StringMap<int64_t> numbers;
  auto getState = [](rt::BufferOp op) {
    return op->getAttrOfType<rt::StateAttr>(rt::kStateAttr);
  };
  for (const Tables &tables : all)
    for (rt::BufferOp op : tables.states)
      if (auto order = op->getAttrOfType<IntegerAttr>(rt::kOrderAttr))
        numbers[getState(op).getParameter()] = order.getInt();
  std::map<std::tuple<int, int64_t, int, StringRef, int64_t>, WholeState> found;
  for (const Tables &tables : all)
    for (auto [index, op] : llvm::enumerate(tables.states)) {
      rt::StateAttr state = getState(op);
      StringRef name = state.getParameter();
      // All stages have all measures, in one order.
      bool isMeasure = state.getKind() == rt::StateKind::Measure;
      WholeState &whole = found[{getPlace(state.getKind()),
                                 isMeasure ? countMeasures(tables, index)
                                           : numbers.lookup(name),
                                 int(state.getKind()), name, state.getLevel()}];
      if (!whole.buffer) {
        whole.buffer = op;
        whole.home = tables.stage.value_or(0);
      }
      if (&tables == &own)
        whole.own = op;
    }
  for (auto &[key, state] : found)
    states.push_back(state);
  return states;
}

/// What the model of `own` has in common with others of its target, one for
/// each stage.
static Shared getShared(ArrayRef<Tables> all, const Tables &own) {
  Shared shared;
  shared.states = getStates(all, own);
  double ranks = own.mesh ? double(own.mesh.getNumRanks()) : 1;
  if (!own.stage) {
    shared.modelFlops = ranks * own.modelFlops;
    shared.replayFlops = ranks * own.replayFlops;
    return shared;
  }
  for (const Tables &tables : all) {
    shared.modelFlops += ranks / double(all.size()) * tables.modelFlops;
    shared.replayFlops += ranks / double(all.size()) * tables.replayFlops;
  }
  return shared;
}

/// Writes `main`, which hands the models to the runtime.
static void writeMain(llvm::Module &module,
                      Typed<const RepriseModel *const *> models,
                      int64_t numModels) {
  llvm::IRBuilder<> builder(module.getContext());
  llvm::Type *i32 = builder.getInt32Ty(), *pointer = builder.getPtrTy();
  auto *type = llvm::FunctionType::get(i32, {i32, pointer}, false);
  auto *main = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage,
                                      "main", module);
  llvm::FunctionCallee entry = module.getOrInsertFunction(
      "repriseMain", i32, i32, pointer, pointer, i32);
  builder.SetInsertPoint(
      llvm::BasicBlock::Create(module.getContext(), "", main));
  builder.CreateRet(builder.CreateCall(entry, {main->getArg(0), main->getArg(1),
                                               models.constant,
                                               builder.getInt32(numModels)}));
}

std::unique_ptr<llvm::Module>
target::writeTables(ArrayRef<CompiledModel> models, ArrayRef<Tables> tables,
                    const Aliases &aliases, llvm::LLVMContext &context) {
  auto module = std::make_unique<llvm::Module>("reprise", context);
  SmallVector<Typed<const RepriseModel *>> addresses;
  for (auto [model, table] : llvm::zip_equal(models, tables)) {
    // Those of a target stand together.
    auto isAlike = [isLibrary = table.isLibrary](const Tables &other) {
      return other.isLibrary == isLibrary;
    };
    ArrayRef<Tables> alike = tables.drop_until(isAlike).take_while(isAlike);
    FailureOr<Typed<const RepriseModel *>> address =
        TableWriter(*module, aliases, table)
            .write(model.module, getShared(alike, table), model.image);
    if (failed(address))
      return nullptr;
    addresses.push_back(*address);
  }
  writeMain(*module, DataWriter(*module, aliases).table(addresses, "models"),
            addresses.size());
  return module;
}
