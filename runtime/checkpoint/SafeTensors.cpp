//===- SafeTensors.cpp - Reading published weights ------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The format is that of the safetensors README; what is refused is what its
// reference implementation refuses (validate in safetensors/src/tensor.rs).
//
//===----------------------------------------------------------------------===//

#include "SafeTensors.h"

#include "runtime/base/FileKind.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <climits>
#include <cstring>
#include <sys/stat.h>

using namespace reprise::runtime;

static constexpr int64_t kLongestHeader = 100'000'000;
/// The format's bound of dimensions and offsets.
static constexpr int64_t kLargestNumber = INT64_C(1) << 48;

//===----------------------------------------------------------------------===//
// One file
//===----------------------------------------------------------------------===//

/// A whole number of the format; anything else is an error.
static bool readNumber(const JsonDocument &header, const JsonValue &value,
                       const char *tensor, const char *what, int64_t &number,
                       Error &error) {
  if (value.asInteger(number) && number >= 0 && number <= kLargestNumber)
    return true;
  std::string_view text = value.text();
  bool isNumber = value.is(JsonKind::Number);
  return header.fail(value, error,
                     "tensor '%s' needs %s from 0 to %" PRId64 ", but got %.*s",
                     tensor, what, kLargestNumber,
                     isNumber ? int(std::min<size_t>(text.size(), 40)) : 40,
                     isNumber ? text.data() : value.kindName());
}

/// The bytes of a tensor; false if they are too many to count, or no whole
/// number.
static bool countBytes(const TensorEntry &tensor, int64_t &bytes) {
  // A dimension of 0 leaves nothing, however large the others are.
  int64_t bits = tensor.type->bits;
  bool isEmpty = std::find(tensor.shape, tensor.shape + tensor.rank, 0) !=
                 tensor.shape + tensor.rank;
  for (int i = 0; i < tensor.rank && !isEmpty; ++i)
    if (__builtin_mul_overflow(bits, tensor.shape[i], &bits))
      return false;
  bytes = isEmpty ? 0 : bits / 8;
  return isEmpty || bits % 8 == 0;
}

/// Whether a member of the header has what a tensor has, and no more.
static bool checkEntry(const JsonDocument &header, const JsonItem &item,
                       Error &error) {
  std::string_view name = item.key.text();
  int shown = int(std::min<size_t>(name.size(), 200));
  if (name.find('\0') != name.npos)
    return header.fail(item.key, error, "needs a name without the character 0");
  for (JsonItem member : item.value)
    if (member.key.text() != "dtype" && member.key.text() != "shape" &&
        member.key.text() != "data_offsets")
      return header.fail(member.key, error,
                         "tensor '%.*s' needs dtype, shape and data_offsets, "
                         "but got '%.*s'",
                         shown, name.data(),
                         int(std::min<size_t>(member.key.text().size(), 40)),
                         member.key.text().data());
  JsonValue dtype = item.value.find("dtype"), shape = item.value.find("shape");
  JsonValue offsets = item.value.find("data_offsets");
  if (!dtype.is(JsonKind::String) || !shape.is(JsonKind::Array) ||
      !offsets.is(JsonKind::Array) || offsets.size() != 2)
    return header.fail(item.key, error,
                       "tensor '%.*s' needs a string dtype, an array shape and "
                       "two data_offsets, but got %s, %s and %s of %" PRId64,
                       shown, name.data(), dtype.kindName(), shape.kindName(),
                       offsets.kindName(), offsets.size());
  if (!findElementType(dtype.text()))
    return header.fail(
        dtype, error, "tensor '%.*s' has the unknown dtype '%.*s'", shown,
        name.data(), int(std::min<size_t>(dtype.text().size(), 40)),
        dtype.text().data());
  if (shape.size() > TensorEntry::kMostDimensions)
    return header.fail(shape, error,
                       "tensor '%.*s' needs at most %d dimensions, but got "
                       "%" PRId64,
                       shown, name.data(), TensorEntry::kMostDimensions,
                       shape.size());
  return true;
}

