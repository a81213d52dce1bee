//===- HubConfig.h - The config.json beside weights -------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_CHECKPOINT_HUBCONFIG_H
#define REPRISE_RUNTIME_CHECKPOINT_HUBCONFIG_H

#include "ScaledTensors.h"
#include "runtime/base/Error.h"
#include "runtime/base/Files.h"

#include <string_view>

namespace reprise::runtime {

/// The folder of weights: `path` itself, or where the file lies.
Path folderOfWeights(const char *path);

/// Whether the config.json in the folder of weights, if there is one, is of a
/// model that computes what `ours`, the configuration of this program's, does.
/// Keys that change what is computed are compared by meaning: a key that is
/// missing or null has the default that Hugging Face's class of the family has,
/// names and activations may be written in each of their spellings, numbers are
/// equal if they are in f32. Sizes that the tensors tell are compared if both
/// name them; what is about training, names or storage is not. `warning` is set
/// if keys that nobody reads may be misspelt.
bool checkHubConfig(const char *weights, std::string_view ours, Error &warning,
                    Error &error);

/// What the config.json in the folder of weights, if there is one, says of the
/// scales of weights in few bits (`quantization_config`).
bool readScaleBlocks(const char *weights, ScaleBlocks &blocks, Error &error);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_CHECKPOINT_HUBCONFIG_H
