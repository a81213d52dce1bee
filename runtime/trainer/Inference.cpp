//===- Inference.cpp - Validation and sampling ----------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Inference.h"

#include "runtime/transport/Mesh.h"

#include "reprise/ABI/Philox.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstring>

using namespace reprise::runtime;

/// The micro-batch number under which tokens are drawn; no micro-batch, and not
/// the order of the data, has it.
static constexpr uint32_t kSampleStream = 0xFFFFFFFEu;

int32_t reprise::runtime::pickToken(const float *logits, int64_t count,
                                    const Sampling &how, uint32_t random,
                                    int32_t *order) {
  auto isLikelier = [&](int32_t a, int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  };
  int32_t best = 0;
  for (int32_t i = 1; i < count; ++i)
    if (isLikelier(i, best))
      best = i;
  if (how.temperature == 0)
    return best;
  // The last token that takes part, in the order of likelihood.
  int32_t last = -1;
  if (how.topK > 0 && how.topK < count) {
    for (int32_t i = 0; i < count; ++i)
      order[i] = i;
    std::nth_element(order, order + how.topK - 1, order + count, isLikelier);
    last = order[how.topK - 1];
  }
  auto weightOf = [&](int32_t i) {
    if (last >= 0 && isLikelier(last, i))
      return 0.0;
    return std::exp((double(logits[i]) - double(logits[best])) /
                    how.temperature);
  };
  double total = 0, sum = 0;
  for (int32_t i = 0; i < count; ++i)
    total += weightOf(i);
  double wanted = (double(random) + 0.5) * 0x1p-32 * total;
  for (int32_t i = 0; i < count; ++i) {
    sum += weightOf(i);
    if (sum > wanted)
      return i;
  }
  return best;
}

bool Inference::open(const TokenFormat &format, bool isText, ThreadPool &pool,
                     Error &error) {
  if (options.valData.size()) {
    if (model.evaluate < 0)
      return error.set("--val-data needs a program that was compiled with "
                       "--inference=on");
    if (!data.open(options.valData, format, /*batches=*/1, model.microBatchSize,
                   model.seqLength, model.vocabSize, error))
      return false;
    numBatches = std::min(options.valSteps, data.numBatches());
  }
  if (options.sample == 0)
    return true;
  if (model.sample < 0)
    return error.set("--sample needs a program that was compiled with "
                     "--inference=on, of a model whose output is one linear "
                     "projection");
  if (options.data.size() == 0 && data.stream().isText())
    isText = true;
  vocabulary.emplace(model.vocabSize, isText, format.tokenizer);
  const char *prompt =
      options.prompt ? options.prompt : vocabulary->defaultPrompt();
  if (!vocabulary->encode("--prompt", prompt, pool, tokens, error))
    return false;
  if (tokens.empty())
    return error.set("--prompt needs at least one token, but got '%s'", prompt);
  promptLength = int64_t(tokens.size());
  // Nothing is allocated once training goes on: a token's text, too, has room.
  constexpr size_t kTextPerToken = 64;
  if (!tokens.reserve(tokens.size() + size_t(options.sample)) ||
      !order.resize(size_t(model.vocabSize)) ||
      !text.reserve(size_t(options.sample) * kTextPerToken))
    return error.set("no memory left to write %" PRId64 " tokens",
                     options.sample);
  return true;
}

void Inference::announce(Log &log) const {
  if (promptLength <= model.seqLength)
    return;
  char note[160];
  snprintf(note, sizeof(note),
           "--prompt has %" PRId64 " tokens; the model sees the last %" PRId64
           " of them",
           promptLength, model.seqLength);
  log.note(note);
}

bool Inference::isDue(int64_t stepsDone, int64_t interval) const {
  if (interval == 0)
    interval = std::max<int64_t>((options.steps + 9) / 10, 1);
  return stepsDone % interval == 0;
}

bool Inference::run(int64_t stepsDone, bool isLast, MemoryCheck *check,
                    Log &log, Metrics &metrics, Error &error) {
  if (numBatches > 0 && (isLast || isDue(stepsDone, options.valInterval)) &&
      !validate(stepsDone, check, log, metrics, error))
    return false;
  return !vocabulary || !(isLast || isDue(stepsDone, options.sampleInterval)) ||
         sample(stepsDone, check, log, error);
}

