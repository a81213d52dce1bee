//===- Metrics.cpp - A run's numbers in files -----------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Metrics.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <sys/stat.h>

using namespace reprise::runtime;

Metrics::~Metrics() {
  if (table)
    fclose(table);
}

static constexpr char kColumns[] =
    "step,loss,grad_norm,lr,ms,tokens_per_s,mfu,hfu,loss_z,grad_norm_z,skipped,"
    "high_water_bytes,planned_bytes,val_loss";

/// Whether a table can go on in this file: there is none yet, or it is one of
/// ours. Sets `ends` to whether its last line is complete.
static bool checkTable(const char *path, bool &ends, Error &error) {
  struct stat info;
  ends = true;
  if (stat(path, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0)
    return true;
  FILE *file = fopen(path, "rbe");
  if (!file)
    return error.set("cannot read '%s': %s", path, strerror(errno));
  char line[sizeof(kColumns) + 1] = "";
  size_t length = fread(line, 1, sizeof(kColumns), file);
  ends = fseek(file, -1, SEEK_END) != 0 || fgetc(file) == '\n';
  fclose(file);
  size_t columns = sizeof(kColumns) - 1;
  if (length >= columns && !memcmp(line, kColumns, columns) &&
      (length == columns || line[columns] == '\n'))
    return true;
  line[length] = '\0';
  line[strcspn(line, "\r\n")] = '\0';
  for (char *c = line; *c; ++c)
    if (*c < ' ' || *c == 0x7F)
      *c = '?';
  return error.set("cannot append to '%s': its first line is '%s', but that of "
                   "this table '%s'",
                   path, line, kColumns);
}

bool Metrics::open(const Options &options, Error &error) {
  if (options.tensorboard && !events.open(options.tensorboard, error))
    return false;
  if (!options.csv)
    return true;
  tablePath = options.csv;
  bool ends;
  if (!checkTable(tablePath, ends, error))
    return false;
  table = fopen(tablePath, "abe");
  if (!table || fseek(table, 0, SEEK_END) != 0)
    return error.set("cannot write '%s': %s", tablePath, strerror(errno));
  if (!ends)
    fputc('\n', table); // Of a run that was stopped while it wrote.
  if (ftell(table) == 0)
    fprintf(table, "%s\n", kColumns);
  return flushTable(error);
}

bool Metrics::flushTable(Error &error) {
  bool good = fflush(table) == 0 && !ferror(table);
  return good || error.set("cannot write '%s': %s", tablePath, strerror(errno));
}

/// The number, or nothing if it is not known.
static void printCell(FILE *table, double number) {
  if (std::isnan(number))
    fputc(',', table);
  else
    fprintf(table, ",%.6g", number);
}

bool Metrics::step(const StepReport &report, Error &error) {
  int64_t number = report.step + 1;
  if (events.isOpen()) {
    constexpr double kGiB = 1 << 30;
    Scalar scalars[] = {
        {"loss", report.loss},
        {"grad_norm", report.gradNorm},
        {"lr", report.learningRate},
        {"ms", float(report.seconds * 1e3)},
        {"tokens_per_sec", float(report.tokensPerSecond)},
        {"memory/planned_gib", float(double(model.arenaBytes) / kGiB)},
        {"memory/actual_gib", float(double(report.highWaterBytes) / kGiB)},
        {"mfu", float(report.mfu)},
        {"hfu", float(report.hfu)}};
    int count = sizeof(scalars) / sizeof(Scalar);
    if (std::isnan(report.mfu))
      count -= 2;
    if (!events.add(number, scalars, count, error))
      return false;
  }
  if (!table)
    return true;
  fprintf(table, "%" PRId64 ",%.9g,%.9g,%.9g,%.6g,%.6g", number,
          double(report.loss), double(report.gradNorm),
          double(report.learningRate), report.seconds * 1e3,
          report.tokensPerSecond);
  for (double each : {report.mfu, report.hfu, report.lossZ, report.gradNormZ})
    printCell(table, each);
  fprintf(table, ",%d,%" PRId64 ",%" PRId64 ",\n", int(report.skipped),
          report.highWaterBytes, model.arenaBytes);
  return flushTable(error);
}

bool Metrics::validation(int64_t stepsDone, float loss, Error &error) {
  Scalar scalar = {"val_loss", loss};
  if (events.isOpen() && !events.add(stepsDone, &scalar, 1, error))
    return false;
  if (!table)
    return true;
  fprintf(table, "%" PRId64 ",,,,,,,,,,,,,%.9g\n", stepsDone, double(loss));
  return flushTable(error);
}
