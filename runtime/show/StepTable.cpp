//===- StepTable.cpp - A row of numbers for each step ---------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepTable.h"

#include "Measures.h"
#include "runtime/base/Files.h"
#include "runtime/base/MappedFile.h"
#include "runtime/base/ReplacedFile.h"

#include <cerrno>
#include <cinttypes>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

using namespace reprise::runtime;

static constexpr std::string_view kColumns =
    "step,loss,grad_norm,lr,ms,tokens_per_s,mfu,hfu,loss_z,grad_norm_z,skipped,"
    "high_water_bytes,planned_bytes,";
static constexpr char kLastColumn[] = "val_loss";

StepTable::StepTable(const RepriseModel &model) {
  size_t length = size_t(snprintf(columns, sizeof(columns), "%.*s",
                                  int(kColumns.size()), kColumns.data()));
  auto add = [&](const char *name, const char *end) {
    if (length < sizeof(columns))
      length += size_t(snprintf(columns + length, sizeof(columns) - length,
                                "%s%s", name, end));
  };
  bool hasLoads = false;
  for (int i = 0; i < model.numStates; ++i)
    if (const RepriseState &state = model.states[i]; isShownMeasure(state)) {
      hasLoads |= state.rank > 0;
      if (state.rank == 0)
        add(state.name, ",");
    }
  if (hasLoads)
    add("load_least,load_most", ",");
  add(kLastColumn, "");
}

StepTable::~StepTable() {
  if (file)
    fclose(file);
}

//===----------------------------------------------------------------------===//
// What is there already
//===----------------------------------------------------------------------===//

namespace {
/// The rows of a table in memory, one after another.
struct Rows {
  explicit Rows(const MappedFile &file)
      : rest(reinterpret_cast<const char *>(file.data), size_t(file.size)),
        size(rest.size()) {
    next(); // The names.
  }

  bool next() {
    if (rest.empty())
      return false;
    size_t end = rest.find('\n');
    isWhole = end != rest.npos;
    row = rest.substr(0, isWhole ? end + 1 : rest.size());
    rest.remove_prefix(row.size());
    step = strtoll(row.data(), nullptr, 10);
    return true;
  }
  size_t begin() const { return size - rest.size() - row.size(); }

  std::string_view rest;
  size_t size;
  std::string_view row; ///< With its end.
  int64_t step = 0;
  bool isWhole = true; ///< Otherwise a run was stopped while it wrote the row.
};
} // namespace

/// Whether the file has a table of ours.
static bool checkColumns(const MappedFile &file, const char *columns,
                         Error &error) {
  std::string_view text(reinterpret_cast<const char *>(file.data),
                        size_t(file.size));
  std::string_view first = text.substr(0, text.find_first_of("\r\n"));
  if (first == columns)
    return true;
  char line[256];
  snprintf(line, sizeof(line), "%.*s", int(first.size()), first.data());
  for (char *c = line; *c; ++c)
    if (*c < ' ' || *c == 0x7F)
      *c = '?';
  return error.set("cannot append to '%s': its first line is '%s', but that of "
                   "this table '%s'",
                   file.path, line, columns);
}

/// Where the rows of the last run begin: its steps only rise.
static size_t lastRunOf(const MappedFile &file) {
  Rows rows(file);
  size_t begin = size_t(file.size) - rows.rest.size();
  for (int64_t before = 0; rows.next(); before = rows.step)
    if (rows.step < before)
      begin = rows.begin();
  return begin;
}

/// Copies rows to `kept`, and those that are superseded to `old`; the number of
/// the latter.
static int64_t divideRows(const MappedFile &table, const char *columns,
                          int64_t stepsDone, FILE *kept, FILE *old) {
  Rows rows(table);
  size_t begin = lastRunOf(table);
  if (kept)
    fprintf(kept, "%s\n", columns);
  int64_t count = 0;
  while (rows.next()) {
    bool isOld =
        rows.begin() >= begin && (rows.step > stepsDone || !rows.isWhole);
    count += isOld;
    if (FILE *to = isOld ? old : kept)
      fprintf(to, "%.*s%s", int(rows.row.size()), rows.row.data(),
              rows.isWhole ? "" : "\n");
  }
  return count;
}

