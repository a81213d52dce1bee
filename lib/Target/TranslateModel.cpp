//===- TranslateModel.cpp - Kernels and tables in LLVM ----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "reprise/ABI/Model.h"
#include "reprise/Codegen/CPU/MicroKernels.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Dialect/Remat/RematOps.h"
#include "reprise/Target/Executable.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace reprise;

namespace {
/// What the tables say, before it is constant data. The members follow
/// `RepriseModel`.
struct Tables {
  struct Launch {
    int32_t kind, callee;
    SmallVector<rt::BufferOp> buffers;
    SmallVector<int64_t> ids;
    int64_t tasks, flops;
    std::string name;
  };
  SmallVector<Launch> micro, update, evaluate, sample;
  llvm::MapVector<StringRef, int64_t> kernels; ///< name to index
  SmallVector<RepriseGemm> gemms;
  SmallVector<rt::BufferOp> states, rotaries;
  llvm::StringMap<rt::BufferOp> roles;
  double modelFlops = 0, replayFlops = 0; ///< of one step
  int64_t numMicroBatches = 1;

  LogicalResult readStep(const SymbolTable &symbols, func::FuncOp step);
  /// A schedule beside the step, which has its states.
  LogicalResult readInference(const SymbolTable &symbols, func::FuncOp function,
                              SmallVectorImpl<Launch> &schedule);

private:
  LogicalResult readBuffer(rt::BufferOp buffer);
  FailureOr<Launch> readLaunch(const SymbolTable &symbols, Operation *op);
};

/// Writes tables as constants of an LLVM module.
class TableWriter {
public:
  TableWriter(llvm::Module &module)
      : module(module), context(module.getContext()), builder(context),
        pointer(builder.getPtrTy()), i64(builder.getInt64Ty()),
        i32(builder.getInt32Ty()), f32(builder.getFloatTy()),
        f64(builder.getDoubleTy()),
        bufferType(llvm::StructType::get(i64, i64)) {}

  LogicalResult write(ModuleOp source, const Tables &tables);

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
  /// The address of `text`, one copy of each.
  llvm::Constant *string(StringRef text);
  /// The address of an array of constants, null if there are none.
  llvm::Constant *table(ArrayRef<llvm::Constant *> rows, StringRef name);

