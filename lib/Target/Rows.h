//===- Rows.h - Structs of the interface as constants -----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A row is a struct of the interface as a constant of LLVM. Its fields are
// given by name, in any order; their order and types are those of the
// definitions (reprise/ABI/*.def), so the runtime finds each where it looks for
// it:
//
//   using B = Fields<RepriseBuffer>;
//   Row<RepriseBuffer> row{constants, B::offset(64), B::bytes(4)};
//
// Several fields may be given as a tuple of them. A field that is missing,
// given twice or of another type does not compile. Braces have their elements
// evaluated in order: the constants of a module are the same whichever compiler
// made this one.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_TARGET_ROWS_H
#define REPRISE_LIB_TARGET_ROWS_H

#include "reprise/ABI/Model.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Constants.h"
#include <cstddef>
#include <tuple>
#include <type_traits>

namespace reprise::target {

/// A constant that is a T in C: `const char *`, `RepriseBuffer`, ...
template <typename T>
struct Typed {
  llvm::Constant *constant = nullptr;
};

/// What a field of type T is given: numbers as they are, arrays as their
/// elements, anything else as a constant.
template <typename T, typename = void>
struct Input {
  using Type = Typed<T>;
};
template <typename T>
struct Input<T, std::enable_if_t<std::is_integral_v<T>>> {
  using Type = int64_t;
};
template <typename T>
struct Input<T, std::enable_if_t<std::is_floating_point_v<T>>> {
  using Type = double;
};
template <typename T, size_t N>
struct Input<T[N]> {
  using Type = llvm::ArrayRef<typename Input<T>::Type>;
};

/// The value of a field of type T. That of an array is not copied.
template <typename T>
struct Field {
  using CType = T;
  explicit Field(typename Input<T>::Type value) : value(value) {}
  typename Input<T>::Type value;
};

/// How many of `Given` are `F`.
template <typename F, typename... Given>
constexpr int kTimesGiven = (0 + ... + std::is_same_v<F, Given>);

/// The fields of a struct of the interface, a type for each.
template <typename Struct>
struct Fields;
#define REPRISE_STRUCT(NAME)                                                   \
  template <>                                                                  \
  struct Fields<NAME> {                                                        \
    using Struct = NAME;
#define REPRISE_FIELD(TYPE, NAME)                                              \
  struct NAME : Field<decltype(Struct::NAME)> {                                \
    using Field::Field;                                                        \
    static constexpr size_t kOffset = offsetof(Struct, NAME);                  \
    template <typename... Given>                                               \
    static constexpr bool isGivenOnce() {                                      \
      static_assert(kTimesGiven<NAME, Given...> > 0,                           \
                    "the field '" #NAME "' is missing");                       \
      static_assert(kTimesGiven<NAME, Given...> < 2,                           \
                    "the field '" #NAME "' is given twice");                   \
      return kTimesGiven<NAME, Given...> == 1;                                 \
    }                                                                          \
  };
#define REPRISE_ARRAY(TYPE, SIZE, NAME) REPRISE_FIELD(TYPE, NAME)
#define REPRISE_END(NAME)                                                      \
  }                                                                            \
  ;
#include "reprise/ABI/All.def"

/// The fields of a struct in their order.
template <typename Struct, typename... Fs>
struct FieldList {
  using Type = Struct;
};
template <typename Struct>
struct Order;
#define REPRISE_STRUCT(NAME)                                                   \
  template <>                                                                  \
  struct Order<NAME> : Fields<NAME> {                                          \
    using List = FieldList < NAME
#define REPRISE_FIELD(TYPE, NAME) , NAME
#define REPRISE_ARRAY(TYPE, SIZE, NAME) , NAME
#define REPRISE_END(NAME)                                                      \
  > ;                                                                          \
  }                                                                            \
  ;
#include "reprise/ABI/All.def"

/// Whether each field begins where the one before it ends, so that every data
/// layout of 64-bit machines lays the struct out alike.
template <typename Struct, typename... Fs>
constexpr bool hasNoGaps(FieldList<Struct, Fs...>) {
  size_t end = 0;
  bool isDense = true;
  ((isDense &= Fs::kOffset == end, end += sizeof(typename Fs::CType)), ...);
  return isDense && end == sizeof(Struct);
}

/// Makes constants in a context.
class ConstantMaker {
public:
  explicit ConstantMaker(llvm::LLVMContext &context) : context(context) {}

