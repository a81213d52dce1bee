//===- ScheduleBuilder.cpp - What builds a schedule, op by op ---*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScheduleBuilder.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/RT/LaunchName.h"
#include "reprise/Dialect/Remat/RematOps.h"
#include "reprise/Interfaces/Facts.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::kernels;
using namespace reprise::nn;

int64_t ScheduleBuilder::getAxisSize(StringAttr axis) const {
  return nn::getAxisSize(function->getParentOfType<ModuleOp>(), axis);
}

std::string ScheduleBuilder::getLaunchName(Operation *op) const {
  if (op->hasTrait<OneOfMany>())
    return cast<InPlaceUpdate>(op).getJointName().str();
  if (auto sum = dyn_cast<RunningSum>(op);
      sum && isa_and_present<rt::GemmOp>(sum.getTerm().getDefiningOp()))
    return "bias_gradients";
  std::string name = getScopeName(getScope(op));
  StringRef mnemonic = op->getName().stripDialect();
  if (name.empty())
    name = mnemonic.str();
  if (op->hasAttr(remat::kReplayAttr))
    return rt::nameReplay(name);
  if (phase != StepPhase::Backward)
    return name;
  if (isa<BiasGradient>(op))
    return rt::nameGradient(name, rt::kBiasGradient);
  size_t suffix = mnemonic.find("backward");
  return rt::nameGradient(name, suffix == StringRef::npos
                                    ? StringRef(rt::kGradient)
                                    : mnemonic.substr(suffix));
}

void ScheduleBuilder::annotate(Operation *formed, Operation *origin,
                               ArrayRef<Operation *> ops) {
  formed->setAttr(rt::kNameAttr, builder.getStringAttr(getLaunchName(origin)));
  if (Attribute replay = origin->getAttr(remat::kReplayAttr))
    formed->setAttr(remat::kReplayAttr, replay);
  remat::keepIds(ops, formed);
}

rt::LaunchOp ScheduleBuilder::formLaunch(func::FuncOp kernel, ValueRange inputs,
                                         int64_t flops, Operation *origin) {
  auto launch = rt::LaunchOp::create(
      builder, origin->getLoc(), kernel.getResultTypes(), kernel.getSymName(),
      inputs, ValueRange(), DenseI64ArrayAttr(), flops);
  annotate(launch, origin, origin);
  return launch;
}
