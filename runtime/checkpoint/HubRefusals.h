//===- HubRefusals.h - Keys that no model here has --------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_CHECKPOINT_HUBREFUSALS_H
#define REPRISE_RUNTIME_CHECKPOINT_HUBREFUSALS_H

#include "HubFamilies.h"

namespace reprise::runtime {

/// The model of a program and a file that weights of it may lie beside.
struct HubModel {
  const HubFamily &family;
  const JsonValue &ours, &theirs;
};

/// Whether a key, which the family has not, changes what models compute from
/// their weights (RefusedKeys.def).
bool changesModel(std::string_view key, const JsonValue &value,
                  const HubModel &model);

/// The key of the family that `key`, which it has not, may mean by another
/// spelling; null if there is none, the file has it as well, or `key` is one of
/// other families (RefusedKeys.def).
const HubKey *findMeantKey(std::string_view key, const HubModel &model);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_CHECKPOINT_HUBREFUSALS_H
