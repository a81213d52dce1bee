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
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"
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
    std::vector<std::string> names = {std::string(info.name)};
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
      isRecomputeKey.push_back(info.section == "recompute");
    }
  }
}

void Options::parse(int argc, char **argv) {
  cl::HideUnrelatedOptions({&programCategory, &keyCategory});
  arguments.assign(argv, argv + argc);
  std::vector<std::string> spellings = arguments;
  std::vector<const char *> texts;
  for (std::string &spelling : spellings) {
    if (llvm::StringRef(spelling).starts_with("--"))
      std::replace(spelling.begin(),
                   spelling.begin() +
                       std::min(spelling.find('='), spelling.size()),
                   '_', '-');
    texts.push_back(spelling.c_str());
  }
  cl::ParseCommandLineOptions(
      texts.size(), texts.data(),
      "Compiles a description of a transformer into a training program\n");
}

llvm::StringRef Options::getReport() const {
  const cl::opt<std::string> *files[] = {&planJSON, &report, &trace, &dot};
  for (const cl::opt<std::string> *file : files)
    if (!file->empty())
      return llvm::StringRef(file->ArgStr);
  return explain ? llvm::StringRef(explain.ArgStr) : "";
}

/// `text` as a word of a shell.
static std::string quote(llvm::StringRef text) {
  bool isPlain = !text.empty() && llvm::all_of(text, [](char c) {
    return llvm::isAlnum(c) || llvm::StringRef("-_./=,+:@%").contains(c);
  });
  if (isPlain)
    return text.str();
  std::string quoted = "'";
  for (char c : text)
    quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::string Options::getCommand() const {
  std::string command = quote(llvm::sys::path::filename(arguments.front()));
  for (const std::string &argument : llvm::drop_begin(arguments))
    command += " " + quote(argument);
  return command;
}

std::string Options::getCommand(llvm::ArrayRef<std::string> recompute) const {
  std::string command =
      quote(llvm::sys::path::filename(arguments.front())) + " " + quote(input);
  auto add = [&](llvm::StringRef name, const std::string &value) {
    command += " " + quote(("--" + name + "=" + value).str());
  };
  if (!from.empty())
    add(from.ArgStr, from);
  if (inference.getNumOccurrences())
    add(inference.ArgStr, inference);
  for (auto [key, isRecompute] : llvm::zip(keys, isRecomputeKey))
    if (key->getNumOccurrences() && !isRecompute)
      add(key->ArgStr, *key);
  for (const std::string &option : recompute)
    command += " " + quote(option);
  return command + " -o train";
}

int driver::fail(const llvm::Twine &message) {
  llvm::WithColor::error() << message << "\n";
  return 1;
}