  /// The type in LLVM of a T in C.
  template <typename T>
  llvm::Type *type() const {
    if constexpr (std::is_integral_v<T>)
      return llvm::Type::getIntNTy(context, 8 * sizeof(T));
    else if constexpr (std::is_same_v<T, float>)
      return llvm::Type::getFloatTy(context);
    else if constexpr (std::is_same_v<T, double>)
      return llvm::Type::getDoubleTy(context);
    else if constexpr (std::is_pointer_v<T>)
      return llvm::PointerType::getUnqual(context);
    else if constexpr (std::is_array_v<T>)
      return llvm::ArrayType::get(type<std::remove_extent_t<T>>(),
                                  std::extent_v<T>);
    else
      return structType(typename Order<T>::List());
  }

  /// `value` as a T in C.
  template <typename T>
  Typed<T> make(const typename Input<T>::Type &value) const {
    if constexpr (std::is_integral_v<T>) {
      return {llvm::ConstantInt::get(type<T>(), uint64_t(value),
                                     std::is_signed_v<T>)};
    } else if constexpr (std::is_floating_point_v<T>) {
      return {llvm::ConstantFP::get(type<T>(), value)};
    } else if constexpr (std::is_array_v<T>) {
      assert(value.size() == std::extent_v<T> && "as many as the array has");
      llvm::SmallVector<llvm::Constant *> elements;
      for (const auto &element : value)
        elements.push_back(make<std::remove_extent_t<T>>(element).constant);
      return {llvm::ConstantArray::get(llvm::cast<llvm::ArrayType>(type<T>()),
                                       elements)};
    } else {
      assert(value.constant && "null is a constant, too");
      return value;
    }
  }

  /// Null, as a T in C.
  template <typename T>
  Typed<T> null() const {
    return {llvm::Constant::getNullValue(type<T>())};
  }

  /// The struct with the fields `given`, which are all of `Fs` in some order.
  template <typename Struct, typename... Fs, typename... Given>
  Typed<Struct> makeStruct(FieldList<Struct, Fs...> list,
                           const std::tuple<Given...> &given) const {
    static_assert(sizeof...(Given) <= sizeof...(Fs),
                  "a field is given that the struct does not have");
    if constexpr ((Fs::template isGivenOnce<Given...>() && ...))
      return {llvm::ConstantStruct::get(
          structType(list),
          {make<typename Fs::CType>(std::get<Fs>(given).value).constant...})};
    else
      return {};
  }

private:
  template <typename Struct, typename... Fs>
  llvm::StructType *structType(FieldList<Struct, Fs...>) const {
    static_assert(hasNoGaps(FieldList<Struct, Fs...>()),
                  "a gap between fields needs a field 'reserved'");
    return llvm::StructType::get(context, {type<typename Fs::CType>()...});
  }

  llvm::LLVMContext &context;
};

/// What a row is given: a field, or several in a tuple.
template <typename F>
std::tuple<F> asTuple(const F &field) {
  return {field};
}
template <typename... Fs>
const std::tuple<Fs...> &asTuple(const std::tuple<Fs...> &fields) {
  return fields;
}

/// A constant that has these fields, each of the struct's once.
template <typename Struct>
struct Row : Typed<Struct> {
  template <typename... Given>
  explicit Row(const ConstantMaker &constants, const Given &...given)
      : Typed<Struct>(constants.makeStruct(typename Order<Struct>::List(),
                                           std::tuple_cat(asTuple(given)...))) {
  }
};

} // namespace reprise::target

#endif // REPRISE_LIB_TARGET_ROWS_H
