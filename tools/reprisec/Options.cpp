//===- Options.cpp - What the command line says -----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Options.h"
#include "Budgets.h"
#include "Files.h"
#include "python-free-frontend/Description.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/WithColor.h"
#include <algorithm>
#include <cstdlib>
#include <deque>

using namespace reprise;
using namespace reprise::driver;

//===----------------------------------------------------------------------===//
// Which there are
//===----------------------------------------------------------------------===//

static std::string toDashes(llvm::StringRef name) {
  std::string spelling = name.str();
  llvm::replace(spelling, '_', '-');
  return spelling;
}

/// How the type of a key ends that may have several values.
static constexpr llvm::StringLiteral kOrList = ", or a list";

/// The values of a key that has a few, of its type `one of a, b`.
static std::vector<std::string> getWords(llvm::StringRef type) {
  type.consume_back(kOrList);
  if (!type.consume_front("one of ") && !type.contains(" or "))
    return {};
  std::vector<std::string> words;
  for (llvm::StringRef word :
       llvm::split(type, type.contains(", ") ? ", " : " or "))
    words.push_back(word.str());
  return words;
}

/// What stands for a value in the help: `n`, `flash|unfused`.
static std::string getPlaceholder(llvm::StringRef type) {
  if (std::vector<std::string> words = getWords(type); !words.empty())
    return llvm::join(words, "|");
  return llvm::StringSwitch<std::string>(type)
      .StartsWith("a whole number", "n")
      .StartsWith("a number", "x")
      .Case("a list of words", "a,b")
      .Case("a list of whole numbers", "n,n")
      .Case("a number or a pattern", "n|pattern")
      .Case("a path", "path")
      .Default(type.str());
}

static Takes getTakes(const frontend::KeyInfo &info) {
  if (info.isSwitch)
    return Takes::MaybeWord;
  bool isList = llvm::StringRef(info.type).starts_with("a list of") ||
                llvm::StringRef(info.type).ends_with(kOrList) ||
                info.type == "a number or a pattern";
  return isList ? Takes::List : Takes::Text;
}

/// What the help says of a key.
static std::string getHelp(const frontend::KeyInfo &info) {
  std::string families = info.families.empty() ? "" : info.families + ": ";
  llvm::StringRef value = info.defaultValue;
  if (value.starts_with("required"))
    value = "required";
  return families + info.summary.str() + " (" + value.str() + ")";
}

static constexpr llvm::StringLiteral kMicroBatches =
    "a step has --global-batch-size / --micro-batch-size micro-batches";

/// What other programs have.
static std::vector<tools::ForeignOption> getForeign() {
  return {
      {"O", true, "there are no levels: programs are always optimized"},
      {"c", false, "an object file is made with --emit=obj"},
      {"S", false,
       "the IR of a phase is written with --emit, as in --emit=llvm"},
      {"march", false, "the processor is --cpu, as in --cpu=native"},
      {"mcpu", false, "the processor is --cpu, as in --cpu=native"},
      {"mtune", false, "the processor is --cpu, as in --cpu=native"},
      {"v", false, "the version is shown with --version"},
      // What trainers have.
      {"gradient-accumulation-steps", false, kMicroBatches},
      {"gradient_accumulation_steps", false, kMicroBatches},
  };
}

Options::Options() {
  tool.name = "reprisec";
  tool.overview = "Compiles the description of a transformer into a program "
                  "that trains it.";
  tool.input = "description";
  tool.usage = "<description or IR> [options] [@file with more of them]";
  tool.examples = {
      {"reprisec model.yaml -o train",
       "makes the program train, for: ./train --data corpus.txt"},
      {"reprisec model.yaml --memory-budget=24GiB -o train",
       "recomputes as little as makes it fit"},
      {"reprisec model.yaml --seq-length=4096 --explain",
       "shows what takes the memory, and writes nothing"},
  };
  tool.libraries = "LLVM " LLVM_VERSION_STRING;
  tool.foreign = getForeign();
  tool.findOwnName = [](const std::string &name) {
    std::string key = name;
    llvm::replace(key, '-', '_');
    return toDashes(frontend::findOwnName(key));
  };
  tool.explainForeign = [](const std::string &name) {
    std::string key = name;
    llvm::replace(key, '-', '_');
    return frontend::explainForeignKey(key).str();
  };
  tool.isSame = [](const std::string &name, const std::string &lhs,
                   const std::string &rhs) {
    if (llvm::StringRef(name).ends_with("-budget"))
      return parseBytes(lhs) && parseBytes(lhs) == parseBytes(rhs);
    std::string key = name;
    llvm::replace(key, '-', '_');
    return frontend::isSameText(key, lhs, rhs);
  };
  for (const Topic *topic : getTopics())
    addTopic(*topic);
  addKeys();
  addForeign();
  tools::addCommonOptions(tool);
}

