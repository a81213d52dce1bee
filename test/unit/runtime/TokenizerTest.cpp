//===- TokenizerTest.cpp - Text to tokens and back ------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestFiles.h"

#include "runtime/data/Data.h"
#include "runtime/text/Tokenizer.h"

#include <algorithm>
#include <random>

using namespace reprise::runtime;
using namespace reprise::runtime::test;

namespace {

using Ids = std::vector<uint32_t>;

/// A tokenizer.json in parts. The vocabulary has all bytes but 0 (their ids are
/// themselves), then the strings of `tokens`.
struct Description {
  std::vector<std::string> tokens;
  std::string merges = "[]";
  std::string model; ///< More keys of the model, each with a comma behind it.
  std::string added = "[]";
  std::string normalizer = "null";
  std::string preTokenizer = R"({"type":"ByteLevel","add_prefix_space":false})";

  static std::string quoted(const std::string &text) {
    std::string result = "\"";
    for (char c : text)
      result += c == '"' || c == '\\' ? std::string("\\") + c : std::string{c};
    return result + "\"";
  }

  /// The character of the byte-level alphabet.
  static std::string letterOf(int byte) {
    int others = 0;
    for (int b = 0; b <= byte; ++b) {
      bool isItself = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b != 0xAD);
      if (b == byte && !isItself)
        byte = 0x100 + others;
      others += !isItself;
    }
    unsigned char bytes[4];
    int length = encodeUtf8(uint32_t(byte), bytes);
    return std::string(bytes, bytes + length);
  }

  std::string vocabulary() const {
    std::string text = "{";
    for (int byte = 1; byte < 256; ++byte)
      text += quoted(letterOf(byte)) + ":" + std::to_string(byte) + ",";
    uint32_t id = 256;
    for (const std::string &token : tokens)
      text += quoted(token) + ":" + std::to_string(id++) + ",";
    text.back() = '}';
    return text;
  }

  std::string json() const {
    return "{\"version\":\"1.0\",\"truncation\":null,\"added_tokens\":" +
           added + ",\n\"normalizer\":" + normalizer +
           ",\n\"pre_tokenizer\":" + preTokenizer +
           ",\n\"model\":{\"type\":\"BPE\",\"dropout\":null," + model +
           "\n\"vocab\":" + vocabulary() + ",\n\"merges\":" + merges + "}}";
  }
};

class TokenizerTest : public testing::Test {
protected:
  /// Why it was not loaded, without the place; empty if it was.
  std::string load(Tokenizer &tokenizer, const std::string &json) {
    std::string path = folder.write("tokenizer.json", json);
    Error error;
    if (tokenizer.load(path.c_str(), error))
      return "";
    std::string text = error.text;
    size_t message = text.find(": error: ");
    return message == std::string::npos ? text : text.substr(message + 9);
  }
  std::string refusal(const Description &description) {
    Tokenizer tokenizer;
    return load(tokenizer, description.json());
  }

  Ids encode(const Tokenizer &tokenizer, const std::string &text,
             int threads = 1) {
    ThreadPool pool;
    List<uint32_t> tokens;
    Error error;
    EXPECT_TRUE(pool.start(threads, error));
    EXPECT_TRUE(tokenizer.encode(
        "x.txt", reinterpret_cast<const unsigned char *>(text.data()),
        int64_t(text.size()), pool, tokens, error))
        << error.text;
    return Ids(tokens.begin(), tokens.end());
  }
  Ids encode(const Description &description, const std::string &text) {
    Tokenizer tokenizer;
    EXPECT_EQ(load(tokenizer, description.json()), "");
    return encode(tokenizer, text);
  }

  Folder folder;
};

/// Ids of `merged`: 256 ab, 257 bc, 258 abc, 259 cd, 260 " a"
const Description merged = [] {
  Description description;
  description.tokens = {"ab", "bc", "abc", "cd", u8"\u0120a"};
  description.merges =
      u8R"([["b","c"],["a","b"],["a","bc"],["c","d"],"\u0120 a"])";
  return description;
}();

} // namespace

