//===- PreTokenizerTest.cpp - Where text is cut ---------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The cases are derived by hand from the published expressions (PreTokenizer.h)
// and their rule: the first alternative that matches, as long as it can be.
//
//===----------------------------------------------------------------------===//

#include "runtime/text/PreTokenizer.h"

#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

using namespace reprise::runtime;

namespace {

using Pieces = std::vector<std::string>;

class PreTokenizer : public testing::Test {
protected:
  void SetUp() override { ASSERT_TRUE(table.build(error)) << error.text; }

  Pieces cut(SplitKind kind, const std::string &text) {
    Pieces pieces;
    const auto *at = reinterpret_cast<const unsigned char *>(text.data());
    const auto *end = at + text.size();
    for (PieceScanner scanner(table, kind); at != end;) {
      const unsigned char *pieceEnd = scanner.pieceEnd(at, end);
      EXPECT_TRUE(at < pieceEnd && pieceEnd <= end);
      pieces.emplace_back(at, pieceEnd);
      at = pieceEnd;
    }
    return pieces;
  }
  Pieces gpt2(const std::string &text) { return cut(SplitKind::Gpt2, text); }
  Pieces llama(const std::string &text) { return cut(SplitKind::Llama3, text); }
  Pieces qwen(const std::string &text) { return cut(SplitKind::Qwen2, text); }

  CharTable table;
  Error error;
};

} // namespace

TEST_F(PreTokenizer, WordsTakeTheSpaceBeforeThem) {
  Pieces words = {"Hello", " world", "!"};
  EXPECT_EQ(gpt2("Hello world!"), words);
  EXPECT_EQ(llama("Hello world!"), words);
  EXPECT_EQ(qwen("Hello world!"), words);
  EXPECT_EQ(gpt2(""), Pieces());
}

TEST_F(PreTokenizer, ContractionsGoBeforeWords) {
  EXPECT_EQ(gpt2("I'm he'll they've don't it's we'd you're"),
            (Pieces{"I", "'m", " he", "'ll", " they", "'ve", " don", "'t",
                    " it", "'s", " we", "'d", " you", "'re"}));
  // The rest of a longer word is a word.
  EXPECT_EQ(gpt2("'sx 'rex"), (Pieces{"'s", "x", " '", "rex"}));
  EXPECT_EQ(llama("'sx 'rex"), (Pieces{"'s", "x", " '", "rex"}));
  // GPT-2 knows lower case alone; the others any, and other words keep the
  // apostrophe.
  EXPECT_EQ(gpt2("I'M"), (Pieces{"I", "'", "M"}));
  EXPECT_EQ(llama("I'M YOU'Re"), (Pieces{"I", "'M", " YOU", "'Re"}));
  EXPECT_EQ(qwen("O'Brien 'L'x'"),
            (Pieces{"O", "'Brien", " '", "L", "'x", "'"}));
  // The long s folds to s.
  EXPECT_EQ(llama(u8"a'\u017Fo"), (Pieces{"a", u8"'\u017F", "o"}));
  EXPECT_EQ(gpt2(u8"a'\u017Fo"), (Pieces{"a", "'", u8"\u017Fo"}));
  // The typographic apostrophe is punctuation.
  EXPECT_EQ(gpt2(u8"it\u2019s"), (Pieces{"it", u8"\u2019", "s"}));
  EXPECT_EQ(llama(u8"it\u2019s"), (Pieces{"it", u8"\u2019s"}));
  // They may be cut off by the end.
  EXPECT_EQ(gpt2("'"), (Pieces{"'"}));
  EXPECT_EQ(gpt2("'r"), (Pieces{"'", "r"}));
  EXPECT_EQ(llama("'l"), (Pieces{"'l"}));
}

TEST_F(PreTokenizer, NumbersAreAlone) {
  EXPECT_EQ(gpt2("a1234567 89"), (Pieces{"a", "1234567", " 89"}));
  EXPECT_EQ(llama("a1234567 89"), (Pieces{"a", "123", "456", "7", " ", "89"}));
  EXPECT_EQ(qwen("a123 4"), (Pieces{"a", "1", "2", "3", " ", "4"}));
  // \p{N} has more than ASCII's digits, and counts characters, not bytes.
  EXPECT_EQ(gpt2(u8"x\u00B2\u2167"), (Pieces{"x", u8"\u00B2\u2167"}));
  EXPECT_EQ(llama(u8"\u0661\u0662\u0663\u0664"),
            (Pieces{u8"\u0661\u0662\u0663", u8"\u0664"}));
}

TEST_F(PreTokenizer, WhiteSpaceLeavesItsLastCharacterToTheWord) {
  EXPECT_EQ(gpt2("a   b"), (Pieces{"a", "  ", " b"}));
  EXPECT_EQ(llama("a   b"), (Pieces{"a", "  ", " b"}));
  // Only a space goes to GPT-2's word, any white space but newlines to the
  // others'.
  EXPECT_EQ(gpt2("a\t\tb"), (Pieces{"a", "\t", "\t", "b"}));
  EXPECT_EQ(llama("a\t\tb"), (Pieces{"a", "\t", "\tb"}));
  EXPECT_EQ(gpt2(u8"a\u3000b"), (Pieces{"a", u8"\u3000", "b"}));
  EXPECT_EQ(llama(u8"a\u00A0\u3000b"), (Pieces{"a", u8"\u00A0", u8"\u3000b"}));
  // Before digits the others' space stays alone; before punctuation it does
  // not.
  EXPECT_EQ(llama("a  1"), (Pieces{"a", " ", " ", "1"}));
  EXPECT_EQ(llama("a  ."), (Pieces{"a", " ", " ."}));
  EXPECT_EQ(gpt2("a  1"), (Pieces{"a", " ", " 1"}));
}

