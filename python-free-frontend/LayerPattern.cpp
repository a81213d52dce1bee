//===- LayerPattern.cpp - Megatron's pattern of layers ----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/LayerPattern.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

using namespace llvm;

static constexpr size_t kMostLayers = size_t(1) << 16;

/// Adds the layers of `[0,1]` or `[0,1]*3`.
static bool addTerm(StringRef term, std::vector<bool> &layers) {
  auto [list, factor] = term.split('*');
  list = list.trim();
  uint64_t times = 1;
  if (term.contains('*') &&
      (factor.trim().getAsInteger(10, times) || times > kMostLayers))
    return false;
  if (!list.consume_front("[") || !list.consume_back("]"))
    return false;
  SmallVector<StringRef> words;
  list.split(words, ',');
  if (words.size() * times > kMostLayers - layers.size())
    return false;
  for (uint64_t k = 0; k < times; ++k)
    for (StringRef word : words) {
      word = word.trim();
      if (word != "0" && word != "1")
        return false;
      layers.push_back(word == "1");
    }
  return true;
}

std::optional<std::vector<bool>>
reprise::frontend::parseLayerPattern(StringRef text, int64_t numLayers) {
  text = text.trim();
  std::vector<bool> layers;
  int64_t period;
  if (!text.getAsInteger(10, period)) {
    if (period < 1)
      return std::nullopt;
    for (int64_t layer = 0; layer < numLayers; ++layer)
      layers.push_back(layer % period == 0);
    return layers;
  }
  if (text.consume_front("(") && !text.consume_back(")"))
    return std::nullopt;
  SmallVector<StringRef> terms;
  text.split(terms, '+');
  bool isGood = all_of(
      terms, [&](StringRef term) { return addTerm(term.trim(), layers); });
  if (!isGood || int64_t(layers.size()) != numLayers)
    return std::nullopt;
  return layers;
}
