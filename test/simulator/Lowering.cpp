//===- Lowering.cpp - Device code for the host ------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/ReplaceConstant.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace {
constexpr unsigned kSharedSpace = 3;

/// What Intrinsics.def says of a name.
enum class Kind { Unknown, Pure, Plain, Aligned, Effect };

class Lowering {
public:
  explicit Lowering(Module &module)
      : module(module), context(module.getContext()),
        pointer(PointerType::get(context, 0)) {}

  Error run();

private:
  Error checkFunctions();
  void retarget();
  void placeSharedMemory();
  uint64_t placeVariable(const GlobalVariable &variable, Function *owner);
  Error replaceIntrinsics();
  Error replaceAssembly();
  Expected<std::string> instructionOf(const CallBase &call);
  bool replaceEffect(CallBase *call);
  bool replaceGroupMma(CallBase *call);
  Error findGroupMmas(ArrayRef<CallBase *> calls);
  void replaceCall(CallBase *call, const Twine &name, Kind kind);
  void checkAccesses();
  void check(Instruction *access, Value *address, Type *type, Align alignment);
  void writeTable();
  Function *entryOf(Function &kernel, uint64_t &paramBytes);
  Constant *global(Constant *value, const Twine &name);

  /// The host's view of the block's shared memory: its first byte and its size.
  Value *shared(IRBuilder<> &builder, unsigned field) {
    Type *types[] = {pointer, builder.getInt64Ty()};
    auto *type = StructType::get(context, ArrayRef<Type *>(types));
    Constant *symbol = module.getOrInsertGlobal("simulatorShared", type);
    return builder.CreateLoad(types[field],
                              builder.CreateStructGEP(type, symbol, field));
  }

  Module &module;
  LLVMContext &context;
  PointerType *pointer;
  SmallVector<Function *> kernels;
  /// The place of each wgmma.mma_async; and for a wait, those of the MMAs
  /// whose numbers go through it.
  MapVector<CallBase *, int> mmaPlaces;
  DenseMap<CallBase *, SetVector<int>> waitsFor;
  /// Bytes of the static shared memory of a kernel, and where the dynamic
  /// begins; of none: of all kernels together.
  struct SharedBytes {
    uint64_t fixed = 0, dynamic = 0;
  };
  DenseMap<Function *, SharedBytes> sharedBytes;
  bool isSharedTogether = false;
  int places = 0;
};
} // namespace

template <typename... Values>
static Error failure(const char *format, Values &&...values) {
  return createStringError(
      inconvertibleErrorCode(),
      formatv(format, std::forward<Values>(values)...).str());
}

static Kind kindOf(StringRef name) {
  static const StringMap<Kind> known = {
#define SIMULATOR_PURE(name) {#name, Kind::Pure},
#define SIMULATOR_INTRINSIC(name) {#name, Kind::Plain},
#define SIMULATOR_ALIGNED(name) {#name, Kind::Aligned},
#define SIMULATOR_PTX(name) {"ptx_" #name, Kind::Pure},
#define SIMULATOR_PTX_EFFECT(name) {"ptx_" #name, Kind::Effect},
#include "Intrinsics.def"
  };
  return known.lookup(name);
}

/// `a.b.c` as it is written in Intrinsics.def.
static std::string mangled(StringRef name) {
  std::string result = name.str();
  for (char &c : result)
    if (!isAlnum(c))
      c = '_';
  return result;
}

//===----------------------------------------------------------------------===//
// The module as a whole
//===----------------------------------------------------------------------===//

Error Lowering::run() {
  if (!Triple(module.getTargetTriple()).isNVPTX() &&
      !module.getTargetTriple().str().empty())
    return failure("needs a module for NVPTX, but got one for {0}",
                   module.getTargetTriple().str());
  for (Function &function : module)
    if (function.getCallingConv() == CallingConv::PTX_Kernel)
      kernels.push_back(&function);
  if (kernels.empty())
    return failure("there is no kernel: no function is ptx_kernel");
  if (Error error = checkFunctions())
    return error;
  retarget();
  placeSharedMemory();
  checkAccesses();
  if (Error error = replaceIntrinsics())
    return error;
  if (Error error = replaceAssembly())
    return error;
  writeTable();
  std::string text;
  raw_string_ostream stream(text);
  if (verifyModule(module, &stream))
    return failure("makes a wrong module: {0}", text);
  return Error::success();
}

