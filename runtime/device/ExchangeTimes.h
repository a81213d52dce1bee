//===- ExchangeTimes.h - How long ranks need to exchange bytes --*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DEVICE_EXCHANGETIMES_H
#define REPRISE_RUNTIME_DEVICE_EXCHANGETIMES_H

#include "Arena.h"
#include "Device.h"
#include "runtime/base/List.h"
#include "runtime/transport/Collectives.h"

namespace reprise::runtime {

/// What ranks of one group have done together again and again, and nothing else
/// meanwhile.
struct ExchangeTime {
  const char *exchange; ///< As tables of costs have it: "all_reduce".
  Group group;
  int32_t ranks;     ///< That take part in one.
  bool isAcross;     ///< Along an axis of which some are on several machines.
  bool isOfProgram;  ///< As a step has it, and not with other bytes.
  int64_t messages;  ///< That a rank sends one after another.
  int64_t sentBytes; ///< By a rank.
  double seconds;    ///< Of one.
};

/// What Linux has drawn for itself when it began to run.
constexpr const char *kBootId = "/proc/sys/kernel/random/boot_id";

/// A number of the running system by the file of its boot id, which containers
/// share; by the name of the host where that cannot be read.
uint64_t findMachine(const char *bootId);

/// The times of this rank.
struct ExchangeTimes {
  List<ExchangeTime> times;
  /// 0: all are on one, and not more than a table takes for granted.
  int64_t ranksPerMachine = 0;
  /// Whether the ranks of machines are other ones than tables can say: so many
  /// with neighbouring numbers on each. What is across machines then is not
  /// what the compiler takes for it.
  bool areScattered = false;

  /// Takes the times of what a step of the model has: each once, and those
  /// whose bytes can be others with fewer, too; and of what goes from stage to
  /// stage. All ranks call it at once, behind `Device::finish`. It writes to
  /// the arena, which nobody reads any more.
  bool measure(const RepriseModel &model, Device &device, const Arena &arena,
               Transport &ranks, Error &error);
};

/// Times of an exchange as a time for each message and bytes per second.
struct LinkRates {
  double secondsPerMessage, bytesPerSecond;
};

/// The line through two times of one exchange, of which `more` sends more
/// bytes. Both rates are above 0, even if that takes no longer than `less`.
LinkRates ratesOf(const ExchangeTime &less, const ExchangeTime &more);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DEVICE_EXCHANGETIMES_H