TEST_F(TokenizerTest, BytesAreTokensWithoutMerges) {
  EXPECT_EQ(encode(Description(), "hi\n\x7F"), (Ids{'h', 'i', '\n', 0x7F}));
  EXPECT_EQ(encode(Description(), u8"\u00E9"), (Ids{0xC3, 0xA9}));
  EXPECT_EQ(encode(Description(), ""), Ids());
}

TEST_F(TokenizerTest, TheLowestRankIsMergedFirst) {
  EXPECT_EQ(encode(merged, "ab"), (Ids{256}));
  EXPECT_EQ(encode(merged, "abc"), (Ids{258})); // bc, then a bc.
  EXPECT_EQ(encode(merged, "bcd"), (Ids{257, 'd'}));
  EXPECT_EQ(encode(merged, "acd"), (Ids{'a', 259}));
  EXPECT_EQ(encode(merged, "abab ab"), (Ids{256, 256, ' ', 256}));
  EXPECT_EQ(encode(merged, "x a"), (Ids{'x', 260}));
  // Merges are those of pieces: nothing is merged over their ends.
  EXPECT_EQ(encode(merged, "a1b"), (Ids{'a', '1', 'b'}));
}

TEST_F(TokenizerTest, AmongEqualRanksTheLeftmostIsFirst) {
  Description twice;
  twice.tokens = {"aa", "aaaa"};
  twice.merges = R"(["a a", "aa aa"])";
  EXPECT_EQ(encode(twice, "aaa"), (Ids{256, 'a'}));
  EXPECT_EQ(encode(twice, "aaaaaaa"), (Ids{257, 256, 'a'}));
}

TEST_F(TokenizerTest, PairsThatAreThereTwiceHaveTheirLastRank) {
  Description twice;
  twice.tokens = {"ab", "bc"};
  twice.merges = R"(["a b", "b c", "a b"])";
  EXPECT_EQ(encode(twice, "abc"), (Ids{'a', 257}));
}

// "abd" is no result of merges; only where they are ignored it is found.
TEST_F(TokenizerTest, IgnoredMergesLeaveWholePieces) {
  Description whole = merged;
  whole.tokens.push_back("abd");
  EXPECT_EQ(encode(whole, "abd"), (Ids{256, 'd'}));
  whole.model = "\"ignore_merges\":true,";
  EXPECT_EQ(encode(whole, "abd"), (Ids{261}));
  EXPECT_EQ(encode(whole, "abdx"), (Ids{256, 'd', 'x'}));
}

TEST_F(TokenizerTest, AddedTokensAreFoundFirstAndLongestFirst) {
  Description special = merged;
  special.added = R"([{"id":300,"content":"<s>","special":true},
    {"id":301,"content":"<s>ab","special":true},
    {"id":256,"content":"ab","normalized":false},
    {"id":302,"content":"\n\n","normalized":true}])";
  EXPECT_EQ(encode(special, "a<s>b"), (Ids{'a', 300, 'b'}));
  EXPECT_EQ(encode(special, "<s>abc"), (Ids{301, 'c'}));
  EXPECT_EQ(encode(special, "<s>ac<s"), (Ids{300, 'a', 'c', '<', 's'}));
  // Even where merges would go elsewhere; leftmost ones win.
  EXPECT_EQ(encode(special, "abc"), (Ids{256, 'c'}));
  EXPECT_EQ(encode(special, "x\n\n\ny"), (Ids{'x', 302, '\n', 'y'}));
  EXPECT_EQ(encode(special, "<s><s>"), (Ids{300, 300}));
  Tokenizer tokenizer;
  ASSERT_EQ(load(tokenizer, special.json()), "");
  EXPECT_EQ(tokenizer.vocabSize(), 303);
  EXPECT_EQ(tokenizer.decode(300), "<s>");
  EXPECT_EQ(tokenizer.decode(302), "\n\n");
}

