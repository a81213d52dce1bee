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
#include "runtime/base/List.h"

#include <cerrno>
#include <ctime>
#include <unistd.h>

using namespace reprise::runtime;

/// A protocol buffer that is being written.
struct EventFile::Message {
  List<unsigned char> bytes;
  bool isWhole = true; ///< Otherwise there was no memory for all of it.

  void add(const void *data, size_t length) {
    isWhole = isWhole &&
              bytes.append(static_cast<const unsigned char *>(data), length);
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
  void addMessage(unsigned tag, const Message &message) {
    isWhole = isWhole && message.isWhole;
    addBytes(tag, message.bytes.begin(), message.bytes.size());
  }
  void addDouble(unsigned tag, double value) {
    addByte(tag);
    add(&value, sizeof(value));
  }
};

using Message = EventFile::Message;

/// Fields of Event, Summary, Summary.Value and SessionLog.
static constexpr unsigned kWallTime = 0x09, kStep = 0x10, kFileVersion = 0x1A,
                          kSummary = 0x2A, kSessionLog = 0x3A, kValue = 0x0A,
                          kTag = 0x0A, kSimpleValue = 0x15, kHistogram = 0x2A,
                          kStatus = 0x08;
/// Of SessionLog.
static constexpr unsigned kStart = 1;
/// Of HistogramProto.
static constexpr unsigned kMin = 0x09, kMax = 0x11, kCount = 0x19, kSum = 0x21,
                          kSumOfSquares = 0x29, kBucketLimits = 0x32,
                          kBuckets = 0x3A;

static double wallTime() {
  timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
}

static void beginEvent(Message &event) {
  event.addDouble(kWallTime, wallTime());
}

static void beginEvent(Message &event, int64_t step) {
  beginEvent(event);
  event.addByte(kStep);
  event.addVarint(uint64_t(step));
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
  Message event;
  beginEvent(event);
  event.addBytes(kFileVersion, "brain.Event:2", strlen("brain.Event:2"));
  return write(event, error);
}

bool EventFile::beginSession(int64_t firstStep, Error &error) {
  Message event, session;
  session.addByte(kStatus);
  session.addVarint(kStart);
  beginEvent(event, firstStep);
  event.addMessage(kSessionLog, session);
  return write(event, error);
}

bool EventFile::add(int64_t step, const Scalar *scalars, int count,
                    Error &error) {
  Message event, summary;
  for (int i = 0; i < count; ++i) {
    Message value;
    value.addBytes(kTag, scalars[i].tag, strlen(scalars[i].tag));
    value.addByte(kSimpleValue);
    value.add(&scalars[i].value, sizeof(float));
    summary.addMessage(kValue, value);
  }
  beginEvent(event, step);
  event.addMessage(kSummary, summary);
  return write(event, error);
}

/// The bucket of thing `i` ends at `i + 1`; the mean is that of their middles.
/// The range is that of things of which there are some: TensorBoard takes its
/// ends for those of the first and the last bucket that is not empty.
static void addHistogram(Message &histogram, const Amounts &amounts) {
  double sums[3] = {};
  Message limits, buckets;
  int64_t first = amounts.size, last = 0;
  for (int64_t i = 0; i < amounts.size; ++i) {
    double amount = double(amounts.values[i]), middle = double(i) + 0.5;
    for (double &sum : sums) {
      sum += amount;
      amount *= middle;
    }
    if (amounts.values[i] != 0) {
      first = first < i ? first : i;
      last = i + 1;
    }
    double limit = double(i + 1), bucket = double(amounts.values[i]);
    limits.add(&limit, sizeof(limit));
    buckets.add(&bucket, sizeof(bucket));
  }
  histogram.addDouble(kMin, double(first < last ? first : 0));
  histogram.addDouble(kMax, double(first < last ? last : amounts.size));
  histogram.addDouble(kCount, sums[0]);
  histogram.addDouble(kSum, sums[1]);
  histogram.addDouble(kSumOfSquares, sums[2]);
  histogram.addMessage(kBucketLimits, limits);
  histogram.addMessage(kBuckets, buckets);
}

bool EventFile::add(int64_t step, const Amounts &amounts, Error &error) {
  Message event, summary, value, histogram;
  addHistogram(histogram, amounts);
  value.addBytes(kTag, amounts.tag, strlen(amounts.tag));
  value.addMessage(kHistogram, histogram);
  summary.addMessage(kValue, value);
  beginEvent(event, step);
  event.addMessage(kSummary, summary);
  return write(event, error);
}

/// A record: its length and its bytes, each with its checksum.
bool EventFile::write(const Message &event, Error &error) {
  if (!event.isWhole)
    return error.set("no memory left for an event of '%s'", path);
  uint64_t length = event.bytes.size();
  const unsigned char *bytes = event.bytes.begin();
  uint32_t lengthCrc = maskedCrc(&length, sizeof(length));
  uint32_t dataCrc = maskedCrc(bytes, length);
  bool good = fwrite(&length, sizeof(length), 1, file) == 1 &&
              fwrite(&lengthCrc, sizeof(lengthCrc), 1, file) == 1 &&
              fwrite(bytes, 1, length, file) == length &&
              fwrite(&dataCrc, sizeof(dataCrc), 1, file) == 1 &&
              fflush(file) == 0;
  return good || error.set("cannot write '%s': %s", path, strerror(errno));
}
