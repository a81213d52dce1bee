//===- DescriptionReader.cpp - File, config.json and options ----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/Keys.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/Errc.h"
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
  LogicalResult setForeign(StringRef name, StringRef text, const Origin &origin,
                           Diagnostics &diagnostics);
  void readConfig(StringRef path, ArrayRef<Entry> entries,
                  std::vector<Entry> &members, Description &description,
                  Diagnostics &diagnostics);
  void assignAll(ArrayRef<Entry> entries, Description &description,
                 Diagnostics &diagnostics);
  SourcePosition getPosition(const Origin &origin);
  /// With the keys of all families, and those of one if it is known.
  void checkRequired(const MemoryBuffer &file, ArrayRef<Entry> entries,
                     const Description &description, const Family *family,
                     Diagnostics &diagnostics);
  /// Makes the path of the plan file, if there is one, what it is from here.
  void findPlan(StringRef path, std::string &plan, Diagnostics &diagnostics);

  SourceMgr &sources;
  std::vector<Entry> options;
  /// Options that are taken or refused by what else there is.
  std::vector<Member> foreign;
  std::vector<SharedWarning> shared;
  Origins origins, sections;
};

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

static constexpr StringLiteral kGranularity = "recompute_granularity";
static constexpr StringLiteral kPlan = "recompute_plan";

/// What `winners` decide replaces all that `entries` say of it, whose other
/// keys would contradict it.
static void dropReplaced(std::vector<Entry> &entries, ArrayRef<Entry> winners) {
  for (StringRef section : {StringRef("recompute"), StringRef(kRopeScaling)})
    if (decides(winners, section))
      llvm::erase_if(entries, [&](const Entry &entry) {
        return entry.key->section == section &&
               !is_contained({"free_recompute", "recompute_last_segment"},
                             entry.key->name);
      });
}

/// A key is one option, whatever name it is given by. Two may say the same.
static void refuseOtherNames(ArrayRef<Entry> entries,
                             Diagnostics &diagnostics) {
  llvm::SmallDenseMap<const Key *, const Entry *> given;
  for (const Entry &entry : entries) {
    if (!entry.origin.isOption())
      continue;
    const Entry &first = *given.try_emplace(entry.key, &entry).first->second;
    if (&first != &entry && !isSameValue(*entry.key, first.value, entry.value))
      diagnostics.error(*entry.key, entry.origin,
                        "is another name of --" + first.origin.option +
                            ", and both are given: which one is meant?");
  }
}

/// An option for what is no key here. Where families differ in what they take
/// of it, that is checked when the family is known.
LogicalResult DescriptionReader::Impl::setForeign(StringRef name,
                                                  StringRef text,
                                                  const Origin &origin,
                                                  Diagnostics &diagnostics) {
  bool isUnset = isNull(text) && !text.empty();
  GivenValue value = {isUnset ? GivenValue::Null : GivenValue::Plain,
                      text.empty() ? "true" : text.str(),
                      {},
                      origin};
  if (dependsOnFamily(name) || dependsOnSharing(name))
    foreign.push_back({name.str(), origin, std::move(value)});
  else if (!checkForeignKey(name, value, origin, /*family=*/nullptr,
                            diagnostics))
    diagnostics.error(origin, "unknown option --" + origin.option +
                                  suggestKey(name, ""));
  return failure(diagnostics.hasFailed());
}

/// Brackets and quotes, as in a file, may stand around it and its words; or
/// these have spaces between them, as in Megatron's commands.
static GivenValue toList(StringRef text, const Origin &origin) {
  GivenValue value;
  value.kind = GivenValue::List;
  value.origin = origin;
  StringRef list = text.trim();
  if (list.starts_with("[") && list.ends_with("]"))
    list = list.drop_front().drop_back().trim();
  bool hasCommas = list.contains(',');
  SmallVector<StringRef> words;
  if (!list.empty())
    list.split(words, hasCommas ? ',' : ' ', /*MaxSplit=*/-1,
               /*KeepEmpty=*/hasCommas);
  for (StringRef word : words)
    value.items.push_back(
        {GivenValue::Plain, word.trim().trim("'\"").str(), {}, origin});
  return value;
}

