//===- JsonWriterTest.cpp - Texts of JSON ---------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/JsonWriter.h"
#include "runtime/text/Json.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <random>
#include <string>

using namespace reprise::runtime;

namespace {

std::string written(const std::function<void(JsonWriter &)> &write) {
  char *text = nullptr;
  size_t size = 0;
  FILE *file = open_memstream(&text, &size);
  JsonWriter json(file);
  write(json);
  fclose(file);
  std::string result(text, size);
  free(text);
  return result;
}

/// The text of a value alone.
template <typename... Value>
std::string textOf(Value... value) {
  return written([&](JsonWriter &json) { json.value(value...); });
}

} // namespace

TEST(JsonWriter, ItemsLieAsTheirContainerSays) {
  auto write = [](JsonWriter::Style style) {
    return [style](JsonWriter &json) {
      json.object(style).member("a", 1).key("b").array(style);
      json.value("x").null().end();
      json.key("none").object(style).end().key("c").object(style);
      json.member("d", true).finish();
    };
  };
  EXPECT_EQ(written(write(JsonWriter::Dense)),
            "{\"a\":1,\"b\":[\"x\",null],\"none\":{},\"c\":{\"d\":true}}\n");
  EXPECT_EQ(written(write(JsonWriter::Spaced)),
            "{\"a\": 1, \"b\": [\"x\", null], \"none\": {}, "
            "\"c\": {\"d\": true}}\n");
  EXPECT_EQ(written(write(JsonWriter::Lines)), "{\n"
                                               "  \"a\": 1,\n"
                                               "  \"b\": [\n"
                                               "    \"x\",\n"
                                               "    null\n"
                                               "  ],\n"
                                               "  \"none\": {},\n"
                                               "  \"c\": {\n"
                                               "    \"d\": true\n"
                                               "  }\n"
                                               "}\n");
}

// A container has the style that it was given, whatever it lies in.
TEST(JsonWriter, StylesWithinEachOther) {
  EXPECT_EQ(written([](JsonWriter &json) {
              json.object(JsonWriter::Lines).key("a");
              json.array(JsonWriter::Spaced).value(1).value(2).end();
              json.key("b").object().member("c", 3).member("d", 4).finish();
            }),
            "{\n  \"a\": [1, 2],\n  \"b\": {\"c\":3,\"d\":4}\n}\n");
}

TEST(JsonWriter, StringsAndKeysAreEscaped) {
  const std::string all("a\"b\\c\n\t\x01\x1F\x7F\xC3\xA9\0z", 14);
  EXPECT_EQ(textOf(std::string_view(all)),
            "\"a\\\"b\\\\c\\u000a\\u0009\\u0001\\u001f\x7F\xC3\xA9\\u0000z\"");
  // Bytes that are no UTF-8: alone, cut off, too long for what they say, and
  // half a pair of surrogates.
  EXPECT_EQ(textOf("\xFF|\xC3|\xC0\xAF|\xED\xA0\x80"),
            "\"\\ufffd|\\ufffd|\\ufffd\\ufffd|\\ufffd\\ufffd\\ufffd\"");
  EXPECT_EQ(written([](JsonWriter &json) {
              json.object().key("a\"", "\\b").value("").finish();
            }),
            "{\"a\\\"\\\\b\":\"\"}\n");
}

TEST(JsonWriter, NumbersComeBack) {
  EXPECT_EQ(textOf(INT64_MIN), "-9223372036854775808");
  EXPECT_EQ(textOf(UINT64_MAX), "18446744073709551615");
  EXPECT_EQ(textOf(INT32_MIN), "-2147483648");
  EXPECT_EQ(textOf(UINT32_MAX), "4294967295");
  EXPECT_EQ(textOf(0.1, 6), "0.1");
  EXPECT_EQ(textOf(1e21, 6), "1e+21");
  for (double none : {NAN, INFINITY, -INFINITY})
    EXPECT_EQ(textOf(none), "null");
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    uint64_t bits = random();
    double number;
    memcpy(&number, &bits, sizeof(number));
    if (!std::isfinite(number))
      continue;
    std::string text = textOf(number),
                shorter = textOf(double(float(i) / 7), 9);
    EXPECT_EQ(strtod(text.c_str(), nullptr), number) << text;
    EXPECT_EQ(strtof(shorter.c_str(), nullptr), float(i) / 7) << shorter;
    JsonDocument document;
    Error error;
    double read = 0;
    ASSERT_TRUE(document.parse(text, "number", error) &&
                document.root().asDouble(read))
        << error.text;
    EXPECT_EQ(read, number);
  }
}

TEST(JsonWriter, ChecksumsHaveEightDigits) {
  EXPECT_EQ(written([](JsonWriter &json) { json.hex(0xBEEF); }),
            "\"0000beef\"");
}

// A text of lines, as compilers write it, within another one.
TEST(JsonWriter, TextsWithinATextLieFurtherIn) {
  EXPECT_EQ(
      written([](JsonWriter &json) {
        json.object(JsonWriter::Lines).key("a").text("{\n  \"b\": 1\n}\n");
        json.member("c", false).finish();
      }),
      "{\n  \"a\": {\n    \"b\": 1\n  },\n  \"c\": false\n}\n");
}
