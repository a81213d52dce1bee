//===- ScheduledOp.td - What a schedule runs ---------------*- tablegen -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_RT_SCHEDULEDOP
#define REPRISE_DIALECT_RT_SCHEDULEDOP

include "mlir/IR/OpBase.td"

def RT_ScheduledOp : OpInterface<"ScheduledOp"> {
  let cppNamespace = "::reprise::rt";
  let description = [{
    An op that takes time on the machine. The memory planner, what-if compiles, certificates and
    reports ask it for the bytes that it touches and for its work, and know no op by name.

    An op is on tensors before memory is planned, and on buffers after. Reads and writes have the
    same numbers in both forms.
  }];
  let methods = [
    InterfaceMethod<[{
      The values that the op reads, in order. On buffers a value that the op adds to is none of
      them: see `addsTo`.
    }], "::llvm::SmallVector<::mlir::Value>", "getReads">,
    InterfaceMethod<[{
      The results, or the buffers that the op writes, in order. Its workspace is none of them.
    }], "::llvm::SmallVector<::mlir::Value>", "getWrites">,
    InterfaceMethod<[{
      Whether the op, on buffers, adds to the value that it finds in write `number`.
    }], "bool", "addsTo", (ins "unsigned":$number), [{}], [{ return false; }]>,
    InterfaceMethod<[{
      The pairs of a read and a write of one type that share bytes, by force or by permission, of an
      op on tensors. A number of a write may be one that the op does not have: it comes from
      attributes of a kernel. Fails without a diagnostic if the kernel, one of `symbols`, cannot be
      asked.
    }], "::mlir::FailureOr<::llvm::SmallVector<::reprise::rt::Sharing>>", "getSharing",
      (ins "const ::mlir::SymbolTable &":$symbols)>,
    InterfaceMethod<[{
      Bytes that the op needs for itself while it runs; 0 for none.
    }], "int64_t", "getWorkspaceBytes", (ins), [{}], [{ return 0; }]>,
    InterfaceMethod<[{
      The buffer of the workspace of an op on buffers, or null.
    }], "::mlir::Value", "getWorkspaceBuffer", (ins), [{}], [{ return {}; }]>,
    InterfaceMethod<[{
      What the op computes, reads and writes: what it adds to is both, its workspace neither, since
      that stays in caches. Its kernel, if it is one of `symbols`, has ops of nn or rt.
    }], "::reprise::Workload", "getWorkload", (ins "::mlir::SymbolTable &":$symbols)>,
    InterfaceMethod<[{
      The ops that run as this one, with its writes as what the last of them returns; null for an op
      that no other ops stand for.
    }], "::mlir::Block *", "getFusedOps", (ins "const ::mlir::SymbolTable &":$symbols), [{}],
      [{ return nullptr; }]>,
    InterfaceMethod<[{
      Creates this op, which is on tensors, on buffers: `getBuffer` maps each read and write to
      its own, and `workspace` is null for an op that needs none.
    }], "::mlir::Operation *", "createOnBuffers",
      (ins "::mlir::OpBuilder &":$builder,
           "::llvm::function_ref<::mlir::Value(::mlir::Value)>":$getBuffer,
           "::mlir::Value":$workspace)>,
  ];
}

#endif // REPRISE_DIALECT_RT_SCHEDULEDOP