LogicalResult DescriptionReader::Impl::setOption(StringRef name,
                                                 StringRef text) {
  Diagnostics diagnostics(sources, shared);
  Origin origin;
  origin.option = name.str();
  llvm::replace(origin.option, '_', '-');
  std::string underscored = name.str();
  std::replace(underscored.begin(), underscored.end(), '-', '_');
  const Key *key = findKey(underscored);
  if (!key)
    return setForeign(underscored, text, origin, diagnostics);

  GivenValue value;
  value.origin = origin;
  Description scratch;
  Field field = key->field(scratch);
  if (isList(field)) {
    value = toList(text, origin);
    // One of those that may be several is written alone.
    if (isOneOrMore(field) && value.items.size() == 1)
      value = GivenValue(value.items.front());
  } else {
    bool isSwitch = std::holds_alternative<bool *>(field) ||
                    std::holds_alternative<OnlyValue>(field);
    value.kind = GivenValue::Plain;
    value.text = isSwitch && text.empty() ? "true" : text.str();
    // Words with spaces or commas between them are a list here, too.
    if (key->bound == Bound::Pattern && text.contains(',') &&
        !text.contains('['))
      value.text = ("[" + text + "]").str();
    // `--recompute-granularity=` recomputes nothing, whatever the file says.
    if (isNull(text) && key->name == kGranularity)
      value.kind = GivenValue::Null;
  }

  // Refused here, at once, if its type is wrong; used when a file is read.
  assign(*key, value, scratch, diagnostics);
  if (diagnostics.hasFailed())
    return failure();
  StringRef inSection = underscored;
  if (key->section == kRopeScaling)
    inSection = inSection.drop_front(key->getOption("").size());
  options.push_back({key, std::move(value), inSection.str(), origin});
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
    // Hugging Face's name leaves the norms of latents as they are, Megatron's
    // is of all norms.
    Model &model = description.model;
    if (is_contained({"rms_norm_eps", "layer_norm_epsilon"}, entry.key->name))
      model.latentEpsilon =
          is_contained(splitWords(entry.key->megatron), entry.name)
              ? model.normEpsilon
              : Model::kLatentEpsilon;
    if (entry.value.kind != GivenValue::Null)
      origins[entry.key->name] = entry.value.origin;
  }
}

/// `file`, relative to the description at `path`.
static std::string getPath(StringRef file, StringRef path) {
  SmallString<128> result;
  if (!sys::path::is_absolute(file) && path != "-")
    result = sys::path::parent_path(path);
  sys::path::append(result, file);
  return result.str().str();
}

/// Reads what the last `hf_config` of `entries` names, if there is one.
void DescriptionReader::Impl::readConfig(StringRef path,
                                         ArrayRef<Entry> entries,
                                         std::vector<Entry> &members,
                                         Description &description,
                                         Diagnostics &diagnostics) {
  const Entry *config = nullptr;
  for (const Entry &entry : entries)
    if (entry.key->name == "hf_config" && entry.value.kind != GivenValue::Null)
      config = &entry;
  if (!config || config->value.text.empty())
    return;
  // An option's path is relative to where the user is.
  SmallString<128> file(config->value.origin.isOption()
                            ? config->value.text
                            : getPath(config->value.text, path));
  if (sys::fs::is_directory(file)) {
    SmallString<128> params(file);
    sys::path::append(params, "params.json");
    sys::path::append(file, "config.json");
    // Of Meta's folders: what is said of that file helps.
    if (!sys::fs::exists(file) && sys::fs::exists(params))
      file = params;
  }
  const MemoryBuffer *buffer =
      openText(file, Syntax::JSON, config->value.origin, diagnostics,
               "; hf_config is the path of a config.json on this machine, or "
               "of a folder with one");
  if (buffer)
    readHuggingFace(*buffer, entries, members, description, diagnostics);
}

void DescriptionReader::Impl::checkRequired(const MemoryBuffer &file,
                                            ArrayRef<Entry> entries,
                                            const Description &description,
                                            const Family *family,
                                            Diagnostics &diagnostics) {
  MapVector<StringRef, std::string> absent; ///< Sections, and what they need.
  for (const Key &key : allKeys()) {
    if (family ? !key.isOf(family) : !key.isOfAll())
      continue;
    bool required =
        key.need == Need::Required ||
        (key.need == Need::HFDefault && description.model.hfConfig.empty());
    if (!required || origins.count(key.name))
      continue;
    if (!sections.count(key.section)) {
      std::string &keys = absent[key.section];
      keys += (keys.empty() ? "'" : ", '") + key.name.str() + "'";
      continue;
    }
    const Entry *null = llvm::find_if(
        entries, [&](const Entry &entry) { return entry.key == &key; });
    bool isNull = null != entries.end();
    diagnostics.error(isNull ? null->value.origin : sections[key.section],
                      "section '" + key.section + "' needs " +
                          (isNull ? "a value of '" : "'") + key.name +
                          "': " + key.summary.lower().substr(0, 1) +
                          key.summary.drop_front());
  }
  for (const auto &[section, keys] : absent)
    diagnostics.error({SMLoc::getFromPointer(file.getBufferStart())},
                      "there is no section '" + section + "', which needs " +
                          keys);
}

