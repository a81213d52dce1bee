//===- HubValues.h - What a configuration says ------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_CHECKPOINT_HUBVALUES_H
#define REPRISE_RUNTIME_CHECKPOINT_HUBVALUES_H

#include "runtime/text/Json.h"

namespace reprise::runtime {

/// What a key of a config.json says, or what its absence does: a number, a
/// word, or nothing.
class Meaning {
public:
  Meaning() = default;
  explicit Meaning(const JsonValue &value);
  explicit Meaning(std::string_view word) : kind(Kind::Word) { show(word); }
  /// A default, as it would stand in the file.
  explicit Meaning(const char *fallback);
  /// A default that other keys make.
  explicit Meaning(double derived);

  explicit operator bool() const { return kind != Kind::Nothing; }

  /// Numbers with a fraction as a program has them, in f32; words of the same
  /// activation are equal.
  bool operator==(const Meaning &other) const;

  bool isAtLeast(double least) const {
    return kind == Kind::Number && number >= least;
  }

  const char *text() const { return chars; }
  /// " (by default)" or nothing.
  const char *note() const { return isDefault ? " (by default)" : ""; }

private:
  enum class Kind { Nothing, Number, Word };

  void show(std::string_view text);
  void showItems(const JsonValue &list);

  Kind kind = Kind::Nothing;
  double number = 0;
  bool isDefault = false;
  char chars[84] = "";
};

/// Whether there is a value other than null.
inline bool isGiven(const JsonValue &value) {
  return value && !value.is(JsonKind::Null);
}

/// A key of how rotary positions are stretched.
struct RopeKey {
  const char *name;
  unsigned stretches; ///< Bits of those that have it.
  const char *fallback = nullptr;
  const char *null = nullptr; ///< What null means, if that is not the fallback.
  bool isOfLatent = false;    ///< Of latent attention alone.
  bool isUnsetByZero = false; ///< Whether 0 means the fallback.
};

/// The map of how rotary positions are stretched: rope_scaling, unless that is
/// missing, null or empty; else rope_parameters. Nothing is taken from the
/// other.
JsonValue findStretch(const JsonValue &config);

/// The rotary positions of a configuration, in one of two spellings: beside
/// each other as rope_theta and rope_scaling, or together as rope_parameters.
class Rope {
public:
  /// `theta` is the base of a file that says none.
  Rope(const JsonValue &config, const char *theta);

  /// The first key that means something else in `other`; null if none does,
  /// for ways to stretch that have the same name. `isLatent`: attention is.
  const RopeKey *findDifference(const Rope &other, bool isLatent) const;
  Meaning find(const RopeKey &key) const;

  Meaning theta;
  /// "default" also if the factor is 1.
  std::string_view type = "default";

private:
  double attentionFactor() const;

  JsonValue config, stretch;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_CHECKPOINT_HUBVALUES_H