  llvm::Constant *writeSchedule(ArrayRef<Tables::Launch> launches,
                                StringRef name);
  llvm::Constant *writeGemm(const RepriseGemm &gemm);
  llvm::Constant *writeState(rt::BufferOp op);
  llvm::Constant *writeRotary(rt::BufferOp op);
  llvm::Constant *writeMicroKernels(int32_t &count);
  void writeMain(llvm::Constant *model);

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
// Reading the schedule
//===----------------------------------------------------------------------===//

static RepriseGemm getGemm(rt::GemmOp op) {
  RepriseGemm gemm = {};
  gemm.m = op.getM(), gemm.n = op.getN(), gemm.k = op.getK();
  gemm.lda = op.getLda(), gemm.ldb = op.getLdb(), gemm.ldc = op.getLdc();
  gemm.batch[0] = gemm.batch[1] = 1;
  if (std::optional<ArrayRef<int64_t>> batch = op.getBatch())
    for (unsigned d : {0u, 1u}) {
      gemm.batch[d] = (*batch)[d];
      gemm.strideA[d] = (*op.getStrideA())[d];
      gemm.strideB[d] = (*op.getStrideB())[d];
      gemm.strideC[d] = (*op.getStrideC())[d];
    }
  gemm.alpha = op.getAlpha().convertToFloat();
  gemm.transposeA = op.getTransposeA();
  gemm.transposeB = op.getTransposeB();
  gemm.bias = bool(op.getBias());
  gemm.accumulate = op.getAccumulate();
  return gemm;
}

/// What the tables and the runtime take for granted of a state or a role.
static LogicalResult verifyBuffer(rt::BufferOp buffer) {
  MemRefType type = buffer.getType();
  if (buffer->hasAttr(rt::kStateAttr)) {
    constexpr int64_t kMost = 4;
    if (!type.getElementType().isF32() || type.getRank() > kMost)
      return buffer.emitOpError("needs f32 in at most ")
             << kMost << " dimensions to be a state, but got " << type;
    return success();
  }
  auto role = buffer->getAttrOfType<StringAttr>(rt::kRoleAttr);
  if (!role)
    return success();
  if (role == "tokens" || role == "targets") {
    if (!type.getElementType().isInteger(32) || type.getRank() != 2)
      return buffer.emitOpError("needs ids [B, T] of i32 for '")
             << role.getValue() << "', but got " << type;
  } else if (role == "rng") {
    if (!type.getElementType().isInteger(32) || type.getNumElements() != 4)
      return buffer.emitOpError("needs 4 words of i32 for 'rng', but got ")
             << type;
  } else if (role == "position") {
    if (!type.getElementType().isInteger(32) || type.getRank() != 1)
      return buffer.emitOpError("needs [B] of i32 for 'position', but got ")
             << type;
  } else if (role == "logits") {
    if (!type.getElementType().isF32() || type.getRank() != 2)
      return buffer.emitOpError("needs [B, V] of f32 for 'logits', but got ")
             << type;
  } else if (!type.getElementType().isF32() || type.getNumElements() != 1) {
    return buffer.emitOpError("needs one f32 for '")
           << role.getValue() << "', but got " << type;
  }
  return success();
}

/// The kernel of `call`, if it is what the runtime calls.
static LLVM::LLVMFuncOp getKernel(const SymbolTable &symbols,
                                  rt::LaunchOp call) {
  auto kernel = symbols.lookup<LLVM::LLVMFuncOp>(call.getKernel());
  if (!kernel || kernel.isExternal() || !kernel->hasAttr(rt::kTasksAttr))
    return {};
  auto pointer = LLVM::LLVMPointerType::get(call.getContext());
  auto i64 = IntegerType::get(call.getContext(), 64);
  auto type = LLVM::LLVMFunctionType::get(
      LLVM::LLVMVoidType::get(call.getContext()), {pointer, pointer, i64, i64});
  return kernel.getFunctionType() == type ? kernel : LLVM::LLVMFuncOp();
}

LogicalResult Tables::readBuffer(rt::BufferOp buffer) {
  if (failed(verifyBuffer(buffer)))
    return failure();
  if (auto role = buffer->getAttrOfType<StringAttr>(rt::kRoleAttr))
    roles[role.getValue()] = buffer;
  return success();
}

FailureOr<Tables::Launch> Tables::readLaunch(const SymbolTable &symbols,
                                             Operation *op) {
  if (op->getNumResults() > 0)
    return op->emitOpError("needs to be in buffer form by now");
  for (auto [index, operand] : llvm::enumerate(op->getOperands()))
    if (!operand.getDefiningOp<rt::BufferOp>())
      return op->emitOpError("needs operands that are 'rt.buffer', but #")
             << index << " is none";
  Launch launch = {};
  auto use = [&](Value value) {
    if (value)
      launch.buffers.push_back(value.getDefiningOp<rt::BufferOp>());
  };
  if (auto call = dyn_cast<rt::LaunchOp>(op)) {
    LLVM::LLVMFuncOp kernel = getKernel(symbols, call);
    if (!kernel)
      return op->emitOpError("needs its kernel to be a function of (ptr, ptr, "
                             "i64, i64) in the LLVM dialect, with a body and "
                             "'rt.tasks', by now");
    launch.kind = REPRISE_LAUNCH_KERNEL;
    launch.callee = kernels.insert({call.getKernel(), int64_t(kernels.size())})
                        .first->second;
    launch.tasks = kernel->getAttrOfType<IntegerAttr>(rt::kTasksAttr).getInt();
    launch.flops = call.getFlops();
    if (std::optional<ArrayRef<int64_t>> values = call.getIds())
      llvm::append_range(launch.ids, *values);
    llvm::for_each(call.getInputs(), use);
    llvm::for_each(call.getOutputs(), use);
  } else if (auto gemm = dyn_cast<rt::GemmOp>(op)) {
    launch.kind = REPRISE_LAUNCH_GEMM;
    launch.flops = gemm.getFlops();
    RepriseGemm row = getGemm(gemm);
    auto *same = llvm::find_if(gemms, [&](const RepriseGemm &other) {
      return memcmp(&row, &other, sizeof row) == 0;
    });
    launch.callee = same - gemms.begin();
    if (same == gemms.end())
      gemms.push_back(row);
    for (Value value : {gemm.getA(), gemm.getB(), gemm.getBias()})
      use(value);
    use(gemm.getOutput());
    use(gemm.getWorkspace());
  } else {
    return op->emitOpError("needs to be in buffer form by now");
  }
  if (auto name = op->getAttrOfType<StringAttr>(rt::kNameAttr))
    launch.name = name.getValue();
  return launch;
}

LogicalResult Tables::readStep(const SymbolTable &symbols, func::FuncOp step) {
  if (auto count = step->getAttrOfType<IntegerAttr>(nn::kMicroBatchesAttr))
    numMicroBatches = count.getInt();
  SmallVector<Launch> *schedule = &micro;
  double times = double(numMicroBatches);
  for (Operation &op : step.getBody().front()) {
    if (auto buffer = dyn_cast<rt::BufferOp>(op)) {
      if (failed(readBuffer(buffer)))
        return failure();
      if (op.hasAttr(rt::kStateAttr))
        states.push_back(buffer);
      else if (op.hasAttr(rt::kRotaryAttr))
        rotaries.push_back(buffer);
      continue;
    }
    if (isa<rt::UpdateOp>(op)) {
      schedule = &update;
      times = 1;
      continue;
    }
    if (isa<func::ReturnOp>(op))
      continue;
    FailureOr<Launch> launch = readLaunch(symbols, &op);
    if (failed(launch))
      return failure();
    (op.hasAttr(remat::kReplayAttr) ? replayFlops : modelFlops) +=
        times * double(launch->flops);
    schedule->push_back(std::move(*launch));
  }
  return success();
}

LogicalResult Tables::readInference(const SymbolTable &symbols,
                                    func::FuncOp function,
                                    SmallVectorImpl<Launch> &schedule) {
  for (Operation &op : function.getBody().front()) {
    if (isa<func::ReturnOp>(op))
      continue;
    if (auto buffer = dyn_cast<rt::BufferOp>(op)) {
      if (failed(readBuffer(buffer)))
        return failure();
      continue;
    }
    FailureOr<Launch> launch = readLaunch(symbols, &op);
    if (failed(launch))
      return failure();
    schedule.push_back(std::move(*launch));
  }
  return success();
}

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
      {integer(gemm.m), integer(gemm.n), integer(gemm.k), integer(gemm.lda),
       integer(gemm.ldb), integer(gemm.ldc), array(gemm.batch),
       array(gemm.strideA), array(gemm.strideB), array(gemm.strideC),
       single(gemm.alpha), word(gemm.transposeA), word(gemm.transposeB),
       word(gemm.bias), word(gemm.accumulate), word(0)});
}

