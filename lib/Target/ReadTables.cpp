//===- ReadTables.cpp - What the schedules say ------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tables.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "reprise/Codegen/CPU/Registers.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/NN/Schedules.h"
#include "reprise/Dialect/RT/ElementFormat.h"
#include "reprise/Dialect/RT/GroupSums.h"
#include "reprise/Dialect/RT/RTExpertRankOps.h"
#include "reprise/Dialect/RT/RTWaitOp.h"
#include "reprise/Dialect/RT/ScheduledOp.h"
#include "reprise/Dialect/Remat/RematOps.h"
#include "reprise/Support/Shares.h"
#include "llvm/ADT/TypeSwitch.h"
#include <map>

using namespace mlir;
using namespace reprise;
using namespace reprise::target;

namespace {
using Launch = Tables::Launch;

/// Reads a module's schedules, launch by launch.
class TableReader {
public:
  explicit TableReader(ModuleOp module) : module(module), symbols(module) {}
  FailureOr<Tables> read();

private:
  LogicalResult readStep(func::FuncOp step);
  LogicalResult readProgram(func::FuncOp step);
  FailureOr<int32_t> readSchedule(func::FuncOp function);
  void readMicroKernels();
  LogicalResult readBuffer(rt::BufferOp buffer);
  LogicalResult readRole(rt::BufferOp buffer);
  FailureOr<int64_t> readKernel(rt::LaunchOp call);
  LogicalResult readKernelLaunch(rt::LaunchOp op, Launch &launch);
  LogicalResult checkGemm(rt::GemmOp op) const;
  LogicalResult readGemm(rt::GemmOp op, Launch &launch);
  FailureOr<Launch> readLaunch(Operation *op);
  LogicalResult readCollective(rt::CollectiveOp op, Launch &launch);
  FailureOr<Launch> readWait(rt::WaitOp op);
  template <typename Op>
  LogicalResult readTransfer(Op op, Value value, Launch &launch);
  template <typename Op>
  LogicalResult readRows(Op op, int32_t operation, Launch &launch);
  int32_t addCollective(const RepriseCollective &row);
  void setBegun(Operation *op, RepriseCollective &row, Launch &launch);

  ModuleOp module;
  SymbolTable symbols;
  Tables tables;
  int32_t numBegun = 0;
  /// By the numbers of their ops, the launches that are begun and not waited
  /// for yet.
  std::map<int64_t, Launch> underWay;
};
} // namespace

//===----------------------------------------------------------------------===//
// One schedule
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
  gemm.typeAB = rt::getElementCode(op.getA().getType());
  gemm.typeC = rt::getElementCode(op.getCType());
  gemm.epilogue = op.getEpilogue() ? int32_t(*op.getEpilogue()) : 0;
  gemm.packedB = op.getPackedB();
  gemm.groups = op.getGroupCount();
  gemm.gather = op.getGather() ? int32_t(*op.getGather()) : 0;
  gemm.slots = op.getSlots().value_or(1);
  gemm.places = op.getPlaces();
  if (gemm.groups)
    (gemm.transposeA ? gemm.strideC : gemm.strideB)[1] =
        gemm.n * (gemm.transposeA ? gemm.m : gemm.k);
  return gemm;
}

/// Whether a buffer has the shape of a matrix that is packed for GEMMs.
static bool isPacked(MemRefType type) {
  return type.getRank() == 4 && type.getElementType().isBF16() &&
         type.getDimSize(2) == REPRISE_PACKED_COLS && type.getDimSize(3) == 2;
}

/// A share is of an axis that there is, and has its size or room for all.
static LogicalResult verifyShare(rt::BufferOp buffer, nn::MeshAttr mesh) {
  auto state = buffer->getAttrOfType<rt::StateAttr>(rt::kStateAttr);
  if (!state || state.getShare().empty())
    return success();
  ArrayRef<int64_t> whole = getStateShape(buffer);
  MemRefType type = buffer.getType();
  int64_t elements = 1;
  for (int64_t size : whole)
    elements *= size;
  bool isOfAxis = getAxis(mesh, state.getShare()) >= 0;
  int64_t size =
      isOfAxis ? getShareSize(elements, mesh.getSize(state.getShare())) : 0;
  if (isOfAxis && state.getRows() == 0 && whole.size() <= 4 &&
      (type.getShape() == whole || type.getShape() == ArrayRef(size)))
    return success();
  return buffer.emitOpError("needs an axis of the module's '")
         << nn::kMeshAttr << "', no rows, and the share's " << size
         << " elements or the whole's shape, but got " << type
         << " as a share along '" << state.getShare() << "' of [" << whole
         << "]";
}

