//===- WriteTables.cpp - Tables as constant data ----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tables.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "reprise/ABI/Version.h"
#include "reprise/Codegen/CPU/MicroKernels.h"
#include "reprise/Codegen/CUDA/Device.h"
#include "reprise/Dialect/NN/NNOps.h"
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
/// Writes tables as constants of an LLVM module.
class TableWriter {
public:
  TableWriter(llvm::Module &module)
      : module(module), context(module.getContext()), builder(context),
        pointer(builder.getPtrTy()), i64(builder.getInt64Ty()),
        i32(builder.getInt32Ty()), f32(builder.getFloatTy()),
        f64(builder.getDoubleTy()),
        bufferType(llvm::StructType::get(i64, i64)) {}

  /// The address of the table of one model.
  FailureOr<llvm::Constant *> write(ModuleOp source, const Tables &tables,
                                    const DeviceImage *image);
  void writeMain(ArrayRef<llvm::Constant *> models);

private:
  llvm::Constant *integer(int64_t value) {
    return llvm::ConstantInt::getSigned(i64, value);
  }
  llvm::Constant *word(int64_t value) {
    return llvm::ConstantInt::getSigned(i32, value);
  }
  llvm::Constant *number(double value) {
    return llvm::ConstantFP::get(f64, value);
  }
  llvm::Constant *single(double value) {
    return llvm::ConstantFP::get(f32, value);
  }
  llvm::Constant *array(ArrayRef<int64_t> values) {
    return llvm::ConstantDataArray::get(
        context,
        ArrayRef<uint64_t>(reinterpret_cast<const uint64_t *>(values.data()),
                           values.size()));
  }
  llvm::Constant *buffer(rt::BufferOp op) {
    return llvm::ConstantStruct::get(
        bufferType, {integer(op ? int64_t(op.getOffset()) : 0),
                     integer(op ? getTypeBytes(op.getType()) : 0)});
  }
  /// The address of a function of the code, null without a name.
  llvm::Constant *function(StringRef name) {
    if (name.empty())
      return llvm::ConstantPointerNull::get(pointer);
    auto *type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), false);
    auto *function = cast<llvm::Function>(
        module.getOrInsertFunction(getCodeSymbol(name), type).getCallee());
    function->setVisibility(llvm::GlobalValue::HiddenVisibility);
    function->setDSOLocal(true);
    return function;
  }
  /// The address of `text`, one copy of each.
  llvm::Constant *string(StringRef text);
  /// The address of an array of constants, null if there are none.
  llvm::Constant *table(ArrayRef<llvm::Constant *> rows, StringRef name);

  llvm::Constant *writeSchedule(ArrayRef<Tables::Launch> launches,
                                StringRef name);
  llvm::Constant *writeGemm(const RepriseGemm &gemm);
  llvm::Constant *writeState(rt::BufferOp op);
  llvm::Constant *writeRotary(rt::BufferOp op);
  llvm::Constant *writeMicroKernels(const Tables &tables);
  SmallVector<llvm::Constant *> writeCategories(DictionaryAttr plan,
                                                DictionaryAttr shares);
  llvm::Constant *bytes(StringRef data, StringRef name, bool isText);
  llvm::Constant *writeDevice(ModuleOp source, const Tables &tables,
                              const DeviceImage &image);

  llvm::Module &module;
  llvm::LLVMContext &context;
  llvm::IRBuilder<> builder;
  llvm::PointerType *pointer;
  llvm::Type *i64, *i32, *f32, *f64;
  llvm::StructType *bufferType;
  llvm::StringMap<llvm::Constant *> strings;
  SmallVector<llvm::Constant *> buffers, ids;
};
} // namespace

//===----------------------------------------------------------------------===//
// Writing constants
//===----------------------------------------------------------------------===//

llvm::Constant *TableWriter::string(StringRef text) {
  llvm::Constant *&address = strings[text];
  if (!address)
    address = builder.CreateGlobalString(text, "text", 0, &module);
  return address;
}

llvm::Constant *TableWriter::table(ArrayRef<llvm::Constant *> rows,
                                   StringRef name) {
  if (rows.empty())
    return llvm::ConstantPointerNull::get(pointer);
  auto *type = llvm::ArrayType::get(rows.front()->getType(), rows.size());
  return new llvm::GlobalVariable(module, type, /*isConstant=*/true,
                                  llvm::GlobalValue::PrivateLinkage,
                                  llvm::ConstantArray::get(type, rows), name);
}