TEST_F(TokenizerTest, AddedTokensTakeSpaceBesideThem) {
  Description special;
  special.added = R"([{"id":300,"content":"<l>","special":true,"lstrip":true},
    {"id":301,"content":"<r>","special":true,"rstrip":true}])";
  EXPECT_EQ(encode(special, "a \t<l> b"), (Ids{'a', 300, ' ', 'b'}));
  EXPECT_EQ(encode(special, u8"a <r> \u3000b"), (Ids{'a', ' ', 301, 'b'}));
  EXPECT_EQ(encode(special, "<r>  <l>b"), (Ids{301, 300, 'b'}));
  EXPECT_EQ(encode(special, " <l>"), (Ids{300}));
}

TEST_F(TokenizerTest, PrefixSpacesGoBeforeEachText) {
  Description prefixed = merged;
  prefixed.preTokenizer = R"({"type":"ByteLevel","add_prefix_space":true})";
  prefixed.added = R"([{"id":300,"content":"<s>","special":true}])";
  EXPECT_EQ(encode(prefixed, "a"), (Ids{260}));
  EXPECT_EQ(encode(prefixed, " a"), (Ids{260}));
  EXPECT_EQ(encode(prefixed, "\na"), (Ids{' ', '\n', 'a'}));
  EXPECT_EQ(encode(prefixed, "a<s>a a"), (Ids{260, 300, 260, 260}));
}

TEST_F(TokenizerTest, NormalizersComposeFirst) {
  Description plain, nfc;
  nfc.normalizer = R"({"type":"Sequence","normalizers":[{"type":"NFC"}]})";
  EXPECT_EQ(encode(plain, u8"e\u0301"), (Ids{'e', 0xCC, 0x81}));
  EXPECT_EQ(encode(nfc, u8"e\u0301"), (Ids{0xC3, 0xA9}));
  // Added tokens that are not normalized are looked for in the text as it is,
  // others in the normal form.
  nfc.added = u8R"([{"id":300,"content":"e\u0301","normalized":false}])";
  EXPECT_EQ(encode(nfc, u8"e\u0301\u00E9"), (Ids{300, 0xC3, 0xA9}));
  nfc.added = u8R"([{"id":300,"content":"e\u0301","normalized":true}])";
  EXPECT_EQ(encode(nfc, u8"e\u0301\u00E9"), (Ids{300, 300}));
}

TEST_F(TokenizerTest, SequencesSplitAsTheirExpressionSays) {
  Description sequence;
  sequence.tokens = {"11", "111", "1111", "'M"};
  sequence.merges = R"(["1 1", "11 1", "11 11", "' M"])";
  auto use = [&](const std::string &numbers) {
    sequence.preTokenizer =
        R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":
        {"Regex":"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|)" +
        numbers +
        R"(| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},
        "behavior":"Isolated","invert":false},{"type":"ByteLevel",
        "add_prefix_space":false,"trim_offsets":true,"use_regex":false}]})";
  };
  EXPECT_EQ(encode(sequence, "1111I'M"), (Ids{258, 'I', '\'', 'M'}));
  use("\\\\p{N}{1,3}");
  EXPECT_EQ(encode(sequence, "1111I'M"), (Ids{257, '1', 'I', 259}));
  use("\\\\p{N}");
  EXPECT_EQ(encode(sequence, "1111"), (Ids{'1', '1', '1', '1'}));
  std::string plain = sequence.preTokenizer;
  size_t flag = plain.find("\"add_prefix_space\":false");
  sequence.preTokenizer.replace(flag, 24, "\"add_prefix_space\":true");
  EXPECT_EQ(refusal(sequence),
            "add_prefix_space behind a Split, which would put a space before "
            "each piece, is not supported");
  sequence.preTokenizer = plain;
  sequence.preTokenizer.replace(plain.find("\"use_regex\":false"), 17,
                                "\"use_regex\":true");
  EXPECT_NE(refusal(sequence).find("a second pre-tokenizer that splits"),
            std::string::npos);
  // Without any expression, all is one piece.
  sequence.preTokenizer =
      R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":false})";
  sequence.tokens.push_back("1a");
  sequence.merges = R"(["1 a"])";
  EXPECT_EQ(encode(sequence, "1a"), (Ids{260}));
}

