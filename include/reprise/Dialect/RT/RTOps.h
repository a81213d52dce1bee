//===- RTOps.h - The rt dialect ---------------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_RT_RTOPS_H
#define REPRISE_DIALECT_RT_RTOPS_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "reprise/Dialect/RT/RTDialect.h.inc"

#include "reprise/Dialect/RT/RTEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "reprise/Dialect/RT/RTAttributes.h.inc"

#define GET_OP_CLASSES
#include "reprise/Dialect/RT/RTOps.h.inc"

namespace reprise::rt {
/// On a function: it is a kernel.
inline constexpr llvm::StringLiteral kKernelAttr = "rt.kernel";
/// On an argument of a kernel: it shares its buffer with the result of that
/// number.
inline constexpr llvm::StringLiteral kInPlaceAttr = "rt.in_place";
/// On an argument of a kernel: it may share its buffer with that result, if
/// dead.
inline constexpr llvm::StringLiteral kMayAliasAttr = "rt.may_alias";
/// On a launch or GEMM: what a profile calls it.
inline constexpr llvm::StringLiteral kNameAttr = "rt.name";
/// And on a launch of several ops: what each output would be called by if the
/// op that makes it were alone.
inline constexpr llvm::StringLiteral kMadeByAttr = "rt.made_by";
/// On an op of nn in a kernel: which id of the launch is the rank's number
/// along the axis that the op depends on.
inline constexpr llvm::StringLiteral kCoordinateAttr = "rt.coordinate";
/// On a planned buffer: the state, the rotary table, or the input or output of
/// the step it is.
inline constexpr llvm::StringLiteral kStateAttr = "rt.state";
inline constexpr llvm::StringLiteral kRotaryAttr = "rt.rotary";
inline constexpr llvm::StringLiteral kRoleAttr = "rt.role";
/// And of which micro-batch an input is, of a step of many.
inline constexpr llvm::StringLiteral kMicroBatchAttr = "rt.micro_batch";
/// And the number of a parameter among all of a model that stages share.
inline constexpr llvm::StringLiteral kOrderAttr = "rt.order";
/// On the module: the sizes of its arenas, a PlanAttr.
inline constexpr llvm::StringLiteral kPlanAttr = "rt.plan";
/// On a module: offsets of buffers are multiples of so many bytes.
inline constexpr llvm::StringLiteral kAlignmentAttr = "rt.alignment";
/// And of a module without: a cache line.
inline constexpr int64_t kDefaultAlignment = 64;
/// On a module: the bytes of workspace that every GEMM has.
inline constexpr llvm::StringLiteral kGemmWorkspaceAttr = "rt.gemm_workspace";
/// On a module with that: gradients of biases are kernels all the same.
inline constexpr llvm::StringLiteral kBiasKernelsAttr = "rt.bias_kernels";
/// On a module: inputs of as many micro-batches of a step have places in the
/// arena as together have at most so many launches, and so do those after them.
inline constexpr llvm::StringLiteral kMostLaunchesAttr = "rt.most_launches";
/// On a module: activations are packed by themselves, so that they end where
/// their share of `rt.plan` does, and gradients that a step writes among them
/// and behind. A budget of activations asks for it.
inline constexpr llvm::StringLiteral kActivationsFirstAttr =
    "rt.activations_first";
/// On an emitted kernel: the number of independent tasks of a launch.
inline constexpr llvm::StringLiteral kTasksAttr = "rt.tasks";
/// And where there is one, the function that does the same with 32 registers of
/// 16 lanes.
inline constexpr llvm::StringLiteral kAVX512Attr = "rt.avx512";
/// The one that multiplies pairs of bf16, to bits of its own.
inline constexpr llvm::StringLiteral kAVX512BF16Attr = "rt.avx512_bf16";
/// And the one for tile registers, to bits of its own.
inline constexpr llvm::StringLiteral kAmxAttr = "rt.amx";
/// On a kernel for a GPU: blocks of a launch and threads of a block, three
/// numbers each; bytes of dynamic shared memory of a block; and the bytes that
/// a launch must at least read and write.
inline constexpr llvm::StringLiteral kGridAttr = "rt.grid";
inline constexpr llvm::StringLiteral kBlockAttr = "rt.block";
inline constexpr llvm::StringLiteral kSharedAttr = "rt.shared";
inline constexpr llvm::StringLiteral kBytesAttr = "rt.bytes";
/// On a kernel that one chip has instead of another one, launched alike: the
/// names of that kernel and of the chip.
inline constexpr llvm::StringLiteral kInsteadAttr = "rt.instead";
inline constexpr llvm::StringLiteral kChipAttr = "rt.chip";

/// The space of a value of type `type`: its encoding, or the device.
Space getSpace(mlir::Type type);

/// What people call a category: "optimizer state".
std::string getDisplayName(Category category);

/// Whether `op` is run where it stands in a schedule: a launch, a GEMM or a
/// collective.
bool isScheduled(mlir::Operation *op);

/// The shape of a matrix that is the `packed_b` of a GEMM, or nothing if one
/// of these sizes cannot be.
std::optional<llvm::SmallVector<int64_t, 4>> getPackedShape(int64_t rows,
                                                            int64_t cols);
} // namespace reprise::rt

#endif // REPRISE_DIALECT_RT_RTOPS_H
