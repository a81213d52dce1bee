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
#include "llvm/Support/WithColor.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>
#include <string>

namespace reprise::test {

/// Reads the command line of a program whose options are of `category`. Its
/// --version says what those of the tools do, and its --help has no options of
/// LLVM's. A word too many is refused by name, with those that are taken.
inline void readWords(int argc, char **argv, llvm::cl::OptionCategory &category,
                      llvm::StringRef overview) {
  llvm::cl::HideUnrelatedOptions(category);
  llvm::cl::SetVersionPrinter([](llvm::raw_ostream &os) {
    os << "Reprise " REPRISE_VERSION "\nLLVM " LLVM_VERSION_STRING "\n";
  });
  std::string needs;
  for (const llvm::cl::Option *option :
       llvm::cl::SubCommand::getTopLevel().PositionalOpts)
    needs += (needs.empty() ? "" : " ") + option->HelpStr.str();
  static llvm::cl::list<std::string> further(llvm::cl::Positional,
                                             llvm::cl::cat(category));
  llvm::cl::ParseCommandLineOptions(argc, argv, overview);
  if (further.empty())
    return;
  llvm::WithColor::error() << "needs " << needs << ", but got '"
                           << further.front() << "' besides\n";
  std::exit(1);
}

} // namespace reprise::test

#endif // REPRISE_TEST_COMMON_WORDS_H
