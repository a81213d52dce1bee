//===- OtherSpelling.cpp - Options as others write them -------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OtherSpelling.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <cstring>

using namespace reprise::runtime;

/// More than any option takes for a number of something.
static constexpr double kMost = double(INT64_C(1) << 52);

static constexpr OtherName kOtherNames[] = {
    {"data-path|dataset|input|train-data", "data"},
    {"iters|max-iters|max-steps|num-steps|train-iters|train-steps", "steps"},
    {"load-weights|model|pretrained|weights", "init-from"},
    {"checkpoint-dir|ckpt-dir|out-dir|output|output-dir|save-dir", "save"},
    {"checkpoint|ckpt|load|resume-from|resume-from-checkpoint", "resume"},
    {"eval-data|valid-data|validation-data", "val-data"},
    {"eval-interval|eval-steps", "val-interval"},
    {"eval-iters", "val-steps"},
    {"jobs|num-threads|nthreads", "threads"},
    {"cuda|gpu|gpus", "device"},
    {"logdir|tensorboard-dir", "tensorboard"},
    {"nproc|nproc-per-node|num-processes|world-size", "ranks"},
    {"adam-beta1|adam-beta2|adam-eps|attention|batch-size|bf16|block-size|"
     "clip-grad|data-parallel-size|dropout|fp16|global-batch-size|grad-clip|"
     "gradient-accumulation-steps|learning-rate|lr|lr-decay-style|"
     "lr-warmup-iters|memory-budget|micro-batch-size|min-lr|n-layer|optimizer|"
     "pipeline-stages|precision|recompute-granularity|seq-length|"
     "tensor-model-parallel-size|warmup-steps|weight-decay",
     nullptr}};

const OtherName *reprise::runtime::findOtherName(std::string_view name) {
  for (const OtherName &other : kOtherNames) {
    std::string_view rest = other.names;
    while (!rest.empty()) {
      size_t bar = std::min(rest.find('|'), rest.size());
      if (name == std::string_view(rest.data(), bar))
        return &other;
      rest.remove_prefix(std::min(bar + 1, rest.size()));
    }
  }
  return nullptr;
}

int64_t reprise::runtime::respell(const char *text) {
  char digits[32];
  size_t count = 0;
  for (const char *c = text; *c; ++c) {
    size_t behind = strspn(c + 1, "0123456789");
    bool isMark = c > text && isdigit(c[-1]) &&
                  ((*c == '_' && behind) || (*c == ',' && behind == 3));
    if (isMark)
      continue;
    if (count + 1 == sizeof(digits))
      return -1;
    digits[count++] = *c;
  }
  digits[count] = '\0';
  char *end = nullptr;
  double number = strtod(digits, &end);
  bool isWhole = !isspace(*digits) && end != digits && !*end && number >= 0 &&
                 number <= kMost && number == std::floor(number);
  return isWhole ? int64_t(number) : -1;
}
