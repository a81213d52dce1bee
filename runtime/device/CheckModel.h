//===- CheckModel.h - Whether the tables of a model can be run --*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DEVICE_CHECKMODEL_H
#define REPRISE_RUNTIME_DEVICE_CHECKMODEL_H

#include "runtime/base/Error.h"

#include "reprise/ABI/Model.h"

namespace reprise::runtime {

/// Checks that a buffer of at least `least` bytes lies in the arena.
bool checkRange(const char *what, const RepriseBuffer &buffer, int64_t least,
                int64_t arenaBytes, Error &error);

/// Checks every index and byte range of the tables, which `rank` is to run.
bool checkModel(const RepriseModel &model, int rank, Error &error);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DEVICE_CHECKMODEL_H
