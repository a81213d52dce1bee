//===- StepText.cpp - Steps as text ---------------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A line is a statement: what it declares, a name, and words `key` or
// `key=value`. Which words there are is a table for each kind of statement.
//
//===----------------------------------------------------------------------===//

#include "reprise/Solver/StepText.h"

#include <algorithm>
#include <charconv>
#include <istream>
#include <ostream>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

using namespace reprise::solver;

static constexpr std::string_view kBlanks = " \t\r";
/// What ends a name, or is part of another word.
static constexpr std::string_view kNoName = " \t\r\n,=:";
static constexpr std::string_view kPhases[] = {"forward", "backward", "update"};
static constexpr std::string_view kRules[] = {"free", "keep", "drop"};

/// The most that a number may be, and all bytes together.
static constexpr int64_t kMost = int64_t(1) << 50;
static constexpr int64_t kMostBytes = int64_t(1) << 61;

static std::string quote(std::string_view text) {
  return "'" + std::string(text) + "'";
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace {
struct Word {
  std::string_view key, value;
  bool hasValue;
  int64_t column; ///< of the key, from 1 on, in bytes

  int64_t getValueColumn() const { return column + int64_t(key.size()) + 1; }
};

class Reader {
public:
  explicit Reader(StepGraph &graph) : graph(graph) {}
  std::optional<TextError> read(std::istream &in);

private:
  /// A word of a statement about a `T`, and what it says of it.
  template <typename T>
  struct Key {
    std::string_view name;
    bool hasValue;
    bool (*read)(Reader &reader, const Word &word, T &into);
  };
  static const Key<StepGraph> stepKeys[];
  static const Key<StepValue> valueKeys[];
  static const Key<StepOp> opKeys[];

  /// The name of the value that another one is a part of.
  struct Whole {
    int64_t value;
    std::string name;
    int64_t line, column;
  };

  void split(std::string_view text);
  bool readStatement();
  bool readValue();
  bool readOp(StepPhase phase);
  template <typename T, size_t N>
  bool readKeys(const Key<T> (&keys)[N], size_t first, T &into);

  bool readNumber(const Word &word, int64_t lowest, int64_t &number);
  bool readSeconds(const Word &word, double &seconds);
  bool readRule(const Word &word, StepValue &value);
  bool readWhole(const Word &word, StepValue &value);
  bool readNames(const Word &word, std::vector<int64_t> &values);
  bool readSharing(const Word &word, StepOp &op, bool isForced);
  bool findValue(std::string_view name, int64_t column, int64_t &value);
  bool finish();

  bool fail(int64_t column, std::string message) {
    error = TextError{line, column, std::move(message)};
    return false;
  }

  StepGraph &graph;
  std::vector<Word> words; ///< of the line
  int64_t line = 0;
  int64_t bytes = 0; ///< of all values and workspaces
  std::unordered_map<std::string, int64_t> numberOf; ///< of values, by name
  std::vector<Whole> wholes;
  std::vector<int64_t> valueLines, opLines;
  std::optional<TextError> error;
};
} // namespace

const Reader::Key<StepGraph> Reader::stepKeys[] = {
    {"alignment", true,
     [](Reader &reader, const Word &word, StepGraph &graph) {
       return reader.readNumber(word, 1, graph.alignment);
     }},
    {"micro_batches", true,
     [](Reader &reader, const Word &word, StepGraph &graph) {
       return reader.readNumber(word, 1, graph.microBatches);
     }}};

const Reader::Key<StepValue> Reader::valueKeys[] = {
    {"bytes", true,
     [](Reader &reader, const Word &word, StepValue &value) {
       return reader.readNumber(word, 0, value.bytes);
     }},
    {"rule", true,
     [](Reader &reader, const Word &word, StepValue &value) {
       return reader.readRule(word, value);
     }},
    {"outlives", false,
     [](Reader &, const Word &, StepValue &value) {
       return value.outlives = true;
     }},
    {"returned", false,
     [](Reader &, const Word &, StepValue &value) {
       return value.isReturned = true;
     }},
    {"part_of", true,
     [](Reader &reader, const Word &word, StepValue &value) {
       return reader.readWhole(word, value);
     }},
    {"view_of", true, [](Reader &reader, const Word &word, StepValue &value) {
       value.isView = true;
       return reader.readWhole(word, value);
     }}};

const Reader::Key<StepOp> Reader::opKeys[] = {
    {"layer", true,
     [](Reader &reader, const Word &word, StepOp &op) {
       return reader.readNumber(word, 0, op.layer);
     }},
    {"seconds", true,
     [](Reader &reader, const Word &word, StepOp &op) {
       return reader.readSeconds(word, op.seconds);
     }},
    {"once", false,
     [](Reader &, const Word &, StepOp &op) {
       op.isReplayable = false;
       return true;
     }},
    {"workspace", true,
     [](Reader &reader, const Word &word, StepOp &op) {
       return reader.readNumber(word, 0, op.workspace);
     }},
    {"reads", true,
     [](Reader &reader, const Word &word, StepOp &op) {
       return reader.readNames(word, op.reads);
     }},
    {"writes", true,
     [](Reader &reader, const Word &word, StepOp &op) {
       return reader.readNames(word, op.writes);
     }},
    {"in_place", true,
     [](Reader &reader, const Word &word, StepOp &op) {
       return reader.readSharing(word, op, /*isForced=*/true);
     }},
    {"may_share", true, [](Reader &reader, const Word &word, StepOp &op) {
       return reader.readSharing(word, op, /*isForced=*/false);
     }}};

/// Up to a word that begins with `#`, which begins a comment.
void Reader::split(std::string_view text) {
  words.clear();
  size_t at = 0;
  while ((at = text.find_first_not_of(kBlanks, at)) != text.npos &&
         text[at] != '#') {
    std::string_view word =
        text.substr(at, text.find_first_of(kBlanks, at) - at);
    size_t equals = word.find('=');
    bool hasValue = equals != word.npos;
    words.push_back({word.substr(0, equals),
                     hasValue ? word.substr(equals + 1) : std::string_view(),
                     hasValue, int64_t(at) + 1});
    at += word.size();
  }
}

template <typename T, size_t N>
bool Reader::readKeys(const Key<T> (&keys)[N], size_t first, T &into) {
  bool isGiven[N] = {};
  for (size_t k = first; k < words.size(); ++k) {
    const Word &word = words[k];
    auto key =
        std::find_if(std::begin(keys), std::end(keys),
                     [&](const auto &key) { return key.name == word.key; });
    if (key == std::end(keys)) {
      std::string names;
      for (const Key<T> &known : keys)
        names += (names.empty() ? "" : ", ") + std::string(known.name);
      return fail(word.column,
                  "has no use for " + quote(word.key) + "; words are " + names);
    }
    if (std::exchange(isGiven[key - keys], true))
      return fail(word.column, quote(word.key) + " is there twice");
    if (key->hasValue != word.hasValue)
      return fail(word.column,
                  quote(word.key) + (key->hasValue ? " needs '=' and a value"
                                                   : " takes no value"));
    if (!key->read(*this, word, into))
      return false;
  }
  return true;
}

bool Reader::readNumber(const Word &word, int64_t lowest, int64_t &number) {
  const char *end = word.value.data() + word.value.size();
  auto [rest, code] = std::from_chars(word.value.data(), end, number);
  if (code == std::errc() && rest == end && number >= lowest && number <= kMost)
    return true;
  return fail(word.getValueColumn(),
              quote(word.key) + " needs a whole number from " +
                  std::to_string(lowest) + " to " + std::to_string(kMost) +
                  ", but got " + quote(word.value));
}

bool Reader::readSeconds(const Word &word, double &seconds) {
  constexpr double kMostSeconds = 1e12;
  const char *end = word.value.data() + word.value.size();
  auto [rest, code] = std::from_chars(word.value.data(), end, seconds);
  if (code == std::errc() && rest == end && seconds >= 0 &&
      seconds <= kMostSeconds)
    return true;
  return fail(word.getValueColumn(),
              quote(word.key) + " needs a number from 0 to 1e12, but got " +
                  quote(word.value));
}

bool Reader::readRule(const Word &word, StepValue &value) {
  auto rule = std::find(std::begin(kRules), std::end(kRules), word.value);
  if (rule == std::end(kRules))
    return fail(word.getValueColumn(),
                "'rule' needs free, keep or drop, but got " +
                    quote(word.value));
  value.rule = StepValue::Rule(rule - kRules);
  return true;
}

/// The whole may be declared behind its parts.
bool Reader::readWhole(const Word &word, StepValue &) {
  int64_t value = graph.values.size();
  if (!wholes.empty() && wholes.back().value == value)
    return fail(word.column, "needs one of 'part_of' and 'view_of'");
  wholes.push_back(
      {value, std::string(word.value), line, word.getValueColumn()});
  return true;
}

bool Reader::findValue(std::string_view name, int64_t column, int64_t &value) {
  auto known = numberOf.find(std::string(name));
  if (known == numberOf.end())
    return fail(column,
                "needs a value that is declared above, but got " + quote(name));
  value = known->second;
  return true;
}

/// "a,b,c".
bool Reader::readNames(const Word &word, std::vector<int64_t> &values) {
  size_t at = 0;
  while (true) {
    std::string_view name =
        word.value.substr(at, word.value.find(',', at) - at);
    if (!findValue(name, word.getValueColumn() + int64_t(at),
                   values.emplace_back()))
      return false;
    at += name.size() + 1;
    if (at > word.value.size())
      return true;
  }
}

/// "a:b,c:d": operands and results of `op`, which come before the word.
bool Reader::readSharing(const Word &word, StepOp &op, bool isForced) {
  auto find = [&](const std::vector<int64_t> &values, std::string_view name,
                  size_t at, const char *what, int64_t &place) {
    int64_t column = word.getValueColumn() + int64_t(at), value;
    if (!findValue(name, column, value))
      return false;
    auto found = std::find(values.begin(), values.end(), value);
    place = found - values.begin();
    return found != values.end() ||
           fail(column, quote(name) + " is not what the op " + what);
  };
  for (size_t at = 0; at <= word.value.size();) {
    std::string_view pair =
        word.value.substr(at, word.value.find(',', at) - at);
    size_t colon = pair.find(':');
    if (colon == pair.npos)
      return fail(word.getValueColumn() + int64_t(at),
                  quote(word.key) + " needs READ:WRITTEN, but got " +
                      quote(pair));
    StepOp::Sharing &sharing = op.sharing.emplace_back();
    sharing.isForced = isForced;
    if (!find(op.reads, pair.substr(0, colon), at, "reads", sharing.read) ||
        !find(op.writes, pair.substr(colon + 1), at + colon + 1, "writes",
              sharing.write))
      return false;
    at += pair.size() + 1;
  }
  return true;
}

bool Reader::readValue() {
  StepValue value;
  value.name = words[1].key;
  auto [known, isNew] =
      numberOf.try_emplace(value.name, int64_t(graph.values.size()));
  if (!isNew)
    return fail(words[1].column, "needs a name of its own, but " +
                                     quote(value.name) + " is that of line " +
                                     std::to_string(valueLines[known->second]));
  if (!readKeys(valueKeys, 2, value))
    return false;
  bytes += value.bytes + graph.alignment;
  graph.values.push_back(std::move(value));
  valueLines.push_back(line);
  return true;
}

bool Reader::readOp(StepPhase phase) {
  StepOp op;
  op.name = words[1].key;
  op.phase = phase;
  if (!readKeys(opKeys, 2, op))
    return false;
  bytes += op.workspace + graph.alignment;
  graph.ops.push_back(std::move(op));
  opLines.push_back(line);
  return true;
}

bool Reader::readStatement() {
  const Word &kind = words.front();
  if (kind.key == "step" && !kind.hasValue) {
    if (!graph.values.empty() || !graph.ops.empty())
      return fail(kind.column, "'step' needs to come before values and ops");
    return readKeys(stepKeys, 1, graph);
  }
  auto phase = std::find(std::begin(kPhases), std::end(kPhases), kind.key);
  if (kind.hasValue || (kind.key != "value" && phase == std::end(kPhases)))
    return fail(kind.column, "needs step, value, forward, backward or update, "
                             "but got " +
                                 quote(kind.key));
  if (words.size() < 2 || words[1].hasValue ||
      words[1].key.find_first_of(kNoName) != words[1].key.npos)
    return fail(words.size() < 2 ? kind.column : words[1].column,
                quote(kind.key) +
                    " needs a name without ',', '=' and ':' behind it");
  bool isRead =
      kind.key == "value" ? readValue() : readOp(StepPhase(phase - kPhases));
  return isRead &&
         (bytes <= kMostBytes ||
          fail(kind.column, "needs values and workspaces of at most " +
                                std::to_string(kMostBytes) + " bytes in all"));
}

/// What is known when all lines are read.
bool Reader::finish() {
  for (const Whole &whole : wholes) {
    line = whole.line;
    auto known = numberOf.find(whole.name);
    if (known == numberOf.end() || known->second == whole.value)
      return fail(whole.column,
                  "needs another value, but got " + quote(whole.name));
    graph.values[whole.value].whole = known->second;
  }
  if (graph.ops.empty()) {
    line = std::max<int64_t>(line, 1);
    return fail(1, "needs a step with at least one op");
  }
  std::optional<StepFault> fault = findFault(graph);
  if (!fault)
    return true;
  line = fault->op >= 0      ? opLines[fault->op]
         : fault->value >= 0 ? valueLines[fault->value]
                             : 1;
  return fail(1, fault->message);
}

std::optional<TextError> Reader::read(std::istream &in) {
  graph = StepGraph();
  for (std::string text; std::getline(in, text);) {
    ++line;
    split(text);
    if (!words.empty() && !readStatement())
      return error;
  }
  finish();
  return error;
}

std::optional<TextError> reprise::solver::readStep(std::istream &in,
                                                   StepGraph &graph) {
  return Reader(graph).read(in);
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// A name that can stand in a line.
static std::string getName(std::string name) {
  for (char &c : name)
    if (kNoName.find(c) != kNoName.npos)
      c = '_';
  if (name.empty() || name.front() == '#')
    name.insert(name.begin(), '_');
  return name;
}

/// Of values, each its own.
static std::vector<std::string> getNames(const StepGraph &graph) {
  std::vector<std::string> names;
  std::unordered_map<std::string, int64_t> numbers;
  std::unordered_set<std::string> taken;
  for (const StepValue &value : graph.values) {
    std::string stem = getName(value.name), name = stem;
    for (int64_t &number = numbers[stem]; !taken.insert(name).second;)
      name = stem + "~" + std::to_string(++number + 1);
    names.push_back(std::move(name));
  }
  return names;
}

/// The fewest digits that are this number again.
static std::string format(double number) {
  char digits[32];
  auto [end, code] = std::to_chars(digits, digits + sizeof digits, number);
  return std::string(digits, end);
}

static void writeValue(std::ostream &out, const StepValue &value,
                       const std::vector<std::string> &names, size_t number) {
  out << "value " << names[number] << " bytes=" << value.bytes;
  if (value.rule != StepValue::Rule::Keep)
    out << " rule=" << kRules[size_t(value.rule)];
  if (value.outlives)
    out << " outlives";
  if (value.isReturned)
    out << " returned";
  if (value.whole >= 0)
    out << (value.isView ? " view_of=" : " part_of=") << names[value.whole];
  out << '\n';
}

static void writeOp(std::ostream &out, const StepOp &op,
                    const std::vector<std::string> &names) {
  out << kPhases[size_t(op.phase)] << ' ' << getName(op.name);
  if (op.layer >= 0)
    out << " layer=" << op.layer;
  if (op.seconds > 0)
    out << " seconds=" << format(op.seconds);
  if (!op.isReplayable)
    out << " once";
  if (op.workspace > 0)
    out << " workspace=" << op.workspace;
  for (auto [key, values] :
       {std::pair(" reads=", &op.reads), std::pair(" writes=", &op.writes)})
    for (size_t k = 0; k < values->size(); ++k)
      out << (k ? "," : key) << names[(*values)[k]];
  for (auto [key, isForced] :
       {std::pair(" in_place=", true), std::pair(" may_share=", false)}) {
    const char *before = key;
    for (const StepOp::Sharing &sharing : op.sharing)
      if (sharing.isForced == isForced) {
        out << before << names[op.reads[sharing.read]] << ':'
            << names[op.writes[sharing.write]];
        before = ",";
      }
  }
  out << '\n';
}

void reprise::solver::writeStep(std::ostream &out, const StepGraph &graph) {
  std::vector<std::string> names = getNames(graph);
  out << "step alignment=" << graph.alignment
      << " micro_batches=" << graph.microBatches << '\n';
  for (size_t number = 0; number < graph.values.size(); ++number)
    writeValue(out, graph.values[number], names, number);
  for (const StepOp &op : graph.ops)
    writeOp(out, op, names);
}
