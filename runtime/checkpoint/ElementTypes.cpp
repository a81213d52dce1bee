//===- ElementTypes.cpp - Types of elements in files ----------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ElementTypes.h"

#include "runtime/base/BF16.h"

#include <algorithm>
#include <cstring>
#include <immintrin.h>
#include <iterator>

using namespace reprise::runtime;

static void copyFloats(const unsigned char *from, int64_t count, float *to) {
  memcpy(to, from, size_t(count) * sizeof(float));
}

static void convertBF16(const unsigned char *from, int64_t count, float *to) {
  for (int64_t i = 0; i < count; ++i) {
    uint16_t half;
    memcpy(&half, from + 2 * i, sizeof(half));
    to[i] = fromBF16(half);
  }
}

static void convertF16(const unsigned char *from, int64_t count, float *to) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    __m128i halves =
        _mm_loadu_si128(reinterpret_cast<const __m128i *>(from + 2 * i));
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(halves));
  }
  for (; i < count; ++i) {
    uint16_t half;
    memcpy(&half, from + 2 * i, sizeof(half));
    to[i] = _cvtsh_ss(half);
  }
}

/// E4M3 is F16 with an exponent that has its top bit missing and another bias:
/// moved there, a value is 2^-8 of what it means. It has no infinity, and one
/// fraction of its largest exponent is not a number.
static void convertE4M3(const unsigned char *from, int64_t count, float *to) {
  for (int64_t i = 0; i < count; ++i) {
    const unsigned bits = from[i] & 0x7F;
    const float size = bits == 0x7F ? __builtin_nanf("")
                                    : _cvtsh_ss(uint16_t(bits << 7)) * 256;
    to[i] = from[i] & 0x80 ? -size : size;
  }
}

/// The upper half of an F16.
static void convertE5M2(const unsigned char *from, int64_t count, float *to) {
  for (int64_t i = 0; i < count; ++i)
    to[i] = _cvtsh_ss(uint16_t(from[i] << 8));
}

/// An exponent alone, with the bias of F32; the largest is not a number.
static void convertE8M0(const unsigned char *from, int64_t count, float *to) {
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bits = from[i] == 0xFF ? 0x7FC00000
                          : from[i]       ? uint32_t(from[i]) << 23
                                          : 1u << 22; // Too small for one.
    memcpy(to + i, &bits, sizeof(bits));
  }
}

static constexpr ElementType kTypes[] = {
    {"F32", 32, ElementUse::Number, copyFloats},
    {"BF16", 16, ElementUse::Number, convertBF16},
    {"F16", 16, ElementUse::Number, convertF16},
    {"F8_E4M3", 8, ElementUse::Scaled, convertE4M3},
    {"F8_E5M2", 8, ElementUse::Scaled, convertE5M2},
    {"F8_E8M0", 8, ElementUse::Scale, convertE8M0},
    {"BOOL", 8},
    {"F4", 4},
    {"F6_E2M3", 6},
    {"F6_E3M2", 6},
    {"U8", 8},
    {"I8", 8},
    {"F8_E4M3FNUZ", 8},
    {"F8_E5M2FNUZ", 8},
    {"I16", 16},
    {"U16", 16},
    {"I32", 32},
    {"U32", 32},
    {"C64", 64},
    {"F64", 64},
    {"I64", 64},
    {"U64", 64}};

const ElementType *reprise::runtime::findElementType(std::string_view name) {
  const ElementType *type =
      std::find_if(std::begin(kTypes), std::end(kTypes),
                   [&](const ElementType &t) { return name == t.name; });
  return type == std::end(kTypes) ? nullptr : type;
}

bool reprise::runtime::allFinite(const float *values, int64_t count) {
  constexpr uint32_t kExponent = 0x7F800000;
  uint32_t bad = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t bits;
    memcpy(&bits, values + i, sizeof(bits));
    bad |= uint32_t((bits & kExponent) == kExponent);
  }
  return !bad;
}
