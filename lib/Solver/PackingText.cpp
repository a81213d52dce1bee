//===- PackingText.cpp - Packing problems and solutions as text -----------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The form is that of the public inputs of google/minimalloc and
// cappadokes/idealloc, so that those can be read as they are; fields may be in
// quotes, as RFC 4180 has them.
//
//===----------------------------------------------------------------------===//

#include "reprise/Solver/Packing.h"

#include <array>
#include <charconv>
#include <istream>
#include <ostream>
#include <string_view>
#include <unordered_map>

using namespace reprise::solver;

namespace {
enum Column { Id, Lower, Upper, Size, Offset, numColumns };
constexpr std::string_view columnNames[] = {"id", "lower", "upper", "size",
                                            "offset"};

/// Times go to 2^61 in both directions, bytes from 0 to 2^62.
constexpr int64_t maxTime = int64_t(1) << 61;
constexpr int64_t maxBytes = int64_t(1) << 62;

/// Line and column from 1 on, in bytes.
struct Field {
  std::string text;
  int64_t line, column;
};

class Reader {
public:
  Reader(std::istream &in);

  std::optional<TextError> read(PackingProblem &problem,
                                std::optional<PackingSolution> &solution);

private:
  bool nextRow();
  bool readField();
  bool readQuoted(Field &field);
  bool isAtEnd() const { return at == text.size(); }
  void skip(std::string_view letters) {
    at = std::min(text.find_first_not_of(letters, at), text.size());
  }
  void endLine() {
    ++line;
    lineBegin = at;
  }

  std::string explainColumn(size_t k) const;
  bool readHeader();
  bool readRow(PackingItem &item, int64_t &offset);
  bool readNumber(Column column, int64_t lowest, int64_t highest,
                  int64_t &number);

  bool fail(const Field &field, std::string message) {
    return fail(field.line, field.column, std::move(message));
  }
  bool fail(int64_t line, int64_t column, std::string message) {
    error = TextError{line, column, std::move(message)};
    return false;
  }

  std::string text;
  size_t at = 0, lineBegin = 0;
  int64_t line = 1;
  std::vector<Field> fields;
  int64_t rowLine = 1;               ///< The first of the row.
  std::array<int, numColumns> place; ///< Field of each column, or -1.
  size_t numFields = 0;              ///< In the header.
  std::optional<TextError> error;
};
} // namespace

static std::string quote(std::string_view text) {
  return "'" + std::string(text) + "'";
}

static constexpr std::string_view kBlanks = " \t\r";

Reader::Reader(std::istream &in) {
  char piece[1 << 16];
  while (in.read(piece, sizeof piece) || in.gcount() > 0)
    text.append(piece, in.gcount());
  constexpr std::string_view mark = "\xEF\xBB\xBF"; // of UTF-8
  if (text.compare(0, mark.size(), mark) == 0)
    text.erase(0, mark.size());
}

/// What is between two quotes, of which two in a row are one.
bool Reader::readQuoted(Field &field) {
  while (true) {
    size_t end = text.find('"', ++at);
    if (end == text.npos)
      return fail(field, "needs a quote that closes the one here");
    for (; at != end; ++at) {
      field.text += text[at];
      if (text[at] == '\n') {
        ++line;
        lineBegin = at + 1;
      }
    }
    if (text.compare(++at, 1, "\"") != 0)
      break;
    field.text += '"';
  }
  size_t behind = at;
  skip(kBlanks);
  if (isAtEnd() || text[at] == ',' || text[at] == '\n')
    return true;
  bool isTab = text.substr(behind, at - behind).find('\t') != text.npos;
  if (isTab || text[at] == ';' || text[at] == '|')
    return fail(line, int64_t(at - lineBegin) + 1,
                "needs commas between columns, but got " +
                    (isTab ? "a tab" : quote(std::string(1, text[at]))) +
                    " behind a quote that closes");
  return fail(line, int64_t(at - lineBegin) + 1,
              "needs a comma or the end of the line behind a quote that "
              "closes; a quote in a field in quotes is written twice");
}

/// Up to a comma or the end of the line. Blanks around it do not count.
bool Reader::readField() {
  skip(" \t");
  Field field = {"", line, int64_t(at - lineBegin) + 1};
  if (!isAtEnd() && text[at] == '"') {
    if (!readQuoted(field))
      return false;
  } else {
    size_t end = std::min(text.find_first_of(",\n", at), text.size());
    field.text = text.substr(at, end - at);
    field.text.erase(field.text.find_last_not_of(kBlanks) + 1);
    at = end;
    if (size_t alone = field.text.find('\r'); alone != field.text.npos)
      return fail(line, field.column + int64_t(alone),
                  "lines need LF or CR LF at their end, but this has a CR "
                  "alone");
  }
  fields.push_back(std::move(field));
  return true;
}

/// Reads the next line that is not blank, or lines if quotes join them.
bool Reader::nextRow() {
  fields.clear();
  for (skip(kBlanks); !isAtEnd() && text[at] == '\n'; skip(kBlanks)) {
    ++at;
    endLine();
  }
  if (isAtEnd())
    return false;
  at = lineBegin;
  rowLine = line;
  do {
    if (!readField())
      return false;
  } while (!isAtEnd() && text[at++] == ',');
  endLine();
  return true;
}

