//===- RematDialect.cpp - Registration of the remat dialect -----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "reprise/Dialect/Remat/RematOps.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::remat;

#include "reprise/Dialect/Remat/RematDialect.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "reprise/Dialect/Remat/RematAttributes.cpp.inc"
#define GET_OP_CLASSES
#include "reprise/Dialect/Remat/RematOps.cpp.inc"

void RematDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "reprise/Dialect/Remat/RematAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "reprise/Dialect/Remat/RematOps.cpp.inc"
      >();
}

/// A segment counts from 0, and the results dropped are some of the op's.
static LogicalResult verifyRecompute(Operation *op, RecomputeAttr decision) {
  if (decision.getSegment() < 0)
    return op->emitOpError("needs a segment of at least 0 to recompute in, "
                           "but got ")
           << decision.getSegment();
  if (!decision.getResults())
    return success();
  int64_t previous = -1;
  for (int64_t result : decision.getResults().asArrayRef()) {
    if (result <= previous || result >= int64_t(op->getNumResults()))
      return op->emitOpError("needs rising numbers of its ")
             << op->getNumResults() << " results to recompute, but got "
             << result << (previous < 0 ? " first" : " after ")
             << (previous < 0 ? "" : std::to_string(previous));
    previous = result;
  }
  return success();
}

/// A segment counts from 0, and there is one value to cut.
static LogicalResult verifyShare(Operation *op, ShareAttr decision) {
  if (decision.getSegment() < 0)
    return op->emitOpError("needs a segment of at least 0 to gather in, "
                           "but got ")
           << decision.getSegment();
  if (op->getNumResults() != 1)
    return op->emitOpError("needs one result to share, but has ")
           << op->getNumResults();
  return success();
}

/// Every stage has as many chunks as the others; there may be chunks without
/// layers.
static LogicalResult verifyChunks(Operation *op, ChunksAttr chunks) {
  int64_t stages = chunks.getStages(), count = chunks.getLayers().size();
  if (stages < 1)
    return op->emitOpError("needs at least 1 pipeline stage, but got ")
           << stages;
  if (count == 0 || count % stages != 0)
    return op->emitOpError("needs as many chunks on each of ")
           << stages << " pipeline stages, but got " << count << " in all";
  for (int64_t layers : chunks.getLayers().asArrayRef())
    if (layers < 0)
      return op->emitOpError("needs chunks of at least 0 layers, but got ")
             << layers;
  return success();
}

/// What the granularity has no use for is not given.
LogicalResult
RequestAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                    StringRef granularity, StringRef method, int64_t layers,
                    ArrayAttr modules, StringRef file, ChunksAttr, bool, bool,
                    bool) {
  if (!llvm::is_contained({"none", "selective", "full", "plan"}, granularity))
    return emitError() << "needs the granularity \"none\", \"selective\", "
                          "\"full\" or \"plan\", but got \""
                       << granularity << "\"";
  if ((granularity == "full") !=
      llvm::is_contained({"uniform", "block"}, method))
    return emitError() << "needs the method \"uniform\" or \"block\" with the "
                          "granularity \"full\" alone, but got \""
                       << method << "\" with \"" << granularity << "\"";
  if (layers < 0 || (layers && granularity != "full"))
    return emitError() << "needs at least 0 layers, with the granularity "
                          "\"full\" alone, but got "
                       << layers << " with \"" << granularity << "\"";
  if (modules && (granularity != "selective" ||
                  !llvm::all_of(modules, llvm::IsaPred<StringAttr>)))
    return emitError() << "needs strings as modules, with the granularity "
                          "\"selective\" alone, but got "
                       << modules << " with \"" << granularity << "\"";
  if ((granularity == "plan") == file.empty())
    return emitError() << "needs a file with the granularity \"plan\" alone, "
                          "but got \""
                       << file << "\" with \"" << granularity << "\"";
  return success();
}

void remat::keepId(Operation *from, Operation *to) {
  if (Attribute id = from->getAttr(kIdAttr))
    to->setAttr(kIdAttr, id);
}

