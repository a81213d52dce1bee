//===- EmitCUDA.cpp - Kernels become functions of threads -------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attention.h"
#include "DeviceKernels.h"
#include "ExpertKernels.h"
#include "GroupSum.h"
#include "WarpGroup.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "reprise/Codegen/CUDA/Device.h"
#include "reprise/Codegen/CUDA/Passes.h"
#include "reprise/Codegen/Common/Families.h"
#include "reprise/Codegen/Common/KernelBody.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;
using namespace reprise::cuda;

namespace reprise::cuda {
#define GEN_PASS_DEF_EMITCUDA
#include "reprise/Codegen/CUDA/Passes.h.inc"
} // namespace reprise::cuda

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

/// The last id that an op of attention reads.
template <typename Op>
static int64_t getLastId(Op attention) {
  return std::max(int64_t(attention.getStream()),
                  int64_t(attention.getCoordinate().value_or(0)));
}

/// How many ids a launch of `source` gives.
static int64_t countIds(func::FuncOp source) {
  int64_t count = 0;
  source.walk([&](Operation *op) {
    int64_t last =
        TypeSwitch<Operation *, int64_t>(op)
            .Case([](rt::StreamOp id) { return int64_t(id.getIndex()); })
            .Case<rt::AttentionOp, rt::AttentionBackwardOp>(
                [](auto attention) { return getLastId(attention); })
            .Case([](rt::ScatterAddOp add) {
              return int64_t(add.getCoordinate().value_or(-1));
            })
            .Default([](Operation *) { return int64_t(-1); });
    count = std::max(count, last + 1);
  });
  return count;
}

/// Whether elements of `value`, or of a view of it, are read one by one alone.
static bool isGathered(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation *user) {
    return isa<tensor::ExtractOp>(user) ||
           (isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(user) &&
            isGathered(user->getResult(0)));
  });
}

/// The least that a launch moves: each buffer once, but of a table that rows
/// are gathered from as much as the largest result, and of one that rows are
/// added to no more than these.
static int64_t countBytes(func::FuncOp source) {
  auto bytesOf = [](Type type) {
    auto tensor = cast<RankedTensorType>(type);
    return tensor.getNumElements() * tensor.getElementTypeBitWidth() / 8;
  };
  int64_t bytes = 0, largest = 0;
  for (Type type : source.getResultTypes()) {
    bytes += bytesOf(type);
    largest = std::max(largest, bytesOf(type));
  }
  for (BlockArgument argument : source.getArguments()) {
    int64_t whole = bytesOf(argument.getType());
    bytes += isGathered(argument) ? std::min(whole, largest) : whole;
  }
  for (auto op : source.getOps<rt::ScatterAddOp>()) {
    int64_t table = bytesOf(op.getOut().getType());
    auto rows = cast<RankedTensorType>(op.getRows().getType());
    auto sum = dyn_cast<BlockArgument>(getRoot(op.getSum()));
    bool isInPlace =
        sum && source.getArgAttr(sum.getArgNumber(), rt::kInPlaceAttr);
    if (isInPlace)
      bytes -= 2 * std::max<int64_t>(table - rows.getNumElements() * 4, 0);
  }
  return bytes;
}

namespace {
/// What a kernel is launched with, and the least that it moves.
struct KernelShape {
  int64_t numInputs, numOutputs, numIds, bytes;
};
} // namespace

