//===- TextTable.h - Columns and lines of a terminal ------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_REPORT_TEXTTABLE_H
#define REPRISE_LIB_REPORT_TEXTTABLE_H

#include "reprise/Support/Format.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

namespace reprise::report {
/// Prints `text` in lines of at most `kTextWidth` columns, `indent` to the
/// right and from the second on by two more.
void printText(llvm::raw_ostream &os, const std::string &text,
               unsigned indent = 0);

/// Lines of columns, each as wide as it need be; and below each line what is
/// said of it in words, in up to two columns that a line has room for.
class TextTable {
public:
  enum class Kind { Text, Number, Words };
  using Column = std::pair<llvm::StringRef, Kind>;
  using Line = llvm::SmallVector<std::string>;

  /// Begins with the titles of the columns; those of numbers end at their
  /// right. Words come last.
  explicit TextTable(llvm::ArrayRef<Column> columns);

  /// A cell for each column; of words "-" is not printed.
  void add(Line line) { lines.push_back(std::move(line)); }
  void print(llvm::raw_ostream &os) const;

private:
  llvm::SmallVector<size_t> getWidths() const;
  void printWords(llvm::raw_ostream &os, const Line &line,
                  llvm::ArrayRef<size_t> widths) const;

  llvm::SmallVector<Kind> kinds;
  std::vector<Line> lines;
};
} // namespace reprise::report

#endif // REPRISE_LIB_REPORT_TEXTTABLE_H
