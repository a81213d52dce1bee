//===- WriteTables.cpp - Tables as constant data ----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rows.h"
#include "Tables.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "reprise/ABI/Version.h"
#include "reprise/Codegen/CPU/MicroKernels.h"
#include "reprise/Codegen/CUDA/Device.h"
#include "reprise/Codegen/CUDA/RankSums.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/RT/ElementFormat.h"
#include "reprise/Support/RawJSON.h"
#include "reprise/Target/DeviceImage.h"
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

/// Writes tables as constants of an LLVM module.
class TableWriter {
public:
  TableWriter(llvm::Module &module, const Aliases &aliases)
      : module(module), aliases(aliases), context(module.getContext()),
        builder(context), constants(context) {}

  /// The address of the table of one model.
  FailureOr<Typed<const RepriseModel *>> write(ModuleOp source,
                                               const Tables &tables,
                                               const Shared &shared,
                                               const DeviceImage *image);
  void writeMain(ArrayRef<Typed<const RepriseModel *>> models);

private:
  Typed<RepriseBuffer> place(int64_t offset, int64_t bytes) {
    using B = Fields<RepriseBuffer>;
    return Row<RepriseBuffer>{constants, B::offset(offset), B::bytes(bytes)};
  }
  Typed<RepriseBuffer> buffer(rt::BufferOp op) {
    return op ? place(op.getOffset(), getTypeBytes(op.getType())) : place(0, 0);
  }
  /// The address of a function of the code, null without a name.
  template <typename Function>
  Typed<Function> function(StringRef name) {
    if (name.empty())
      return constants.null<Function>();
    auto *type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), false);
    std::string symbol = getCodeSymbol(name, stage);
    if (auto same = aliases.find(symbol); same != aliases.end())
      symbol = same->second;
    auto *function = cast<llvm::Function>(
        module.getOrInsertFunction(symbol, type).getCallee());
    function->setVisibility(llvm::GlobalValue::HiddenVisibility);
    function->setDSOLocal(true);
    return {function};
  }
  /// The address of `text`, one copy of each.
  Typed<const char *> string(StringRef text);
  /// The address of an array of constants, null if there are none.
  template <typename T>
  Typed<const T *> table(ArrayRef<Typed<T>> rows, StringRef name) {
    if (rows.empty())
      return constants.null<const T *>();
    auto *type = llvm::ArrayType::get(constants.type<T>(), rows.size());
    auto elements = llvm::map_to_vector(
        rows, [](const Typed<T> &row) { return row.constant; });
    return {global(llvm::ConstantArray::get(type, elements), name)};
  }
  template <typename T>
  Typed<const T *> table(const SmallVectorImpl<Typed<T>> &rows,
                         StringRef name) {
    return table(ArrayRef<Typed<T>>(rows), name);
  }
  llvm::GlobalVariable *global(llvm::Constant *value, StringRef name);
  llvm::Constant *bytes(StringRef data, StringRef name, bool isText);

  Typed<RepriseSchedule> writeSchedule(const Tables::Schedule &schedule);
  Typed<const RepriseEntry *> writeProgram(ArrayRef<RepriseEntry> program);
  Typed<RepriseGemm> writeGemm(const RepriseGemm &gemm);
  Typed<RepriseCollective> writeCollective(const RepriseCollective &collective);
  SmallVector<Typed<RepriseAxis>> writeAxes(nn::MeshAttr mesh);
  Typed<RepriseState> writeState(const WholeState &whole, nn::MeshAttr mesh);
  SmallVector<Typed<RepriseInputs>> writeInputs(const Tables &tables);
  Typed<RepriseRotary> writeRotary(rt::BufferOp op);
  Typed<const RepriseMicroKernel *> writeMicroKernels(const Tables &tables);
  SmallVector<Typed<RepriseKernel>> writeKernels(const Tables &tables,
                                                 bool areOfDevice);
  SmallVector<Typed<RepriseCategory>> writeCategories(rt::ArenaAttr arena);
  SmallVector<Typed<RepriseCudaKernel>>
  writeDeviceKernels(ModuleOp source, const Tables &tables);
  SmallVector<Typed<RepriseCudaSum>> writeDeviceSums(ModuleOp source);
  SmallVector<Typed<RepriseCudaRows>> writeDeviceRows(ModuleOp source);
  Typed<const RepriseCudaModule *>
  writeDevice(ModuleOp source, const Tables &tables, const DeviceImage &image);

  llvm::Module &module;
  const Aliases &aliases;
  llvm::LLVMContext &context;
  llvm::IRBuilder<> builder;
  ConstantMaker constants;
  llvm::StringMap<llvm::Constant *> strings;
  SmallVector<Typed<RepriseBuffer>> buffers;
  SmallVector<Typed<int64_t>> ids;
  std::optional<int64_t> stage; ///< of the model that is written
};
} // namespace

