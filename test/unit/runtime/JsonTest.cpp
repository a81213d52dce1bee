//===- JsonTest.cpp - Texts of JSON ---------------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/Json.h"
#include "runtime/text/JsonWriter.h"

#include <chrono>
#include <gtest/gtest.h>
#include <random>
#include <string>

using namespace reprise::runtime;

namespace {

/// Why `text` is refused; empty if it is not.
std::string refusal(const std::string &text, int64_t offsetInFile = -1) {
  // Exactly these bytes, so that a sanitizer sees a read behind them.
  std::vector<char> bytes(text.begin(), text.end());
  JsonDocument document;
  Error error;
  bool good = document.parse({bytes.data(), bytes.size()}, "f.json", error,
                             offsetInFile);
  EXPECT_EQ(good, error.text[0] == '\0');
  return error.text;
}

std::string written(std::string_view text) {
  char *chars = nullptr;
  size_t size = 0;
  FILE *file = open_memstream(&chars, &size);
  JsonWriter(file).value(text);
  fclose(file);
  std::string result(chars, size);
  free(chars);
  return result;
}

} // namespace

TEST(Json, ValuesOfEveryKind) {
  JsonDocument document;
  Error error;
  ASSERT_TRUE(document.parse(" { \"a\" : [ 1 , -2.5e1, null,true ,false,[],{}],"
                             "\"b\":{\"c\":\"d\"},\"\":9223372036854775807,"
                             "\"n\":-9223372036854775808}\r\n\t",
                             "f.json", error))
      << error.text;
  JsonValue root = document.root();
  EXPECT_TRUE(root.is(JsonKind::Object));
  EXPECT_EQ(root.size(), 4);
  JsonValue list = root.find("a");
  const JsonKind kinds[] = {JsonKind::Number, JsonKind::Number, JsonKind::Null,
                            JsonKind::True,   JsonKind::False,  JsonKind::Array,
                            JsonKind::Object};
  int i = 0;
  for (JsonItem item : list) {
    EXPECT_FALSE(item.key);
    EXPECT_EQ(item.value.kind(), kinds[i++]);
  }
  EXPECT_EQ(i, 7);
  EXPECT_EQ(list.size(), 7);
  int64_t whole = 0;
  double real = 0;
  EXPECT_TRUE((*list.begin()).value.asInteger(whole));
  EXPECT_EQ(whole, 1);
  JsonValue second = (*++list.begin()).value;
  EXPECT_EQ(second.text(), "-2.5e1");
  EXPECT_FALSE(second.asInteger(whole));
  EXPECT_TRUE(second.asDouble(real));
  EXPECT_EQ(real, -25.0);
  EXPECT_EQ(root.find("b").find("c").text(), "d");
  EXPECT_FALSE(root.find("c"));
  EXPECT_FALSE(root.find("c").find("d"));
  EXPECT_EQ(root.find("c").size(), 0);
  for (JsonItem item : root.find("c"))
    ADD_FAILURE() << item.value.kindName();
  EXPECT_TRUE(root.find("").asInteger(whole));
  EXPECT_EQ(whole, INT64_MAX);
  EXPECT_TRUE(root.find("n").asInteger(whole));
  EXPECT_EQ(whole, INT64_MIN);
  EXPECT_FALSE(document.fail(second, error, "needs %d", 3));
  EXPECT_STREQ(error.text, "f.json:1:16: error: needs 3");
}

TEST(Json, NumbersThatDoNotFit) {
  for (const char *text :
       {"9223372036854775808", "-9223372036854775809", "1.0", "1e2", "true"}) {
    JsonDocument document;
    Error error;
    ASSERT_TRUE(document.parse(text, "f", error));
    int64_t whole = 7;
    EXPECT_FALSE(document.root().asInteger(whole)) << text;
    EXPECT_EQ(whole, 7);
  }
  JsonDocument document;
  Error error;
  double real = 7;
  ASSERT_TRUE(document.parse("[1e999,\"1\",0.1]", "f", error));
  auto item = document.root().begin();
  EXPECT_FALSE((*item).value.asDouble(real));
  EXPECT_FALSE((*++item).value.asDouble(real));
  EXPECT_TRUE((*++item).value.asDouble(real));
  EXPECT_EQ(real, 0.1);
}

TEST(Json, EscapesAndTheirOpposite) {
  JsonDocument document;
  Error error;
  ASSERT_TRUE(document.parse("[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\",\"x\\u0000y\","
                             "\"\\u00e9\\u20AC\\uD83D\\uDe00z\",\"\xC3\xA9\"]",
                             "f", error))
      << error.text;
  const std::string expected[] = {"\"\\/\b\f\n\r\t", std::string("x\0y", 3),
                                  "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z",
                                  "\xC3\xA9"};
  int i = 0;
  for (JsonItem item : document.root()) {
    EXPECT_EQ(item.value.text(), expected[i]);
    // What is written is read back.
    std::string again = written(expected[i++]);
    JsonDocument copy;
    ASSERT_TRUE(copy.parse(again, "f", error)) << error.text;
    EXPECT_EQ(copy.root().text(), item.value.text());
  }
  EXPECT_EQ(i, 4);
  EXPECT_EQ(written("a\"b\\\n\x1f\xC3\xA9\xFF\xC3"),
            "\"a\\\"b\\\\\\u000a\\u001f\xC3\xA9\\ufffd\\ufffd\"");
}