llvm::Constant *TableWriter::writeSchedule(ArrayRef<Tables::Launch> launches,
                                           StringRef name) {
  SmallVector<llvm::Constant *> rows;
  for (const Tables::Launch &launch : launches) {
    rows.push_back(llvm::ConstantStruct::getAnon(
        {word(launch.kind), word(launch.callee), word(buffers.size()),
         word(launch.buffers.size()), word(ids.size()), word(launch.ids.size()),
         integer(launch.tasks), integer(launch.flops), string(launch.name)}));
    for (rt::BufferOp op : launch.buffers)
      buffers.push_back(buffer(op));
    for (int64_t id : launch.ids)
      ids.push_back(integer(id));
  }
  return table(rows, name);
}

llvm::Constant *TableWriter::writeGemm(const RepriseGemm &gemm) {
  return llvm::ConstantStruct::getAnon(
      {integer(gemm.m),       integer(gemm.n),
       integer(gemm.k),       integer(gemm.lda),
       integer(gemm.ldb),     integer(gemm.ldc),
       array(gemm.batch),     array(gemm.strideA),
       array(gemm.strideB),   array(gemm.strideC),
       single(gemm.alpha),    word(gemm.transposeA),
       word(gemm.transposeB), word(gemm.bias),
       word(gemm.accumulate), word(gemm.typeAB),
       word(gemm.typeC),      word(gemm.epilogue),
       word(gemm.packedB),    word(0)});
}

llvm::Constant *TableWriter::writeState(rt::BufferOp op) {
  auto state = op->getAttrOfType<rt::StateAttr>(rt::kStateAttr);
  ArrayRef<int64_t> dims = op.getType().getShape();
  int64_t shape[4] = {1, 1, 1, 1};
  llvm::copy(dims, shape);
  if (state.getRows() > 0) // The rest of the buffer is no part of the tensor.
    shape[0] = state.getRows();
  double std = state.getStd() ? state.getStd().getValueAsDouble() : 0.0;
  StringRef name = state.getParameter(), hub = state.getHub();
  return llvm::ConstantStruct::getAnon(
      {string(name), string(hub.empty() ? name : hub),
       word(int(state.getKind())), word(int(state.getInit())), single(std),
       word(state.getPart()), word(state.getParts()), word(dims.size()),
       word(getElementType(op.getType())), word(0), array(shape), buffer(op)});
}

llvm::Constant *TableWriter::writeRotary(rt::BufferOp op) {
  auto rotary = op->getAttrOfType<rt::RotaryAttr>(rt::kRotaryAttr);
  SmallVector<llvm::Constant *> frequencies;
  for (float frequency : rotary.getFrequencies().asArrayRef())
    frequencies.push_back(single(frequency));
  MemRefType type = op.getType();
  return llvm::ConstantStruct::getAnon(
      {buffer(op), integer(type.getDimSize(0)), integer(type.getDimSize(1)),
       table(frequencies, "frequencies"),
       single(rotary.getScale().getValueAsDouble()), word(0)});
}

llvm::Constant *TableWriter::writeMicroKernels(const Tables &tables) {
  SmallVector<llvm::Constant *> rows;
  for (const Tables::MicroKernel &kernel : tables.microKernels)
    rows.push_back(llvm::ConstantStruct::getAnon(
        {function(kernel.function), word(kernel.tile->rows),
         word(kernel.tile->cols), word(kernel.tile->isa),
         word(kernel.tile->typeAB)}));
  return table(rows, "micro_kernels");
}

void TableWriter::writeMain(ArrayRef<llvm::Constant *> models) {
  auto *type = llvm::FunctionType::get(i32, {i32, pointer}, false);
  auto *main = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage,
                                      "main", module);
  llvm::FunctionCallee entry = module.getOrInsertFunction(
      "repriseMain", i32, i32, pointer, pointer, i32);
  builder.SetInsertPoint(llvm::BasicBlock::Create(context, "", main));
  builder.CreateRet(builder.CreateCall(entry, {main->getArg(0), main->getArg(1),
                                               table(models, "models"),
                                               word(models.size())}));
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

