//===- SafeTensors.h - Reading published weights ----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_CHECKPOINT_SAFETENSORS_H
#define REPRISE_RUNTIME_CHECKPOINT_SAFETENSORS_H

#include "ElementTypes.h"

#include "runtime/base/MappedFile.h"
#include "runtime/text/Json.h"

namespace reprise::runtime {

/// One tensor of a file.
struct TensorEntry {
  static constexpr int kMostDimensions = 8;

  char *name; ///< Of the set.
  const ElementType *type;
  int file; ///< Index in the set.
  int rank;
  int64_t shape[kMostDimensions];
  int64_t offset, bytes; ///< In the file.

  /// Where the scales of its elements are, if it has some: those of a matrix,
  /// in rows, one for each `rows` and `columns` of it (see addScales).
  struct Scales {
    const TensorEntry *entry;
    int64_t matrix, firstRow; ///< Of a stack, where this tensor begins in it.
    int64_t first;            ///< That matrix's first scale.
    int64_t rows, columns;    ///< Of a block.
  } scales;
};

/// The tensors of one file, or of all files that an index names.
class TensorSet {
public:
  TensorSet() = default;
  TensorSet(const TensorSet &) = delete;
  TensorSet &operator=(const TensorSet &) = delete;
  ~TensorSet();

  /// Opens, once, a .safetensors file, an index of such files (.json), or a
  /// folder: its model.safetensors or model.safetensors.index.json.
  ///
  /// The files are mapped, not read. But their headers are: a tensor's bytes
  /// must be as many as its shape and type need, and all tensors together must
  /// cover a file's data without hole or overlap; an index must name files of
  /// its own folder, which exist and have what it says.
  bool open(const char *path, Error &error);

  int numFiles() const { return int(files.size()); }
  const MappedFile &file(int i) const { return files[size_t(i)]; }

  /// In the order of their names.
  const TensorEntry *begin() const { return tensors.begin(); }
  const TensorEntry *end() const { return tensors.end(); }

  /// Takes out of all names the parts of modules that wrap others, such as
  /// `_orig_mod.`, wherever they stand. \returns how many names had any; -1, if
  /// two tensors have one name then.
  int unwrap(Error &error);

  /// The tensor of this name, or null.
  const TensorEntry *find(std::string_view name) const;

  const unsigned char *bytesOf(const TensorEntry &tensor) const {
    return files[size_t(tensor.file)].data + tensor.offset;
  }
  const char *pathOf(const TensorEntry &tensor) const {
    return files[size_t(tensor.file)].path;
  }

private:
  bool addFile(const char *path, Error &error);
  bool addIndex(const char *path, Error &error);
  /// Of the open file with this path; `numFiles()` if there is none.
  int fileNumber(const char *path) const;
  bool addEntry(const JsonDocument &header, const JsonItem &item,
                int64_t dataBegin, Error &error);
  bool checkTiling(TensorEntry *first, int64_t dataBegin, Error &error) const;
  bool sortByName(Error &error);

  List<MappedFile> files;
  List<TensorEntry> tensors;
};

/// "[2, 3]", for messages; valid until the end of the full expression.
struct ShapeText {
  ShapeText(const int64_t *shape, int rank);
  char chars[192];
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_CHECKPOINT_SAFETENSORS_H
