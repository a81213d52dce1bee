//===- Tokenizer.cpp - Text to tokens and back ----------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tokenizer.h"

#include "runtime/base/MappedFile.h"

#include <algorithm>
#include <cinttypes>
#include <new>

using namespace reprise::runtime;

//===----------------------------------------------------------------------===//
// AddedTokens
//===----------------------------------------------------------------------===//

bool AddedTokens::add(std::string_view text, uint32_t token, Flags flags) {
  if (nodes.empty() && !nodes.push({0, 0, kNoToken, {}, 0}))
    return false;
  uint32_t node = 0;
  for (char c : text) {
    auto byte = uint8_t(c);
    uint32_t child = nodes[node].firstChild;
    while (child && nodes[child].byte != byte)
      child = nodes[child].sibling;
    if (!child) {
      child = uint32_t(nodes.size());
      if (!nodes.push({0, nodes[node].firstChild, kNoToken, {}, byte}))
        return false;
      nodes[node].firstChild = child;
    }
    node = child;
  }
  nodes[node].token = token;
  nodes[node].flags = flags;
  begins[uint8_t(text[0])] = true;
  return true;
}

bool AddedTokens::find(const unsigned char *begin, const unsigned char *end,
                       Match &match) const {
  if (nodes.empty())
    return false;
  for (; begin != end; ++begin) {
    if (!begins[*begin])
      continue;
    match.token = kNoToken;
    uint32_t node = 0;
    for (const unsigned char *at = begin; at != end; ++at) {
      node = nodes[node].firstChild;
      while (node && nodes[node].byte != *at)
        node = nodes[node].sibling;
      if (!node)
        break;
      if (nodes[node].token != kNoToken)
        match = {begin, at + 1, nodes[node].token, nodes[node].flags};
    }
    if (match.token != kNoToken)
      return true;
  }
  return false;
}

//===----------------------------------------------------------------------===//
// TextEncoder
//===----------------------------------------------------------------------===//

namespace reprise::runtime {

/// Encodes one text. Goes through it with one thread and cuts it into spans;
/// whenever there are enough of them, all threads turn them into tokens.
class TextEncoder {
public:
  TextEncoder(const Tokenizer &tokenizer, ThreadPool &pool,
              List<uint32_t> &result)
      : tokenizer(tokenizer), pool(pool), result(result),
        scanner(tokenizer.table, tokenizer.split) {}
  ~TextEncoder();

  bool run(const char *textName, const unsigned char *text, int64_t size,
           Error &error);

private:
  /// Text between two places where pieces end, or a token that was found.
  struct Span {
    const unsigned char *begin, *end;
    const unsigned char *textEnd; ///< How far a piece may look ahead.
    uint32_t token;               ///< kNoToken if this is text.
  };
  /// So much text at a time; some hundred spans.
  static constexpr int64_t kSpanBytes = 128 << 10, kBatchBytes = 32 << 20;
  static constexpr size_t kBatchSpans = 1 << 20;
  static constexpr int64_t kTasks = 256;

  template <typename Fn>
  bool splitAt(const AddedTokens &added, const unsigned char *begin,
               const unsigned char *end, Fn onText);
  bool addRaw(const unsigned char *begin, const unsigned char *end);
  bool addNormal(const unsigned char *begin, const unsigned char *end);
  bool addSpans(const unsigned char *begin, const unsigned char *end);
  bool push(const Span &span);
  bool flush();
  bool encode(const Span &span, PieceEncoder &encoder,
              List<uint32_t> &tokens) const;
  const unsigned char *skipSpace(const unsigned char *at,
                                 const unsigned char *end) const;
  const unsigned char *spaceBefore(const unsigned char *begin,
                                   const unsigned char *at) const;
  bool checkBytes(const unsigned char *begin, const unsigned char *end);
  bool keep(List<unsigned char> &copy, const unsigned char *&begin,
            const unsigned char *&end);

