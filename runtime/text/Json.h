//===- Json.h - Reading and writing JSON ------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_TEXT_JSON_H
#define REPRISE_RUNTIME_TEXT_JSON_H

#include "runtime/base/Error.h"
#include "runtime/base/List.h"

#include <string_view>

namespace reprise::runtime {

enum class JsonKind : uint8_t {
  Null,
  False,
  True,
  Number,
  String,
  Array,
  Object
};

class JsonDocument;
struct JsonItem;

/// A value of a document, or nothing, if it was looked for in vain. Lives no
/// longer than its document.
class JsonValue {
public:
  JsonValue() = default;

  /// Whether there is a value.
  explicit operator bool() const { return document; }

  JsonKind kind() const;
  /// Whether there is a value and it is of this kind.
  bool is(JsonKind kind) const { return document && this->kind() == kind; }
  /// "an object", "the number 12", ...; for messages.
  const char *kindName() const;

  /// A string's characters, in UTF-8 and without escapes; they may contain
  /// zeros. A number as it is written. Empty for other kinds.
  std::string_view text() const;

  /// The value of a number that is whole, written without point and exponent,
  /// and in range; false for all others.
  bool asInteger(int64_t &value) const;
  /// The value of a number; false for all else and for what f64 cannot hold.
  bool asDouble(double &value) const;

  /// The number of items of an array or members of an object; otherwise 0.
  int64_t size() const;

  /// The member with this key; nothing if there is none or this is no object.
  /// Takes as long as the object is.
  JsonValue find(std::string_view key) const;

  /// Over items or members, in their order; over nothing for other kinds.
  class Iterator;
  Iterator begin() const;
  Iterator end() const;

  /// Where the value begins, in bytes from the start of the text.
  int64_t offset() const;

private:
  friend class JsonDocument;
  JsonValue(const JsonDocument *document, uint32_t node)
      : document(document), node(node) {}

  const JsonDocument *document = nullptr;
  uint32_t node = 0;
};

/// One of a container's; the key of an array's item is nothing.
struct JsonItem {
  JsonValue key, value;
};

class JsonValue::Iterator {
public:
  JsonItem operator*() const;
  Iterator &operator++();
  bool operator!=(const Iterator &other) const { return node != other.node; }

private:
  friend class JsonValue;
  Iterator(const JsonDocument *document, uint32_t node, bool members)
      : document(document), node(node), members(members) {}

  const JsonDocument *document;
  uint32_t node; ///< Of the key, in an object.
  bool members;
};

/// A text of JSON as RFC 8259 has it and nothing beyond: UTF-8, no comments, no
/// repeated keys, surrogates in pairs, and at most 64 containers within each
/// other. Takes about 10 ns a byte of time and 32 bytes a value of memory.
class JsonDocument {
public:
  JsonDocument() = default;
  JsonDocument(const JsonDocument &) = delete;
  JsonDocument &operator=(const JsonDocument &) = delete;
  ~JsonDocument();

  /// Reads `text`, which must live as long as the document; once. Errors are
  /// about the file `path`, which must live as long, too: its line and column;
  /// or, if the text is a part of a binary file, the byte there:
  /// `offsetInFile` is where the text begins, negative if it is all of it.
  bool parse(std::string_view text, const char *path, Error &error,
             int64_t offsetInFile = -1);

  JsonValue root() const { return {this, 0}; }

  /// Sets an error about a value and returns false.
  [[gnu::format(printf, 4, 5)]] bool fail(const JsonValue &value, Error &error,
                                          const char *format, ...) const;

private:
  friend class JsonValue;
  friend class JsonValue::Iterator;
  struct Node {
    const char *chars; ///< Of strings and numbers.
    int64_t offset;
    int64_t size;  ///< Of chars; of a container: items or members.
    uint32_t next; ///< The node behind this value and all within it.
    JsonKind kind;
  };
  struct Parser;

  bool failAt(int64_t offset, Error &error, const char *message) const;

  List<Node> nodes; ///< In the order of the text; a member's key, then its
                    ///< value.
  std::string_view source;
  const char *path = nullptr;
  int64_t offsetInFile = -1;
  char *decoded = nullptr; ///< The strings that had escapes, side by side.
};

/// The bytes of the character of UTF-8 that begins at `text`, of which `size`
/// bytes can be read; 0 if none does.
int utf8Length(const char *text, size_t size);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_TEXT_JSON_H
