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
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/WithColor.h"
#include <algorithm>
#include <cstdlib>
#include <deque>

using namespace reprise;
using namespace reprise::driver;

cl::OptionCategory driver::programCategory("reprisec options");
cl::OptionCategory driver::keyCategory(
    "Keys of the description (an option wins over the file)");

/// What stands for a value in the help: `n`, `flash|unfused`.
static std::string getPlaceholder(llvm::StringRef type) {
  if (type.consume_front("one of ") || type.contains(" or "))
    return llvm::join(llvm::split(type, type.contains(", ") ? ", " : " or "),
                      "|");
  return llvm::StringSwitch<std::string>(type)
      .StartsWith("a whole number", "n")
      .StartsWith("a number", "x")
      .Case("a list of words", "a,b")
      .Case("a path", "path")
      .Default(type.str());
}

/// What the help says of a key; docs/description.md says all of it.
static std::string getHelp(const frontend::KeyInfo &info) {
  std::string families = info.families.empty() ? "" : info.families + ": ";
  llvm::StringRef value = info.defaultValue;
  if (value.starts_with("required"))
    value = "required";
  return families + info.summary.split(';').first.str() + " (" + value.str() +
         ")";
}

/// In lines that leave place for the names of options.
static std::string wrap(llvm::StringRef text) {
  constexpr size_t width = 62;
  std::string lines;
  while (text.size() > width) {
    size_t space = text.rfind(' ', width);
    if (space == llvm::StringRef::npos)
      break;
    lines += text.take_front(space).str() + "\n";
    text = text.drop_front(space + 1);
  }
  return lines + text.str();
}

static bool isOwn(const cl::Option &option) {
  return llvm::is_contained(option.Categories, &programCategory) ||
         llvm::is_contained(option.Categories, &keyCategory);
}

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
          keep(spelling), cl::desc(keep(getHelp(info))),
          cl::value_desc(keep(getPlaceholder(info.type))), cl::cat(keyCategory),
          info.isSwitch ? cl::ValueOptional : cl::ValueRequired,
          index == 0 ? cl::NotHidden : cl::Hidden);
      keys.push_back(std::move(key));
      keyNames.push_back(name);
      isRecomputeKey.push_back(info.section == "recompute");
    }
  }
  for (auto [name, option] : cl::getRegisteredOptions())
    if (isOwn(*option))
      option->setDescription(keep(wrap(option->HelpStr)));
}

/// Of an option that does not exist; empty if nothing is near.
static std::string suggestOption(llvm::StringRef name) {
  std::string key = name.str();
  llvm::replace(key, '-', '_');
  std::string nearest = frontend::findOwnName(key).str();
  llvm::replace(nearest, '_', '-');
  if (nearest.empty()) {
    llvm::SmallVector<llvm::StringRef> names = {"help", "version"};
    for (auto [other, option] : cl::getRegisteredOptions())
      if (isOwn(*option))
        names.push_back(other);
    llvm::sort(names); // The map has no order.
    nearest = frontend::findNearest(name, names).str();
  }
  return nearest.empty() ? "" : "; did you mean --" + nearest + "?";
}

/// LLVM's own suggestion is the nearest of all, however far.
static void checkNames(llvm::ArrayRef<std::string> arguments) {
  auto &known = cl::getRegisteredOptions();
  for (size_t i = 1; i < arguments.size(); ++i) {
    llvm::StringRef text = arguments[i];
    if (text == "--")
      return;
    if (text == "-" || !text.consume_front("-"))
      continue;
    text.consume_front("-");
    auto [name, value] = text.split('=');
    auto option = known.find(name);
    if (option == known.end())
      std::exit(driver::fail("unknown option --" + name + suggestOption(name)));
    // Its value may be the next one, and begin with a dash.
    if (name == text &&
        option->second->getValueExpectedFlag() == cl::ValueRequired)
      ++i;
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
  checkNames(spellings);
  cl::ParseCommandLineOptions(
      texts.size(), texts.data(),
      "Compiles a description of a transformer into a training program\n");
}

llvm::StringRef Options::getReport() const {
  const cl::opt<std::string> *files[] = {&planJSON, &report, &trace, &dot};
  for (const cl::opt<std::string> *file : files)
    if (!file->empty())
      return llvm::StringRef(file->ArgStr);
  return explainsPlan() ? llvm::StringRef(explain.ArgStr) : "";
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

std::string Options::getCommandWithout(const cl::Option &option) const {
  std::string command = quote(arguments.front());
  for (size_t i = 1; i < arguments.size(); ++i) {
    auto [name, value] = llvm::StringRef(arguments[i]).split('=');
    std::string dashed = name.ltrim('-').str();
    std::replace(dashed.begin(), dashed.end(), '_', '-');
    if (!name.starts_with("-") || dashed != option.ArgStr)
      command += " " + quote(arguments[i]);
    else if (name == arguments[i]) // Its value is the next one.
      ++i;
  }
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
  for (const auto *option : {&inference, &target, &cudaArch, &biasGradients})
    if (option->getNumOccurrences())
      add(option->ArgStr, *option);
  for (auto [key, isRecompute] : llvm::zip(keys, isRecomputeKey))
    if (key->getNumOccurrences() && !isRecompute)
      add(key->ArgStr, *key);
  for (const std::string &option : recompute)
    command += " " + quote(option);
  return command + " -o train";
}

const std::string *Options::getKey(llvm::StringRef name) const {
  for (const auto &key : keys)
    if (key->ArgStr == name && key->getNumOccurrences())
      return &key->getValue();
  return nullptr;
}

int driver::fail(const llvm::Twine &message) {
  llvm::WithColor::error() << message << "\n";
  return 1;
}
