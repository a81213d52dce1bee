//===- TokenStreamTest.cpp - Files of tokens ------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestFiles.h"

#include <random>
#include <sys/stat.h>

using namespace reprise::runtime;
using namespace reprise::runtime::test;

namespace {
constexpr int32_t kU16Magic = 20240520, kU32Magic = 20240801;

class TokenFiles : public testing::Test {
protected:
  Folder folder;
};
} // namespace

TEST_F(TokenFiles, TextIsItsBytes) {
  std::string path = folder.write("x.txt", "a\xffz");
  EXPECT_EQ(Tokens({path}).values, (Values{'a', 255, 'z'}));
  EXPECT_EQ(Tokens({folder.write("bin", "MMIDIDX")}).values.size(), 7u);
  EXPECT_EQ(Tokens({folder.write("empty", "")}).values, Values());
}

TEST_F(TokenFiles, LlmcHeadersSayWhatFollows) {
  std::string path = folder.write(
      "a.bin", llmcFile(kU16Magic, 1, 3, bytesAs<uint16_t>({7, 50256, 65535})));
  EXPECT_EQ(Tokens({path}).values, (Values{7, 50256, 65535}));
  EXPECT_EQ(Tokens({path}, TokenType::U16).values.size(), 3u);
  EXPECT_EQ(Tokens({path}, TokenType::U32).error,
            "'" + path +
                "' has tokens of type u16, but --dtype is u32; it is needed "
                "only for .bin files without a header");
  std::string wide = folder.write(
      "b.bin", llmcFile(kU32Magic, 7, 2, bytesAs<uint32_t>({128255, 0})));
  EXPECT_EQ(Tokens({wide}).values, (Values{128255, 0}));
  std::string none = folder.write("c.bin", llmcFile(kU16Magic, 1, 0, ""));
  EXPECT_EQ(Tokens({none}).values, Values());
  EXPECT_EQ(Tokens({none}).error, "");
}

TEST_F(TokenFiles, LlmcHeadersAreChecked) {
  auto refusal = [&](const std::string &bytes) {
    std::string path = folder.write("x.bin", bytes);
    std::string error = Tokens({path}).error;
    EXPECT_EQ(error.find("'" + path + "' "), 0u) << error;
    return error.substr(path.size() + 3);
  };
  std::string six = bytesAs<uint16_t>({1, 2, 3});
  EXPECT_EQ(refusal(llmcFile(kU16Magic, 1, 4, six)),
            "needs 1032 bytes for a header of 1024 and the 4 tokens of type "
            "u16 that it names, but got 1030");
  EXPECT_EQ(refusal(llmcFile(kU16Magic, 1, 2, six)),
            "needs 1028 bytes for a header of 1024 and the 2 tokens of type "
            "u16 that it names, but got 1030");
  EXPECT_EQ(refusal(llmcFile(kU32Magic, 7, -1, "")),
            "needs a number of tokens in llm.c's header, but got -1");
  EXPECT_EQ(refusal(llmcFile(kU16Magic, 7, 3, six)),
            "has llm.c's magic number 20240520, which needs version 1, but got "
            "version 7");
  EXPECT_EQ(refusal(llmcFile(kU16Magic, 1, 3, six).substr(0, 500)),
            "is truncated: llm.c's header needs 1024 bytes, but got 500");
  EXPECT_EQ(refusal(llmcFile(20240522, 1, 3, six)),
            "is a file of llm.c with multiple-choice questions, not with "
            "tokens");
  EXPECT_EQ(refusal(llmcFile(20240326, 3, 3, six)),
            "is a file of llm.c with the parameters of a model, not with "
            "tokens");
}

TEST_F(TokenFiles, TokensAloneNeedAStatedType) {
  std::string path = folder.write("x.bin", bytesAs<uint16_t>({1, 2, 3, 40000}));
  EXPECT_EQ(Tokens({path}, TokenType::U16).values, (Values{1, 2, 3, 40000}));
  EXPECT_EQ(Tokens({path}, TokenType::U32, INT64_C(1) << 32).values.size(), 2u);
  EXPECT_EQ(Tokens({path}).error,
            "'" + path + "' has no header of llm.c and no Megatron index '" +
                folder.path +
                "x.idx' that would say how its tokens are stored; if it has "
                "tokens alone, as nanoGPT writes them, say --dtype u16 or "
                "--dtype u32");
  std::string odd = folder.write("odd.bin", "12345");
  EXPECT_EQ(Tokens({odd}, TokenType::U16).error,
            "'" + odd +
                "' needs a whole number of tokens of 2 bytes (--dtype u16), "
                "but got 5 bytes");
  std::string text = folder.write("x.txt", "12");
  EXPECT_EQ(Tokens({text}, TokenType::U16).error,
            "'" + text +
                "' is text, since its name does not end in .bin, but --dtype "
                "u16 is for .bin files");
  EXPECT_EQ(Tokens({folder.write("empty.bin", "")}, TokenType::U16).error, "");
}