/// What ranks have parts of is cut along an axis that there is, and its parts
/// are large enough.
static LogicalResult verifyCut(rt::BufferOp buffer, nn::MeshAttr mesh) {
  auto state = buffer->getAttrOfType<rt::StateAttr>(rt::kStateAttr);
  if (!state)
    return success();
  ArrayRef<int64_t> shape = getStateShape(buffer);
  for (rt::CutAttr cut : state.getCuts()) {
    int64_t dim = cut.getDim();
    if (getAxis(mesh, cut.getAxis()) < 0 || dim >= int64_t(shape.size()))
      return buffer.emitOpError("needs an axis of the module's '")
             << nn::kMeshAttr << "' and a dimension of " << buffer.getType()
             << ", but is cut along '" << cut.getAxis() << "' in dimension "
             << dim;
    int64_t block =
        dim == 0 && state.getRows() > 0 ? state.getRows() : shape[dim];
    int64_t ranks = mesh.getSize(cut.getAxis());
    if (block > cut.getExtent() || block * ranks < cut.getExtent())
      return buffer.emitOpError("needs parts of ")
             << cut.getExtent() << " elements, but " << ranks << " ranks have "
             << block << " each";
  }
  return success();
}

/// What the tables and the runtime take for granted of a state or a role.
static LogicalResult verifyBuffer(rt::BufferOp buffer) {
  if (buffer.getSpace() != rt::Space::Device)
    return buffer.emitOpError("needs to be in the space device, the arena that "
                              "a program has, but got ")
           << rt::stringifySpace(buffer.getSpace());
  MemRefType type = buffer.getType();
  if (auto state = buffer->getAttrOfType<rt::StateAttr>(rt::kStateAttr)) {
    constexpr int64_t kMost = 4;
    bool working = state.getKind() == rt::StateKind::Working;
    Type element = type.getElementType();
    if (!(working ? element.isBF16() : element.isF32()) ||
        type.getRank() > kMost)
      return buffer.emitOpError("needs ")
             << (working ? "bf16" : "f32") << " in at most " << kMost
             << " dimensions to be a " << (working ? "working copy" : "state")
             << ", but got " << type;
    return success();
  }
  auto role = buffer->getAttrOfType<StringAttr>(rt::kRoleAttr);
  if (!role)
    return success();
  if (role == "tokens" || role == "targets" || role == "sample_tokens") {
    if (!type.getElementType().isInteger(32) || type.getRank() != 2)
      return buffer.emitOpError("needs ids [B, T] of i32 for '")
             << role.getValue() << "', but got " << type;
  } else if (role == "batches") {
    if (!type.getElementType().isInteger(8) || type.getRank() != 1)
      return buffer.emitOpError("needs bytes [N] of i8 for 'batches', but got ")
             << type;
  } else if (role == "rng") {
    if (!type.getElementType().isInteger(32) || type.getNumElements() != 4)
      return buffer.emitOpError("needs 4 words of i32 for 'rng', but got ")
             << type;
  } else if (role == "position") {
    if (!type.getElementType().isInteger(32) || type.getNumElements() != 1)
      return buffer.emitOpError("needs one i32 for 'position', but got ")
             << type;
  } else if (role == "logits") {
    if (!type.getElementType().isF32() || type.getRank() != 2)
      return buffer.emitOpError("needs [1, V] of f32 for 'logits', but got ")
             << type;
  } else if (!type.getElementType().isF32() || type.getNumElements() != 1) {
    return buffer.emitOpError("needs one f32 for '")
           << role.getValue() << "', but got " << type;
  }
  return success();
}

