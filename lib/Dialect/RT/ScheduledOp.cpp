//===- ScheduledOp.cpp - What ops of schedules touch ------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Dialect/RT/ScheduledOp.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "reprise/Dialect/RT/GroupSums.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Interfaces/CostModel.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::rt;

#include "reprise/Dialect/RT/ScheduledOp.cpp.inc"

static bool isBF16(Value value) {
  return cast<ShapedType>(value.getType()).getElementType().isBF16();
}

//===----------------------------------------------------------------------===//
// rt.launch
//===----------------------------------------------------------------------===//

namespace {
struct ScheduledLaunch
    : public ScheduledOp::ExternalModel<ScheduledLaunch, LaunchOp> {
  SmallVector<Value> getReads(Operation *op) const {
    return SmallVector<Value>(cast<LaunchOp>(op).getInputs());
  }

  SmallVector<Value> getWrites(Operation *op) const {
    SmallVector<Value> writes(op->getResults());
    llvm::append_range(writes, cast<LaunchOp>(op).getOutputs());
    return writes;
  }

  FailureOr<SmallVector<Sharing>> getSharing(Operation *op,
                                             const SymbolTable &symbols) const;

  Block *getFusedOps(Operation *op, const SymbolTable &symbols) const {
    auto kernel =
        symbols.lookup<FunctionOpInterface>(cast<LaunchOp>(op).getKernel());
    return kernel && !kernel.isExternal() ? &kernel.getFunctionBody().front()
                                          : nullptr;
  }

  Workload getWorkload(Operation *op, SymbolTable &symbols) const;

  Operation *createOnBuffers(Operation *op, OpBuilder &builder,
                             function_ref<Value(Value)> getBuffer,
                             Value workspace) const {
    auto launch = cast<LaunchOp>(op);
    return LaunchOp::create(builder, op->getLoc(), TypeRange(),
                            launch.getKernelAttr(),
                            llvm::map_to_vector(launch.getInputs(), getBuffer),
                            llvm::map_to_vector(launch.getResults(), getBuffer),
                            launch.getIdsAttr(), launch.getFlopsAttr());
  }
};
} // namespace

FailureOr<SmallVector<Sharing>>
ScheduledLaunch::getSharing(Operation *op, const SymbolTable &symbols) const {
  auto launch = cast<LaunchOp>(op);
  auto kernel = symbols.lookup<FunctionOpInterface>(launch.getKernel());
  unsigned numReads = launch.getInputs().size();
  // An emitted kernel is a function of pointers, which says nothing of them.
  if (!kernel || kernel.getNumArguments() != numReads ||
      kernel->hasAttr(kTasksAttr) || kernel->hasAttr(kGridAttr))
    return failure();
  SmallVector<Sharing> sharing;
  for (StringRef attribute : {kInPlaceAttr, kMayAliasAttr})
    for (unsigned read = 0; read < numReads; ++read)
      if (auto number = kernel.getArgAttrOfType<IntegerAttr>(read, attribute))
        sharing.push_back({read, number.getInt(), attribute == kInPlaceAttr});
  return sharing;
}

Workload ScheduledLaunch::getWorkload(Operation *op,
                                      SymbolTable &symbols) const {
  Workload load;
  load.bytes = getOperandAndResultBytes(op);
  load.flops = cast<LaunchOp>(op).getFlops();
  load.key = cast<LaunchOp>(op).getKernel().str();
  Block *fused = getFusedOps(op, symbols);
  if (!fused)
    return load;
  // Attention may be of any dialect; a GEMM of groups is `rt.gemm`.
  for (Operation &inner : *fused) {
    bool isGemm = isa<GemmOp>(inner);
    if (!isGemm && !inner.getName().stripDialect().starts_with("attention"))
      continue;
    load.work = isGemm ? Work::Gemm : Work::Attention;
    load.isBF16 = isBF16(op->getOperand(0));
  }
  return load;
}

//===----------------------------------------------------------------------===//
// rt.gemm
//===----------------------------------------------------------------------===//

/// "gemm 256x64x64 f32", with " x8" for a batch of 8.
static std::string getKey(GemmOp gemm) {
  std::string key;
  llvm::raw_string_ostream os(key);
  os << "gemm " << gemm.getM() << "x" << gemm.getN() << "x" << gemm.getK()
     << (isBF16(gemm.getA()) ? " bf16" : " f32");
  if (int64_t count = gemm.getBatchCount(); count != 1)
    os << " x" << count;
  if (int64_t count = gemm.getGroupCount())
    os << " in " << count << " groups";
  return key;
}