void remat::keepIds(ArrayRef<Operation *> ops, Operation *to) {
  llvm::SmallSetVector<int64_t, 4> ids;
  for (Operation *op : ops)
    if (auto id = op->getAttrOfType<IntegerAttr>(kIdAttr))
      ids.insert(id.getInt());
  if (!ids.empty())
    to->setAttr(kIdsAttr,
                DenseI64ArrayAttr::get(to->getContext(), ids.getArrayRef()));
}

ArrayRef<int64_t> remat::getIds(Operation *op) {
  auto ids = op->getAttrOfType<DenseI64ArrayAttr>(kIdsAttr);
  return ids ? ids.asArrayRef() : ArrayRef<int64_t>();
}

/// Numbers of ops are at least 0, and there is one.
static LogicalResult verifyIds(Operation *op, Attribute value) {
  auto ids = dyn_cast<DenseI64ArrayAttr>(value);
  if (ids && !ids.empty() &&
      llvm::all_of(ids.asArrayRef(), [](int64_t id) { return id >= 0; }))
    return success();
  return op->emitOpError("needs numbers of ops, i64 of at least 0, for '")
         << kIdsAttr << "', but got " << value;
}

/// An i64 of at least 0, which is the number of `what`.
static LogicalResult verifyNumber(Operation *op, NamedAttribute attribute,
                                  StringRef what) {
  auto number = dyn_cast<IntegerAttr>(attribute.getValue());
  if (number && number.getType().isInteger(64) && number.getInt() >= 0)
    return success();
  return op->emitOpError("needs the number of ")
         << what << ", an i64 of at least 0, for '"
         << attribute.getName().strref() << "', but got "
         << attribute.getValue();
}

/// A mark has no value; `remat.free` is one of replays.
static LogicalResult verifyMark(Operation *op, StringRef name,
                                Attribute value) {
  bool isOfReplay = name == kFreeAttr;
  if (isa<UnitAttr>(value) && (!isOfReplay || op->hasAttr(kReplayAttr)))
    return success();
  return op->emitOpError("needs a unit ")
         << (isOfReplay ? "beside 'remat.replay' " : "") << "for '" << name
         << "', but got " << value;
}

LogicalResult RematDialect::verifyOperationAttribute(Operation *op,
                                                     NamedAttribute attribute) {
  StringRef name = attribute.getName();
  Attribute value = attribute.getValue();
  if (name == kDecisionAttr) {
    if (isa<SaveAttr>(value))
      return success();
    if (auto recompute = dyn_cast<RecomputeAttr>(value))
      return verifyRecompute(op, recompute);
    if (auto share = dyn_cast<ShareAttr>(value))
      return verifyShare(op, share);
    return op->emitOpError("needs #remat.save, #remat.recompute or "
                           "#remat.share for 'remat.decision', but got ")
           << value;
  }
  if (name == kReplayAttr)
    return verifyNumber(op, attribute, "a segment");
  if (name == kIdAttr)
    return verifyNumber(op, attribute, "an op");
  if (name == kIdsAttr)
    return verifyIds(op, value);
  if (name == kFreeAttr || name == kShareAttr)
    return verifyMark(op, name, value);
  if (name == kChunksAttr) {
    if (auto chunks = dyn_cast<ChunksAttr>(value))
      return verifyChunks(op, chunks);
    return op->emitOpError("needs #remat.chunks for 'remat.chunks', but got ")
           << value;
  }
  if (name == kRequestAttr) {
    if (auto request = dyn_cast<RequestAttr>(value);
        request && isa<ModuleOp>(op))
      return request.getChunks() ? verifyChunks(op, request.getChunks())
                                 : success();
    return op->emitOpError("needs #remat.request on a module for "
                           "'remat.request', but got ")
           << value;
  }
  return op->emitOpError("has no use for the attribute '")
         << name << "' with value " << value;
}

LogicalResult RematDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                     unsigned argument,
                                                     NamedAttribute attribute) {
  auto share = dyn_cast<ShareAttr>(attribute.getValue());
  if (attribute.getName() == kDecisionAttr && share && share.getSegment() >= 0)
    return success();
  return op->emitOpError("needs #remat.share with a segment of at least 0 as "
                         "'remat.decision' for what remat says of argument ")
         << argument << ", but got '" << attribute.getName().strref()
         << "' with value " << attribute.getValue();
}