TEST_F(TokenizerTest, TokensAreTheSameForAnyNumberOfThreads) {
  Description special = merged;
  special.added =
      R"([{"id":300,"content":"<s>","special":true,"rstrip":true}])";
  special.normalizer = R"({"type":"NFC"})";
  Tokenizer tokenizer;
  ASSERT_EQ(load(tokenizer, special.json()), "");
  std::mt19937 random(3);
  const char *parts[] = {"abc",  " ", "\n",        "\n\n", "abcd", "<s>",
                         "it's", "1", u8"e\u0301", ".",    "  ",   "cd"};
  std::string text;
  while (text.size() < 3'000'000)
    text += parts[random() % std::size(parts)];
  Ids one = encode(tokenizer, text, 1), three = encode(tokenizer, text, 3);
  EXPECT_TRUE(one == three);
}

// Before "z", each line feed is a piece; at the end of a text, both are one.
TEST_F(TokenizerTest, PiecesLookBeyondWhatAThreadIsGiven) {
  Description lines;
  lines.tokens = {u8"\u010A\u010A"};
  lines.merges = u8R"(["\u010A \u010A"])";
  Tokenizer tokenizer;
  ASSERT_EQ(load(tokenizer, lines.json()), "");
  std::string text;
  while (text.size() < 1'000'000)
    text += "z\n\n";
  Ids ids = encode(tokenizer, text, 2);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 256u), 1);
  EXPECT_EQ(ids.back(), 256u);
}

// Far more pieces than are remembered, many of them beginnings of others.
TEST_F(TokenizerTest, RememberedPiecesAreNotMistakenForOthers) {
  Tokenizer tokenizer;
  ASSERT_EQ(load(tokenizer, merged.json()), "");
  std::mt19937 random(5);
  std::string text, decoded;
  for (int i = 0; i < 200000; ++i)
    text += std::to_string(random() >> random() % 32) + "\n";
  for (uint32_t id : encode(tokenizer, text))
    decoded += tokenizer.decode(id);
  EXPECT_TRUE(decoded == text);
}

// Quadratic work would take hours.
TEST_F(TokenizerTest, LongPiecesTakeNoTime) {
  Tokenizer tokenizer;
  ASSERT_EQ(load(tokenizer, merged.json()), "");
  std::string text;
  for (int i = 0; i < 300000; ++i)
    text += "abcd";
  Ids ids = encode(tokenizer, text);
  ASSERT_EQ(ids.size(), 600000u);
  EXPECT_EQ(ids[0], 258u);
  EXPECT_EQ(ids[1], uint32_t('d'));
  EXPECT_EQ(encode(tokenizer, std::string(1000000, ' ') + "x").size(),
            1000001u);
}

TEST_F(TokenizerTest, TokensStandForTheirBytes) {
  Tokenizer tokenizer;
  ASSERT_EQ(load(tokenizer, merged.json()), "");
  for (uint32_t byte = 1; byte < 256; ++byte)
    EXPECT_EQ(tokenizer.decode(byte), std::string(1, char(byte)));
  EXPECT_EQ(tokenizer.decode(260), " a");
  EXPECT_EQ(tokenizer.decode(0), ""); // A hole.
  EXPECT_EQ(tokenizer.decode(261), "");
  EXPECT_EQ(tokenizer.vocabSize(), 261);
}

