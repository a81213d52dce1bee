//===- YAML.cpp - Reads the YAML file of a description ----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/Keys.h"
#include "python-free-frontend/YAMLErrors.h"
#include "reprise/Support/RawJSON.h"
#include "reprise/Support/YAMLFault.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/YAMLParser.h"

using namespace llvm;
using namespace reprise;
using namespace reprise::frontend;

namespace {
/// Walks the one document: sections, in each section keys, values that are
/// scalars or lists of scalars. The parser is lazy: a node's children exist
/// only while they are walked, and anything may be null after a syntax error,
/// which the parser has then reported through the source manager.
class YAMLReader {
public:
  YAMLReader(MemoryBufferRef buffer, std::vector<Entry> &entries,
             std::vector<Member> &foreign, Origins &sections,
             Diagnostics &diagnostics)
      : entries(entries), foreign(foreign), list(entries, diagnostics),
        sections(sections), diagnostics(diagnostics), text(buffer.getBuffer()),
        stream(buffer, diagnostics.getSources(), /*ShowColors=*/true) {}

  void read();
  bool hasSyntaxError() { return stream.failed(); }

private:
  void readSection(StringRef section, yaml::MappingNode &map);
  void readSections(yaml::MappingNode &map);
  void refuseSections(ArrayRef<Member> others);
  void refuseAll(ArrayRef<Member> others);
  /// The members of a map are read if `isMap`, otherwise passed over.
  GivenValue readValue(yaml::Node *node, Origin keyOrigin, bool isMap = false);
  void readMembers(yaml::MappingNode &map, GivenValue &value);
  void readItems(yaml::SequenceNode &sequence, GivenValue &list);
  /// The text of a key, or nothing and a diagnostic.
  std::optional<std::string> readName(yaml::KeyValueNode &pair, StringRef what,
                                      Origin &origin);

  std::vector<Entry> &entries;
  std::vector<Member> &foreign;
  EntryList list;
  Origins &sections;
  Diagnostics &diagnostics;
  StringRef text;
  yaml::Stream stream;
};
} // namespace

static std::string getText(yaml::ScalarNode *scalar) {
  SmallString<64> storage;
  return scalar->getValue(storage).str();
}

std::optional<std::string>
YAMLReader::readName(yaml::KeyValueNode &pair, StringRef what, Origin &origin) {
  auto *key = dyn_cast_or_null<yaml::ScalarNode>(pair.getKey());
  if (stream.failed())
    return std::nullopt;
  if (!key) {
    SMLoc location = pair.getSourceRange().Start;
    diagnostics.error({location}, "needs the name of a " + what);
    return std::nullopt;
  }
  origin.location = key->getSourceRange().Start;
  if (key->getRawValue().contains('\n')) {
    diagnostics.error(origin, "needs a colon after the name of a " + what);
    return std::nullopt;
  }
  return getText(key);
}

/// The parser passes over what is missing in `[a, , b]`. Where between two
/// items the place of a third is, if there are more than `most` commas.
static const char *findEmptyItem(StringRef between, int most) {
  bool inComment = false;
  for (const char &c : between) {
    inComment = c == '#' || (inComment && c != '\n');
    if (c == ',' && !inComment && most-- == 0)
      return &c;
  }
  return nullptr;
}

void YAMLReader::readItems(yaml::SequenceNode &sequence, GivenValue &list) {
  auto checkCommas = [&](const char *begin, const char *end, int most) {
    if (const char *place = findEmptyItem(StringRef(begin, end - begin), most))
      diagnostics.error({SMLoc::getFromPointer(place)},
                        "needs an item of the list before this comma");
  };
  const char *end = list.origin.location.getPointer();
  for (yaml::Node &item : sequence) {
    SMRange range = item.getSourceRange();
    // An alias begins, to the parser, where it ends.
    if (auto *alias = dyn_cast<yaml::AliasNode>(&item))
      range.Start = SMLoc::getFromPointer(range.Start.getPointer() -
                                          alias->getName().size() - 1);
    list.items.push_back(readValue(&item, {range.Start}));
    if (isa<yaml::AliasNode>(item)) // Which is refused, once.
      list.items.back() = {GivenValue::Quoted, "*", {}, {range.Start}};
    list.origin.items.push_back(list.items.back().origin.location);
    if (!isa<yaml::ScalarNode>(item))
      continue;
    checkCommas(end, range.Start.getPointer(), list.items.size() > 1);
    end = range.End.getPointer();
  }
  StringRef rest(end, text.end() - end);
  checkCommas(end, end + std::min(rest.find_first_of("]\n"), rest.size()),
              !list.items.empty());
}