TEST_F(TokenFiles, PatternsStandForFilesInTheOrderOfTheirNames) {
  folder.write("shard-b", "cd");
  folder.write("shard-a", "ab");
  folder.write("shard-c", "");
  folder.write("shard-d", "e");
  folder.write("other", "x");
  EXPECT_EQ(Tokens({folder.path + "shard-?"}).values,
            (Values{'a', 'b', 'c', 'd', 'e'}));
  EXPECT_EQ(Tokens({folder.path + "other", folder.path + "shard-[ad]"}).values,
            (Values{'x', 'a', 'b', 'e'}));
  EXPECT_EQ(Tokens({folder.path + "*.bin"}).error,
            "no file matches '" + folder.path + "*.bin'");
  // A name that is there is no pattern.
  folder.write("shard-[x]", "!");
  EXPECT_EQ(Tokens({folder.path + "shard-[x]"}).values, (Values{'!'}));
  EXPECT_EQ(Tokens({folder.path}).error,
            "cannot read '" + folder.path + "': it is not a plain file");
}

TEST_F(TokenFiles, APipeIsRefusedWithoutWaiting) {
  std::string path = folder.path + "pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(Tokens({path}).error,
            "cannot read '" + path + "': it is not a plain file");
}

TEST_F(TokenFiles, TokensOutsideTheVocabularyAreNamedWithTheirPlace) {
  std::string good = folder.write("a.txt", "abc");
  std::string bad = folder.write(
      "b.bin", llmcFile(kU16Magic, 1, 3, bytesAs<uint16_t>({127, 128, 129})));
  Tokens tokens({good, bad}, std::nullopt, 128);
  EXPECT_EQ(tokens.error, "'" + bad +
                              "' has the token 128 at byte 1026, but the "
                              "model's vocabulary has 128 tokens, 0 to 127");
  std::string large =
      folder.write("c.bin", bytesAs<uint32_t>({1, 0xffffffff, 2}));
  EXPECT_EQ(Tokens({large}, TokenType::U32).error,
            "'" + large +
                "' has the token 4294967295 at byte 4, but the model's "
                "vocabulary has 2147483647 tokens, 0 to 2147483646");
}

// Pieces of every length from every place, over files of several types.
TEST_F(TokenFiles, AnyRangeCanBeRead) {
  std::vector<std::string> paths = {
      folder.write("a.txt", "abc"),
      folder.write("b.bin",
                   llmcFile(kU16Magic, 1, 2, bytesAs<uint16_t>({300, 301}))),
      folder.write("c.txt", ""),
      folder.write("d.bin",
                   llmcFile(kU32Magic, 7, 1, bytesAs<uint32_t>({70000}))),
      folder.write("e.txt", "d")};
  TokenStream stream;
  Error error;
  for (const std::string &path : paths)
    ASSERT_TRUE(stream.add(path.c_str(), {}, error)) << error.text;
  const Values all = {'a', 'b', 'c', 300, 301, 70000, 'd'};
  ASSERT_EQ(stream.size(), int64_t(all.size()));
  EXPECT_EQ(stream.numFiles(), 5);
  for (size_t begin = 0; begin < all.size(); ++begin)
    for (size_t end = begin; end <= all.size(); ++end) {
      Values values(end - begin + 1, -7);
      ASSERT_TRUE(stream.read(int64_t(begin), int64_t(end - begin), 70001,
                              values.data(), error));
      Values expected(all.begin() + int64_t(begin), all.begin() + int64_t(end));
      expected.push_back(-7); // Nothing is written behind the end.
      EXPECT_EQ(values, expected);
    }
}

// More than 2^32 bytes and 2^31 tokens; almost all of them are a hole.
TEST_F(TokenFiles, LargeFilesAreReadToTheirEnd) {
  const int64_t count = (INT64_C(1) << 31) + 5;
  std::string path = folder.write("x.bin", "");
  if (truncate(path.c_str(), 2 * count - 4) != 0)
    GTEST_SKIP() << "this file system has no room for holes";
  std::ofstream(path, std::ios::binary | std::ios::app)
      << bytesAs<uint16_t>({700, 701});
  TokenStream stream;
  Error error;
  ASSERT_TRUE(stream.add(path.c_str(), {TokenType::U16}, error)) << error.text;
  EXPECT_EQ(stream.size(), count);
  Values values(3);
  ASSERT_TRUE(stream.read(count - 3, 3, 1000, values.data(), error));
  EXPECT_EQ(values, (Values{0, 700, 701}));
  EXPECT_FALSE(stream.read(count - 3, 3, 701, values.data(), error));
  EXPECT_EQ(std::string(error.text),
            "'" + path +
                "' has the token 701 at byte 4294967304, but the model's "
                "vocabulary has 701 tokens, 0 to 700");
}

TEST_F(TokenFiles, EveryTruncationOfAnLlmcFileIsRefused) {
  std::string path = folder.write(
      "x.bin", llmcFile(kU16Magic, 1, 5, bytesAs<uint16_t>({1, 2, 3, 4, 5})));
  for (int64_t size = 1033; size >= 0; --size) {
    ASSERT_EQ(truncate(path.c_str(), size), 0);
    EXPECT_NE(Tokens({path}).error, "") << size;
  }
}

// Whatever the header says, the tokens are those behind it, or it is refused.
TEST_F(TokenFiles, DamagedLlmcFilesDoNoHarm) {
  const std::string good =
      llmcFile(kU16Magic, 1, 5, bytesAs<uint16_t>({1, 2, 3, 4, 5}));
  std::mt19937 random(1);
  int accepted = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string bytes = good;
    for (int changes = 1 + int(random() % 2); changes > 0; --changes)
      bytes[random() % 4 ? random() % 12 : random() % bytes.size()] =
          char(random());
    Tokens tokens({folder.write("x.bin", bytes)});
    if (tokens.error.empty()) {
      EXPECT_EQ(tokens.values.size(), 5u);
      ++accepted;
    }
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, 1500);
}