void Options::addTopic(const Topic &topic) {
  tools::Topic shown{topic.title, {}};
  for (const Topic::Entry &entry : topic.entries) {
    tools::OptionInfo info;
    info.name = entry.option->ArgStr.str();
    info.value = entry.option->ValueStr.str();
    if (info.value.empty())
      info.value = llvm::join(entry.words, "|");
    info.help = entry.option->HelpStr.str();
    info.takes = entry.takes;
    info.words = entry.words;
    info.isHidden = entry.option->getOptionHiddenFlag() == cl::Hidden;
    shown.options.push_back(std::move(info));
  }
  tool.topics.push_back(std::move(shown));
}

/// The strings of options live as long as these do.
static llvm::StringRef spell(llvm::StringRef name) {
  static std::deque<std::string> spellings;
  return spellings.emplace_back(toDashes(name));
}

/// Options of Megatron's commands that change nothing, or are refused.
void Options::addForeign() {
  using frontend::ForeignOption;
  for (const ForeignOption &foreign : frontend::listForeignOptions()) {
    bool isList = foreign.kind == ForeignOption::List;
    bool isText = foreign.kind == ForeignOption::Text;
    keys.push_back(std::make_unique<cl::opt<std::string>>(
        spell(foreign.name),
        isText || isList ? cl::ValueRequired : cl::ValueOptional));
    keyNames.push_back(foreign.name.str());
    isRecomputeKey.push_back(false);
    tools::OptionInfo option;
    option.name = keys.back()->ArgStr.str();
    option.value = isList ? "a,b" : "value";
    option.takes = isText   ? Takes::Text
                   : isList ? Takes::List
                            : Takes::MaybeText;
    option.areFiles = isList && foreign.name.ends_with("data_path");
    if (foreign.kind == ForeignOption::Switch) {
      option.takes = Takes::MaybeWord;
      option.words = {"true", "false"};
    }
    option.isHidden = true;
    tool.topics.back().options.push_back(std::move(option));
  }
}

/// One list gives the names, the help and the documentation.
void Options::addKeys() {
  for (const frontend::KeyInfo &info : frontend::listKeys()) {
    std::string title = "Keys of `" + info.section.str() +
                        "` (as options they win over the description)";
    if (tool.topics.back().title != title)
      tool.topics.push_back({title, {}});
    std::vector<std::string> names = {info.name};
    names.insert(names.end(), info.aliases.begin(), info.aliases.end());
    for (auto [index, name] : llvm::enumerate(names)) {
      keys.push_back(std::make_unique<cl::opt<std::string>>(
          spell(name), info.isSwitch ? cl::ValueOptional : cl::ValueRequired));
      keyNames.push_back(name);
      isRecomputeKey.push_back(info.section == "recompute");
      tools::OptionInfo option;
      option.name = keys.back()->ArgStr.str();
      option.value = getPlaceholder(info.type);
      option.help = getHelp(info);
      option.takes = getTakes(info);
      option.words = info.isSwitch ? std::vector<std::string>{"true", "false"}
                                   : getWords(info.type);
      option.isHidden = index > 0;
      option.same = names.front();
      tool.topics.back().options.push_back(std::move(option));
    }
  }
}

//===----------------------------------------------------------------------===//
// Which are given
//===----------------------------------------------------------------------===//

/// A description that is not there may be a word of a list.
static void checkInput(const tools::Words &words) {
  std::string advice = tools::adviseOnInput(words);
  if (advice.empty() || words.inputs.front().text == "-" ||
      llvm::sys::fs::exists(words.inputs.front().text))
    return;
  std::exit(fail("cannot read '" + words.inputs.front().text +
                 "': No such file or directory; " + advice));
}

/// The words of a part of a script: with comments, also behind a word, and
/// lines that a backslash joins.
static void tokenizeScript(llvm::StringRef source, llvm::StringSaver &saver,
                           llvm::SmallVectorImpl<const char *> &words,
                           bool marksEnds) {
  std::string text;
  char quote = 0;
  for (size_t i = 0; i < source.size(); ++i) {
    bool beginsWord = i == 0 || llvm::isSpace(source[i - 1]);
    if (!quote && source[i] == '#' && beginsWord)
      i = std::min(source.find('\n', i), source.size());
    if (i == source.size())
      break;
    char c = source[i];
    if (c == '\n' || c == quote)
      quote = 0;
    else if (!quote && (c == '"' || c == '\''))
      quote = c;
    text += c;
    // What a backslash is before has no meaning of its own.
    if (c == '\\' && i + 1 < source.size())
      text += source[++i];
  }
  cl::tokenizeConfigFile(saver.save(text), saver, words, marksEnds);
}

/// What LLVM says of a file of options, as it is said of others.
static std::string restate(llvm::StringRef message) {
  bool isUnread = message.consume_front("cannot not open file");
  return (isUnread ? "cannot read" + message : message).str();
}

