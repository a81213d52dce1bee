//===- Certificate.cpp - Writes certificates ------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Solver/Certificate.h"

#include <cstdio>
#include <cstdlib>
#include <ostream>
#include <type_traits>

using namespace reprise::solver;

namespace {
/// JSON with a key, or an element of a list of lists, on each line.
class Writer {
public:
  explicit Writer(std::ostream &out) : out(out) {}

  void text(const std::string &value);
  /// Reads back as the same number.
  void number(double value);
  void number(int64_t value) { out << value; }

  void value(const std::string &value) { text(value); }
  void value(int64_t value) { number(value); }
  void value(const CertifiedLaunch::Replay &replay);
  void value(const CertifiedLayer::Input &input);
  void value(const PipelineCertificate::PricedTask &moment) {
    out << '[' << moment.task << ", ";
    number(moment.weight);
    out << ']';
  }
  template <typename T>
  void value(const std::vector<T> &elements) {
    out << '[';
    for (size_t k = 0; k < elements.size(); ++k) {
      out << (k ? ", " : "");
      value(elements[k]);
    }
    out << ']';
  }
  void value(const PathPart &part) {
    out << '[' << part.stage << ", " << part.first << ", " << part.last << ']';
  }

  /// `"name": ` behind what separates it from the key before: a line of its own
  /// for each key of the outermost object.
  void key(const char *name) {
    out << (isFirst ? "" : level == 1 ? ",\n" : ", ") << '"' << name << "\": ";
    isFirst = false;
  }
  void begin() {
    out << '{';
    isFirst = true;
    ++level;
  }
  void end() {
    out << '}';
    isFirst = false;
    --level;
  }

  /// A key and its value, on the line of the object.
  template <typename T>
  void field(const char *name, const T &fieldValue) {
    key(name);
    if constexpr (std::is_floating_point_v<T>)
      number(fieldValue);
    else
      value(fieldValue);
  }
  template <typename T>
  void list(const char *name, const std::vector<T> &elements) {
    key(name);
    value(elements);
    isFirst = false;
  }
  /// A list of objects, each on a line and written by `write`.
  template <typename T, typename Write>
  void lines(const char *name, const std::vector<T> &elements,
             const char *indent, Write write) {
    key(name);
    out << '[';
    for (size_t k = 0; k < elements.size(); ++k) {
      out << (k ? ",\n" : "\n") << indent;
      begin();
      write(elements[k]);
      end();
    }
    out << ']';
    isFirst = false;
  }

private:
  std::ostream &out;
  bool isFirst = true;
  int level = 0;
};
} // namespace

void Writer::text(const std::string &value) {
  out << '"';
  for (unsigned char letter : value) {
    if (letter == '"' || letter == '\\') {
      out << '\\' << letter;
    } else if (letter < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", letter);
      out << escape;
    } else {
      out << letter;
    }
  }
  out << '"';
}

void Writer::number(double value) {
  char digits[32];
  for (int precision : {15, 16, 17}) {
    std::snprintf(digits, sizeof digits, "%.*g", precision, value);
    if (std::strtod(digits, nullptr) == value)
      break;
  }
  out << digits;
}

void Writer::value(const CertifiedLaunch::Replay &replay) {
  out << '[' << replay.layer << ", ";
  text(replay.op);
  out << ']';
}

void Writer::value(const CertifiedLayer::Input &input) {
  out << '[' << input.layer << ", ";
  text(input.tensor);
  out << ']';
}

static void writeClass(Writer &writer, const CertifiedClass &kind) {
  writer.field("name", kind.name);
  writer.list("inputs", kind.inputs);
  writer.lines(
      "tensors", kind.tensors, "   ", [&](const CertifiedTensor &tensor) {
        writer.field("name", tensor.name);
        writer.field("bytes", tensor.bytes);
        if (tensor.rule != CertifiedTensor::Rule::Free)
          writer.field("rule",
                       std::string(tensor.rule == CertifiedTensor::Rule::Keep
                                       ? "keep"
                                       : "drop"));
      });
  writer.lines("ops", kind.ops, "   ", [&](const CertifiedOp &op) {
    writer.field("name", op.name);
    if (op.replayable)
      writer.field("seconds", op.seconds);
    writer.list("reads", op.reads);
    writer.list("writes", op.writes);
  });
  writer.lines("backward", kind.backward, "   ",
               [&](const CertifiedGradient &gradient) {
                 writer.field("name", gradient.name);
                 writer.list("reads", gradient.reads);
                 writer.field("bytes", gradient.bytes);
               });
}

static void writeLayer(Writer &writer, const CertifiedLayer &layer) {
  writer.field("name", layer.name);
  writer.field("class", layer.kind);
  writer.field("in_flight", layer.inFlight);
  writer.list("inputs", layer.inputs);
  writer.list("keeps", layer.keeps);
  writer.list("replays", layer.replays);
  writer.field("minimum", layer.minimum);
}

