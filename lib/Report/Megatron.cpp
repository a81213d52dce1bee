//===- Megatron.cpp - What Megatron would keep ------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Stored.h"
#include "reprise/Support/RecomputeLabels.h"
#include <algorithm>
#include <array>

using namespace reprise;
using namespace reprise::report::megatron;

static bool hasLabel(const Options &options, std::string_view label) {
  auto has = [&](std::string_view name) {
    return std::find(options.modules.begin(), options.modules.end(), name) !=
           options.modules.end();
  };
  // Megatron's nearest to Reprise's own label keeps ctx.
  return options.granularity == "selective" &&
         (has(label) || (label == "core_attn" && has("core_attn_out")));
}

/// The label that drops `tensor`, the inner one of two; empty if none does.
static std::string_view getDropping(const Tensor &tensor,
                                    const Options &options) {
  for (std::string_view label : {tensor.other, tensor.label})
    if (!label.empty() && hasLabel(options, label))
      return label;
  return "";
}

static bool isOf(const Tensor &tensor, std::string_view label) {
  return tensor.label == label || tensor.other == label;
}

static bool keepsOutputs(std::string_view name) {
  for (const RecomputeLabel &label : kRecomputeLabels)
    if (name == std::string_view(label.name))
      return label.kind == LabelKind::Plain;
  return true;
}

namespace {
/// Tensors that are there again before others are made again, or also before
/// backward of the ops that keep those.
struct Read {
  std::array<std::string_view, 3> names, readers;
  bool isByReplay;
  std::string_view unless = ""; // Not where this tensor is stored.
};
} // namespace

static constexpr Read kReads[] = {
    {{"n1"}, {"q"}, /*isByReplay=*/true, "cq"},
    {{"q", "k", "v"}, {"p", "pd", "ctx.lse"}, /*isByReplay=*/false},
    {{"n2"}, {"u", "sc"}, /*isByReplay=*/true},
    // The router reads it before.
    {{"n2"}, {"g shared", "gate shared"}, /*isByReplay=*/false},
};

