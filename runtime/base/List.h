//===- List.h - An array that grows -----------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_BASE_LIST_H
#define REPRISE_RUNTIME_BASE_LIST_H

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <type_traits>

namespace reprise::runtime {

/// Plain values side by side. (A std::vector would need the C++ library.)
template <typename T>
class List {
  static_assert(std::is_trivially_copyable_v<T>, "items move as bytes");

public:
  List() = default;
  List(const List &) = delete;
  List &operator=(const List &) = delete;
  ~List() { free(items); }

  /// Makes room for so many items in all; false if there is no memory left for
  /// them.
  bool reserve(size_t needed) {
    if (needed <= room)
      return true;
    size_t larger = room ? 2 * room : 4;
    if (larger < needed)
      larger = needed;
    void *moved = realloc(items, larger * sizeof(T));
    if (!moved)
      return false;
    items = static_cast<T *>(moved);
    room = larger;
    return true;
  }

  /// Appends `item`; false if there is no memory left for it.
  bool push(const T &item) {
    T copy = item; // It may be one of this list's own, which moves.
    if (!reserve(count + 1))
      return false;
    items[count++] = copy;
    return true;
  }

  /// Appends `number` items that are not this list's own.
  bool append(const T *other, size_t number) {
    if (!reserve(count + number))
      return false;
    if (number)
      memcpy(static_cast<void *>(items + count), other, number * sizeof(T));
    count += number;
    return true;
  }

  /// Has `size` items from now on; new ones have any value.
  bool resize(size_t size) {
    if (!reserve(size))
      return false;
    count = size;
    return true;
  }

  /// Forgets all items, but keeps the room.
  void clear() { count = 0; }

  /// Hands the memory over, to be freed by whoever takes it; null if there is
  /// none. The list is empty then.
  T *release() {
    T *memory = items;
    items = nullptr;
    count = room = 0;
    return memory;
  }

  size_t size() const { return count; }
  bool empty() const { return count == 0; }
  T *begin() { return items; }
  T *end() { return items + count; }
  const T *begin() const { return items; }
  const T *end() const { return items + count; }
  T &back() { return items[count - 1]; }
  T &operator[](size_t i) { return items[i]; }
  const T &operator[](size_t i) const { return items[i]; }

private:
  T *items = nullptr;
  size_t count = 0, room = 0;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_BASE_LIST_H