llvm::Constant *TableWriter::bytes(StringRef data, StringRef name,
                                   bool isText) {
  auto *value = llvm::ConstantDataArray::getString(context, data, isText);
  auto *global =
      new llvm::GlobalVariable(module, value->getType(), /*isConstant=*/true,
                               llvm::GlobalValue::PrivateLinkage, value, name);
  global->setAlignment(llvm::Align(16));
  return global;
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

llvm::Constant *TableWriter::writeDevice(ModuleOp source, const Tables &tables,
                                         const DeviceImage &image) {
  llvm::StringMap<cuda::KernelFacts> facts;
  for (cuda::KernelFacts &kernel : cuda::getKernelFacts(source))
    facts[kernel.name] = kernel;
  // Every launch of a kernel has as many buffers and ids.
  llvm::StringMap<const Tables::Launch *> launches;
  SmallVector<StringRef> names(tables.kernels.size());
  for (auto &[name, index] : tables.kernels)
    names[index] = name;
  for (const auto *schedule :
       {&tables.micro, &tables.update, &tables.evaluate, &tables.sample})
    for (const Tables::Launch &launch : *schedule)
      if (launch.kind == REPRISE_LAUNCH_KERNEL)
        launches[names[launch.callee]] = &launch;

  SmallVector<llvm::Constant *> kernels, cubins;
  auto three = [&](const std::array<int64_t, 3> &sizes) {
    auto words =
        llvm::map_to_vector(sizes, [](int64_t size) { return uint32_t(size); });
    return llvm::ConstantDataArray::get(context, ArrayRef<uint32_t>(words));
  };
  for (StringRef name : names) {
    const cuda::KernelFacts &kernel = facts[name];
    const Tables::Launch *launch = launches[name];
    kernels.push_back(llvm::ConstantStruct::getAnon(
        {string(name), three(kernel.grid), three(kernel.block),
         word(launch->buffers.size()), word(launch->ids.size()),
         integer(kernel.sharedBytes)}));
  }
  for (const DeviceImage::Cubin &cubin : image.cubins)
    cubins.push_back(llvm::ConstantStruct::getAnon(
        {word(cubin.major), word(cubin.minor), word(cubin.archSpecific),
         word(0),
         bytes({cubin.code.data(), cubin.code.size()}, "cubin",
               /*isText=*/false),
         integer(cubin.code.size())}));
  llvm::Constant *table = llvm::ConstantStruct::getAnon(
      {bytes(image.ptx, "ptx", /*isText=*/true), integer(image.ptx.size()),
       this->table(cubins, "cubins"), this->table(kernels, "device_kernels"),
       word(cubins.size()), word(image.major), word(image.minor), word(0),
       integer(countGlobalBytes(source))});
  return new llvm::GlobalVariable(
      module, table->getType(),
      /*isConstant=*/true, llvm::GlobalValue::PrivateLinkage, table, "device");
}

/// The lines of the plan, in the order of the arena, but for gradients that lie
/// behind all else.
SmallVector<llvm::Constant *>
TableWriter::writeCategories(DictionaryAttr plan, DictionaryAttr shares) {
  auto getBytes = [](DictionaryAttr numbers, StringRef name) {
    auto bytes = numbers.getAs<IntegerAttr>(name);
    return bytes ? bytes.getInt() : 0;
  };
  int64_t arena = getBytes(plan, "arena"), at = 0;
  int64_t activations = getBytes(shares, "activations");
  int64_t begin =
      plan.contains("begin") ? getBytes(plan, "begin") : arena - activations;
  int64_t behind = std::clamp<int64_t>(arena - begin - activations, 0,
                                       getBytes(shares, "gradients"));
  SmallVector<llvm::Constant *> categories;
  auto place = [&](int64_t offset, int64_t bytes) {
    return llvm::ConstantStruct::getAnon({integer(offset), integer(bytes)});
  };
  for (StringRef name : {"parameters", "gradients", "optimizer state",
                         "inputs and outputs", "activations"}) {
    if (!shares.contains(name))
      continue;
    int64_t bytes = getBytes(shares, name);
    int64_t rest = name == "gradients" ? behind : 0;
    llvm::Constant *places[] = {place(at, bytes - rest),
                                place(arena - rest, rest)};
    categories.push_back(llvm::ConstantStruct::getAnon(
        {string(name), integer(bytes),
         llvm::ConstantArray::get(llvm::ArrayType::get(places[0]->getType(), 2),
                                  places)}));
    at += bytes - rest;
  }
  return categories;
}

FailureOr<llvm::Constant *> TableWriter::write(ModuleOp source,
                                               const Tables &tables,
                                               const DeviceImage *image) {
  auto train = source->getAttrOfType<DictionaryAttr>(nn::kTrainAttr);
  auto plan = source->getAttrOfType<DictionaryAttr>(rt::kPlanAttr);
  if (!train || !plan)
    return source.emitError("needs 'nn.train' and 'rt.plan' on the module");
  for (StringRef key : {"lr", "min_lr", "adam_beta1", "adam_beta2", "seed",
                        "lr_warmup_iters", "train_iters", "vocab_size"})
    if (!train.contains(key))
      return source.emitError("needs '") << key << "' in 'nn.train'";
  if (failed(tables.checkRoles(source, getInteger(train, "vocab_size"))))
    return failure();
  auto arena = plan.getAs<IntegerAttr>("arena");
  auto alignment = source->getAttrOfType<IntegerAttr>(rt::kAlignmentAttr);
  auto shares = plan.getAs<DictionaryAttr>("categories");
  if (!arena || !shares)
    return source.emitError("needs 'rt.plan' with 'arena' and 'categories', "
                            "but got ")
           << plan;
  if (tables.isDevice && !image)
    return source.emitError("needs the machine code of '@device'");

  SmallVector<llvm::Constant *> categories = writeCategories(plan, shares);
  SmallVector<llvm::Constant *> states, rotaries, kernels, gemms;
  for (rt::BufferOp op : tables.states)
    states.push_back(writeState(op));
  for (rt::BufferOp op : tables.rotaries)
    rotaries.push_back(writeRotary(op));
  for (auto &[name, index] : tables.kernels)
    kernels.push_back(llvm::ConstantStruct::getAnon(
        {function(image ? StringRef() : name),
         function(tables.wideKernels.lookup(name)),
         function(tables.pairsKernels.lookup(name)),
         function(tables.amxKernels.lookup(name)), string(name)}));
  for (const RepriseGemm &gemm : tables.gemms)
    gemms.push_back(writeGemm(gemm));
  llvm::Constant *micro = writeSchedule(tables.micro, "micro");
  llvm::Constant *update = writeSchedule(tables.update, "update");
  llvm::Constant *evaluate = writeSchedule(tables.evaluate, "evaluate");
  llvm::Constant *sample = writeSchedule(tables.sample, "sample");
  llvm::Constant *noTable = llvm::ConstantPointerNull::get(pointer);
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
  llvm::Constant *model = llvm::ConstantStruct::getAnon(
      {word(REPRISE_ABI_VERSION),
       word(tables.numMicroBatches),
       string(name ? name.getValue() : "model"),
       string(getWord(train, "recompute")),
       string(*modelType),
       string(configJson),
       string("reprisec " REPRISE_VERSION ", LLVM " LLVM_VERSION_STRING),
       string(section ? section.getValue() : ""),
       integer(shape[0]),
       integer(shape[1]),
       integer(getInteger(train, "vocab_size")),
       integer(arena.getInt()),
       integer(alignment ? alignment.getInt() : rt::kDefaultAlignment),
       integer(getInteger(train, nn::kMemoryBudget)),
       word(categories.size()),
       word(states.size()),
       word(kernels.size()),
       word(gemms.size()),
       word(tables.microKernels.size()),
       word(tables.micro.size()),
       word(tables.update.size()),
       word(tables.evaluate.size()),
       word(tables.sample.size()),
       word(rotaries.size()),
       table(categories, "categories"),
       table(states, "states"),
       table(rotaries, "rotaries"),
       table(kernels, "kernels"),
       table(gemms, "gemms"),
       writeMicroKernels(tables),
       micro,
       update,
       evaluate,
       sample,
       table(buffers, "buffers"),
       table(ids, "ids"),
       role("tokens"),
       role("targets"),
       role("rng"),
       role("lr"),
       role("bias_correction1"),
       role("bias_correction2"),
       role("loss"),
       role("grad_norm"),
       role("eval_loss"),
       role("sample_tokens"),
       role("position"),
       role("logits"),
       role("batches"),
       number(getNumber(train, "lr")),
       number(getNumber(train, "min_lr")),
       number(getNumber(train, "adam_beta1")),
       number(getNumber(train, "adam_beta2")),
       integer(getInteger(train, "lr_warmup_iters")),
       integer(getInteger(train, "train_iters")),
       integer(getInteger(train, "seed")),
       word(decay),
       word(image ? REPRISE_TARGET_CUDA : REPRISE_TARGET_CPU),
       number(tables.modelFlops),
       number(tables.replayFlops),
       image ? writeDevice(source, tables, *image) : noTable});
  if (module.getDataLayout().getTypeAllocSize(model->getType()) !=
      sizeof(RepriseModel))
    return source.emitError("has a model table of ")
           << module.getDataLayout()
                  .getTypeAllocSize(model->getType())
                  .getFixedValue()
           << " bytes, but the runtime's has " << sizeof(RepriseModel);
  return static_cast<llvm::Constant *>(new llvm::GlobalVariable(
      module, model->getType(), /*isConstant=*/true,
      llvm::GlobalValue::PrivateLinkage, model, "model"));
}

std::unique_ptr<llvm::Module>
target::writeTables(ArrayRef<CompiledModel> models, ArrayRef<Tables> tables,
                    llvm::LLVMContext &context) {
  auto module = std::make_unique<llvm::Module>("reprise", context);
  SmallVector<llvm::Constant *> addresses;
  for (auto [model, table] : llvm::zip_equal(models, tables)) {
    FailureOr<llvm::Constant *> address =
        TableWriter(*module).write(model.module, table, model.image);
    if (failed(address))
      return nullptr;
    addresses.push_back(*address);
  }
  TableWriter(*module).writeMain(addresses);
  return module;
}