/// Opens a function and loads the addresses of its buffers.
static DeviceKernel openKernel(DeviceCode &code, StringRef name,
                               const KernelShape &shape,
                               gpu::GPUModuleOp device) {
  MLIRContext *context = code.getContext();
  auto pointer = LLVM::LLVMPointerType::get(context);
  int64_t numBuffers = shape.numInputs + shape.numOutputs;
  auto arguments = LLVM::LLVMStructType::getLiteral(
      context, {LLVM::LLVMArrayType::get(pointer, numBuffers),
                LLVM::LLVMArrayType::get(code.getI64Type(), shape.numIds)});

  DeviceKernel kernel;
  code.setInsertionPointToEnd(device.getBody());
  kernel.function =
      gpu::GPUFuncOp::create(code, name, code.getFunctionType({pointer}, {}));
  gpu::GPUFuncOp function = kernel.function;
  function->setAttr(gpu::GPUDialect::getKernelFuncAttrName(),
                    code.getUnitAttr());
  function->setAttr(rt::kKernelAttr, code.getUnitAttr());
  function->setAttr(rt::kSharedAttr, code.getI64IntegerAttr(0));
  function->setAttr(rt::kBytesAttr, code.getI64IntegerAttr(shape.bytes));
  function.setArgAttr(0, LLVM::LLVMDialect::getByValAttrName(),
                      TypeAttr::get(arguments));
  function.setArgAttr(0, LLVM::LLVMDialect::getAlignAttrName(),
                      code.getI64IntegerAttr(8));

  Block *entry = &function.getBody().front();
  code.setInsertionPointToStart(entry);
  gpu::ReturnOp::create(code);
  code.setInsertionPointToStart(entry);
  kernel.arguments = entry->getArgument(0);
  for (int64_t i = 0; i < numBuffers; ++i)
    (i < shape.numInputs ? kernel.inputs : kernel.outputs)
        .push_back(kernel.bufferAt(code, code.i64(i)));
  kernel.ids = LLVM::GEPOp::create(code, pointer, arguments, kernel.arguments,
                                   ArrayRef<LLVM::GEPArg>{0, 1, 0});
  return kernel;
}

/// Opens the function that replaces `source`.
static DeviceKernel openKernel(DeviceCode &code, func::FuncOp source,
                               gpu::GPUModuleOp device) {
  int64_t numInputs = source.getNumArguments();
  DeviceKernel kernel = openKernel(code, source.getName(),
                                   {numInputs, int64_t(source.getNumResults()),
                                    countIds(source), countBytes(source)},
                                   device);
  kernel.source = source;
  for (int64_t i = 0; i < numInputs; ++i)
    kernel.constant.push_back(!source.getArgAttr(i, rt::kInPlaceAttr) &&
                              !source.getArgAttr(i, rt::kMayAliasAttr));
  return kernel;
}

//===----------------------------------------------------------------------===//
// The body
//===----------------------------------------------------------------------===//

/// On a kernel while it is emitted: of each of its buffers, inputs before
/// outputs, a power of two that divides where it begins in every launch.
static constexpr StringLiteral kBeginsAttr = "rt.begins";
/// Bytes of the widest access.
static constexpr int64_t kVector = 16;

/// Buffers begin at multiples of the plan's alignment, but parts of a buffer
/// that is joined of several begin anywhere.
static void recordBegins(ModuleOp module) {
  llvm::StringMap<SmallVector<int64_t>> begins;
  module.walk([&](rt::LaunchOp call) {
    SmallVector<int64_t> &known = begins[call.getKernel()];
    known.resize(call->getNumOperands(), kVector);
    for (auto [begin, operand] : llvm::zip(known, call->getOperands()))
      if (auto buffer = operand.getDefiningOp<rt::BufferOp>())
        while (buffer.getOffset() % begin != 0)
          begin /= 2;
  });
  for (auto function : module.getOps<func::FuncOp>())
    if (auto found = begins.find(function.getName()); found != begins.end())
      function->setAttr(kBeginsAttr, DenseI64ArrayAttr::get(module.getContext(),
                                                            found->second));
}

int64_t cuda::chooseLanes(const LoopNest &nest, func::FuncOp source,
                          int64_t multiple) {
  SmallVector<Type> types(source.getArgumentTypes());
  llvm::append_range(types, source.getResultTypes());
  auto begins = source->getAttrOfType<DenseI64ArrayAttr>(kBeginsAttr);
  int64_t lanes = kVector / 2;
  for (auto [index, type] : llvm::enumerate(types)) {
    auto tensor = cast<RankedTensorType>(type);
    if (tensor.getNumElements() != nest.rows * nest.cols)
      continue;
    int64_t bytes = std::max<int64_t>(tensor.getElementTypeBitWidth() / 8, 1);
    int64_t begin = begins ? begins[index] : kVector;
    lanes = std::min(lanes, std::max<int64_t>(begin / bytes, 1));
  }
  while (multiple % lanes != 0)
    lanes /= 2;
  return lanes;
}