TEST_F(TokenizerTest, TextThatIsNotUtf8IsRefusedWithItsPlace) {
  Tokenizer tokenizer;
  ASSERT_EQ(load(tokenizer, merged.json()), "");
  ThreadPool pool;
  List<uint32_t> tokens;
  Error error;
  auto refused = [&](std::string_view text) {
    EXPECT_FALSE(tokenizer.encode(
        "x.txt", reinterpret_cast<const unsigned char *>(text.data()),
        int64_t(text.size()), pool, tokens, error));
    return std::string(error.text);
  };
  EXPECT_EQ(refused("ab\nc\xFFz"),
            "x.txt:2:2: error: byte 4, 0xFF, is not UTF-8, which a tokenizer "
            "needs; convert the file, or leave such bytes out, with iconv -c "
            "-t UTF-8");
  EXPECT_EQ(refused(std::string_view("ab\0", 3)),
            "x.txt:1:3: error: byte 2 is 0x00, for which '" +
                std::string(tokenizer.path()) + "' has no token");
}

//===----------------------------------------------------------------------===//
// What is refused
//===----------------------------------------------------------------------===//

TEST_F(TokenizerTest, WhatIsNotSupportedIsRefusedByName) {
  Description bad = merged;
  bad.normalizer = R"({"type":"Lowercase"})";
  EXPECT_EQ(refusal(bad), "the normalizer 'Lowercase' is not supported; NFC "
                          "and none are");
  bad = merged;
  bad.preTokenizer = R"({"type":"Metaspace"})";
  EXPECT_EQ(refusal(bad), "the pre-tokenizer 'Metaspace' is not supported; "
                          "ByteLevel, Split and a Sequence of them are");
  bad.preTokenizer = "null";
  EXPECT_EQ(refusal(bad),
            "a tokenizer needs the pre-tokenizer ByteLevel; others than "
            "byte-level ones are not supported");
  bad.preTokenizer = R"({"type":"Split","pattern":{"Regex":"\\d"},
    "behavior":"Isolated","invert":false})";
  EXPECT_EQ(refusal(bad), "the expression of this Split is not supported; "
                          "those of GPT-2, Llama 3 and Qwen 2 are: \\d");
  bad.preTokenizer = R"({"type":"Sequence","pretokenizers":
    [{"type":"ByteLevel"},{"type":"Digits"}]})";
  EXPECT_EQ(refusal(bad),
            "the pre-tokenizer 'Digits' behind ByteLevel is not supported");
  bad = merged;
  bad.model = "\"dropout\":0.1,";
  EXPECT_NE(refusal(bad), "");
  for (const char *key : {"byte_fallback", "continuing_subword_prefix"}) {
    bad.model =
        "\"" + std::string(key) + "\":" + (key[0] == 'b' ? "true," : "\"##\",");
    EXPECT_EQ(refusal(bad), "'" + std::string(key) +
                                "' of the model is not supported unless it "
                                "is off");
  }
  bad.model = "\"magic\":1,";
  EXPECT_EQ(refusal(bad), "'magic' of the model is not supported");
  bad = merged;
  bad.added = R"([{"id":300,"content":"x","single_word":true}])";
  EXPECT_EQ(refusal(bad), "single_word, as 'x' has it, is not supported");
  Tokenizer unigram;
  EXPECT_EQ(load(unigram, R"({"model":{"type":"Unigram"}})"),
            "the model 'Unigram' is not supported; BPE is");
}

