//===- Values.cpp - From what is written to what is meant -------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/Keys.h"

#include "llvm/ADT/APInt.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/Unicode.h"

#include <cmath>
#include <cstdlib>
#include <limits>

using namespace llvm;
using namespace reprise::frontend;

//===----------------------------------------------------------------------===//
// Diagnostics
//===----------------------------------------------------------------------===//

/// With `?` for each byte that is no printable text, so that all others stay in
/// their columns.
static std::string makePrintable(StringRef text) {
  std::string result;
  const UTF8 *at = text.bytes_begin(), *end = text.bytes_end();
  while (at != end) {
    const UTF8 *begin = at;
    UTF32 character = 0;
    bool isText = convertUTF8Sequence(&at, end, &character, strictConversion) ==
                  conversionOK;
    if (!isText)
      at = begin + 1;
    if (isText && (character == '\t' || sys::unicode::isPrintable(character)))
      result.append(begin, at);
    else
      result.append(at - begin, '?');
  }
  return result;
}

SMDiagnostic reprise::frontend::restate(const SMDiagnostic &given,
                                        StringRef message) {
  return SMDiagnostic(
      *given.getSourceMgr(), given.getLoc(), makePrintable(given.getFilename()),
      given.getLineNo(), given.getColumnNo(), given.getKind(),
      makePrintable(message), makePrintable(given.getLineContents()),
      given.getRanges());
}

void Diagnostics::print(Origin origin, SourceMgr::DiagKind kind,
                        const Twine &message) {
  std::string text = message.str();
  printing = true;
  if (origin.location.isValid())
    sources.PrintMessage(
        errs(), restate(sources.GetMessage(origin.location, kind, ""), text));
  else
    sources.PrintMessage(errs(), SMDiagnostic("", kind, makePrintable(text)));
  printing = false;
}

static std::string qualify(const Key &key, Origin origin,
                           const Twine &message) {
  if (!origin.isOption())
    return ("'" + key.name + "' " + message).str();
  return ("option --" + origin.option + ": " + message).str();
}

void Diagnostics::error(const Key &key, Origin origin, const Twine &message) {
  error(origin, qualify(key, origin, message));
}

void Diagnostics::warning(const Key &key, Origin origin, const Twine &message) {
  warning(origin, qualify(key, origin, message));
}

void Diagnostics::warnTogether(const Origin &origin, StringRef name,
                               const Twine &one, const Twine &many) {
  assert(shared && "nobody would print them");
  std::string text = one.str();
  auto same = [&](const SharedWarning &warning) { return warning.one == text; };
  auto known = find_if(*shared, same);
  if (known == shared->end())
    known = shared->insert(shared->end(), {text, many.str(), origin, {}});
  if (!is_contained(known->names, name))
    known->names.push_back(name.str());
}

void Diagnostics::noEffect(const Origin &origin, StringRef name,
                           const Twine &why) {
  if (origin.isOption())
    warnTogether(origin, "--" + origin.option, "option {}: has no effect" + why,
                 "options {}: have no effect" + why);
  else
    warnTogether(origin, ("'" + name + "'").str(), "{} has no effect" + why,
                 "{} have no effect" + why);
}