int64_t cuda::countAlignedLanes(func::FuncOp source) {
  int64_t begin = kVector;
  if (auto begins = source->getAttrOfType<DenseI64ArrayAttr>(kBeginsAttr))
    for (int64_t each : begins.asArrayRef())
      begin = std::min(begin, each);
  return std::max<int64_t>(begin / int64_t(sizeof(float)), 1);
}

static LogicalResult emitLoops(DeviceCode &code, DeviceKernel &kernel) {
  if (isSegmented(kernel.source))
    return emitSegments(code, kernel);
  FailureOr<LoopNest> nest = LoopNest::get(kernel.source);
  if (failed(nest))
    return failure();
  switch (nest->shape) {
  case LoopNest::Shape::Flat:
    return emitFlat(code, *nest, kernel);
  case LoopNest::Shape::Rows:
    return emitRows(code, *nest, kernel);
  case LoopNest::Shape::Columns:
    return emitColumns(code, *nest, kernel);
  }
  llvm_unreachable("all shapes have an emitter");
}

template <typename Op>
using AttentionEmitter = FailureOr<LaunchShape> (*)(Code &, Op,
                                                    const AttentionPlaces &,
                                                    bool byWarpGroup);

template <typename Op>
static LogicalResult
emitAttentionKernel(DeviceCode &code, Op op, DeviceKernel &kernel,
                    AttentionEmitter<Op> emit, bool byWarpGroup) {
  // These emitters say themselves what is in device memory.
  auto anywhere = [&](Value address) -> Value {
    return LLVM::AddrSpaceCastOp::create(
        code, LLVM::LLVMPointerType::get(code.getContext()), address);
  };
  AttentionPlaces places;
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    places.operands.push_back(anywhere(kernel.addressOf(op, i)));
  for (Value address : kernel.outputs)
    places.results.push_back(anywhere(address));
  auto id = [&](int64_t position) {
    return code.load(code.getI64Type(), kernel.ids, code.i64(position));
  };
  places.stream = id(op.getStream());
  if (op.getCoordinate())
    places.coordinate = id(*op.getCoordinate());
  places.shared =
      kernel.takeShared(code, 0, byWarpGroup ? kPanelAlignment : kSharedVector);
  FailureOr<LaunchShape> shape = emit(code, op, places, byWarpGroup);
  if (failed(shape))
    return failure();
  kernel.takeShared(code, shape->sharedBytes);
  kernel.setLaunch(code, shape->blocks, shape->threads);
  kernel.function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                           code.getI32IntegerAttr(shape->residentBlocks));
  return success();
}

/// And, where there is one, the form for the chip with other MMAs. Launches
/// are the same: they have the shared memory that either needs.
template <typename Op>
static LogicalResult emitAttentionKernels(DeviceCode &code, Op op,
                                          DeviceKernel &kernel,
                                          AttentionEmitter<Op> emit) {
  if (failed(emitAttentionKernel(code, op, kernel, emit, false)))
    return failure();
  if (!hasWarpGroupForm(op))
    return success();
  StringAttr name = kernel.function.getNameAttr();
  DeviceKernel other =
      openKernel(code, kernel.source,
                 kernel.function->getParentOfType<gpu::GPUModuleOp>());
  other.function.setName((name.getValue() + "_" + kWarpGroupChip).str());
  other.function->setAttr(rt::kInsteadAttr, name);
  other.function->setAttr(rt::kChipAttr, code.getStringAttr(kWarpGroupChip));
  if (failed(emitAttentionKernel(code, op, other, emit, true)))
    return failure();
  if (other.sharedBytes > kernel.sharedBytes)
    kernel.takeShared(code, other.sharedBytes - kernel.sharedBytes);
  return success();
}