static void writeBuffer(Writer &writer, const CertifiedBuffer &buffer) {
  writer.field("name", buffer.name);
  writer.field("bytes", buffer.bytes);
  writer.field("alignment", buffer.alignment);
  writer.field("offset", buffer.offset);
  if (buffer.inPlaceOf >= 0)
    writer.field("in_place_of", buffer.inPlaceOf);
}

static void writeLaunch(Writer &writer, const CertifiedLaunch &launch,
                        const std::vector<CertifiedBuffer> &buffers) {
  writer.field("name", launch.name);
  writer.field("phase", std::string(launch.isUpdate ? "update" : "step"));
  writer.field("seconds", launch.seconds);
  writer.list("replays", launch.replays);
  writer.list("reads", launch.reads);
  writer.list("writes", launch.writes);
  int64_t bytes = 0;
  for (int64_t buffer : launch.writes)
    bytes += buffers[buffer].bytes;
  writer.field("bytes", bytes);
}

static void writePoint(Writer &writer, const PricedPoint &point) {
  writer.field("layer", point.layer);
  writer.field("gradient", point.gradient);
  writer.field("position", point.position);
  writer.field("seconds_per_byte", point.secondsPerByte);
}

static void writeFields(Writer &writer, const Certificate &certificate) {
  writer.field("version", int64_t(2));
  writer.field("model", certificate.model);
  writer.field("machine", certificate.machine);
  if (!certificate.under.empty())
    writer.field("under", certificate.under);
  writer.field("kind",
               std::string(certificate.kind == Certificate::Budget::Memory
                               ? "memory"
                               : "activations"));
  writer.field("budget_bytes", certificate.budgetBytes);
  writer.field("base_bytes", certificate.baseBytes);
  writer.field("peak_bytes", certificate.peakBytes);
  writer.field("micro_batches", certificate.microBatches);
  writer.field("step_seconds", certificate.stepSeconds);
  writer.field("replay_seconds", certificate.replaySeconds);
  writer.field("lower_bound_seconds", certificate.lowerBoundSeconds);
  auto list = [&](const char *name, const auto &elements, auto write) {
    writer.lines(name, elements, " ",
                 [&](const auto &element) { write(writer, element); });
  };
  list("classes", certificate.classes, writeClass);
  list("layers", certificate.layers, writeLayer);
  list("buffers", certificate.buffers, writeBuffer);
  list("schedule", certificate.schedule,
       [&](Writer &writer, const CertifiedLaunch &launch) {
         writeLaunch(writer, launch, certificate.buffers);
       });
  list("moments", certificate.points, writePoint);
}

void reprise::solver::writeCertificate(std::ostream &out,
                                       const Certificate &certificate) {
  Writer writer(out);
  writer.begin();
  writeFields(writer, certificate);
  writer.end();
  out << '\n';
}

void reprise::solver::writeCertificate(std::ostream &out,
                                       const PipelineCertificate &certificate) {
  Writer writer(out);
  bool hasTasks = !certificate.pricedTasks.empty();
  writer.begin();
  writer.field("version", int64_t(hasTasks ? 3 : 2));
  writer.field("kind", std::string("pipeline"));
  writer.field("budget_bytes", certificate.budgetBytes);
  writer.list("base_bytes", certificate.baseBytes);
  if (!certificate.besideBytes.empty())
    writer.list("beside_bytes", certificate.besideBytes);
  writer.field("stages", certificate.shape.stages);
  writer.field("virtual_stages", certificate.shape.virtualStages);
  writer.field("micro_batches", certificate.shape.microBatches);
  if (!certificate.shape.schedule.empty())
    writer.field("schedule", certificate.shape.schedule);
  if (certificate.shape.microBatchGroup)
    writer.field("micro_batch_group", certificate.shape.microBatchGroup);
  writer.field("span_seconds", certificate.spanSeconds);
  writer.field("lower_bound_seconds", certificate.lowerBoundSeconds);
  writer.lines("chunks", certificate.chunks, "",
               [&](const PipelineCertificate::Chunk &chunk) {
                 writer.field("slack_seconds", chunk.slackSeconds);
                 writer.key("certificate");
                 writer.begin();
                 writeFields(writer, chunk.certificate);
                 writer.end();
               });
  writer.lines("paths", certificate.paths, " ",
               [&](const PipelineCertificate::Path &path) {
                 writer.field("weight", path.weight);
                 writer.list("tasks", path.tasks);
               });
  if (hasTasks)
    writer.list("priced_tasks", certificate.pricedTasks);
  writer.end();
  out << '\n';
}