Error Lowering::checkFunctions() {
  for (Function &function : module) {
    if (!function.isDeclaration() || function.use_empty())
      continue;
    StringRef name = function.getName();
    if (name.consume_front("llvm.nvvm.")) {
      if (kindOf(mangled(name)) == Kind::Unknown)
        return failure("the simulator has no llvm.nvvm.{0}", name);
    } else if (!function.isIntrinsic()) {
      return failure("'{0}' is called and nowhere defined", name);
    }
  }
  return Error::success();
}

void Lowering::retarget() {
  module.setTargetTriple(Triple("x86_64-unknown-linux-gnu"));
  module.setDataLayout("e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-"
                       "f80:128-n8:16:32:64-S128");
  if (NamedMDNode *annotations = module.getNamedMetadata("nvvm.annotations"))
    annotations->eraseFromParent();
  for (Function &function : module) {
    function.setCallingConv(CallingConv::C);
    function.removeFnAttr("target-cpu");
    function.removeFnAttr("target-features");
    for (Instruction &instruction : instructions(function))
      if (auto *call = dyn_cast<CallBase>(&instruction))
        call->setCallingConv(CallingConv::C);
  }
}

/// Behind those that `owner` has already. What is without a definition is the
/// dynamic part, and begins behind all others.
uint64_t Lowering::placeVariable(const GlobalVariable &variable,
                                 Function *owner) {
  SharedBytes &bytes = sharedBytes[owner];
  Align alignment = std::max(variable.getAlign().valueOrOne(), Align(16));
  uint64_t offset = alignTo(bytes.fixed, alignment);
  if (variable.isDeclaration()) {
    bytes.dynamic = std::max(bytes.dynamic, offset);
    return offset;
  }
  bytes.fixed =
      offset + module.getDataLayout().getTypeAllocSize(variable.getValueType());
  bytes.dynamic = bytes.fixed;
  return offset;
}

/// Shared variables become offsets from the base of the block's memory, each
/// kernel's from 0 on. If a function that kernels call has some, all kernels
/// have all of them.
void Lowering::placeSharedMemory() {
  SmallVector<GlobalVariable *> variables;
  for (bool dynamic : {false, true})
    for (GlobalVariable &variable : module.globals())
      if (variable.getAddressSpace() == kSharedSpace &&
          variable.isDeclaration() == dynamic)
        variables.push_back(&variable);
  for (GlobalVariable *variable : variables) {
    convertUsersOfConstantsToInstructions({variable});
    for (User *user : variable->users())
      isSharedTogether |=
          !is_contained(kernels, cast<Instruction>(user)->getFunction());
  }
  for (GlobalVariable *variable : variables) {
    DenseMap<Function *, uint64_t> offsets; // By owner.
    DenseMap<Function *, Value *> addresses;
    for (Use &use : make_early_inc_range(variable->uses())) {
      Function *function = cast<Instruction>(use.getUser())->getFunction();
      Function *owner = isSharedTogether ? nullptr : function;
      Value *&address = addresses[function];
      if (!address) {
        auto [known, isNew] = offsets.try_emplace(owner);
        if (isNew)
          known->second = placeVariable(*variable, owner);
        uint64_t offset = known->second;
        IRBuilder<> builder(&*function->getEntryBlock().getFirstInsertionPt());
        address = builder.CreateAddrSpaceCast(
            builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(),
                                               shared(builder, 0), offset),
            PointerType::get(context, kSharedSpace));
      }
      use.set(address);
    }
    variable->eraseFromParent();
  }
}

//===----------------------------------------------------------------------===//
// Intrinsics and inline PTX
//===----------------------------------------------------------------------===//

Error Lowering::replaceIntrinsics() {
  for (Function &function : make_early_inc_range(module)) {
    StringRef name = function.getName();
    if (!name.consume_front("llvm.nvvm."))
      continue;
    std::string known = mangled(name);
    Kind kind = kindOf(known);
    for (User *user : make_early_inc_range(function.users()))
      replaceCall(cast<CallBase>(user), known, kind);
    function.eraseFromParent();
  }
  return Error::success();
}

