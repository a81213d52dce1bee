//===- Certificate.h - What a budget's plan is checked by -------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A plan for a budget of bytes together with all that is needed to check, from
// the outside, that it fits, what it costs, and that no plan costs less than
// the bound says. `reprise-memplan --verify` reads the file; it shares no code
// with this room. docs/certificates.md has the format and the reasoning behind
// the bound.
//
// Tensors, ops and layers are called by name where a person would, and by index
// where there are thousands of them (buffers, positions of the schedule).
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_SOLVER_CERTIFICATE_H
#define REPRISE_SOLVER_CERTIFICATE_H

#include "reprise/Solver/Pipeline.h"
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace reprise::solver {

/// A value of the forward pass that may be kept for backward.
struct CertifiedTensor {
  enum class Rule { Free, Keep, Drop };

  std::string name; ///< unique in its class
  int64_t bytes = 0;
  Rule rule = Rule::Free; ///< a constraint that the plan was given
};

/// An op of the forward pass.
struct CertifiedOp {
  std::string name;   ///< unique in its class
  double seconds = 0; ///< of running it again; 0 if a kernel of backward does
  bool replayable = true;
  /// Tensors or inputs of the class. What outlives the step (parameters, the
  /// batch) is left out.
  std::vector<std::string> reads;
  std::vector<std::string> writes; ///< tensors of the class, each by one op
};

/// An op of the backward pass.
struct CertifiedGradient {
  std::string name;
  std::vector<std::string> reads; ///< tensors or inputs of the class
  /// Of all else that no plan spares it: gradients read, results, workspace.
  /// Counted only if this op is a point of the dual.
  int64_t bytes = 0;
};

/// Layers with equal ops. Embedding and head are layers of classes of their
/// own.
struct CertifiedClass {
  std::string name;
  std::vector<std::string> inputs; ///< tensors of other layers that are read
  std::vector<CertifiedTensor> tensors;
  std::vector<CertifiedOp> ops;            ///< in an order that runs
  std::vector<CertifiedGradient> backward; ///< in the order of the step
};

/// A layer, and what the plan does in it.
struct CertifiedLayer {
  /// Stands for an input of the class.
  struct Input {
    int64_t layer; ///< an earlier one
    std::string tensor;
  };

  std::string name; ///< "layer3"
  int64_t kind = 0; ///< index of the class
  /// Micro-batches whose kept values are there when most are.
  int64_t inFlight = 1;
  std::vector<Input> inputs;        ///< one for each of the class
  std::vector<std::string> keeps;   ///< tensors that backward finds
  std::vector<std::string> replays; ///< ops that run again
  /// This layer's term of the dual: the least, over what could be kept, of
  /// seconds and priced bytes.
  double minimum = 0;
};

/// A piece of the arena that lives within the step.
struct CertifiedBuffer {
  std::string name; ///< for messages
  int64_t bytes = 0;
  int64_t alignment = 1;
  int64_t offset = 0; ///< from the start of the whole arena
  /// The buffer whose bytes this one takes over at the position that writes it
  /// first; -1 if none.
  int64_t inPlaceOf = -1;
};

/// A position of the schedule: a launch, or a GEMM.
struct CertifiedLaunch {
  struct Replay {
    int64_t layer;
    std::string op;
  };

  std::string name;
  double seconds = 0;          ///< without replays
  bool isUpdate = false;       ///< runs once a step, not once a micro-batch
  std::vector<Replay> replays; ///< what it runs again
  /// Buffers. Those that outlive the step are left out. What is written begins
  /// with the results of the op, in its order.
  std::vector<int64_t> reads, writes;
};

/// A point of the backward pass at which memory has a price.
struct PricedPoint {
  /// The layer whose backward pass is under way; the number of layers if none
  /// has begun.
  int64_t layer = 0;
  int64_t gradient = 0;      ///< index into `backward` of its class; else 0
  int64_t position = 0;      ///< of the schedule
  double secondsPerByte = 0; ///< of one micro-batch
  /// Of several times of a schedule with weights: the part at which the chunk
  /// runs, and its mean of micro-batches in flight; 0: those of the layer.
  double running = 1, inFlight = 0;
};

/// Times are those of the cost table the plan was made with.
struct Certificate {
  enum class Budget { Memory, Activations };

  std::string model, machine; ///< for people
  /// What was decided before, which plan and bound are under, in words; empty:
  /// nothing.
  std::string under;
  Budget kind = Budget::Memory;
  int64_t budgetBytes = 0;
  int64_t baseBytes = 0; ///< of what outlives the step; not in `buffers`
  /// Of the arena, and of what further micro-batches in flight keep beside it;
  /// without `baseBytes` for a budget of activations.
  int64_t peakBytes = 0;
  int64_t microBatches = 1;
  double stepSeconds = 0;       ///< of a step, without replays
  double replaySeconds = 0;     ///< of a step
  double lowerBoundSeconds = 0; ///< of the replays of any plan for a step

  std::vector<CertifiedClass> classes;
  std::vector<CertifiedLayer> layers; ///< in the order of the forward pass
  std::vector<CertifiedBuffer> buffers;
  std::vector<CertifiedLaunch> schedule;
  std::vector<PricedPoint> points;
  /// Points that may have a price; no part of the file.
  std::vector<PricedPoint> candidates;
};

/// Fills `minimum` of each layer from `points`, and `lowerBoundSeconds`: what
/// the prices prove, and that each layer has one whole choice. Exact for
/// classes with few sets of values that may be needed of the ops before one;
/// takes time for each of these sets, and for each sum of choices that comes
/// near the bound.
void computeBound(Certificate &certificate);

/// Bounds like `lowerBoundSeconds` for other budgets, from the least on: each
/// of them proven, and none higher for a larger budget.
std::vector<double> computeBounds(const Certificate &certificate,
                                  const std::vector<int64_t> &budgets);

/// What the layers of `certificate` keep of the micro-batches that are in
/// flight beside the one that runs.
int64_t getBytesInFlight(const Certificate &certificate);

/// The plans of a pipeline: of each chunk of the model a certificate of its
/// own, with a share of the budget of its stage.
struct PipelineCertificate {
  struct Chunk {
    Certificate certificate;
    /// Of the seconds that its replays take of a micro-batch, those that no
    /// budget asks for: the step is as long with them as without.
    double slackSeconds = 0;
    /// Of the backward launches of a micro-batch those of tasks of weights,
    /// where the schedule has any. Replays are of the backward task. No part of
    /// the file: such a schedule has none.
    double weightSeconds = 0;
  };

  /// A part of what `lowerBoundSeconds` is: a path that takes that long with
  /// any plans, or a mean of several, whose weights add up to 1.
  struct Path {
    double weight = 0;
    TaskPath tasks;
  };

  /// A task of a stage, at which bytes have a part of the price.
  struct PricedTask {
    int64_t task = 0; ///< its number in the list of the stage
    double weight = 0;
  };

  PipelineShape shape;
  int64_t budgetBytes = 0; ///< of each stage
  /// Of each stage, bytes that every program has all the time, which come out
  /// of its budget; 0 for a budget of activations.
  std::vector<int64_t> baseBytes;
  /// Of each stage, bytes of its packed program beyond these and its chunks,
  /// such as those that a step has once, not once a micro-batch. None where
  /// there are no programs.
  std::vector<int64_t> besideBytes;
  /// From the first task of the schedule to the end of its last, replays
  /// included, without the update; and no plans within the budget take less.
  double spanSeconds = 0, lowerBoundSeconds = 0;
  std::vector<Chunk> chunks; ///< in the order of the model
  std::vector<Path> paths;
  /// Of each stage, with weights that add up to 1, or none if bytes have no
  /// price; of no stage where each has one chunk, whose price is for the most
  /// micro-batches in flight.
  std::vector<std::vector<PricedTask>> pricedTasks;
};

/// What a stage needs beside `baseBytes`: the most at any of its tasks.
int64_t getStageNeed(const PipelineCertificate &certificate, int64_t stage);

/// What the tasks of a chunk take, replays included; its tasks of weights are
/// parts of the others.
ChunkTimes getTimes(const Certificate &certificate);
/// The same, with tasks of weights.
ChunkTimes getTimes(const PipelineCertificate::Chunk &chunk);

/// What replays of a micro-batch on a stage take at least, if it needs the
/// budget at most.
struct StageReplays {
  /// Of each of its chunks, what it replays with any share of the budget; 0 if
  /// bytes have a price for it.
  std::vector<double> forced;
  /// All the others together, however the budget is shared out, and which.
  double shared = 0;
  std::vector<bool> isPriced;
};
StageReplays getStageReplays(const PipelineCertificate &certificate,
                             int64_t stage);

/// The sum of these.
double getStageBound(const PipelineCertificate &certificate, int64_t stage);

/// Gives the chunks of a stage, which share a budget, one price of memory, each
/// of them a point out of its `candidates`, and the stage its priced tasks:
/// those with which `getStageBound` proves most. Does not depend on the plan of
/// the chunks.
void sharePrice(PipelineCertificate &certificate, int64_t stage);

/// How long the schedule takes with the plans of the chunks' certificates.
double getSpan(const PipelineCertificate &certificate);

/// Fills in both spans from the chunks' certificates, and the paths.
void computeSpans(PipelineCertificate &certificate);

/// Bounds like `lowerBoundSeconds` for other budgets of each stage, from the
/// least on: each of them proven, and none higher for a larger budget.
std::vector<double> computeBounds(const PipelineCertificate &certificate,
                                  const std::vector<int64_t> &budgets);

/// Writes `certificate` as JSON, one buffer, launch, op or layer a line.
void writeCertificate(std::ostream &out, const Certificate &certificate);
void writeCertificate(std::ostream &out,
                      const PipelineCertificate &certificate);

} // namespace reprise::solver

#endif // REPRISE_SOLVER_CERTIFICATE_H
