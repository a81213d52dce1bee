//===- Words.cpp - From words to options ----------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/command-line/CommandLine.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>

using namespace reprise::tools;

static std::string quote(std::string_view text) {
  return "'" + std::string(text) + "'";
}

std::string reprise::tools::toLower(std::string_view text) {
  std::string lower(text);
  for (char &c : lower)
    c = char(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

static const OptionInfo *findOption(const Tool &tool, std::string_view name) {
  for (const Topic &topic : tool.topics)
    for (const OptionInfo &option : topic.options)
      if (option.name == name)
        return &option;
  return nullptr;
}

std::string reprise::tools::spell(const OptionInfo &option) {
  return (option.name.size() == 1 ? "-" : "--") + option.name;
}

/// "a, b or c"
static std::string join(const std::vector<std::string> &words) {
  std::string text;
  for (size_t k = 0; k < words.size(); ++k)
    text += (k == 0 ? "" : k + 1 == words.size() ? " or " : ", ") + words[k];
  return text;
}

/// The word of the option that `text` is; that of a switch may be `True`.
static const std::string *findWord(const OptionInfo &option,
                                   std::string_view text) {
  for (const std::string &word : option.words)
    if (word == text ||
        (option.takes == Takes::MaybeWord && word == toLower(text)))
      return &word;
  return nullptr;
}

/// The Levenshtein distance.
static size_t getDistance(std::string_view left, std::string_view right) {
  std::vector<size_t> row(right.size() + 1);
  for (size_t j = 0; j <= right.size(); ++j)
    row[j] = j;
  for (size_t i = 1; i <= left.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= right.size(); ++j) {
      size_t replaced = diagonal + (left[i - 1] != right[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

std::string
reprise::tools::findNearest(std::string_view given,
                            const std::vector<std::string> &candidates) {
  const std::string *best = nullptr;
  std::string word = toLower(given);
  size_t least = (word.size() + 1) / 3 + 1; // A third may be wrong.
  for (const std::string &candidate : candidates) {
    std::string lower = toLower(candidate);
    size_t distance = getDistance(word, lower);
    bool isAnagram = word.size() == lower.size() &&
                     std::is_permutation(word.begin(), word.end(),
                                         lower.begin(), lower.end());
    if (isAnagram)
      distance = std::min<size_t>(distance, 1);
    if (distance < least && distance < candidate.size()) {
      least = distance;
      best = &candidate;
    }
  }
  return best ? *best : "";
}

std::string
reprise::tools::adviseOnSpelling(std::string_view word,
                                 const std::vector<std::string> &candidates) {
  auto strip = [](std::string_view name) {
    std::string letters = toLower(name);
    letters.erase(std::remove_if(letters.begin(), letters.end(),
                                 [](char c) { return c == '-' || c == '_'; }),
                  letters.end());
    return letters;
  };
  for (const std::string &candidate : candidates)
    if (strip(candidate) == strip(word))
      return "; did you mean " + quote(candidate) + "?";
  return "";
}

namespace {
class Parser {
public:
  Parser(const Tool &tool, Words &parsed)
      : tool(tool), words(parsed.all), parsed(parsed) {}

  /// What is wrong, one after the other.
  std::vector<std::string> parse();

private:
  bool readOption();
  void passValue();
  bool readValue(const OptionInfo &option, Given &given);
  bool checkValue(const OptionInfo &option, Given &given);
  bool add(Given given);
  bool addToList(Given &first, const Given &given);
  bool replace(Given &first, Given given);
  bool isSame(const Given &first, const Given &given) const;
  void addInput();
  std::string getFile(size_t word) const {
    return word < parsed.files.size() ? parsed.files[word] : "";
  }
  std::string explainUnknown(std::string_view text, std::string_view name);

  bool fail(const OptionInfo &option, const std::string &message) {
    errors.push_back("option " + spell(option) + ": " + message);
    return false;
  }

  const Tool &tool;
  const std::vector<std::string> &words;
  Words &parsed;
  size_t next = 0;
  std::optional<Given> last; ///< The option that the word before ends.
  std::vector<std::string> errors;
};
} // namespace

/// Why there is no such option, and what there is.
std::string Parser::explainUnknown(std::string_view text,
                                   std::string_view name) {
  std::string spelled(text.substr(0, text.find('=')));
  std::string message = "unknown option " + spelled;
  for (const ForeignOption &foreign : tool.foreign)
    if (name == foreign.name ||
        (foreign.isStart &&
         name.substr(0, foreign.name.size()) == foreign.name))
      return message + "; " + std::string(foreign.advice);
  if (tool.explainForeign)
    if (std::string why = tool.explainForeign(std::string(name)); !why.empty())
      return message + "; " + why;
  // As compilers take it: -otrain.
  if (text.substr(0, 2) != "--" && name.size() > 1)
    if (const OptionInfo *option = findOption(tool, name.substr(0, 1));
        option && option->takes != Takes::Nothing)
      return message + "; did you mean " + spell(*option) + " " +
             std::string(text.substr(2)) + "?";
  std::string nearest =
      tool.findOwnName ? tool.findOwnName(std::string(name)) : "";
  if (nearest.empty()) {
    std::vector<std::string> names;
    for (const Topic &topic : tool.topics)
      for (const OptionInfo &option : topic.options)
        if (!option.isHidden || !option.same.empty())
          names.push_back(option.name);
    nearest = findNearest(name, names);
  }
  if (const OptionInfo *option = findOption(tool, nearest))
    return message + "; did you mean " + spell(*option) + "?";
  return message + "; --help lists all";
}

/// How a switch is set that is said to be on or off in other words.
static std::string adviseOnTruth(const OptionInfo &option,
                                 const std::string &value) {
  if (option.words != std::vector<std::string>{"true", "false"})
    return "";
  std::string lower = toLower(value);
  for (const char *word : {"t", "yes", "y", "on", "1"})
    if (lower == word)
      return "; write true";
  for (const char *word : {"f", "no", "n", "off", "0"})
    if (lower == word)
      return "; write false";
  return "";
}

bool Parser::checkValue(const OptionInfo &option, Given &given) {
  bool isClosed =
      option.takes == Takes::Word || option.takes == Takes::MaybeWord;
  if (isClosed && given.hasValue) {
    const std::string *word = findWord(option, given.value);
    if (!word) {
      std::string nearest = findNearest(given.value, option.words);
      return fail(option, "needs " + join(option.words) + ", but got " +
                              quote(given.value) +
                              adviseOnTruth(option, given.value) +
                              (nearest.empty()
                                   ? ""
                                   : "; did you mean " + quote(nearest) + "?"));
    }
    given.value = *word;
  }
  if (option.isFile() && given.value.empty())
    return fail(option, "needs the name of a file, but got ''");
  // A folder called so would be looked for.
  if (option.isFile() && given.value.compare(0, 2, "~/") == 0)
    return fail(option, "needs a path, but got " + quote(given.value) +
                            ": a shell makes a home of ~ in a word of its "
                            "own, as in " +
                            spell(option) + " " + given.value +
                            " (a folder of that name is ./~)");
  return true;
}

static bool isNumber(const std::string &word) {
  char *end = nullptr;
  strtod(word.c_str(), &end);
  return end != word.c_str() && *end == 0;
}

/// Whether the word has an ending of what tools read.
static bool hasInputEnding(const std::string &word) {
  std::string ending = std::filesystem::path(word).extension().string();
  return ending == ".yaml" || ending == ".yml" || ending == ".json" ||
         ending == ".mlir";
}

/// Whether a word in a list is for the list, too: neither an option, nor a
/// file, which may not be there, but has an ending or a folder. Where a list is
/// of files itself, it is none that tools read.
static bool isListWord(const std::string &word, bool areFiles) {
  if (word.empty() || word[0] == '-' || word[0] == '@')
    return false;
  std::error_code ignored;
  if (areFiles)
    return !hasInputEnding(word) &&
           !std::filesystem::is_directory(word, ignored);
  bool isPlain =
      word.find_first_of("./") == std::string::npos || isNumber(word);
  return isPlain && !std::filesystem::exists(word, ignored);
}

/// The value in the word behind the option.
bool Parser::readValue(const OptionInfo &option, Given &given) {
  std::string_view word;
  if (next < words.size())
    word = words[next];
  if (option.takes == Takes::Nothing || option.takes == Takes::MaybeText)
    return true;
  if (option.takes == Takes::MaybeWord && !findWord(option, word))
    return true;
  if (option.takes == Takes::MaybeNext &&
      (next == words.size() || word.substr(0, 1) == "-"))
    return true;
  std::string wanted = spell(option) + (option.name.size() == 1 ? " " : "=") +
                       "<" + option.value + ">";
  if (next == words.size())
    return fail(option, "needs a value: " + wanted);
  bool isOption = word.substr(0, 2) == "--" &&
                  findOption(tool, word.substr(2, word.find('=') - 2));
  if (isOption)
    return fail(option, "needs a value: " + wanted + ", but the next word is " +
                            "the option " + std::string(word));
  given.value = word;
  given.hasValue = true;
  given.places.push_back(next++);
  // Lists may have spaces, as in Megatron's commands.
  while (option.takes == Takes::List && next < words.size() &&
         isListWord(words[next], option.areFiles)) {
    if (given.value.empty() || given.value.back() != ',')
      given.value += ",";
    given.value += words[next];
    given.places.push_back(next++);
  }
  return true;
}

/// What a use of an option says: a switch without a value is on.
static std::string getMeaning(const Given &use) {
  bool isOn = !use.hasValue && use.option->takes == Takes::MaybeWord;
  return isOn ? "true" : use.value;
}

bool Parser::isSame(const Given &first, const Given &given) const {
  std::string lhs = getMeaning(first), rhs = getMeaning(given);
  return lhs == rhs || (tool.isSame && !given.option->isFile() &&
                        tool.isSame(given.option->name, lhs, rhs));
}

/// A use that says the same again, or replaces that of a file.
bool Parser::replace(Given &first, Given given) {
  if (!isSame(first, given))
    parsed.notes.push_back("option " + spell(*given.option) + ": is " +
                           quote(getMeaning(given)) + ", in place of " +
                           quote(getMeaning(first)) + " in " + first.file);
  given.places.insert(given.places.begin(), first.places.begin(),
                      first.places.end());
  first = std::move(given);
  return true;
}

bool Parser::addToList(Given &first, const Given &given) {
  if (!first.value.empty() && !given.value.empty())
    first.value += ",";
  first.value += given.value;
  first.places.insert(first.places.end(), given.places.begin(),
                      given.places.end());
  return true;
}

bool Parser::add(Given given) {
  const OptionInfo &option = *given.option;
  last = given;
  // Other names are compared where keys are known, unless one is replaced.
  auto first = std::find_if(
      parsed.options.begin(), parsed.options.end(), [&](const Given &other) {
        bool isBehindFile = !other.file.empty() && other.file != given.file;
        return other.option == &option ||
               (isBehindFile && option.means(*other.option));
      });
  if (first == parsed.options.end() || option.mayRepeat) {
    parsed.options.push_back(std::move(given));
    return true;
  }
  if (isSame(*first, given) ||
      (!first->file.empty() && first->file != given.file))
    return replace(*first, std::move(given));
  if (option.takes == Takes::List)
    return addToList(*first, given);
  auto describe = [](const Given &use) {
    return use.hasValue ? quote(use.value) : std::string("nothing");
  };
  return fail(option, "is given twice, with " + describe(*first) + " and " +
                          describe(given) + ": which one is meant?");
}

/// The words behind an option that is none here are its values, not inputs,
/// unless they name a file.
void Parser::passValue() {
  bool hasValue = words[next].find('=') != std::string::npos;
  ++next;
  last.reset();
  while (!hasValue && next < words.size() &&
         isListWord(words[next], /*areFiles=*/false))
    ++next;
}

bool Parser::readOption() {
  std::string_view text = words[next];
  std::string_view bare = text.substr(text[1] == '-' ? 2 : 1);
  size_t equals = bare.find('=');
  std::string name(bare.substr(0, equals));
  const OptionInfo *option = findOption(tool, name == "h" ? "help" : name);
  if (!option) {
    std::replace(name.begin(), name.end(), '_', '-');
    option = findOption(tool, name);
  }
  if (!option) {
    errors.push_back(explainUnknown(text, name));
    passValue();
    return false;
  }
  Given given = {option, "", false, {next}, getFile(next)};
  ++next;
  if (equals != bare.npos) {
    given.value = bare.substr(equals + 1);
    given.hasValue = true;
    if (option->takes == Takes::Nothing)
      return fail(*option, "takes no value, but got " + quote(given.value));
  } else if (!readValue(*option, given)) {
    return false;
  }
  return checkValue(*option, given) && add(std::move(given));
}

void Parser::addInput() {
  Input input = {words[next], next};
  if (last) {
    input.behind = last->option;
    for (size_t place : last->places)
      input.behindWords +=
          (input.behindWords.empty() ? "" : " ") + words[place];
  }
  parsed.inputs.push_back(std::move(input));
  last.reset();
  ++next;
}

std::vector<std::string> Parser::parse() {
  bool areInputs = false;
  while (next < words.size()) {
    const std::string &word = words[next];
    if (!areInputs && word == "--") {
      areInputs = true;
      last.reset();
      ++next;
    } else if (areInputs || word.size() < 2 || word[0] != '-') {
      addInput();
    } else {
      readOption();
    }
  }
  return errors;
}

const Given *Words::find(std::string_view name) const {
  for (const Given &given : options)
    if (given.option->name == name)
      return &given;
  return nullptr;
}

/// The words behind a list that may belong to it: inputs one behind the other,
/// from number `first` on.
static std::string adviseOnList(const Words &words, size_t first, size_t end) {
  const Input &input = words.inputs[first];
  std::string list = spell(*input.behind) + "=";
  // What the option has itself, in one word or two.
  size_t value = input.behindWords.find_first_of("= ");
  if (value != std::string::npos)
    list += input.behindWords.substr(value + 1);
  while (list.back() == ',')
    list.pop_back();
  for (size_t k = first; k < end; ++k)
    list += "," + words.inputs[k].text;
  return "a list is written with commas, as in " + list;
}

/// The end of the inputs that stand one behind the other from `first` on.
static size_t getEnd(const Words &words, size_t first) {
  size_t end = first + 1;
  while (end < words.inputs.size() &&
         words.inputs[end].word == words.inputs[end - 1].word + 1)
    ++end;
  return end;
}

/// Whether a word that names no file is meant as one.
static bool isMeantAsFile(const std::string &word) {
  return word.find('/') != word.npos || hasInputEnding(word);
}

static bool isBehindList(const Input &input) {
  return input.behind && input.behind->takes == Takes::List &&
         !isMeantAsFile(input.text);
}

std::string reprise::tools::adviseOnInput(const Words &words) {
  if (words.inputs.size() != 1 || !isBehindList(words.inputs.front()))
    return "";
  const Input &input = words.inputs.front();
  return quote(input.text) + " stands behind " + input.behindWords + ": " +
         adviseOnList(words, 0, 1);
}

/// What is wrong if there is more than one input: the word too many, and the
/// option that it stands behind.
static std::optional<std::string> checkInputs(const Tool &tool,
                                              const Words &words) {
  size_t count = words.inputs.size();
  if (count == 0 || (count == 1 && !tool.input.empty()))
    return std::nullopt;
  std::string needs =
      tool.input.empty() ? "needs options alone" : "needs one " + tool.input;
  needs += ", but got " + quote(words.inputs.front().text);
  if (count > 1)
    needs += " and " + quote(words.inputs[1].text);
  // A file of another kind has words that are no options.
  size_t last = words.inputs[count > 1].word;
  if (last < words.files.size() && !words.files[last].empty())
    return needs + "; " + quote(words.inputs[count > 1].text) + " stands in " +
           words.files[last] + ", a file of options";
  for (size_t k = 0; k < count; ++k)
    if (isBehindList(words.inputs[k])) {
      // If there are no others, the last of them is what is read.
      size_t end = getEnd(words, k);
      if (end - k == count && !tool.input.empty())
        --end;
      return needs + "; " + quote(words.inputs[k].text) + " stands behind " +
             words.inputs[k].behindWords + ": " + adviseOnList(words, k, end);
    }
  // A word behind an option that names no file is meant for the option.
  auto stray = std::find_if(
      words.inputs.begin(), words.inputs.end(), [](const Input &input) {
        std::error_code ignored;
        return input.behind && !std::filesystem::exists(input.text, ignored);
      });
  const Input &input =
      stray != words.inputs.end() ? *stray : words.inputs[count > 1];
  if (!input.behind)
    return needs;
  std::error_code ignored;
  if (isMeantAsFile(input.text) &&
      !std::filesystem::exists(input.text, ignored))
    return needs + "; there is no file " + quote(input.text);
  bool takesMore = input.behindWords.find_first_of("= ") == std::string::npos;
  std::string why;
  if (tool.explainForeign)
    why = tool.explainForeign(input.behind->name);
  return needs + "; " + quote(input.text) + " stands behind " +
         input.behindWords +
         (takesMore ? ", which takes no such word" : ", which takes one word") +
         (why.empty() ? "" : ": " + why);
}

/// A word more than the one that help may be about would be about nothing.
static Answer answerHelp(const Tool &tool, const Words &words,
                         const Given &help) {
  if (!help.hasValue)
    return {formatHelp(tool), false};
  // Behind `--help=WORD` others are no words of it.
  bool isOwnWord = help.places.size() > 1;
  for (const Input &input : words.inputs)
    if (isOwnWord && input.behind == help.option)
      return {"option --help: takes one word, but got " + quote(help.value) +
                  " and " + quote(input.text),
              true};
  std::string text = formatHelpAbout(tool, help.value);
  if (text.empty())
    return {"option --help: no option is about " + quote(help.value) +
                "; --help lists all",
            true};
  return {text, false};
}

std::optional<Answer>
reprise::tools::read(const Tool &tool, const std::vector<std::string> &words,
                     Words &parsed, const std::vector<std::string> &files) {
  parsed.all = words;
  parsed.files = files;
  std::vector<std::string> errors = Parser(tool, parsed).parse();
  if (!errors.empty()) {
    std::string text;
    for (const std::string &error : errors)
      text += (text.empty() ? "" : "\nerror: ") + error;
    return Answer{text, true};
  }
  if (const Given *help = parsed.find("help"))
    return answerHelp(tool, parsed, *help);
  if (parsed.find("version"))
    return Answer{formatVersion(tool), false};
  if (const Given *shell = parsed.find("completion"))
    return Answer{formatCompletion(tool, shell->value), false};
  if (std::optional<std::string> error = checkInputs(tool, parsed))
    return Answer{*error, true};
  return std::nullopt;
}