/// Gives a value of the first of `group` to all of it.
bool Inference::share(const Group &group, void *value, size_t size,
                      Error &error) {
  return group.size == 1 ||
         broadcast(ranks, group, "inference", value, size, error);
}

/// Whether what is going on is given up, by all that compute it together.
bool Inference::findStop(bool &stops, Error &error) {
  stops = interrupted;
  const int rank = ranks.rank();
  return share(stagesFrom(model, rank, /*isLast=*/false), &stops, sizeof(stops),
               error) &&
         share(modelGroupOf(model, rank), &stops, sizeof(stops), error);
}

bool Inference::validate(int64_t stepsDone, MemoryCheck *check, Log &log,
                         Metrics &metrics, Error &error) {
  double start = now(), sum = 0;
  for (int64_t batch = 0; batch < numBatches; ++batch) {
    bool stops = false;
    if (!findStop(stops, error))
      return false;
    if (stops)
      return true;
    if (check)
      check->fillGaps();
    arena.touch(model.tokens);
    arena.touch(model.targets);
    if (!data.fill(batch, arena.at<int32_t>(model.tokens),
                   arena.at<int32_t>(model.targets), error))
      return false;
    if (!executor.runEvaluate(error))
      return false;
    if (hasOutput(model))
      sum += double(*arena.at<float>(model.evalLoss));
  }
  if (!share(stagesFrom(model, ranks.rank(), /*isLast=*/true), &sum,
             sizeof(sum), error))
    return false;
  ValidationReport report = {stepsDone, sum / double(numBatches), numBatches,
                             now() - start};
  return log.validation(report, error) &&
         metrics.validation(stepsDone, float(report.loss), error);
}

/// The last tokens, where the stage has the text; what comes behind them is not
/// looked at.
void Inference::writeText() {
  const int64_t length = std::min(int64_t(tokens.size()), model.seqLength);
  for (const RepriseBuffer &buffer :
       {model.sampleTokens, model.position, model.logits})
    arena.touch(buffer);
  if (model.sampleTokens.bytes > 0) {
    int32_t *ids = arena.at<int32_t>(model.sampleTokens);
    memcpy(ids, tokens.end() - length, size_t(length) * sizeof(int32_t));
    std::fill(ids + length, ids + model.seqLength, 0);
  }
  if (model.position.bytes > 0)
    *arena.at<int32_t>(model.position) = int32_t(length) - 1;
}

/// Draws token `i` of a text from the logits that are there.
bool Inference::drawToken(int64_t stepsDone, int64_t i, int32_t &token,
                          Error &error) {
  const float *logits = arena.at<float>(model.logits);
  for (int64_t v = 0; v < model.vocabSize; ++v)
    if (!std::isfinite(logits[v]))
      return error.set("after step %" PRId64 " the model gives token %" PRId64
                       " the logit %g, so it cannot write",
                       stepsDone, v, double(logits[v]));
  const Sampling how = {options.temperature, options.topK};
  const uint32_t random = reprisePhilox(options.seed, uint32_t(stepsDone),
                                        kSampleStream, 0, uint64_t(i));
  token = pickToken(logits, model.vocabSize, how, random, order.begin());
  return true;
}

bool Inference::sample(int64_t stepsDone, MemoryCheck *check, Log &log,
                       Error &error) {
  double start = now();
  tokens.resize(size_t(promptLength));
  text.clear();
  for (int64_t i = 0; i < options.sample; ++i) {
    bool stops = false;
    if (!findStop(stops, error))
      return false;
    if (stops)
      return true;
    if (check)
      check->fillGaps();
    writeText();
    int32_t token = 0;
    if (!executor.runSample(error) ||
        (hasOutput(model) && !drawToken(stepsDone, i, token, error)) ||
        !share(stagesFrom(model, ranks.rank(), /*isLast=*/true), &token,
               sizeof(token), error))
      return false;
    if (!tokens.push(token) || !vocabulary->decode(token, text))
      return error.set("no memory left to write %" PRId64 " tokens",
                       options.sample);
  }
  SampleReport report = {stepsDone,
                         options.prompt ? options.prompt
                                        : vocabulary->defaultPrompt(),
                         {text.begin(), text.size()},
                         tokens.begin() + promptLength,
                         options.sample,
                         now() - start};
  return log.sample(report, error);
}