llvm::Constant *TableWriter::writeState(rt::BufferOp op) {
  auto state = op->getAttrOfType<rt::StateAttr>(rt::kStateAttr);
  ArrayRef<int64_t> dims = op.getType().getShape();
  int64_t shape[4] = {1, 1, 1, 1};
  llvm::copy(dims, shape);
  double std = state.getStd() ? state.getStd().getValueAsDouble() : 0.0;
  StringRef name = state.getParameter(), hub = state.getHub();
  return llvm::ConstantStruct::getAnon(
      {string(name), string(hub.empty() ? name : hub),
       word(int(state.getKind())), word(int(state.getInit())), single(std),
       word(state.getPart()), word(state.getParts()), word(dims.size()),
       array(shape), buffer(op)});
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

llvm::Constant *TableWriter::writeMicroKernels(int32_t &count) {
  SmallVector<llvm::Constant *> rows;
  for (const codegen::MicroKernel &kernel : codegen::getMicroKernels())
    if (llvm::Function *function = module.getFunction(kernel.symbol()))
      rows.push_back(llvm::ConstantStruct::getAnon(
          {function, module.getFunction(kernel.packSymbol()), word(kernel.rows),
           word(kernel.cols), word(kernel.isa), word(0)}));
  count = rows.size();
  return table(rows, "micro_kernels");
}

void TableWriter::writeMain(llvm::Constant *model) {
  auto *type = llvm::FunctionType::get(i32, {i32, pointer}, false);
  auto *main = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage,
                                      "main", module);
  llvm::FunctionCallee entry =
      module.getOrInsertFunction("repriseMain", i32, i32, pointer, pointer);
  builder.SetInsertPoint(llvm::BasicBlock::Create(context, "", main));
  builder.CreateRet(
      builder.CreateCall(entry, {main->getArg(0), main->getArg(1), model}));
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

LogicalResult TableWriter::write(ModuleOp source, const Tables &tables) {
  auto train = source->getAttrOfType<DictionaryAttr>(nn::kTrainAttr);
  auto plan = source->getAttrOfType<DictionaryAttr>(rt::kPlanAttr);
  if (!train || !plan)
    return source.emitError("needs 'nn.train' and 'rt.plan' on the module");
  for (StringRef key : {"lr", "min_lr", "adam_beta1", "adam_beta2", "seed",
                        "lr_warmup_iters", "train_iters", "vocab_size"})
    if (!train.contains(key))
      return source.emitError("needs '") << key << "' in 'nn.train'";
  for (StringRef role : {"tokens", "targets", "lr", "bias_correction1",
                         "bias_correction2", "loss", "grad_norm"})
    if (!tables.roles.count(role))
      return source.emitError("needs a buffer with the role '")
             << role << "' in @step";

  rt::BufferOp tokens = tables.roles.lookup("tokens");
  rt::BufferOp targets = tables.roles.lookup("targets");
  if (targets.getType() != tokens.getType())
    return targets.emitOpError("needs 'targets' of the type of 'tokens', ")
           << tokens.getType() << ", but got " << targets.getType();
  for (auto [schedule, name, role] :
       {std::tuple(&tables.evaluate, nn::kEvaluateFunction, "eval_loss"),
        std::tuple(&tables.sample, nn::kSampleFunction, "position"),
        std::tuple(&tables.sample, nn::kSampleFunction, "logits")})
    if (!schedule->empty() && !tables.roles.count(role))
      return source.emitError("needs a buffer with the role '")
             << role << "' in @" << name;
  if (!tables.sample.empty()) {
    int64_t rows = tokens.getType().getDimSize(0);
    int64_t vocabSize = getInteger(train, "vocab_size");
    rt::BufferOp position = tables.roles.lookup("position");
    rt::BufferOp logits = tables.roles.lookup("logits");
    if (position.getType().getShape() != ArrayRef(rows))
      return position.emitOpError("needs a position for each of the ")
             << rows << " rows of 'tokens', but got " << position.getType();
    if (logits.getType().getShape() != ArrayRef({rows, vocabSize}))
      return logits.emitOpError("needs a row of ")
             << vocabSize << " logits for each of the " << rows
             << " rows of 'tokens', but got " << logits.getType();
  }
  auto arena = plan.getAs<IntegerAttr>("arena");
  auto shares = plan.getAs<DictionaryAttr>("categories");
  if (!arena || !shares)
    return source.emitError("needs 'rt.plan' with 'arena' and 'categories', "
                            "but got ")
           << plan;
  for (StringRef name : {"main", "repriseMain"})
    if (module.getNamedValue(name))
      return source.emitError("needs the name '")
             << name << "' for the program itself, but a kernel has it";

  SmallVector<llvm::Constant *> categories, states, rotaries, kernels, gemms;
  for (StringRef name : {"parameters", "gradients", "optimizer state",
                         "inputs and outputs", "activations"})
    if (auto bytes = shares.getAs<IntegerAttr>(name))
      categories.push_back(llvm::ConstantStruct::getAnon(
          {string(name), integer(bytes.getInt())}));
  for (rt::BufferOp op : tables.states)
    states.push_back(writeState(op));
  for (rt::BufferOp op : tables.rotaries)
    rotaries.push_back(writeRotary(op));
  for (auto &[name, index] : tables.kernels)
    kernels.push_back(llvm::ConstantStruct::getAnon(
        {module.getFunction(name), string(name)}));
  for (const RepriseGemm &gemm : tables.gemms)
    gemms.push_back(writeGemm(gemm));
  llvm::Constant *micro = writeSchedule(tables.micro, "micro");
  llvm::Constant *update = writeSchedule(tables.update, "update");
  llvm::Constant *evaluate = writeSchedule(tables.evaluate, "evaluate");
  llvm::Constant *sample = writeSchedule(tables.sample, "sample");
  int32_t numMicroKernels = 0;
  llvm::Constant *microKernels = writeMicroKernels(numMicroKernels);

  auto role = [&](StringRef name) { return buffer(tables.roles.lookup(name)); };
  auto name = source->getAttrOfType<StringAttr>(nn::kModelAttr);
  auto config = source->getAttrOfType<StringAttr>(nn::kHubConfigAttr);
  StringRef configJson = config ? config.getValue() : "";
  FailureOr<std::string> modelType = getModelType(source, configJson);
  if (failed(modelType))
    return failure();
  ArrayRef<int64_t> shape = tokens.getType().getShape();
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
       integer(shape[0]),
       integer(shape[1]),
       integer(getInteger(train, "vocab_size")),
       integer(arena.getInt()),
       word(categories.size()),
       word(states.size()),
       word(kernels.size()),
       word(gemms.size()),
       word(numMicroKernels),
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
       microKernels,
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
       role("position"),
       role("logits"),
       number(getNumber(train, "lr")),
       number(getNumber(train, "min_lr")),
       number(getNumber(train, "adam_beta1")),
       number(getNumber(train, "adam_beta2")),
       integer(getInteger(train, "lr_warmup_iters")),
       integer(getInteger(train, "train_iters")),
       integer(getInteger(train, "seed")),
       word(decay),
       word(0),
       number(tables.modelFlops),
       number(tables.replayFlops)});
  if (module.getDataLayout().getTypeAllocSize(model->getType()) !=
      sizeof(RepriseModel))
    return source.emitError("has a model table of ")
           << module.getDataLayout()
                  .getTypeAllocSize(model->getType())
                  .getFixedValue()
           << " bytes, but the runtime's has " << sizeof(RepriseModel);
  writeMain(new llvm::GlobalVariable(module, model->getType(), true,
                                     llvm::GlobalValue::PrivateLinkage, model,
                                     "model"));
  return success();
}

