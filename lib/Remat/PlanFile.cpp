//===- PlanFile.cpp - Plan files are parsed -------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Remat/PlanFile.h"
#include "reprise/Support/YAMLFault.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/YAMLParser.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::remat;
namespace yaml = llvm::yaml;

/// Beyond these LLVM's parser is slow, or runs out of stack.
static constexpr size_t kMostBytes = 16 << 20;
static constexpr int kMostDepth = 32;

namespace {
class PlanParser {
public:
  PlanParser(StringRef path, MLIRContext *context)
      : path(path), context(context) {
    sources.setDiagHandler(
        [](const llvm::SMDiagnostic &diagnostic, void *self) {
          static_cast<PlanParser *>(self)->report(diagnostic);
        },
        this);
  }

  FailureOr<PlanFile> parse();

private:
  /// What is done with the value of a key.
  using Keys = ArrayRef<
      std::pair<StringRef, llvm::function_ref<void(yaml::Node *, Location)>>>;

  Location getLocation(llvm::SMLoc place);
  Location getLocation(yaml::Node *node) {
    return getLocation(node->getSourceRange().Start);
  }
  InFlightDiagnostic error(Location location) {
    isWrong = true;
    return emitError(location);
  }
  void report(const llvm::SMDiagnostic &diagnostic);
  bool checkText(StringRef text);

  void readMap(yaml::Node *node, StringRef what, Location place, Keys keys);
  std::optional<std::string> readWord(yaml::Node *node, StringRef what,
                                      Location place);
  std::vector<PlanWord> readWords(yaml::Node *node, StringRef what,
                                  Location place);
  std::optional<int64_t> readNumber(StringRef text, StringRef what,
                                    Location place);
  bool readChoice(yaml::Node *node, Location place, StringRef yes,
                  StringRef no);
  void readLayers(yaml::Node *node, Location place, PlanRule &rule);
  void checkRule(const PlanRule &rule, ArrayRef<StringRef> decisions);
  void readRule(yaml::Node &node);
  void readRules(yaml::Node *node, Location place);
  void readChunks(yaml::Node *node, Location place);

  StringRef path;
  MLIRContext *context;
  llvm::SourceMgr sources;
  PlanFile plan;
  bool isWrong = false;
};
} // namespace

//===----------------------------------------------------------------------===//
// Places and messages
//===----------------------------------------------------------------------===//

Location PlanParser::getLocation(llvm::SMLoc place) {
  if (!place.isValid())
    return FileLineColLoc::get(context, path, 1, 1);
  auto [line, column] = sources.getLineAndColumn(place);
  return FileLineColLoc::get(context, path, line, column);
}

/// Of the parser, which does not know what was refused already.
void PlanParser::report(const llvm::SMDiagnostic &diagnostic) {
  if (isWrong)
    return;
  llvm::MemoryBufferRef text =
      *sources.getMemoryBuffer(sources.getMainFileID());
  YAMLFault fault =
      explainYAMLFault(text.getBuffer(), diagnostic.getLoc().getPointer(),
                       diagnostic.getMessage());
  error(getLocation(llvm::SMLoc::getFromPointer(fault.place))) << fault.message;
}

