//===- TokenStream.cpp - The tokens of many files -------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenStream.h"

#include "MegatronIndex.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <climits>
#include <glob.h>
#include <unistd.h>

using namespace reprise::runtime;

TokenStream::~TokenStream() {
  for (PlainFile &file : files)
    file.close();
  for (uint32_t *memory : tokenized)
    free(memory);
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

/// Both endings have four characters.
static bool endsIn(const char *path, const char *ending) {
  size_t length = strlen(path);
  return length > 4 && !strcmp(path + length - 4, ending);
}

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

bool TokenStream::addFile(const char *path, const TokenFormat &format,
                          Error &error) {
  bool isIndex = endsIn(path, ".idx"), isBinary = endsIn(path, ".bin");
  if (!isIndex && !isBinary && format.type)
    return error.set("'%s' is text, since its name does not end in .bin, but "
                     "--dtype %s is for .bin files",
                     path, nameOf(*format.type));
  char tokens[PATH_MAX];
  MappedFile index;
  PlainFile file;
  if (isIndex) {
    if (!index.map(path, error))
      return false;
    replaceEnding(path, ".bin", tokens);
    path = tokens;
  }
  bool good = file.open(path, error);
  if (good && !files.push(file)) {
    file.close();
    good = error.set("no memory left for a table of %zu files", files.size());
  }
  if (good)
    good = isIndex    ? addMegatron(index, format.type, error)
           : isBinary ? addBinary(format.type, error)
                      : addText(format, error);
  index.unmap();
  return good;
}

bool TokenStream::addText(const TokenFormat &format, Error &error) {
  const PlainFile &file = files.back();
  if (!format.tokenizer)
    return addRun(TokenType::U8, 0, file.size, error);
  MappedFile text;
  List<uint32_t> tokens;
  bool good = text.map(file.path, error) &&
              format.tokenizer->encode(file.path, text.data, text.size,
                                       *format.pool, tokens, error);
  tokenizedBytes += text.size;
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

bool TokenStream::isText(int64_t file) const {
  return !endsIn(files[size_t(file)].path, ".bin");
}

bool TokenStream::isText() const {
  for (int64_t i = 0; i < numFiles(); ++i)
    if (!isText(i))
      return false;
  return numFiles() > 0;
}

/// A type that the command line states must be that of the file.
static bool checkStated(std::optional<TokenType> stated, TokenType type,
                        const char *path, Error &error) {
  return !stated || *stated == type ||
         error.set("'%s' has tokens of type %s, but --dtype is %s; it is "
                   "needed only for .bin files without a header",
                   path, nameOf(type), nameOf(*stated));
}

namespace {
/// The kinds of llm.c's .bin files (llmc/dataloader.h, train_gpt2.cu).
struct LlmcKind {
  int32_t magic, version;
  const char *what;
  std::optional<TokenType> type; ///< None if it has no tokens to train on.
};
} // namespace

static constexpr LlmcKind kLlmcKinds[] = {
    {20240520, 1, "tokens", TokenType::U16},
    {20240801, 7, "tokens", TokenType::U32},
    {20240522, 0, "multiple-choice questions", std::nullopt},
    {20240326, 0, "the parameters of a model", std::nullopt}};
static constexpr int64_t kLlmcHeaderBytes = 256 * 4;

/// Checks the header, of which there are `header[0..2]`; `count` is set to the
/// number of tokens behind it.
static bool readLlmcHeader(const PlainFile &file, const LlmcKind &kind,
                           const int32_t *header, int64_t &count,
                           Error &error) {
  if (!kind.type)
    return error.set("'%s' is a file of llm.c with %s, not with tokens",
                     file.path, kind.what);
  if (file.size < kLlmcHeaderBytes)
    return error.set("'%s' is truncated: llm.c's header needs %" PRId64
                     " bytes, but got %" PRId64,
                     file.path, kLlmcHeaderBytes, file.size);
  int32_t version = header[1];
  if (version != kind.version)
    return error.set("'%s' has llm.c's magic number %d, which needs version "
                     "%d, but got version %d",
                     file.path, kind.magic, kind.version, version);
  count = header[2];
  int64_t expected = kLlmcHeaderBytes + count * bytesOf(*kind.type);
  if (count < 0)
    return error.set("'%s' needs a number of tokens in llm.c's header, but got "
                     "%" PRId64,
                     file.path, count);
  if (file.size != expected)
    return error.set("'%s' needs %" PRId64 " bytes for a header of %" PRId64
                     " and the %" PRId64
                     " tokens of type %s that it names, but got %" PRId64,
                     file.path, expected, kLlmcHeaderBytes, count,
                     nameOf(*kind.type), file.size);
  return true;
}

bool TokenStream::addBinary(std::optional<TokenType> stated, Error &error) {
  const PlainFile &file = files.back();
  int32_t header[3] = {};
  if (!file.read(0, std::min<int64_t>(file.size, sizeof(header)), header,
                 error))
    return false;
  for (const LlmcKind &kind : kLlmcKinds) {
    int64_t count = 0;
    if (file.size >= 4 && header[0] == kind.magic)
      return readLlmcHeader(file, kind, header, count, error) &&
             checkStated(stated, *kind.type, file.path, error) &&
             addRun(*kind.type, kLlmcHeaderBytes, count, error);
  }
  char indexPath[PATH_MAX];
  replaceEnding(file.path, ".idx", indexPath);
  if (access(indexPath, F_OK) == 0) {
    MappedFile index;
    bool good =
        index.map(indexPath, error) && addMegatron(index, stated, error);
    index.unmap();
    return good;
  }
  if (!stated)
    return error.set("'%s' has no header of llm.c and no Megatron index '%s' "
                     "that would say how its tokens are stored; if it has "
                     "tokens alone, as nanoGPT writes them, say --dtype u16 or "
                     "--dtype u32",
                     file.path, indexPath);
  int64_t each = bytesOf(*stated);
  if (file.size % each)
    return error.set("'%s' needs a whole number of tokens of %" PRId64
                     " bytes (--dtype %s), but got %" PRId64 " bytes",
                     file.path, each, nameOf(*stated), file.size);
  return addRun(*stated, 0, file.size / each, error);
}

bool TokenStream::addMegatron(const MappedFile &indexFile,
                              std::optional<TokenType> stated, Error &error) {
  MegatronIndex index;
  if (!index.read(indexFile, files.back(), error) ||
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
                     index, overlap[1].offset, files.back().path);
  std::sort(begin, runs.end(),
            [](const Run &a, const Run &b) { return a.first < b.first; });
  return true;
}

//===----------------------------------------------------------------------===//
// Tokens
//===----------------------------------------------------------------------===//

/// Copies tokens up to the first that is not in [0, vocabSize), and returns how
/// many these are.
template <typename T>
static int64_t copyTokens(const unsigned char *data, int64_t count,
                          int64_t vocabSize, int32_t *tokens) {
  for (int64_t i = 0; i < count; ++i) {
    T token;
    memcpy(&token, data + i * int64_t(sizeof(T)), sizeof(T));
    if (int64_t(token) < 0 || int64_t(token) >= vocabSize)
      return i;
    tokens[i] = int32_t(token);
  }
  return count;
}

using CopyFn = int64_t (*)(const unsigned char *data, int64_t count,
                           int64_t vocabSize, int32_t *tokens);

static CopyFn copyOf(TokenType type) {
  switch (type) {
  case TokenType::U8:
    return copyTokens<uint8_t>;
  case TokenType::I8:
    return copyTokens<int8_t>;
  case TokenType::U16:
    return copyTokens<uint16_t>;
  case TokenType::I16:
    return copyTokens<int16_t>;
  case TokenType::U32:
    return copyTokens<uint32_t>;
  case TokenType::I32:
    return copyTokens<int32_t>;
  case TokenType::I64:
    return copyTokens<int64_t>;
  }
  return nullptr;
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

/// Sets an error about the token at this byte of the run's file.
bool TokenStream::refuse(const Run &run, int64_t offset, int64_t token,
                         int64_t vocabSize, Error &error) const {
  const PlainFile &file = files[size_t(run.file)];
  if (run.type == TokenType::U8 && isText(run.file))
    return error.setAt(file.placeOf(offset),
                       "byte %" PRId64 " is the token %" PRId64 ", but the "
                       "model's vocabulary has %" PRId64
                       " tokens, 0 to %" PRId64,
                       offset, token, vocabSize, vocabSize - 1);
  return error.set("'%s' has the token %" PRId64 " at byte %" PRId64
                   "%s, but the model's vocabulary has %" PRId64
                   " tokens, 0 to %" PRId64,
                   file.path, token, offset, run.memory ? " of its tokens" : "",
                   vocabSize, vocabSize - 1);
}

/// Writes tokens [first, first + count) of the run.
bool TokenStream::readRun(const Run &run, int64_t first, int64_t count,
                          int64_t vocabSize, int32_t *tokens,
                          Error &error) const {
  unsigned char buffer[1 << 14]; // Small enough for the stack.
  CopyFn copy = copyOf(run.type);
  int64_t each = bytesOf(run.type);
  while (count > 0) {
    int64_t offset = run.offset + first * each, here = count;
    const unsigned char *data = buffer;
    if (run.memory) {
      data = reinterpret_cast<const unsigned char *>(run.memory + first);
    } else {
      here = std::min<int64_t>(count, int64_t(sizeof(buffer)) / each);
      if (!files[size_t(run.file)].read(offset, here * each, buffer, error))
        return false;
    }
    int64_t copied = copy(data, here, vocabSize, tokens);
    if (copied < here)
      return refuse(run, offset + copied * each,
                    loadToken(run.type, data + copied * each), vocabSize,
                    error);
    tokens += here;
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
    if (!readRun(*run, first, here, vocabSize, tokens, error))
      return false;
    tokens += here;
    position += here;
    count -= here;
  }
  return true;
}
