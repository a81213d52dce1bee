//===- Completion.cpp - Options for shells --------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/command-line/CommandLine.h"

#include <algorithm>

using namespace reprise::tools;

static std::vector<const OptionInfo *> getShown(const Tool &tool) {
  std::vector<const OptionInfo *> shown;
  for (const Topic &topic : tool.topics)
    for (const OptionInfo &option : topic.options)
      if (!option.isHidden)
        shown.push_back(&option);
  return shown;
}

/// Whether its value may be in the next word.
static bool takesNext(const OptionInfo &option) {
  return option.takes != Takes::Nothing && option.takes != Takes::MaybeWord &&
         option.takes != Takes::MaybeText && option.takes != Takes::MaybeNext;
}

static std::string join(const std::vector<std::string> &words) {
  std::string text;
  for (const std::string &word : words)
    text += (text.empty() ? "" : " ") + word;
  return text;
}

/// `_reprise_opt`: the name of a function.
static std::string getFunction(const Tool &tool) {
  std::string name = "_" + tool.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

/// In single quotes, for all three shells.
static std::string quote(const std::string &text) {
  std::string quoted = "'";
  for (char c : text)
    quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

/// The first sentence of the help, without what zsh and fish take for syntax.
static std::string getHint(const OptionInfo &option) {
  std::string hint = option.help.substr(0, option.help.find(';'));
  for (char &c : hint)
    if (c == '[' || c == ']' || c == ':' || c == '\\' || c == '`')
      c = c == '`' ? '"' : c == ':' ? ',' : ' ';
  return hint;
}

/// `=` ends a word of bash, so that an option, `=` and a value are three.
static std::string formatBash(const Tool &tool) {
  std::string names, cases, others;
  for (const OptionInfo *option : getShown(tool)) {
    names += (names.empty() ? "" : " ") + spell(*option);
    if (takesNext(*option) && option->name.size() > 1)
      names += "=";
    std::string is = "    " + spell(*option) + ") ";
    if (option->isFile())
      cases += is + "COMPREPLY=($(compgen -f -- \"$word\"))\n"
                    "      compopt -o filenames; return ;;\n";
    else if (!option->words.empty())
      cases += is + "words=" + quote(join(option->words)) +
               (takesNext(*option) ? "" : " maybe=1") + " ;;\n";
    else if (takesNext(*option))
      others += (others.empty() ? "" : "|") + spell(*option);
  }
  if (!others.empty())
    cases += "    " + others + ") return ;;\n";
  std::string function = getFunction(tool);
  return "# Completes the options of " + tool.name + " in bash.\n" + function +
         "() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} before= words= maybe= "
         "behind=\n"
         "  ((COMP_CWORD > 0)) && before=${COMP_WORDS[COMP_CWORD-1]}\n"
         "  if [[ $word == = ]]; then\n"
         "    word= behind=1\n"
         "  elif [[ $before == = ]] && ((COMP_CWORD > 1)); then\n"
         "    before=${COMP_WORDS[COMP_CWORD-2]} behind=1\n"
         "  fi\n"
         "  COMPREPLY=()\n"
         "  [[ $before == --* ]] && before=${before//_/-}\n"
         "  case $before in\n" +
         cases +
         "  esac\n"
         "  if [[ $words && ( ! $maybe || $behind ) ]]; then\n"
         "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "  elif [[ $word == -* ]]; then\n"
         "    COMPREPLY=($(compgen -W " +
         quote(names) +
         " -- \"${word//_/-}\"))\n"
         "    [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace\n"
         "  else\n"
         "    COMPREPLY=($(compgen -f -- \"$word\"))\n"
         "    compopt -o filenames\n"
         "  fi\n"
         "}\n"
         "complete -F " +
         function + " " + tool.name + "\n";
}

static std::string formatZsh(const Tool &tool) {
  std::string specs;
  for (const OptionInfo *option : getShown(tool)) {
    std::string spec = spell(*option);
    if (option->takes != Takes::Nothing)
      spec += option->name.size() == 1 ? "" : takesNext(*option) ? "=" : "=-";
    spec += "[" + getHint(*option) + "]";
    if (option->takes != Takes::Nothing) {
      spec += takesNext(*option) ? ":" : "::";
      spec += option->value + ":";
      spec += option->isFile()        ? "_files"
              : option->words.empty() ? " "
                                      : "(" + join(option->words) + ")";
    }
    if (option->takes == Takes::List || option->mayRepeat)
      spec = "*" + spec;
    specs += "  " + quote(spec) + " \\\n";
  }
  specs += tool.input.empty()
               ? "  && return 0\n"
               : "  " + quote("*:" + tool.input + ":_files") + "\n";
  return "#compdef " + tool.name + "\n# Completes the options of " + tool.name +
         " in zsh.\n_arguments \\\n" + specs;
}

static std::string formatFish(const Tool &tool) {
  std::string text = "# Completes the options of " + tool.name + " in fish.\n";
  for (const OptionInfo *option : getShown(tool)) {
    text += "complete -c " + tool.name +
            (option->name.size() == 1 ? " -s " : " -l ") + option->name;
    if (takesNext(*option))
      text += option->isFile() ? " -r -F" : " -x";
    if (!option->words.empty())
      text += " -a " + quote(join(option->words));
    text += " -d " + quote(getHint(*option)) + "\n";
  }
  return text;
}

namespace {
struct Shell {
  const char *name;
  std::string (*format)(const Tool &tool);
};
} // namespace

static constexpr Shell kShells[] = {
    {"bash", formatBash}, {"zsh", formatZsh}, {"fish", formatFish}};

const std::vector<std::string> &reprise::tools::getShells() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> names;
    for (const Shell &shell : kShells)
      names.push_back(shell.name);
    return names;
  }();
  return names;
}

std::string reprise::tools::formatCompletion(const Tool &tool,
                                             std::string_view shell) {
  for (const Shell &known : kShells)
    if (shell == known.name)
      return known.format(tool);
  return "";
}