/// Reads the shape of a tensor whose name and type are known, and where its
/// bytes are, which are as many as it needs.
static bool readPlace(const JsonDocument &header, const JsonValue &value,
                      int64_t dataBegin, TensorEntry &entry, Error &error) {
  JsonValue shape = value.find("shape"), offsets = value.find("data_offsets");
  for (JsonItem size : shape)
    if (!readNumber(header, size.value, entry.name, "dimensions",
                    entry.shape[entry.rank++], error))
      return false;
  int64_t begin = 0, end = 0, bytes = 0;
  JsonValue last = (*++offsets.begin()).value;
  if (!readNumber(header, (*offsets.begin()).value, entry.name, "an offset",
                  begin, error) ||
      !readNumber(header, last, entry.name, "an offset", end, error))
    return false;
  if (!countBytes(entry, bytes))
    return header.fail(shape, error,
                       "tensor '%s' needs a whole number of bytes below 2^60, "
                       "but got the shape %s of %s",
                       entry.name, ShapeText(entry.shape, entry.rank).chars,
                       entry.type->name);
  if (end - begin != bytes)
    return header.fail(offsets, error,
                       "tensor '%s', %s of %s, needs %" PRId64
                       " bytes, but got %" PRId64 ": %" PRId64 " to %" PRId64,
                       entry.name, ShapeText(entry.shape, entry.rank).chars,
                       entry.type->name, bytes, end - begin, begin, end);
  entry.offset = dataBegin + begin;
  entry.bytes = bytes;
  return true;
}

bool TensorSet::addEntry(const JsonDocument &header, const JsonItem &item,
                         int64_t dataBegin, Error &error) {
  if (!checkEntry(header, item, error))
    return false;
  std::string_view name = item.key.text();
  TensorEntry tensor = {};
  tensor.file = numFiles() - 1;
  tensor.type = findElementType(item.value.find("dtype").text());
  tensor.name = static_cast<char *>(malloc(name.size() + 1));
  if (!tensor.name || !tensors.push(tensor)) {
    free(tensor.name);
    return header.fail(item.key, error, "no memory left for a tensor");
  }
  // From here on the name is the set's.
  memcpy(tensor.name, name.data(), name.size());
  tensor.name[name.size()] = '\0';
  return readPlace(header, item.value, dataBegin, tensors.back(), error);
}

bool TensorSet::checkTiling(TensorEntry *first, int64_t dataBegin,
                            Error &error) const {
  const MappedFile &file = files[files.size() - 1];
  const TensorEntry *last = tensors.end();
  std::sort(first, const_cast<TensorEntry *>(last),
            [](const TensorEntry &a, const TensorEntry &b) {
              return a.offset != b.offset ? a.offset < b.offset
                                          : a.bytes < b.bytes;
            });
  int64_t end = dataBegin;
  for (const TensorEntry *t = first; t != last; ++t) {
    if (t->offset != end)
      return error.set(
          "'%s': tensor '%s' needs to begin at byte %" PRId64
          " of the data, where %s%s%s, but begins at %" PRId64
          " and %s %" PRId64 " bytes",
          file.path, t->name, end - dataBegin, t == first ? "they begin" : "'",
          t == first ? "" : (t - 1)->name, t == first ? "" : "' ends",
          t->offset - dataBegin, t->offset < end ? "shares" : "leaves out",
          t->offset < end ? end - t->offset : t->offset - end);
    end += t->bytes;
  }
  if (end != file.size)
    return error.set("'%s' needs %" PRId64 " bytes, %" PRId64
                     " of header and %" PRId64 " of tensors, but got %" PRId64,
                     file.path, end, dataBegin, end - dataBegin, file.size);
  return true;
}

/// Refuses what is often found where weights are expected, by its name. Where a
/// header may begin, the length before it may have any bytes.
static bool checkKind(const MappedFile &file, Error &error) {
  size_t size = size_t(std::min<int64_t>(file.size, kBytesOfKind));
  const char *text = reinterpret_cast<const char *>(file.data);
  const bool hasLength = size > 8 && text[8] == '{';
  const FileKind *kind = hasLength ? findKindOfNumbers({text, size}, file.size,
                                                       text[file.size - 1])
                                   : findKind({text, size}, file.size);
  return !kind || kind->isSafetensors() ||
         kind->refuse(file.path, ", but only safetensors is read", error);
}

/// Refuses tensors that are laid out for a library that is not known.
static bool checkFormat(const JsonDocument &header, const JsonValue &format,
                        Error &error) {
  if (!format)
    return true; // Need not be there.
  std::string_view text = format.text();
  for (const char *known : {"pt", "tf", "flax", "mlx"})
    if (text == known)
      return true;
  return header.fail(format, error,
                     "__metadata__ needs the format pt, tf, flax or mlx, but "
                     "got '%.*s'",
                     int(std::min<size_t>(text.size(), 40)), text.data());
}

