//===- TokenizerFile.cpp - Reading tokenizer.json -------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tokenizer.h"
#include "runtime/base/MappedFile.h"

#include <cinttypes>
#include <climits>
#include <sys/stat.h>

using namespace reprise::runtime;

/// Ids are below this, so that a wrong one does not ask for all memory.
static constexpr int64_t kMaxId = INT64_C(1) << 24;

/// For `%.*s`.
#define TEXT(string) int((string).size()), (string).data()

//===----------------------------------------------------------------------===//
// The byte-level alphabet
//===----------------------------------------------------------------------===//

/// The byte that a character of a vocabulary stands for, or -1. Printable
/// characters of Latin-1 are themselves; the other 68 bytes, in their order,
/// are the characters from U+0100 on (tokenizers,
/// pre_tokenizers/byte_level.rs).
static int byteOf(uint32_t character) {
  auto isItself = [](uint32_t c) {
    return (c >= 0x21 && c <= 0x7E) || (c >= 0xA1 && c <= 0xAC) ||
           (c >= 0xAE && c <= 0xFF);
  };
  if (character < 0x100)
    return isItself(character) ? int(character) : -1;
  uint32_t others = 0x100;
  for (uint32_t byte = 0; byte < 0x100; ++byte)
    if (!isItself(byte) && others++ == character)
      return int(byte);
  return -1;
}

namespace {
/// `byteOf` for all characters that may be of the alphabet.
struct Alphabet {
  int16_t bytes[0x100 + 68];