Error Lowering::replaceAssembly() {
  SmallVector<CallBase *> calls;
  for (Function &function : module)
    for (Instruction &instruction : instructions(function))
      if (auto *call = dyn_cast<CallBase>(&instruction))
        if (call->isInlineAsm())
          calls.push_back(call);
  if (Error error = findGroupMmas(calls))
    return error;
  for (CallBase *call : calls) {
    if (replaceEffect(call) || replaceGroupMma(call))
      continue;
    Expected<std::string> name = instructionOf(*call);
    if (!name)
      return name.takeError();
    replaceCall(call, *name, kindOf(*name));
  }
  return Error::success();
}

static StringRef textOf(const CallBase &call) {
  return cast<InlineAsm>(call.getCalledOperand())->getAsmString();
}

static unsigned countResults(const CallBase &call) {
  if (call.getType()->isVoidTy())
    return 0;
  auto *type = dyn_cast<StructType>(call.getType());
  return type ? type->getNumElements() : 1;
}

static constexpr StringLiteral kGroupMma = "wgmma.mma_async",
                               kGroupWait = "wgmma.wait_group";

/// What comes out of a wgmma.mma_async are numbers only behind a wait: it may
/// be added to by another one, and nothing else may use it before.
Error Lowering::findGroupMmas(ArrayRef<CallBase *> calls) {
  for (CallBase *call : calls)
    if (textOf(*call).trim().starts_with(kGroupMma))
      mmaPlaces[call] = places++;
  for (auto [mma, place] : mmaPlaces)
    for (User *user : mma->users()) {
      if (!isa<ExtractValueInst>(user))
        return failure("a result of {0} is used as a whole", kGroupMma);
      for (Use &use : user->uses()) {
        auto *next = dyn_cast<CallBase>(use.getUser());
        StringRef text =
            next && next->isInlineAsm() ? textOf(*next).trim() : StringRef();
        if (text.starts_with(kGroupWait))
          waitsFor[next].insert(place);
        else if (!text.starts_with(kGroupMma) ||
                 use.getOperandNo() >= countResults(*next))
          return failure("a result of {0} is used before {1}: {2}", kGroupMma,
                         kGroupWait, *use.getUser());
      }
    }
  return Error::success();
}

/// What an instruction does beside, at one place of the program for all threads
/// of a warp; numbers that go through it are the same afterwards.
bool Lowering::replaceEffect(CallBase *call) {
  StringRef text = textOf(*call).trim();
  std::string name =
      "ptx_" +
      mangled(text.take_until([](char c) { return c == ' ' || c == ';'; }));
  if (kindOf(name) != Kind::Effect)
    return false;
  IRBuilder<> builder(call);
  for (int mma : waitsFor.lookup(call)) {
    unsigned pending;
    if (text.rtrim(';').rsplit(' ').second.getAsInteger(10, pending))
      return false;
    FunctionCallee finish = module.getOrInsertFunction(
        "simulator_wgmma_finish", builder.getVoidTy(), builder.getInt32Ty(),
        builder.getInt32Ty());
    builder.CreateCall(finish,
                       {builder.getInt32(mma), builder.getInt32(pending)});
  }
  FunctionCallee callee = module.getOrInsertFunction(
      "simulator_" + name, builder.getVoidTy(), builder.getInt32Ty());
  cast<Function>(callee.getCallee())->setConvergent();
  builder.CreateCall(callee, builder.getInt32(places++));
  if (unsigned results = countResults(*call)) {
    Value *result = PoisonValue::get(call->getType());
    for (unsigned i = 0; i < results; ++i)
      result = builder.CreateInsertValue(result, call->getArgOperand(i), i);
    call->replaceAllUsesWith(result);
  }
  call->eraseFromParent();
  return true;
}

