//===- Partitionable.h - Ops that ranks can share ---------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_INTERFACES_PARTITIONABLE_H
#define REPRISE_INTERFACES_PARTITIONABLE_H

#include "mlir/IR/OpDefinition.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace reprise {
/// How ranks that share a model do an op, as far as it depends on the op.
enum class PartWay {
  Whole,     ///< each does all of it
  Pointwise, ///< in parts where an operand is in parts
  Rounding,  ///< one operand, as that is; also of a parameter
  Norm,      ///< in parts as operand 0; other operands are whole parameters
  Join,      ///< in parts as operand 0, and so are the others
  Range,     ///< of some positions of operand 0, of which it reads all
  Heads,     ///< in parts where its columns or heads are apart, else whole
  Linear,    ///< operand 1 is a weight, 2 a bias: cut by results or by terms
  Lookup,    ///< operand 1 is a table, whose rows are cut
  Positions, ///< operand 1 is a table of all positions, added to whole rows
  Tokens,    ///< of tokens, operand 0, or of rows sorted by expert: in parts as
             ///< these
  Count,     ///< of tokens or their rows: of parts it makes parts of a sum
  Sum,       ///< of rows or positions of operand 0, adds them or moves them: of
             ///< parts of a sum it makes parts, too
  Loss,      ///< of logits, operand 0, whose columns may be cut
};
} // namespace reprise

#include "reprise/Interfaces/Partitionable.h.inc"

namespace reprise {
/// The way of `op`: that of ops without the interface is `Whole`.
inline PartWay getPartWay(mlir::Operation *op) {
  auto own = llvm::dyn_cast_if_present<Partitionable>(op);
  return own ? own.getPartWay() : PartWay::Whole;
}
} // namespace reprise

#endif // REPRISE_INTERFACES_PARTITIONABLE_H
