//===- DeepSeekV3.cpp - DeepSeek-V3 -----------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// DeepSeek-V3 Technical Report, arXiv:2412.19437, in the form and with the
// names of Hugging Face's DeepseekV3ForCausalLM: latent attention, and experts
// in place of the MLP of all but the first layers. Scores are sigmoids; a bias
// that is not trained chooses with them, in the best groups of experts; an
// expert that all tokens share is added as it is. Layers that predict further
// tokens are of section 2.2 of the report; without `mtp_num_layers` they are
// left out, as by the class.
//
//===----------------------------------------------------------------------===//

#include "DeepSeek.h"

using namespace reprise::frontend;

static constexpr Family getFamily() {
  Family family = getFamilyOfV3("deepseek_v3");
  family.otherNames = "deepseekv3|deepseek-v3|deepseek-r1|moonlight";
  return family;
}

constexpr Family reprise::frontend::kDeepSeekV3 = getFamily();