/// wgmma.mma_async with sums in f32, factors in bf16, and the right one in
/// shared memory: operands in the order of the manual, results also arguments
/// if they are added to.
bool Lowering::replaceGroupMma(CallBase *call) {
  unsigned results = countResults(*call), next = results;
  bool updates = call->arg_size() > results;
  unsigned first = updates ? results : 0, factors = call->arg_size() - first;
  bool inRegisters = factors == 5;
  if (results == 0 || (!inRegisters && factors != 2))
    return false;
  std::string expected;
  raw_string_ostream stream(expected);
  auto list = [&](unsigned from, unsigned count) {
    stream << "{";
    for (unsigned i = 0; i < count; ++i)
      stream << (i ? ", $" : "$") << from + i;
    stream << "}, ";
  };
  stream << "wgmma.mma_async.sync.aligned.m64n" << 2 * results
         << "k16.f32.bf16.bf16 ";
  list(0, results);
  next += first;
  if (inRegisters)
    list(next, 4);
  else
    stream << "$" << next << ", ";
  next += factors - 1;
  stream << "$" << next << ", " << updates << ", 1, 1"
         << (inRegisters ? ", " : ", 0, ");
  StringRef text = textOf(*call);
  if (!text.consume_front(expected) || (text != "0;" && text != "1;"))
    return false;

  IRBuilder<> builder(call),
      entry(&*call->getFunction()->getEntryBlock().begin());
  Value *sums = entry.CreateAlloca(call->getType());
  Value *before = Constant::getNullValue(call->getType());
  for (unsigned i = 0; i < first; ++i)
    before = builder.CreateInsertValue(before, call->getArgOperand(i), i);
  builder.CreateStore(before, sums);
  SmallVector<Value *> arguments = {sums, builder.getInt32(2 * results),
                                    builder.getInt32(text == "1;")};
  for (unsigned i = first; i < call->arg_size(); ++i)
    arguments.push_back(call->getArgOperand(i));
  arguments.push_back(builder.getInt32(mmaPlaces.lookup(call)));
  SmallVector<Type *> types;
  for (Value *argument : arguments)
    types.push_back(argument->getType());
  FunctionCallee callee = module.getOrInsertFunction(
      inRegisters ? "simulator_wgmma_registers" : "simulator_wgmma_shared",
      FunctionType::get(builder.getVoidTy(), types, false));
  cast<Function>(callee.getCallee())->setConvergent();
  builder.CreateCall(callee, arguments);
  call->replaceAllUsesWith(builder.CreateLoad(call->getType(), sums));
  call->eraseFromParent();
  return true;
}

/// The name of the function for inline PTX: one instruction, whose operands are
/// the results and then the arguments, in order.
Expected<std::string> Lowering::instructionOf(const CallBase &call) {
  StringRef text = textOf(call);
  auto [mnemonic, operands] = text.trim().split(' ');
  std::string name = "ptx_" + mangled(mnemonic);
  if (kindOf(name) == Kind::Unknown)
    return failure("the simulator does not know the inline PTX \"{0}\"", text);
  unsigned results = countResults(call);
  std::string have, want;
  for (char c : operands)
    if (isAlnum(c) || c == '$')
      have += c;
  for (unsigned i = 0; i < results + call.arg_size(); ++i)
    want += "$" + utostr(i);
  if (have != want)
    return failure("the simulator needs the operands {0} in order, but got the "
                   "inline PTX \"{1}\"",
                   want, text);
  return name;
}

