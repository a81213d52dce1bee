//===- Arena.h - The one allocation of a training run -----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DEVICE_ARENA_H
#define REPRISE_RUNTIME_DEVICE_ARENA_H

#include "runtime/base/Error.h"

#include "reprise/ABI/Model.h"

#include <cstddef>

namespace reprise::runtime {

/// The memory of the plan where that is not the host's. All three wait until it
/// is done; offsets are the plan's.
class PlanMemory {
public:
  virtual bool upload(int64_t offset, const void *from, int64_t bytes,
                      Error &error) = 0;
  virtual bool download(int64_t offset, void *to, int64_t bytes,
                        Error &error) const = 0;
  virtual bool fill(int64_t offset, unsigned char byte, int64_t bytes,
                    Error &error) = 0;

protected:
  ~PlanMemory() = default; // Nobody owns one through its base.
};

/// The memory of the plan, between two pages that nobody may touch. Its end is
/// as close to the second one as an alignment of 256 bytes permits, so that an
/// access behind the plan ends the program at once.
///
/// The plan's memory may also be a GPU's. Then this is a copy of it, whose
/// pages take memory from the first access on until they are released; `upload`
/// and `download` bring buffers there and back. In the arena proper they, and
/// `release`, do nothing.
class Arena {
public:
  Arena() = default;
  Arena(const Arena &) = delete;
  Arena &operator=(const Arena &) = delete;
  ~Arena();

  /// Maps `bytes` bytes of zeros.
  bool map(int64_t bytes, Error &error);

  /// The same, as a copy of memory that has been allocated elsewhere.
  bool mapFor(PlanMemory &memory, int64_t bytes, Error &error);

  bool upload(const RepriseBuffer &buffer, Error &error) const;
  bool download(const RepriseBuffer &buffer, Error &error) const;
  /// Gives back the memory of a copy, which then holds anything.
  void release(const RepriseBuffer &buffer) const;
  /// Uploads and releases.
  bool handOver(const RepriseBuffer &buffer, Error &error) const {
    bool good = upload(buffer, error);
    release(buffer);
    return good;
  }

  /// Sets every byte of a buffer, where the plan is.
  void fill(const RepriseBuffer &buffer, unsigned char byte);

  int64_t size() const { return bytes; }
  /// Whether it is a copy.
  bool isCopy() const { return original; }

  template <typename T>
  T *at(int64_t offset) const {
    return reinterpret_cast<T *>(base + offset);
  }
  template <typename T>
  T *at(const RepriseBuffer &buffer) const {
    return at<T>(buffer.offset);
  }

  /// Notes that somebody works on this buffer.
  void touch(const RepriseBuffer &buffer) {
    int64_t end = buffer.offset + buffer.bytes;
    if (end > touched)
      touched = end;
  }

  /// The end of the furthest buffer that was touched.
  int64_t highWaterBytes() const { return touched; }

  /// How many bytes of this range have memory of the machine behind them: the
  /// pages that were used, as far as they lie in it. -1 if the system does not
  /// say.
  int64_t residentBytes(const RepriseBuffer &range) const;

private:
  PlanMemory *original = nullptr; ///< Where the plan is, if not here.
  char *base = nullptr;
  int64_t bytes = 0;
  int64_t touched = 0;
  void *mapping = nullptr;
  size_t mappingBytes = 0;
};

/// Shows what was really written: whatever is no state that outlives a step, no
/// rotary table and no input that waits is filled with a pattern (as f32: NaN)
/// before each step, which also exposes reads of values that nobody wrote in
/// this step.
class MemoryCheck {
public:
  /// Finds the gaps between what is kept, which must not overlap. False if
  /// there is no room to note them.
  bool start(const RepriseModel &model, Arena &arena, Error &error);
  ~MemoryCheck();

  void fillGaps();

  /// The end of the furthest byte that was not the pattern, now or before an
  /// earlier one was filled in, or of the last of what is kept.
  int64_t writtenBytes() const;

private:
  int64_t findEnd() const;

  Arena *arena = nullptr;
  bool filled = false;
  int64_t furthest = 0;          ///< Before the last filling.
  RepriseBuffer *gaps = nullptr; ///< In order of their offsets.
  int numGaps = 0;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DEVICE_ARENA_H
