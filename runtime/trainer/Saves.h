//===- Saves.h - When a run saves -------------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_TRAINER_SAVES_H
#define REPRISE_RUNTIME_TRAINER_SAVES_H

#include "Options.h"
#include "runtime/checkpoint/CheckpointWriter.h"
#include "runtime/show/Log.h"
#include "runtime/transport/Transport.h"

namespace reprise::runtime {

/// How far other ranks are when this one cannot go on.
enum class Others {
  Elsewhere, ///< They may have ended, or go on with the step.
  Waiting,   ///< Behind the step, to hear whether their parts are saved.
  Ending     ///< They have come to the same error.
};

/// When a run saves: as often as --save-interval says, when it is asked to, at
/// its end, and when something goes wrong that leaves the states as a step left
/// them. A checkpoint that cannot be written is shown, and is no reason to stop
/// while there are others to come. Without --save all of it does nothing. Rank
/// 0 decides, and all write their part.
class Saves {
public:
  Saves(const RepriseModel &model, const Options &options,
        const ModelTensors &tensors, const Arena &arena, ThreadPool &pool,
        Transport &ranks, Log &log)
      : model(model), options(options), tensors(tensors), ranks(ranks),
        log(log), tensorWriter(model, tensors, arena, pool, ranks),
        writer(model, tensors, tensorWriter) {}

  /// As CheckpointWriter::start, for what is written in each of them: `data`,
  /// and the tokenizer if `tokenizer` is not null.
  bool start(const Resumed &resumed, const DataMark &data,
             const char *tokenizer, Error &error);
  /// Warns if the disk has no room for what will be saved. (Others may take
  /// more of it, or give some back, so nothing is refused.)
  void warn() const;
  /// Shows what will be saved, and what could not be removed.
  void announce();

  /// Behind a step: begins to write a checkpoint if that is due or `isAsked`,
  /// and shows what was written meanwhile. False if other ranks have ended.
  bool afterStep(const RunState &state, bool isAsked, Error &error);
  /// Saves the last step and waits. False if that could not be written.
  bool atEnd(const RunState &state, Error &error);
  /// After `error`, which has left the states those of `state`: saves them,
  /// unless they are what the run began with, or no numbers any more, which
  /// `error` says then. Other ranks help; if they are elsewhere, rank 0 saves
  /// alone what it has, unless they have parts. Where all end, the others call
  /// it, too, and return when rank 0 has ended the run.
  void rescue(const RunState &state, Others others, Error &error);
  /// Waits for what is being written, and lets `error` say which is the last.
  void giveUp(Error &error);

  /// What a save takes, more or less.
  double expectedSeconds() const { return seconds; }
  /// What writes this rank's part.
  const TensorWriter &ownPart() const { return tensorWriter; }

private:
  bool begin(const RunState &state, bool isRescue, Error &error);
  bool end(const RunState &state, Error &error);
  bool showWritten(Error &failure);
  void showFailure(const Error &failure, int64_t step);

  const RepriseModel &model;
  const Options &options;
  const ModelTensors &tensors;
  Transport &ranks;
  Log &log;
  TensorWriter tensorWriter;
  CheckpointWriter writer;
  Error refused; ///< Why the last one did not even begin.
  double seconds = 0;
  int64_t firstStep = 0; ///< What the run began behind.
  bool isLost = false;   ///< Whether the last step could not be saved.
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_TRAINER_SAVES_H