/// The function `name`, if it is what the runtime calls.
static LLVM::LLVMFuncOp getKernel(const SymbolTable &symbols, StringRef name) {
  auto kernel = symbols.lookup<LLVM::LLVMFuncOp>(name);
  if (!kernel || kernel.isExternal() || !kernel->hasAttr(rt::kTasksAttr))
    return {};
  MLIRContext *context = kernel.getContext();
  auto pointer = LLVM::LLVMPointerType::get(context);
  auto i64 = IntegerType::get(context, 64);
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context),
                                          {pointer, pointer, i64, i64});
  return kernel.getFunctionType() == type ? kernel : LLVM::LLVMFuncOp();
}

/// Finds the version of `kernel` that `attribute` names, which the runtime
/// calls in its place on x86-64-v4, with AVX512_BF16 or with AMX.
static FailureOr<StringRef> readVersion(const SymbolTable &symbols,
                                        LLVM::LLVMFuncOp kernel,
                                        StringRef attribute) {
  auto name = kernel->getAttrOfType<FlatSymbolRefAttr>(attribute);
  if (!name)
    return StringRef();
  auto fail = [&] {
    return kernel.emitOpError("needs its '") << attribute << "' to ";
  };
  LLVM::LLVMFuncOp version = getKernel(symbols, name.getValue());
  if (!version ||
      version->getAttr(rt::kTasksAttr) != kernel->getAttr(rt::kTasksAttr))
    return fail() << "be a function of its own type, with a body and "
                     "'rt.tasks' = "
                  << kernel->getAttr(rt::kTasksAttr) << ", but got " << name;
  if (version.getTargetCpu() != StringRef(codegen::kAVX512Processor))
    return fail() << "have target_cpu = \"" << codegen::kAVX512Processor
                  << "\", but " << name << " has \""
                  << version.getTargetCpu().value_or("") << "\"";
  // The processor decides, by its level alone, which version it runs.
  LLVM::TargetFeaturesAttr features = version.getTargetFeaturesAttr();
  const std::pair<StringRef, bool> allowed[] = {
      {"+amx-bf16", attribute == rt::kAmxAttr},
      {"+avx512bf16", attribute != rt::kAVX512Attr}};
  for (auto [feature, isWanted] : allowed) {
    bool has = features && llvm::is_contained(features.getFeatures(), feature);
    if (has != isWanted)
      return fail() << (has ? "have no" : "have the") << " feature " << feature
                    << ", but " << name << " has " << (has ? "it" : "not");
  }
  return name.getValue();
}

/// The kernel of `call` in `@device`, if it takes what the call has: one struct
/// of addresses and then ids, by value.
static LLVM::LLVMFuncOp getDeviceKernel(gpu::GPUModuleOp device,
                                        rt::LaunchOp call) {
  auto kernel = device.lookupSymbol<LLVM::LLVMFuncOp>(call.getKernel());
  if (!kernel || kernel.isExternal() || !kernel->hasAttr(rt::kGridAttr) ||
      !kernel->hasAttr(rt::kBlockAttr) || kernel.getNumArguments() != 1)
    return {};
  auto type = kernel.getArgAttrOfType<TypeAttr>(
      0, LLVM::LLVMDialect::getByValAttrName());
  auto fields = type ? dyn_cast<LLVM::LLVMStructType>(type.getValue())
                     : LLVM::LLVMStructType();
  if (!fields)
    return {};
  uint64_t words = 0;
  for (Type field : fields.getBody())
    if (auto array = dyn_cast<LLVM::LLVMArrayType>(field))
      words += array.getNumElements();
  uint64_t given = call->getNumOperands() +
                   call.getIds().value_or(ArrayRef<int64_t>()).size();
  return words == given ? kernel : LLVM::LLVMFuncOp();
}

