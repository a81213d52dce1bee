//===- Verify.h - Checks plans from the outside -----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// What a solver claims, checked by code that shares nothing with it: this
// folder includes the C++ standard library only.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_MEMPLAN_VERIFY_H
#define REPRISE_MEMPLAN_VERIFY_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::verify {

/// What is wrong, and where in the text: an offset in bytes.
struct Fault {
  size_t at = 0;
  std::string message;
};

/// Line and column of an offset, both from 1 on.
struct Place {
  int64_t line = 1, column = 1;
};
Place getPlace(std::string_view text, size_t at);

/// What is true of a certificate without fault.
struct CertificateFigures {
  std::string model, machine;
  std::string under; ///< what was decided before, in words
  bool isOfActivations = false;
  int64_t layers = 0, buffers = 0, positions = 0, replays = 0, points = 0;
  int64_t budget = 0, base = 0, peak = 0;
  double step = 0, replay = 0, bound = 0; ///< seconds of a step
  double secondsPerByte = 0;              ///< the price of memory, of a step
  /// What any plan has to keep or to drop, tensors of layers, and ops of them
  /// that no plan runs again: what the bound takes as given.
  int64_t keepRules = 0, dropRules = 0, fixedOps = 0;
  /// Of a pipeline: of each stage, layers to points being those of all chunks
  /// (in all of it a layer counts once, though it is split among chunks),
  /// and of the schedule; step, replay and bound are seconds of a micro-batch.
  std::vector<CertificateFigures> stages;
  int64_t microBatches = 1;      ///< of a step
  std::vector<int64_t> inFlight; ///< of each chunk of a stage
  double slack = 0;              ///< of a stage
  /// Of the peak of a stage, what its program takes beyond its chunks.
  int64_t beside = 0;
  double span = 0, spanBound = 0;
};

/// Checks a certificate of docs/certificates.md: the text's form, lives and
/// offsets of the buffers, the plan of each layer, what replays cost, and the
/// bound, from a search of its own. One of a pipeline has those of its chunks,
/// whose micro-batches in flight are to be those of its schedule.
std::optional<Fault> verifyCertificate(std::string_view text,
                                       CertificateFigures &figures);

/// What is true of a packing without fault.
struct PackingFigures {
  int64_t items = 0;
  int64_t peak = 0;
  int64_t bound = 0; ///< most bytes alive at one time
};

/// Checks rows of `id,lower,upper,size,offset`: no two items share a byte at a
/// time, offsets are multiples of `alignment`.
std::optional<Fault> verifyPacking(std::string_view text, int64_t alignment,
                                   PackingFigures &figures);

/// Checks that the rows of `text` are those of `input`, in any order, but for
/// their offsets. The place of a fault is one in `text`.
std::optional<Fault> compareRows(std::string_view text, std::string_view input);

} // namespace reprise::verify

#endif // REPRISE_MEMPLAN_VERIFY_H