  Alphabet() {
    for (uint32_t c = 0; c < std::size(bytes); ++c)
      bytes[c] = int16_t(byteOf(c));
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// TokenizerFile
//===----------------------------------------------------------------------===//

namespace reprise::runtime {

/// Fills a tokenizer from its file.
class TokenizerFile {
public:
  TokenizerFile(Tokenizer &tokenizer, Error &error)
      : tokenizer(tokenizer), error(error) {}

  bool read(std::string_view json);

private:
  enum class Spelling { Alphabet, Other, NoMemory };

  bool readNormalizer(const JsonValue &value);
  bool readPreTokenizer(const JsonValue &value);
  bool readByteLevel(const JsonValue &value);
  bool readSplit(const JsonValue &value);
  bool setSplit(const JsonValue &value, SplitKind kind);
  bool readModel(const JsonValue &model);
  bool checkModelKeys(const JsonValue &model);
  bool readVocabulary(const JsonValue &tokens);
  bool readMerges(const JsonValue &merges);
  bool readMerge(const JsonValue &merge, uint32_t rank);
  bool readAddedToken(const JsonValue &value);
  bool readId(const JsonValue &value, std::string_view token, uint32_t &id);
  bool readFlag(const JsonValue &object, const char *key, bool absent,
                bool &flag);
  Spelling spell(std::string_view token);
  std::string_view spelled() const { return {bytes.begin(), bytes.size()}; }
  bool noMemory() {
    return error.set("no memory left for '%s'", tokenizer.path());
  }

  Tokenizer &tokenizer;
  Error &error;
  JsonDocument document;
  Alphabet alphabet;
  List<char> bytes; ///< Of the last token that was spelled.
  bool hasByteLevel = false, hasSplit = false;
};

} // namespace reprise::runtime

/// Puts what the token stands for into `bytes`, if it is of the alphabet.
TokenizerFile::Spelling TokenizerFile::spell(std::string_view token) {
  bytes.clear();
  const auto *text = reinterpret_cast<const unsigned char *>(token.data());
  for (size_t at = 0; at < token.size();) {
    int length;
    uint32_t character = decodeUtf8(text + at, length);
    at += size_t(length);
    if (character >= std::size(alphabet.bytes) || alphabet.bytes[character] < 0)
      return Spelling::Other;
    if (!bytes.push(char(alphabet.bytes[character])))
      return Spelling::NoMemory;
  }
  return Spelling::Alphabet;
}

bool TokenizerFile::readFlag(const JsonValue &object, const char *key,
                             bool absent, bool &flag) {
  JsonValue value = object.find(key);
  flag = value ? value.is(JsonKind::True) : absent;
  return !value || value.is(JsonKind::True) || value.is(JsonKind::False) ||
         document.fail(value, error, "'%s' needs true or false, but got %s",
                       key, value.kindName());
}

//===----------------------------------------------------------------------===//
// What happens to text
//===----------------------------------------------------------------------===//

bool TokenizerFile::readNormalizer(const JsonValue &value) {
  if (!value || value.is(JsonKind::Null))
    return true;
  std::string_view type = value.find("type").text();
  if (type == "NFC") {
    tokenizer.isNormalizing = true;
    return true;
  }
  if (type != "Sequence")
    return document.fail(value, error,
                         "the normalizer '%.*s' is not supported; NFC and "
                         "none are",
                         TEXT(type));
  for (JsonItem item : value.find("normalizers"))
    if (!readNormalizer(item.value))
      return false;
  return true;
}

bool TokenizerFile::setSplit(const JsonValue &value, SplitKind kind) {
  if (hasSplit)
    return document.fail(value, error,
                         "a second pre-tokenizer that splits text by an "
                         "expression is not supported (ByteLevel does, unless "
                         "its use_regex is false)");
  tokenizer.split = kind;
  hasSplit = true;
  return true;
}

bool TokenizerFile::readByteLevel(const JsonValue &value) {
  bool addsSpace, usesExpression;
  if (!readFlag(value, "add_prefix_space", true, addsSpace) ||
      !readFlag(value, "use_regex", true, usesExpression))
    return false;
  if (addsSpace && hasSplit)
    return document.fail(value.find("add_prefix_space"), error,
                         "add_prefix_space behind a Split, which would put a "
                         "space before each piece, is not supported");
  tokenizer.addsPrefixSpace = addsSpace;
  hasByteLevel = true;
  return !usesExpression || setSplit(value, SplitKind::Gpt2);
}

bool TokenizerFile::readSplit(const JsonValue &value) {
  JsonValue pattern = value.find("pattern"), regex = pattern.find("Regex");
  bool isInverted;
  if (!readFlag(value, "invert", false, isInverted))
    return false;
  if (!regex.is(JsonKind::String))
    return document.fail(pattern ? pattern : value, error,
                         "a Split needs a pattern {\"Regex\": ...}");
  SplitKind kind;
  if (!findSplitKind(regex.text(), kind))
    return document.fail(regex, error,
                         "the expression of this Split is not supported; "
                         "those of GPT-2, Llama 3 and Qwen 2 are: %.*s",
                         TEXT(regex.text()));
  // These expressions match all characters, so both mean the same.
  std::string_view behavior = value.find("behavior").text();
  if (behavior != (isInverted ? "Removed" : "Isolated"))
    return document.fail(value, error,
                         "a Split with behavior '%.*s' and invert %s is not "
                         "supported; Isolated and false are, and Removed and "
                         "true",
                         TEXT(behavior), isInverted ? "true" : "false");
  return setSplit(value, kind);
}

bool TokenizerFile::readPreTokenizer(const JsonValue &value) {
  std::string_view type = value.find("type").text();
  if (hasByteLevel)
    return document.fail(value, error,
                         "the pre-tokenizer '%.*s' behind ByteLevel is not "
                         "supported",
                         TEXT(type));
  if (type == "ByteLevel")
    return readByteLevel(value);
  if (type == "Split")
    return readSplit(value);
  if (type != "Sequence")
    return document.fail(value, error,
                         "the pre-tokenizer '%.*s' is not supported; "
                         "ByteLevel, Split and a Sequence of them are",
                         TEXT(type));
  for (JsonItem item : value.find("pretokenizers"))
    if (!readPreTokenizer(item.value))
      return false;
  return true;
}

//===----------------------------------------------------------------------===//
// Tokens
//===----------------------------------------------------------------------===//

bool TokenizerFile::readId(const JsonValue &value, std::string_view token,
                           uint32_t &id) {
  int64_t number;
  if (!value.asInteger(number) || number < 0 || number >= kMaxId)
    return document.fail(
        value, error,
        "the token '%.*s' needs an id from 0 to %" PRId64 ", but got %s %.*s",
        TEXT(token), kMaxId - 1, value.kindName(), TEXT(value.text()));
  id = uint32_t(number);
  return true;
}

bool TokenizerFile::readVocabulary(const JsonValue &tokens) {
  TokenTable &vocabulary = tokenizer.pairs.vocabulary;
  if (!vocabulary.reserve(size_t(tokens.size())))
    return noMemory();
  for (auto [key, value] : tokens) {
    uint32_t id = 0;
    if (!readId(value, key.text(), id))
      return false;
    Spelling spelling = spell(key.text());
    bool isText = spelling == Spelling::Alphabet && !bytes.empty();
    std::string_view meaning = isText ? spelled() : key.text();
    if (vocabulary.has(id)) {
      std::string_view other = vocabulary.bytesOf(id);
      return document.fail(key, error,
                           "the token '%.*s' has the id %u, which '%.*s' has "
                           "already",
                           TEXT(key.text()), id, TEXT(other));
    }
    if (spelling == Spelling::NoMemory || !vocabulary.add(meaning, id, isText))
      return noMemory();
  }
  for (int byte = 0; byte < 256; ++byte) {
    char c = char(byte);
    tokenizer.pairs.byteTokens[byte] = vocabulary.find({&c, 1});
  }
  return true;
}

bool TokenizerFile::readMerge(const JsonValue &merge, uint32_t rank) {
  std::string_view left, right;
  if (merge.is(JsonKind::String)) {
    std::string_view both = merge.text();
    size_t space = both.find(' ');
    if (space != both.npos && both.find(' ', space + 1) == both.npos) {
      left = {both.data(), space};
      right = both;
      right.remove_prefix(space + 1);
    }
  } else if (merge.is(JsonKind::Array) && merge.size() == 2) {
    JsonValue::Iterator item = merge.begin();
    JsonValue first = (*item).value, second = (*++item).value;
    if (first.is(JsonKind::String) && second.is(JsonKind::String)) {
      left = first.text();
      right = second.text();
    }
  }
  if (left.empty() || right.empty())
    return document.fail(merge, error,
                         "merge %u needs to be \"left right\" or "
                         "[\"left\", \"right\"]",
                         rank);

  const TokenTable &vocabulary = tokenizer.pairs.vocabulary;
  uint32_t ids[2];
  List<char> whole;
  for (int i = 0; i < 2; ++i) {
    std::string_view part = i ? right : left;
    ids[i] = spell(part) == Spelling::Alphabet ? vocabulary.find(spelled())
                                               : kNoToken;
    if (ids[i] == kNoToken)
      return document.fail(merge, error,
                           "merge %u is of '%.*s' and '%.*s', but the "
                           "vocabulary has no '%.*s'",
                           rank, TEXT(left), TEXT(right), TEXT(part));
    if (!whole.append(bytes.begin(), bytes.size()))
      return noMemory();
  }
  uint32_t result = vocabulary.find({whole.begin(), whole.size()});
  if (result == kNoToken)
    return document.fail(merge, error,
                         "merge %u makes '%.*s%.*s', but the vocabulary has "
                         "no such token",
                         rank, TEXT(left), TEXT(right));
  tokenizer.pairs.merges.add(ids[0], ids[1], {rank, result});
  return true;
}

bool TokenizerFile::readMerges(const JsonValue &merges) {
  if (!tokenizer.pairs.merges.reserve(size_t(merges.size())))
    return noMemory();
  uint32_t rank = 0;
  for (JsonItem item : merges)
    if (!readMerge(item.value, rank++))
      return false;
  return true;
}

/// All that changes what a byte-level model does is refused by name.
bool TokenizerFile::checkModelKeys(const JsonValue &model) {
  for (auto [key, value] : model) {
    std::string_view name = key.text();
    if (name == "type" || name == "vocab" || name == "merges" ||
        name == "ignore_merges")
      continue;
    // What stands for unknown characters; a text that has any is refused.
    if (name == "unk_token" || name == "fuse_unk")
      continue;
    double number;
    bool isOff = value.is(JsonKind::Null) || value.is(JsonKind::False) ||
                 (value.is(JsonKind::String) && value.text().empty()) ||
                 (value.asDouble(number) && number == 0);
    bool isKnown = name == "dropout" || name == "byte_fallback" ||
                   name == "continuing_subword_prefix" ||
                   name == "end_of_word_suffix";
    if (!isKnown || !isOff)
      return document.fail(value, error,
                           "'%.*s' of the model is not supported%s", TEXT(name),
                           isKnown ? " unless it is off" : "");
  }
  return true;
}

bool TokenizerFile::readModel(const JsonValue &model) {
  if (!model.is(JsonKind::Object))
    return document.fail(model ? model : document.root(), error,
                         "a tokenizer needs a 'model', an object");
  JsonValue type = model.find("type");
  if (type && type.text() != "BPE") // Early files do not say.
    return document.fail(type, error,
                         "the model '%.*s' is not supported; BPE is",
                         TEXT(type.text()));
  JsonValue vocabulary = model.find("vocab"), merges = model.find("merges");
  if (!vocabulary.is(JsonKind::Object) || !merges.is(JsonKind::Array))
    return document.fail(model, error,
                         "a BPE model needs 'vocab', an object, and 'merges', "
                         "an array");
  return checkModelKeys(model) &&
         readFlag(model, "ignore_merges", false,
                  tokenizer.pairs.ignoreMerges) &&
         readVocabulary(vocabulary) && readMerges(merges);
}

bool TokenizerFile::readAddedToken(const JsonValue &value) {
  TokenTable &vocabulary = tokenizer.pairs.vocabulary;
  std::string_view content = value.find("content").text();
  if (content.empty())
    return document.fail(value, error, "an added token needs a 'content'");
  uint32_t id = 0;
  JsonValue number = value.find("id");
  bool isSpecial, isWord, takesLeft, takesRight, isNormalized;
  if (!readId(number ? number : value, content, id) ||
      !readFlag(value, "special", false, isSpecial) ||
      !readFlag(value, "single_word", false, isWord) ||
      !readFlag(value, "lstrip", false, takesLeft) ||
      !readFlag(value, "rstrip", false, takesRight) ||
      !readFlag(value, "normalized", !isSpecial, isNormalized))
    return false;
  if (isWord)
    return document.fail(value.find("single_word"), error,
                         "single_word, as '%.*s' has it, is not supported",
                         TEXT(content));

  Spelling spelling = spell(content);
  std::string_view meaning =
      spelling == Spelling::Alphabet ? spelled() : content;
  uint32_t other =
      spelling == Spelling::Alphabet ? vocabulary.find(meaning) : kNoToken;
  if (vocabulary.has(id) ? vocabulary.bytesOf(id) != meaning &&
                               vocabulary.bytesOf(id) != content
                         : other != kNoToken)
    return document.fail(
        value, error,
        other != kNoToken
            ? "the added token '%.*s' has the id %u, but the vocabulary has "
              "it as %u"
            : "the added token '%.*s' has the id %u, which another token has "
              "already",
        TEXT(content), id, other);
  if (!vocabulary.has(id) && !vocabulary.add(content, id, false))
    return noMemory();

  const auto *text = reinterpret_cast<const unsigned char *>(content.data());
  List<unsigned char> normal;
  if (isNormalized && tokenizer.isNormalizing) {
    if (!tokenizer.table.normalize(text, int64_t(content.size()), normal))
      return noMemory();
    content = {reinterpret_cast<const char *>(normal.begin()), normal.size()};
  }
  AddedTokens &added =
      isNormalized ? tokenizer.addedToNormalized : tokenizer.addedToText;
  return added.add(content, id, {takesLeft, takesRight}) || noMemory();
}

bool TokenizerFile::read(std::string_view json) {
  if (!document.parse(json, tokenizer.path(), error))
    return false;
  JsonValue root = document.root(), split = root.find("pre_tokenizer");
  if (!readModel(root.find("model")) ||
      !readNormalizer(root.find("normalizer")))
    return false;
  if (split && !split.is(JsonKind::Null) && !readPreTokenizer(split))
    return false;
  if (!hasByteLevel)
    return document.fail(split ? split : root, error,
                         "a tokenizer needs the pre-tokenizer ByteLevel; "
                         "others than byte-level ones are not supported");
  if (!tokenizer.table.build(error))
    return false;
  for (JsonItem item : root.find("added_tokens"))
    if (!readAddedToken(item.value))
      return false;
  return true;
}

bool Tokenizer::read(std::string_view json, const char *file, Error &error) {
  if (!name.append(file, strlen(file) + 1))
    return error.set("no memory left for the name '%s'", file);
  return TokenizerFile(*this, error).read(json);
}

bool Tokenizer::load(const char *file, Error &error) {
  struct stat info;
  bool isFolder = stat(file, &info) == 0 && S_ISDIR(info.st_mode);
  char path[PATH_MAX];
  snprintf(path, sizeof(path), "%s%s", file, isFolder ? "/tokenizer.json" : "");
  MappedFile text;
  if (!text.map(path, error))
    return false;
  bool good =
      read({reinterpret_cast<const char *>(text.data), size_t(text.size)}, path,
           error);
  text.unmap();
  return good;
}