void YAMLReader::readMembers(yaml::MappingNode &map, GivenValue &value) {
  for (yaml::KeyValueNode &pair : map) {
    Member member;
    std::optional<std::string> name = readName(pair, "key", member.origin);
    if (stream.failed())
      return;
    if (!name)
      continue;
    member.name = *name;
    member.value = readValue(pair.getValue(), member.origin);
    if (stream.failed())
      return;
    value.members.push_back(std::move(member));
  }
}

GivenValue YAMLReader::readValue(yaml::Node *node, Origin keyOrigin,
                                 bool isMap) {
  GivenValue value;
  value.origin = keyOrigin;
  if (!node)
    return value;
  if (!node->getRawTag().empty())
    diagnostics.error(keyOrigin, "tags such as '" + node->getRawTag() +
                                     "' have no meaning here");
  if (auto *scalar = dyn_cast<yaml::ScalarNode>(node)) {
    value.origin.location = scalar->getSourceRange().Start;
    value.text = getText(scalar);
    StringRef raw = scalar->getRawValue();
    bool quoted = raw.starts_with("\"") || raw.starts_with("'");
    value.kind = quoted ? GivenValue::Quoted : GivenValue::Plain;
    if (!quoted && isNull(value.text))
      value.kind = GivenValue::Null;
  } else if (auto *block = dyn_cast<yaml::BlockScalarNode>(node)) {
    value.kind = GivenValue::Quoted;
    value.text = block->getValue().rtrim('\n').str();
  } else if (auto *sequence = dyn_cast<yaml::SequenceNode>(node)) {
    value.kind = GivenValue::List;
    readItems(*sequence, value);
  } else if (auto *map = dyn_cast<yaml::MappingNode>(node)) {
    value.kind = GivenValue::Map;
    if (isMap)
      readMembers(*map, value);
    else
      map->skip();
  } else if (isa<yaml::AliasNode>(node)) {
    diagnostics.error(keyOrigin, "aliases have no meaning here; a text that "
                                 "begins with '*' needs quotes");
  }
  return value;
}

void YAMLReader::readSection(StringRef section, yaml::MappingNode &map) {
  for (yaml::KeyValueNode &pair : map) {
    Member given;
    std::optional<std::string> name = readName(pair, "key", given.origin);
    if (stream.failed())
      return;
    if (!name)
      continue;
    given.name = *name;
    const Key *key = findKey(*name, section);
    bool isMap = key && key->name == kRopeScaling;
    given.value = readValue(pair.getValue(), given.origin, isMap);
    if (stream.failed())
      return;
    if (key) {
      list.add(*key, std::move(given));
      continue;
    }
    const Family *family = findFamily(entries);
    if ((!family && dependsOnFamily(*name)) || dependsOnSharing(*name)) {
      foreign.push_back(std::move(given));
      continue;
    }
    // As in NeMo's section of a model: null says nothing, wherever it stands.
    if (given.value.kind == GivenValue::Null && isKeyElsewhere(*name))
      continue;
    if (!checkForeignKey(*name, given.value, given.origin, family, diagnostics))
      diagnostics.error(given.origin, "unknown key '" + *name +
                                          "' in section '" + section + "'" +
                                          suggestKey(*name, section, family));
  }
}

void YAMLReader::refuseSections(ArrayRef<Member> others) {
  for (const Member &other : others) {
    std::string suggestion = suggest(other.name, allSections());
    if (suggestion.empty())
      suggestion = suggestKey(other.name, "");
    diagnostics.error(other.origin,
                      "unknown section '" + other.name + "'" + suggestion);
  }
}

