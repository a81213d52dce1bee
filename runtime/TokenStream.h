//===- TokenStream.h - The tokens of many files -----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_TOKENSTREAM_H
#define REPRISE_RUNTIME_TOKENSTREAM_H

#include "List.h"
#include "MappedFile.h"
#include "TokenType.h"

#include <optional>

namespace reprise::runtime {

/// The tokens of all files one after the other, mapped into memory. The name
/// says what a file is:
///
///   *.bin   with llm.c's header; or with a Megatron index *.idx beside it; or,
///           if neither is there, tokens and nothing else (nanoGPT), of a type
///           that somebody has to state
///   *.idx   a Megatron index, with its tokens in *.bin
///   others  text whose bytes are the tokens
class TokenStream {
public:
  TokenStream() = default;
  TokenStream(const TokenStream &) = delete;
  TokenStream &operator=(const TokenStream &) = delete;
  ~TokenStream();

  /// Appends a file, or all that match a pattern, in the order of their names.
  /// `stated` is the type of tokens in files without a header. Not the tokens
  /// are checked, but all else.
  bool add(const char *pattern, std::optional<TokenType> stated, Error &error);

  int64_t size() const { return total; }
  int64_t numFiles() const { return int64_t(files.size()); }
  const MappedFile &file(int64_t i) const { return files[size_t(i)]; }
  /// Whether the file's bytes are the tokens, since its name says nothing else.
  bool isText(int64_t file) const;

  /// Writes tokens [position, position + count), which must be there. False if
  /// one of them is not in [0, vocabSize).
  bool read(int64_t position, int64_t count, int64_t vocabSize, int32_t *tokens,
            Error &error) const;

  /// Lets the system fetch these tokens, without waiting for them.
  void expect(int64_t position, int64_t count) const;

private:
  /// Tokens of one type side by side in a file.
  struct Run {
    const unsigned char *data;
    int64_t first, count; ///< Where in the stream, and how many.
    int32_t file;
    TokenType type;
  };

  bool addFile(const char *path, std::optional<TokenType> stated, Error &error);
  bool addBinary(std::optional<TokenType> stated, Error &error);
  bool addMegatron(const MappedFile &index, std::optional<TokenType> stated,
                   Error &error);
  bool addRun(TokenType type, int64_t offset, int64_t count, Error &error);
  bool checkOverlaps(size_t firstRun, const char *index, Error &error);
  template <typename Fn>
  bool forEachPiece(int64_t position, int64_t count, Fn fn) const;

  List<MappedFile> files;
  List<Run> runs;
  int64_t total = 0;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_TOKENSTREAM_H