  const Tokenizer &tokenizer;
  ThreadPool &pool;
  List<uint32_t> &result;
  PieceScanner scanner;
  List<Span> spans;
  int64_t spanBytes = 0;
  List<unsigned char *> copies;     ///< What spans point to beside the text.
  PieceEncoder *encoders = nullptr; ///< One for each thread.
  List<uint32_t> *parts = nullptr;  ///< The tokens of each task.
  const char *textName = nullptr;
  const unsigned char *text = nullptr;
  int64_t size = 0;
  Error problem; ///< Empty when memory is short.
};

} // namespace reprise::runtime

/// `count` objects of a type whose constructor does nothing that fails; null if
/// there is no memory left.
template <typename T>
static T *makeArray(int64_t count) {
  auto *items = static_cast<T *>(malloc(size_t(count) * sizeof(T)));
  for (int64_t i = 0; items && i < count; ++i)
    new (items + i) T();
  return items;
}

template <typename T>
static void destroyArray(T *items, int64_t count) {
  for (int64_t i = 0; items && i < count; ++i)
    items[i].~T();
  free(items);
}

TextEncoder::~TextEncoder() {
  for (unsigned char *copy : copies)
    free(copy);
  destroyArray(encoders, pool.size());
  destroyArray(parts, kTasks);
}

/// Calls `onText(begin, end)` for what is between the tokens found in the text,
/// and pushes these.
template <typename Fn>
bool TextEncoder::splitAt(const AddedTokens &added, const unsigned char *begin,
                          const unsigned char *end, Fn onText) {
  const unsigned char *done = begin, *at = begin;
  AddedTokens::Match match;
  while (added.find(at, end, match)) {
    at = match.end;
    if (match.flags.takesSpaceLeft)
      match.begin = spaceBefore(begin, match.begin);
    if (match.flags.takesSpaceRight)
      match.end = skipSpace(match.end, end);
    // An earlier token may have taken the white space, too.
    if (done < match.begin && !onText(done, match.begin))
      return false;
    if (!push({match.begin, match.end, match.end, match.token}))
      return false;
    done = match.end;
  }
  return done == end || onText(done, end);
}

const unsigned char *TextEncoder::skipSpace(const unsigned char *at,
                                            const unsigned char *end) const {
  int length;
  while (at != end && tokenizer.table.classOf(decodeUtf8(at, length)) & kSpace)
    at += length;
  return at;
}

const unsigned char *TextEncoder::spaceBefore(const unsigned char *begin,
                                              const unsigned char *at) const {
  while (at != begin) {
    const unsigned char *last = at - 1;
    while ((*last & 0xC0) == 0x80)
      --last;
    int length;
    if (!(tokenizer.table.classOf(decodeUtf8(last, length)) & kSpace))
      break;
    at = last;
  }
  return at;
}

/// Hands the memory of `copy` to `copies`.
bool TextEncoder::keep(List<unsigned char> &copy, const unsigned char *&begin,
                       const unsigned char *&end) {
  begin = copy.begin();
  end = copy.end();
  if (!copies.reserve(copies.size() + 1))
    return false;
  copies.push(copy.release());
  return true;
}

bool TextEncoder::addRaw(const unsigned char *begin, const unsigned char *end) {
  if (tokenizer.isNormalizing &&
      !tokenizer.table.isStable(begin, end - begin)) {
    List<unsigned char> normal;
    if (!tokenizer.table.normalize(begin, end - begin, normal) ||
        !keep(normal, begin, end))
      return false;
  }
  return splitAt(tokenizer.addedToNormalized, begin, end,
                 [&](auto from, auto to) { return addNormal(from, to); });
}

bool TextEncoder::addNormal(const unsigned char *begin,
                            const unsigned char *end) {
  if (tokenizer.addsPrefixSpace && *begin != ' ') {
    List<unsigned char> prefixed;
    if (!prefixed.push(' ') || !prefixed.append(begin, size_t(end - begin)) ||
        !keep(prefixed, begin, end))
      return false;
  }
  return checkBytes(begin, end) && addSpans(begin, end);
}