TEST_F(PreTokenizer, WhiteSpaceAtTheEndIsOnePiece) {
  EXPECT_EQ(gpt2("a \t "), (Pieces{"a", " \t "}));
  EXPECT_EQ(llama("a \t "), (Pieces{"a", " \t "}));
  EXPECT_EQ(gpt2("a\n\n"), (Pieces{"a", "\n\n"}));
  EXPECT_EQ(gpt2(" "), (Pieces{" "}));
}

TEST_F(PreTokenizer, NewlinesEndWhiteSpaceForLlamaAndQwen) {
  EXPECT_EQ(gpt2("a\n\n\nb"), (Pieces{"a", "\n\n", "\n", "b"}));
  EXPECT_EQ(llama("a\n\n\nb"), (Pieces{"a", "\n\n\n", "b"}));
  EXPECT_EQ(gpt2("a \n  b"), (Pieces{"a", " \n ", " b"}));
  EXPECT_EQ(llama("a \n  b"), (Pieces{"a", " \n", " ", " b"}));
  EXPECT_EQ(llama("a \r\n \t\r x"), (Pieces{"a", " \r\n \t\r", " x"}));
  EXPECT_EQ(llama("a\n  "), (Pieces{"a", "\n", "  "}));
  // U+0085 and U+2028 are white space, but no newlines.
  EXPECT_EQ(llama(u8"a\u0085\u2028b"), (Pieces{"a", u8"\u0085", u8"\u2028b"}));
}

TEST_F(PreTokenizer, PunctuationTakesNewlinesForLlamaAndQwen) {
  EXPECT_EQ(gpt2("x = {\n}\n"), (Pieces{"x", " =", " {", "\n", "}", "\n"}));
  EXPECT_EQ(llama("x = {\n}\n\r\n "),
            (Pieces{"x", " =", " {\n", "}\n\r\n", " "}));
  // One character before letters goes to them.
  EXPECT_EQ(llama("(abc) _x --y"),
            (Pieces{"(abc", ")", " _", "x", " --", "y"}));
  EXPECT_EQ(gpt2("(abc) _x"), (Pieces{"(", "abc", ")", " _", "x"}));
}

TEST_F(PreTokenizer, MarksAreNoLetters) {
  // e and a combining acute; Hindi with vowel signs.
  EXPECT_EQ(gpt2(u8"e\u0301a"), (Pieces{"e", u8"\u0301", "a"}));
  EXPECT_EQ(llama(u8"e\u0301a"), (Pieces{"e", u8"\u0301a"}));
  EXPECT_EQ(
      gpt2(u8"\u0928\u092E\u0938\u094D\u0924\u0947"),
      (Pieces{u8"\u0928\u092E\u0938", u8"\u094D", u8"\u0924", u8"\u0947"}));
}

TEST_F(PreTokenizer, OtherScriptsAndEmoji) {
  EXPECT_EQ(gpt2(u8"\u4F60\u597D\uFF0C\u4E16\u754C"),
            (Pieces{u8"\u4F60\u597D", u8"\uFF0C", u8"\u4E16\u754C"}));
  EXPECT_EQ(llama(u8"\u4F60\u597D\uFF0C\u4E16\u754C"),
            (Pieces{u8"\u4F60\u597D", u8"\uFF0C\u4E16\u754C"}));
  // A family: emoji and joiners, all of them neither letter nor space.
  EXPECT_EQ(gpt2(u8"hi \U0001F468\u200D\U0001F469 \U0001F600!"),
            (Pieces{"hi", u8" \U0001F468\u200D\U0001F469", u8" \U0001F600!"}));
}

TEST_F(PreTokenizer, ExpressionsAreKnownByTheirText) {
  SplitKind kind;
  ASSERT_TRUE(findSplitKind(
      R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
      kind));
  EXPECT_EQ(kind, SplitKind::Gpt2);
  ASSERT_TRUE(findSplitKind(
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
      kind));
  EXPECT_EQ(kind, SplitKind::Llama3);
  ASSERT_TRUE(findSplitKind(
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
      kind));
  EXPECT_EQ(kind, SplitKind::Qwen2);
  EXPECT_FALSE(findSplitKind(R"(\s+)", kind));
}

// Where text may be cut for several threads, a piece ends in the whole text.
TEST_F(PreTokenizer, SafeCutsAreEndsOfPieces) {
  std::mt19937 random(1);
  const char *parts[] = {"a",        "B",        " ",        "  ", "\n",
                         "\r\n",     "\t",       "'s",       ".",  "1",
                         u8"\u00E9", u8"\u3000", u8"\u0301", "_"};
  for (SplitKind kind :
       {SplitKind::Gpt2, SplitKind::Llama3, SplitKind::Qwen2}) {
    PieceScanner scanner(table, kind);
    int cuts = 0;
    for (int run = 0; run < 300; ++run) {
      std::string text;
      for (int i = 0; i < 60; ++i)
        text += parts[random() % std::size(parts)];
      std::vector<bool> ends(text.size() + 1, false);
      size_t at = 0;
      for (const std::string &piece : cut(kind, text))
        ends[at += piece.size()] = true;
      const auto *begin = reinterpret_cast<const unsigned char *>(text.data());
      const auto *end = begin + text.size();
      for (const auto *from = begin; from != end; ++from) {
        const unsigned char *place = scanner.safeCut(from, end);
        ASSERT_TRUE(ends[size_t(place - begin)]) << text;
        cuts += place != end;
      }
    }
    EXPECT_GT(cuts, 1000);
  }
}
