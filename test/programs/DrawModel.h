//===- DrawModel.h - Models at random ---------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Keys of a description whose values are drawn. Which there are, the family's
// own table says: one that is added is drawn like the others.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TEST_PROGRAMS_DRAWMODEL_H
#define REPRISE_TEST_PROGRAMS_DRAWMODEL_H

#include "Draw.h"
#include "mlir/Support/LLVM.h"
#include "python-free-frontend/Family.h"
#include <string>
#include <vector>

namespace reprise::test {

/// Draws the keys of one model.
class ModelDraw {
public:
  using Keys = std::vector<std::pair<std::string, std::string>>;

  ModelDraw(Draw &draw, const frontend::Family &family, Keys &keys)
      : draw(draw), family(family), keys(keys) {
    set("model_type", family.name);
  }

  void set(llvm::StringRef key, llvm::StringRef value) {
    keys.push_back({key.str(), value.str()});
  }
  void set(llvm::StringRef key, int64_t value) {
    set(key, std::to_string(value));
  }
  bool takes(llvm::StringRef key) const { return family.findUse(key); }
  /// Ranks that have parts of the columns of experts, and ranks with other
  /// experts: what is drawn of these is a multiple from now on. Experts may be
  /// whole where ranks share the rest: some terms and capacities cannot be
  /// then.
  void setRanks(int64_t columns, int64_t experts, bool areWhole) {
    columnRanks = columns;
    expertRanks = experts;
    areExpertsWhole = areWhole;
  }
  /// Sets the first of the keys that the family takes; false if it takes none.
  bool setFirst(std::initializer_list<llvm::StringRef> names, int64_t value);

  bool isLatent() const {
    return family.blocks.attention == frontend::AttentionKind::Latent;
  }
  bool hasExperts() const {
    return family.blocks.experts != frontend::ExpertKind::None;
  }
  /// Dropouts, each of them on once in three.
  void drawDropouts();
  /// Columns of the latents and heads, if attention has latents.
  void drawLatents();
  /// How many experts of up to `width` columns there are, how many a token goes
  /// to, and which layers have some, if the family has experts.
  void drawExperts(int64_t layers, int64_t width);
  /// What the loss and the update have for the balance of experts, and further
  /// tokens: all that one stage alone can have.
  void drawTerms();
  /// A label of parts that are recomputed, which all models of the family have.
  std::string drawLabel();

private:
  void drawGroups(int64_t groups);
  void drawLayersWithExperts(int64_t layers);

  Draw &draw;
  const frontend::Family &family;
  Keys &keys;
  int64_t columnRanks = 1, expertRanks = 1;
  bool areExpertsWhole = false;
};

/// The families whose names are in the list, separated by commas, in its order;
/// of an empty list all. None if a name is unknown.
std::vector<const frontend::Family *> readFamilies(llvm::StringRef list);

} // namespace reprise::test

#endif // REPRISE_TEST_PROGRAMS_DRAWMODEL_H
