//===- PipeOps.h - The pipe dialect -----------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_PIPE_PIPEOPS_H
#define REPRISE_DIALECT_PIPE_PIPEOPS_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"

#include "reprise/Dialect/Pipe/PipeDialect.h.inc"
#include "reprise/Dialect/Pipe/PipeEnums.h.inc"

#define GET_OP_CLASSES
#include "reprise/Dialect/Pipe/PipeOps.h.inc"

#endif // REPRISE_DIALECT_PIPE_PIPEOPS_H
