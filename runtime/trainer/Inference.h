//===- Inference.h - Validation and sampling --------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_TRAINER_INFERENCE_H
#define REPRISE_RUNTIME_TRAINER_INFERENCE_H

#include "Options.h"
#include "runtime/data/Data.h"
#include "runtime/device/Executor.h"
#include "runtime/show/Log.h"
#include "runtime/show/Metrics.h"
#include "runtime/text/Vocabulary.h"

#include <csignal>
#include <optional>

namespace reprise::runtime {

/// How the next token is drawn from the logits.
struct Sampling {
  double temperature = 1; ///< Logits are divided by it; 0: the likeliest token.
  int64_t topK = 0;       ///< Of the so many likeliest tokens; 0: of all.
};

/// The token that `random`, a word of 32 random bits, picks: the tokens lie
/// side by side in the order of their numbers, each as wide as it is likely. Of
/// equal logits the first is likelier. `order` has room for `count` numbers.
int32_t pickToken(const float *logits, int64_t count, const Sampling &how,
                  uint32_t random, int32_t *order);

/// What a run does between two steps to see how far it is: it measures the loss
/// of data that it does not train on, and lets the model write. Both work on
/// the bytes of activations and leave the states alone, so training comes to
/// the same bits with them and without.
class Inference {
public:
  /// As soon as `interrupted` is not 0, what is going on is given up: that of
  /// the first of the ranks that have parts of a model decides for them.
  Inference(const RepriseModel &model, const Options &options, Arena &arena,
            Executor &executor, Transport &ranks,
            const volatile sig_atomic_t &interrupted)
      : model(model), options(options), arena(arena), executor(executor),
        ranks(ranks), interrupted(interrupted) {}

  /// Opens the validation data, reads the prompt and allocates what is needed.
  /// False if the options ask for what this model or its data cannot do.
  /// `isText`: the model is, or was, trained on text.
  bool open(const TokenFormat &format, bool isText, ThreadPool &pool,
            Error &error);
  /// Shows what the user should know of the options.
  void announce(Log &log) const;

  /// Does, shows and writes to files what is due when `stepsDone` steps are
  /// done; `isLast`: all that the options ask for. `check`, if not null, fills
  /// all that is no state before each schedule.
  bool run(int64_t stepsDone, bool isLast, MemoryCheck *check, Log &log,
           Metrics &metrics, Error &error);

private:
  bool validate(int64_t stepsDone, MemoryCheck *check, Log &log,
                Metrics &metrics, Error &error);
  bool sample(int64_t stepsDone, MemoryCheck *check, Log &log, Error &error);
  void writeText();
  bool drawToken(int64_t stepsDone, int64_t i, int32_t &token, Error &error);
  bool share(const Group &group, void *value, size_t size, Error &error);
  bool findStop(bool &stops, Error &error);
  bool isDue(int64_t stepsDone, int64_t interval) const;

  const RepriseModel &model;
  const Options &options;
  Arena &arena;
  Executor &executor;
  Transport &ranks;
  const volatile sig_atomic_t &interrupted;

  ValidationData data;
  int64_t numBatches = 0; ///< Of validation; 0 if there is none.

  std::optional<Vocabulary> vocabulary;
  int64_t promptLength = 0;
  List<int32_t> tokens; ///< Of the prompt, then of what was written.
  List<int32_t> order;
  List<char> text;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_TRAINER_INFERENCE_H
