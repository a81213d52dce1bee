//===- Help.cpp - What a tool says of itself ------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/ABI/Version.h"
#include "tools/command-line/CommandLine.h"

#include <algorithm>

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
  case Takes::MaybeNext:
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

/// Adds the options that are to be shown, below the titles of their topics.
static void addTopics(
    std::string &out, const Tool &tool,
    const std::function<bool(const Topic &, const OptionInfo &)> &isMeant) {
  for (const Topic &topic : tool.topics) {
    bool isShown = false;
    for (const OptionInfo &option : topic.options) {
      if (option.isHidden || !isMeant(topic, option))
        continue;
      if (!isShown) {
        out += "\n";
        addWrapped(out, topic.title + ":", 0, 0);
      }
      isShown = true;
      addOption(out, option);
    }
  }
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
  addTopics(out, tool, [](const Topic &, const OptionInfo &) { return true; });
  return out;
}

/// Whether a name of the option, its value or its help has a word, `name` in
/// names and `word` in the rest.
static bool isAbout(const Topic &topic, const OptionInfo &option,
                    const std::string &name, const std::string &word) {
  auto has = [](std::string_view text, const std::string &part) {
    return toLower(text).find(part) != std::string::npos;
  };
  return has(option.value, word) || has(option.help, word) ||
         std::any_of(topic.options.begin(), topic.options.end(),
                     [&](const OptionInfo &other) {
                       return option.means(other) && has(other.name, name);
                     });
}

std::string reprise::tools::formatHelpAbout(const Tool &tool,
                                            std::string_view given) {
  std::string out, word = toLower(given), name = word;
  std::replace(name.begin(), name.end(), '_', '-');
  addTopics(out, tool, [&](const Topic &topic, const OptionInfo &option) {
    return isAbout(topic, option, name, word);
  });
  return out.empty() ? ""
                     : "Options about '" + std::string(given) +
                           "' (--help lists all):\n" + out;
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
  help.value = "word";
  help.help = "Show this, or the options about a word; so does -h";
  help.takes = Takes::MaybeNext;
  version.name = "version";
  version.takes = Takes::Nothing;
  version.mayRepeat = true;
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
