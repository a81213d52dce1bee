//===- reprise-check-page.cpp - The tables of a page of HTML --------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Usage: reprise-check-page PAGE.html
//
// Reads a page as a browser would: elements close in the order in which they
// open, each row of a table has as many cells as its first row, cells that span
// several columns counted so often, and a column of numbers has a heading of
// class "number", if it has one. Each heading has words, and each row says
// something beside its first cell. Prints each table by the heading above it,
// "Decisions: 12 rows of 11".
//
//===----------------------------------------------------------------------===//

#include "test/common/Words.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/WithColor.h"
#include <vector>

using llvm::StringRef;
using llvm::Twine;
namespace cl = llvm::cl;

static cl::OptionCategory category("reprise-check-page options");
static cl::opt<std::string> file(cl::Positional, cl::Required,
                                 cl::desc("<page>"), cl::cat(category));

namespace {
/// "<td class="number" colspan="2">", "</td>", "<br/>".
struct Tag {
  explicit Tag(StringRef inner);

  /// The value of `attribute`, or nothing.
  StringRef get(StringRef attribute) const;

  StringRef name, rest;
  bool closes = false, isEmpty = false;
};

/// A column of a row.
struct Cell {
  bool isHeading, isNumber;
  bool hasWords = false;
};

struct Table {
  std::string title;
  std::vector<std::vector<Cell>> rows;
};

class Page {
public:
  /// Whether nothing is wrong with the page; says what is.
  bool check(StringRef text);

private:
  void open(const Tag &tag);
  void close(StringRef name);
  void take(StringRef words);
  void endRow();
  void endTable();
  void fail(const Twine &message);

  llvm::SmallVector<StringRef> opened;
  std::vector<Table> tables; ///< those that are open
  std::string heading;
  unsigned lastSpan = 0; ///< of the cell that was opened last
  int64_t line = 1;
  bool isGood = true;
};
} // namespace

Tag::Tag(StringRef inner) {
  closes = inner.consume_front("/");
  isEmpty = inner.consume_back("/");
  name = inner.take_while([](char c) { return llvm::isAlnum(c); });
  rest = inner.drop_front(name.size());
  for (StringRef known : {"meta", "br", "hr", "img", "input", "link"})
    isEmpty |= name == known;
}

StringRef Tag::get(StringRef attribute) const {
  size_t begin = rest.find((" " + attribute + "=\"").str());
  if (begin == StringRef::npos)
    return "";
  return rest.drop_front(begin + attribute.size() + 3).split('"').first;
}

void Page::fail(const Twine &message) {
  llvm::WithColor::error() << file << ":" << line << ": " << message << "\n";
  isGood = false;
}

static bool isHeadingTag(StringRef name) {
  return name == "h1" || name == "h2" || name == "h3";
}

void Page::open(const Tag &tag) {
  if (isHeadingTag(tag.name))
    heading.clear();
  if (tag.name == "table")
    tables.push_back({heading, {}});
  bool isCell = tag.name == "td" || tag.name == "th";
  if (tag.name == "tr" || isCell) {
    if (tables.empty())
      return fail("<" + tag.name + "> in no table");
    if (tag.name == "tr")
      tables.back().rows.emplace_back();
    else if (tables.back().rows.empty())
      return fail("<" + tag.name + "> in no row");
  }
  if (isCell) {
    unsigned span = 1;
    if (StringRef given = tag.get("colspan"); !given.empty())
      if (given.getAsInteger(10, span) || span == 0)
        fail("needs a number above 0 as colspan, but got '" + given + "'");
    lastSpan = span;
    Cell cell = {tag.name == "th",
                 (" " + tag.get("class") + " ").str().find(" number ") !=
                     std::string::npos};
    tables.back().rows.back().insert(tables.back().rows.back().end(), span,
                                     cell);
  }
  if (!tag.isEmpty)
    opened.push_back(tag.name);
}

void Page::endRow() {
  if (tables.empty() || tables.back().rows.empty())
    return;
  const Table &table = tables.back();
  const std::vector<Cell> &first = table.rows.front(), &row = table.rows.back();
  std::string where = "table under '" + table.title + "', row " +
                      std::to_string(table.rows.size()) + ": ";
  size_t numTold = 0;
  for (const Cell &cell : row) {
    numTold += cell.hasWords;
    if (cell.isHeading && !cell.hasWords)
      fail(where + "has a heading without words");
  }
  if (numTold < std::min<size_t>(row.size(), 2))
    fail(where + "says nothing");
  if (row.size() != first.size())
    return fail(where + "has " + Twine(row.size()) + " columns under " +
                Twine(first.size()) + " of the first row");
  for (size_t column = 0; column < row.size(); ++column)
    if (first[column].isHeading && !row[column].isHeading &&
        first[column].isNumber != row[column].isNumber)
      fail(where + "column " + Twine(column + 1) +
           (row[column].isNumber ? " is a number, its heading is not"
                                 : " is no number, its heading is one"));
}

void Page::endTable() {
  const Table &table = tables.back();
  if (table.rows.empty())
    fail("table under '" + table.title + "' has no row");
  else
    llvm::outs() << table.title << ": " << table.rows.size() << " rows of "
                 << table.rows.front().size() << "\n";
  tables.pop_back();
}

void Page::close(StringRef name) {
  if (opened.empty() || opened.back() != name)
    return fail(
        "</" + name + "> closes " +
        (opened.empty() ? Twine("nothing") : "<" + opened.back() + ">"));
  opened.pop_back();
  if (name == "tr")
    endRow();
  if (name == "table")
    endTable();
}

void Page::take(StringRef words) {
  if (llvm::any_of(opened, isHeadingTag))
    heading += words;
  bool isInCell =
      llvm::is_contained(opened, "td") || llvm::is_contained(opened, "th");
  if (isInCell && !tables.empty() && !words.trim().empty())
    for (Cell &cell :
         llvm::MutableArrayRef(tables.back().rows.back()).take_back(lastSpan))
      cell.hasWords = true;
}

bool Page::check(StringRef text) {
  text.consume_front("<!DOCTYPE html>");
  while (!text.empty()) {
    size_t begin = text.find('<');
    take(text.take_front(begin));
    line += text.take_front(begin).count('\n');
    if (begin == StringRef::npos)
      break;
    text = text.drop_front(begin + 1);
    size_t end = text.find('>');
    if (end == StringRef::npos) {
      fail("a tag does not end");
      break;
    }
    Tag tag(text.take_front(end));
    if (tag.closes)
      close(tag.name);
    else
      open(tag);
    line += text.take_front(end).count('\n');
    text = text.drop_front(end + 1);
    if (tag.name != "style" || tag.closes)
      continue;
    end = text.find("</style>");
    line += text.take_front(end).count('\n');
    text = text.drop_front(std::min(end, text.size()));
  }
  for (StringRef name : opened)
    fail("<" + name + "> is never closed");
  return isGood;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  reprise::test::readWords(argc, argv, category, "Checks a page of HTML\n");
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(file);
  if (!buffer) {
    llvm::WithColor::error() << "cannot read '" << file
                             << "': " << buffer.getError().message() << "\n";
    return 1;
  }
  return Page().check((*buffer)->getBuffer()) ? 0 : 1;
}
