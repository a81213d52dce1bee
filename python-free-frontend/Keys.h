//===- Keys.h - The table of keys, and how values are read ------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A description comes from three places: a YAML file, a Hugging Face
// `config.json`, options of the command line. Each is read into entries, pairs
// of a key of the one table and a value with its origin; how a value becomes a
// member of Description, and what is wrong with it, is the same for all.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_FRONTEND_KEYS_H
#define REPRISE_FRONTEND_KEYS_H

#include "python-free-frontend/Description.h"
#include "python-free-frontend/Family.h"
#include "python-free-frontend/FileKind.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"

#include <variant>

namespace reprise::frontend {

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

/// A key that other programs have, of which only one value is supported.
struct OnlyValue {
  bool value;
};

/// A key whose value is a map: the keys of the section of its name.
struct Nested {};

/// Where the value of a key goes; the alternative says the key's type.
using Field = std::variant<int64_t *, std::optional<int64_t> *, double *,
                           std::optional<double> *, bool *, std::string *,
                           std::optional<std::vector<std::string>> *,
                           std::vector<int64_t> *, std::vector<std::string> *,
                           std::vector<double> *, OnlyValue, Nested>;

/// Whether its values are words of its own or numbers, one or several.
inline bool isOneOrMore(const Field &field) {
  return std::holds_alternative<std::vector<std::string> *>(field) ||
         std::holds_alternative<std::vector<double> *>(field);
}

/// Whether its values may be lists.
inline bool isList(const Field &field) {
  return isOneOrMore(field) ||
         std::holds_alternative<std::optional<std::vector<std::string>> *>(
             field) ||
         std::holds_alternative<std::vector<int64_t> *>(field);
}

/// What a number may be.
enum class Bound {
  None,
  Positive,    ///< > 0; for whole numbers at least 1
  NotNegative, ///< >= 0
  Rate,        ///< 0 <= x < 1, also after rounding to f32
  Pattern,     ///< of a text: one for all layers, which may be a list
};

/// Text that is the same for all families, or for each its own.
class PerFamily {
public:
  PerFamily(llvm::StringRef all) : all(all) {}
  PerFamily(const char *all) : all(all) {}
  llvm::StringRef get(const Family *family) const {
    auto own = texts.find(family);
    return own == texts.end() ? all : llvm::StringRef(own->second);
  }
  void set(const Family *family, std::string text) {
    texts[family] = std::move(text);
  }

private:
  llvm::StringRef all;
  std::map<const Family *, std::string> texts;
};

/// A key, for those families that need it alike.
struct Key {
  llvm::StringRef name, section;
  Field (*field)(Description &);
  Need need;
  PerFamily defaultValue;
  llvm::StringRef summary;
  Bound bound = Bound::None;
  llvm::StringRef words = "";   ///< `flash|unfused`
  llvm::StringRef aliases = ""; ///< `hidden_size`, separated by `|`
  int64_t most = INT32_MAX;     ///< for whole numbers
  llvm::SmallVector<const Family *, 8> families = {}; ///< that have the key
  /// Megatron's names for it, separated by `|`: aliases everywhere but in a
  /// `config.json`, where programs of Hugging Face's do not read them.
  llvm::StringRef megatron = "";

