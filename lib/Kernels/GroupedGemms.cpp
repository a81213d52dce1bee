//===- GroupedGemms.cpp - GEMMs of groups that are kernels ----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A library takes the sizes of groups from the host, where nobody has them
// before the step is over. So beside a library such a GEMM is a kernel,
// whose body is the rt.gemm.
//
//===----------------------------------------------------------------------===//

#include "GroupedGemms.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::kernels;

/// "grouped_product_32x96x24_of_4_transpose_b_gather_a_2_bf16": all that a
/// kernel depends on beside its type. Tables of measured costs name kernels, so
/// these stay called products.
static std::string nameKernel(rt::GemmOp gemm) {
  SmallVector<std::string> words = {
      "grouped_product",
      llvm::join(llvm::map_range(
                     ArrayRef<uint64_t>{gemm.getM(), gemm.getN(), gemm.getK()},
                     [](uint64_t size) { return std::to_string(size); }),
                 "x"),
      "of", std::to_string(gemm.getGroupCount())};
  if (gemm.getTransposeA())
    words.push_back("transpose_a");
  if (gemm.getTransposeB())
    words.push_back("transpose_b");
  if (gemm.getGather())
    words.append({"gather", rt::stringifyGather(*gemm.getGather()).str(),
                  std::to_string(*gemm.getSlots())});
  if (gemm.getAddend())
    words.push_back("add");
  if (cast<ShapedType>(gemm.getA().getType()).getElementType().isBF16())
    words.push_back("bf16");
  return llvm::join(words, "_");
}

Value kernels::formGroupedGemm(ScheduleBuilder &schedule, rt::GemmOp gemm,
                               Operation *origin) {
  OpBuilder &builder = schedule.getBuilder();
  OperandRange operands = gemm->getOperands();
  auto type =
      builder.getFunctionType(operands.getTypes(), gemm.getResult().getType());
  func::FuncOp kernel = schedule.getKernels().getKernel(
      nameKernel(gemm), type, [&](OpBuilder &body, ValueRange arguments) {
        Operation *clone = body.clone(*gemm.getOperation());
        clone->setDiscardableAttrs(ArrayRef<NamedAttribute>());
        clone->setOperands(arguments);
        return clone->getResult(0);
      });
  for (auto [index, operand] : llvm::enumerate(operands))
    if (operand == gemm.getAddend())
      kernel.setArgAttr(index, rt::kInPlaceAttr, builder.getI64IntegerAttr(0));
  rt::LaunchOp launch =
      schedule.formLaunch(kernel, operands, gemm.getFlops(), origin);
  gemm.erase();
  return launch.getResult(0);
}