/// A call of simulator_<name>, with the conventions of Intrinsics.cpp.
void Lowering::replaceCall(CallBase *call, const Twine &name, Kind kind) {
  IRBuilder<> builder(call);
  Type *type = call->getType();
  SmallVector<Value *> arguments;
  Value *out = nullptr;
  if (type->isStructTy()) {
    IRBuilder<> entry(&*call->getFunction()->getEntryBlock().begin());
    out = entry.CreateAlloca(type);
    arguments.push_back(out);
  }
  for (Value *value : call->args()) {
    if (value->getType()->isPointerTy())
      value = builder.CreateAddrSpaceCast(value, pointer);
    else if (!value->getType()->isFloatTy() &&
             !value->getType()->isDoubleTy()) {
      unsigned width = value->getType()->getPrimitiveSizeInBits();
      value = builder.CreateBitCast(value, builder.getIntNTy(width));
      if (width < 32)
        value = builder.CreateZExt(value, builder.getInt32Ty());
    }
    arguments.push_back(value);
  }
  if (kind == Kind::Aligned)
    arguments.push_back(builder.getInt32(places++));
  // What a function returns: small things and vectors as an i32.
  Type *result = type;
  unsigned width = type->getPrimitiveSizeInBits();
  if (type->isStructTy())
    result = builder.getVoidTy();
  else if (!type->isVoidTy() && !type->isFloatTy() && !type->isDoubleTy())
    result = builder.getIntNTy(std::max(32u, width));
  SmallVector<Type *> types;
  for (Value *argument : arguments)
    types.push_back(argument->getType());
  FunctionCallee callee = module.getOrInsertFunction(
      ("simulator_" + name).str(), FunctionType::get(result, types, false));
  auto *function = cast<Function>(callee.getCallee());
  function->setDoesNotThrow();
  if (kind == Kind::Pure) {
    function->setDoesNotAccessMemory();
    function->setWillReturn();
  } else {
    function->setConvergent();
  }
  Value *value = builder.CreateCall(callee, arguments);
  if (out)
    value = builder.CreateLoad(type, out);
  else if (result != type)
    value = builder.CreateBitCast(
        builder.CreateTrunc(value, builder.getIntNTy(width)), type);
  if (!type->isVoidTy())
    call->replaceAllUsesWith(value);
  call->eraseFromParent();
}

//===----------------------------------------------------------------------===//
// Checks of accesses
//===----------------------------------------------------------------------===//

/// Every access is checked for the alignment that it claims, and one of shared
/// memory for its bounds.
void Lowering::checkAccesses() {
  SmallVector<Instruction *> accesses;
  for (Function &function : module)
    for (Instruction &instruction : instructions(function))
      if (isa<LoadInst, StoreInst>(instruction))
        accesses.push_back(&instruction);
  for (Instruction *access : accesses) {
    Value *address = getPointerOperand(access);
    Value *base = address->stripInBoundsOffsets();
    auto *argument = dyn_cast<Argument>(base);
    if (!isa<AllocaInst, GlobalVariable>(base) &&
        !(argument && argument->hasByValAttr()))
      check(access, address, getLoadStoreType(access),
            getLoadStoreAlignment(access));
  }
}

void Lowering::check(Instruction *access, Value *address, Type *type,
                     Align alignment) {
  IRBuilder<> builder(access);
  Type *i64 = builder.getInt64Ty();
  Value *host = builder.CreateAddrSpaceCast(address, pointer);
  auto failIf = [&](Value *wrong, StringRef function, uint64_t number) {
    Instruction *then =
        SplitBlockAndInsertIfThen(wrong, access, /*Unreachable=*/true);
    IRBuilder<> cold(then);
    FunctionCallee callee = module.getOrInsertFunction(
        function, cold.getVoidTy(), pointer, cold.getInt64Ty());
    auto *declaration = cast<Function>(callee.getCallee());
    declaration->setDoesNotReturn();
    declaration->addFnAttr(Attribute::Cold);
    cold.CreateCall(callee, {host, cold.getInt64(number)});
  };
  if (address->getType()->getPointerAddressSpace() == kSharedSpace) {
    uint64_t bytes = module.getDataLayout().getTypeStoreSize(type);
    Value *offset =
        builder.CreateSub(builder.CreatePtrToInt(host, i64),
                          builder.CreatePtrToInt(shared(builder, 0), i64));
    // No block has fewer bytes than an access of its; the difference may wrap,
    // and then it is greater than any offset.
    Value *room =
        builder.CreateSub(shared(builder, 1), builder.getInt64(bytes));
    Value *tooSmall =
        builder.CreateICmpULT(shared(builder, 1), builder.getInt64(bytes));
    Value *outside =
        builder.CreateOr(builder.CreateICmpUGT(offset, room), tooSmall);
    failIf(outside, "simulatorOutOfBounds", bytes);
    builder.SetInsertPoint(access);
  }
  if (alignment > 1) {
    Value *low = builder.CreateAnd(builder.CreatePtrToInt(host, i64),
                                   builder.getInt64(alignment.value() - 1));
    failIf(builder.CreateIsNotNull(low), "simulatorMisaligned",
           alignment.value());
  }
}