TEST_F(TokenizerTest, BadVocabulariesAreRefused) {
  Tokenizer tokenizer;
  auto vocabulary = [&](const std::string &tokens, const char *merges = "[]") {
    Tokenizer other;
    return load(other, R"({"pre_tokenizer":{"type":"ByteLevel"},"model":)"
                       R"({"vocab":{)" +
                           tokens + R"(},"merges":)" + merges + "}}");
  };
  EXPECT_EQ(vocabulary(R"("a":0,"b":7)"), ""); // Holes are none of our concern.
  EXPECT_EQ(vocabulary(R"("a":0,"b":0)"),
            "the token 'b' has the id 0, which 'a' has already");
  EXPECT_EQ(vocabulary(R"("a":-1)"), "the token 'a' needs an id from 0 to "
                                     "16777215, but got a number -1");
  EXPECT_EQ(vocabulary(R"("a":99999999)").substr(0, 11), "the token '");
  EXPECT_EQ(vocabulary(R"("a":"0")").substr(0, 11), "the token '");
  EXPECT_EQ(vocabulary(R"("a":0)", R"(["a b"])"),
            "merge 0 is of 'a' and 'b', but the vocabulary has no 'b'");
  EXPECT_EQ(vocabulary(R"("a":0,"b":1)", R"(["a b"])"),
            "merge 0 makes 'ab', but the vocabulary has no such token");
  for (const char *merge : {"\"ab\"", "\"a b c\"", "[\"a\"]", "[1,2]", "3"})
    EXPECT_EQ(
        vocabulary(R"("a":0,"b":1)", ("[" + std::string(merge) + "]").c_str()),
        "merge 0 needs to be \"left right\" or [\"left\", \"right\"]");
}

TEST_F(TokenizerTest, AddedTokensMustAgreeWithTheVocabulary) {
  Description bad = merged;
  bad.added = R"([{"id":300,"content":"ab"}])";
  EXPECT_EQ(refusal(bad), "the added token 'ab' has the id 300, but the "
                          "vocabulary has it as 256");
  bad.added = R"([{"id":256,"content":"<s>"}])";
  EXPECT_EQ(refusal(bad),
            "the added token '<s>' has the id 256, which another token has "
            "already");
  bad.added = R"([{"id":300,"content":"a"},{"id":300,"content":"<s>"}])";
  EXPECT_NE(refusal(bad), "");
  bad.added = R"([{"id":300,"content":""}])";
  EXPECT_EQ(refusal(bad), "an added token needs a 'content'");
}

TEST_F(TokenizerTest, FilesThatAreCutAreRefused) {
  std::string json = merged.json();
  for (size_t size = 0; size < json.size(); size += 97) {
    Tokenizer tokenizer;
    EXPECT_NE(load(tokenizer, json.substr(0, size)), "") << size;
  }
  Tokenizer none;
  Error error;
  EXPECT_FALSE(none.load((folder.path + "none.json").c_str(), error));
  EXPECT_EQ(error.text, "cannot read '" + folder.path +
                            "none.json': No such file or directory");
  // A folder stands for the file in it.
  folder.write("tokenizer.json", json);
  Tokenizer found;
  EXPECT_TRUE(found.load(folder.path.c_str(), error)) << error.text;
}

//===----------------------------------------------------------------------===//
// Data
//===----------------------------------------------------------------------===//

TEST_F(TokenizerTest, TextBecomesTokensAndOtherFilesAreAsTheyWere) {
  Tokenizer tokenizer;
  ASSERT_EQ(load(tokenizer, merged.json()), "");
  ThreadPool pool;
  Error error;
  TokenStream stream;
  TokenFormat format = {TokenType::U16, &tokenizer, &pool};
  std::string text = folder.write("x.txt", "abc cd");
  std::string tokens = folder.write("x.bin", bytesAs<uint16_t>({1, 2}));
  ASSERT_TRUE(stream.add(tokens.c_str(), format, error)) << error.text;
  format.type.reset();
  ASSERT_TRUE(stream.add(text.c_str(), format, error)) << error.text;
  ASSERT_EQ(stream.size(), 5);
  EXPECT_EQ(stream.textBytes(), 6);
  EXPECT_EQ(stream.textTokens(), 3);
  int32_t values[5];
  ASSERT_TRUE(stream.read(0, 5, 261, values, error)) << error.text;
  EXPECT_EQ(Values(values, values + 5), (Values{1, 2, 258, ' ', 259}));
  ASSERT_TRUE(stream.read(3, 2, 261, values, error)) << error.text;
  EXPECT_EQ(Values(values, values + 2), (Values{' ', 259}));
}
