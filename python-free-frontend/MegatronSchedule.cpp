//===- MegatronSchedule.cpp - Steps in other units --------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Megatron counts what a schedule takes in samples or as a share, where keys
// here count steps. All steps have `global_batch_size` samples.
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/Keys.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace llvm;
using namespace reprise::frontend;

namespace {
class Resolver {
public:
  Resolver(Description &description, Origins &origins, Diagnostics &diagnostics)
      : description(description), train(description.train), origins(origins),
        diagnostics(diagnostics) {}

  /// The steps of so many samples, if something says how many.
  std::optional<int64_t> getSteps(StringRef key, std::optional<int64_t> samples,
                                  StringRef steps, int64_t given);
  void resolveFraction();
  void checkWeightDecay(StringRef key, std::optional<double> given);

private:
  /// Whether `rival` says the same thing from a place of no lower rank.
  bool isSaid(StringRef rival, StringRef key) const {
    return origins.count(rival) && (origins.lookup(rival).isOption() ||
                                    !origins.lookup(key).isOption());
  }
  void error(StringRef key, const Twine &message) {
    diagnostics.error(*findKey(key), origins.lookup(key), message);
  }

  const Description &description;
  Train &train;
  Origins &origins;
  Diagnostics &diagnostics;
};
} // namespace

std::optional<int64_t> Resolver::getSteps(StringRef key,
                                          std::optional<int64_t> samples,
                                          StringRef steps, int64_t given) {
  // Sections of Megatron's have both, with zeros where nothing is meant.
  if (!samples || (*samples == 0 && origins.count(steps)))
    return std::nullopt;
  int64_t batch = description.getGlobalBatchSize();
  if (*samples % batch != 0) {
    error(key, "needs a multiple of global_batch_size " + Twine(batch) +
                   ", the samples of a step, but got " + Twine(*samples) +
                   ", which are more than " + Twine(*samples / batch) +
                   " steps and less than " + Twine(*samples / batch + 1));
    return std::nullopt;
  }
  int64_t number = *samples / batch;
  if (number > INT32_MAX) {
    error(key, "needs at most " + Twine(INT32_MAX) +
                   " steps of global_batch_size " + Twine(batch) +
                   ", but got " + Twine(number));
    return std::nullopt;
  }
  if (isSaid(steps, key) && number != given) {
    error(key, "is " + Twine(*samples) + ", " + Twine(number) +
                   " steps of global_batch_size " + Twine(batch) + ", but " +
                   steps + " is " + Twine(given));
    return std::nullopt;
  }
  origins[steps] = origins.lookup(key);
  return number;
}

/// Of the steps until the learning rate has decayed, rounded.
void Resolver::resolveFraction() {
  constexpr StringLiteral key = "lr_warmup_fraction";
  constexpr StringLiteral steps = "lr_warmup_iters";
  if (!train.warmupFraction ||
      (*train.warmupFraction == 0 && origins.count(steps)))
    return;
  double exact = *train.warmupFraction * double(train.getLRDecayIters());
  int64_t number = std::llround(exact);
  std::string share =
      formatv("{0} of {1} steps", format("%g", *train.warmupFraction),
              train.getLRDecayIters());
  if (isSaid(steps, key) && train.lrWarmupIters != number)
    return error(key, "is " + share + ", " + Twine(number) +
                          ", but the warm-up has " +
                          Twine(train.lrWarmupIters));
  if (std::abs(exact - double(number)) > 1e-6 * exact)
    diagnostics.warning(*findKey(key), origins.lookup(key),
                        "is " + share + ", which is rounded to " +
                            Twine(number));
  train.lrWarmupIters = number;
  origins[steps] = origins.lookup(key);
}

void Resolver::checkWeightDecay(StringRef key, std::optional<double> given) {
  if (given && *given != train.weightDecay)
    error(key, formatv("needs to be weight_decay {0}, which is the same in all "
                       "steps, but got {1}",
                       format("%g", train.weightDecay), format("%g", *given))
                   .str());
}

void reprise::frontend::resolveSchedule(Description &description,
                                        Origins &origins,
                                        Diagnostics &diagnostics) {
  Resolver resolver(description, origins, diagnostics);
  Train &train = description.train;
  if (auto steps = resolver.getSteps("train_samples", train.trainSamples,
                                     "train_iters", train.trainIters))
    train.trainIters = *steps;
  if (auto steps = resolver.getSteps("lr_decay_samples", train.decaySamples,
                                     "lr_decay_iters", train.getLRDecayIters()))
    train.lrDecayIters = *steps;
  if (auto steps = resolver.getSteps("lr_warmup_samples", train.warmupSamples,
                                     "lr_warmup_iters", train.lrWarmupIters))
    train.lrWarmupIters = *steps;
  resolver.resolveFraction();
  resolver.checkWeightDecay("start_weight_decay", train.startWeightDecay);
  resolver.checkWeightDecay("end_weight_decay", train.endWeightDecay);
}
