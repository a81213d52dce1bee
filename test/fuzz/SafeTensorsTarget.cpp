//===- SafeTensorsTarget.cpp - Published weights --------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The input is a .safetensors file; or, if it begins with '{', an index, and
// behind a zero the file a.safetensors beside it.
//
//===----------------------------------------------------------------------===//

#include "Target.h"

#include "runtime/checkpoint/SafeTensors.h"

#include <vector>

using namespace reprise::runtime;
using namespace reprise::fuzz;

/// Every byte of the data belongs to one tensor, which its name finds.
static void checkAll(const TensorSet &set) {
  int64_t bytes = 0, room = 0;
  for (int i = 0; i < set.numFiles(); ++i)
    room += set.file(i).size - 8 - set.file(i).at<int64_t>(0);
  for (const TensorEntry &tensor : set) {
    const MappedFile &file = set.file(tensor.file);
    require(tensor.offset >= 8 && tensor.bytes >= 0 &&
                tensor.bytes <= file.size - tensor.offset,
            "a tensor is in its file");
    require(set.find(tensor.name) == &tensor, "a name finds its tensor");
    require(ShapeText(tensor.shape, tensor.rank).chars[0] == '[',
            "a shape has a text");
    bytes += tensor.bytes;
    if (!tensor.type->convert)
      continue;
    int64_t count = tensor.bytes * 8 / tensor.type->bits;
    std::vector<float> values(static_cast<size_t>(count));
    tensor.type->convert(set.bytesOf(tensor), count, values.data());
  }
  require(bytes == room, "tensors cover the data");
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const Folder folder;
  std::string path;
  if (size > 0 && data[0] == '{') {
    Parts input(data, size);
    folder.write("a.safetensors", input.second);
    path = folder.write("index.json", input.first);
  } else {
    path = folder.write("b.safetensors",
                        {reinterpret_cast<const char *>(data), size});
  }
  Error error;
  TensorSet set;
  if (set.open(path.c_str(), error))
    checkAll(set);
  else
    require(error.text[0], "a refusal says why");
  return 0;
}