bool StepTable::supersede(int64_t stepsDone, Error &error) {
  MappedFile table;
  if (!table.map(path, error))
    return false;
  bool good = true;
  if (divideRows(table, columns, stepsDone, nullptr, nullptr) > 0) {
    // Nothing is lost: they are there once more before they are gone here.
    Path aside("%s.old", path);
    FILE *old = fopen(aside, "abe");
    ReplacedFile whole;
    FILE *kept = whole.start(path, error) ? whole.open(error) : nullptr;
    good = old && kept;
    if (good)
      divideRows(table, columns, stepsDone, kept, old);
    bool hasOld = old && !ferror(old);
    if (old && fclose(old) != 0)
      hasOld = false;
    if (!hasOld)
      error.set("cannot write '%s': %s", aside.chars, strerror(errno));
    if (kept)
      good = whole.finish(hasOld, error) && hasOld;
  }
  table.unmap();
  return good;
}

/// \param ends  whether that has an end.
bool StepTable::findLastRow(bool &ends, Error &error) {
  MappedFile table;
  if (!table.map(path, error))
    return false;
  Rows rows(table);
  while (rows.next())
    if (rows.isWhole) {
      lastStep = rows.step;
      lastCell = long(rows.begin() + rows.row.rfind(',') + 1);
    }
  ends = table.data[table.size - 1] == '\n';
  table.unmap();
  return true;
}

bool StepTable::open(const char *name, bool goesOn, int64_t stepsDone,
                     Error &error) {
  path = name;
  struct stat info;
  bool isThere = stat(path, &info) == 0;
  isPlain = !isThere || S_ISREG(info.st_mode);
  bool hasRows = isThere && isPlain && info.st_size > 0, ends = true;
  if (hasRows) {
    MappedFile table;
    if (!table.map(path, error))
      return false;
    bool good = checkColumns(table, columns, error);
    table.unmap();
    if (!good || (goesOn && !supersede(stepsDone, error)) ||
        !findLastRow(ends, error))
      return false;
    if (!goesOn)
      lastStep = 0; // Of another run.
  }
  int descriptor = ::open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  file = descriptor < 0 ? nullptr : fdopen(descriptor, "wb");
  if (!file || (isPlain && fseek(file, 0, SEEK_END) != 0))
    return error.set("cannot write '%s': %s", path, strerror(errno));
  if (!ends)
    fputc('\n', file); // Of a run that was stopped while it wrote.
  if (!hasRows)
    fprintf(file, "%s\n", columns);
  return flush(error);
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

bool StepTable::flush(Error &error) {
  bool good = fflush(file) == 0 && !ferror(file);
  return good || error.set("cannot write '%s': %s", path, strerror(errno));
}

/// The number, or nothing if it is not known.
static void printCell(FILE *file, double number) {
  if (std::isnan(number))
    fputc(',', file);
  else
    fprintf(file, ",%.6g", number);
}

/// All of the last row but its last cell.
void StepTable::printRow() {
  fprintf(file, "%" PRId64 ",%.9g,%.9g,%.9g,%.6g,%.6g", lastStep,
          double(last.loss), double(last.gradNorm), double(last.learningRate),
          last.seconds * 1e3, last.tokensPerSecond);
  for (double each : {last.mfu, last.hfu, last.lossZ, last.gradNormZ})
    printCell(file, each);
  fprintf(file, ",%d,%" PRId64 ",%" PRId64 ",", int(last.skipped),
          last.highWaterBytes, planned);
  if (!last.measures)
    return;
  for (const NamedNumber &number : last.measures->numbers())
    fprintf(file, "%.9g,", double(number.value));
  if (Load load = last.measures->extremes(); !std::isnan(load.most))
    fprintf(file, "%.6g,%.6g,", load.least, load.most);
}

bool StepTable::step(const StepReport &report, int64_t plannedBytes,
                     Error &error) {
  last = report;
  planned = plannedBytes;
  lastStep = report.step + 1;
  isOwn = true;
  printRow();
  if (isPlain)
    lastCell = ftell(file);
  fputc('\n', file);
  return flush(error);
}

bool StepTable::validation(int64_t stepsDone, double loss, Error &error) {
  bool isLast = stepsDone == lastStep && lastStep > 0;
  if (isLast && isPlain)
    fseek(file, lastCell, SEEK_SET);
  else if (isLast && isOwn)
    printRow();
  else {
    fprintf(file, "%" PRId64, stepsDone);
    for (const char *c = columns; *c; ++c)
      if (*c == ',')
        fputc(',', file);
  }
  fprintf(file, "%.9g\n", loss);
  if (!flush(error))
    return false;
  // What was there may have been longer.
  if (isLast && isPlain && ftruncate(fileno(file), ftell(file)) != 0)
    return error.set("cannot write '%s': %s", path, strerror(errno));
  return true;
}
