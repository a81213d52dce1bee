//===- ForeignKeys.h - Keys of Megatron and NeMo ----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_FRONTEND_FOREIGNKEYS_H
#define REPRISE_FRONTEND_FOREIGNKEYS_H

#include "python-free-frontend/Family.h"

namespace reprise::frontend {

/// What other values than the neutral ones come to.
enum class Others { Refused, NoEffect };

/// What stands behind the name of an option.
enum class Form {
  ByNeutral, ///< A switch if it may be switched off, otherwise something.
  Switch,
  Text,
  List, ///< Words with spaces between them.
};

struct ForeignKey {
  llvm::StringLiteral names; ///< `a|b`; one that ends in `*` is the beginning.
  llvm::StringLiteral neutral; ///< Values that, beside null, change nothing.
  llvm::StringLiteral reason;  ///< Why others are refused, or have no effect.
  /// The value that changes nothing in a family, instead of `neutral`.
  llvm::StringRef (*own)(const Family &family) = nullptr;
  Others others = Others::Refused;
  Form form = Form::ByNeutral;
  /// Values that say what `use_distributed_optimizer: true` says, and change
  /// nothing beside it.
  llvm::StringLiteral sharing = "";
};

/// The first row with a name counts.
llvm::ArrayRef<ForeignKey> allForeignKeys();

} // namespace reprise::frontend

#endif // REPRISE_FRONTEND_FOREIGNKEYS_H