  /// Whether the family has the key; null is any.
  bool isOf(const Family *family) const {
    return !family || llvm::is_contained(families, family);
  }
  bool isOfAll() const { return families.size() == allFamilies().size(); }
  /// What it is as an option, with underscores: those of a map have its name
  /// before their own, `rope_scaling_factor`.
  std::string getOption(llvm::StringRef name) const;
  std::string getOption() const { return getOption(name); }
  /// Its aliases, Megatron's names among them.
  llvm::SmallVector<llvm::StringRef> getAliases() const;
  /// Whether `given` is its name or an alias.
  bool hasName(llvm::StringRef given) const;
};

/// The map in the section `model` whose keys are a section of their own.
inline constexpr llvm::StringLiteral kRopeScaling = "rope_scaling";

llvm::ArrayRef<Key> allKeys();
/// Those of a file; `rope_scaling` is inside `model`.
llvm::ArrayRef<llvm::StringRef> allSections();

/// "a number above 0", "one of flash, unfused".
std::string describeType(const Key &key);

/// The words of `a|b`.
llvm::SmallVector<llvm::StringRef> splitWords(llvm::StringRef words);
/// Whether `name` is one of `a|b`, of which one that ends in `*` is the
/// beginning.
bool isNamed(llvm::StringRef names, llvm::StringRef name);

/// The first key of the family, or of any, by name or alias; null if there is
/// none. Without a `section`, by its name as an option.
const Key *findKey(llvm::StringRef name, llvm::StringRef section = "",
                   const Family *family = nullptr);

/// The key of the section `model` that a `config.json` of the family has by
/// `name`; null if there is none.
const Key *findHubKey(llvm::StringRef name, const Family &family);

/// The key of `family` for what `key` is a key for in others; null if none.
const Key *findCounterpart(const Key &key, const Family *family);

/// The key of `family` for a member of Model; null if it has none.
const Key *findKeyOf(const Family *family, Field (*member)(Description &));
/// `findKeyOf(family, modelField<&Model::width>)`.
template <auto member>
Field modelField(Description &description) {
  return &(description.model.*member);
}

/// `; did you mean 'lr'?` if a candidate is near enough, otherwise nothing.
std::string suggest(llvm::StringRef word,
                    llvm::ArrayRef<llvm::StringRef> candidates);
/// Whether a key of some section has the name.
bool isKeyElsewhere(llvm::StringRef name);
/// The same for a key, which may be of another section, have another name in
/// other programs, or lack a colon or the space after it.
std::string suggestKey(llvm::StringRef word, llvm::StringRef section,
                       const Family *family = nullptr);
/// The key of the section `model` that the family has for what it, another
/// family or another program calls `name`; null if there is none.
const Key *findModelKey(llvm::StringRef name, const Family &family);
/// The key of the section `model` that the family has for what `word` is, or is
/// near to, there or elsewhere; null if there is none.
const Key *findMeantKey(llvm::StringRef word, const Family &family);
/// What `suggestKey` says, of a key of a `config.json`.
std::string suggestModelKey(llvm::StringRef word, const Family &family);

//===----------------------------------------------------------------------===//
// Values and diagnostics
//===----------------------------------------------------------------------===//

struct Origin {
  llvm::SMLoc location;
  std::string option = {};             ///< As it was given: `n-layer`.
  std::vector<llvm::SMLoc> items = {}; ///< Of a list in a file.

  bool isOption() const { return !option.empty(); }

  /// The place of an item, or of the whole list if that is all there is.
  Origin getItem(size_t index) const {
    return index < items.size() ? Origin{items[index], option, {}} : *this;
  }
};

struct Member;
class Diagnostics;

struct GivenValue {
  enum Kind { Null, Plain, Quoted, List, Map };
  Kind kind = Null;
  std::string text;              ///< of Plain and Quoted
  std::vector<GivenValue> items; ///< of List
  Origin origin;
  std::vector<Member> members = {}; ///< of Map, if the key is for one
};

/// A name and its value, in a map.
struct Member {
  std::string name;
  Origin origin; ///< of the name
  GivenValue value;
};

/// A key that was given, under one of its names.
struct Entry {
  const Key *key;
  GivenValue value;
  std::string name;
  Origin origin; ///< of the name
};

/// Takes the keys of one file as they come: refuses those that are given twice,
/// unless it is with one value under two names, and takes maps apart.
class EntryList {
public:
  /// With `passesRotary`, what the file says in `rope_scaling` is passed over.
  EntryList(std::vector<Entry> &entries, Diagnostics &diagnostics,
            bool passesRotary = false)
      : entries(entries), diagnostics(diagnostics), passesRotary(passesRotary) {
  }

