//===- YAML.cpp - Reads the YAML file of a description ----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/Keys.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/YAMLParser.h"

using namespace llvm;
using namespace reprise::frontend;

//===----------------------------------------------------------------------===//
// Text that a parser may see
//===----------------------------------------------------------------------===//

// The parsers of YAML and JSON recurse with the depth of their input; these
// limits keep them far from the end of the stack, and no description near them.
static constexpr uint64_t kMaxFileBytes = 1 << 20;
static constexpr size_t kMaxLineBytes = 4096;
static constexpr int kMaxDepth = 32;

/// Brackets count wherever they are, in comments too.
static void checkText(StringRef text, Diagnostics &diagnostics) {
  auto refuse = [&](const char *at, const Twine &message) {
    diagnostics.error({SMLoc::getFromPointer(at)}, message);
  };
  size_t offset;
  if (!json::isUTF8(text, &offset))
    return refuse(text.data() + std::min(offset, text.size() - 1),
                  "needs UTF-8 text, but got other bytes");
  const char *line = text.begin();
  bool indenting = true;
  int depth = 0;
  for (const char &c : text) {
    if (c == '\n') {
      line = &c + 1;
      indenting = true;
      continue;
    }
    if (static_cast<unsigned char>(c) < ' ' && c != '\t' && c != '\r')
      return refuse(&c, "needs text, but got a control character with code " +
                            Twine(static_cast<int>(c)));
    if (c == '\t' && indenting)
      return refuse(&c, "needs spaces for indentation, but got a tab");
    indenting &= c == ' ';
    if (&c - line >= static_cast<ptrdiff_t>(kMaxLineBytes))
      return refuse(&c, "needs lines of at most " + Twine(kMaxLineBytes) +
                            " bytes");
    if (c == '[' || c == '{')
      ++depth;
    if ((c == ']' || c == '}') && depth > 0)
      --depth;
    if (depth > kMaxDepth)
      return refuse(&c, "brackets are nested more than " + Twine(kMaxDepth) +
                            " deep");
  }
}

const MemoryBuffer *reprise::frontend::openText(StringRef path, Origin origin,
                                                Diagnostics &diagnostics) {
  auto refuse = [&](const Twine &reason) {
    diagnostics.error(origin, "cannot read '" + path + "': " + reason);
    return nullptr;
  };
  if (path != "-") {
    sys::fs::file_status status;
    if (std::error_code error = sys::fs::status(path, status))
      return refuse(error.message());
    if (sys::fs::is_directory(status))
      return refuse("it is a directory");
    if (status.type() == sys::fs::file_type::character_file ||
        status.type() == sys::fs::file_type::block_file)
      return refuse("it is a device");
    if (status.getSize() > kMaxFileBytes)
      return refuse("it has " + Twine(status.getSize()) +
                    " bytes, more than the " + Twine(kMaxFileBytes) +
                    " that a description may have");
  }
  ErrorOr<std::unique_ptr<MemoryBuffer>> file =
      MemoryBuffer::getFileOrSTDIN(path);
  if (!file)
    return refuse(file.getError().message());
  if ((*file)->getBufferSize() > kMaxFileBytes)
    return refuse("it has more than " + Twine(kMaxFileBytes) + " bytes");

  SourceMgr &sources = diagnostics.getSources();
  unsigned id = sources.AddNewSourceBuffer(std::move(*file), SMLoc());
  const MemoryBuffer *buffer = sources.getMemoryBuffer(id);
  StringRef text = buffer->getBuffer();
  bool failedBefore = diagnostics.hasFailed();
  if (text.trim().empty())
    diagnostics.error({SMLoc::getFromPointer(text.begin())},
                      "the file is empty");
  else
    checkText(text, diagnostics);
  return diagnostics.hasFailed() && !failedBefore ? nullptr : buffer;
}

//===----------------------------------------------------------------------===//
// YAML
//===----------------------------------------------------------------------===//

namespace {
/// Walks the one document: sections, in each section keys, values that are
/// scalars or lists of scalars. The parser is lazy: a node's children exist
/// only while they are walked, and anything may be null after a syntax error,
/// which the parser has then reported through the source manager.
class YAMLReader {
public:
  YAMLReader(MemoryBufferRef buffer, std::vector<Entry> &entries,
             Origins &sections, Diagnostics &diagnostics)
      : entries(entries), sections(sections), diagnostics(diagnostics),
        text(buffer.getBuffer()),
        stream(buffer, diagnostics.getSources(), /*ShowColors=*/true) {}

