//===- JsonWriter.cpp - Texts of JSON -------------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "JsonWriter.h"

#include "Json.h"

#include <cassert>
#include <cinttypes>
#include <cmath>
#include <cstring>

using namespace reprise::runtime;

//===----------------------------------------------------------------------===//
// Containers
//===----------------------------------------------------------------------===//

void JsonWriter::endLine() {
  putc('\n', file);
  for (int i = 0; i < depth; ++i)
    fputs("  ", file);
}

/// What stands before a key, or a value that has none.
void JsonWriter::comeTo() {
  if (isBehindKey || depth == 0) {
    isBehindKey = false;
    return;
  }
  Level &level = levels[depth - 1];
  if (!level.isEmpty)
    putc(',', file);
  if (level.style == Lines)
    endLine();
  else if (level.style == Spaced && !level.isEmpty)
    putc(' ', file);
  level.isEmpty = false;
}

JsonWriter &JsonWriter::begin(char first, char last, Style style) {
  assert(depth < kMostLevels && "containers lie too deep");
  comeTo();
  putc(first, file);
  levels[depth++] = {style, last, true};
  return *this;
}

JsonWriter &JsonWriter::end() {
  assert(depth > 0 && !isBehindKey && "nothing that could end");
  const Level level = levels[--depth];
  if (level.style == Lines && !level.isEmpty)
    endLine();
  putc(level.last, file);
  return *this;
}

void JsonWriter::finish() {
  while (depth > 0)
    end();
  putc('\n', file);
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// The characters of a string, without its quotes.
void JsonWriter::escape(std::string_view text) {
  while (!text.empty()) {
    int length = utf8Length(text.data(), text.size());
    char c = text.front();
    if (length == 0)
      fputs("\\ufffd", file);
    else if (c == '"' || c == '\\')
      fprintf(file, "\\%c", c);
    else if (length == 1 && static_cast<unsigned char>(c) < 0x20)
      fprintf(file, "\\u%04x", unsigned(c));
    else
      fwrite(text.data(), 1, size_t(length), file);
    text.remove_prefix(length ? size_t(length) : 1);
  }
}

JsonWriter &JsonWriter::key(std::string_view name, std::string_view rest) {
  comeTo();
  putc('"', file);
  escape(name);
  escape(rest);
  fputs("\":", file);
  if (depth > 0 && levels[depth - 1].style != Dense)
    putc(' ', file);
  isBehindKey = true;
  return *this;
}

JsonWriter &JsonWriter::value(std::string_view text) {
  comeTo();
  putc('"', file);
  escape(text);
  putc('"', file);
  return *this;
}

JsonWriter &JsonWriter::value(bool is) {
  comeTo();
  fputs(is ? "true" : "false", file);
  return *this;
}

JsonWriter &JsonWriter::value(int64_t number) {
  comeTo();
  fprintf(file, "%" PRId64, number);
  return *this;
}

JsonWriter &JsonWriter::value(uint64_t number) {
  comeTo();
  fprintf(file, "%" PRIu64, number);
  return *this;
}

JsonWriter &JsonWriter::value(double number, int digits) {
  if (!std::isfinite(number))
    return null();
  comeTo();
  fprintf(file, "%.*g", digits, number);
  return *this;
}

JsonWriter &JsonWriter::null() {
  comeTo();
  fputs("null", file);
  return *this;
}

JsonWriter &JsonWriter::hex(uint32_t number) {
  comeTo();
  fprintf(file, "\"%08" PRIx32 "\"", number);
  return *this;
}

JsonWriter &JsonWriter::text(const char *json) {
  comeTo();
  writeNestedJson(file, json);
  return *this;
}

void reprise::runtime::writeNestedJson(FILE *file, const char *text) {
  for (; *text && strcmp(text, "\n") != 0; ++text) {
    putc(*text, file);
    if (*text == '\n')
      fputs("  ", file);
  }
}
