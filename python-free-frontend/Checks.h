//===- Checks.h - What concerns more than one key ---------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_PYTHON_FREE_FRONTEND_CHECKS_H
#define REPRISE_PYTHON_FREE_FRONTEND_CHECKS_H

#include "python-free-frontend/Frontend.h"
#include "python-free-frontend/Keys.h"
#include "llvm/ADT/STLExtras.h"

namespace reprise::frontend {

/// A description whose keys are right, each by itself, and how what is wrong
/// with several is said.
class Checker {
public:
  Checker(Description &description, const Origins &origins,
          Diagnostics &diagnostics)
      : description(description), family(description.family),
        model(description.model), train(description.train),
        recompute(description.recompute), parallel(description.parallel),
        origins(origins), diagnostics(diagnostics) {}

protected:
  bool isGiven(llvm::StringRef key) const { return origins.count(key); }
  void error(llvm::StringRef key, const llvm::Twine &message) {
    diagnostics.error(getKey(key), origins.lookup(key), message);
  }
  void warning(llvm::StringRef key, const llvm::Twine &message) {
    diagnostics.warning(getKey(key), origins.lookup(key), message);
  }
  /// By the name that origins know.
  const Key &getKey(llvm::StringRef name) const {
    return *llvm::find_if(allKeys(), [&](const Key &key) {
      return key.name == name && key.isOf(family);
    });
  }
  bool hasKey(llvm::StringRef name) const {
    return llvm::any_of(allKeys(), [&](const Key &key) {
      return key.name == name && key.isOf(family);
    });
  }
  /// The first of the keys that was given; or else, for defaults that do not
  /// fit what else was given, the first that the family has.
  llvm::StringRef firstGiven(llvm::ArrayRef<llvm::StringRef> keys) const {
    for (llvm::StringRef key : keys)
      if (isGiven(key))
        return key;
    return *llvm::find_if(keys,
                          [&](llvm::StringRef key) { return hasKey(key); });
  }
  /// "; lr has its default", for those of the keys in a message that nobody
  /// gave; empty if there are none.
  std::string nameDefaults(llvm::ArrayRef<llvm::StringRef> keys) const {
    std::string text;
    for (llvm::StringRef key : keys)
      if (!isGiven(key))
        text += ("; " + key + " has its default").str();
    return text;
  }
  /// What the family calls the key for a member of Model; empty if it has none.
  template <auto member>
  llvm::StringRef nameOf() const {
    const Key *key = findKeyOf(family, modelField<member>);
    return key ? key->name : "";
  }

  const Description &description;
  const Family *family;
  const Model &model;
  const Train &train;
  Recompute &recompute;
  Parallel &parallel;
  const Origins &origins;
  Diagnostics &diagnostics;
};

/// Experts, how they are chosen, and what balances them.
void checkExperts(const Checker &checker);

/// What is recomputed. Resolves what is left in `recompute`.
void checkRecompute(const Checker &checker);
/// After `checkRanks`, which says what the chunks are.
void checkNumLayers(const Checker &checker);

/// Whether each rank has whole branches of the tree of sums.
void checkReductionGroups(const Checker &checker);
/// Stages, parts and experts of ranks.
void checkRanks(const Checker &checker);

} // namespace reprise::frontend

#endif // REPRISE_PYTHON_FREE_FRONTEND_CHECKS_H