static bool has(const std::array<std::string_view, 3> &names,
                std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// For each of `tensors` the one of which backward is about to run when it is
/// made again; the last, if it is kept. The region of a label is replayed when
/// backward reaches its end, but one that discards its outputs when these are
/// read. A region inside another is replayed for itself.
static std::vector<size_t> getReturns(const std::vector<Tensor> &tensors,
                                      const Options &options) {
  auto isStored = [&](std::string_view name) {
    return std::any_of(tensors.begin(), tensors.end(),
                       [&](const Tensor &other) { return other.name == name; });
  };
  std::vector<size_t> returns(tensors.size(), tensors.size() - 1);
  for (size_t index = tensors.size(); index-- > 0;) {
    const Tensor &tensor = tensors[index];
    std::string_view label = getDropping(tensor, options);
    if (label.empty())
      continue;
    size_t &at = returns[index] = index;
    for (size_t later = index + 1; later < tensors.size(); ++later) {
      const Tensor &reader = tensors[later];
      bool isReplayed = !getDropping(reader, options).empty();
      if (keepsOutputs(label) && isOf(reader, label))
        at = std::max(at, later);
      for (const Read &read : kReads)
        if (has(read.names, tensor.name) && has(read.readers, reader.name) &&
            (isReplayed || !read.isByReplay) && !isStored(read.unless))
          at = std::max(at, isReplayed ? returns[later] : later);
    }
  }
  return returns;
}

/// The most that is there of a layer while it runs backward, from which what is
/// behind in the forward pass is gone.
static int64_t getMost(const std::vector<Tensor> &tensors,
                       const Options &options) {
  std::vector<size_t> returns = getReturns(tensors, options);
  int64_t most = 0;
  for (size_t now = 0; now < tensors.size(); ++now) {
    int64_t bytes = 0;
    for (size_t index = 0; index <= now; ++index)
      bytes += returns[index] >= now ? tensors[index].bytes : 0;
    most = std::max(most, bytes);
  }
  return most;
}

/// Those that are there under `options`.
static std::vector<Tensor> getPresent(const LayerShape &shape,
                                      const Parallelism &parallelism,
                                      const Options &options) {
  std::vector<Tensor> tensors = getTensors(shape, parallelism);
  auto isAbsent = [&](const Tensor &tensor) {
    return !tensor.only.empty() && !hasLabel(options, tensor.only);
  };
  tensors.erase(std::remove_if(tensors.begin(), tensors.end(), isAbsent),
                tensors.end());
  return tensors;
}

Part reprise::report::megatron::getLayer(const LayerShape &shape,
                                         const Parallelism &parallelism,
                                         const Options &options,
                                         int64_t layer) {
  std::vector<Tensor> tensors = getPresent(shape, parallelism, options);
  bool isUniform = options.method == "uniform";
  Part part;
  if (options.granularity != "full" ||
      (!isUniform && layer >= options.numLayers)) {
    for (const Tensor &tensor : tensors)
      part.kept += getDropping(tensor, options).empty() ? tensor.bytes : 0;
    part.most = getMost(tensors, options);
    return part;
  }
  // Kept is the input of a segment, in the segment's first layer. Ranks that
  // share it have all of it in place of their share when they replay.
  part.continues = isUniform && layer % options.numLayers != 0;
  if (!part.continues)
    part.kept =
        tensors.front().bytes / (options.sharesSaved ? parallelism.tensor : 1);
  for (const Tensor &tensor : tensors) {
    part.kept += tensor.isChoice ? tensor.bytes : 0;
    part.most += tensor.bytes;
  }
  return part;
}

int64_t reprise::report::megatron::getLayerBytes(const LayerShape &shape,
                                                 const Parallelism &parallelism,
                                                 const Options &options,
                                                 int64_t layer) {
  return getLayer(shape, parallelism, options, layer).kept;
}

void Chunk::add(const Part &part) {
  if (!part.continues) {
    before = kept;
    segment = 0;
  }
  segment += part.most;
  kept += part.kept;
  most = std::max(most, before + segment);
}

int64_t
reprise::report::megatron::getInputBytes(const LayerShape &shape,
                                         const Parallelism &parallelism) {
  return getTensors(shape, parallelism).front().bytes;
}

std::string
reprise::report::megatron::checkDivision(const LayerShape &shape,
                                         const Parallelism &parallelism) {
  struct {
    const char *what;
    int64_t size;
    bool isDivided;
  } sizes[] = {
      {"number of heads", shape.heads, true},
      {"feed-forward width", shape.feedForward, true},
      {"sequence length", shape.sequence, parallelism.sequence},
  };
  int64_t tensor = parallelism.tensor, keyHeads = getKeyHeads(shape);
  std::string ranks =
      "the " + std::to_string(tensor) + " ranks of a tensor-parallel group";
  for (const auto &[what, size, isDivided] : sizes)
    if (isDivided && size % tensor != 0)
      return std::string("needs a ") + what + " that " + ranks +
             " can divide, but got " + std::to_string(size);
  if (keyHeads % tensor != 0 && tensor % keyHeads != 0)
    return "needs a number of key heads that " + ranks +
           " can divide, or that divides these, but got " +
           std::to_string(keyHeads);
  return "";
}

/// The quotient, rounded up.
static int64_t divide(int64_t bytes, int64_t ranks) {
  return (bytes + ranks - 1) / ranks;
}

int64_t Rank::getOptimizerBytes() const {
  return divide(12 * trained, optimizerRanks) +
         divide(12 * trainedOfExperts, expertOptimizerRanks);
}

/// Megatron's --make-vocab-size-divisible-by.
static int64_t padVocabulary(int64_t rows, const Parallelism &parallelism) {
  int64_t multiple = parallelism.vocabMultiple * parallelism.tensor;
  return divide(rows, multiple) * multiple;
}

int64_t
reprise::report::megatron::countParameters(Sharing sharing, int64_t elements,
                                           int64_t rows,
                                           const Parallelism &parallelism) {
  int64_t tensor = parallelism.tensor;
  switch (sharing) {
  case Sharing::Whole:
    return elements;
  case Sharing::Divided:
    return elements / tensor;
  case Sharing::Experts:
    return elements / parallelism.experts /
           (parallelism.hasWholeExperts ? 1 : tensor);
  case Sharing::Vocabulary:
    return elements / rows * (padVocabulary(rows, parallelism) / tensor);
  }
  return 0;
}

// Korthikanti et al. 2022, section 4.3: 4 s b h (1 + v / h) / t for the last
// norm, the output projection and the loss, with a cross-entropy in f32.
int64_t
reprise::report::megatron::getOutsideBytes(Outside what, int64_t rows,
                                           int64_t columns,
                                           const Parallelism &parallelism) {
  int64_t tensor = parallelism.tensor;
  if (what == Outside::Logits)
    return 4 * rows * (padVocabulary(columns, parallelism) / tensor);
  int64_t bytes = (what == Outside::Mask ? 1 : 2) * rows * columns;
  return parallelism.sequence ? bytes / tensor : bytes;
}