void Diagnostics::printShared() {
  for (SharedWarning &warning : std::exchange(*shared, {})) {
    std::vector<std::string> &names = warning.names;
    bool isOne = names.size() == 1;
    std::string list = names.back(), text = isOne ? warning.one : warning.many;
    names.pop_back();
    if (!isOne)
      list = join(names, ", ") + " and " + list;
    text.replace(text.find("{}"), 2, list);
    this->warning(warning.first, text);
  }
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

std::string reprise::frontend::describe(const GivenValue &value) {
  switch (value.kind) {
  case GivenValue::Null:
    return "nothing";
  case GivenValue::Plain:
    return "'" + value.text + "'";
  case GivenValue::Quoted:
    return "the text \"" + value.text + "\"";
  case GivenValue::List:
    return "a list";
  case GivenValue::Map:
    return "a section";
  }
  llvm_unreachable("all kinds are handled");
}

std::string reprise::frontend::describeBare(const GivenValue &value) {
  return value.kind == GivenValue::Plain ? value.text : describe(value);
}

bool reprise::frontend::isNull(StringRef word) {
  return is_contained({"", "~", "null", "Null", "NULL"}, word);
}

/// True and false of YAML's core schema.
static std::optional<bool> parseTruth(StringRef word) {
  if (is_contained({"true", "True", "TRUE"}, word))
    return true;
  if (is_contained({"false", "False", "FALSE"}, word))
    return false;
  return std::nullopt;
}

/// Which bound the number is out of, in the words of `describeType`; empty if
/// none. `isZero` says that it was written as 0, and did not underflow. The
/// graph is f32: what rounds to a bound is on it.
static std::string findBrokenBound(const Key &key, double number, bool isZero) {
  float rounded = static_cast<float>(number);
  bool isPositive = key.bound == Bound::Positive;
  bool isRate = key.bound == Bound::Rate;
  if ((number < 0 && key.bound != Bound::None) || (isZero && isPositive) ||
      (number >= 1 && isRate))
    return describeType(key);
  if (isRate && rounded >= 1)
    return "a number that is below 1 in f32 too";
  if (isPositive && rounded < std::numeric_limits<float>::min())
    return "a number of at least 1.17549435e-38, the smallest normal f32";
  if (!std::isfinite(rounded))
    return "a number of at most 3.40282347e+38, the largest f32";
  return "";
}

/// A whole number of YAML's core schema, with its sign apart: decimal digits,
/// or others after `0x` or `0o`. The radix; 0 if it is none.
static unsigned splitWhole(StringRef text, bool &isNegative,
                           StringRef &digits) {
  isNegative = text.consume_front("-");
  bool hasSign = isNegative || text.consume_front("+");
  unsigned radix = 10;
  if (!hasSign && text.consume_front("0x"))
    radix = 16;
  else if (!hasSign && text.consume_front("0o"))
    radix = 8;
  digits = text;
  bool isWhole = !text.empty() &&
                 all_of(text, [&](char c) { return hexDigitValue(c) < radix; });
  return isWhole ? radix : 0;
}

/// Whether it is a finite number of YAML's core schema in decimal digits:
/// `[-+]? (\. [0-9]+ | [0-9]+ (\. [0-9]*)?) ([eE] [-+]? [0-9]+)?`. Each default
/// of each key is read in each compilation, for which Regex is slow.
static bool isDecimal(StringRef text) {
  auto consumeSign = [&] {
    return text.consume_front("-") || text.consume_front("+");
  };
  auto consumeDigits = [&] {
    size_t count = text.take_while(isDigit).size();
    text = text.drop_front(count);
    return count;
  };
  consumeSign();
  size_t digits = consumeDigits();
  if (text.consume_front("."))
    digits += consumeDigits();
  if (digits == 0)
    return false;
  if (text.consume_front_insensitive("e")) {
    consumeSign();
    if (consumeDigits() == 0)
      return false;
  }
  return text.empty();
}

/// A number of YAML's core schema, infinite ones included.
static std::optional<double> parseNumber(StringRef text) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  StringRef name = text.drop_while([](char c) { return c != '.'; });
  if (is_contained({".inf", ".Inf", ".INF"}, name) &&
      is_contained({"", "-", "+"}, text.drop_back(name.size())))
    return text.starts_with("-") ? -infinity : infinity;
  bool isNegative;
  StringRef digits;
  APInt whole;
  if (unsigned radix = splitWhole(text, isNegative, digits);
      radix != 0 && radix != 10 && !digits.getAsInteger(radix, whole))
    return whole.roundToDouble();
  if (!isDecimal(text))
    return std::nullopt;
  return strtod(text.str().c_str(), nullptr);
}

/// Whether all digits before the exponent are zeros.
static bool isWrittenAsZero(StringRef text) {
  return text.find_first_of("123456789") >= text.find_first_of("eE");
}

/// `needed` says what the key needs, if that is not its type.
static std::optional<int64_t> parseWholeNumber(const Key &key,
                                               const GivenValue &value,
                                               Diagnostics &diagnostics,
                                               StringRef needed = "") {
  int64_t least = key.bound == Bound::Positive ? 1 : 0, number = 0;
  bool isNegative = false;
  StringRef digits;
  unsigned radix = value.kind == GivenValue::Plain
                       ? splitWhole(value.text, isNegative, digits)
                       : 0;
  if (radix != 0) {
    bool overflows = digits.getAsInteger(radix, number);
    if (isNegative)
      number = -number;
    if (!overflows && number >= least && number <= key.most)
      return number;
    if (!isNegative && (overflows || number > key.most)) {
      diagnostics.error(key, value.origin,
                        "needs a whole number of at most " + Twine(key.most) +
                            ", but got '" + value.text + "'");
      return std::nullopt;
    }
  }
  diagnostics.error(
      key, value.origin,
      "needs " + (needed.empty() ? describeType(key) : needed.str()) +
          ", but got " + describe(value) + suggestSpelling(key, value));
  return std::nullopt;
}

