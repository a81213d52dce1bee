//===- Labels.h - The words of recompute_modules ----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_REMAT_LABELS_H
#define REPRISE_REMAT_LABELS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace reprise::remat {
enum class LabelKind {
  /// Drops what is inside a region; its outputs stay.
  Plain,
  /// Drops the outputs of a region too.
  OutputDiscarding,
  /// A region that dense models do not have: frees nothing.
  Absent,
  /// Needs a part of the model that no model here has: refused.
  Refused,
  /// As `Refused`, and in no release of Megatron Core up to 0.19.
  Newer,
};

/// A label of Megatron Core's `recompute_modules`.
struct Label {
  llvm::StringLiteral name;
  LabelKind kind;
  /// The module of `nn.scope` that is the region; for those without a region,
  /// what the model lacks.
  llvm::StringLiteral what;
};

/// All labels, in the order in which they are listed to people.
llvm::ArrayRef<Label> getLabels();

/// The label called `name`, or null.
const Label *findLabel(llvm::StringRef name);

/// Why `name` cannot be asked for, as a sentence that names what can; empty if
/// it can. For a caller that knows where in a file the word stands.
std::string explainRefusedLabel(llvm::StringRef name);
} // namespace reprise::remat

#endif // REPRISE_REMAT_LABELS_H
