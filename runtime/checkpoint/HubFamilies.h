//===- HubFamilies.h - Keys of a config.json, by family ---------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_CHECKPOINT_HUBFAMILIES_H
#define REPRISE_RUNTIME_CHECKPOINT_HUBFAMILIES_H

#include "runtime/text/Json.h"

#include <cstddef>
#include <string_view>

namespace reprise::runtime {

/// A key that changes what a model computes from its weights.
struct HubKey {
  std::string_view name, alias = {};
  /// What a file without the key means. Null, and no `derived`: the tensors
  /// tell, and only a key that is given is compared.
  const char *fallback = nullptr;
  /// The same, if other keys make it; NaN if they do not say. `isNull`: the key
  /// is there, and null.
  double (*derived)(const JsonValue &config, bool isNull) = nullptr;
  /// Whether the key says anything beside the others; null: always.
  bool (*applies)(const JsonValue &config) = nullptr;
  /// What null means in its place, where that is not the fallback.
  const char *null = nullptr;
  /// A key of the program's: a number as large as that, in either
  /// configuration, is as good as none.
  std::string_view enough = {};
};

/// What a family is beside its keys, as bits.
enum HubFact : unsigned {
  kNormsAfter = 1,       ///< Norms stand behind blocks, not before.
  kNormsQueries = 2,     ///< Queries and keys are normed.
  kBiasOfQueries = 4,    ///< Projections to queries, keys and values have one.
  kNoBiasOfOutput = 8,   ///< `attention_bias` is not about the one behind.
  kAllBiases = 16,       ///< All projections have one.
  kScoresBySigmoid = 32, ///< Of experts.
};

/// A family of models, as transformers has it: every key that a class reads,
/// with the class's default, but for those of rotary positions.
struct HubFamily {
  std::string_view type;      ///< `model_type`
  std::string_view className; ///< what its classes' names begin with
  const HubKey *keys;
  size_t numKeys;
  /// The default of `rope_theta`; null: it has no rotary positions.
  const char *ropeTheta;
  unsigned facts;
  /// A key that others read, and the family's class does not.
  std::string_view ignored;

  template <size_t count>
  constexpr HubFamily(std::string_view type, std::string_view className,
                      const HubKey (&keys)[count], const char *ropeTheta,
                      unsigned facts = 0, std::string_view ignored = {})
      : type(type), className(className), keys(keys), numKeys(count),
        ropeTheta(ropeTheta), facts(facts), ignored(ignored) {}

  const HubKey *begin() const { return keys; }
  const HubKey *end() const { return keys + numKeys; }
  bool has(std::string_view key) const;
};

/// The family of that `model_type`; null if there is none.
const HubFamily *findHubFamily(std::string_view type);

/// The family that the class `name`, with a head or without, is of; null if
/// there is none.
const HubFamily *findHubFamilyOfClass(std::string_view name);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_CHECKPOINT_HUBFAMILIES_H