  void add(const Key &key, Member given) { add(key, std::move(given), ""); }
  /// From here on, keys in a map that have a place outside are those of this
  /// family.
  void setFamily(const Family &value) { family = &value; }

private:
  struct Seen {
    Member member;
    std::string map; ///< The name of the map that it is in, if it is in one.
  };
  void add(const Key &key, Member given, llvm::StringRef map);
  void addMap(const Key &key, llvm::StringRef name, GivenValue &map);
  void addUnknown(const Key &key, llvm::StringRef map, const Member &member);
  /// What two names or places of a map do not both say.
  void compareMaps(const Key &key, const Member &given, const Member &first);

  std::vector<Entry> &entries;
  Diagnostics &diagnostics;
  bool passesRotary;
  const Family *family = nullptr;
  llvm::StringMap<Seen> seen; ///< by section and name of the key
};

/// How to stretch positions is one decision, as is what to recompute: whether
/// one of `entries` makes that of `section`, which then replaces what places of
/// lower rank say of it.
bool decides(llvm::ArrayRef<Entry> entries, llvm::StringRef section);

/// What the last entry for `model_type` says; null if it is no family.
const Family *findFamily(llvm::ArrayRef<Entry> entries);

/// From here on each entry has the key of `family`, where names mean different
/// things; one of other families alone is an error.
void resolveFamily(std::vector<Entry> &entries, const Family &family,
                   Diagnostics &diagnostics);

/// Whether both say the same of the key, in any spelling of YAML's core schema:
/// numbers, true and false, and texts with or without quotes.
bool isSameValue(const Key &key, const GivenValue &lhs, const GivenValue &rhs);

/// `'x'`, `a list`.
std::string describe(const GivenValue &value);
/// `x`, `a list`.
std::string describeBare(const GivenValue &value);

/// Whether a word without quotes is null in YAML's core schema.
bool isNull(llvm::StringRef word);

/// The same diagnostic in other words. What a terminal would obey rather than
/// show, in the message and in the quoted line, becomes `?`.
llvm::SMDiagnostic restate(const llvm::SMDiagnostic &given,
                           llvm::StringRef message);

/// A warning about several names; `{}` in the texts stands for them.
struct SharedWarning {
  std::string one, many;
  Origin first;
  std::vector<std::string> names;
};

/// Prints through the source manager, and remembers whether there was an error.
class Diagnostics {
public:
  explicit Diagnostics(llvm::SourceMgr &sources) : sources(sources) {}
  /// Prints what is left of `shared` on request alone.
  Diagnostics(llvm::SourceMgr &sources, std::vector<SharedWarning> &shared)
      : sources(sources), shared(&shared) {}

  void error(Origin origin, const llvm::Twine &message) {
    failed = true;
    print(origin, llvm::SourceMgr::DK_Error, message);
  }
  void warning(Origin origin, const llvm::Twine &message) {
    print(origin, llvm::SourceMgr::DK_Warning, message);
  }
  void note(Origin origin, const llvm::Twine &message) {
    print(origin, llvm::SourceMgr::DK_Note, message);
  }
  /// Begins the message with the key, or with the option that it came as.
  void error(const Key &key, Origin origin, const llvm::Twine &message);
  void warning(const Key &key, Origin origin, const llvm::Twine &message);
  /// Says later, of all names with the same texts at once, what `one` says of
  /// `name`, and `many` of several.
  void warnTogether(const Origin &origin, llvm::StringRef name,
                    const llvm::Twine &one, const llvm::Twine &many);
  /// The same of what has no effect, `why` being ": reason" or " with this".
  void noEffect(const Origin &origin, llvm::StringRef name,
                const llvm::Twine &why);
  void printShared();

  bool hasFailed() const { return failed; }
  /// Whether what the source manager is told is told by this.
  bool isPrinting() const { return printing; }
  llvm::SourceMgr &getSources() { return sources; }

private:
  void print(Origin origin, llvm::SourceMgr::DiagKind kind,
             const llvm::Twine &message);

