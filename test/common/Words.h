//===- Words.h - The command lines of programs for tests --------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TEST_COMMON_WORDS_H
#define REPRISE_TEST_COMMON_WORDS_H

#include "reprise/ABI/Version.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

namespace reprise::test {

/// Reads the command line of a program whose options are of `category`. Its
/// --version says what those of the tools do, and its --help has no options of
/// LLVM's.
inline void readWords(int argc, char **argv, llvm::cl::OptionCategory &category,
                      llvm::StringRef overview) {
  llvm::cl::HideUnrelatedOptions(category);
  llvm::cl::SetVersionPrinter([](llvm::raw_ostream &os) {
    os << "Reprise " REPRISE_VERSION "\nLLVM " LLVM_VERSION_STRING "\n";
  });
  llvm::cl::ParseCommandLineOptions(argc, argv, overview);
}

} // namespace reprise::test

#endif // REPRISE_TEST_COMMON_WORDS_H