//===----------------------------------------------------------------------===//
// Writing constants
//===----------------------------------------------------------------------===//

Typed<const char *> TableWriter::string(StringRef text) {
  llvm::Constant *&address = strings[text];
  if (!address)
    address = builder.CreateGlobalString(text, "text", 0, &module);
  return {address};
}

llvm::GlobalVariable *TableWriter::global(llvm::Constant *value,
                                          StringRef name) {
  return new llvm::GlobalVariable(module, value->getType(), /*isConstant=*/true,
                                  llvm::GlobalValue::PrivateLinkage, value,
                                  name);
}

llvm::Constant *TableWriter::bytes(StringRef data, StringRef name,
                                   bool isText) {
  llvm::GlobalVariable *variable =
      global(llvm::ConstantDataArray::getString(context, data, isText), name);
  variable->setAlignment(llvm::Align(16));
  return variable;
}

Typed<RepriseSchedule>
TableWriter::writeSchedule(const Tables::Schedule &schedule) {
  using L = Fields<RepriseLaunch>;
  SmallVector<Typed<RepriseLaunch>> rows;
  for (const Tables::Launch &launch : schedule.launches) {
    rows.push_back(Row<RepriseLaunch>{
        constants, L::kind(launch.kind), L::callee(launch.callee),
        L::firstBuffer(buffers.size()), L::numBuffers(launch.buffers.size()),
        L::firstId(ids.size()), L::numIds(launch.ids.size()),
        L::tasks(launch.tasks), L::flops(launch.flops),
        L::name(string(launch.name))});
    for (rt::BufferOp op : launch.buffers)
      buffers.push_back(buffer(op));
    for (int64_t id : launch.ids)
      ids.push_back(constants.make<int64_t>(id));
  }
  using S = Fields<RepriseSchedule>;
  return Row<RepriseSchedule>{constants, S::name(string(schedule.name)),
                              S::launches(table(rows, schedule.name)),
                              S::numLaunches(rows.size()), S::reserved(0)};
}

Typed<const RepriseEntry *>
TableWriter::writeProgram(ArrayRef<RepriseEntry> program) {
  using E = Fields<RepriseEntry>;
  SmallVector<Typed<RepriseEntry>> rows;
  for (const RepriseEntry &entry : program)
    rows.push_back(Row<RepriseEntry>{constants, E::schedule(entry.schedule),
                                     E::microBatch(entry.microBatch)});
  return table(rows, "program");
}