/// Finds the kernel of `call`; its number of tasks, or 1 if it knows itself how
/// it is launched.
FailureOr<int64_t> TableReader::readKernel(rt::LaunchOp call) {
  if (auto device = symbols.lookup<gpu::GPUModuleOp>("device")) {
    tables.isDevice = true;
    if (getDeviceKernel(device, call))
      return 1;
    return call.emitOpError("needs its kernel to be a function of '@device' in "
                            "the LLVM dialect, with 'rt.grid', 'rt.block' and "
                            "one struct of ")
           << call->getNumOperands() << " addresses and "
           << call.getIds().value_or(ArrayRef<int64_t>()).size()
           << " ids, by now";
  }
  LLVM::LLVMFuncOp kernel = getKernel(symbols, call.getKernel());
  if (!kernel)
    return call.emitOpError("needs its kernel to be a function of (ptr, ptr, "
                            "i64, i64) in the LLVM dialect, with a body and "
                            "'rt.tasks', by now");
  for (auto [attribute, versions] :
       {std::pair(StringRef(rt::kAVX512Attr), &tables.avx512Kernels),
        std::pair(StringRef(rt::kAVX512BF16Attr), &tables.avx512BF16Kernels),
        std::pair(StringRef(rt::kAmxAttr), &tables.amxKernels)}) {
    FailureOr<StringRef> version = readVersion(symbols, kernel, attribute);
    if (failed(version))
      return failure();
    if (!version->empty())
      (*versions)[call.getKernel()] = *version;
  }
  return kernel->getAttrOfType<IntegerAttr>(rt::kTasksAttr).getInt();
}

LogicalResult TableReader::readBuffer(rt::BufferOp buffer) {
  if (failed(verifyBuffer(buffer)) || failed(verifyCut(buffer, tables.mesh)) ||
      failed(verifyShare(buffer, tables.mesh)))
    return failure();
  return readRole(buffer);
}

/// A stage has the inputs of all its micro-batches at once.
LogicalResult TableReader::readRole(rt::BufferOp buffer) {
  auto role = buffer->getAttrOfType<StringAttr>(rt::kRoleAttr);
  if (!role)
    return success();
  auto number = buffer->getAttrOfType<IntegerAttr>(rt::kMicroBatchAttr);
  if (!number || number.getInt() == 0)
    tables.roles[role.getValue()] = buffer;
  if (!number)
    return success();
  if (number.getInt() >= tables.microBatchesPerRank)
    return buffer.emitOpError("needs to be of one of ")
           << tables.microBatchesPerRank << " micro-batches, but is of "
           << number.getInt();
  tables.inputs.resize(tables.microBatchesPerRank);
  Tables::Inputs &own = tables.inputs[number.getInt()];
  (role == "tokens"    ? own.tokens
   : role == "targets" ? own.targets
                       : own.rng) = buffer;
  return success();
}

LogicalResult TableReader::readKernelLaunch(rt::LaunchOp op, Launch &launch) {
  FailureOr<int64_t> tasks = readKernel(op);
  if (failed(tasks))
    return failure();
  launch.kind = REPRISE_LAUNCH_KERNEL;
  launch.callee =
      tables.kernels.insert({op.getKernel(), int64_t(tables.kernels.size())})
          .first->second;
  launch.tasks = *tasks;
  launch.flops = op.getFlops();
  int64_t axes = tables.mesh ? int64_t(tables.mesh.getNames().size()) : 0;
  for (int64_t id : op.getIds().value_or(ArrayRef<int64_t>())) {
    if (id < -axes)
      return op->emitOpError("needs ids that are streams, or from -1 down one "
                             "of ")
             << axes << " axes of the module's '" << nn::kMeshAttr
             << "', but got " << id;
    launch.ids.push_back(id);
  }
  // Whole lines of what is packed go past the caches.
  for (Value output : op.getOutputs()) {
    auto buffer = output.getDefiningOp<rt::BufferOp>();
    if (isPacked(buffer.getType()) &&
        buffer.getOffset() % rt::kDefaultAlignment != 0)
      return op->emitOpError("needs to write ")
             << buffer.getType() << " at a multiple of "
             << rt::kDefaultAlignment << " bytes, but got "
             << buffer.getOffset();
  }
  return success();
}

