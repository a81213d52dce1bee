//===- DescriptionReader.cpp - File, config.json and options ----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/Keys.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace llvm;
using namespace reprise::frontend;

class DescriptionReader::Impl {
public:
  explicit Impl(SourceMgr &sources) : sources(sources) {}

  LogicalResult setOption(StringRef name, StringRef text);
  FailureOr<Description> read(StringRef path);

private:
  void readConfig(StringRef path, ArrayRef<Entry> entries,
                  Description &description, Diagnostics &diagnostics);
  void assignAll(ArrayRef<Entry> entries, Description &description,
                 Diagnostics &diagnostics);
  void checkRequired(const MemoryBuffer &file, const Description &description,
                     Diagnostics &diagnostics);

  SourceMgr &sources;
  std::vector<Entry> options;
  Origins origins, sections;
};

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

static constexpr StringLiteral kGranularity = "recompute_granularity";

LogicalResult DescriptionReader::Impl::setOption(StringRef name,
                                                 StringRef text) {
  Diagnostics diagnostics(sources);
  Origin origin;
  origin.isOption = true;
  std::string underscored = name.str();
  std::replace(underscored.begin(), underscored.end(), '-', '_');
  const Key *key = findKey(underscored);
  if (!key) {
    diagnostics.error(origin,
                      "unknown option --" + name + suggestKey(underscored, ""));
    return failure();
  }

  Value value;
  value.origin = origin;
  Description scratch;
  Field field = key->field(scratch);
  if (std::holds_alternative<std::optional<std::vector<std::string>> *>(
          field)) {
    value.kind = Value::List;
    SmallVector<StringRef> words;
    if (!text.trim().empty())
      text.split(words, ',');
    for (StringRef word : words)
      value.items.push_back({Value::Plain, word.trim().str(), {}, origin});
  } else {
    bool isSwitch = std::holds_alternative<bool *>(field) ||
                    std::holds_alternative<OnlyValue>(field);
    value.kind = Value::Plain;
    value.text = isSwitch && text.empty() ? "true" : text.str();
    // `--recompute-granularity=` recomputes nothing, whatever the file says.
    if (text.empty() && key->name == kGranularity)
      value.kind = Value::Null;
  }

  // Refused here, at once, if its type is wrong; used when a file is read.
  assign(*key, value, scratch, diagnostics);
  if (diagnostics.hasFailed())
    return failure();
  options.push_back({key, std::move(value)});
  return success();
}

//===----------------------------------------------------------------------===//
// Everything together
//===----------------------------------------------------------------------===//

void DescriptionReader::Impl::assignAll(ArrayRef<Entry> entries,
                                        Description &description,
                                        Diagnostics &diagnostics) {
  for (const Entry &entry : entries) {
    assign(*entry.key, entry.value, description, diagnostics);
    if (entry.value.kind != Value::Null)
      origins[entry.key->name] = entry.value.origin;
  }
}

/// Reads what the last `hf_config` of `entries` names, if there is one.
void DescriptionReader::Impl::readConfig(StringRef path,
                                         ArrayRef<Entry> entries,
                                         Description &description,
                                         Diagnostics &diagnostics) {
  const Entry *config = nullptr;
  for (const Entry &entry : entries)
    if (entry.key->name == "hf_config" && entry.value.kind != Value::Null)
      config = &entry;
  if (!config || config->value.text.empty())
    return;
  SmallString<128> file;
  // An option's path is relative to where the user is.
  if (!config->value.origin.isOption &&
      !sys::path::is_absolute(config->value.text) && path != "-")
    file = sys::path::parent_path(path);
  sys::path::append(file, config->value.text);
  if (sys::fs::is_directory(file))
    sys::path::append(file, "config.json");
  const MemoryBuffer *buffer =
      openText(file, Syntax::JSON, config->value.origin, diagnostics);
  if (!buffer)
    return;
  std::vector<Entry> members;
  readHuggingFace(*buffer, members, description.ignoredKeys, diagnostics);
  assignAll(members, description, diagnostics);
}

void DescriptionReader::Impl::checkRequired(const MemoryBuffer &file,
                                            const Description &description,
                                            Diagnostics &diagnostics) {
  for (const Key &key : allKeys()) {
    bool required =
        key.need == Need::Required ||
        (key.need == Need::HFDefault && description.model.hfConfig.empty());
    if (!required || origins.count(key.name))
      continue;
    Origin origin{SMLoc::getFromPointer(file.getBufferStart())};
    if (sections.count(key.section))
      origin = sections[key.section];
    diagnostics.error(origin, "section '" + key.section + "' needs '" +
                                  key.name +
                                  "': " + key.summary.lower().substr(0, 1) +
                                  key.summary.drop_front());
  }
}

FailureOr<Description> DescriptionReader::Impl::read(StringRef path) {
  Diagnostics diagnostics(sources);
  origins.clear();
  sections.clear();
  const MemoryBuffer *file = openText(path, Syntax::YAML, {}, diagnostics);
  if (!file)
    return failure();
  std::vector<Entry> entries;
  if (failed(readYAML(*file, entries, sections, diagnostics)))
    return failure();
  // What to recompute is one decision: an option for it replaces all of the
  // file's, whose other keys would contradict it.
  auto isDecision = [](const Entry &entry) {
    return entry.key->name == kGranularity ||
           entry.key->name == "recompute_activations";
  };
  if (llvm::any_of(options, isDecision))
    llvm::erase_if(entries, [](const Entry &entry) {
      return entry.key->section == "recompute";
    });
  entries.insert(entries.end(), options.begin(), options.end());

  Description description;
  readConfig(path, entries, description, diagnostics);
  assignAll(entries, description, diagnostics);
  if (diagnostics.hasFailed())
    return failure();
  checkRequired(*file, description, diagnostics);
  if (diagnostics.hasFailed())
    return failure();
  checkDescription(description, origins, diagnostics);
  if (diagnostics.hasFailed())
    return failure();

  SourcePosition &position = description.modelPosition;
  position.file = path.str();
  auto section = sections.find("model");
  if (section != sections.end())
    std::tie(position.line, position.column) =
        sources.getLineAndColumn(section->second.location);
  return description;
}

DescriptionReader::DescriptionReader(SourceMgr &sources)
    : impl(std::make_unique<Impl>(sources)) {}

DescriptionReader::~DescriptionReader() = default;

LogicalResult DescriptionReader::setOption(StringRef key, StringRef value) {
  return impl->setOption(key, value);
}

FailureOr<Description> DescriptionReader::read(StringRef path) {
  return impl->read(path);
}