//===----------------------------------------------------------------------===//
// The table of kernels
//===----------------------------------------------------------------------===//

Constant *Lowering::global(Constant *value, const Twine &name) {
  return new GlobalVariable(module, value->getType(), /*isConstant=*/true,
                            GlobalValue::ExternalLinkage, value, name);
}

/// void (const void *params): the kernel with the parameters that lie there one
/// after another. One passed by value that the kernel may write to is copied.
Function *Lowering::entryOf(Function &kernel, uint64_t &paramBytes) {
  auto *type = FunctionType::get(Type::getVoidTy(context), {pointer}, false);
  auto *entry = Function::Create(type, GlobalValue::InternalLinkage,
                                 kernel.getName() + ".entry", module);
  IRBuilder<> builder(BasicBlock::Create(context, "", entry));
  const DataLayout &layout = module.getDataLayout();
  SmallVector<Value *> arguments;
  uint64_t offset = 0;
  for (Argument &argument : kernel.args()) {
    Type *stored = argument.hasByValAttr() ? argument.getParamByValType()
                                           : argument.getType();
    Align alignment = layout.getABITypeAlign(stored);
    if (argument.hasByValAttr())
      alignment = std::max(alignment, argument.getParamAlign().valueOrOne());
    offset = alignTo(offset, alignment);
    Value *address = builder.CreateConstInBoundsGEP1_64(
        builder.getInt8Ty(), entry->getArg(0), offset);
    uint64_t bytes = layout.getTypeAllocSize(stored);
    offset += bytes;
    if (!argument.hasByValAttr()) {
      arguments.push_back(builder.CreateLoad(stored, address));
      continue;
    }
    if (!argument.hasAttribute("nvvm.grid_constant")) {
      AllocaInst *copy = builder.CreateAlloca(stored);
      copy->setAlignment(alignment);
      builder.CreateMemCpy(copy, alignment, address, Align(1), bytes);
      address = copy;
    }
    arguments.push_back(address);
  }
  paramBytes = offset;
  builder.CreateCall(&kernel, arguments);
  builder.CreateRetVoid();
  for (Argument &argument : kernel.args())
    for (Attribute::AttrKind kind : {Attribute::ByVal, Attribute::Alignment})
      argument.removeAttr(kind);
  return entry;
}

void Lowering::writeTable() {
  Type *i64 = Type::getInt64Ty(context), *i32 = Type::getInt32Ty(context);
  auto *size = ArrayType::get(i32, 3);
  auto *type =
      StructType::get(context, {pointer, pointer, i64, size, i32, i64, i64});
  SmallVector<Constant *> rows;
  for (Function *kernel : kernels) {
    uint64_t paramBytes;
    SharedBytes bytes = sharedBytes.lookup(isSharedTogether ? nullptr : kernel);
    Function *entry = entryOf(*kernel, paramBytes);
    SmallVector<StringRef> words;
    kernel->getFnAttribute("nvvm.reqntid").getValueAsString().split(words, ',');
    Constant *axes[3];
    for (unsigned axis = 0; axis < 3; ++axis) {
      uint32_t needed = words[0].empty() ? 0 : 1;
      if (axis < words.size())
        words[axis].getAsInteger(10, needed);
      axes[axis] = ConstantInt::get(i32, needed);
    }
    Constant *name =
        global(ConstantDataArray::getString(context, kernel->getName()),
               "simulatorName." + kernel->getName());
    rows.push_back(ConstantStruct::get(
        type, {name, entry, ConstantInt::get(i64, paramBytes),
               ConstantArray::get(size, axes), ConstantInt::get(i32, 0),
               ConstantInt::get(i64, bytes.fixed),
               ConstantInt::get(i64, bytes.dynamic)}));
    kernel->setLinkage(GlobalValue::InternalLinkage);
  }
  rows.push_back(Constant::getNullValue(type));
  global(ConstantArray::get(ArrayType::get(type, rows.size()), rows),
         "simulatorKernels");
}

Error reprise::simulator::lowerForHost(Module &module) {
  return Lowering(module).run();
}
