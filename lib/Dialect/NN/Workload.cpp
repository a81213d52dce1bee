//===- Workload.cpp - The work of an op of a model ------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Dialect/NN/Workload.h"
#include "mlir/IR/BuiltinOps.h"
#include "reprise/Dialect/NN/NNExpertRankOps.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Interfaces/CostModel.h"

using namespace mlir;
using namespace reprise;

static int64_t getBytes(TypeRange types) {
  int64_t bytes = 0;
  for (Type type : types)
    bytes += getTypeBytes(type);
  return bytes;
}

/// What the ranks along the op's axis exchange: of values and parts of them,
/// the whole; of rows those of the rank's tokens, as many as others send where
/// experts are used evenly.
static void setExchange(Workload &load, Operation *op) {
  auto axis = op->getAttrOfType<StringAttr>("axis");
  auto members = op->getAttrOfType<DenseI64ArrayAttr>("members");
  int64_t ranks = members
                      ? members.size()
                      : nn::getAxisSize(op->getParentOfType<ModuleOp>(), axis);
  StringRef exchange = op->getName().stripDialect();
  if (isa<nn::SendRowsOp, nn::ReturnRowsOp>(op))
    return setExchange(load, exchange, axis, ranks,
                       std::min(getBytes(op->getOperand(0).getType()),
                                getBytes(op->getResultTypes())),
                       /*hasWholeSums=*/false);
  bool hasWholeSums = isa<nn::AllReduceOp, nn::SharesNormOp>(op);
  int64_t bytes =
      std::max(getBytes(op->getOperandTypes()), getBytes(op->getResultTypes()));
  if (hasWholeSums) // A norm has one number. Sums may have several terms.
    bytes = isa<nn::SharesNormOp>(op) ? getBytes(op->getResultTypes())
                                      : (getBytes(op->getOperandTypes()) +
                                         getBytes(op->getResultTypes())) /
                                            2;
  // A norm of shares is a sum of their norms.
  setExchange(load, isa<nn::SharesNormOp>(op) ? "all_reduce" : exchange, axis,
              ranks, bytes, hasWholeSums);
}

Workload nn::getWorkload(Operation *op) {
  Workload load;
  auto cost = dyn_cast<CostModel>(op);
  if (!cost)
    return load;
  load.flops = cost.getFlops();
  load.bytes = cost.getBytes();
  load.key = op->getName().stripDialect().str();
  if (cost.isGemm())
    load.work = Work::Gemm;
  else if (isa<AttentionOp, AttentionBackwardOp>(op))
    load.work = Work::Attention;
  auto type = op->getNumOperands() > 0
                  ? dyn_cast<ShapedType>(op->getOperand(0).getType())
                  : ShapedType();
  load.isBF16 = type && type.getElementType().isBF16();
  // Beside the GEMMs of a head, its two numbers for each row are nothing.
  if (isCollective(op) && load.work != Work::Gemm)
    ::setExchange(load, op);
  return load;
}

void nn::setMesh(CostTable &costs, Operation *module, int64_t stages) {
  costs.axesAcross.clear();
  auto mesh = module->getAttrOfType<MeshAttr>(kMeshAttr);
  int64_t ranks = mesh ? mesh.getNumRanks() : 1;
  if (mesh)
    for (StringAttr name : mesh.getNames())
      costs.addAxis(name, mesh.getSize(name), mesh.getStride(name),
                    ranks * stages);
  if (stages > 1)
    costs.addAxis(kPipeAxis, stages, ranks, ranks * stages);
}