/// Refuses a file that is too short, or does not have a header that it has room
/// for.
static bool checkHeader(const MappedFile &file, Error &error) {
  const char *path = file.path;
  if (file.size < 9)
    return error.set("'%s' is no safetensors file: it needs at least 9 bytes, "
                     "but got %" PRId64,
                     path, file.size);
  uint64_t length = file.at<uint64_t>(0);
  if (length > uint64_t(kLongestHeader))
    return error.set("'%s' is no safetensors file: its header needs at most "
                     "%" PRId64 " bytes, but its length is %" PRIu64,
                     path, kLongestHeader, length);
  if (int64_t(length) > file.size - int64_t(sizeof(length)))
    return error.set("'%s' is no safetensors file, or cut off: it has %" PRId64
                     " bytes of at least %" PRIu64 ", %zu for a length and "
                     "%" PRIu64 " for its header",
                     path, file.size, length + sizeof(length), sizeof(length),
                     length);
  if (file.data[sizeof(length)] != '{')
    return error.set("'%s' is no safetensors file: its header needs to begin "
                     "with '{', but got the byte 0x%02x",
                     path, file.data[sizeof(length)]);
  return true;
}

/// Whether what stands beside the tensors is text alone, of a known format.
static bool checkMetadata(const JsonDocument &header, const JsonValue &value,
                          Error &error) {
  bool strings = value.is(JsonKind::Object);
  for (JsonItem member : value)
    strings = strings && member.value.is(JsonKind::String);
  if (!strings)
    return header.fail(value, error,
                       "__metadata__ needs strings and nothing else");
  return checkFormat(header, value.find("format"), error);
}

bool TensorSet::addFile(const char *path, Error &error) {
  MappedFile file;
  if (!file.map(path, error))
    return false;
  if (!files.push(file)) {
    file.unmap();
    return error.set("no memory left for the name of '%s'", path);
  }
  if (!checkKind(file, error) || !checkHeader(file, error))
    return false;
  const auto length = file.at<uint64_t>(0);
  const int64_t dataBegin = int64_t(sizeof(length)) + int64_t(length);
  JsonDocument header;
  auto *text = reinterpret_cast<const char *>(file.data) + sizeof(length);
  // The file's own path lives as long as it does.
  if (!header.parse({text, size_t(length)}, file.path, error, sizeof(length)))
    return false;
  size_t first = tensors.size();
  for (JsonItem item : header.root()) {
    bool isTensor = item.key.text() != "__metadata__";
    if (isTensor ? !addEntry(header, item, dataBegin, error)
                 : !checkMetadata(header, item.value, error))
      return false;
  }
  return checkTiling(tensors.begin() + first, dataBegin, error);
}

//===----------------------------------------------------------------------===//
// Many files
//===----------------------------------------------------------------------===//

int TensorSet::fileNumber(const char *path) const {
  int number = 0;
  while (number < numFiles() && strcmp(files[size_t(number)].path, path))
    ++number;
  return number;
}

/// Whether the file of a tensor is one beside the index.
static bool checkPartName(const JsonDocument &index, const JsonValue &file,
                          Error &error) {
  if (!file.is(JsonKind::String))
    return index.fail(file, error,
                      "the file of a tensor needs to be a string, but got %s",
                      file.kindName());
  std::string_view name = file.text();
  int shown = int(std::min<size_t>(name.size(), 200));
  return (!name.empty() && name.find('/') == name.npos && name != "." &&
          name != ".." && name.find('\0') == name.npos) ||
         index.fail(file, error,
                    "the file of a tensor needs to be a name in the folder of "
                    "the index, but got a string '%.*s'",
                    shown, name.data());
}