TEST(Json, RefusalsNameThePlace) {
  EXPECT_EQ(refusal(""), "f.json:1:1: error: needs a value, but got the end");
  EXPECT_EQ(refusal("[1,\n 2,]"),
            "f.json:2:4: error: needs a value, but got ']'");
  EXPECT_EQ(refusal("[1 2]"),
            "f.json:1:4: error: needs ',' or ']', but got '2'");
  EXPECT_EQ(refusal("{\"a\":1"),
            "f.json:1:7: error: needs ',' or '}', but got the end");
  EXPECT_EQ(refusal("{a:1}"),
            "f.json:1:2: error: needs a key in quotes, but got 'a'");
  EXPECT_EQ(refusal("{\"a\" 1}"),
            "f.json:1:6: error: needs ':' behind a key, but got '1'");
  EXPECT_EQ(refusal("{\"a\":1,\"b\":2,\"\\u0061\":3}"),
            "f.json:1:14: error: needs keys that differ, but got 'a' twice");
  EXPECT_EQ(refusal("1 1"),
            "f.json:1:3: error: needs nothing behind the value, but got '1'");
  EXPECT_EQ(refusal("\"a\nb\""),
            "f.json:1:3: error: needs control characters in strings to be "
            "escaped, but got the byte 0x0a");
  EXPECT_EQ(refusal("\"a\xFFz\""),
            "f.json:1:3: error: needs UTF-8, but got the byte 0xff");
  EXPECT_EQ(refusal("\"\\ud83dz\""),
            "f.json:1:2: error: needs the second half of a surrogate pair "
            "behind \\ud83d");
  EXPECT_EQ(refusal("\"\\udc00\""),
            "f.json:1:2: error: needs surrogates in pairs, but got \\udc00 "
            "alone");
  EXPECT_EQ(refusal("\"\\u12g4\""),
            "f.json:1:6: error: needs four hexadecimal digits behind \\u, but "
            "got 'g'");
  EXPECT_EQ(refusal("{\"a\":tru}", 8),
            "'f.json': byte 13: needs a value, but got 't'");
  for (const char *text : {"01",      "-",       "1.",
                           "1e",      "1e+",     "+1",
                           ".5",      "nul",     "\"",
                           "\"\\",    "\"\\x\"", "\"\\ud800\\ud800\"",
                           "'a'",     "[",       "{",
                           "{\"a\"",  "{\"a\":", "[1,",
                           "// c\n1", "NaN",     "\xEF\xBB\xBF{}",
                           "\"\xC3",  "[}",      "{]",
                           "{,}"})
    EXPECT_NE(refusal(text), "") << text;
  for (const char *text :
       {"0", "-0.0e-0", "1E+2", "\"\"", "[[]]", "{}", "null"})
    EXPECT_EQ(refusal(text), "") << text;
}

TEST(Json, DepthIsLimited) {
  auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_EQ(refusal(nested(64)), "");
  EXPECT_EQ(refusal(nested(65)), "f.json:1:65: error: needs at most 64 "
                                 "containers within each other");
  EXPECT_NE(refusal(nested(1'000'000)), "");
  std::string wide = "[";
  for (int i = 0; i < 100; ++i)
    wide += "[],";
  EXPECT_EQ(refusal(wide + "[]]"), "");
}

// Every prefix and many damaged copies: an answer, and nothing read outside.
TEST(Json, DamagedTexts) {
  const std::string text =
      "{\"__metadata__\":{\"format\":\"pt\"},\"a\\u00e9\\\"\":[1,-2.5e3,true,"
      "null,{\"b\":[[],\"\xE2\x82\xAC\"]}],\"c\":\"\\ud83d\\ude00\"}";
  EXPECT_EQ(refusal(text), "");
  for (size_t size = 0; size < text.size(); ++size)
    EXPECT_NE(refusal(text.substr(0, size)), "") << size;
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = text;
    for (unsigned n = 1 + random() % 3; n; --n)
      damaged[random() % damaged.size()] = char(random());
    refusal(damaged);
  }
}

// The size of a large tokenizer: 150,000 keys and 300,000 pairs.
TEST(Json, LargeTextsAreQuick) {
  std::string text = "{\"vocab\":{\"\\u0120\":-1";
  for (int i = 0; i < 150'000; ++i)
    text += ",\n      \"\xC4\xA0word" + std::to_string(i) +
            "\": " + std::to_string(i);
  text += "},\"merges\":[\"a b\"";
  for (int i = 0; i < 300'000; ++i)
    text += ",\n      \"\xC4\xA0x y" + std::to_string(i) + "\"";
  text += "]}";
  ASSERT_GT(text.size(), 10'000'000u);
  auto start = std::chrono::steady_clock::now();
  JsonDocument document;
  Error error;
  ASSERT_TRUE(document.parse(text, "f", error)) << error.text;
  std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - start;
  RecordProperty("seconds", std::to_string(seconds.count()));
  EXPECT_EQ(document.root().find("vocab").size(), 150'001);
  EXPECT_EQ(document.root().find("merges").size(), 300'001);
  EXPECT_LT(seconds.count(), 2.0); // 0.1 s on an idle machine.
}
