//===- Chips.cpp - Chips that there is code for -----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Codegen/CUDA/Device.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::cuda;

/// Kernels read their arguments in place, which PTX has since 7.7; 7.8 is what
/// all toolkits since 11.8 take.
static constexpr Chip kChips[] = {
    {"sm_80", 8, 0, false, 78},   {"sm_86", 8, 6, false, 78},
    {"sm_89", 8, 9, false, 78},   {"sm_90", 9, 0, false, 80},
    {"sm_90a", 9, 0, true, 80},   {"sm_100", 10, 0, false, 86},
    {"sm_100a", 10, 0, true, 86}, {"sm_103a", 10, 3, true, 88},
    {"sm_120", 12, 0, false, 87}, {"sm_120a", 12, 0, true, 87}};

/// Versions of PTX that LLVM writes and toolkits read.
static constexpr unsigned kPTXVersions[] = {78, 80, 81, 82, 83, 84,
                                            85, 86, 87, 88, 90};

ArrayRef<Chip> cuda::getChips() { return kChips; }

const Chip *cuda::findChip(StringRef name) {
  const Chip *chip = llvm::find_if(
      kChips, [&](const Chip &each) { return each.name == name; });
  return chip == std::end(kChips) ? nullptr : chip;
}

FailureOr<const Chip *> cuda::findChip(Location location, StringRef name) {
  if (const Chip *chip = findChip(name))
    return chip;
  std::string known = llvm::join(
      llvm::map_range(kChips, [](const Chip &chip) { return chip.name; }),
      ", ");
  return emitError(location, "needs a chip that is one of ")
         << known << ", but got '" << name << "'";
}

LogicalResult cuda::checkPTXVersion(Location location, const Chip &chip,
                                    unsigned version) {
  auto write = [](unsigned version) {
    return std::to_string(version / 10) + "." + std::to_string(version % 10);
  };
  if (version >= chip.ptxVersion && llvm::is_contained(kPTXVersions, version))
    return success();
  SmallVector<std::string> known;
  for (unsigned each : kPTXVersions)
    if (each >= chip.ptxVersion)
      known.push_back(write(each));
  return emitError(location, "needs a version of PTX for ")
         << chip.name << " that is one of " << llvm::join(known, ", ")
         << ", but got " << write(version);
}