  void read();
  bool hasSyntaxError() { return stream.failed(); }

private:
  void readSection(StringRef section, yaml::MappingNode &map);
  Value readValue(yaml::Node *node, Origin keyOrigin);
  /// The text of a key, or nothing and a diagnostic.
  std::optional<std::string> readName(yaml::KeyValueNode &pair, StringRef what,
                                      Origin &origin);

  std::vector<Entry> &entries;
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
  return getText(key);
}

Value YAMLReader::readValue(yaml::Node *node, Origin keyOrigin) {
  Value value;
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
    value.kind = quoted ? Value::Quoted : Value::Plain;
    if (!quoted && (value.text == "null" || value.text == "~"))
      value.kind = Value::Null;
  } else if (auto *block = dyn_cast<yaml::BlockScalarNode>(node)) {
    value.kind = Value::Quoted;
    value.text = block->getValue().rtrim('\n').str();
  } else if (auto *sequence = dyn_cast<yaml::SequenceNode>(node)) {
    value.kind = Value::List;
    for (yaml::Node &item : *sequence)
      value.items.push_back(readValue(&item, keyOrigin));
  } else if (auto *map = dyn_cast<yaml::MappingNode>(node)) {
    value.kind = Value::Map;
    map->skip();
  } else if (isa<yaml::AliasNode>(node)) {
    diagnostics.error(keyOrigin, "aliases have no meaning here");
  }
  return value;
}

void YAMLReader::readSection(StringRef section, yaml::MappingNode &map) {
  StringMap<std::string> seen;
  for (yaml::KeyValueNode &pair : map) {
    Origin origin;
    std::optional<std::string> name = readName(pair, "key", origin);
    if (stream.failed())
      return;
    if (!name)
      continue;
    Value value = readValue(pair.getValue(), origin);
    if (stream.failed())
      return;
    const Key *key = findKey(*name, section);
    if (!key) {
      diagnostics.error(origin, "unknown key '" + *name + "' in section '" +
                                    section + "'" + suggestKey(*name, section));
      continue;
    }
    auto [first, isNew] = seen.try_emplace(key->name, *name);
    if (!isNew)
      diagnostics.error(origin, first->second == *name
                                    ? "'" + *name + "' is given twice"
                                    : "'" + *name + "' is another name of '" +
                                          first->second +
                                          "', which is given already");
    else
      entries.push_back({key, std::move(value)});
  }
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
  for (yaml::KeyValueNode &pair : *map) {
    Origin origin;
    std::optional<std::string> name = readName(pair, "section", origin);
    yaml::Node *value = stream.failed() ? nullptr : pair.getValue();
    if (stream.failed())
      return;
    if (!name)
      continue;
    if (!is_contained(allSections(), *name)) {
      std::string suggestion = suggest(*name, allSections());
      if (suggestion.empty())
        suggestion = suggestKey(*name, "");
      diagnostics.error(origin, "unknown section '" + *name + "'" + suggestion);
      continue;
    }
    if (!sections.try_emplace(*name, origin).second) {
      diagnostics.error(origin, "section '" + *name + "' is given twice");
      continue;
    }
    if (auto *section = dyn_cast_or_null<yaml::MappingNode>(value))
      readSection(*name, *section);
    else if (!isa_and_nonnull<yaml::NullNode>(value))
      diagnostics.error(origin, "section '" + *name +
                                    "' needs keys with values, but got " +
                                    (isa_and_nonnull<yaml::SequenceNode>(value)
                                         ? "a list"
                                         : "something else"));
    if (stream.failed())
      return;
  }
  if (stream.failed())
    return;
  ++document;
  if (!stream.failed() && document != stream.end())
    diagnostics.error({start}, "needs one YAML document, but got more");
}

void reprise::frontend::readYAML(MemoryBufferRef buffer,
                                 std::vector<Entry> &entries, Origins &sections,
                                 Diagnostics &diagnostics) {
  YAMLReader reader(buffer, entries, sections, diagnostics);
  reader.read();
  if (reader.hasSyntaxError())
    diagnostics.noteError();
}
