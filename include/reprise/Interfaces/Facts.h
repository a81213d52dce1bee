//===- Facts.h - What ops say about themselves ------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_INTERFACES_FACTS_H
#define REPRISE_INTERFACES_FACTS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"
#include "reprise/Interfaces/LayerShape.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <utility>

#include "reprise/Interfaces/Facts.h.inc"

#endif // REPRISE_INTERFACES_FACTS_H