/// What LLVM's parser is sensitive to.
bool PlanParser::checkText(StringRef text) {
  auto getPlace = [&](const char *at) {
    return getLocation(llvm::SMLoc::getFromPointer(at));
  };
  size_t offset = 0;
  if (!llvm::json::isUTF8(text, &offset)) {
    error(getPlace(text.data() + std::min(offset, text.size() - 1)))
        << "needs UTF-8 text, but got other bytes";
    return false;
  }
  int depth = 0;
  for (const char &c : text) {
    bool isControl = static_cast<unsigned char>(c) < ' ' || c == '\x7F';
    if (isControl && c != '\n' && c != '\r') {
      error(getPlace(&c)) << "needs text, indented with spaces, but got a "
                             "control character with code "
                          << int(c);
      return false;
    }
    depth += c == '[' || c == '{';
    depth -= (c == ']' || c == '}') && depth > 0;
    if (depth > kMostDepth) {
      error(getPlace(&c)) << "needs brackets nested at most " << kMostDepth
                          << " deep";
      return false;
    }
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

/// "'x'", "a list". A long text is the whole of another file.
static std::string describe(yaml::Node *node) {
  constexpr size_t kShown = 80;
  llvm::SmallString<32> storage;
  if (auto *scalar = dyn_cast_or_null<yaml::ScalarNode>(node)) {
    StringRef text = scalar->getValue(storage);
    return text.size() > kShown ? "a text" : ("'" + text + "'").str();
  }
  if (isa_and_nonnull<yaml::SequenceNode>(node))
    return "a list";
  if (isa_and_nonnull<yaml::MappingNode>(node))
    return "keys with values";
  return "nothing";
}

/// Reads each pair of a map. Every key may be there once.
void PlanParser::readMap(yaml::Node *node, StringRef what, Location place,
                         Keys keys) {
  auto *map = dyn_cast_or_null<yaml::MappingNode>(node);
  if (!map) {
    error(place) << "needs keys with values for " << what << ", but got "
                 << describe(node);
    return;
  }
  std::string list;
  for (const auto &[name, read] : keys)
    list += (list.empty() ? "" : ", ") + name.str();
  llvm::StringSet<> seen;
  for (yaml::KeyValueNode &pair : *map) {
    yaml::Node *key = pair.getKey();
    auto *scalar = dyn_cast_or_null<yaml::ScalarNode>(key);
    if (!scalar) {
      error(key ? getLocation(key) : place)
          << "needs a key of " << what << ", any of " << list << ", but got "
          << describe(key);
      return;
    }
    Location keyPlace = getLocation(key);
    llvm::SmallString<32> storage;
    std::string name = scalar->getValue(storage).str();
    yaml::Node *value = pair.getValue();
    if (isWrong)
      return;
    auto found = std::find_if(keys.begin(), keys.end(), [&](const auto &known) {
      return known.first == name;
    });
    if (found == keys.end()) {
      error(keyPlace) << "needs a key of " << what << ", any of " << list
                      << ", but got '" << name << "'";
      return;
    }
    if (!seen.insert(name).second) {
      error(keyPlace) << "'" << name << "' is given twice";
      return;
    }
    found->second(value, keyPlace);
    if (isWrong)
      return;
  }
}

std::optional<std::string>
PlanParser::readWord(yaml::Node *node, StringRef what, Location place) {
  llvm::SmallString<32> storage;
  if (auto *scalar = dyn_cast_or_null<yaml::ScalarNode>(node))
    return scalar->getValue(storage).str();
  error(place) << "needs " << what << ", but got " << describe(node);
  return std::nullopt;
}

/// A word, or a list of words.
std::vector<PlanWord> PlanParser::readWords(yaml::Node *node, StringRef what,
                                            Location place) {
  std::vector<PlanWord> words;
  auto add = [&](yaml::Node *item, Location location) {
    if (std::optional<std::string> word = readWord(item, what, location))
      words.push_back({*word, location});
  };
  if (auto *list = dyn_cast_or_null<yaml::SequenceNode>(node)) {
    for (yaml::Node &item : *list) {
      if (isWrong)
        break;
      add(&item, getLocation(&item));
    }
    return words;
  }
  add(node, node && !isa<yaml::NullNode>(node) ? getLocation(node) : place);
  return words;
}

static std::optional<int64_t> parseNumber(StringRef text) {
  int64_t number = 0;
  if (!text.getAsInteger(10, number) && number >= 0 && number <= INT32_MAX)
    return number;
  return std::nullopt;
}

std::optional<int64_t> PlanParser::readNumber(StringRef text, StringRef what,
                                              Location place) {
  if (std::optional<int64_t> number = parseNumber(text))
    return number;
  error(place) << "needs " << what << ", but got '" << text << "'";
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Parts of a plan
//===----------------------------------------------------------------------===//

/// Whether one of two words is `yes`; an error if it is neither.
bool PlanParser::readChoice(yaml::Node *node, Location place, StringRef yes,
                            StringRef no) {
  std::string what = (yes + " or " + no).str();
  std::optional<std::string> word = readWord(node, what, place);
  if (word && *word != yes && *word != no)
    error(place) << "needs " << what << ", but got '" << *word << "'";
  return word && *word == yes;
}

void PlanParser::readLayers(yaml::Node *node, Location place, PlanRule &rule) {
  constexpr StringLiteral form =
      "layers such as 3, 0-3, [0-3, 7], all or outside";
  std::vector<PlanWord> words = readWords(node, form, place);
  rule.layersLocation = place;
  for (const PlanWord &word : words) {
    rule.layersLocation = words.front().location;
    if (words.size() == 1 && word.text == "all")
      return;
    if (words.size() == 1 && word.text == "outside") {
      rule.isOutside = true;
      return;
    }
    auto [from, to] = StringRef(word.text).split('-');
    std::optional<int64_t> first = parseNumber(from), last = first;
    if (from.size() != word.text.size())
      last = parseNumber(to);
    if (!first || !last) {
      error(word.location) << "needs " << form << ", but got '" << word.text
                           << "'";
      return;
    }
    if (*last < *first) {
      error(word.location) << "needs a range from its first to its last layer, "
                              "but got "
                           << word.text;
      return;
    }
    rule.layers.push_back({*first, *last});
  }
  if (words.empty() && !isWrong)
    error(place) << "needs " << form << ", but got an empty list";
}

/// Refuses a rule with other words than those that its decision has.
void PlanParser::checkRule(const PlanRule &rule,
                           ArrayRef<StringRef> decisions) {
  bool isShare = llvm::is_contained(decisions, "share");
  if (decisions.size() != 1)
    error(rule.location) << "needs one of recompute, save and share in a rule, "
                            "but got "
                         << (decisions.empty()
                                 ? "none of them"
                                 : llvm::join(decisions, " and "));
  else if (isShare == rule.share.empty())
    error(rule.location)
        << "needs the axis of ranks that share in 'over', with share alone, "
           "but got "
        << (isShare ? "none"
                    : "'" + rule.share + "' with " + decisions.front().str());
  else if (rule.isRecompute && !rule.reason.empty())
    error(rule.location) << "needs no reason to recompute, but got '"
                         << rule.reason << "'; a label says which rule it is";
  else if (!rule.isRecompute && !rule.label.empty())
    error(rule.location) << "needs no label to " << decisions.front()
                         << ", but got '" << rule.label
                         << "'; a reason says why";
}

void PlanParser::readRule(yaml::Node &node) {
  PlanRule rule(getLocation(&node));
  SmallVector<StringRef> decisions;
  auto readValues = [&](StringRef decision) {
    return [&rule, &decisions, decision, this](yaml::Node *value,
                                               Location place) {
      decisions.push_back(decision);
      rule.isRecompute = decision == "recompute";
      rule.values = readWords(value, "names of values, labels or all", place);
    };
  };
  auto readText = [&](std::string &text, StringRef what) {
    return [&text, what, this](yaml::Node *value, Location place) {
      text = readWord(value, what, place).value_or("");
    };
  };
  auto recompute = readValues("recompute"), save = readValues("save"),
       share = readValues("share");
  auto over = readText(rule.share, "the axis of ranks that share");
  auto label = readText(rule.label, "a label");
  auto reason = readText(rule.reason, "a reason");
  auto layers = [&](yaml::Node *value, Location place) {
    readLayers(value, place, rule);
  };
  auto except = [&](yaml::Node *value, Location place) {
    rule.except = readWords(value, "names of values or labels", place);
  };
  auto segment = [&](yaml::Node *value, Location place) {
    if (auto word = readWord(value, "the number of a segment", place))
      rule.segment = readNumber(*word, "the number of a segment", place);
  };
  readMap(&node, "a rule", rule.location,
          {{"layers", layers},
           {"recompute", recompute},
           {"save", save},
           {"share", share},
           {"over", over},
           {"except", except},
           {"segment", segment},
           {"label", label},
           {"reason", reason}});
  if (isWrong)
    return;
  checkRule(rule, decisions);
  plan.rules.push_back(std::move(rule));
}

void PlanParser::readRules(yaml::Node *node, Location place) {
  auto *list = dyn_cast_or_null<yaml::SequenceNode>(node);
  if (!list) {
    error(place) << "needs a list of rules, but got " << describe(node);
    return;
  }
  for (yaml::Node &rule : *list) {
    if (isWrong)
      return;
    readRule(rule);
  }
}

void PlanParser::readChunks(yaml::Node *node, Location place) {
  plan.chunksLocation = place;
  auto stages = [&](yaml::Node *value, Location at) {
    constexpr StringLiteral what = "a number of pipeline stages";
    if (auto word = readWord(value, what, at))
      plan.stages = readNumber(*word, what, at).value_or(0);
  };
  auto layers = [&](yaml::Node *value, Location at) {
    constexpr StringLiteral what = "the layers of each chunk";
    for (const PlanWord &word : readWords(value, what, at))
      if (auto size = readNumber(word.text, what, word.location))
        plan.chunks.push_back(*size);
  };
  readMap(node, "chunks", place, {{"stages", stages}, {"layers", layers}});
  if (isWrong)
    return;
  int64_t count = plan.chunks.size();
  if (plan.stages < 1 || count == 0 || count % plan.stages != 0)
    error(place) << "needs as many chunks on each of at least 1 pipeline "
                    "stages, but got "
                 << count << " chunks on " << plan.stages << " stages";
}

FailureOr<PlanFile> PlanParser::parse() {
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(path, /*IsText=*/true);
  if (!buffer) {
    emitError(UnknownLoc::get(context))
        << "cannot read '" << path << "': " << buffer.getError().message();
    return failure();
  }
  if ((*buffer)->getBufferSize() > kMostBytes) {
    emitError(UnknownLoc::get(context))
        << "cannot read '" << path << "': it has " << (*buffer)->getBufferSize()
        << " bytes, more than the " << kMostBytes << " that a plan may have";
    return failure();
  }
  unsigned id = sources.AddNewSourceBuffer(std::move(*buffer), llvm::SMLoc());
  llvm::MemoryBufferRef text = *sources.getMemoryBuffer(id);
  if (!checkText(text.getBuffer()))
    return failure();
  yaml::Stream stream(text, sources, /*ShowColors=*/false);
  auto document = stream.begin();
  yaml::Node *root =
      document == stream.end() || isWrong ? nullptr : document->getRoot();
  if (isWrong)
    return failure();
  auto name = [&](yaml::Node *value, Location place) {
    plan.name = readWord(value, "a name", place).value_or("");
  };
  auto chunks = [&](yaml::Node *value, Location place) {
    readChunks(value, place);
  };
  auto free = [&](yaml::Node *value, Location place) {
    plan.isFree = readChoice(value, place, "on", "off");
  };
  auto moves = [&](yaml::Node *value, Location place) {
    plan.namesMoves = readChoice(value, place, "named", "follow");
  };
  auto activations = [&](yaml::Node *value, Location place) {
    plan.putsActivationsFirst = readChoice(value, place, "first", "together");
  };
  auto headRows = [&](yaml::Node *value, Location place) {
    constexpr StringLiteral what = "the rows of a chunk of the head";
    if (auto word = readWord(value, what, place))
      plan.headRows = readNumber(*word, what, place);
  };
  auto layers = [&](yaml::Node *value, Location place) {
    constexpr StringLiteral what = "the number of layers that it is for";
    plan.layersLocation = place;
    if (auto word = readWord(value, what, place))
      plan.numLayers = readNumber(*word, what, place);
  };
  bool hasRules = false;
  auto rules = [&](yaml::Node *value, Location place) {
    hasRules = true;
    readRules(value, place);
  };
  readMap(root, "a plan", getLocation(llvm::SMLoc()),
          {{"name", name},
           {"layers", layers},
           {"chunks", chunks},
           {"head_chunk_rows", headRows},
           {"free", free},
           {"moves", moves},
           {"activations", activations},
           {"rules", rules}});
  if (!isWrong && !hasRules)
    error(getLocation(llvm::SMLoc())) << "needs 'rules', a list, in a plan";
  if (!isWrong && ++document != stream.end() && !isWrong)
    error(document->getRoot() ? getLocation(document->getRoot())
                              : getLocation(llvm::SMLoc()))
        << "needs one YAML document, but got a second one";
  if (isWrong)
    return failure();
  return std::move(plan);
}

FailureOr<PlanFile> reprise::remat::parsePlanFile(StringRef path,
                                                  MLIRContext *context) {
  return PlanParser(path, context).parse();
}
