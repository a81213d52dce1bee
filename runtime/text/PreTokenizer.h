//===- PreTokenizer.h - Where text is cut before it is merged ---*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_TEXT_PRETOKENIZER_H
#define REPRISE_RUNTIME_TEXT_PRETOKENIZER_H

#include "Unicode.h"

#include <string_view>

namespace reprise::runtime {

/// How text is cut in pieces; no token is longer than its piece. Named after
/// the models that made the expressions known:
///
///   Gpt2    's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+
///           |\s+(?!\S)|\s+
///   Llama3  (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}
///           | ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
///   Qwen2   the same with \p{N} for \p{N}{1,3}
///   Whole   all is one piece
enum class SplitKind : uint8_t { Gpt2, Llama3, Qwen2, Whole };

/// The kind whose expression is written exactly so; false if there is none.
bool findSplitKind(std::string_view expression, SplitKind &kind);

/// Cuts as the published expressions do: their alternatives in their order,
/// each as long as it can be.
class PieceScanner {
public:
  PieceScanner(const CharTable &table, SplitKind kind)
      : table(table), kind(kind) {}

  /// The end of the piece that begins at `begin`, which is before `end`, the
  /// end of the text. What is before `begin` does not matter.
  const unsigned char *pieceEnd(const unsigned char *begin,
                                const unsigned char *end) const;

  /// Some place from `begin` on at which a piece ends whatever the text before
  /// `begin` is; `end` if there is none: behind a line feed that something
  /// visible follows.
  const unsigned char *safeCut(const unsigned char *begin,
                               const unsigned char *end) const;

private:
  const unsigned char *gpt2End(const unsigned char *begin,
                               const unsigned char *end) const;
  const unsigned char *cl100kEnd(const unsigned char *begin,
                                 const unsigned char *end) const;
  uint8_t classAt(const unsigned char *at, const unsigned char *end,
                  int &length) const;
  const unsigned char *skip(const unsigned char *at, const unsigned char *end,
                            uint8_t all, uint8_t none, int64_t most) const;
  const unsigned char *spaceEnd(const unsigned char *begin,
                                const unsigned char *end) const;

  const CharTable &table;
  SplitKind kind;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_TEXT_PRETOKENIZER_H
