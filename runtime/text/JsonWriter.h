//===- JsonWriter.h - Texts of JSON -----------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_TEXT_JSONWRITER_H
#define REPRISE_RUNTIME_TEXT_JSONWRITER_H

#include <cstdint>
#include <cstdio>
#include <string_view>

namespace reprise::runtime {

/// Writes a text of JSON to a file, value by value: all that the runtime writes
/// goes through it. Keys and strings are escaped, and commas set. Failures are
/// those of the file, which knows them (`ferror`).
///
///   JsonWriter json(stdout);
///   json.object().member("event", "saved").member("seconds", 1.5, 6).finish();
///
/// writes {"event":"saved","seconds":1.5} and a line's end. Containers may lie
/// 16 deep within each other.
class JsonWriter {
public:
  /// How the items of a container lie.
  enum Style {
    Dense,  ///< {"a":1,"b":2}
    Spaced, ///< {"a": 1, "b": 2}
    Lines   ///< Each on a line of its own, two columns further in.
  };

  explicit JsonWriter(FILE *file) : file(file) {}
  JsonWriter(const JsonWriter &) = delete;
  JsonWriter &operator=(const JsonWriter &) = delete;

  /// Begins a container, as the text, as an item of an array, or behind `key`.
  JsonWriter &object(Style style = Dense) { return begin('{', '}', style); }
  JsonWriter &array(Style style = Dense) { return begin('[', ']', style); }
  /// Ends the innermost container.
  JsonWriter &end();
  /// Ends all of them, and the line.
  void finish();

  /// The key of an object's next member; `rest` goes on with it.
  JsonWriter &key(std::string_view name, std::string_view rest = {});

  /// A value, as the text, as an item of an array, or behind `key`. Bytes of a
  /// string that are not UTF-8 become U+FFFD: the names of files are any bytes,
  /// but JSON is UTF-8.
  JsonWriter &value(std::string_view text);
  JsonWriter &value(const char *text) { return value(std::string_view(text)); }
  JsonWriter &value(bool is);
  JsonWriter &value(int64_t number);
  JsonWriter &value(uint64_t number);
  JsonWriter &value(int32_t number) { return value(int64_t(number)); }
  JsonWriter &value(uint32_t number) { return value(uint64_t(number)); }
  /// With so many digits; 9 are all that an f32 has, 17 all of an f64. Null if
  /// it is no number, or not finite: JSON has none of these.
  JsonWriter &value(double number, int digits = 17);
  JsonWriter &null();
  /// Of eight digits, as a string: checksums have no sign.
  JsonWriter &hex(uint32_t number);
  /// A text that is JSON already; its lines two columns further in.
  JsonWriter &text(const char *json);

  /// A key and its value.
  template <typename... Value>
  JsonWriter &member(std::string_view name, Value... value) {
    return key(name).value(value...);
  }

private:
  JsonWriter &begin(char first, char last, Style style);
  void comeTo();
  void endLine();
  void escape(std::string_view text);

  /// A container that has not ended.
  struct Level {
    Style style;
    char last; ///< What it ends with.
    bool isEmpty;
  };
  static constexpr int kMostLevels = 16;

  FILE *file;
  Level levels[kMostLevels];
  int depth = 0;
  bool isBehindKey = false;
};

/// Writes a text of JSON as a value within another one: its lines two columns
/// further in.
void writeNestedJson(FILE *file, const char *text);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_TEXT_JSONWRITER_H