Typed<RepriseGemm> TableWriter::writeGemm(const RepriseGemm &gemm) {
  using G = Fields<RepriseGemm>;
  return Row<RepriseGemm>{constants,
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
  return Row<RepriseCollective>{constants,
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

SmallVector<Typed<RepriseAxis>> TableWriter::writeAxes(nn::MeshAttr mesh) {
  using A = Fields<RepriseAxis>;
  SmallVector<Typed<RepriseAxis>> axes;
  if (mesh)
    for (auto [name, size, step] :
         llvm::zip_equal(mesh.getNames(), mesh.getSizes(), mesh.getSteps()))
      axes.push_back(Row<RepriseAxis>{constants,
                                      A::name(string(name.getValue())),
                                      A::size(size), A::step(step)});
  return axes;
}

SmallVector<Typed<RepriseInputs>>
TableWriter::writeInputs(const Tables &tables) {
  using I = Fields<RepriseInputs>;
  SmallVector<Typed<RepriseInputs>> rows;
  for (const Tables::Inputs &inputs : tables.inputs)
    rows.push_back(Row<RepriseInputs>{
        constants, I::tokens(buffer(inputs.tokens)),
        I::targets(buffer(inputs.targets)), I::rng(buffer(inputs.rng))});
  return rows;
}

Typed<RepriseState> TableWriter::writeState(const WholeState &whole,
                                            nn::MeshAttr mesh) {
  using S = Fields<RepriseState>;
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
      constants,
      S::name(string(name)),
      S::hubName(string(hub.empty() ? name : hub)),
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
      S::buffer(buffer(whole.own))};
}

Typed<RepriseRotary> TableWriter::writeRotary(rt::BufferOp op) {
  using R = Fields<RepriseRotary>;
  auto rotary = op->getAttrOfType<rt::RotaryAttr>(rt::kRotaryAttr);
  SmallVector<Typed<float>> frequencies;
  for (float frequency : rotary.getFrequencies().asArrayRef())
    frequencies.push_back(constants.make<float>(frequency));
  MemRefType type = op.getType();
  return Row<RepriseRotary>{constants,
                            R::buffer(buffer(op)),
                            R::length(type.getDimSize(0)),
                            R::width(type.getDimSize(1)),
                            R::frequencies(table(frequencies, "frequencies")),
                            R::scale(rotary.getScale().getValueAsDouble()),
                            R::reserved(0)};
}

SmallVector<Typed<RepriseKernel>>
TableWriter::writeKernels(const Tables &tables, bool areOfDevice) {
  using K = Fields<RepriseKernel>;
  auto find = [&](StringRef name) { return function<RepriseKernelFn>(name); };
  SmallVector<Typed<RepriseKernel>> rows;
  for (auto &[name, index] : tables.kernels)
    rows.push_back(Row<RepriseKernel>{
        constants, K::fn(find(areOfDevice ? StringRef() : name)),
        K::avx512Fn(find(tables.avx512Kernels.lookup(name))),
        K::avx512BF16Fn(find(tables.avx512BF16Kernels.lookup(name))),
        K::amxFn(find(tables.amxKernels.lookup(name))), K::name(string(name))});
  return rows;
}

Typed<const RepriseMicroKernel *>
TableWriter::writeMicroKernels(const Tables &tables) {
  using K = Fields<RepriseMicroKernel>;
  SmallVector<Typed<RepriseMicroKernel>> rows;
  for (const Tables::MicroKernel &kernel : tables.microKernels)
    rows.push_back(Row<RepriseMicroKernel>{
        constants, K::fn(function<RepriseMicroKernelFn>(kernel.function)),
        K::rows(kernel.tile->rows), K::cols(kernel.tile->cols),
        K::isa(kernel.tile->isa), K::typeAB(kernel.tile->typeAB)});
  return table(rows, "micro_kernels");
}

void TableWriter::writeMain(ArrayRef<Typed<const RepriseModel *>> models) {
  llvm::Type *i32 = builder.getInt32Ty(), *pointer = builder.getPtrTy();
  auto *type = llvm::FunctionType::get(i32, {i32, pointer}, false);
  auto *main = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage,
                                      "main", module);
  llvm::FunctionCallee entry = module.getOrInsertFunction(
      "repriseMain", i32, i32, pointer, pointer, i32);
  builder.SetInsertPoint(llvm::BasicBlock::Create(context, "", main));
  builder.CreateRet(builder.CreateCall(
      entry,
      {main->getArg(0), main->getArg(1), table(models, "models").constant,
       constants.make<int32_t>(models.size()).constant}));
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

/// The family that `config`, the text of a `config.json`, is of.
static FailureOr<std::string> getModelType(ModuleOp source, StringRef config) {
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

/// Bytes of the variables in device memory of the code in `source`.
static int64_t countGlobalBytes(ModuleOp source) {
  int64_t bytes = 0;
  DataLayout layout(source);
  source.walk([&](LLVM::GlobalOp global) {
    if (!global.getConstant() &&
        global.getAddrSpace() == unsigned(NVVM::NVVMMemorySpace::Global))
      bytes += layout.getTypeSize(global.getGlobalType()).getFixedValue();
  });
  return bytes;
}

/// By their names.
static llvm::StringMap<cuda::KernelFacts> getFacts(ModuleOp source) {
  llvm::StringMap<cuda::KernelFacts> facts;
  for (cuda::KernelFacts &kernel : cuda::getKernelFacts(source))
    facts[kernel.name] = kernel;
  return facts;
}

SmallVector<Typed<RepriseCudaKernel>>
TableWriter::writeDeviceKernels(ModuleOp source, const Tables &tables) {
  using K = Fields<RepriseCudaKernel>;
  llvm::StringMap<cuda::KernelFacts> facts = getFacts(source);
  // Every launch of a kernel has as many buffers and ids.
  llvm::StringMap<const Tables::Launch *> launches;
  SmallVector<StringRef> names(tables.kernels.size());
  for (auto &[name, index] : tables.kernels)
    names[index] = name;
  for (const Tables::Schedule &schedule : tables.schedules)
    for (const Tables::Launch &launch : schedule.launches)
      if (launch.kind == REPRISE_LAUNCH_KERNEL)
        launches[names[launch.callee]] = &launch;

  SmallVector<Typed<RepriseCudaKernel>> kernels;
  for (StringRef name : names) {
    const cuda::KernelFacts &kernel = facts[name];
    const Tables::Launch *launch = launches[name];
    kernels.push_back(Row<RepriseCudaKernel>{
        constants, K::name(string(name)), K::grid(kernel.grid),
        K::block(kernel.block), K::numBuffers(launch->buffers.size()),
        K::numIds(launch->ids.size()), K::sharedBytes(kernel.sharedBytes)});
  }
  return kernels;
}

SmallVector<Typed<RepriseCudaSum>>
TableWriter::writeDeviceSums(ModuleOp source) {
  using S = Fields<RepriseCudaSum>;
  llvm::StringMap<cuda::KernelFacts> facts = getFacts(source);
  SmallVector<Typed<RepriseCudaSum>> rows;
  llvm::StringMap<bool> written;
  source.walk([&](rt::CollectiveOp op) {
    for (const cuda::RankSum &sum : cuda::getRankSums(op)) {
      std::string name = cuda::getRankSumName(sum);
      auto kernel = facts.find(name);
      if (kernel == facts.end() || !written.insert({name, true}).second)
        continue;
      rows.push_back(Row<RepriseCudaSum>{
          constants, S::name(string(name)),
          S::elementType(rt::getElementCode(sum.element)),
          S::numTerms(sum.getNumTerms()), S::threads(kernel->second.block[0]),
          S::perBlock(cuda::kRankSumElements)});
    }
  });
  return rows;
}

SmallVector<Typed<RepriseCudaRows>>
TableWriter::writeDeviceRows(ModuleOp source) {
  using R = Fields<RepriseCudaRows>;
  llvm::StringMap<cuda::KernelFacts> facts = getFacts(source);
  SmallVector<Typed<RepriseCudaRows>> rows;
  for (int64_t unit : cuda::getRankRowsUnits(source)) {
    std::string name = cuda::getRankRowsName(unit);
    auto kernel = facts.find(name);
    if (kernel == facts.end())
      continue;
    rows.push_back(Row<RepriseCudaRows>{constants, R::name(string(name)),
                                        R::unitBytes(unit),
                                        R::threads(kernel->second.block[0])});
  }
  return rows;
}

Typed<const RepriseCudaModule *>
TableWriter::writeDevice(ModuleOp source, const Tables &tables,
                         const DeviceImage &image) {
  using C = Fields<RepriseCubin>;
  using D = Fields<RepriseCudaModule>;
  SmallVector<Typed<RepriseCudaKernel>> kernels =
      writeDeviceKernels(source, tables);
  SmallVector<Typed<RepriseCudaSum>> sums = writeDeviceSums(source);
  SmallVector<Typed<RepriseCudaRows>> rows = writeDeviceRows(source);
  SmallVector<Typed<RepriseCubin>> cubins;
  for (const DeviceImage::Cubin &cubin : image.cubins) {
    StringRef code(cubin.code.data(), cubin.code.size());
    cubins.push_back(Row<RepriseCubin>{
        constants, C::smMajor(cubin.major), C::smMinor(cubin.minor),
        C::archSpecific(cubin.archSpecific), C::reserved(0),
        C::data({bytes(code, "cubin", /*isText=*/false)}),
        C::bytes(code.size())});
  }
  Row<RepriseCudaModule> row{constants,
                             D::ptx({bytes(image.ptx, "ptx", /*isText=*/true)}),
                             D::ptxBytes(image.ptx.size()),
                             D::cubins(table(cubins, "cubins")),
                             D::kernels(table(kernels, "device_kernels")),
                             D::numCubins(cubins.size()),
                             D::ptxMajor(image.major),
                             D::ptxMinor(image.minor),
                             D::numSums(sums.size()),
                             D::sums(table(sums, "device_sums")),
                             D::rows(table(rows, "device_rows")),
                             D::numRows(rows.size()),
                             D::globalBytes(countGlobalBytes(source))};
  return {global(row.constant, "device")};
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
    Typed<RepriseBuffer> places[] = {place(at, bytes - rest),
                                     place(arena.getBytes() - rest, rest)};
    std::string name = rt::getDisplayName(category.getCategory());
    categories.push_back(Row<RepriseCategory>{
        constants, C::name(string(name)), C::bytes(bytes), C::places(places)});
    at += bytes - rest;
  }
  return categories;
}

FailureOr<Typed<const RepriseModel *>>
TableWriter::write(ModuleOp source, const Tables &tables, const Shared &shared,
                   const DeviceImage *image) {
  stage = tables.stage;
  auto train = source->getAttrOfType<DictionaryAttr>(nn::kTrainAttr);
  auto plan = source->getAttrOfType<rt::PlanAttr>(rt::kPlanAttr);
  rt::ArenaAttr arena =
      plan ? plan.getArena(rt::Space::Device) : rt::ArenaAttr();
  if (!train || !arena)
    return source.emitError("needs 'nn.train', and 'rt.plan' with an arena "
                            "of the device, on the module");
  for (StringRef key : {"lr", "min_lr", "adam_beta1", "adam_beta2", "seed",
                        "lr_warmup_iters", "train_iters", "vocab_size"})
    if (!train.contains(key))
      return source.emitError("needs '") << key << "' in 'nn.train'";
  if (failed(tables.checkRoles(source, getInteger(train, "vocab_size"))))
    return failure();
  auto alignment = source->getAttrOfType<IntegerAttr>(rt::kAlignmentAttr);
  if (tables.isDevice && !image)
    return source.emitError("needs the machine code of '@device'");

  SmallVector<Typed<RepriseCategory>> categories = writeCategories(arena);
  SmallVector<Typed<RepriseState>> states;
  for (const WholeState &state : shared.states)
    states.push_back(writeState(state, tables.mesh));
  SmallVector<Typed<RepriseInputs>> inputs = writeInputs(tables);
  SmallVector<Typed<RepriseRotary>> rotaries;
  for (rt::BufferOp op : tables.rotaries)
    rotaries.push_back(writeRotary(op));
  SmallVector<Typed<RepriseKernel>> kernels =
      writeKernels(tables, /*areOfDevice=*/image != nullptr);
  SmallVector<Typed<RepriseGemm>> gemms;
  for (const RepriseGemm &gemm : tables.gemms)
    gemms.push_back(writeGemm(gemm));
  SmallVector<Typed<RepriseCollective>> collectives;
  for (const RepriseCollective &collective : tables.collectives)
    collectives.push_back(writeCollective(collective));
  SmallVector<Typed<RepriseAxis>> axes = writeAxes(tables.mesh);
  SmallVector<Typed<RepriseSchedule>> schedules;
  for (const Tables::Schedule &schedule : tables.schedules)
    schedules.push_back(writeSchedule(schedule));
  auto role = [&](StringRef name) { return buffer(tables.roles.lookup(name)); };
  auto name = source->getAttrOfType<StringAttr>(nn::kModelAttr);
  auto config = source->getAttrOfType<StringAttr>(nn::kHubConfigAttr);
  StringRef configJson = config ? config.getValue() : "";
  auto section = source->getAttrOfType<StringAttr>(nn::kTrainJsonAttr);
  FailureOr<std::string> modelType = getModelType(source, configJson);
  if (failed(modelType))
    return failure();
  ArrayRef<int64_t> shape = tables.roles.lookup("tokens").getType().getShape();
  StringRef style = getWord(train, "lr_decay_style");
  int64_t decay = style == "linear"   ? REPRISE_LR_LINEAR
                  : style == "cosine" ? REPRISE_LR_COSINE
                                      : REPRISE_LR_CONSTANT;
  using M = Fields<RepriseModel>;
  Row<RepriseModel> model{
      constants,
      M::abiVersion(REPRISE_ABI_VERSION),
      M::numMicroBatches(tables.microBatchesPerRank *
                         nn::getAxisSize(source, nn::kDataAxis)),
      M::name(string(name ? name.getValue() : "model")),
      M::plan(string(getWord(train, "recompute"))),
      M::modelType(string(*modelType)),
      M::configJson(string(configJson)),
      M::compiler(
          string("reprisec " REPRISE_VERSION ", LLVM " LLVM_VERSION_STRING)),
      M::trainJson(string(section ? section.getValue() : "")),
      M::microBatchSize(shape[0]),
      M::seqLength(shape[1]),
      M::vocabSize(getInteger(train, "vocab_size")),
      M::arenaBytes(arena.getBytes()),
      M::arenaAlignment(alignment ? alignment.getInt() : rt::kDefaultAlignment),
      M::budgetBytes(getInteger(train, nn::kMemoryBudget)),
      M::numCategories(categories.size()),
      M::numStates(states.size()),
      M::numKernels(kernels.size()),
      M::numGemms(gemms.size()),
      M::numMicroKernels(tables.microKernels.size()),
      M::numSchedules(schedules.size()),
      M::numEntries(tables.program.size()),
      M::evaluate(tables.evaluate),
      M::sample(tables.sample),
      M::numRotaries(rotaries.size()),
      M::numAxes(axes.size()),
      M::numCollectives(collectives.size()),
      M::microBatchesPerRank(tables.microBatchesPerRank),
      M::numInputs(inputs.size()),
      M::stage(tables.stage.value_or(0)),
      M::reductionGroups(tables.reductionGroups),
      M::categories(table(categories, "categories")),
      M::states(table(states, "states")),
      M::rotaries(table(rotaries, "rotaries")),
      M::kernels(table(kernels, "kernels")),
      M::gemms(table(gemms, "gemms")),
      M::microKernels(writeMicroKernels(tables)),
      M::axes(table(axes, "axes")),
      M::collectives(table(collectives, "collectives")),
      M::schedules(table(schedules, "schedules")),
      M::program(writeProgram(tables.program)),
      M::inputs(table(inputs, "inputs")),
      M::buffers(table(buffers, "buffers")),
      M::ids(table(ids, "ids")),
      M::tokens(role("tokens")),
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
      M::batches(role("batches")),
      M::learningRate(getNumber(train, "lr")),
      M::minLearningRate(getNumber(train, "min_lr")),
      M::beta1(getNumber(train, "adam_beta1")),
      M::beta2(getNumber(train, "adam_beta2")),
      M::warmupIters(getInteger(train, "lr_warmup_iters")),
      M::decayIters(getInteger(train, train.contains("lr_decay_iters")
                                          ? "lr_decay_iters"
                                          : "train_iters")),
      M::trainIters(getInteger(train, "train_iters")),
      M::seed(getInteger(train, "seed")),
      M::lrDecayStyle(decay),
      M::target(image ? REPRISE_TARGET_CUDA : REPRISE_TARGET_CPU),
      M::modelFlops(shared.modelFlops),
      M::replayFlops(shared.replayFlops),
      M::cuda(image ? writeDevice(source, tables, *image)
                    : constants.null<const RepriseCudaModule *>())};
  return Typed<const RepriseModel *>{global(model.constant, "model")};
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
        TableWriter(*module, aliases)
            .write(model.module, table, getShared(alike, table), model.image);
    if (failed(address))
      return nullptr;
    addresses.push_back(*address);
  }
  TableWriter(*module, aliases).writeMain(addresses);
  return module;
}
