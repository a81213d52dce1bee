//===- VerifyPacking.cpp - Checks the offsets of buffers ------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Verify.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <vector>

using namespace reprise::verify;

/// Times and bytes are below this, so that the sum of two does not overflow.
static constexpr int64_t kMost = int64_t(1) << 61;

namespace {
struct Row {
  std::string id;
  int64_t lower = 0, upper = 0, size = 0, offset = 0;
  size_t at = 0;
};

/// What a field says, without its quotes, and where it begins.
struct Field {
  std::string text;
  size_t at = 0;
};

/// The fields of a row. It is more than one line if quotes join them.
struct Line {
  std::vector<Field> fields;
  size_t at = 0;
};
} // namespace

/// Without the blanks around it.
static std::string_view trim(std::string_view field) {
  constexpr std::string_view blanks = " \t\r";
  field.remove_prefix(std::min(field.find_first_not_of(blanks), field.size()));
  return field.substr(0, field.find_last_not_of(blanks) + 1);
}

/// Reads letters up to a quote that stands alone, and moves `at` behind it.
static std::optional<Fault> takeQuoted(std::string_view text, size_t &at,
                                       Field &field) {
  for (++at;; ++at) {
    if (at == text.size())
      return Fault{field.at, "needs a quote that closes the one here"};
    if (text[at] == '"') {
      if (text.substr(at, 2) != "\"\"")
        break;
      ++at; // The second of two stands for both.
    }
    field.text += text[at];
  }
  ++at;
  return std::nullopt;
}

/// Moves `at` to the comma or the end of the line behind the field.
static std::optional<Fault> takeField(std::string_view text, size_t &at,
                                      Field &field) {
  while (at < text.size() && (text[at] == ' ' || text[at] == '\t'))
    ++at;
  field.at = at;
  bool isQuoted = at < text.size() && text[at] == '"';
  if (isQuoted)
    if (std::optional<Fault> fault = takeQuoted(text, at, field))
      return fault;
  size_t begin = at;
  while (at < text.size() && text[at] != ',' && text[at] != '\n')
    ++at;
  std::string_view rest = trim(text.substr(begin, at - begin));
  if (isQuoted && !rest.empty())
    return Fault{size_t(rest.data() - text.data()),
                 "needs a comma or the end of the line behind a quote that "
                 "closes; a quote in a field in quotes is written twice"};
  // Outside of quotes a lone CR is the end of a line of old: nothing else has
  // it there.
  if (size_t end = rest.find('\r'); end != rest.npos)
    return Fault{size_t(rest.data() - text.data()) + end,
                 "lines need LF or CR LF at their end, but this has a CR "
                 "alone"};
  if (!isQuoted)
    field.text = rest;
  return std::nullopt;
}

static std::optional<Fault> splitLines(std::string_view text,
                                       std::vector<Line> &lines) {
  constexpr std::string_view mark = "\xEF\xBB\xBF"; // of UTF-8
  size_t at = text.substr(0, mark.size()) == mark ? mark.size() : 0;
  while (at < text.size()) {
    size_t end = std::min(text.find('\n', at), text.size());
    if (trim(text.substr(at, end - at)).empty()) {
      at = end + 1;
      continue;
    }
    lines.push_back({{}, at});
    for (bool isLast = false; !isLast; ++at) {
      Field field;
      if (std::optional<Fault> fault = takeField(text, at, field))
        return fault;
      lines.back().fields.push_back(std::move(field));
      isLast = at == text.size() || text[at] == '\n';
    }
  }
  return std::nullopt;
}

static constexpr std::string_view kNames[] = {"lower", "upper", "size",
                                              "offset"};
static constexpr int64_t Row::*kFields[] = {&Row::lower, &Row::upper,
                                            &Row::size, &Row::offset};

namespace {
/// Where in a row its numbers are, and its id.
struct Columns {
  std::vector<size_t> numbers;
  size_t id = 0;
};
} // namespace

/// Of the first `count` of `kNames`.
static std::optional<Fault> findColumns(const std::vector<Field> &header,
                                        size_t count, Columns &columns) {
  auto find = [&](std::string_view name, size_t &column) {
    for (column = 0; column < header.size(); ++column)
      if (header[column].text == name)
        return true;
    return false;
  };
  for (size_t k = 0; k < count; ++k) {
    columns.numbers.push_back(0);
    if (!find(kNames[k], columns.numbers.back()))
      return Fault{0, "needs a column '" + std::string(kNames[k]) + "'" +
                          (k == 3 ? " for --verify" : "")};
  }
  if (!find("id", columns.id))
    return Fault{0, "needs a column 'id'"};
  return std::nullopt;
}

static std::optional<Fault> readRow(const Line &line, const Columns &columns,
                                    Row &row) {
  row.at = line.at;
  row.id = line.fields[columns.id].text;
  for (size_t k = 0; k < columns.numbers.size(); ++k) {
    const Field &field = line.fields[columns.numbers[k]];
    int64_t &number = row.*kFields[k];
    const char *end = field.text.data() + field.text.size();
    auto [rest, code] = std::from_chars(field.text.data(), end, number);
    if (code != std::errc() || rest != end || number > kMost ||
        number < (k < 2 ? -kMost : 0))
      return Fault{field.at, "column '" + std::string(kNames[k]) +
                                 "' needs a whole number, but got '" +
                                 field.text + "'"};
  }
  if (row.upper < row.lower)
    return Fault{row.at, "needs an upper end of at least the lower " +
                             std::to_string(row.lower) + ", but got " +
                             std::to_string(row.upper)};
  return std::nullopt;
}

