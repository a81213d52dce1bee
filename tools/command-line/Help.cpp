//===- Help.cpp - What a tool says of itself ------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/ABI/Version.h"
#include "tools/command-line/CommandLine.h"

using namespace reprise::tools;

/// Columns of a terminal, and where the text of an option begins.
static constexpr size_t kWidth = 80, kText = 28;

/// Adds the words of `text`, in lines that begin at `indent`. The line so far
/// has `used` columns.
static void addWrapped(std::string &out, std::string_view text, size_t indent,
                       size_t used) {
  bool isFirst = true;
  while (!text.empty()) {
    size_t end = std::min(text.find(' '), text.size());
    std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty())
      continue;
    if (!isFirst && used + 1 + word.size() > kWidth) {
      out += "\n" + std::string(indent, ' ');
      used = indent;
      isFirst = true;
    }
    if (!isFirst) {
      out += ' ';
      ++used;
    }
    out += word;
    used += word.size();
    isFirst = false;
  }
  out += '\n';
}

/// `--name=<value>`, as it is to be written.
static std::string getUsage(const OptionInfo &option) {
  std::string value = "<" + option.value + ">";
  switch (option.takes) {
  case Takes::Nothing:
    return spell(option);
  case Takes::MaybeWord:
  case Takes::MaybeText:
    return spell(option) + "[=" + value + "]";
  default:
    return spell(option) + (option.name.size() == 1 ? " " : "=") + value;
  }
}

/// A choice that is long, in lines that end behind a bar.
static std::string breakChoice(std::string_view left) {
  std::string lines;
  size_t used = 0;
  while (!left.empty()) {
    size_t end = std::min(left.find('|'), left.size() - 1) + 1;
    if (used > 0 && used + end > kWidth) {
      lines += "\n      ";
      used = 6;
    }
    lines += left.substr(0, end);
    used += end;
    left.remove_prefix(end);
  }
  return lines;
}

static void addOption(std::string &out, const OptionInfo &option) {
  std::string left = "  " + getUsage(option);
  if (left.size() > kWidth)
    left = breakChoice(left);
  if (left.size() + 2 > kText) {
    out += left + "\n";
    left.clear();
  }
  left.resize(kText, ' ');
  out += left;
  addWrapped(out, option.help, kText, kText);
}

std::string reprise::tools::formatHelp(const Tool &tool) {
  std::string out;
  addWrapped(out, tool.overview, 0, 0);
  out += "\nUsage: " + tool.name + " " + tool.usage + "\n";
  if (!tool.examples.empty())
    out += "\nExamples:\n";
  for (const Example &example : tool.examples) {
    out += "  " + example.command + "\n      ";
    addWrapped(out, example.meaning, 6, 6);
  }
  out += "\n";
  addWrapped(out,
             "A value stands behind its option as --name=value or as --name "
             "value; a list has commas. Names may have underscores for dashes.",
             0, 0);
  for (const Topic &topic : tool.topics) {
    bool isShown = false;
    for (const OptionInfo &option : topic.options) {
      if (option.isHidden)
        continue;
      if (!isShown) {
        out += "\n";
        addWrapped(out, topic.title + ":", 0, 0);
      }
      isShown = true;
      addOption(out, option);
    }
  }
  return out;
}

std::string reprise::tools::formatVersion(const Tool &tool) {
  std::string text = "Reprise " REPRISE_VERSION "\n";
  return tool.libraries.empty() ? text : text + tool.libraries + "\n";
}

void reprise::tools::addCommonOptions(Tool &tool) {
  Topic topic;
  topic.title = "This tool";
  OptionInfo help, version, completion;
  help.name = "help";
  help.help = "Show this; so does -h";
  help.takes = Takes::Nothing;
  help.mayRepeat = true;
  version = help;
  version.name = "version";
  version.help = tool.libraries.empty()
                     ? "Show the version of Reprise"
                     : "Show the versions of Reprise and of its libraries";
  completion.name = "completion";
  completion.value = "shell";
  completion.words = getShells();
  completion.takes = Takes::Word;
  completion.help = "Write a script with which bash, zsh or fish complete "
                    "options, as in: source <(" +
                    tool.name + " --completion=bash)";
  topic.options = {help, version, completion};
  tool.topics.push_back(std::move(topic));
}