static LogicalResult emitKernel(func::FuncOp source, gpu::GPUModuleOp device) {
  FailureOr<Operation *> op = getKernelOp(source);
  if (failed(op))
    return failure();
  DeviceCode code(source.getLoc(), source.getContext());
  DeviceKernel kernel = openKernel(code, source, device);
  LogicalResult result =
      *op ? TypeSwitch<Operation *, LogicalResult>(*op)
                .Case([&](rt::AttentionOp op) {
                  return emitAttentionKernels(code, op, kernel, emitAttention);
                })
                .Case([&](rt::AttentionBackwardOp op) {
                  return emitAttentionKernels(code, op, kernel,
                                              emitAttentionBackward);
                })
                .Case([&](rt::ScatterAddOp op) {
                  return emitScatterAdd(code, op, kernel);
                })
                .Case([&](rt::BlockSumsOp op) {
                  return emitBlockSums(code, op, kernel);
                })
                .Case<rt::ChooseExpertsOp, rt::ExpertWeightsOp,
                      rt::ExpertWeightsBackwardOp, rt::SortRowsOp,
                      rt::CountRowsOp, rt::CountChoicesOp>(
                    [&](auto op) { return emitRouting(code, op, kernel); })
                .Case<rt::SplitColumnsOp, rt::JoinColumnsOp, rt::LatentHeadsOp,
                      rt::LatentHeadsBackwardOp>([&](auto op) {
                  return emitColumnMoves(code, ColumnMoves(op), op, kernel);
                })
                .Case([&](rt::GemmOp op) {
                  return emitGroupedGemm(code, op, kernel);
                })
                .Default([](Operation *other) {
                  return other->emitOpError("has no code for GPUs");
                })
          : emitLoops(code, kernel);
  if (succeeded(result))
    source.erase();
  return result;
}

/// A kernel for each kind of sum over ranks.
static void emitRankSums(ModuleOp module, gpu::GPUModuleOp device) {
  llvm::StringSet<> names;
  SmallVector<RankSum> kinds;
  module.walk([&](rt::CollectiveOp op) {
    for (const RankSum &sum : getRankSums(op))
      if (names.insert(getRankSumName(sum)).second)
        kinds.push_back(sum);
  });
  for (const RankSum &sum : kinds) {
    DeviceCode code(module.getLoc(), module.getContext());
    int64_t numTerms = sum.getNumTerms();
    int64_t bytes = (numTerms + 1) * sum.element.getIntOrFloatBitWidth() / 8;
    DeviceKernel kernel = openKernel(
        code, getRankSumName(sum),
        {numTerms, /*numOutputs=*/1, /*numIds=*/1, kRankSumElements * bytes},
        device);
    if (sum.groups == 1)
      emitRankSum(code, sum.element, kernel);
    else
      emitGroupSum(code, sum, kernel);
  }
}

/// A kernel for each kind of move of rows of experts, and for their offsets.
static void emitAllRankRows(ModuleOp module, gpu::GPUModuleOp device) {
  for (int64_t unit : getRankRowsUnits(module)) {
    DeviceCode code(module.getLoc(), module.getContext());
    DeviceKernel kernel =
        unit ? openKernel(code, getRankRowsName(unit),
                          {/*numInputs=*/2, /*numOutputs=*/1, /*numIds=*/8,
                           /*bytes=*/2 * unit},
                          device)
             : openKernel(code, getRankRowsName(unit),
                          {/*numInputs=*/1, /*numOutputs=*/1, /*numIds=*/3,
                           /*bytes=*/8},
                          device);
    emitRankRows(code, unit, kernel);
  }
}

namespace {
struct EmitCUDA : cuda::impl::EmitCUDABase<EmitCUDA> {
  using EmitCUDABase::EmitCUDABase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(findChip(module.getLoc(), chip)))
      return signalPassFailure();
    OpBuilder builder(&getContext());
    builder.setInsertionPointToEnd(module.getBody());
    auto target = NVVM::NVVMTargetAttr::get(&getContext(), /*optLevel=*/3,
                                            "nvptx64-nvidia-cuda", chip);
    recordBegins(module);
    auto device = gpu::GPUModuleOp::create(builder, module.getLoc(), "device",
                                           ArrayRef<Attribute>{target});
    for (auto function :
         llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
      if (function->hasAttr(rt::kKernelAttr) &&
          failed(emitKernel(function, device)))
        return signalPassFailure();
    emitRankSums(module, device);
    emitAllRankRows(module, device);
  }
};
} // namespace
