//===- LayerSplit.cpp - Layers onto pipeline stages -----------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Support/LayerSplit.h"

#include <numeric>

using namespace reprise;

static std::string text(int64_t number) { return std::to_string(number); }

/// `split.layout`, or what is wrong with it.
static std::optional<std::string> takeLayout(const LayerSplit &split,
                                             int64_t numLayers,
                                             std::vector<int64_t> &chunks) {
  if (int64_t(split.layout.size()) != split.getNumChunks())
    return "needs a number of layers for each of the " +
           text(split.getNumChunks()) + " chunks, but got " +
           text(split.layout.size()) + " numbers";
  std::string wrong;
  for (int64_t size : split.layout)
    if (size < 0 || size > numLayers)
      wrong += (wrong.empty() ? "" : ", ") + text(size);
  if (!wrong.empty())
    return "needs chunks of 0 to " + text(numLayers) + " layers, but got " +
           wrong;
  int64_t sum =
      std::accumulate(split.layout.begin(), split.layout.end(), int64_t(0));
  if (sum != numLayers)
    return "needs chunks of " + text(numLayers) + " layers in all, but got " +
           text(sum);
  chunks = split.layout;
  return std::nullopt;
}

/// Every stage divides its layers evenly among its chunks.
static std::optional<std::string> takeEnds(const LayerSplit &split,
                                           int64_t numLayers,
                                           std::vector<int64_t> &chunks) {
  int64_t rest = numLayers - split.first.value_or(0) - split.last.value_or(0);
  int64_t others =
      split.stages - split.first.has_value() - split.last.has_value();
  std::string ends =
      split.first ? text(*split.first) + " in the first stage" : std::string();
  if (split.last)
    ends += (ends.empty() ? "" : " and ") + text(*split.last) + " in the last";
  if (others < 0 || rest < 0 || (others == 0 ? rest != 0 : rest % others != 0))
    return "needs stages between the ends that share their layers evenly, but "
           "got " +
           text(numLayers) + " layers on " + text(split.stages) +
           " stages with " + ends;
  chunks.assign(split.getNumChunks(), 0);
  for (int64_t stage = 0; stage < split.stages; ++stage) {
    int64_t layers = others ? rest / others : 0;
    if (stage == 0 && split.first)
      layers = *split.first;
    else if (stage == split.stages - 1 && split.last)
      layers = *split.last;
    if (layers < 1 && split.virtualStages == 1)
      return "needs a layer on each stage, but stage " + text(stage) +
             " has none of " + text(numLayers);
    if (layers < 1 || layers % split.virtualStages != 0)
      return "needs stages whose layers " + text(split.virtualStages) +
             " chunks share evenly, but stage " + text(stage) + " has " +
             text(layers);
    for (int64_t chunk = stage; chunk < split.getNumChunks();
         chunk += split.stages)
      chunks[chunk] = layers / split.virtualStages;
  }
  return std::nullopt;
}

std::optional<std::string> reprise::splitLayers(const LayerSplit &split,
                                                int64_t numLayers,
                                                std::vector<int64_t> &chunks) {
  if (!split.layout.empty())
    return takeLayout(split, numLayers, chunks);
  if (split.first || split.last)
    return takeEnds(split, numLayers, chunks);
  int64_t count = split.getNumChunks();
  int64_t places = numLayers + split.countsEmbedding + split.countsLoss;
  if (places < count)
    return "needs a layer for each of the " + text(count) + " chunks of " +
           text(split.stages) + " pipeline stages, but got " + text(numLayers) +
           " layers";
  chunks.assign(count, places / count);
  for (int64_t chunk = 0; chunk < places % count; ++chunk)
    ++chunks[chunk];
  chunks.front() -= split.countsEmbedding;
  chunks.back() -= split.countsLoss;
  return std::nullopt;
}

/// A layout has at most so many letters when it is written out.
static constexpr size_t kMostLetters = 1 << 16;

/// Writes out what `text` repeats, from `at` to the end or, within brackets, to
/// the closing one.
static std::optional<std::string> writeOut(const std::string &text, size_t &at,
                                           bool isInside, std::string &out) {
  while (at < text.size()) {
    char letter = text[at++];
    if (letter == ',' || letter == ' ')
      continue;
    if (letter == ')' && isInside)
      return std::nullopt;
    std::string part(1, letter);
    if (letter == '(') {
      part.clear();
      if (isInside)
        return "needs brackets without others in them, but got '" + text + "'";
      if (std::optional<std::string> fault = writeOut(text, at, true, part))
        return fault;
    } else if (letter == ')' || letter == '*') {
      return std::string("needs something before each '") + letter +
             "', but got '" + text + "'";
    }
    size_t times = 1;
    if (at < text.size() && text[at] == '*') {
      size_t digits = 0;
      for (times = 0, ++at; at < text.size() && text[at] >= '0' &&
                            text[at] <= '9' && times < kMostLetters;
           ++at, ++digits)
        times = 10 * times + (text[at] - '0');
      if (digits == 0)
        return "needs a number behind each '*', but got '" + text + "'";
    }
    if (part.size() * times + out.size() > kMostLetters)
      return "needs at most " + std::to_string(kMostLetters) +
             " letters in all, but got more in '" + text + "'";
    for (; times > 0; --times)
      out += part;
  }
  if (isInside)
    return "needs a ')' for each '(', but got '" + text + "'";
  return std::nullopt;
}

std::optional<std::string> reprise::parseLayout(const std::string &text,
                                                std::vector<int64_t> &chunks,
                                                int64_t &further) {
  std::string letters;
  size_t at = 0;
  if (std::optional<std::string> fault = writeOut(text, at, false, letters))
    return fault;
  chunks.assign(1, 0);
  further = 0;
  for (size_t i = 0; i < letters.size(); ++i) {
    char letter = letters[i];
    bool isFirst = i == 0, isLast = i + 1 == letters.size();
    if (further > 0 && (letter == '|' || letter == 't'))
      return "needs each m behind all t, in the chunk of L, but got '" + text +
             "'";
    further += letter == 'm';
    if (letter == '|')
      chunks.push_back(0);
    else if (letter == 't' || letter == 'm')
      ++chunks.back();
    else if (letter != 'E' && letter != 'L')
      return std::string("needs the letters E, t, m and L, and | between "
                         "chunks, but got '") +
             letter + "' in '" + text + "'";
    if (isFirst != (letter == 'E') || isLast != (letter == 'L'))
      return "needs E once, as the first letter, and L once, as the last, but "
             "got '" +
             text + "'";
  }
  if (letters.empty())
    return std::string("needs E once, as the first letter, and L once, as the "
                       "last, but got ''");
  return std::nullopt;
}
