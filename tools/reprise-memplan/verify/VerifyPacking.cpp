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
  std::string_view id;
  int64_t lower = 0, upper = 0, size = 0, offset = 0;
  size_t at = 0;
};

/// The fields of a line, with their places.
struct Line {
  std::vector<std::string_view> fields;
  size_t at = 0;
};
} // namespace

/// Without the blanks around it.
static std::string_view trim(std::string_view field) {
  constexpr std::string_view blanks = " \t\r";
  field.remove_prefix(std::min(field.find_first_not_of(blanks), field.size()));
  return field.substr(0, field.find_last_not_of(blanks) + 1);
}

static std::vector<Line> splitLines(std::string_view text) {
  std::vector<Line> lines;
  constexpr std::string_view mark = "\xEF\xBB\xBF"; // of UTF-8
  size_t at = text.substr(0, mark.size()) == mark ? mark.size() : 0;
  while (at < text.size()) {
    size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (!trim(line).empty()) {
      lines.push_back({{}, at});
      for (size_t begin = 0; begin <= line.size();) {
        size_t comma = std::min(line.find(',', begin), line.size());
        lines.back().fields.push_back(trim(line.substr(begin, comma - begin)));
        begin = comma + 1;
      }
    }
    at = end + 1;
  }
  return lines;
}

static std::optional<Fault> readRows(std::string_view text, bool withOffset,
                                     std::vector<Row> &rows) {
  std::vector<Line> lines = splitLines(text);
  if (lines.empty())
    return Fault{0, "needs a header, but the text is empty"};
  // In a field a lone CR is the end of a line of old: nothing else has it
  // there.
  for (const Line &line : lines)
    for (std::string_view field : line.fields)
      if (size_t end = field.find('\r'); end != field.npos)
        return Fault{size_t(field.data() - text.data()) + end,
                     "lines need LF or CR LF at their end, but this has a CR "
                     "alone"};
  const std::vector<std::string_view> &header = lines.front().fields;
  auto find = [&](std::string_view name) {
    return std::find(header.begin(), header.end(), name) - header.begin();
  };
  const std::string_view names[] = {"lower", "upper", "size", "offset"};
  int64_t Row::*const fields[] = {&Row::lower, &Row::upper, &Row::size,
                                  &Row::offset};
  size_t count = withOffset ? 4 : 3;
  std::vector<size_t> columns;
  for (size_t k = 0; k < count; ++k)
    columns.push_back(find(names[k]));
  columns.push_back(find("id"));
  for (size_t k = 0; k < columns.size(); ++k)
    if (columns[k] == header.size())
      return Fault{0, "needs a column '" +
                          std::string(k < count ? names[k] : "id") + "'" +
                          (k == 3 ? " for --verify" : "")};
  std::map<std::string_view, size_t> known;
  for (size_t l = 1; l < lines.size(); ++l) {
    const Line &line = lines[l];
    if (line.fields.size() != header.size())
      return Fault{line.at, "needs " + std::to_string(header.size()) +
                                " fields, but got " +
                                std::to_string(line.fields.size())};
    Row row;
    row.at = line.at;
    row.id = line.fields[columns.back()];
    auto [first, isNew] = known.emplace(row.id, line.at);
    if (!isNew)
      return Fault{size_t(row.id.data() - text.data()),
                   "needs an id of its own, but '" + std::string(row.id) +
                       "' is that of line " +
                       std::to_string(getPlace(text, first->second).line)};
    for (size_t k = 0; k < count; ++k) {
      std::string_view field = line.fields[columns[k]];
      auto [rest, code] = std::from_chars(
          field.data(), field.data() + field.size(), row.*fields[k]);
      if (code != std::errc() || rest != field.data() + field.size() ||
          row.*fields[k] > kMost || row.*fields[k] < (k < 2 ? -kMost : 0))
        return Fault{size_t(field.data() - text.data()),
                     "column '" + std::string(names[k]) +
                         "' needs a whole number, but got '" +
                         std::string(field) + "'"};
    }
    if (row.upper < row.lower)
      return Fault{row.at, "needs an upper end of at least the lower " +
                               std::to_string(row.lower) + ", but got " +
                               std::to_string(row.upper)};
    rows.push_back(row);
  }
  return std::nullopt;
}

static std::string describe(const Row &row) {
  return "item '" + std::string(row.id) + "' at bytes [" +
         std::to_string(row.offset) + ", " +
         std::to_string(row.offset + row.size) + ") and times [" +
         std::to_string(row.lower) + ", " + std::to_string(row.upper) + ")";
}

std::optional<Fault> reprise::verify::verifyPacking(std::string_view text,
                                                    int64_t alignment,
                                                    PackingFigures &figures) {
  std::vector<Row> rows;
  if (std::optional<Fault> fault = readRows(text, /*withOffset=*/true, rows))
    return fault;
  figures = {int64_t(rows.size()), 0, 0};

  // Births and deaths in the order of time; at one time deaths come first.
  struct Event {
    int64_t time;
    bool isBirth;
    size_t row;
  };
  std::vector<Event> events;
  for (size_t r = 0; r < rows.size(); ++r) {
    Row &row = rows[r];
    if (row.offset % alignment != 0)
      return Fault{row.at,
                   "item '" + std::string(row.id) + "' needs an offset that " +
                       std::to_string(alignment) + " divides, but got " +
                       std::to_string(row.offset)};
    row.size += (alignment - row.size % alignment) % alignment;
    if (row.size == 0 || row.lower == row.upper)
      continue;
    figures.peak = std::max(figures.peak, row.offset + row.size);
    events.push_back({row.lower, true, r});
    events.push_back({row.upper, false, r});
  }
  std::sort(events.begin(), events.end(),
            [](const Event &left, const Event &right) {
              return std::tie(left.time, left.isBirth, left.row) <
                     std::tie(right.time, right.isBirth, right.row);
            });

  std::map<int64_t, size_t> alive; // by offset
  int64_t bytes = 0;
  for (const Event &event : events) {
    const Row &row = rows[event.row];
    if (!event.isBirth) {
      alive.erase(row.offset);
      bytes -= row.size;
      continue;
    }
    auto next = alive.lower_bound(row.offset);
    const Row *other = nullptr;
    if (next != alive.end() && next->first < row.offset + row.size)
      other = &rows[next->second];
    if (next != alive.begin()) {
      const Row &below = rows[std::prev(next)->second];
      if (below.offset + below.size > row.offset)
        other = &below;
    }
    if (other)
      return Fault{row.at, describe(row) + " overlaps " + describe(*other)};
    alive[row.offset] = event.row;
    bytes += row.size;
    figures.bound = std::max(figures.bound, bytes);
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
      return Fault{0, "the item '" + std::string(wanted[r].id) +
                          "' of the input is missing"};
    if (r == wanted.size() || less(planned[r], wanted[r]))
      return Fault{planned[r].at, "the input has no such item '" +
                                      std::string(planned[r].id) + "'"};
  }
  return std::nullopt;
}