LogicalResult TableReader::checkGemm(rt::GemmOp op) const {
  bool hasSquares = op.getEpilogue() == rt::Epilogue::SquaresOfC;
  if (op.getEpilogue() && hasSquares == tables.isLibrary)
    return op->emitOpError("needs ")
           << (tables.isLibrary ? "the CPU's GEMMs" : "a library")
           << " for the epilogue " << stringifyEpilogue(*op.getEpilogue());
  if (tables.isLibrary && op.getPackedB())
    return op->emitOpError("needs the CPU's GEMMs for 'packed_b'");
  if (tables.isLibrary && op.getOffsets())
    return op->emitOpError("needs the CPU's GEMMs for groups: libraries "
                           "take their sizes from the host");
  for (OpOperand &operand : op->getOpOperands()) {
    rt::BufferOp whole = operand.get().getDefiningOp<rt::BufferOp>().getRoot();
    auto state = whole->getAttrOfType<rt::StateAttr>(rt::kStateAttr);
    bool readsPacked = op.getPackedB() && &operand == &op.getBMutable() &&
                       operand.get() == whole.getResult();
    if (state && state.getKind() == rt::StateKind::Working &&
        isPacked(whole.getType()) && !readsPacked)
      return op->emitOpError("needs to read the packed copy of '")
             << state.getParameter() << "', " << whole.getType()
             << ", whole as 'b' with 'packed_b'";
  }
  return success();
}

LogicalResult TableReader::readGemm(rt::GemmOp op, Launch &launch) {
  if (failed(checkGemm(op)))
    return failure();
  launch.kind = REPRISE_LAUNCH_GEMM;
  launch.flops = op.getFlops();
  RepriseGemm row = getGemm(op);
  auto *same = llvm::find_if(tables.gemms, [&](const RepriseGemm &other) {
    return memcmp(&row, &other, sizeof row) == 0;
  });
  launch.callee = same - tables.gemms.begin();
  if (same == tables.gemms.end())
    tables.gemms.push_back(row);
  return success();
}

/// The index of a row.
int32_t TableReader::addCollective(const RepriseCollective &row) {
  tables.collectives.push_back(row);
  return tables.collectives.size() - 1;
}

static LogicalResult checkAxis(Operation *op, nn::MeshAttr mesh,
                               StringAttr axis) {
  if (mesh && llvm::is_contained(mesh.getNames(), axis))
    return success();
  return op->emitOpError("needs an axis ")
         << axis << " in the module's '" << nn::kMeshAttr << "'";
}

/// What is only begun has a wait. A number is the row's own, as there are
/// events for it; ops may take one again behind its wait.
void TableReader::setBegun(Operation *op, RepriseCollective &row,
                           Launch &launch) {
  row.isOnce = op->hasAttr(rt::kOnceAttr);
  if (std::optional<int64_t> number = rt::getBegun(op)) {
    launch.kind = REPRISE_LAUNCH_BEGIN;
    row.number = numBegun++;
  }
}

LogicalResult TableReader::readCollective(rt::CollectiveOp op, Launch &launch) {
  if (failed(checkAxis(op, tables.mesh, op.getAxisAttr())))
    return failure();
  ArrayRef<int64_t> members = op.getMembers().value_or(ArrayRef<int64_t>());
  int64_t size = tables.mesh.getSize(op.getAxis());
  if (members.empty() ? size != int64_t(op.getRanks()) : members.back() >= size)
    return op.emitOpError("needs an axis ")
           << op.getAxisAttr() << " of " << op.getRanks()
           << " ranks in the module's '" << nn::kMeshAttr << "'";
  launch.kind = REPRISE_LAUNCH_COLLECTIVE;
  constexpr int32_t kOperations[] = {
      REPRISE_COLLECTIVE_ALL_REDUCE, REPRISE_COLLECTIVE_ALL_GATHER,
      REPRISE_COLLECTIVE_REDUCE_SCATTER, REPRISE_COLLECTIVE_REDUCE_SHARES,
      REPRISE_COLLECTIVE_GATHER_SHARES};
  RepriseCollective row = {};
  row.operation = kOperations[int(op.getKind())];
  row.axis = getAxis(tables.mesh, op.getAxis());
  row.elementType = rt::getElementCode(op.getInputs().front().getType());
  row.blocks = op.getNumBlocks();
  row.blockElements = op.getBlockElements();
  if (rt::getNumTerms(op) > 1)
    row.blocks = rt::getGroups(op);
  if (!members.empty()) {
    row.firstMember = members.front();
    row.memberStride = members[1] - members[0];
    row.numMembers = members.size();
  }
  setBegun(op, row, launch);
  launch.callee = addCollective(row);
  launch.flops = op.getFlops();
  return success();
}

