//===- WrappedNames.cpp - Names of modules in modules ---------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Training frameworks put a module into one of their own, whose attribute for
// it is then a part of all names inside. Who wraps single layers, or parts of
// them, has it in the middle: `model.layers.0._orig_mod.mlp.up_proj.weight`.
//
//===----------------------------------------------------------------------===//

#include "SafeTensors.h"

#include <algorithm>
#include <cstring>

using namespace reprise::runtime;

/// No tensor of a model has one of these as a part of its own.
static constexpr std::string_view kWrappers[] = {
    "_checkpoint_wrapped_module.", // torch's checkpoint_wrapper
    "_forward_module.",            // Lightning's strategies
    "_fpw_module.",                // fairscale's FSDP
    "_fsdp_wrapped_module.",       // torch's FSDP
    "_orig_mod.",                  // torch.compile
    "module.",                     // DataParallel, DDP, DeepSpeed
};

/// The name without the wrapper, wherever it is a part; false if it is nowhere.
static bool takeOut(char *name, std::string_view wrapper) {
  bool any = false;
  for (char *part = name; *part;) {
    bool isPart = part == name || part[-1] == '.';
    if (isPart && !strncmp(part, wrapper.data(), wrapper.size())) {
      memmove(part, part + wrapper.size(), strlen(part + wrapper.size()) + 1);
      any = true;
    } else {
      ++part;
    }
  }
  return any;
}

int TensorSet::unwrap(Error &error) {
  int count = 0;
  for (TensorEntry &tensor : tensors) {
    bool any = false;
    for (std::string_view wrapper : kWrappers)
      any = takeOut(tensor.name, wrapper) || any;
    count += any;
  }
  if (!count)
    return 0;
  Error twice;
  if (sortByName(twice))
    return count;
  error.set("without the parts of names that wrap modules, such as _orig_mod., "
            "%s",
            twice.text);
  return -1;
}
