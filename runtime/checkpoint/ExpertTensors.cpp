//===- ExpertTensors.cpp - Experts that files have in one tensor ----------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ExpertTensors.h"

#include <cinttypes>
#include <cstdlib>
#include <cstring>

using namespace reprise::runtime;

namespace {
/// A tensor of one expert, and where a stack has it.
struct Leaf {
  std::string_view name, stack;
  int part, parts; ///< Blocks of rows.
};
} // namespace

static constexpr Leaf kLeaves[] = {{"gate_proj.weight", "gate_up_proj", 0, 2},
                                   {"w1.weight", "gate_up_proj", 0, 2},
                                   {"up_proj.weight", "gate_up_proj", 1, 2},
                                   {"w3.weight", "gate_up_proj", 1, 2},
                                   {"down_proj.weight", "down_proj", 0, 1},
                                   {"w2.weight", "down_proj", 0, 1}};

static constexpr char kExperts[] = ".experts.";
static constexpr char kMixtral[] = ".block_sparse_moe.", kOthers[] = ".mlp.";

/// The slice of `stack` that has the expert's part; false if it has none.
static bool takeSlice(const TensorEntry &stack, int64_t expert,
                      const Leaf &leaf, TensorEntry &slice) {
  if (stack.rank != 3 || expert >= stack.shape[0] ||
      stack.shape[1] % leaf.parts != 0)
    return false;
  slice = stack;
  slice.rank = 2;
  slice.shape[0] = stack.shape[1] / leaf.parts;
  slice.shape[1] = stack.shape[2];
  slice.bytes = stack.bytes / (stack.shape[0] * leaf.parts);
  slice.offset += (expert * leaf.parts + leaf.part) * slice.bytes;
  slice.scales.matrix = expert;
  slice.scales.firstRow = leaf.part * slice.shape[0];
  return true;
}

static FoundTensor findSlice(const TensorSet &set, const char *name) {
  FoundTensor found;
  const char *experts = strstr(name, kExperts);
  if (!experts)
    return found;
  char *rest = nullptr;
  const char *number = experts + strlen(kExperts);
  int64_t expert = strtoll(number, &rest, 10);
  if (rest == number || *rest != '.' || expert < 0)
    return found;
  for (const Leaf &leaf : kLeaves) {
    if (leaf.name != rest + 1)
      continue;
    char stack[512];
    snprintf(stack, sizeof(stack), "%.*s%.*s", int(number - name), name,
             int(leaf.stack.size()), leaf.stack.data());
    const TensorEntry *entry = set.find(stack);
    if (entry && takeSlice(*entry, expert, leaf, found.slice))
      found.stack = entry;
  }
  return found;
}

FoundTensor reprise::runtime::findTensor(const TensorSet &set,
                                         std::string_view name) {
  FoundTensor found;
  char text[512];
  int length =
      snprintf(text, sizeof(text), "%.*s", int(name.size()), name.data());
  if (length >= int(sizeof(text)))
    return found;
  found.entry = set.find(name);
  if (!found)
    found = findSlice(set, text);
  const char *mixtral = strstr(text, kMixtral);
  if (found || !mixtral)
    return found;
  char other[512];
  snprintf(other, sizeof(other), "%.*s%s%s", int(mixtral - text), text, kOthers,
           mixtral + strlen(kMixtral));
  found.entry = set.find(other);
  return found ? found : findSlice(set, other);
}
