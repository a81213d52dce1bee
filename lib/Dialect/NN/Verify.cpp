//===- Verify.cpp - Shapes by the letters of the descriptions ---*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Verify.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace reprise::nn;

static std::string spell(char letter) {
  if (letter == '.')
    return "...";
  if (letter == 'W')
    return "H*D";
  if (letter == 'X')
    return "G*D";
  return std::string(1, letter);
}

/// "BTC" as "[B, T, C]".
static std::string spell(StringRef letters) {
  return "[" +
         llvm::join(llvm::map_range(letters,
                                    [](char letter) { return spell(letter); }),
                    ", ") +
         "]";
}

static std::string spell(ArrayRef<int64_t> sizes) {
  return "[" +
         llvm::join(
             llvm::map_range(sizes,
                             [](int64_t size) { return std::to_string(size); }),
             ", ") +
         "]";
}

LogicalResult Dims::match(ArrayRef<Shaped> shapes) {
  for (const Shaped &shape : shapes)
    if (failed(matchOne(shape)))
      return failure();
  return success();
}

LogicalResult Dims::matchOne(const Shaped &shape) {
  auto type = cast<RankedTensorType>(shape.value.getType());
  ArrayRef<int64_t> sizes = type.getShape();
  StringRef letters = shape.letters;
  bool dot = letters.consume_front(".");
  auto fail = [&] {
    return op->emitOpError("needs '")
           << shape.name << "' to be " << spell(shape.letters);
  };
  if (dot ? sizes.size() <= letters.size() : sizes.size() != letters.size())
    return fail() << ", but got " << type;

  if (dot) {
    ArrayRef<int64_t> front = sizes.drop_back(letters.size());
    if (leadingOrigin.empty()) {
      leading = front;
      leadingOrigin = shape.name;
    } else if (front != leading) {
      return fail() << " with ... = " << spell(leading) << " from '"
                    << leadingOrigin << "', but got " << spell(front) << " in "
                    << type;
    }
    sizes = sizes.take_back(letters.size());
  }
  for (auto [letter, size] : llvm::zip_equal(letters, sizes)) {
    Binding &binding = bound(letter);
    if (binding.size < 0)
      binding = {size, shape.name};
    else if (binding.size != size)
      return fail() << " with " << spell(letter) << " = " << binding.size
                    << " from '" << binding.origin << "', but got " << size
                    << " in " << type;
  }
  return success();
}

LogicalResult Dims::bindHeads(int64_t heads) {
  const Binding &width = bound('W');
  if (heads < 1 || width.size % heads != 0)
    return op->emitOpError(
               "needs a head count that divides the width, but got ")
           << heads << " heads and the width " << width.size << " of '"
           << width.origin << "'";
  bound('H') = {heads, "heads"};
  bound('D') = {width.size / heads, "heads"};
  return success();
}

LogicalResult Dims::bindHeads(int64_t heads, std::optional<int64_t> kvHeads) {
  if (failed(bindHeads(heads)))
    return failure();
  if (kvHeads && (*kvHeads < 1 || heads % *kvHeads != 0))
    return op->emitOpError("needs a key head count that divides the head "
                           "count, but got ")
           << *kvHeads << " key heads and " << heads << " heads";
  bound('X') = {bound('D').size * kvHeads.value_or(heads),
                kvHeads ? "kv_heads" : "heads"};
  return success();
}

LogicalResult reprise::nn::refuse(Operation *op, ArrayRef<bool> needed,
                                  ArrayRef<unsigned> operands) {
  for (unsigned index : operands)
    if (needed[index])
      return op->emitOpError("has no derivative with respect to operand #")
             << index;
  return success();
}