static std::optional<Fault> readRows(std::string_view text, bool withOffset,
                                     std::vector<Row> &rows) {
  std::vector<Line> lines;
  if (std::optional<Fault> fault = splitLines(text, lines))
    return fault;
  if (lines.empty())
    return Fault{0, "needs a header, but the text is empty"};
  const std::vector<Field> &header = lines.front().fields;
  Columns columns;
  if (std::optional<Fault> fault =
          findColumns(header, withOffset ? 4 : 3, columns))
    return fault;
  std::map<std::string, size_t> known;
  for (size_t l = 1; l < lines.size(); ++l) {
    const Line &line = lines[l];
    if (line.fields.size() != header.size())
      return Fault{line.at, "needs " + std::to_string(header.size()) +
                                " fields, but got " +
                                std::to_string(line.fields.size())};
    const Field &id = line.fields[columns.id];
    auto [first, isNew] = known.emplace(id.text, line.at);
    if (!isNew)
      return Fault{id.at,
                   "needs an id of its own, but '" + id.text +
                       "' is that of line " +
                       std::to_string(getPlace(text, first->second).line)};
    Row row;
    if (std::optional<Fault> fault = readRow(line, columns, row))
      return fault;
    rows.push_back(std::move(row));
  }
  return std::nullopt;
}

static std::string describe(const Row &row) {
  return "item '" + row.id + "' at bytes [" + std::to_string(row.offset) +
         ", " + std::to_string(row.offset + row.size) + ") and times [" +
         std::to_string(row.lower) + ", " + std::to_string(row.upper) + ")";
}

/// Sizes are multiples of the alignment from here on; offsets are, or it is a
/// fault.
static std::optional<Fault> align(std::vector<Row> &rows, int64_t alignment) {
  for (Row &row : rows) {
    if (row.offset % alignment != 0)
      return Fault{row.at, "item '" + row.id + "' needs an offset that " +
                               std::to_string(alignment) +
                               " divides, but got " +
                               std::to_string(row.offset)};
    row.size += (alignment - row.size % alignment) % alignment;
  }
  return std::nullopt;
}

namespace {
struct Event {
  int64_t time;
  bool isBirth;
  size_t row;
};
} // namespace

/// Births and deaths in the order of time; at one time deaths come first.
static std::vector<Event> getEvents(const std::vector<Row> &rows) {
  std::vector<Event> events;
  for (size_t r = 0; r < rows.size(); ++r) {
    const Row &row = rows[r];
    if (row.size == 0 || row.lower == row.upper)
      continue;
    events.push_back({row.lower, true, r});
    events.push_back({row.upper, false, r});
  }
  std::sort(events.begin(), events.end(),
            [](const Event &left, const Event &right) {
              return std::tie(left.time, left.isBirth, left.row) <
                     std::tie(right.time, right.isBirth, right.row);
            });
  return events;
}

/// By offset, the numbers of the rows that are alive at a time.
using Alive = std::map<int64_t, size_t>;

/// One of them that shares bytes with `row`, or null.
static const Row *findOverlap(const std::vector<Row> &rows, const Alive &alive,
                              const Row &row) {
  auto next = alive.lower_bound(row.offset);
  if (next != alive.begin()) {
    const Row &below = rows[std::prev(next)->second];
    if (below.offset + below.size > row.offset)
      return &below;
  }
  bool isAbove = next != alive.end() && next->first < row.offset + row.size;
  return isAbove ? &rows[next->second] : nullptr;
}

std::optional<Fault> reprise::verify::verifyPacking(std::string_view text,
                                                    int64_t alignment,
                                                    PackingFigures &figures) {
  std::vector<Row> rows;
  if (std::optional<Fault> fault = readRows(text, /*withOffset=*/true, rows))
    return fault;
  if (std::optional<Fault> fault = align(rows, alignment))
    return fault;
  figures = {int64_t(rows.size()), 0, 0};
  Alive alive;
  int64_t bytes = 0;
  for (const Event &event : getEvents(rows)) {
    const Row &row = rows[event.row];
    if (!event.isBirth) {
      alive.erase(row.offset);
      bytes -= row.size;
      continue;
    }
    if (const Row *other = findOverlap(rows, alive, row))
      return Fault{row.at, describe(row) + " overlaps " + describe(*other)};
    alive[row.offset] = event.row;
    bytes += row.size;
    figures.bound = std::max(figures.bound, bytes);
    figures.peak = std::max(figures.peak, row.offset + row.size);
  }
  return std::nullopt;
}

std::optional<Fault> reprise::verify::compareRows(std::string_view text,
                                                  std::string_view input) {
  std::vector<Row> planned, wanted;
  if (std::optional<Fault> fault = readRows(text, /*withOffset=*/true, planned))
    return fault;
  if (std::optional<Fault> fault =
          readRows(input, /*withOffset=*/false, wanted)) {
    Place place = getPlace(input, fault->at);
    return Fault{0, "the input, line " + std::to_string(place.line) + ": " +
                        fault->message};
  }
  auto less = [](const Row &left, const Row &right) {
    return std::tie(left.id, left.lower, left.upper, left.size) <
           std::tie(right.id, right.lower, right.upper, right.size);
  };
  std::sort(planned.begin(), planned.end(), less);
  std::sort(wanted.begin(), wanted.end(), less);
  for (size_t r = 0; r < std::max(planned.size(), wanted.size()); ++r) {
    bool isMissing = r == planned.size() ||
                     (r < wanted.size() && less(wanted[r], planned[r]));
    if (isMissing)
      return Fault{0,
                   "the item '" + wanted[r].id + "' of the input is missing"};
    if (r == wanted.size() || less(planned[r], wanted[r]))
      return Fault{planned[r].at,
                   "the input has no such item '" + planned[r].id + "'"};
  }
  return std::nullopt;
}
