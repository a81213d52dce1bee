//===- Options.h - The command line of a training binary --------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_TRAINER_OPTIONS_H
#define REPRISE_RUNTIME_TRAINER_OPTIONS_H

#include "runtime/base/Error.h"
#include "runtime/data/TokenType.h"

#include "reprise/ABI/Model.h"

#include <optional>

namespace reprise::runtime {

/// Files and patterns, in the order in which they were given.
struct Paths {
  static constexpr int kMost = 64;

  int size() const { return count; }
  const char *operator[](int i) const { return items[i]; }
  const char *const *begin() const { return items; }
  const char *const *end() const { return items + count; }

  const char *items[kMost] = {};
  int count = 0;
};

struct Options {
  Paths data;
  std::optional<TokenType> dtype; ///< Of .bin files without a header.
  Paths valData;
  int64_t valInterval = 0; ///< 0: ten times in the run.
  int64_t valSteps = 20;
  int64_t sample = 0;         ///< Tokens; 0: none.
  int64_t sampleInterval = 0; ///< 0: ten times in the run.
  const char *prompt = nullptr;
  double temperature = 1;
  int64_t topK = 0; ///< 0: all.
  const char *tokenizer = nullptr;
  const char *dump = nullptr;
  int64_t steps = 0;
  const char *initFrom = nullptr;
  const char *save = nullptr;
  const char *resume = nullptr;     ///< A folder, or "auto".
  const char *autoFolder = nullptr; ///< Where "auto" looks: that of `save`.
  int64_t saveInterval = 0;         ///< 0: only at the end.
  int64_t keepLast = 0;             ///< 0: all.
  std::optional<bool> saveFromCopy; ///< Not given: if there is room for one.
  const char *tensorboard = nullptr;
  const char *csv = nullptr;
  int64_t logInterval = 1;
  double skipLossZ = 0, skipGradZ = 0; ///< 0: never
  double peakFlops = 0;                ///< 0: to be measured.
  int64_t ranks = 0;                   ///< 0: as many as the program is for.
  int64_t timeout = 0;                 ///< 0: as the engine has it.
  int64_t threads = 0;                 ///< Of each rank.
  const char *device = nullptr;        ///< "auto" if not given.
  bool portableBits = false;
  bool noCudaGraph = false;
  bool cudaSync = false;
  bool tf32 = false;
  bool autotune = false;
  bool nvtx = false;
  uint64_t seed = 0;
  bool json = false;
  bool isQuiet = false; ///< For ranks that show nothing and write no files.
  /// For these: whether another rank saves.
  bool isSavedElsewhere = false;
  bool shuffled = true;
  bool checkMemory = false;
  bool profile = false;
  const char *costs = nullptr;
  bool help = false;
  bool version = false;
  bool describe = false;
};

/// Reads `--name value` and `--name=value`, and `-h` for `--help`; defaults
/// come from the model and the machine.
bool parseOptions(int argc, char **argv, const RepriseModel &model,
                  Options &options, Error &error);

void printHelp(const char *program, const RepriseModel &model);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_TRAINER_OPTIONS_H
