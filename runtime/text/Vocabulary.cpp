//===- Vocabulary.cpp - What tokens are to a reader -----------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Vocabulary.h"

#include "Tokenizer.h"

#include <cerrno>
#include <cinttypes>
#include <cstdlib>
#include <cstring>

using namespace reprise::runtime;

static constexpr int64_t kBytes = 256;

Vocabulary::Vocabulary(int64_t size, bool isText, const Tokenizer *tokenizer)
    : size(size), form(tokenizer ? Form::Tokenizer
                       : isText  ? Form::Bytes
                                 : Form::Numbers),
      tokenizer(tokenizer) {}

bool Vocabulary::check(const char *what, const List<int32_t> &tokens,
                       Error &error) const {
  for (int32_t token : tokens)
    if (token < 0 || token >= size)
      return error.set("%s needs tokens below %" PRId64 ", the size of the "
                       "vocabulary, but has %" PRId32,
                       what, size, token);
  return true;
}

bool Vocabulary::encodeNumbers(const char *what, const char *text,
                               List<int32_t> &tokens, Error &error) const {
  const char *at = text;
  while (*at) {
    char *end = nullptr;
    errno = 0;
    long long number = strtoll(at, &end, 10);
    if (end == at || errno || number < 0 || number >= size ||
        (*end && *end != ' '))
      return error.set("%s needs numbers of tokens from 0 to %" PRId64
                       " with spaces between them, since nothing says what "
                       "the tokens are, but got '%s'",
                       what, size - 1, text);
    if (!tokens.push(int32_t(number)))
      return error.set("no memory left for %s", what);
    at = end + strspn(end, " ");
  }
  return true;
}

bool Vocabulary::encode(const char *what, const char *text, ThreadPool &pool,
                        List<int32_t> &tokens, Error &error) const {
  if (form == Form::Numbers)
    return encodeNumbers(what, text, tokens, error);
  auto *bytes = reinterpret_cast<const unsigned char *>(text);
  size_t length = strlen(text);
  if (form == Form::Tokenizer) {
    List<uint32_t> found;
    if (!tokenizer->encode(what, bytes, int64_t(length), pool, found, error))
      return false;
    for (uint32_t token : found)
      if (!tokens.push(int32_t(token)))
        return error.set("no memory left for %s", what);
  } else {
    for (size_t i = 0; i < length; ++i)
      if (!tokens.push(int32_t(bytes[i])))
        return error.set("no memory left for %s", what);
  }
  return check(what, tokens, error);
}

bool Vocabulary::decode(int32_t token, List<char> &text) const {
  if (form == Form::Tokenizer) {
    std::string_view piece = tokenizer->decode(uint32_t(token));
    return text.append(piece.data(), piece.size());
  }
  if (form == Form::Bytes && token < kBytes)
    return text.push(char(token));
  char number[24];
  int length =
      snprintf(number, sizeof(number),
               form == Form::Bytes ? "<%" PRId32 ">" : "%" PRId32 " ", token);
  return text.append(number, size_t(length));
}
