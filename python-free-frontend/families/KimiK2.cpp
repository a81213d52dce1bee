//===- KimiK2.cpp - Kimi K2 -------------------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kimi K2, arXiv:2507.20534: DeepSeek-V3 with other sizes, whose files have a
// `model_type` of their own and that class.
//
//===----------------------------------------------------------------------===//

#include "DeepSeek.h"

using namespace reprise::frontend;

static constexpr Family getFamily() {
  Family family = getFamilyOfV3("kimi_k2");
  family.otherNames = "kimi|kimi-k2|kimik2";
  return family;
}

constexpr Family reprise::frontend::kKimiK2 = getFamily();
