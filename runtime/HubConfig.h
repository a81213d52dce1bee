//===- HubConfig.h - The config.json beside weights -------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_HUBCONFIG_H
#define REPRISE_RUNTIME_HUBCONFIG_H

#include "Error.h"
#include "Files.h"

#include <string_view>

namespace reprise::runtime {

/// The folder of weights: `path` itself, or where the file lies.
Path folderOfWeights(const char *path);

/// Whether the config.json in the folder of weights, if there is one, is of a
/// model that computes what `ours`, the configuration of this program's, does:
/// what both name must be equal, unless it is about training, names or storage,
/// or the tensors themselves tell. Rotary positions may be written as
/// rope_theta and rope_scaling, or as rope_parameters.
bool checkHubConfig(const char *weights, std::string_view ours, Error &error);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_HUBCONFIG_H
