//===- InferenceTest.cpp - How tokens are drawn and shown -------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/trainer/Inference.h"

#include "gtest/gtest.h"

#include <cmath>
#include <string>
#include <vector>

using namespace reprise::runtime;

namespace {

int32_t pick(const std::vector<float> &logits, const Sampling &how,
             uint32_t random) {
  std::vector<int32_t> order(logits.size());
  return pickToken(logits.data(), int64_t(logits.size()), how, random,
                   order.data());
}

/// How often each token comes, of 4096 random words side by side.
std::vector<int> histogram(const std::vector<float> &logits,
                           const Sampling &how) {
  std::vector<int> counts(logits.size());
  for (uint64_t i = 0; i < 4096; ++i)
    ++counts[size_t(pick(logits, how, uint32_t(i << 20)))];
  return counts;
}

TEST(PickToken, TemperatureZeroTakesTheLikeliestAndOfEqualsTheFirst) {
  for (uint32_t random : {0u, 1u << 31, ~0u}) {
    EXPECT_EQ(pick({-1, 2, 0.5, 2}, {0, 0}, random), 1);
    EXPECT_EQ(pick({-INFINITY, -INFINITY}, {0, 0}, random), 0);
    EXPECT_EQ(pick({3}, {0, 5}, random), 0);
  }
}

TEST(PickToken, TokensAreAsWideAsTheyAreLikely) {
  // Weights 1, 2, 1 of 4, in the order of their numbers.
  float two = std::log(2.0f);
  std::vector<int> counts = histogram({0, two, 0}, {1, 0});
  for (int i : {0, 1, 2})
    EXPECT_NEAR(counts[size_t(i)], i == 1 ? 2048 : 1024, 1);
  EXPECT_EQ(pick({0, two, 0}, {1, 0}, 0), 0);
  EXPECT_EQ(pick({0, two, 0}, {1, 0}, 1u << 30), 1);
  EXPECT_EQ(pick({0, two, 0}, {1, 0}, ~0u), 2);
}

TEST(PickToken, TemperatureDividesTheLogits) {
  // At 1/2 the weights are squares: 1, 4, 1 of 6.
  std::vector<int> counts = histogram({0, std::log(2.0f), 0}, {0.5, 0});
  EXPECT_NEAR(counts[0], 4096 / 6, 1);
  EXPECT_NEAR(counts[1], 4096 * 4 / 6, 1);
  // The largest logit may be as large as it likes.
  EXPECT_EQ(pick({1e38f, -1e38f, 1e38f}, {1e-3, 0}, 1u << 30), 0);
}

TEST(PickToken, TopKLeavesOutTheRestAndOfEqualsTheLast) {
  std::vector<float> logits = {1, 3, 1, 3, 2};
  EXPECT_EQ(histogram(logits, {1, 1}), (std::vector<int>{0, 4096, 0, 0, 0}));
  EXPECT_EQ(histogram(logits, {1, 2}), (std::vector<int>{0, 2048, 0, 2048, 0}));
  std::vector<int> three = histogram(logits, {1, 3});
  EXPECT_GT(three[4], 0);
  EXPECT_EQ(three[0] + three[2], 0);
  std::vector<int> four = histogram(logits, {1, 4});
  EXPECT_GT(four[0], 0);
  EXPECT_EQ(four[2], 0);
  EXPECT_EQ(histogram(logits, {1, 5}), histogram(logits, {1, 0}));
  EXPECT_EQ(histogram(logits, {1, 99}), histogram(logits, {1, 0}));
}

//===----------------------------------------------------------------------===//
// Vocabulary
//===----------------------------------------------------------------------===//

struct Encoded {
  std::vector<int32_t> tokens;
  std::string error;
};

Encoded encode(const Vocabulary &vocabulary, const char *text) {
  ThreadPool pool;
  List<int32_t> tokens;
  Error error;
  if (!vocabulary.encode("--prompt", text, pool, tokens, error))
    return {{}, error.text};
  return {{tokens.begin(), tokens.end()}, ""};
}

std::string decode(const Vocabulary &vocabulary,
                   const std::vector<int32_t> &tokens) {
  List<char> text;
  for (int32_t token : tokens)
    EXPECT_TRUE(vocabulary.decode(token, text));
  return {text.begin(), text.end()};
}

TEST(Vocabulary, TextIsBytes) {
  for (const Vocabulary &vocabulary :
       {Vocabulary(256, true, nullptr), Vocabulary(50257, true, nullptr)}) {
    EXPECT_EQ(encode(vocabulary, "a\xC3\xA9").tokens,
              (std::vector<int32_t>{'a', 0xC3, 0xA9}));
    EXPECT_EQ(decode(vocabulary, {'h', 'i', 0xFF}), "hi\xFF");
    EXPECT_STREQ(vocabulary.defaultPrompt(), "\n");
  }
  EXPECT_EQ(decode(Vocabulary(50257, true, nullptr), {'a', 256, 'b'}),
            "a<256>b");
  EXPECT_EQ(encode(Vocabulary(100, true, nullptr), "Zz").error,
            "--prompt needs tokens below 100, the size of the vocabulary, but "
            "has 122");
}

// That there are no more of them than bytes does not make them bytes.
TEST(Vocabulary, FewTokensAreNumbers) {
  for (int64_t size : {65, 255, 256}) {
    Vocabulary vocabulary(size, false, nullptr);
    EXPECT_EQ(encode(vocabulary, "12 5 9").tokens,
              (std::vector<int32_t>{12, 5, 9}));
    EXPECT_EQ(decode(vocabulary, {12, 5}), "12 5 ");
    EXPECT_STREQ(vocabulary.defaultPrompt(), "0");
  }
}

TEST(Vocabulary, OthersAreNumbers) {
  Vocabulary vocabulary(50257, false, nullptr);
  EXPECT_EQ(encode(vocabulary, "17 50256  0").tokens,
            (std::vector<int32_t>{17, 50256, 0}));
  EXPECT_EQ(decode(vocabulary, {17, 3}), "17 3 ");
  EXPECT_STREQ(vocabulary.defaultPrompt(), "0");
  for (const char *text : {"The", "1,2", "50257", "-1", "99999999999999999999"})
    EXPECT_EQ(
        encode(vocabulary, text).error,
        "--prompt needs numbers of tokens from 0 to 50256 with spaces "
        "between them, since nothing says what the tokens are, but got '" +
            std::string(text) + "'");
}

} // namespace
