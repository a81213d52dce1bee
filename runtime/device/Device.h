//===- Device.h - What a model's schedules run on ---------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DEVICE_DEVICE_H
#define REPRISE_RUNTIME_DEVICE_DEVICE_H

#include "DeviceReports.h"
#include "LaunchTimes.h"
#include "runtime/base/Error.h"
#include "runtime/base/MicroBatch.h"
#include "runtime/base/Program.h"

#include "reprise/ABI/Model.h"

#include <cstddef>

namespace reprise::runtime {

/// Inputs of the micro-batches that run next: `begin`, the host writes `at`
/// each of them, `send`.
class DeviceInputs {
public:
  DeviceInputs() = default;
  DeviceInputs(const DeviceInputs &) = delete;
  DeviceInputs &operator=(const DeviceInputs &) = delete;

  /// Micro-batches that are sent, and run, at a time.
  virtual int64_t count() const = 0;
  /// Waits until what was written before may be written over.
  virtual bool begin(Error &error) = 0;
  /// Where the host writes number `i` of the next ones.
  virtual MicroBatch at(int64_t i) const = 0;
  /// They become those of the turn that runs next.
  virtual bool send(Error &error) = 0;

protected:
  ~DeviceInputs() = default; // Nobody owns them through their base.
};

/// The schedules that go forward alone, between two steps.
enum class Forward { Evaluate, Sample };

class RankMemory;

/// What the schedules of a model run on: the CPU, or a GPU. A test that all of
/// them pass, `DeviceTest.cpp`, says in code what the comments say here.
///
/// The arena is the host's view of the plan's memory: what the host writes
/// there for a schedule (learning rate and corrections, the tokens of
/// validation and sampling), the device reads when that begins; what it makes
/// for the host (loss and norm, the loss of validation, logits) is there when
/// the call that says so returns. All else is brought there and back by the
/// arena.
///
/// Calls come in this order: `allocate`, `prepare`; for each step `beginStep`,
/// `runTurn` for each turn, each behind `nextInputs().send()`, then `endStep`,
/// or, if the update was left out, `runNorm` and what comes in place of it;
/// between steps `runForward`; then `finish` and `disconnect`.
class Device {
public:
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  /// Takes the memory of the plan, and maps the arena.
  virtual bool allocate(Error &error) = 0;
  /// Chooses versions of kernels and algorithms of GEMMs, and takes what
  /// running needs; the model's tables have been checked.
  /// \param profile  whether launches are timed.
  /// \param numNorm  the launches of the update up to the norm of the
  /// gradients.
  virtual bool prepare(bool profile, int numNorm, Error &error) = 0;

  virtual DeviceInputs &nextInputs() = 0;

  /// Whether calls return before what they begin is done, so that the host can
  /// write the next inputs meanwhile. Then `endStep`, `runNorm`, `runForward`
  /// and `finish` wait, and what has failed is said there.
  virtual bool isAhead() const = 0;

  /// Sets the loss and measures back to zero.
  virtual bool beginStep(Error &error) = 0;
  /// Runs a turn: its micro-batches, and the entries behind them up to `end`.
  virtual bool runTurn(const Turn &turn, int end, Error &error) = 0;
  /// Behind the update: loss and norm are in the arena.
  virtual bool endStep(Error &error) = 0;
  /// The update up to the norm; then that and the loss are in the arena.
  virtual bool runNorm(Error &error) = 0;
  /// The rest of the update.
  virtual bool runOptimizer(Error &error) = 0;
  /// In place of the optimizer: gradients that outlive the step become zero.
  virtual bool clearGradients(Error &error) = 0;
  /// Then what comes out, `evalLoss` or `logits`, is in the arena.
  virtual bool runForward(Forward what, Error &error) = 0;
  /// Waits until everything is done that was begun.
  virtual bool finish(Error &error) = 0;
  /// What ranks do together in a launch, for launches that are in no schedule,
  /// and where a buffer of the plan is for that. `finish` waits for them.
  virtual RankMemory &rankMemory() = 0;
  virtual void *addressOf(const RepriseBuffer &buffer) const = 0;
  /// Nothing comes behind it that ranks do together in a launch.
  virtual bool disconnect(Error &error) = 0;

  /// What it is and what runs on it, for people; empty: nothing to say.
  virtual void describe(char *text, size_t size) const = 0;
  virtual DeviceFacts facts() const = 0;
  /// Of the step that ended last; zeros unless `isAhead`.
  virtual DeviceTimes times() const { return {}; }
  /// What its memory holds at the moment. False if that is the host's, or if
  /// nobody says.
  virtual bool measure(DeviceMemory &) const { return false; }
  /// To other ranks so far, but for what went through `Transport`.
  virtual int64_t sentBytes() const { return 0; }

  /// Who is told that a share of a schedule has run which has all micro-batches
  /// of the rank: as many of its launches as `microBatches` of them would have.
  /// After the last share nobody is, and never if the device `isAhead`.
  struct Watch {
    void (*tell)(void *context, int64_t microBatches) = nullptr;
    void *context = nullptr;
  };
  void setWatch(const Watch &told) { watch = told; }

  /// Measured if `prepare` was told so.
  virtual LaunchTimes &profile() = 0;

protected:
  explicit Device(const RepriseModel &model) : model(model) {}
  /// Nobody owns one through its base. Were it not trivial, it would need a
  /// table of functions, and that the C++ library.
  ~Device() = default;

  const RepriseModel &model;
  Watch watch;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DEVICE_DEVICE_H