namespace {
struct ScheduledGemm
    : public ScheduledOp::ExternalModel<ScheduledGemm, GemmOp> {
  SmallVector<Value> getReads(Operation *op) const {
    auto gemm = cast<GemmOp>(op);
    SmallVector<Value> reads = {gemm.getA(), gemm.getB()};
    for (Value read : {Value(gemm.getBias()), Value(gemm.getOffsets()),
                       Value(gemm.getOrder()), Value(gemm.getAddend())})
      if (read)
        reads.push_back(read);
    return reads;
  }

  SmallVector<Value> getWrites(Operation *op) const {
    auto gemm = cast<GemmOp>(op);
    SmallVector<Value> writes(gemm.getMade());
    for (Value write : {Value(gemm.getOutput()), Value(gemm.getAux())})
      if (write)
        writes.push_back(write);
    return writes;
  }

  bool addsTo(Operation *op, unsigned number) const {
    return number == 0 && cast<GemmOp>(op).getAccumulate();
  }

  FailureOr<SmallVector<Sharing>> getSharing(Operation *op,
                                             const SymbolTable &symbols) const {
    SmallVector<Sharing> sharing;
    if (cast<GemmOp>(op).getAddend()) // The last of the reads.
      sharing.push_back({unsigned(getReads(op).size() - 1), 0, true});
    return sharing;
  }

  int64_t getWorkspaceBytes(Operation *op) const {
    return cast<GemmOp>(op).getWorkspaceBytes();
  }
  Value getWorkspaceBuffer(Operation *op) const {
    return cast<GemmOp>(op).getWorkspace();
  }

  Workload getWorkload(Operation *op, SymbolTable &symbols) const;
  Operation *createOnBuffers(Operation *op, OpBuilder &builder,
                             function_ref<Value(Value)> getBuffer,
                             Value workspace) const;
};
} // namespace

Workload ScheduledGemm::getWorkload(Operation *op, SymbolTable &symbols) const {
  auto gemm = cast<GemmOp>(op);
  Workload load;
  load.bytes = getOperandAndResultBytes(op);
  if (Value workspace = gemm.getWorkspace())
    load.bytes -= getTypeBytes(workspace.getType());
  if (gemm.getAccumulate()) // C is read, as an addend is.
    load.bytes += getTypeBytes(gemm.getOutput().getType());
  load.work = Work::Gemm;
  load.isBF16 = isBF16(gemm.getA());
  load.flops = gemm.getFlops();
  load.key = getKey(gemm);
  return load;
}

Operation *ScheduledGemm::createOnBuffers(Operation *op, OpBuilder &builder,
                                          function_ref<Value(Value)> getBuffer,
                                          Value workspace) const {
  auto gemm = cast<GemmOp>(op);
  auto get = [&](Value value) { return value ? getBuffer(value) : Value(); };
  return GemmOp::create(
      builder, op->getLoc(), TypeRange(), get(gemm.getA()), get(gemm.getB()),
      get(gemm.getBias()), get(gemm.getOffsets()), get(gemm.getOrder()),
      /*addend=*/Value(), get(gemm.getResult()), get(gemm.getAuxiliary()),
      workspace, gemm.getMAttr(), gemm.getNAttr(), gemm.getKAttr(),
      gemm.getLdaAttr(), gemm.getLdbAttr(), gemm.getLdcAttr(),
      gemm.getBatchAttr(), gemm.getStrideAAttr(), gemm.getStrideBAttr(),
      gemm.getStrideCAttr(), gemm.getAlphaAttr(), gemm.getTransposeAAttr(),
      gemm.getTransposeBAttr(),
      gemm.getAddend() ? builder.getUnitAttr() : UnitAttr(),
      gemm.getEpilogueAttr(), gemm.getPackedBAttr(), gemm.getGatherAttr(),
      gemm.getSlotsAttr());
}

//===----------------------------------------------------------------------===//
// rt.collective
//===----------------------------------------------------------------------===//

static int64_t getBytes(ValueRange values) {
  int64_t bytes = 0;
  for (Type type : values.getTypes())
    bytes += getTypeBytes(type);
  return bytes;
}

/// The bytes of what all ranks have together, or of the terms of one; of whole
/// sums, which may have several, the mean of terms and sums.
static int64_t getWholeBytes(CollectiveOp op) {
  if (op.getKind() == Collective::AllReduce)
    return (getBytes(op.getInputs()) + getBytes(getMade(op))) / 2;
  return getBytes(op.isSum() ? ValueRange(op.getInputs()) : getMade(op));
}

