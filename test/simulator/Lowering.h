//===- Lowering.h - Device code for the host --------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TEST_SIMULATOR_LOWERING_H
#define REPRISE_TEST_SIMULATOR_LOWERING_H

#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"

namespace reprise::simulator {

/// Turns a module for NVPTX into one for x86-64 whose functions call those of
/// libRepriseSimulator.so. Fails, by name, for an intrinsic, an instruction or
/// a function that the simulator does not have.
llvm::Error lowerForHost(llvm::Module &module);

/// lowerForHost, optimised, as a shared object at `path`, linked with the
/// simulator's library.
llvm::Error writeSharedObject(llvm::Module &module, llvm::StringRef path);

} // namespace reprise::simulator

#endif // REPRISE_TEST_SIMULATOR_LOWERING_H