/// Why field `k` of the header is no column.
std::string Reader::explainColumn(size_t k) const {
  const std::string &name = fields[k].text;
  size_t other = name.find_first_of(";\t|");
  if (fields.size() == 1 && other != name.npos)
    return "needs commas between columns, but got " +
           (name[other] == '\t' ? "a tab" : quote(name.substr(other, 1))) +
           " in " + quote(name);
  std::string what = "unknown column " + quote(name);
  if (name.empty())
    what = "column " + std::to_string(k + 1) + " of " +
           std::to_string(fields.size()) + " has no name" +
           (k + 1 == fields.size() ? ", behind the last comma" : "");
  return what + "; the columns are id, lower, upper, size and offset";
}

bool Reader::readHeader() {
  place.fill(-1);
  if (!nextRow()) {
    if (error)
      return false;
    return fail(1, 1,
                "needs a header 'id,lower,upper,size', but the text is "
                "empty");
  }
  numFields = fields.size();
  for (size_t k = 0; k != fields.size(); ++k) {
    int column = 0;
    while (column != numColumns && columnNames[column] != fields[k].text)
      ++column;
    if (column == numColumns)
      return fail(fields[k], explainColumn(k));
    if (place[column] >= 0)
      return fail(fields[k],
                  "column " + quote(fields[k].text) + " is there twice");
    place[column] = static_cast<int>(k);
  }
  for (int column = Id; column != Offset; ++column)
    if (place[column] < 0)
      return fail(rowLine, 1,
                  "the header lacks the column " + quote(columnNames[column]));
  return true;
}

bool Reader::readNumber(Column column, int64_t lowest, int64_t highest,
                        int64_t &number) {
  const Field &field = fields[place[column]];
  const char *end = field.text.data() + field.text.size();
  auto [rest, code] = std::from_chars(field.text.data(), end, number);
  if (code == std::errc() && rest == end && number >= lowest &&
      number <= highest)
    return true;
  return fail(field, "column " + quote(columnNames[column]) +
                         " needs a whole number between " +
                         std::to_string(lowest) + " and " +
                         std::to_string(highest) + ", but got " +
                         quote(field.text));
}

bool Reader::readRow(PackingItem &item, int64_t &offset) {
  if (fields.size() != numFields)
    return fail(rowLine, 1,
                "needs " + std::to_string(numFields) +
                    " fields as the header, but got " +
                    std::to_string(fields.size()));
  item.name = fields[place[Id]].text;
  if (!readNumber(Lower, -maxTime, maxTime, item.lower) ||
      !readNumber(Upper, -maxTime, maxTime, item.upper) ||
      !readNumber(Size, 0, maxBytes, item.size))
    return false;
  if (item.lower > item.upper)
    return fail(fields[place[Upper]],
                "needs an upper end of at least the lower " +
                    std::to_string(item.lower) + ", but got " +
                    std::to_string(item.upper));
  return place[Offset] < 0 || readNumber(Offset, 0, maxBytes, offset);
}

std::optional<TextError>
Reader::read(PackingProblem &problem,
             std::optional<PackingSolution> &solution) {
  problem.items.clear();
  solution.reset();
  if (!readHeader())
    return error;
  if (place[Offset] >= 0)
    solution.emplace();
  std::unordered_map<std::string, int64_t> lines; // of each id
  while (nextRow()) {
    PackingItem item;
    int64_t offset = 0;
    if (!readRow(item, offset))
      return error;
    auto [first, isNew] = lines.try_emplace(item.name, rowLine);
    if (!isNew) {
      fail(fields[place[Id]], "needs an id of its own, but " +
                                  quote(item.name) + " is that of line " +
                                  std::to_string(first->second));
      return error;
    }
    problem.items.push_back(std::move(item));
    if (solution)
      solution->offsets.push_back(offset);
  }
  return error;
}

std::optional<TextError>
reprise::solver::readPacking(std::istream &in, PackingProblem &problem,
                             std::optional<PackingSolution> &solution) {
  if (auto error = Reader(in).read(problem, solution))
    return error;
  if (solution && !check(problem))
    solution->peak = peakOf(problem, solution->offsets);
  return std::nullopt;
}

/// As a field: in quotes where it would be read as something else.
static std::string formatField(const std::string &text) {
  bool isPlain = text.find_first_of(",\"\n\r") == text.npos &&
                 (text.empty() || (kBlanks.find(text.front()) == kBlanks.npos &&
                                   kBlanks.find(text.back()) == kBlanks.npos));
  if (isPlain)
    return text;
  std::string quoted = "\"";
  for (char c : text)
    quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

void reprise::solver::writePacking(std::ostream &out,
                                   const PackingProblem &problem,
                                   const PackingSolution *solution) {
  out << "id,lower,upper,size" << (solution ? ",offset\n" : "\n");
  for (size_t i = 0; i != problem.items.size(); ++i) {
    const PackingItem &item = problem.items[i];
    out << formatField(item.name) << ',' << item.lower << ',' << item.upper
        << ',' << item.size;
    if (solution)
      out << ',' << solution->offsets[i];
    out << '\n';
  }
}
