//===- CostTable.h - How fast a machine is ----------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_INTERFACES_COSTTABLE_H
#define REPRISE_INTERFACES_COSTTABLE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace reprise {
/// What a launch mostly does: each runs at a speed of its own.
enum class Work {
  Gemm,      ///< a product of matrices
  Attention, ///< attention in one kernel
  Pointwise, ///< everything else
  Exchange,  ///< bytes between ranks
};

/// A launch, as far as its time goes.
struct Workload {
  Work work = Work::Pointwise;
  bool isBF16 = false; ///< operands of a GEMM or of attention
  int64_t flops = 0;
  int64_t bytes = 0; ///< read and written
  /// Of an exchange: what it does, "all_gather"; the axis of the mesh along
  /// which ranks meet, how many of them do, the bytes that each sends, and the
  /// messages that it sends one after another.
  std::string exchange, axis;
  int64_t ranks = 0, sentBytes = 0, messages = 0;
  /// What a measured time is found by: "gemm 2048x768x3072 f32",
  /// "layer_norm_2x1024x768", "all_gather of 4 ranks sends 6144".
  std::string key;
};

/// Lets `load` be the exchange called `exchange`, and what each of `ranks`
/// ranks along `axis` sends of `bytes` in all: `(n-1)/n` of them in `n-1`
/// messages to gather or to sum parts, and twice that to have whole sums.
void setExchange(Workload &load, llvm::StringRef exchange, llvm::StringRef axis,
                 int64_t ranks, int64_t bytes, bool hasWholeSums);

/// Lets `load` be what one rank sends to another along `axis`.
void setSend(Workload &load, llvm::StringRef axis, int64_t bytes);

/// What was measured of an exchange of several sizes among so many ranks.
struct Link {
  std::string exchange; ///< as `Workload::exchange`
  int64_t ranks;
  bool isAcross; ///< They are on several machines.
  double secondsPerMessage, bytesPerSecond;

  /// "all_gather of 4 ranks", "all_reduce of 16 ranks across machines"
  std::string getName() const;
};

/// How fast a machine is, all its processors together: enough to put a time
/// beside work that is counted in FLOPs and bytes. What it gives is an
/// estimate to compare plans by, not a promise.
struct CostTable {
  std::string machine;                ///< what the figures are of
  double gemmFlopsPerSecond;          ///< of GEMMs in f32
  double gemmBF16FlopsPerSecond;      ///< of those in bf16
  double attentionFlopsPerSecond;     ///< of attention in one kernel, in f32
  double attentionBF16FlopsPerSecond; ///< and in bf16
  double pointwiseFlopsPerSecond;     ///< of everything else; exp counts as one
  double memoryBytesPerSecond;        ///< read and written together
  double secondsPerLaunch;            ///< of a launch that does nothing
  double linkBytesPerSecond;          ///< that a rank sends within a machine
  double secondsPerMessage;           ///< of a message there that is empty
  double networkBytesPerSecond;       ///< and to another machine
  double networkSecondsPerMessage;
  double ranksPerMachine; ///< which have neighbouring numbers
  /// Seconds of launches that were measured, by `Workload::key`. The rates are
  /// for all others.
  llvm::StringMap<double> measured;
  /// Exchanges that were measured; the rates of links are for all others.
  std::vector<Link> links;
  /// Axes of the mesh along which ranks are on several machines.
  llvm::StringSet<> axesAcross;

  /// Adds an axis to `axesAcross` if some of its groups are on several
  /// machines: of `ranks` ranks, `size` along the axis, of which neighbours
  /// have numbers that differ by `stride`.
  void addAxis(llvm::StringRef name, int64_t size, int64_t stride,
               int64_t ranks);

  /// Seconds of one launch, as a roofline: arithmetic and memory go on side by
  /// side, so that the slower of them counts.
  ///
  double getSeconds(int64_t flops, int64_t bytes, Work work,
                    bool isBF16 = false) const;

  /// The measured time of a launch, or else the roofline's.
  ///
  /// An exchange takes a time for each message and one for its bytes, the
  /// alpha-beta model of Hockney, Parallel Computing 20 (1994), 389-398.
  double getSeconds(const Workload &load) const;
  bool isMeasured(const Workload &load) const {
    return findMeasured(load) != nullptr;
  }
  /// What was measured of such an exchange, among as many ranks or else among
  /// the next number of them, by their ratio; null: nothing.
  const Link *findLink(const Workload &load) const;

  /// Two cores of a server with AVX2, the default target. The figures are
  /// explained in docs/report.md.
  static CostTable getCPU();

  /// The table of a machine that is known: "cpu", "a100", "h100", "h200",
  /// "b200".
  static std::optional<CostTable> get(llvm::StringRef name);
  /// "cpu, a100, h100, h200 and b200"
  static std::string getNames();

  /// From a JSON object: `machine` and the rates, named as here in
  /// snake_case; those that are left out are as in the known table that `base`
  /// names, or else in `getCPU`. `measured` is an object of seconds, `links`
  /// one of objects with two rates each. Refuses other keys, and numbers that
  /// are not above 0; an error begins with line and column.
  static llvm::Expected<CostTable> parse(llvm::StringRef text);

private:
  const double *findMeasured(const Workload &load) const;
};
} // namespace reprise

#endif // REPRISE_INTERFACES_COSTTABLE_H
