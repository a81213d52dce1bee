//===- WarpGroup.cpp - MMAs of four warps together --------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WarpGroup.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::cuda;

// A description: from bit 0 on the address, from bit 32 on the distance of
// groups of eight rows, both in units of 16 bytes, and in bits 62 and 63 how
// vectors change places: 1 for 128 bytes. The distance of panels, from bit 16
// on, is of no account within one.
static constexpr int64_t kUnit = 16, kAddressBits = 14;
static constexpr int64_t kGroupDistance = kPanelAlignment / kUnit;
static constexpr uint64_t kDescription =
    uint64_t(1) << 62 | uint64_t(kGroupDistance) << 32 | uint64_t(1) << 16;

/// One instruction: `results` numbers come out, which if `updates` are the
/// first arguments, too; `arguments` has the kinds of the others, each with a
/// comma.
static Warp::Values instruct(Warp &code, const llvm::Twine &text,
                             size_t results = 0, bool updates = false,
                             const std::string &arguments = "",
                             ValueRange values = {}) {
  std::string constraints;
  for (size_t i = 0; i < results; ++i)
    constraints += updates && values[i].getType().isInteger() ? "=r," : "=f,";
  for (size_t i = 0; updates && i < results; ++i)
    constraints += std::to_string(i) + ",";
  // Nothing is read or written in memory on the other side of it.
  constraints += arguments + "~{memory}";
  Type type;
  if (results) {
    SmallVector<Type> types(results, code.getF32Type());
    if (updates)
      llvm::copy(values.take_front(results).getTypes(), types.begin());
    type = LLVM::LLVMStructType::getLiteral(code.getContext(), types);
  }
  auto op = LLVM::InlineAsmOp::create(
      code, type, values, text.str(), constraints, /*has_side_effects=*/true,
      /*is_align_stack=*/false, LLVM::TailCallKind::None,
      LLVM::AsmDialectAttr(), ArrayAttr());
  Warp::Values parts;
  for (size_t i = 0; i < results; ++i)
    parts.push_back(LLVM::ExtractValueOp::create(code, op.getRes(), i));
  return parts;
}

void cuda::showToMmas(Warp &code) {
  instruct(code, "fence.proxy.async.shared::cta;");
}

Value cuda::describeMatrix(Warp &code, Value offset) {
  Value address = LLVM::PtrToIntOp::create(code, code.getI64Type(),
                                           code.sharedAddress(offset));
  Value units = code.bits(code.div(address, kUnit), (1 << kAddressBits) - 1);
  return code.add(units, int64_t(kDescription));
}

Value cuda::advanceMatrix(Warp &code, Value matrix, int64_t bytes) {
  return code.add(matrix, bytes / kUnit);
}

Warp::Values cuda::fenceMmas(Warp &code, ValueRange values) {
  return instruct(code, "wgmma.fence.sync.aligned;", values.size(),
                  /*updates=*/true, "", values);
}

Warp::Values cuda::beginMma(Warp &code, ValueRange sums, ValueRange a, Value b,
                            int64_t columns, bool byTerms) {
  size_t results = columns / 2, next = 0;
  std::string text;
  llvm::raw_string_ostream os(text);
  auto operands = [&](size_t count) {
    os << "{";
    for (size_t i = 0; i < count; ++i)
      os << (i ? ", $" : "$") << next++;
    os << "}, ";
  };
  os << "wgmma.mma_async.sync.aligned.m64n" << columns << "k16.f32.bf16.bf16 ";
  operands(results);
  next += sums.size();
  std::string arguments;
  bool isInRegisters = a.size() > 1;
  if (isInRegisters) {
    operands(a.size());
    for (size_t i = 0; i < a.size(); ++i)
      arguments += "r,";
  } else {
    os << "$" << next++ << ", ";
    arguments += "l,";
  }
  arguments += "l,";
  // Whether there are sums, the signs of both factors, and which of those in
  // shared memory lie the other way round.
  os << "$" << next++ << ", " << int(!sums.empty()) << ", 1, 1"
     << (isInRegisters ? "" : ", 0") << ", " << int(byTerms) << ";";
  Warp::Values values(sums);
  llvm::append_range(values, a);
  values.push_back(b);
  return instruct(code, text, results, !sums.empty(), arguments, values);
}

void cuda::commitMmas(Warp &code) {
  instruct(code, "wgmma.commit_group.sync.aligned;");
}

Warp::Values cuda::waitForMmas(Warp &code, ValueRange values, int64_t groups) {
  return instruct(code, "wgmma.wait_group.sync.aligned " + Twine(groups) + ";",
                  values.size(), /*updates=*/true, "", values);
}
