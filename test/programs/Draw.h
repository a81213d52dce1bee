//===- Draw.h - Numbers at random -------------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TEST_PROGRAMS_DRAW_H
#define REPRISE_TEST_PROGRAMS_DRAW_H

#include <cstdint>
#include <initializer_list>
#include <random>

namespace reprise::test {

/// Draws numbers from a seed, the same on every machine.
class Draw {
public:
  explicit Draw(uint64_t seed) : engine(seed * 2 + 1) {}

  int64_t number(int64_t first, int64_t last) {
    return first + int64_t(engine() % uint64_t(last - first + 1));
  }
  bool oneIn(int64_t count) { return number(1, count) == 1; }
  template <typename T>
  T pick(std::initializer_list<T> values) {
    return values.begin()[number(0, values.size() - 1)];
  }

private:
  std::mt19937_64 engine;
};

} // namespace reprise::test

#endif // REPRISE_TEST_PROGRAMS_DRAW_H
