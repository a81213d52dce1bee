//===- DeviceCode.h - Writing what the threads of a GPU do ------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread works on `lanes` elements side by side, one access of 16 bytes where
// types allow. Threads of a block share memory through one array without a size
// of its own, `@reprise_shared`: the launch says how many bytes there are.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_CODEGEN_CUDA_DEVICECODE_H
#define REPRISE_LIB_CODEGEN_CUDA_DEVICECODE_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "reprise/Codegen/Common/Code.h"
#include "reprise/Dialect/RT/RTOps.h"

namespace reprise::cuda {

constexpr int64_t kWarp = 32;
constexpr int64_t kMaxThreads = 1024; ///< of a block

/// A builder with what a thread of a GPU can do.
class DeviceCode : public codegen::Code {
public:
  using Code::Code;

  // Where we are, i64.
  mlir::Value thread() { return id<mlir::gpu::ThreadIdOp>(); } ///< of the block
  mlir::Value block() { return id<mlir::gpu::BlockIdOp>(); } ///< of the launch

  // Integers that are not negative.
  mlir::Value divide(mlir::Value a, int64_t b);
  mlir::Value remainder(mlir::Value a, int64_t b);
  mlir::Value less(mlir::Value a, mlir::Value b);
  mlir::Value less(mlir::Value a, int64_t b) { return less(a, i64(b)); }
  mlir::Value equal(mlir::Value a, mlir::Value b);
  mlir::Value equal(mlir::Value a, int64_t b) { return equal(a, i64(b)); }
  mlir::Value both(mlir::Value a, mlir::Value b);
  using Code::min;
  mlir::Value min(mlir::Value a, int64_t b) { return min(a, i64(b)); }

  /// What this thread has written is visible on the device before what it
  /// writes from here on.
  void fence();
  /// Waits for all threads of the block; what they wrote is visible.
  void barrier();
  /// What the thread has whose number in the warp differs from this one's in
  /// the bit `distance`. Scalars of 32 bits.
  mlir::Value shuffle(mlir::Value value, int64_t distance);
  /// Combines the values of `width` neighbours, a power of 2 of at most a
  /// warp's threads, that are `step` apart: at half the distance each time, the
  /// same bits in all of them.
  mlir::Value
  combineInWarp(mlir::Value value, int64_t width, int64_t step,
                llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> op);

private:
  template <typename Op>
  mlir::Value id() {
    return cast(Op::create(*this, mlir::gpu::Dimension::x), getI64Type());
  }
};

/// Bytes of a vector in shared memory, and what the whole of it is aligned to:
/// MMAs of four warps read panels whose vectors change places by the bits
/// of their addresses (WarpGroup.h), so these begin where that begins anew.
constexpr int64_t kSharedVector = 16, kSharedAlignment = 1024;

/// A kernel while it is emitted: the new function, open at its entry.
struct DeviceKernel : codegen::Buffers {
  mlir::gpu::GPUFuncOp function;
  mlir::Value arguments; ///< address of the struct: addresses, then ids
  int64_t sharedBytes = 0;

  /// Sets how many blocks of how many threads a launch has.
  void setLaunch(DeviceCode &code, int64_t blocks, int64_t threads);
  /// Takes `bytes` of the block's shared memory, from a multiple of `alignment`
  /// on, a power of 2 that kSharedAlignment is a multiple of.
  mlir::Value takeShared(DeviceCode &code, int64_t bytes,
                         int64_t alignment = kSharedVector);
  /// At least `bytes` of device memory for partial results, the same for all
  /// kernels, which therefore run one after another.
  mlir::Value takeScratch(DeviceCode &code, int64_t bytes);
  /// At least `count` counters of i32 in device memory, zero before and after a
  /// kernel.
  mlir::Value takeCounters(DeviceCode &code, int64_t count);
  /// The address of buffer `number`, an i64 value.
  mlir::Value bufferAt(DeviceCode &code, mlir::Value number);
  /// The address of operand `index` of `op`, which is an input of the kernel.
  mlir::Value addressOf(mlir::Operation *op, unsigned index) const;
  /// A constant array of i64 beside the kernel, and its address.
  mlir::Value constantTable(DeviceCode &code, llvm::StringRef suffix,
                            llvm::ArrayRef<int64_t> values);
};

/// Address spaces of NVVM.
enum AddressSpace : unsigned { kGlobal = 1, kShared = 3, kConstant = 4 };
mlir::Type pointerTo(mlir::MLIRContext *context, AddressSpace space);

/// Where a block belongs when the blocks of several arrays are counted through.
struct BlockTable {
  /// \param counts  the blocks of each array, at least one.
  BlockTable(DeviceCode &code, DeviceKernel &kernel,
             llvm::ArrayRef<int64_t> counts);

  /// The array of `block`, and the number of the block within it.
  std::pair<mlir::Value, mlir::Value> find(DeviceCode &code,
                                           mlir::Value block) const;

  int64_t numBlocks = 0;

private:
  int64_t padded; ///< A power of 2, above the number of arrays.
  mlir::Value begins;
};

} // namespace reprise::cuda

#endif // REPRISE_LIB_CODEGEN_CUDA_DEVICECODE_H