bool TensorSet::addIndex(const char *path, Error &error) {
  struct Unmap {
    MappedFile &file;
    ~Unmap() { file.unmap(); }
  };
  MappedFile index;
  Unmap unmap = {index};
  JsonDocument document;
  if (!index.map(path, error) || !checkKind(index, error) ||
      !document.parse(
          {reinterpret_cast<const char *>(index.data), size_t(index.size)},
          path, error))
    return false;
  JsonValue map = document.root().find("weight_map");
  if (!map.is(JsonKind::Object) || map.size() == 0)
    return document.fail(map, error,
                         "an index needs a weight_map, an object with the file "
                         "of each tensor, but got %s of %" PRId64,
                         map.kindName(), map.size());
  const char *slash = strrchr(path, '/');
  int folder = slash ? int(slash - path) + 1 : 0;
  for (JsonItem item : map) {
    std::string_view name = item.value.text();
    if (!checkPartName(document, item.value, error))
      return false;
    char file[PATH_MAX];
    if (snprintf(file, sizeof(file), "%.*s%.*s", folder, path, int(name.size()),
                 name.data()) >= int(sizeof(file)))
      return document.fail(item.value, error, "the name is too long");
    Error reason;
    if (fileNumber(file) == numFiles() && !addFile(file, reason))
      return document.fail(item.value, error, "%s", reason.text);
  }
  if (!sortByName(error))
    return false;
  for (JsonItem item : map) {
    std::string_view name = item.value.text(), tensor = item.key.text();
    const TensorEntry *entry = find(tensor);
    const char *path = entry ? pathOf(*entry) : "";
    if (!entry || name != path + folder)
      return document.fail(item.key, error, "'%.*s%.*s' has no tensor '%.*s'",
                           folder, files[0].path, int(name.size()), name.data(),
                           int(std::min<size_t>(tensor.size(), 200)),
                           tensor.data());
  }
  return true;
}

bool TensorSet::sortByName(Error &error) {
  std::sort(tensors.begin(), tensors.end(),
            [](const TensorEntry &a, const TensorEntry &b) {
              return strcmp(a.name, b.name) < 0;
            });
  for (size_t i = 1; i < tensors.size(); ++i)
    if (!strcmp(tensors[i - 1].name, tensors[i].name))
      return error.set("tensor '%s' is in '%s' and in '%s'", tensors[i].name,
                       pathOf(tensors[i - 1]), pathOf(tensors[i]));
  return true;
}

/// What to say of a folder whose weights are in another format.
static const char *otherWeightsIn(const char *folder) {
  char path[PATH_MAX];
  struct stat info;
  for (const char *name :
       {"pytorch_model.bin", "pytorch_model.bin.index.json"}) {
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    if (stat(path, &info) == 0)
      return "; pytorch_model.bin is not read, only safetensors is";
  }
  return "";
}

bool TensorSet::open(const char *path, Error &error) {
  char inFolder[PATH_MAX];
  struct stat info;
  if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
    snprintf(inFolder, sizeof(inFolder), "%s/model.safetensors", path);
    if (stat(inFolder, &info) != 0)
      snprintf(inFolder, sizeof(inFolder), "%s/model.safetensors.index.json",
               path);
    if (stat(inFolder, &info) != 0)
      return error.set("'%s' needs a file model.safetensors or "
                       "model.safetensors.index.json, but has neither%s",
                       path, otherWeightsIn(path));
    path = inFolder;
  }
  size_t length = strlen(path);
  const char *slash = strrchr(path, '/');
  if (!strcmp(slash ? slash + 1 : path, "config.json"))
    return error.set("'%s' is no weights file; name its folder, or the "
                     ".safetensors file",
                     path);
  bool isIndex = length > 5 && !strcmp(path + length - 5, ".json");
  return isIndex ? addIndex(path, error)
                 : addFile(path, error) && sortByName(error);
}

const TensorEntry *TensorSet::find(std::string_view name) const {
  const TensorEntry *entry =
      std::lower_bound(begin(), end(), name,
                       [](const TensorEntry &tensor, std::string_view wanted) {
                         return std::string_view(tensor.name) < wanted;
                       });
  return entry != end() && name == entry->name ? entry : nullptr;
}

TensorSet::~TensorSet() {
  for (TensorEntry &tensor : tensors)
    free(tensor.name);
  for (MappedFile &file : files)
    file.unmap();
}

ShapeText::ShapeText(const int64_t *shape, int rank) {
  int length = snprintf(chars, sizeof(chars), "[");
  for (int i = 0; i < rank; ++i)
    length += snprintf(chars + length, sizeof(chars) - size_t(length),
                       "%s%" PRId64, i ? ", " : "", shape[i]);
  snprintf(chars + length, sizeof(chars) - size_t(length), "]");
}
