//===- ExpertRounds.h - Experts that have some rows at a time ---*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_INTERFACES_EXPERTROUNDS_H
#define REPRISE_INTERFACES_EXPERTROUNDS_H

#include "llvm/ADT/StringRef.h"

namespace reprise {

/// On a module, an i64: the rows that an expert has at a time, of those of all
/// ranks that have other experts.
inline constexpr llvm::StringLiteral kExpertRowsAttr = "nn.expert_rows";

/// The label of what is made in rounds and recomputed in backward under every
/// plan: kept, it would take the room of the most rows.
inline constexpr llvm::StringLiteral kRoundsLabel = "rounds";

} // namespace reprise

#endif // REPRISE_INTERFACES_EXPERTROUNDS_H
