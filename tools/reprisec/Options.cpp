//===- Options.cpp - What the command line says -----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Options.h"
#include "python-free-frontend/Description.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/WithColor.h"
#include <algorithm>
#include <deque>

using namespace reprise;
using namespace reprise::driver;

cl::OptionCategory driver::programCategory("reprisec options");
cl::OptionCategory driver::keyCategory(
    "Keys of the description (an option wins over the file)");

Options::Options() {
  // One list gives the names, the help and the documentation. The strings live
  // as long as the options do.
  static std::vector<frontend::KeyInfo> infos = frontend::listKeys();
  static std::deque<std::string> texts;
  auto keep = [&](std::string text) -> llvm::StringRef {
    return texts.emplace_back(std::move(text));
  };
  for (const frontend::KeyInfo &info : infos) {
    std::vector<std::string> names = {info.name.str()};
    names.insert(names.end(), info.aliases.begin(), info.aliases.end());
    for (auto [index, name] : llvm::enumerate(names)) {
      std::string spelling = name;
      llvm::replace(spelling, '_', '-');
      auto key = std::make_unique<cl::opt<std::string>>(
          keep(spelling),
          cl::desc(keep(info.summary.str() + " (" + info.defaultValue + ")")),
          cl::value_desc(keep(info.type)), cl::cat(keyCategory),
          info.isSwitch ? cl::ValueOptional : cl::ValueRequired,
          index == 0 ? cl::NotHidden : cl::Hidden);
      keys.push_back(std::move(key));
      keyNames.push_back(name);
    }
  }
}

void Options::parse(int argc, char **argv) {
  cl::HideUnrelatedOptions({&programCategory, &keyCategory});
  std::vector<std::string> spellings(argv, argv + argc);
  std::vector<const char *> arguments;
  for (std::string &spelling : spellings) {
    if (llvm::StringRef(spelling).starts_with("--"))
      std::replace(spelling.begin(),
                   spelling.begin() +
                       std::min(spelling.find('='), spelling.size()),
                   '_', '-');
    arguments.push_back(spelling.c_str());
  }
  cl::ParseCommandLineOptions(
      arguments.size(), arguments.data(),
      "Compiles a description of a transformer into a training program\n");
}

int driver::fail(const llvm::Twine &message) {
  llvm::WithColor::error() << message << "\n";
  return 1;
}
