//===- PackingText.cpp - Packing problems and solutions as text -----------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The form is that of the public inputs of google/minimalloc and
// cappadokes/idealloc, so that those can be read as they are.
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

struct Field {
  std::string_view text;
  int64_t column; ///< In the line, from 1.
};

class Reader {
public:
  Reader(std::istream &in) : in(in) {}

  std::optional<TextError> read(PackingProblem &problem,
                                std::optional<PackingSolution> &solution);

private:
  bool nextLine();
  bool readHeader();
  bool readRow(PackingItem &item, int64_t &offset);
  bool readNumber(Column column, int64_t lowest, int64_t highest,
                  int64_t &number);

  bool fail(int64_t column, std::string message) {
    error = TextError{line, column, std::move(message)};
    return false;
  }

  std::istream &in;
  std::string text;
  std::vector<Field> fields;
  int64_t line = 0;
  std::array<int, numColumns> place; ///< Field of each column, or -1.
  size_t numFields = 0;              ///< In the header.
  std::optional<TextError> error;
};
} // namespace

static std::string quote(std::string_view text) {
  return "'" + std::string(text) + "'";
}

/// Reads the next line that is not blank and splits it.
bool Reader::nextLine() {
  constexpr std::string_view blanks = " \t\r";
  while (std::getline(in, text)) {
    ++line;
    constexpr std::string_view mark = "\xEF\xBB\xBF"; // of UTF-8
    if (line == 1 && text.compare(0, mark.size(), mark) == 0)
      text.erase(0, mark.size());
    if (text.find_first_not_of(blanks) == std::string::npos)
      continue;
    fields.clear();
    for (size_t begin = 0; begin <= text.size();) {
      size_t end = std::min(text.find(',', begin), text.size());
      std::string_view field(text.data() + begin, end - begin);
      size_t skip = std::min(field.find_first_not_of(blanks), field.size());
      field.remove_prefix(skip);
      field = field.substr(0, field.find_last_not_of(blanks) + 1);
      fields.push_back({field, static_cast<int64_t>(begin + skip) + 1});
      if (size_t end = field.find('\r'); end != field.npos)
        return fail(fields.back().column + int64_t(end),
                    "lines need LF or CR LF at their end, but this has a CR "
                    "alone");
      begin = end + 1;
    }
    return true;
  }
  return false;
}

bool Reader::readHeader() {
  place.fill(-1);
  if (!nextLine()) {
    if (error)
      return false;
    line = 1;
    return fail(1, "needs a header 'id,lower,upper,size', but the text is "
                   "empty");
  }
  numFields = fields.size();
  for (size_t k = 0; k != fields.size(); ++k) {
    int column = 0;
    while (column != numColumns && columnNames[column] != fields[k].text)
      ++column;
    if (column == numColumns)
      return fail(fields[k].column,
                  "unknown column " + quote(fields[k].text) +
                      "; the columns are id, lower, upper, size and offset");
    if (place[column] >= 0)
      return fail(fields[k].column,
                  "column " + quote(fields[k].text) + " is there twice");
    place[column] = static_cast<int>(k);
  }
  for (int column = Id; column != Offset; ++column)
    if (place[column] < 0)
      return fail(1,
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
  return fail(field.column, "column " + quote(columnNames[column]) +
                                " needs a whole number between " +
                                std::to_string(lowest) + " and " +
                                std::to_string(highest) + ", but got " +
                                quote(field.text));
}

bool Reader::readRow(PackingItem &item, int64_t &offset) {
  if (fields.size() != numFields)
    return fail(1, "needs " + std::to_string(numFields) +
                       " fields as the header, but got " +
                       std::to_string(fields.size()));
  item.name = std::string(fields[place[Id]].text);
  if (!readNumber(Lower, -maxTime, maxTime, item.lower) ||
      !readNumber(Upper, -maxTime, maxTime, item.upper) ||
      !readNumber(Size, 0, maxBytes, item.size))
    return false;
  if (item.lower > item.upper)
    return fail(fields[place[Upper]].column,
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
  while (nextLine()) {
    PackingItem item;
    int64_t offset = 0;
    if (!readRow(item, offset))
      return error;
    auto [first, isNew] = lines.try_emplace(item.name, line);
    if (!isNew) {
      fail(fields[place[Id]].column,
           "needs an id of its own, but " + quote(item.name) +
               " is that of line " + std::to_string(first->second));
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

void reprise::solver::writePacking(std::ostream &out,
                                   const PackingProblem &problem,
                                   const PackingSolution *solution) {
  out << "id,lower,upper,size" << (solution ? ",offset\n" : "\n");
  for (size_t i = 0; i != problem.items.size(); ++i) {
    const PackingItem &item = problem.items[i];
    out << item.name << ',' << item.lower << ',' << item.upper << ','
        << item.size;
    if (solution)
      out << ',' << solution->offsets[i];
    out << '\n';
  }
}