static int32_t getOperation(rt::GatherOffsetsOp) {
  return REPRISE_COLLECTIVE_GATHER_OFFSETS;
}
static int32_t getOperation(rt::SendRowsOp) {
  return REPRISE_COLLECTIVE_SEND_ROWS;
}
static int32_t getOperation(rt::ReturnRowsOp) {
  return REPRISE_COLLECTIVE_RETURN_ROWS;
}

/// Experts in place of blocks, and the elements of a row in place of a block's.
template <typename Op>
LogicalResult TableReader::readRows(Op op, int32_t operation, Launch &launch) {
  if (failed(checkAxis(op, tables.mesh, op.getAxisAttr())))
    return failure();
  if (tables.mesh.getSize(op.getAxis()) != int64_t(op.getRanks()))
    return op.emitOpError("needs an axis ")
           << op.getAxisAttr() << " of " << op.getRanks()
           << " ranks in the module's '" << nn::kMeshAttr << "'";
  auto rows = cast<ShapedType>(op.getInputs().front().getType());
  auto offsets =
      cast<ShapedType>(op.getInputs()[op.getInputs().size() > 1].getType());
  bool areNumbers = rows.getElementType().isInteger(32);
  launch.kind = REPRISE_LAUNCH_COLLECTIVE;
  RepriseCollective row = {};
  row.operation = operation;
  row.axis = getAxis(tables.mesh, op.getAxis());
  row.elementType = areNumbers ? REPRISE_F32 : rt::getElementCode(rows);
  row.blocks = offsets.getShape().back() - 1;
  row.blockElements =
      areNumbers ? 1 : rows.getNumElements() / rows.getDimSize(0);
  row.round = op.getRound().value_or(0);
  row.roundRows = op.getRows().value_or(0);
  row.keepsOthers = op.getKeeps();
  setBegun(op, row, launch);
  launch.callee = addCollective(row);
  return success();
}

/// A row for each peer and lane.
template <typename Op>
LogicalResult TableReader::readTransfer(Op op, Value value, Launch &launch) {
  if (failed(checkAxis(op, tables.mesh, op.getAxisAttr())))
    return failure();
  if (int64_t(op.getPeer()) >= tables.mesh.getSize(op.getAxis()))
    return op.emitOpError("needs a peer of the ")
           << tables.mesh.getSize(op.getAxis()) << " ranks along "
           << op.getAxisAttr() << ", but got " << op.getPeer();
  auto type = cast<ShapedType>(value.getType());
  RepriseCollective row = {};
  row.operation = isa<rt::SendOp>(op) ? REPRISE_COLLECTIVE_SEND
                                      : REPRISE_COLLECTIVE_RECEIVE;
  row.axis = getAxis(tables.mesh, op.getAxis());
  row.elementType = rt::getElementCode(type);
  row.peer = op.getPeer();
  row.lane = op.getLane();
  row.blocks = op.getPlaces();
  row.blockElements = type.getNumElements();
  auto *same =
      llvm::find_if(tables.collectives, [&](const RepriseCollective &other) {
        return memcmp(&row, &other, sizeof row) == 0;
      });
  launch.kind = REPRISE_LAUNCH_COLLECTIVE;
  launch.callee = same == tables.collectives.end()
                      ? addCollective(row)
                      : same - tables.collectives.begin();
  return success();
}

/// It is the launch that it waits for once more.
FailureOr<Launch> TableReader::readWait(rt::WaitOp op) {
  auto found = underWay.find(op.getNumber());
  if (found == underWay.end())
    return op.emitOpError("needs something that is begun with number ")
           << op.getNumber() << " above it, but there is nothing";
  Launch wait = found->second;
  wait.kind = REPRISE_LAUNCH_WAIT;
  wait.flops = 0;
  underWay.erase(found);
  return wait;
}