/// What an item of a key that has one or several needs, or the only one.
static std::string describeItem(const Key &key, const GivenValue &item) {
  std::string type = describeType(key);
  StringRef one = type;
  return item.kind == GivenValue::List && one.consume_back(", or a list")
             ? (one + " in its list").str()
             : type;
}

static std::optional<double>
parseNumber(const Key &key, const GivenValue &value, Diagnostics &diagnostics) {
  std::optional<double> number;
  if (value.kind == GivenValue::Plain)
    number = parseNumber(value.text);
  std::string needs =
      number ? findBrokenBound(key, *number,
                               *number == 0 && isWrittenAsZero(value.text))
             : describeItem(key, value);
  if (needs.empty())
    return number;
  diagnostics.error(key, value.origin,
                    "needs " + needs + ", but got " + describe(value) +
                        (number ? "" : suggestSpelling(key, value)));
  return std::nullopt;
}

static void assignList(const Key &key, const GivenValue &value,
                       std::optional<std::vector<std::string>> &list,
                       Diagnostics &diagnostics) {
  std::vector<std::string> words;
  for (const GivenValue &item : value.items) {
    bool isWord =
        item.kind == GivenValue::Plain || item.kind == GivenValue::Quoted;
    if (!isWord || item.text.empty())
      return diagnostics.error(key, item.origin,
                               "needs a list of words, but got " +
                                   (isWord ? "nothing" : describe(item)) +
                                   " in it");
    words.push_back(item.text);
  }
  list = std::move(words);
}

static void assignNumbers(const Key &key, const GivenValue &value,
                          std::vector<int64_t> &list,
                          Diagnostics &diagnostics) {
  std::vector<int64_t> numbers;
  for (const GivenValue &item : value.items) {
    std::optional<int64_t> number =
        parseWholeNumber(key, item, diagnostics, "whole numbers");
    if (!number)
      return;
    numbers.push_back(*number);
  }
  list = std::move(numbers);
}

/// What a key of one value or several has.
static ArrayRef<GivenValue> getItems(const GivenValue &value) {
  return value.kind == GivenValue::List ? ArrayRef(value.items) : value;
}

static void assignNumbers(const Key &key, const GivenValue &value,
                          std::vector<double> &list, Diagnostics &diagnostics) {
  std::vector<double> numbers;
  for (const GivenValue &item : getItems(value)) {
    std::optional<double> number = parseNumber(key, item, diagnostics);
    if (!number)
      return;
    numbers.push_back(*number);
  }
  list = std::move(numbers);
}

namespace {
/// Words of other programs for the value of a key.
struct OtherWord {
  StringLiteral key, words;
  StringLiteral note; ///< Empty if the nearest word here means another thing.
};
} // namespace

static constexpr OtherWord kOtherWords[] = {
    // Architectures of their own, whatever their names are like.
    {"model_type",
     "chatglm|deepseek|gemma|gemma2|gemma3|glm|glm4|gpt_neo|gpt_neox|gpt_oss|"
     "gptj|llama4|llava|ministral|mistral3|mllama|olmo|olmo3|olmoe|"
     "qwen|qwen2_5_vl|qwen2_vl|qwen3_next|qwen3_vl|vaultgemma",
     ""},
    {"model_type", "aquila|exaone|internlm2|phi3|yi",
     "; llama is its architecture: its keys are to be written in the section "
     "'model', and its weights have other names"},
    {"model_type", "gpt3",
     "; gpt2 is its architecture, but for GPT-3's sparse attention"},
    {"activation_function",
     "gelu_accurate|gelu_fast|gelu_pytorch|gelu_tanh|openai-gelu",
     "; gelu_new is GELU in its tanh form"},
    {"activation_function", "relu|silu|swish|quick_gelu", ""},
    {"hidden_act", "swish", "; did you mean 'silu'?"},
    {"hidden_act", "gelu|relu", ""},
    {"hidden_act", "relu2", "; gpt2 has it, whose MLP has no gate"},
    {"attention", "flash_attention|flash_attention_2|flash_attn|sdpa",
     "; did you mean 'flash'?"},
    {"attention", "eager|math", "; did you mean 'unfused'?"},
    {"precision", "bfloat16|bf16-mixed", "; did you mean 'bf16'?"},
    {"precision", "32|32-true|float32|single", "; did you mean 'fp32'?"},
    {"precision", "16|16-mixed|float16|fp16|half",
     "; bf16 has as many bits, and the range of fp32"},
    {"optimizer", "adamw_torch|distributed_fused_adam|fused_adam",
     "; adamw is Adam with decoupled weight decay"},
    {"lr_decay_style", "cosine_annealing|CosineAnnealing",
     "; did you mean 'cosine'?"},
    {"rope_type", "dynamic",
     "; its angles grow with the length of the text at hand, but a training "
     "has one table of angles"},
    {"rope_type", "longrope|su",
     "; it has angles for short and for long texts, but a training has one "
     "table of angles"},
};

