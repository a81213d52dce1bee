//===- ElementFormat.cpp - Formats of the elements of types -----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Dialect/RT/ElementFormat.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace reprise;

namespace {
struct TypeOfFormat {
  int32_t code;
  bool (*is)(Type type);
};
} // namespace

static constexpr TypeOfFormat kTypes[] = {
    {REPRISE_F32, [](Type type) { return type.isF32(); }},
    {REPRISE_BF16, [](Type type) { return type.isBF16(); }},
};

const RepriseElementFormat *rt::getElementFormat(Type type) {
  Type element = getElementTypeOrSelf(type);
  for (const TypeOfFormat &each : kTypes)
    if (each.is(element))
      return repriseElementFormat(each.code);
  return nullptr;
}

int32_t rt::getElementCode(Type type) {
  const RepriseElementFormat *format = getElementFormat(type);
  return format ? format->code : kRepriseElementFormats[0].code;
}
