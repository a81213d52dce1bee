//===- Vocabulary.h - What tokens are to a reader ---------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_TEXT_VOCABULARY_H
#define REPRISE_RUNTIME_TEXT_VOCABULARY_H

#include "runtime/base/Error.h"
#include "runtime/base/List.h"
#include "runtime/base/ThreadPool.h"

namespace reprise::runtime {

class Tokenizer;

/// What tokens are to a reader: bytes, what a tokenizer makes of text, or,
/// where nothing is known about them, just their numbers.
class Vocabulary {
public:
  /// Tokens are what the `tokenizer` makes, if it is not null; else bytes if
  /// the data `isText`; else numbers, however few there are.
  Vocabulary(int64_t size, bool isText, const Tokenizer *tokenizer);

  /// Appends the tokens of `text`; numbers have spaces between them. `what` is
  /// what errors call it.
  bool encode(const char *what, const char *text, ThreadPool &pool,
              List<int32_t> &tokens, Error &error) const;

  /// Appends what a token says: bytes that may be a part of a character. False
  /// if there is no memory left.
  bool decode(int32_t token, List<char> &text) const;

  /// What a text begins with if nobody says: a new line, or token 0.
  const char *defaultPrompt() const {
    return form == Form::Numbers ? "0" : "\n";
  }

private:
  enum class Form { Bytes, Numbers, Tokenizer };

  bool encodeNumbers(const char *what, const char *text, List<int32_t> &tokens,
                     Error &error) const;
  bool check(const char *what, const List<int32_t> &tokens, Error &error) const;

  int64_t size;
  Form form;
  const Tokenizer *tokenizer;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_TEXT_VOCABULARY_H