/// A file without sections is of another program, or has keys where sections
/// are to be: one error for all.
void YAMLReader::refuseAll(ArrayRef<Member> others) {
  constexpr size_t most = 4;
  std::string names, places;
  for (const Member &other : others.take_front(most))
    names += (names.empty() ? "'" : ", '") + other.name + "'";
  if (others.size() > most)
    names += " and " + std::to_string(others.size() - most) + " more";
  for (const Member &other : others)
    if (const Key *key = findKey(other.name); key && places.empty())
      places =
          ("; '" + other.name + "' belongs to section '" + key->section + "'")
              .str();
  diagnostics.error(others.front().origin,
                    "needs the sections 'model' and 'train', but got " + names +
                        places);
}

void YAMLReader::readSections(yaml::MappingNode &map) {
  std::vector<Member> others;
  for (yaml::KeyValueNode &pair : map) {
    Origin origin;
    std::optional<std::string> name = readName(pair, "section", origin);
    yaml::Node *value = stream.failed() ? nullptr : pair.getValue();
    if (stream.failed())
      return;
    if (!name)
      continue;
    if (!is_contained(allSections(), *name)) {
      others.push_back({*name, origin, {}});
      continue;
    }
    refuseSections(others);
    others.clear();
    if (!sections.try_emplace(*name, origin).second) {
      diagnostics.error(origin, "section '" + *name + "' is given twice");
      continue;
    }
    if (auto *section = dyn_cast_or_null<yaml::MappingNode>(value)) {
      readSection(*name, *section);
    } else {
      GivenValue given = readValue(value, origin);
      if (given.kind != GivenValue::Null)
        diagnostics.error(origin, "section '" + *name +
                                      "' needs keys with values, but got " +
                                      describe(given));
    }
    if (stream.failed())
      return;
  }
  if (stream.failed())
    return;
  auto isSlip = [](const Member &other) {
    return !suggest(other.name, allSections()).empty();
  };
  if (sections.empty() && others.size() > 1 && none_of(others, isSlip))
    refuseAll(others);
  else
    refuseSections(others);
}

void YAMLReader::read() {
  yaml::document_iterator document = stream.begin();
  if (document == stream.end() || stream.failed())
    return;
  yaml::Node *root = document->getRoot();
  if (stream.failed())
    return;
  SMLoc start = SMLoc::getFromPointer(text.begin());
  auto *map = dyn_cast_or_null<yaml::MappingNode>(root);
  if (!map) {
    if (isa_and_nonnull<yaml::ScalarNode>(root))
      start = root->getSourceRange().Start;
    return diagnostics.error(
        {start}, "needs the sections 'model' and 'train', but got none");
  }
  readSections(*map);
  if (stream.failed())
    return;
  ++document;
  if (stream.failed() || document == stream.end())
    return;
  root = document->getRoot();
  if (root && root->getSourceRange().isValid())
    start = root->getSourceRange().Start;
  diagnostics.error({start}, "needs one YAML document, but got a second one");
}

LogicalResult reprise::frontend::readYAML(MemoryBufferRef buffer,
                                          std::vector<Entry> &entries,
                                          std::vector<Member> &foreign,
                                          Origins &sections,
                                          Diagnostics &diagnostics) {
  YAMLErrors errors(buffer.getBuffer(), diagnostics);
  // Before anything is said about what is in it.
  yaml::Stream whole(buffer, diagnostics.getSources(), /*ShowColors=*/true);
  if (const char *place = findLevelTooMany(whole)) {
    diagnostics.error({SMLoc::getFromPointer(place)},
                      "needs lists and maps nested at most " +
                          Twine(kMostLevels) + " deep");
    return failure();
  }
  if (whole.failed())
    return failure();
  YAMLReader reader(buffer, entries, foreign, sections, diagnostics);
  reader.read();
  return success(!reader.hasSyntaxError());
}
