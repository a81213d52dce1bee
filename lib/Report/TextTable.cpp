//===- TextTable.cpp - Columns and lines of a terminal --------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TextTable.h"
#include "llvm/ADT/STLExtras.h"

using namespace reprise;
using namespace reprise::report;
using llvm::ArrayRef;
using llvm::SmallVector;
using llvm::StringRef;

/// Between columns, and before the first one.
static constexpr size_t kGap = 2;
static constexpr size_t kWordsIndent = 4;

void report::printText(llvm::raw_ostream &os, const std::string &text,
                       unsigned indent) {
  // Two columns less than there are: lines from the second on need them.
  for (auto [number, line] :
       llvm::enumerate(breakText(text, kTextWidth - kGap - indent)))
    os.indent(indent + (number ? kGap : 0)) << line << "\n";
}

TextTable::TextTable(ArrayRef<Column> columns) {
  Line titles;
  for (auto [title, kind] : columns) {
    titles.push_back(title.str());
    kinds.push_back(kind);
  }
  add(std::move(titles));
}

/// Of the longest cell of each column. Where two columns of words need more
/// than a line has, each may have half of it, and what the other leaves.
SmallVector<size_t> TextTable::getWidths() const {
  SmallVector<size_t> widths(kinds.size(), 0);
  for (const Line &line : lines)
    for (auto [width, cell] : llvm::zip(widths, line))
      width = std::max(width, cell.size());
  if (kinds.size() > 1 && kinds.end()[-2] == Kind::Words) {
    size_t &left = widths.end()[-2], &right = widths.back();
    size_t room = kTextWidth - kWordsIndent - kGap;
    left = std::min(left, std::max(room - std::min(room, right), room / 2));
    right = std::min(right, room - left);
  }
  return widths;
}

void TextTable::printWords(llvm::raw_ostream &os, const Line &line,
                           ArrayRef<size_t> widths) const {
  SmallVector<std::vector<std::string>> columns;
  SmallVector<size_t> begins;
  size_t numLines = 0, begin = kWordsIndent;
  for (auto [kind, cell, width] : llvm::zip(kinds, line, widths)) {
    if (kind != Kind::Words)
      continue;
    columns.push_back(breakText(cell == "-" ? "" : cell, width));
    begins.push_back(begin);
    begin += width + kGap;
    numLines = std::max(numLines, columns.back().size());
  }
  for (size_t number = 0; number < numLines; ++number) {
    std::string text;
    for (auto [column, begin] : llvm::zip(columns, begins)) {
      if (number >= column.size())
        continue;
      text.resize(begin, ' ');
      text += column[number];
    }
    os << text << "\n";
  }
}

void TextTable::print(llvm::raw_ostream &os) const {
  SmallVector<size_t> widths = getWidths();
  size_t all = 0;
  for (auto [kind, width] : llvm::zip(kinds, widths))
    all += kind == Kind::Words ? 0 : kGap + width;
  std::string gap(all > kTextWidth ? 1 : kGap, ' ');
  for (const Line &line : lines) {
    std::string text;
    for (auto [width, cell, kind] : llvm::zip(widths, line, kinds)) {
      if (kind == Kind::Words)
        continue;
      std::string space(width - cell.size(), ' ');
      text += gap + (kind == Kind::Number ? space + cell : cell + space);
    }
    os << StringRef(text).rtrim() << "\n";
    printWords(os, line, widths);
  }
}