/// The buffers of a launch are its reads, its writes and its workspace; but
/// what a sum over ranks writes over is there once, as are rows that stay as
/// they are.
static SmallVector<rt::BufferOp> getLaunchBuffers(rt::ScheduledOp op) {
  SmallVector<Value> values;
  auto collective = dyn_cast<rt::CollectiveOp>(op.getOperation());
  values = op.getReads();
  if (collective && collective.isInPlace())
    values.pop_back_n(collective.getOutputs().size());
  if (auto rows = dyn_cast<rt::ReturnRowsOp>(op.getOperation());
      rows && rows.getKeeps())
    values.pop_back();
  llvm::append_range(values, op.getWrites());
  if (Value workspace = op.getWorkspaceBuffer())
    values.push_back(workspace);
  return llvm::map_to_vector(
      values, [](Value value) { return value.getDefiningOp<rt::BufferOp>(); });
}

FailureOr<Launch> TableReader::readLaunch(Operation *op) {
  auto scheduled = dyn_cast<rt::ScheduledOp>(op);
  if (!scheduled || op->getNumResults() > 0)
    return op->emitOpError("needs to be in buffer form by now");
  for (auto [index, operand] : llvm::enumerate(op->getOperands()))
    if (!operand.getDefiningOp<rt::BufferOp>())
      return op->emitOpError("needs operands that are 'rt.buffer', but #")
             << index << " is none";
  if (auto wait = dyn_cast<rt::WaitOp>(op))
    return readWait(wait);
  Launch launch = {};
  LogicalResult read =
      TypeSwitch<Operation *, LogicalResult>(op)
          .Case(
              [&](rt::LaunchOp call) { return readKernelLaunch(call, launch); })
          .Case([&](rt::GemmOp gemm) { return readGemm(gemm, launch); })
          .Case([&](rt::CollectiveOp collective) {
            return readCollective(collective, launch);
          })
          .Case([&](rt::SendOp send) {
            return readTransfer(send, send.getValue(), launch);
          })
          .Case([&](rt::ReceiveOp receive) {
            return readTransfer(receive, receive.getOutput(), launch);
          })
          .Case<rt::GatherOffsetsOp, rt::SendRowsOp, rt::ReturnRowsOp>(
              [&](auto rows) {
                return readRows(rows, getOperation(rows), launch);
              })
          .Default([](Operation *other) {
            return other->emitOpError("needs a kind of row in the tables of a "
                                      "program, but has none");
          });
  if (failed(read))
    return failure();
  launch.buffers = getLaunchBuffers(scheduled);
  if (auto name = op->getAttrOfType<StringAttr>(rt::kNameAttr))
    launch.name = name.getValue();
  if (std::optional<int64_t> number = rt::getBegun(op))
    underWay[*number] = launch;
  return launch;
}

LogicalResult TableReader::readStep(func::FuncOp step) {
  if (auto count = step->getAttrOfType<IntegerAttr>(nn::kMicroBatchesAttr))
    tables.microBatchesPerRank = count.getInt();
  tables.reductionGroups = nn::getReductionGroups(step);
  tables.schedules = {{"micro", {}}, {"update", {}}};
  Tables::Schedule *schedule = &tables.schedules.front();
  // The step of a stage has all micro-batches, one after another.
  double times = tables.stage ? 1 : double(tables.microBatchesPerRank);
  for (Operation &op : step.getBody().front()) {
    if (auto buffer = dyn_cast<rt::BufferOp>(op)) {
      if (failed(readBuffer(buffer)))
        return failure();
      if (op.hasAttr(rt::kStateAttr))
        tables.states.push_back(buffer);
      else if (op.hasAttr(rt::kRotaryAttr))
        tables.rotaries.push_back(buffer);
      continue;
    }
    if (isa<rt::UpdateOp>(op)) {
      schedule = &tables.schedules.back();
      times = 1;
      continue;
    }
    if (isa<func::ReturnOp>(op))
      continue;
    FailureOr<Launch> launch = readLaunch(&op);
    if (failed(launch))
      return failure();
    (op.hasAttr(remat::kReplayAttr) ? tables.replayFlops : tables.modelFlops) +=
        (op.hasAttr(rt::kOnceAttr) ? 1 : times) * double(launch->flops);
    schedule->launches.push_back(std::move(*launch));
  }
  return success();
}

