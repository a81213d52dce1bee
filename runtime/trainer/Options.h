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
#include "runtime/show/ShowOptions.h"

#include "reprise/ABI/Model.h"

namespace reprise::runtime {

/// All of them.
struct Options : ShowOptions {
  Paths valData;
  int64_t valInterval = 0; ///< 0: ten times in the run.
  int64_t valSteps = 20;
  int64_t sample = 0;         ///< Tokens; 0: none.
  int64_t sampleInterval = 0; ///< 0: ten times in the run.
  const char *prompt = nullptr;
  double temperature = 1;
  int64_t topK = 0;                    ///< 0: all.
  double skipLossZ = 0, skipGradZ = 0; ///< 0: never
  double peakFlops = 0;                ///< 0: to be measured.
  int64_t ranks = 0;                   ///< 0: as many as the program is for.
  int64_t timeout = 0;                 ///< 0: as the engine has it.
  bool checkMemory = false;
  bool profile = false;
  const char *costs = nullptr;
  bool areCostsElsewhere = false; ///< Rank 0 writes them, and this one helps.
  const char *trace = nullptr;
  const char *dump = nullptr;
  const char *help = nullptr; ///< What about; empty: all. Null: none.
  bool version = false;
  bool describe = false;
};

/// Reads `--name value` and `--name=value`, and `-h` for `--help`; defaults
/// come from the model and the machine.
bool parseOptions(int argc, char **argv, const RepriseModel &model,
                  Options &options, Error &error);

/// Shows the options that are about `word`, or all, with the rest of the help,
/// if it is empty.
void printHelp(const char *program, const RepriseModel &model,
               const char *word);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_TRAINER_OPTIONS_H
