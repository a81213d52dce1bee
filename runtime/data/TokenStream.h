//===- TokenStream.h - The tokens of many files -----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DATA_TOKENSTREAM_H
#define REPRISE_RUNTIME_DATA_TOKENSTREAM_H

#include "TokenType.h"
#include "runtime/base/List.h"
#include "runtime/base/MappedFile.h"
#include "runtime/base/PlainFile.h"
#include "runtime/base/ThreadPool.h"
#include "runtime/text/Tokenizer.h"

#include <optional>

namespace reprise::runtime {

/// What files do not say themselves.
struct TokenFormat {
  std::optional<TokenType> type; ///< Of tokens in files without a header.
  const Tokenizer *tokenizer = nullptr; ///< For text; null: bytes are tokens.
  ThreadPool *pool = nullptr;           ///< Reads; needed with a tokenizer.
};

/// Whether a file of tokens begins as texts do and tokens do not, whose bytes
/// are all printable, or end lines.
bool looksLikeText(const PlainFile &file);

/// The tokens of all files one after the other. A file is what its first bytes
/// say (TokenHeader.h), and otherwise what its name does:
///
///   *.bin   with a Megatron index *.idx beside it; or, if there is none,
///   tokens
///           and nothing else (nanoGPT), of a type that somebody has to state
///   *.idx   a Megatron index, with its tokens in *.bin; both together may be
///           called by their name without an ending
///   others  text, whose bytes are the tokens unless there is a tokenizer; what
///           is known to be something else (FileKind.h) is refused
///
/// Files stay open, and tokens are read when they are asked for; those that a
/// tokenizer made are kept in memory, four bytes each.
class TokenStream {
public:
  TokenStream() = default;
  TokenStream(const TokenStream &) = delete;
  TokenStream &operator=(const TokenStream &) = delete;
  ~TokenStream();

  /// Appends a file, or all that match a pattern, in the order of their names.
  /// Not the tokens are checked (see below), but all else.
  bool add(const char *pattern, const TokenFormat &format, Error &error);

  int64_t size() const { return total; }
  int64_t numFiles() const { return int64_t(files.size()); }
  const PlainFile &file(int64_t i) const { return files[size_t(i)].plain; }
  /// Whether the file is text, since nothing says anything else.
  bool isText(int64_t file) const { return files[size_t(file)].isText; }
  /// Whether all of its bytes are tokens, or parts of these, by no word but the
  /// command line's.
  bool isBare(int64_t file) const { return files[size_t(file)].isBare; }
  /// Whether there are files, and all of them are text.
  bool isText() const;
  /// The bytes of text that a tokenizer made tokens of, and how many these are.
  int64_t textBytes() const { return tokenizedBytes; }
  int64_t textTokens() const { return tokenizedTokens; }

  /// Whether all tokens are in [0, vocabSize); the error is about the first
  /// that is not. Reads every file once but those whose type has no others, in
  /// all threads of `pool`; null: in this one.
  bool check(int64_t vocabSize, ThreadPool *pool, Error &error) const;

  /// Writes tokens [position, position + count), which must be there, to
  /// `tokens`; null: only checks them. False if
  /// one of them is not in [0, vocabSize), or a file cannot be read any more.
  /// May be called by several threads.
  bool read(int64_t position, int64_t count, int64_t vocabSize, int32_t *tokens,
            Error &error) const;

private:
  struct DataFile {
    PlainFile plain;
    bool isText = false, isBare = false;
  };
  /// Tokens of one type side by side in a file, or, if there is `memory`,
  /// there.
  struct Run {
    int64_t offset;       ///< The first byte.
    int64_t first, count; ///< Where in the stream, and how many.
    int32_t file;
    TokenType type;
    const uint32_t *memory;

    int64_t end() const { return offset + count * bytesOf(type); }
  };

  bool addFile(const char *path, const TokenFormat &format, Error &error);
  bool addByContent(const TokenFormat &format, Error &error);
  bool addText(const TokenFormat &format, Error &error);
  bool addBinary(std::optional<TokenType> stated, Error &error);
  bool addMegatron(const MappedFile &index, std::optional<TokenType> stated,
                   Error &error);
  bool addRun(TokenType type, int64_t offset, int64_t count, Error &error,
              const uint32_t *memory = nullptr);
  bool checkOverlaps(size_t firstRun, const char *index, Error &error);
  bool readRun(const Run &run, int64_t first, int64_t count, int64_t vocabSize,
               int32_t *tokens, Error &error) const;
  bool refuse(const Run &run, int64_t index, int64_t token, int64_t vocabSize,
              Error &error) const;

  List<DataFile> files;
  List<Run> runs;
  List<uint32_t *> tokenized; ///< What runs in memory point to.
  int64_t tokenizedBytes = 0, tokenizedTokens = 0;
  int64_t total = 0;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DATA_TOKENSTREAM_H
