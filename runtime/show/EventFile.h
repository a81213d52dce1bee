//===- EventFile.h - Curves for TensorBoard ---------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_SHOW_EVENTFILE_H
#define REPRISE_RUNTIME_SHOW_EVENTFILE_H

#include "runtime/base/Error.h"

namespace reprise::runtime {

/// One value of a curve.
struct Scalar {
  const char *tag; ///< At most 64 bytes.
  float value;
};

/// Amounts of `size` things that have numbers, such as rows of experts.
struct Amounts {
  const char *tag; ///< At most 64 bytes.
  const float *values;
  int64_t size;
};

/// A file of TensorBoard: a record for each step, framed and checked as
/// tensorboard/summary/writer/record_writer.py does, whose payload is the
/// protocol buffer Event of tensorboard/compat/proto/event.proto.
class EventFile {
public:
  EventFile() = default;
  EventFile(const EventFile &) = delete;
  EventFile &operator=(const EventFile &) = delete;
  ~EventFile();

  /// Creates `folder` if need be, and in it a file of a new name, so that the
  /// curves of a resumed run go on where they were.
  bool open(const char *folder, Error &error);
  bool isOpen() const { return file != nullptr; }

  /// Says that a run begins with this step: what the folder's other files have
  /// of it and of later ones is of an earlier run, and not shown any more.
  bool beginSession(int64_t firstStep, Error &error);

  /// Adds the values of `step` to their curves and hands them to the system.
  bool add(int64_t step, const Scalar *scalars, int count, Error &error);

  /// Adds a histogram to those of `step`: thing `i` is what lies from `i` to
  /// `i + 1`, and counts as often as its amount says.
  bool add(int64_t step, const Amounts &amounts, Error &error);

  struct Message; ///< One of the format's, as bytes.

private:
  bool write(const Message &event, Error &error);

  FILE *file = nullptr;
  char path[4096] = "";
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_SHOW_EVENTFILE_H
