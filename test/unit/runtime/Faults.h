//===- Faults.h - System calls that end a program, or fail ------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The linker sends the runtime's calls of these functions here (--wrap).
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TEST_UNIT_RUNTIME_FAULTS_H
#define REPRISE_TEST_UNIT_RUNTIME_FAULTS_H

#include <atomic>
#include <string>
#include <sys/mman.h>

namespace reprise::runtime::test {

enum class Fault {
  None,
  Kill, ///< As by kill -9; of a write, half has happened then.
  Full  ///< The call fails, the disk being full.
};

/// What happens at which call, from 1. Later calls are as usual. Forked
/// processes count together.
inline Fault fault = Fault::None;
inline std::atomic<int> &callsUntilFault = *static_cast<std::atomic<int> *>(
    mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE,
         MAP_SHARED | MAP_ANONYMOUS, -1, 0));

/// Called before some calls, with the name of the file or folder: for tests in
/// which they take long.
inline void (*beforeCall)(const std::string &call,
                          const std::string &path) = nullptr;

} // namespace reprise::runtime::test

#endif // REPRISE_TEST_UNIT_RUNTIME_FAULTS_H
