//===- Tokenizer.h - Text to tokens and back --------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_TEXT_TOKENIZER_H
#define REPRISE_RUNTIME_TEXT_TOKENIZER_H

#include "BytePairs.h"
#include "Json.h"
#include "PreTokenizer.h"
#include "runtime/base/ThreadPool.h"

namespace reprise::runtime {

/// Tokens that are found in the text before anything else happens to it.
class AddedTokens {
public:
  /// How a token found in the text treats white space beside it.
  struct Flags {
    bool takesSpaceLeft, takesSpaceRight;
  };
  struct Match {
    const unsigned char *begin, *end;
    uint32_t token;
    Flags flags;
  };

  bool empty() const { return nodes.empty(); }
  /// False if there is no memory left. `text` is not empty.
  bool add(std::string_view text, uint32_t token, Flags flags);

  /// The leftmost token in [begin, end), of those that begin there the longest;
  /// false if there is none.
  bool find(const unsigned char *begin, const unsigned char *end,
            Match &match) const;

private:
  /// Of a tree of bytes; nodes of the same parent are linked.
  struct Node {
    uint32_t firstChild, sibling; ///< 0 is none.
    uint32_t token;               ///< kNoToken if none ends here.
    Flags flags;
    unsigned char byte;
  };

  List<Node> nodes;      ///< The first one is the root.
  bool begins[256] = {}; ///< Whether some token begins so.
};

/// The byte-level byte-pair encoding that a file tokenizer.json describes, as
/// published for GPT-2, Llama 3 and Qwen 2 and 3. What the file asks for beyond
/// that is refused by name. Tokens are the published library's, without those
/// that its post-processor would add at the beginning or the end.
class Tokenizer {
public:
  /// Reads a file, or the tokenizer.json in a folder.
  bool load(const char *path, Error &error);

  /// Reads the text of such a file; errors call it `path`.
  bool read(std::string_view json, const char *path, Error &error);

  /// One more than the largest token.
  int64_t vocabSize() const { return int64_t(pairs.vocabulary.size()); }
  const char *path() const { return name.begin(); }

  /// Appends the tokens of the text, which has to be UTF-8; errors call it
  /// `textName`. They do not depend on the number of threads. Needs some MB,
  /// and as much as the text has if that must be normalized.
  bool encode(const char *textName, const unsigned char *text, int64_t size,
              ThreadPool &pool, List<uint32_t> &tokens, Error &error) const;

  /// The bytes of a token; perhaps a part of a character. Empty if no token has
  /// this id.
  std::string_view decode(uint32_t token) const {
    return pairs.vocabulary.has(token) ? pairs.vocabulary.bytesOf(token)
                                       : std::string_view();
  }

private:
  friend class TokenizerFile;
  friend class TextEncoder;

  List<char> name;
  CharTable table;
  SplitKind split = SplitKind::Whole;
  bool addsPrefixSpace = false;
  bool isNormalizing = false; ///< To NFC.
  BytePairs pairs;
  AddedTokens addedToText, addedToNormalized;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_TEXT_TOKENIZER_H
