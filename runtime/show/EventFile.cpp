//===- EventFile.cpp - Curves for TensorBoard -----------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EventFile.h"

#include "runtime/base/Crc32c.h"
#include "runtime/base/Files.h"

#include <cerrno>
#include <ctime>
#include <unistd.h>

using namespace reprise::runtime;

namespace {
/// A protocol buffer that is being written. Fields that do not fit are not
/// written: callers make the room for all of theirs.
struct Message {
  static constexpr size_t kRoom = 1024;
  unsigned char bytes[kRoom];
  size_t count = 0;

  void add(const void *data, size_t length) {
    if (length > kRoom - count)
      return;
    memcpy(bytes + count, data, length);
    count += length;
  }
  void addByte(unsigned value) {
    auto byte = static_cast<unsigned char>(value);
    add(&byte, 1);
  }
  void addVarint(uint64_t value) {
    for (; value >= 0x80; value >>= 7)
      addByte(unsigned(value & 0x7F) | 0x80);
    addByte(unsigned(value));
  }
  /// `tag` is the field's number and wire type, as it is in the file.
  void addBytes(unsigned tag, const void *data, size_t length) {
    addByte(tag);
    addVarint(length);
    add(data, length);
  }
};
} // namespace

/// Fields of Event, Summary, Summary.Value and SessionLog.
static constexpr unsigned kWallTime = 0x09, kStep = 0x10, kFileVersion = 0x1A,
                          kSummary = 0x2A, kSessionLog = 0x3A, kValue = 0x0A,
                          kTag = 0x0A, kSimpleValue = 0x15, kStatus = 0x08;
/// Of SessionLog.
static constexpr unsigned kStart = 1;

static double wallTime() {
  timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
}

static Message beginEvent() {
  Message event;
  double time = wallTime();
  event.addByte(kWallTime);
  event.add(&time, sizeof(time));
  return event;
}

/// The checksum as it is in the file.
/// Source: tensorboard/data/server/masked_crc.rs.
static uint32_t maskedCrc(const void *data, size_t bytes) {
  uint32_t crc = crc32c(data, bytes);
  return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

EventFile::~EventFile() {
  if (file)
    fclose(file);
}

bool EventFile::open(const char *folder, Error &error) {
  if (Path made("%s", folder); !makeFolders(made))
    return error.set("cannot create the folder '%s': %s", made.chars,
                     strerror(errno));
  char host[256] = "localhost";
  gethostname(host, sizeof(host) - 1);
  snprintf(path, sizeof(path), "%s/events.out.tfevents.%010lld.%s.%d.0", folder,
           static_cast<long long>(time(nullptr)), host, int(getpid()));
  file = fopen(path, "wbxe");
  if (!file)
    return error.set("cannot create '%s': %s", path, strerror(errno));
  Message event = beginEvent();
  event.addBytes(kFileVersion, "brain.Event:2", strlen("brain.Event:2"));
  return writeRecord(event.bytes, event.count, error);
}

bool EventFile::beginSession(int64_t firstStep, Error &error) {
  Message session;
  session.addByte(kStatus);
  session.addVarint(kStart);
  Message event = beginEvent();
  event.addByte(kStep);
  event.addVarint(uint64_t(firstStep));
  event.addBytes(kSessionLog, session.bytes, session.count);
  return writeRecord(event.bytes, event.count, error);
}

bool EventFile::add(int64_t step, const Scalar *scalars, int count,
                    Error &error) {
  Message summary;
  for (int i = 0; i < count; ++i) {
    Message value;
    value.addBytes(kTag, scalars[i].tag, strlen(scalars[i].tag));
    value.addByte(kSimpleValue);
    value.add(&scalars[i].value, sizeof(float));
    summary.addBytes(kValue, value.bytes, value.count);
  }
  Message event = beginEvent();
  event.addByte(kStep);
  event.addVarint(uint64_t(step));
  event.addBytes(kSummary, summary.bytes, summary.count);
  return writeRecord(event.bytes, event.count, error);
}

bool EventFile::writeRecord(const unsigned char *bytes, size_t count,
                            Error &error) {
  uint64_t length = count;
  uint32_t lengthCrc = maskedCrc(&length, sizeof(length));
  uint32_t dataCrc = maskedCrc(bytes, count);
  bool good = fwrite(&length, sizeof(length), 1, file) == 1 &&
              fwrite(&lengthCrc, sizeof(lengthCrc), 1, file) == 1 &&
              fwrite(bytes, 1, count, file) == count &&
              fwrite(&dataCrc, sizeof(dataCrc), 1, file) == 1 &&
              fflush(file) == 0;
  return good || error.set("cannot write '%s': %s", path, strerror(errno));
}
