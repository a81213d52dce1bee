//===- ElementTypes.h - Types of elements in files --------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_CHECKPOINT_ELEMENTTYPES_H
#define REPRISE_RUNTIME_CHECKPOINT_ELEMENTTYPES_H

#include <cstdint>
#include <string_view>

namespace reprise::runtime {

/// What elements of a type are read as.
enum class ElementUse {
  None,   ///< Nothing.
  Number, ///< A weight, or a scale.
  Scaled, ///< A weight, times a scale that stands in another tensor.
  Scale   ///< A scale alone.
};

/// A type of elements, as a file names it.
struct ElementType {
  const char *name; ///< "F32"
  int bits;
  ElementUse use = ElementUse::None;
  /// Writes `count` elements as f32, without rounding; null if none has a use.
  void (*convert)(const unsigned char *from, int64_t count,
                  float *to) = nullptr;

  bool isWeight() const {
    return use == ElementUse::Number || use == ElementUse::Scaled;
  }
  bool isScale() const {
    return use == ElementUse::Number || use == ElementUse::Scale;
  }
};

/// The type of this name; null if there is none.
const ElementType *findElementType(std::string_view name);

/// What weights can be, for messages.
inline constexpr char kWeightTypes[] =
    "F32, BF16 or F16, or F8_E4M3 or F8_E5M2 with scales";

/// Whether all exponents leave room for a number.
bool allFinite(const float *values, int64_t count);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_CHECKPOINT_ELEMENTTYPES_H