/// The micro-batches in order, behind each group but the last what puts its
/// sums aside, and the update at the end.
LogicalResult TableReader::readProgram(func::FuncOp step) {
  if (tables.stage) {
    tables.program = {{/*schedule=*/0, /*microBatch=*/0},
                      {/*schedule=*/1, /*microBatch=*/-1}};
    return success();
  }
  SmallVector<int32_t> pushes; // by their levels
  for (unsigned level = 0; level < nn::getPartialLevels(tables.reductionGroups);
       ++level) {
    std::string name = (nn::kPushFunction + Twine(level)).str();
    auto function = symbols.lookup<func::FuncOp>(name);
    if (!function)
      return step.emitError("needs a function @")
             << name << " for " << tables.reductionGroups
             << " groups of micro-batches";
    FailureOr<int32_t> schedule = readSchedule(function);
    if (failed(schedule))
      return failure();
    pushes.push_back(*schedule);
  }
  int64_t size = tables.microBatchesPerRank / tables.reductionGroups;
  for (int64_t i = 0; i < tables.microBatchesPerRank; ++i) {
    tables.program.push_back({/*schedule=*/0, /*microBatch=*/int32_t(i)});
    int64_t group = i / size;
    if ((i + 1) % size == 0 && group + 1 < tables.reductionGroups)
      tables.program.push_back(
          {pushes[nn::getLevelBehind(group)], /*microBatch=*/-1});
  }
  tables.program.push_back({/*schedule=*/1, /*microBatch=*/-1});
  return success();
}

/// The index of the new schedule, a function as a whole.
FailureOr<int32_t> TableReader::readSchedule(func::FuncOp function) {
  if (!function.getBody().hasOneBlock())
    return function.emitError("needs one block to translate, but got ")
           << function.getBody().getBlocks().size();
  Tables::Schedule schedule = {function.getName(), {}};
  for (Operation &op : function.getBody().front()) {
    if (isa<func::ReturnOp>(op))
      continue;
    if (auto buffer = dyn_cast<rt::BufferOp>(op)) {
      if (failed(readBuffer(buffer)))
        return failure();
      continue;
    }
    FailureOr<Launch> launch = readLaunch(&op);
    if (failed(launch))
      return failure();
    schedule.launches.push_back(std::move(*launch));
  }
  tables.schedules.push_back(std::move(schedule));
  return int32_t(tables.schedules.size() - 1);
}

//===----------------------------------------------------------------------===//
// All of them
//===----------------------------------------------------------------------===//

void TableReader::readMicroKernels() {
  for (const codegen::MicroKernel &tile : codegen::getMicroKernels()) {
    std::string name = tile.symbol();
    auto function = symbols.lookup<LLVM::LLVMFuncOp>(name);
    if (function && !function.isExternal())
      tables.microKernels.push_back({&tile, name});
  }
}

FailureOr<Tables> TableReader::read() {
  tables.isLibrary = module->hasAttr(rt::kGemmWorkspaceAttr);
  tables.mesh = module->getAttrOfType<nn::MeshAttr>(nn::kMeshAttr);
  tables.stage = getStage(module);
  readMicroKernels();
  auto step = symbols.lookup<func::FuncOp>(nn::kStepFunction);
  if (!step || !step.getBody().hasOneBlock())
    return module.emitError("needs a function @step of one block to translate");
  if (failed(readStep(step)))
    return failure();
  for (auto [name, index] : {std::pair(nn::kEvaluateFunction, &tables.evaluate),
                             std::pair(nn::kSampleFunction, &tables.sample)}) {
    auto function = symbols.lookup<func::FuncOp>(name);
    if (!function)
      continue;
    FailureOr<int32_t> schedule = readSchedule(function);
    if (failed(schedule))
      return failure();
    *index = *schedule;
  }
  if (failed(readProgram(step)))
    return failure();
  return std::move(tables);
}

FailureOr<Tables> target::readTables(ModuleOp module) {
  return TableReader(module).read();
}