/// What a word means that is refused, or the one that was misspelt.
static std::string explainWord(const Key &key, const GivenValue &value,
                               ArrayRef<StringRef> words) {
  for (const OtherWord &other : kOtherWords)
    if (other.key == key.name &&
        is_contained(splitWords(other.words), value.text))
      return other.note.str();
  if (key.name == "model_type")
    for (const Family *family : allFamilies())
      if (is_contained(splitWords(family->otherNames), value.text))
        return ("; did you mean '" + family->name + "'?").str();
  if (value.kind == GivenValue::Quoted && isNull(value.text))
    return "; without quotes it is null, as if the key were left out";
  bool isNone = is_contained({"none", "None", "no", "off"}, value.text);
  if (isNone && key.need == Need::Unset)
    return value.origin.isOption() ? "; without a value there is none"
                                   : "; null is none";
  if (StringRef(value.text).equals_insensitive("null"))
    return "";
  return suggest(value.text, words);
}

/// The text of `value`; a switch that has words for both ways, on and off, may
/// also be true or false, as YAML has them. Megatron's Adam is adamw.
static std::string getWord(const Key &key, const GivenValue &value,
                           ArrayRef<StringRef> words) {
  std::optional<bool> truth;
  if (key.name == "optimizer" && value.text == "adam")
    return "adamw";
  if (value.kind == GivenValue::Plain && is_contained(words, "on"))
    truth = parseTruth(value.text);
  return truth ? (*truth ? "on" : "off") : value.text;
}

/// The digits of a whole number, without its sign.
static std::optional<APInt> parseDigits(StringRef text) {
  bool isNegative;
  StringRef digits;
  APInt whole;
  unsigned radix = splitWhole(text, isNegative, digits);
  if (radix == 0 || digits.getAsInteger(radix, whole))
    return std::nullopt;
  return whole;
}

/// Whether two scalars without quotes are one number, or one truth.
static bool isSameScalar(StringRef lhs, StringRef rhs) {
  if (std::optional<bool> truth = parseTruth(lhs))
    return truth == parseTruth(rhs);
  std::optional<double> left = parseNumber(lhs), right = parseNumber(rhs);
  if (!left || !right || *left != *right)
    return false;
  // Near whole numbers of 64 bits are one double.
  std::optional<APInt> digits = parseDigits(lhs), others = parseDigits(rhs);
  return !digits || !others || APInt::isSameValue(*digits, *others);
}

bool reprise::frontend::isSameValue(const Key &key, const GivenValue &lhs,
                                    const GivenValue &rhs) {
  auto isScalar = [](const GivenValue &value) {
    return value.kind == GivenValue::Plain || value.kind == GivenValue::Quoted;
  };
  if (!isScalar(lhs) || !isScalar(rhs))
    return lhs.kind == rhs.kind && lhs.items.size() == rhs.items.size() &&
           all_of(zip(lhs.items, rhs.items), [&](auto pair) {
             return isSameValue(key, std::get<0>(pair), std::get<1>(pair));
           });
  Description none;
  Field field = key.field(none);
  SmallVector<StringRef> words = splitWords(key.words);
  if (std::holds_alternative<std::string *>(field) ||
      std::holds_alternative<std::vector<std::string> *>(field) ||
      std::holds_alternative<std::optional<std::vector<std::string>> *>(field))
    return getWord(key, lhs, words) == getWord(key, rhs, words);
  return lhs.kind == rhs.kind &&
         (lhs.text == rhs.text ||
          (lhs.kind == GivenValue::Plain && isSameScalar(lhs.text, rhs.text)));
}