void DescriptionReader::Impl::findPlan(StringRef path, std::string &plan,
                                       Diagnostics &diagnostics) {
  if (plan.empty() || plan == "-")
    return;
  Origin origin = origins.lookup(kPlan);
  if (!origin.isOption())
    plan = getPath(plan, path);
  sys::fs::file_status status;
  std::error_code error = sys::fs::status(plan, status);
  if (!error && sys::fs::is_directory(status))
    error = make_error_code(errc::is_a_directory);
  if (error)
    diagnostics.error(*findKey(kPlan), origin,
                      "cannot read '" + plan + "': " + error.message());
}

/// Whether the last of the entries about it says so.
static bool sharesStates(ArrayRef<Entry> entries) {
  bool shares = false;
  for (const Entry &entry : entries)
    if (entry.key->name == "use_distributed_optimizer")
      shares = StringRef(entry.value.text).equals_insensitive("true");
  return shares;
}

FailureOr<Description> DescriptionReader::Impl::read(StringRef path) {
  Diagnostics diagnostics(sources, shared);
  llvm::scope_exit print([&] { diagnostics.printShared(); });
  origins.clear();
  sections.clear();
  const MemoryBuffer *file = openText(path, Syntax::YAML, {}, diagnostics);
  if (!file)
    return failure();
  std::vector<Entry> entries;
  std::vector<Member> others;
  if (failed(readYAML(*file, entries, others, sections, diagnostics)))
    return failure();
  dropReplaced(entries, options);
  entries.insert(entries.end(), options.begin(), options.end());

  Description about;
  std::vector<Entry> members;
  readConfig(path, entries, members, about, diagnostics);
  dropReplaced(members, entries);
  const Family *family = findFamily(entries);
  if (!family)
    family = findFamily(members);
  Description description(family);
  description.ignoredKeys = std::move(about.ignoredKeys);
  description.tokenIds = std::move(about.tokenIds);
  if (family) {
    resolveFamily(entries, *family, diagnostics);
    refuseOtherNames(entries, diagnostics);
    for (const Member &other : concat<const Member>(others, foreign))
      checkForeignKey(other.name, other.value, other.origin, family,
                      diagnostics, sharesStates(entries));
  }
  resolveShorthands(entries, diagnostics);
  assignAll(members, description, diagnostics);
  assignAll(entries, description, diagnostics);
  if (diagnostics.hasFailed())
    return failure();
  checkRequired(*file, entries, description, family, diagnostics);
  if (diagnostics.hasFailed())
    return failure();
  resolveMegatron(description, origins, diagnostics);
  resolveSchedule(description, origins, diagnostics);
  checkDescription(description, origins, diagnostics);
  findPlan(path, description.recompute.planFile, diagnostics);
  if (diagnostics.hasFailed())
    return failure();

  description.modelPosition.file = path.str();
  if (sections.count("model"))
    description.modelPosition = getPosition(sections["model"]);
  for (const auto &entry : origins)
    if (!entry.second.isOption())
      description.positions[entry.first().str()] = getPosition(entry.second);
  if (description.train.frozen)
    for (size_t i = 0; i < description.train.frozen->size(); ++i)
      description.frozenPositions.push_back(
          getPosition(origins["frozen"].getItem(i)));
  return description;
}

SourcePosition DescriptionReader::Impl::getPosition(const Origin &origin) {
  SourcePosition position;
  if (origin.isOption())
    return position;
  // Values may also be of the Hugging Face file.
  unsigned buffer = sources.FindBufferContainingLoc(origin.location);
  position.file = sources.getMemoryBuffer(buffer)->getBufferIdentifier().str();
  std::tie(position.line, position.column) =
      sources.getLineAndColumn(origin.location);
  return position;
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