/// Each byte must have a token.
bool TextEncoder::checkBytes(const unsigned char *begin,
                             const unsigned char *end) {
  const unsigned char *missing =
      std::find_if(begin, end, [&](unsigned char byte) {
        return tokenizer.pairs.byteTokens[byte] == kNoToken;
      });
  if (missing == end)
    return true;
  if (missing < text || missing >= text + size)
    return problem.set("'%s': its normal form has the byte 0x%02X, for which "
                       "'%s' has no token",
                       textName, *missing, tokenizer.path());
  MappedFile view = {const_cast<char *>(textName), text, size};
  return problem.setAt(view.placeOf(missing - text),
                       "byte %" PRId64 " is 0x%02X, for which '%s' has no "
                       "token",
                       int64_t(missing - text), *missing, tokenizer.path());
}

bool TextEncoder::addSpans(const unsigned char *begin,
                           const unsigned char *end) {
  const unsigned char *textEnd = end;
  while (begin != textEnd) {
    end = textEnd;
    if (textEnd - begin > kSpanBytes)
      end = scanner.safeCut(begin + kSpanBytes, textEnd);
    if (!push({begin, end, textEnd, kNoToken}))
      return false;
    begin = end;
  }
  return true;
}

bool TextEncoder::push(const Span &span) {
  spanBytes += span.end - span.begin;
  return spans.push(span) &&
         ((spanBytes < kBatchBytes && spans.size() < kBatchSpans) || flush());
}

bool TextEncoder::encode(const Span &span, PieceEncoder &encoder,
                         List<uint32_t> &tokens) const {
  if (span.token != kNoToken)
    return tokens.push(span.token);
  for (const unsigned char *at = span.begin; at != span.end;) {
    const unsigned char *end = scanner.pieceEnd(at, span.textEnd);
    if (!encoder.encode(tokenizer.pairs,
                        {reinterpret_cast<const char *>(at), size_t(end - at)},
                        tokens))
      return false;
    at = end;
  }
  return true;
}

/// Appends the tokens of all spans so far to the result.
bool TextEncoder::flush() {
  std::atomic<bool> good{true};
  auto count = int64_t(spans.size());
  auto firstOf = [&](int64_t task) { return size_t(count * task / kTasks); };
  pool.parallelFor(kTasks, 1, [&](int slot, int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      parts[task].clear();
      for (size_t i = firstOf(task); i < firstOf(task + 1) && good; ++i)
        if (!encode(spans[i], encoders[slot], parts[task]))
          good = false;
    }
  });
  for (int64_t task = 0; task < kTasks && good; ++task)
    good = result.append(parts[task].begin(), parts[task].size());
  spans.clear();
  spanBytes = 0;
  return good;
}

bool TextEncoder::run(const char *name, const unsigned char *data,
                      int64_t length, Error &error) {
  textName = name;
  text = data;
  size = length;
  int64_t invalid = findInvalidUtf8(text, size);
  if (invalid < size) {
    MappedFile view = {const_cast<char *>(textName), text, size};
    return error.setAt(
        view.placeOf(invalid),
        "byte %" PRId64 ", 0x%02X, is not UTF-8, which a tokenizer needs; "
        "convert the file, or leave such bytes out, with iconv -c -t UTF-8",
        invalid, text[invalid]);
  }
  encoders = makeArray<PieceEncoder>(pool.size());
  parts = makeArray<List<uint32_t>>(kTasks);
  bool good = encoders && parts &&
              splitAt(tokenizer.addedToText, text, text + size,
                      [&](auto from, auto to) { return addRaw(from, to); }) &&
              flush();
  if (good)
    return true;
  if (problem.text[0]) {
    error = problem;
    return false;
  }
  return error.set("no memory left for the tokens of '%s', %" PRId64
                   " bytes of text; tokenize it beforehand, in parts, or use "
                   "a smaller file",
                   textName, size);
}

bool Tokenizer::encode(const char *textName, const unsigned char *text,
                       int64_t size, ThreadPool &pool, List<uint32_t> &tokens,
                       Error &error) const {
  return TextEncoder(*this, pool, tokens).run(textName, text, size, error);
}
