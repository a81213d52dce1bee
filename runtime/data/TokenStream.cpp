//===- TokenStream.cpp - The tokens of many files -------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenStream.h"

#include "MegatronIndex.h"
#include "TokenHeader.h"
#include "runtime/base/FileKind.h"
#include "runtime/base/Text.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <climits>
#include <glob.h>
#include <unistd.h>

using namespace reprise::runtime;

TokenStream::~TokenStream() {
  for (DataFile &file : files)
    file.plain.close();
  for (uint32_t *memory : tokenized)
    free(memory);
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

/// `path` with its last four characters replaced.
static void replaceEnding(const char *path, const char *ending,
                          char (&result)[PATH_MAX]) {
  snprintf(result, sizeof(result), "%.*s%s", int(strlen(path)) - 4, path,
           ending);
}

/// Whether this is the index of a .bin file that the pattern has, too.
static bool isListedTwice(const char *path, const glob_t &found) {
  char tokens[PATH_MAX];
  if (!endsIn(path, ".idx"))
    return false;
  replaceEnding(path, ".bin", tokens);
  char **end = found.gl_pathv + found.gl_pathc;
  return std::any_of(found.gl_pathv, end,
                     [&](const char *other) { return !strcmp(other, tokens); });
}

bool TokenStream::add(const char *pattern, const TokenFormat &format,
                      Error &error) {
  if (!strpbrk(pattern, "*?[") || access(pattern, F_OK) == 0)
    return addFile(pattern, format, error);
  glob_t found = {};
  int failure = glob(pattern, GLOB_ERR, nullptr, &found);
  bool good = true;
  if (failure == GLOB_NOMATCH)
    good = error.set("no file matches '%s'", pattern);
  else if (failure)
    good = error.set("cannot list what matches '%s': %s", pattern,
                     strerror(errno));
  for (size_t i = 0; good && i < found.gl_pathc; ++i)
    if (!isListedTwice(found.gl_pathv[i], found))
      good = addFile(found.gl_pathv[i], format, error);
  globfree(&found);
  return good;
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

/// How Megatron names a data set: without the endings of its two files.
static bool isPrefix(const char *path, char (&index)[PATH_MAX]) {
  snprintf(index, sizeof(index), "%s.idx", path);
  return access(path, F_OK) != 0 && access(index, F_OK) == 0;
}

/// An error about an index whose tokens are not beside it.
static bool failWithoutTokens(const char *index, const char *tokens,
                              Error &error) {
  return error.set("'%s' is the index of a Megatron data set, whose tokens are "
                   "in a second file beside it, but '%s' is missing",
                   index, tokens);
}

/// Adds to an error about a file that is not there which one is.
static bool offerName(const char *path, Error &error) {
  if (access(path, F_OK) == 0)
    return false;
  // The last two are what Megatron's tool adds to the name that it is given,
  // with the key of the text: "text", unless it is told another.
  for (const char *ending : {".bin", ".npy", ".txt", "_text_document.bin",
                             "_content_document.bin"}) {
    char longer[PATH_MAX];
    snprintf(longer, sizeof(longer), "%s%s", path, ending);
    if (access(longer, F_OK) == 0)
      return error.add("; there is '%s'", longer);
  }
  char *end;
  strtod(path, &end);
  if (!*end && strpbrk(path, "0123456789"))
    return error.add("; files have no weights here: an epoch has each sample "
                     "of all of them once, so a file that is given twice "
                     "counts twice");
  return false;
}

bool TokenStream::addFile(const char *path, const TokenFormat &format,
                          Error &error) {
  char tokens[PATH_MAX], found[PATH_MAX];
  if (isPrefix(path, found))
    path = found;
  bool isIndex = endsIn(path, ".idx");
  MappedFile index;
  PlainFile file;
  if (isIndex) {
    if (!index.map(path, error))
      return false;
    replaceEnding(path, ".bin", tokens);
    if (access(tokens, F_OK) != 0) {
      index.unmap();
      return failWithoutTokens(path, tokens, error);
    }
    path = tokens;
  }
  bool good = file.open(path, error) || offerName(path, error);
  if (good && !files.push({file})) {
    file.close();
    good = error.set("no memory left for a table of %zu files", files.size());
  }
  if (good)
    good = isIndex ? addMegatron(index, format.type, error)
                   : addByContent(format, error);
  index.unmap();
  return good;
}

/// A type that the command line states must be that of the file.
static bool checkStated(std::optional<TokenType> stated, TokenType type,
                        const char *path, Error &error) {
  return !stated || *stated == type ||
         error.set("'%s' has tokens of type %s, but --dtype is %s; it is "
                   "needed only for .bin files without a header",
                   path, nameOf(type), nameOf(*stated));
}

/// Whether a file may be text, by its first bytes.
static bool checkText(const PlainFile &file, Error &error) {
  char begin[4096];
  auto size = size_t(std::min<int64_t>(file.size, sizeof(begin)));
  if (!file.read(0, int64_t(size), begin, error))
    return false;
  constexpr char kRead[] = ", but only text, .npy and .bin files with tokens "
                           "are read";
  if (const FileKind *kind = findKind({begin, size}, file.size))
    return kind->refuse(file.path, kRead, error);
  auto *zero = static_cast<const char *>(memchr(begin, 0, size));
  return !zero ||
         error.set("'%s' is no text: its byte %td is 0x00. Tokens need a name "
                   "that ends in .bin, and --dtype; so do bytes of any other "
                   "kind, with --dtype u8",
                   file.path, zero - begin);
}

/// What the first bytes of the last file say counts more than its name.
bool TokenStream::addByContent(const TokenFormat &format, Error &error) {
  const PlainFile &file = files.back().plain;
  std::optional<TokenRange> range;
  if (!readTokenHeader(file, range, error))
    return false;
  if (range)
    return checkStated(format.type, range->type, file.path, error) &&
           addRun(range->type, range->offset, range->count, error);
  if (endsIn(file.path, ".bin"))
    return addBinary(format.type, error);
  if (endsIn(file.path, ".npy"))
    return error.set("'%s' is no NumPy array: it does not begin with "
                     "\\x93NUMPY",
                     file.path);
  return checkText(file, error) && addText(format, error);
}

/// What UTF-8 may begin with is no part of the text.
static bool measureByteOrderMark(const PlainFile &file, int64_t &bytes,
                                 Error &error) {
  constexpr char kMark[] = "\xEF\xBB\xBF";
  constexpr int64_t kBytes = sizeof(kMark) - 1;
  char begin[kBytes];
  bytes = 0;
  if (file.size < kBytes)
    return true;
  if (!file.read(0, kBytes, begin, error))
    return false;
  if (!memcmp(begin, kMark, kBytes))
    bytes = kBytes;
  return true;
}

bool TokenStream::addText(const TokenFormat &format, Error &error) {
  const PlainFile &file = files.back().plain;
  files.back().isText = true;
  if (format.type)
    return error.set("'%s' is text, since its name does not end in .bin, but "
                     "--dtype %s is for .bin files",
                     file.path, nameOf(*format.type));
  int64_t begin = 0;
  if (!measureByteOrderMark(file, begin, error))
    return false;
  if (!format.tokenizer)
    return addRun(TokenType::U8, begin, file.size - begin, error);
  MappedFile text;
  List<uint32_t> tokens;
  bool good =
      text.map(file.path, error) &&
      format.tokenizer->encode(file.path, text.data + begin, text.size - begin,
                               *format.pool, tokens, error);
  tokenizedBytes += text.size - begin;
  tokenizedTokens += int64_t(tokens.size());
  text.unmap();
  if (!good)
    return false;
  if (!tokenized.reserve(tokenized.size() + 1))
    return error.set("no memory left for a table of %zu texts",
                     tokenized.size());
  auto count = int64_t(tokens.size());
  tokenized.push(tokens.release());
  return addRun(TokenType::U32, 0, count, error, tokenized.back());
}

bool TokenStream::isText() const {
  for (int64_t i = 0; i < numFiles(); ++i)
    if (!isText(i))
      return false;
  return numFiles() > 0;
}

bool reprise::runtime::looksLikeText(const PlainFile &file) {
  constexpr int64_t kFewest = 16; // So many bytes of tokens may look like it.
  char begin[4096];
  int64_t size = std::min<int64_t>(file.size, sizeof(begin));
  Error ignored;
  return size >= kFewest && file.read(0, size, begin, ignored) &&
         std::all_of(begin, begin + size, [](char c) {
           auto byte = uint8_t(c); // Those from 0x80 on are no ASCII, but text.
           return (byte >= ' ' && byte != 0x7F) ||
                  (byte >= '\t' && byte <= '\r');
         });
}

/// Whether a file may have tokens and nothing else. Not asked where bytes are
/// said to be tokens: who says so knows what is in them.
static bool checkNumbers(const PlainFile &file, Error &error) {
  char begin[kBytesOfKind], last = 0;
  auto size = size_t(std::min<int64_t>(file.size, sizeof(begin)));
  if (!file.read(0, int64_t(size), begin, error) ||
      (size && !file.read(file.size - 1, 1, &last, error)))
    return false;
  const FileKind *kind = findKindOfNumbers({begin, size}, file.size, last);
  if (!kind)
    return true;
  kind->refuse(file.path, ", but only tokens are read from .bin files", error);
  // Tokens may still be such bytes, if hardly.
  return !kind->isWeak
             ? false
             : error.add("; if these are tokens all the same, numpy.save "
                         "writes them to a .npy file");
}

bool TokenStream::addBinary(std::optional<TokenType> stated, Error &error) {
  const PlainFile &file = files.back().plain;
  char indexPath[PATH_MAX];
  replaceEnding(file.path, ".idx", indexPath);
  if (access(indexPath, F_OK) == 0) {
    MappedFile index;
    bool good =
        index.map(indexPath, error) && addMegatron(index, stated, error);
    index.unmap();
    return good;
  }
  if (stated != TokenType::U8 && !checkNumbers(file, error))
    return false;
  if (!stated && looksLikeText(file))
    return error.set("'%s' begins as text does, but a file in .bin has tokens; "
                     "give it a name in .txt, or say --dtype if these are "
                     "tokens all the same",
                     file.path);
  if (!stated)
    return error.set("'%s' has no header of llm.c or NeMo Automodel, and a "
                     "Megatron index '%s' that would say how its tokens are "
                     "stored is not beside it; if it has tokens alone, as "
                     "nanoGPT writes them, say --dtype u16 or --dtype u32",
                     file.path, indexPath);
  int64_t each = bytesOf(*stated);
  if (file.size % each)
    return error.set("'%s' needs a whole number of tokens of %" PRId64
                     " bytes (--dtype %s), but got %" PRId64 " bytes",
                     file.path, each, nameOf(*stated), file.size);
  files.back().isBare = true;
  return addRun(*stated, 0, file.size / each, error);
}

bool TokenStream::addMegatron(const MappedFile &indexFile,
                              std::optional<TokenType> stated, Error &error) {
  MegatronIndex index;
  if (!index.read(indexFile, files.back().plain, error) ||
      !checkStated(stated, index.type(), indexFile.path, error))
    return false;
  size_t firstRun = runs.size();
  for (int64_t i = 0; i < index.numSequences(); ++i)
    if (!addRun(index.type(), index.offset(i), index.length(i), error))
      return false;
  return checkOverlaps(firstRun, indexFile.path, error);
}

bool TokenStream::addRun(TokenType type, int64_t offset, int64_t count,
                         Error &error, const uint32_t *memory) {
  if (count == 0)
    return true;
  int32_t file = int32_t(files.size()) - 1;
  Run *last = runs.empty() ? nullptr : &runs.back();
  if (last && last->file == file && last->end() == offset)
    last->count += count;
  else if (!runs.push({offset, total, count, file, type, memory}))
    return error.set("no memory left for a table of %zu parts of files",
                     runs.size());
  total += count;
  return true;
}

/// No two of the last file's runs may have a byte in common.
bool TokenStream::checkOverlaps(size_t firstRun, const char *index,
                                Error &error) {
  Run *begin = runs.begin() + firstRun;
  std::sort(begin, runs.end(),
            [](const Run &a, const Run &b) { return a.offset < b.offset; });
  Run *overlap =
      std::adjacent_find(begin, runs.end(), [](const Run &a, const Run &b) {
        return a.end() > b.offset;
      });
  if (overlap != runs.end())
    return error.set("'%s' has sequences that overlap: byte %" PRId64
                     " of '%s' belongs to two",
                     index, overlap[1].offset, files.back().plain.path);
  std::sort(begin, runs.end(),
            [](const Run &a, const Run &b) { return a.first < b.first; });
  return true;
}

//===----------------------------------------------------------------------===//
// Tokens
//===----------------------------------------------------------------------===//

/// The first of the tokens that is not in [0, vocabSize); `count` if all are.
template <typename T>
static int64_t findForeign(const unsigned char *data, int64_t count,
                           int64_t vocabSize) {
  auto load = [&](int64_t i) {
    T token;
    memcpy(&token, data + i * int64_t(sizeof(T)), sizeof(T));
    return token;
  };
  // Negative ones are above every vocabulary then.
  using Unsigned = std::make_unsigned_t<decltype(T() + 0)>;
  Unsigned highest = 0;
  for (int64_t i = 0; i < count; ++i)
    highest = std::max(highest, Unsigned(load(i)));
  int64_t i = 0;
  if (uint64_t(highest) < uint64_t(vocabSize))
    return count;
  while (i < count && uint64_t(Unsigned(load(i))) < uint64_t(vocabSize))
    ++i;
  return i;
}

/// Copies tokens as they are.
template <typename T>
static void copyTokens(const unsigned char *data, int64_t count,
                       int32_t *tokens) {
  for (int64_t i = 0; i < count; ++i) {
    T token;
    memcpy(&token, data + i * int64_t(sizeof(T)), sizeof(T));
    tokens[i] = int32_t(token);
  }
}

namespace {
/// How tokens of a type are handled.
struct TypeActions {
  int64_t (*findForeign)(const unsigned char *data, int64_t count,
                         int64_t vocabSize);
  void (*copy)(const unsigned char *data, int64_t count, int32_t *tokens);
};
} // namespace

template <typename T>
static constexpr TypeActions kActions = {findForeign<T>, copyTokens<T>};

static const TypeActions &actionsOf(TokenType type) {
  switch (type) {
  case TokenType::U8:
    return kActions<uint8_t>;
  case TokenType::I8:
    return kActions<int8_t>;
  case TokenType::U16:
    return kActions<uint16_t>;
  case TokenType::I16:
    return kActions<int16_t>;
  case TokenType::U32:
    return kActions<uint32_t>;
  case TokenType::I32:
    return kActions<int32_t>;
  case TokenType::I64:
    break;
  }
  return kActions<int64_t>;
}

/// A token of any value.
static int64_t loadToken(TokenType type, const unsigned char *data) {
  bool isSigned = type == TokenType::I8 || type == TokenType::I16 ||
                  type == TokenType::I32 || type == TokenType::I64;
  int64_t bytes = bytesOf(type);
  uint64_t token = isSigned && data[bytes - 1] & 0x80 ? ~uint64_t(0) : 0;
  memcpy(&token, data, size_t(bytes));
  return int64_t(token);
}

/// Whether a type has no numbers but those of the vocabulary.
static bool fitsAlways(TokenType type, int64_t vocabSize) {
  return (type == TokenType::U8 && vocabSize > UINT8_MAX) ||
         (type == TokenType::U16 && vocabSize > UINT16_MAX);
}

/// Sets an error about token number `index` of a run.
bool TokenStream::refuse(const Run &run, int64_t index, int64_t token,
                         int64_t vocabSize, Error &error) const {
  const PlainFile &file = files[size_t(run.file)].plain;
  int64_t offset = run.offset + index * bytesOf(run.type);
  if (run.type == TokenType::U8 && isText(run.file))
    return error.setAt(file.placeOf(offset),
                       "byte %" PRId64 " is the token %" PRId64 ", but the "
                       "model's vocabulary has %" PRId64
                       " tokens, 0 to %" PRId64,
                       offset, token, vocabSize, vocabSize - 1);
  const Run *first = &run;
  while (first != runs.begin() && first[-1].file == run.file)
    --first;
  error.set("'%s' has the token %" PRId64 " at byte %" PRId64
            "%s (number %" PRId64 ", from 0), but the model's vocabulary has "
            "%" PRId64 " tokens, 0 to %" PRId64,
            file.path, token, offset, run.memory ? " of its tokens" : "",
            run.first + index - first->first, vocabSize, vocabSize - 1);
  if (isBare(run.file) && looksLikeText(file))
    error.add("; the file begins as text does: give it a name in .txt if it is "
              "text");
  return false;
}

/// Writes tokens [first, first + count) of the run, or only checks them.
bool TokenStream::readRun(const Run &run, int64_t first, int64_t count,
                          int64_t vocabSize, int32_t *tokens,
                          Error &error) const {
  unsigned char buffer[1 << 14]; // Small enough for the stack.
  const TypeActions &actions = actionsOf(run.type);
  int64_t each = bytesOf(run.type);
  while (count > 0) {
    int64_t here = count;
    const unsigned char *data = buffer;
    if (run.memory) {
      data = reinterpret_cast<const unsigned char *>(run.memory + first);
    } else {
      here = std::min<int64_t>(count, int64_t(sizeof(buffer)) / each);
      if (!files[size_t(run.file)].plain.read(run.offset + first * each,
                                              here * each, buffer, error))
        return false;
    }
    int64_t good = actions.findForeign(data, here, vocabSize);
    if (good < here)
      return refuse(run, first + good, loadToken(run.type, data + good * each),
                    vocabSize, error);
    if (tokens) {
      actions.copy(data, here, tokens);
      tokens += here;
    }
    first += here;
    count -= here;
  }
  return true;
}

bool TokenStream::read(int64_t position, int64_t count, int64_t vocabSize,
                       int32_t *tokens, Error &error) const {
  const Run *run = std::upper_bound(runs.begin(), runs.end(), position,
                                    [](int64_t position, const Run &run) {
                                      return position < run.first;
                                    }) -
                   1;
  for (; count > 0; ++run) {
    int64_t first = position - run->first;
    int64_t here = std::min(count, run->count - first);
    bool isNeeded = tokens || !fitsAlways(run->type, vocabSize);
    if (isNeeded && !readRun(*run, first, here, vocabSize, tokens, error))
      return false;
    if (tokens)
      tokens += here;
    position += here;
    count -= here;
  }
  return true;
}

bool TokenStream::check(int64_t vocabSize, ThreadPool *pool,
                        Error &error) const {
  constexpr int64_t kPiece = 1 << 20;
  int64_t pieces = (total + kPiece - 1) / kPiece;
  auto checkPiece = [&](int64_t piece, Error &error) {
    int64_t first = piece * kPiece;
    return read(first, std::min(kPiece, total - first), vocabSize, nullptr,
                error);
  };
  std::atomic<int64_t> bad{pieces}; // The first one.
  auto checkPieces = [&](int, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end && i < bad; ++i) {
      Error ignored;
      int64_t known = bad;
      if (!checkPiece(i, ignored))
        while (i < known && !bad.compare_exchange_weak(known, i))
          ;
    }
  };
  if (pool)
    pool->parallelFor(pieces, 1, checkPieces);
  else
    checkPieces(0, 0, pieces);
  return bad == pieces || checkPiece(bad, error);
}
