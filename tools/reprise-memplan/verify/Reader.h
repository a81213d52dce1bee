//===- Reader.h - Fields of objects of JSON ---------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_MEMPLAN_READER_H
#define REPRISE_MEMPLAN_READER_H

#include "Json.h"

#include <algorithm>

namespace reprise::verify {

/// Reads fields; the first fault stays, and everything after it reads as
/// nothing.
class Reader {
public:
  std::optional<Fault> fault;

  void fail(size_t at, std::string message) {
    if (!fault)
      fault = Fault{at, std::move(message)};
  }

  int64_t readInteger(const Json &value, int64_t least, int64_t most,
                      const char *what);
  double readSeconds(const Json &value);
  std::string readText(const Json &value);
  /// A text that is one of `words`: its number.
  size_t readWord(const Json &value, const std::vector<std::string> &words);
  /// A list of at most 2^18 elements.
  const std::vector<Json> &readList(const Json &value);

  bool expect(const Json &value, Json::Kind kind) {
    if (value.kind != kind)
      fail(value.at, std::string("needs ") + getName(kind) + ", but got " +
                         getName(value.kind));
    return value.kind == kind;
  }
};

/// An object all of whose keys are known.
class Object {
public:
  Object(Reader &reader, const Json &value, std::vector<std::string> known)
      : reader(reader), value(value) {
    if (!reader.expect(value, Json::Kind::Object))
      return;
    for (size_t k = 0; k < value.keys.size(); ++k)
      if (std::find(known.begin(), known.end(), value.keys[k]) == known.end())
        reader.fail(value.elements[k].at,
                    "unknown key '" + value.keys[k] + "'");
  }

  /// The value of `key`; an empty one if it is missing, which is a fault.
  const Json &get(const char *key) const {
    static const Json none;
    const Json *found = value.find(key);
    if (!found)
      reader.fail(value.at, std::string("needs a key '") + key + "'");
    return found ? *found : none;
  }
  const Json *find(const char *key) const { return value.find(key); }
  size_t at() const { return value.at; }

private:
  Reader &reader;
  const Json &value;
};

} // namespace reprise::verify

#endif // REPRISE_MEMPLAN_READER_H