  llvm::SourceMgr &sources;
  std::vector<SharedWarning> *shared = nullptr;
  bool failed = false, printing = false;
};

/// Whether `name` is a key of Megatron's or NeMo's that is none here. A value
/// that would change something is an error, or a warning where all of it is
/// decided here. `sharesStates`: as `use_distributed_optimizer` says.
bool checkForeignKey(llvm::StringRef name, const GivenValue &value,
                     const Origin &origin, const Family *family,
                     Diagnostics &diagnostics, bool sharesStates = false);

/// Whether there is such a key, and which of its values are taken is another
/// matter in each family.
bool dependsOnFamily(llvm::StringRef name);
/// The same of what `use_distributed_optimizer` says.
bool dependsOnSharing(llvm::StringRef name);

/// Whether the key is a word of Megatron's for what other keys say, which has
/// no place in a `config.json`.
bool isShorthand(const Key &key);
/// Puts entries of what they mean in the place of shorthands for one value. One
/// beside another value in the same file is an error.
void resolveShorthands(std::vector<Entry> &entries, Diagnostics &diagnostics);

/// `; write 1000`, of a value that the key does not take but in another
/// spelling (1_000, 1e3, yes, text in quotes); otherwise nothing.
std::string suggestSpelling(const Key &key, const GivenValue &value);
/// What to write for a global batch of `global` sequences, of which `ranks`
/// that take `size` at once have no whole number: the next multiple, and the
/// largest micro-batch of at most `size` that divides it.
std::string suggestBatch(int64_t global, int64_t size, int64_t ranks);

/// Reads `value` into the key's member. Null leaves the default.
void assign(const Key &key, const GivenValue &value, Description &description,
            Diagnostics &diagnostics);

//===----------------------------------------------------------------------===//
// The three places, and what is checked afterwards
//===----------------------------------------------------------------------===//

/// Where each key that was given came from, by the key's name.
using Origins = llvm::StringMap<Origin>;

/// The sections and keys of a YAML file. Locations of sections go to
/// `sections`; keys of other programs whose values depend on the family, which
/// is not said before them, to `foreign`. Fails if it is not YAML; what else is
/// wrong goes to `diagnostics` alone.
llvm::LogicalResult readYAML(llvm::MemoryBufferRef buffer,
                             std::vector<Entry> &entries,
                             std::vector<Member> &foreign, Origins &sections,
                             Diagnostics &diagnostics);

/// The keys of a Hugging Face `config.json` that the family has, which `given`
/// says, the entries of higher rank, or else the file. What training does not
/// need goes to `ignoredKeys` and `tokenIds` of `description`; what might mean
/// something is a warning. A file without any size of the model, of which
/// `given` has none either, is an error.
void readHuggingFace(llvm::MemoryBufferRef buffer, llvm::ArrayRef<Entry> given,
                     std::vector<Entry> &entries, Description &description,
                     Diagnostics &diagnostics);

enum class Syntax { YAML, JSON };

/// Opens a file, and checks what parsers are sensitive to: size, UTF-8, control
/// characters, depth; in YAML also tabs, the length and the ends of lines; and
/// whether it is rather a file of another kind. Null, with a diagnostic, at
/// `origin` and with the `hint` if the file cannot be opened.
const llvm::MemoryBuffer *openText(llvm::StringRef path, Syntax syntax,
                                   Origin origin, Diagnostics &diagnostics,
                                   llvm::StringRef hint = "");

/// What Megatron's keys say of a model, as keys of the family say it. What the
/// family cannot have, or other keys say in another way, is an error.
void resolveMegatron(Description &description, const Origins &origins,
                     Diagnostics &diagnostics);

/// What Megatron's keys say of the schedule in samples and shares, in steps;
/// the keys for steps then have their origin. What is no whole number of steps,
/// or another number than these say, is an error.
void resolveSchedule(Description &description, Origins &origins,
                     Diagnostics &diagnostics);

/// What concerns more than one key. Resolves what is left in `recompute`.
void checkDescription(Description &description, const Origins &origins,
                      Diagnostics &diagnostics);

} // namespace reprise::frontend

#endif // REPRISE_FRONTEND_KEYS_H