namespace {
/// Sums of all are made in place, as is what shares are gathered into. What has
/// parts beside a whole has other bytes.
struct ScheduledCollective
    : public ScheduledOp::ExternalModel<ScheduledCollective, CollectiveOp> {
  SmallVector<Value> getReads(Operation *op) const {
    return SmallVector<Value>(cast<CollectiveOp>(op).getInputs());
  }

  SmallVector<Value> getWrites(Operation *op) const {
    SmallVector<Value> writes(op->getResults());
    llvm::append_range(writes, cast<CollectiveOp>(op).getOutputs());
    return writes;
  }

  FailureOr<SmallVector<Sharing>> getSharing(Operation *op,
                                             const SymbolTable &symbols) const {
    // There may be thousands of inputs.
    auto collective = cast<CollectiveOp>(op);
    SmallVector<Sharing> sharing;
    for (unsigned number = 0; number < collective.getInputs().size(); ++number)
      if (int64_t made = collective.getMadeInPlaceOf(number); made >= 0)
        sharing.push_back({number, made, true});
    return sharing;
  }

  int64_t getWorkspaceBytes(Operation *op) const {
    return 4 * cast<CollectiveOp>(op).getWorkspaceElements();
  }
  Value getWorkspaceBuffer(Operation *op) const {
    return cast<CollectiveOp>(op).getWorkspace();
  }

  Workload getWorkload(Operation *op, SymbolTable &symbols) const {
    auto collective = cast<CollectiveOp>(op);
    Workload load;
    load.bytes = getOperandAndResultBytes(op);
    if (Value workspace = collective.getWorkspace())
      load.bytes -= getTypeBytes(workspace.getType());
    load.flops = collective.getFlops();
    setExchange(load, stringifyCollective(collective.getKind()),
                collective.getAxis(), collective.getRanks(),
                getWholeBytes(collective),
                collective.getKind() == Collective::AllReduce);
    return load;
  }

  Operation *createOnBuffers(Operation *op, OpBuilder &builder,
                             function_ref<Value(Value)> getBuffer,
                             Value workspace) const {
    auto collective = cast<CollectiveOp>(op);
    return CollectiveOp::create(
        builder, op->getLoc(), TypeRange(), collective.getKindAttr(),
        llvm::map_to_vector(collective.getInputs(), getBuffer),
        llvm::map_to_vector(collective.getResults(), getBuffer), workspace,
        collective.getAxisAttr(), collective.getRanksAttr(),
        collective.getDimAttr(), collective.getMembersAttr());
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// rt.send, rt.receive
//===----------------------------------------------------------------------===//

static FailureOr<SmallVector<Sharing>> shareNothing() {
  return SmallVector<Sharing>();
}

/// The sender's time is that of the bytes; the receiver waits for the sender.
static Workload getTransfer(Operation *op, bool sends) {
  Workload load;
  load.bytes = getOperandAndResultBytes(op);
  if (sends) {
    setSend(load, op->getAttrOfType<StringAttr>("axis"), load.bytes);
    return load;
  }
  load.work = Work::Exchange;
  load.key = "receive " + std::to_string(load.bytes);
  return load;
}

namespace {
struct ScheduledSend
    : public ScheduledOp::ExternalModel<ScheduledSend, SendOp> {
  SmallVector<Value> getReads(Operation *op) const {
    return {cast<SendOp>(op).getValue()};
  }
  SmallVector<Value> getWrites(Operation *op) const { return {}; }
  FailureOr<SmallVector<Sharing>> getSharing(Operation *op,
                                             const SymbolTable &) const {
    return shareNothing();
  }
  Workload getWorkload(Operation *op, SymbolTable &) const {
    return getTransfer(op, /*sends=*/true);
  }
  Operation *createOnBuffers(Operation *op, OpBuilder &builder,
                             function_ref<Value(Value)> getBuffer,
                             Value workspace) const {
    auto send = cast<SendOp>(op);
    return SendOp::create(builder, op->getLoc(), getBuffer(send.getValue()),
                          send.getAxisAttr(), send.getPeerAttr(),
                          send.getLaneAttr(), send.getPlacesAttr());
  }
};

struct ScheduledReceive
    : public ScheduledOp::ExternalModel<ScheduledReceive, ReceiveOp> {
  SmallVector<Value> getReads(Operation *op) const { return {}; }
  SmallVector<Value> getWrites(Operation *op) const {
    auto receive = cast<ReceiveOp>(op);
    return {receive.getResult() ? Value(receive.getResult())
                                : Value(receive.getOutput())};
  }
  FailureOr<SmallVector<Sharing>> getSharing(Operation *op,
                                             const SymbolTable &) const {
    return shareNothing();
  }
  Workload getWorkload(Operation *op, SymbolTable &) const {
    return getTransfer(op, /*sends=*/false);
  }
  Operation *createOnBuffers(Operation *op, OpBuilder &builder,
                             function_ref<Value(Value)> getBuffer,
                             Value workspace) const {
    auto receive = cast<ReceiveOp>(op);
    return ReceiveOp::create(builder, op->getLoc(), Type(),
                             getBuffer(receive.getResult()),
                             receive.getAxisAttr(), receive.getPeerAttr(),
                             receive.getLaneAttr(), receive.getPlacesAttr());
  }
};
} // namespace

void rt::attachScheduledOps(MLIRContext &context) {
  LaunchOp::attachInterface<ScheduledLaunch>(context);
  GemmOp::attachInterface<ScheduledGemm>(context);
  CollectiveOp::attachInterface<ScheduledCollective>(context);
  SendOp::attachInterface<ScheduledSend>(context);
  ReceiveOp::attachInterface<ScheduledReceive>(context);
}
