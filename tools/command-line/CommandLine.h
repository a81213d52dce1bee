//===- CommandLine.h - The words that a tool is called with -----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One table says which options a tool has. It gives what the command line may
// say, the help, and what shells complete. The C++ standard library only: the
// planner's tool has nothing else.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TOOLS_COMMANDLINE_H
#define REPRISE_TOOLS_COMMANDLINE_H

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::tools {

/// What stands behind an option, as `--name=value` or `--name value`.
enum class Takes {
  Nothing,
  Word,       ///< one of its `words`
  MaybeWord,  ///< nothing, or one of its `words`
  MaybeText,  ///< nothing, or with `=` anything
  MaybeNext,  ///< nothing, or anything but an option
  Text,       ///< something
  List,       ///< words with commas; given again, it goes on
  InputFile,  ///< a file that is read
  OutputFile, ///< a file that is written
};

struct OptionInfo {
  std::string name;  ///< Without dashes; of one letter: `-o`.
  std::string value; ///< What the help calls its value, as in `file`.
  std::string help;  ///< Without full stop.
  Takes takes = Takes::Text;
  std::vector<std::string> words = {}; ///< Values that it may have.
  bool mayRepeat = false;              ///< Every use counts.
  bool isHidden = false;               ///< Of the help and of shells.
  std::string same = {}; ///< The name that it shares with its other names.
  bool areFiles = false; ///< A list of files that are not read, and of numbers.

  bool isFile() const {
    return takes == Takes::InputFile || takes == Takes::OutputFile;
  }
  /// Whether both are names of one option.
  bool means(const OptionInfo &other) const {
    return name == other.name || (!same.empty() && same == other.same);
  }
};

/// Options that belong together, those that are used most first.
struct Topic {
  std::string title;
  std::vector<OptionInfo> options;
};

/// What a tool calls an option that another program has, and what to do.
struct ForeignOption {
  std::string_view name; ///< Without dashes and what is behind `=`.
  bool isStart;          ///< More may stand behind the name.
  std::string_view advice;
};

struct Example {
  std::string command, meaning;
};

struct Tool {
  std::string name;     ///< `reprisec`
  std::string overview; ///< A sentence.
  std::string input;    ///< What it reads, as in `description`; empty: nothing.
  std::string usage;    ///< What stands behind the name, as in `<file>`.
  std::vector<Example> examples = {};
  std::vector<Topic> topics = {};
  std::vector<ForeignOption> foreign = {};
  std::string libraries = {}; ///< What it is made with, as in `LLVM 1.2.3`.
  /// The option for a name that no option has; empty if it knows none.
  std::function<std::string(const std::string &)> findOwnName = {};
  /// What stands in place of an option of other programs; empty if it knows
  /// nothing of it.
  std::function<std::string(const std::string &)> explainForeign = {};
  /// Whether two values of the option, which is for no file, say the same in
  /// other spellings; it knows of none if it is empty.
  std::function<bool(const std::string &option, const std::string &lhs,
                     const std::string &rhs)>
      isSame = {};
};

/// An option that is given, with the value that its uses come to.
struct Given {
  const OptionInfo *option;
  std::string value;
  bool hasValue;
  std::vector<size_t> places; ///< Of its words among all.
  std::string file = {};      ///< That its last use is in; empty: none.
};

/// A word that is no option's, and the option whose value stands before it.
struct Input {
  std::string text;
  size_t word = 0;                    ///< Its place among all.
  const OptionInfo *behind = nullptr; ///< Null if none does.
  std::string behindWords = {};       ///< `--name value`
};

struct Words {
  std::vector<std::string> all;
  /// The `@file` that each of them is in, empty for none; or nothing at all.
  std::vector<std::string> files;
  std::vector<Given> options; ///< In their order.
  /// What is to be noted of options that replace those of a file.
  std::vector<std::string> notes;
  std::vector<Input> inputs;

  const Given *find(std::string_view name) const;
};

/// Adds --help, --version and --completion, which all tools have.
void addCommonOptions(Tool &tool);

/// What a tool says instead of working: its help, version or completion, or
/// what is wrong.
struct Answer {
  std::string text; ///< `error: ` stands between several errors.
  bool isError;
};

/// Reads the words behind the name of the program. Names may have underscores
/// for dashes, and one dash for two. What is wrong is told with the word and
/// what to write instead, all of it at once: an unknown option, one that is
/// given twice with two values, a value too few, more than one input. Options
/// that are read are in `parsed` all the same. `files` are those of its member;
/// a use replaces another one that is in a file before, and not in its own.
std::optional<Answer> read(const Tool &tool,
                           const std::vector<std::string> &words, Words &parsed,
                           const std::vector<std::string> &files = {});

/// Of an input that is not there: if it stands behind a list, how lists are
/// written; or empty.
std::string adviseOnInput(const Words &words);

/// Why no file can be made of this name, or replaced; empty if one can, and for
/// `-`.
std::string checkPlace(const std::string &name);

/// Within 80 columns.
std::string formatHelp(const Tool &tool);
/// The options whose name or help has `word`, in any case; empty if none has.
std::string formatHelpAbout(const Tool &tool, std::string_view word);
/// Two lines: Reprise's version and that of the libraries.
std::string formatVersion(const Tool &tool);
/// A script for `shell`, one of `getShells`.
std::string formatCompletion(const Tool &tool, std::string_view shell);
const std::vector<std::string> &getShells();

/// With ASCII's letters small.
std::string toLower(std::string_view text);
/// `--name`, or `-o`.
std::string spell(const OptionInfo &option);
/// The candidate that `word` is near enough to, whatever its case; empty if
/// none is.
std::string findNearest(std::string_view word,
                        const std::vector<std::string> &candidates);
/// `; did you mean 'a100'?` for the candidate that has the letters and digits
/// of `word`, in any case and with any dashes: names that are near to each
/// other are of different things. Empty if none has.
std::string adviseOnSpelling(std::string_view word,
                             const std::vector<std::string> &candidates);

} // namespace reprise::tools

#endif // REPRISE_TOOLS_COMMANDLINE_H