std::unique_ptr<llvm::Module>
target::translateModel(ModuleOp module, llvm::LLVMContext &context) {
  auto step = module.lookupSymbol<func::FuncOp>(nn::kStepFunction);
  if (!step || !step.getBody().hasOneBlock()) {
    module.emitError("needs a function @step of one block to translate");
    return nullptr;
  }
  Tables tables;
  {
    SymbolTable symbols(module);
    if (failed(tables.readStep(symbols, step)))
      return nullptr;
    for (auto [name, schedule] :
         {std::pair(nn::kEvaluateFunction, &tables.evaluate),
          std::pair(nn::kSampleFunction, &tables.sample)}) {
      auto function = symbols.lookup<func::FuncOp>(name);
      if (!function)
        continue;
      if (!function.getBody().hasOneBlock()) {
        function.emitError("needs one block to translate, but got ")
            << function.getBody().getBlocks().size();
        return nullptr;
      }
      if (failed(tables.readInference(symbols, function, *schedule)))
        return nullptr;
    }
  }

  // The functions and their constants go to LLVM; the schedule stays here until
  // it is a table.
  OwningOpRef<ModuleOp> code = ModuleOp::create(module.getLoc());
  for (Operation &op : llvm::make_early_inc_range(*module.getBody()))
    if (isa_and_present<LLVM::LLVMDialect>(op.getDialect()))
      op.moveBefore(code->getBody(), code->getBody()->end());
  registerBuiltinDialectTranslation(*module.getContext());
  registerLLVMDialectTranslation(*module.getContext());
  std::unique_ptr<llvm::Module> result =
      translateModuleToLLVMIR(*code, context, "reprise");
  if (!result || failed(TableWriter(*result).write(module, tables)))
    return nullptr;
  // Kernels are reached through the tables alone; their names are not to clash
  // with those of a library.
  for (llvm::Function &function : *result)
    if (!function.isDeclaration() && function.getName() != "main")
      function.setLinkage(llvm::GlobalValue::InternalLinkage);
  return result;
}
