//===- OtherSpelling.h - Options as others write them -----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_TRAINER_OTHERSPELLING_H
#define REPRISE_RUNTIME_TRAINER_OTHERSPELLING_H

#include <cstdint>
#include <string_view>

namespace reprise::runtime {

/// What other programs call an option; or, without one, what is decided when
/// the program is compiled.
struct OtherName {
  std::string_view names; ///< `a|b`
  const char *option;
};

/// What else an option that is not known may be; null if nothing.
const OtherName *findOtherName(std::string_view name);

/// The whole number that is written otherwise, as 1e3, 1_000, 1,000 or 0x10; -1
/// if it is none.
int64_t respell(const char *text);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_TRAINER_OTHERSPELLING_H