bool reprise::frontend::isSameText(StringRef name, StringRef lhs,
                                   StringRef rhs) {
  const Key *key = findKey(name);
  return key && isSameValue(*key, {GivenValue::Plain, lhs.str(), {}, {}},
                            {GivenValue::Plain, rhs.str(), {}, {}});
}

/// Each is one of the key's words.
static void assignWords(const Key &key, const GivenValue &value,
                        std::vector<std::string> &list,
                        Diagnostics &diagnostics) {
  SmallVector<StringRef> words = splitWords(key.words);
  std::vector<std::string> given;
  for (const GivenValue &item : getItems(value)) {
    if (!is_contained(words, item.text))
      return diagnostics.error(key, item.origin,
                               "needs " + describeItem(key, item) +
                                   ", but got " + describe(item) +
                                   explainWord(key, item, words));
    if (is_contained(given, item.text))
      return diagnostics.error(key, item.origin,
                               "needs each word once, but got '" + item.text +
                                   "' twice");
    given.push_back(item.text);
  }
  list = std::move(given);
}

void reprise::frontend::assign(const Key &key, const GivenValue &value,
                               Description &description,
                               Diagnostics &diagnostics) {
  if (value.kind == GivenValue::Null)
    return;
  auto refuse = [&](const Twine &hint = "") {
    diagnostics.error(key, value.origin,
                      "needs " + describeType(key) + ", but got " +
                          describe(value) + hint);
  };

  Field field = key.field(description);
  if (auto **whole = std::get_if<int64_t *>(&field)) {
    if (auto number = parseWholeNumber(key, value, diagnostics))
      **whole = *number;
    return;
  }
  if (auto **whole = std::get_if<std::optional<int64_t> *>(&field)) {
    if (auto number = parseWholeNumber(key, value, diagnostics))
      **whole = number;
    return;
  }
  if (auto **real = std::get_if<double *>(&field)) {
    if (auto number = parseNumber(key, value, diagnostics))
      **real = *number;
    return;
  }
  if (auto **real = std::get_if<std::optional<double> *>(&field)) {
    if (auto number = parseNumber(key, value, diagnostics))
      **real = number;
    return;
  }
  if (auto **list =
          std::get_if<std::optional<std::vector<std::string>> *>(&field)) {
    if (value.kind != GivenValue::List)
      return refuse("; write it as [word, word]");
    return assignList(key, value, **list, diagnostics);
  }
  if (auto **list = std::get_if<std::vector<int64_t> *>(&field)) {
    if (value.kind != GivenValue::List)
      return refuse("; write it as [0, 3]");
    return assignNumbers(key, value, **list, diagnostics);
  }
  if (auto **list = std::get_if<std::vector<std::string> *>(&field))
    return assignWords(key, value, **list, diagnostics);
  if (auto **list = std::get_if<std::vector<double> *>(&field))
    return assignNumbers(key, value, **list, diagnostics);
  if (auto **word = std::get_if<std::string *>(&field)) {
    SmallVector<StringRef> words = splitWords(key.words);
    if (value.kind == GivenValue::List && key.bound == Bound::Pattern) {
      auto getText = [](const GivenValue &item) { return item.text; };
      **word = "[" + join(map_range(value.items, getText), ",") + "]";
      return;
    }
    if (value.kind != GivenValue::Plain && value.kind != GivenValue::Quoted)
      return refuse();
    std::string text = getWord(key, value, words);
    if (!words.empty() && !is_contained(words, text))
      return refuse(explainWord(key, value, words));
    if (value.text.empty())
      return diagnostics.error(key, value.origin,
                               "needs a path, but got an empty one");
    **word = text;
    return;
  }

  if (std::holds_alternative<Nested>(field))
    return refuse();
  std::optional<bool> truth;
  if (value.kind == GivenValue::Plain)
    truth = parseTruth(value.text);
  if (!truth)
    return refuse(suggestSpelling(key, value));
  if (auto **flag = std::get_if<bool *>(&field))
    **flag = *truth;
  else if (std::get<OnlyValue>(field).value != *truth)
    refuse(", which is not supported");
}