/// An input that stands for a file of options is left where there is no file.
static void checkOptionFiles(const tools::Words &words) {
  for (const tools::Input &input : words.inputs) {
    llvm::StringRef name = input.text;
    if (!name.consume_front("@") || llvm::sys::fs::exists(input.text))
      continue;
    llvm::sys::fs::file_status status;
    std::error_code error = llvm::sys::fs::status(name, status);
    std::exit(fail("cannot read '" + name + "': " + error.message() +
                   "; it is the file that '" + input.text + "' stands for"));
  }
}

/// The words behind the program's name, with those of the files that `@file`
/// stands for, and which of these each is in.
static std::vector<std::string> expand(int argc, char **argv,
                                       std::vector<std::string> &files) {
  std::vector<std::string> all;
  for (const char *word : llvm::ArrayRef(argv, argc).drop_front()) {
    llvm::BumpPtrAllocator allocator;
    llvm::SmallVector<const char *> words = {word};
    cl::ExpansionContext config(allocator, tokenizeScript);
    if (words.front() == llvm::StringRef("@"))
      std::exit(fail("needs the name of a file behind '@'"));
    if (llvm::Error error = config.expandResponseFiles(words))
      std::exit(fail(restate(llvm::toString(std::move(error)))));
    bool isFile = words.size() != 1 || words.front() != word;
    all.insert(all.end(), words.begin(), words.end());
    files.resize(all.size(), isFile ? word : "");
  }
  return all;
}

/// Says what is wrong with the keys that are given, although something else
/// is, too.
void Options::checkKeys() const {
  llvm::SourceMgr sources;
  frontend::DescriptionReader reader(sources);
  for (const tools::Given &given : words.options)
    for (auto [key, name] : llvm::zip(keys, keyNames))
      if (key->ArgStr == given.option->name)
        (void)reader.setOption(name, given.value);
}

void Options::parse(int argc, char **argv) {
  path = argv[0];
  std::vector<std::string> files, given = expand(argc, argv, files);
  std::optional<tools::Answer> answer = tools::read(tool, given, words, files);
  if (!answer || answer->isError)
    checkOptionFiles(words);
  if (answer && answer->isError) {
    fail(answer->text);
    checkKeys();
    std::exit(1);
  }
  if (answer)
    std::exit(failed(writeFile("-", answer->text)));
  checkInput(words);
  if (!words.inputs.empty())
    input = words.inputs.front().text;
  auto &options = cl::getRegisteredOptions();
  for (auto [position, use] : llvm::enumerate(words.options)) {
    cl::Option *option = options.lookup(use.option->name);
    if (option->addOccurrence(position, option->ArgStr, use.value))
      std::exit(1);
  }
  if (!quiet)
    for (const std::string &note : words.notes)
      llvm::WithColor::note() << note << "\n";
}

bool CountParser::parse(cl::Option &option, llvm::StringRef name,
                        llvm::StringRef text, int &value) {
  if (llvm::to_integer(text, value, 10) && value >= 1)
    return false;
  fail("option --" + option.ArgStr +
       ": needs a whole number of at least 1, but " + "got '" + text + "'");
  return true;
}

llvm::StringRef Options::getReport() const {
  const cl::opt<std::string> *files[] = {&planJSON, &report, &trace, &dot};
  for (const cl::opt<std::string> *file : files)
    if (!file->empty())
      return llvm::StringRef(file->ArgStr);
  return explainsPlan() ? llvm::StringRef(explain.ArgStr) : "";
}

std::vector<std::pair<std::string, std::string>> Options::getOutputs() const {
  std::vector<std::pair<std::string, std::string>> outputs;
  for (const Topic *topic : getTopics())
    for (const Topic::Entry &entry : topic->entries)
      if (entry.takes == Takes::OutputFile)
        outputs.push_back(
            {entry.option->ArgStr == "o" ? "-o"
                                         : "--" + entry.option->ArgStr.str(),
             *static_cast<const cl::opt<std::string> *>(entry.option)});
  return outputs;
}

//===----------------------------------------------------------------------===//
// Other command lines
//===----------------------------------------------------------------------===//

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
  std::string command = quote(llvm::sys::path::filename(path));
  for (const std::string &word : words.all)
    command += " " + quote(word);
  return command;
}

std::string Options::getCommandWithout(const cl::Option &option) const {
  std::string command = quote(path);
  const tools::Given *given = words.find(option.ArgStr.str());
  for (auto [place, word] : llvm::enumerate(words.all))
    if (!given || !llvm::is_contained(given->places, place))
      command += " " + quote(word);
  return command;
}

std::string Options::getCommand(llvm::ArrayRef<std::string> recompute) const {
  std::string command =
      quote(llvm::sys::path::filename(path)) + " " + quote(input);
  auto add = [&](llvm::StringRef name, const std::string &value) {
    command += " " + quote(("--" + name + "=" + value).str());
  };
  if (!from.empty())
    add(from.ArgStr, from);
  for (const auto *option :
       {&overlap, &inference, &target, &cudaArch, &biasGradients})
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
