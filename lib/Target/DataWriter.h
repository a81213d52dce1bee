//===- DataWriter.h - Constant data of a module -----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_TARGET_DATAWRITER_H
#define REPRISE_LIB_TARGET_DATAWRITER_H

#include "Rows.h"
#include "Tables.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/Module.h"

namespace reprise::target {

/// Puts arrays of rows, text and bytes into an LLVM module as constant data,
/// and gives their addresses.
class DataWriter : public ConstantMaker {
public:
  /// \param aliases  the names of functions whose code others have, too.
  /// \param stage    of a pipeline, the one that the data is of.
  DataWriter(llvm::Module &module, const Aliases &aliases,
             std::optional<int64_t> stage = std::nullopt)
      : ConstantMaker(module.getContext()), module(module), aliases(aliases),
        stage(stage) {}

  /// The address of `text`, one copy of each.
  Typed<const char *> string(llvm::StringRef text);
  /// The address of `data`, aligned for any type; text ends with a 0.
  llvm::Constant *bytes(llvm::StringRef data, llvm::StringRef name,
                        bool isText);
  /// The address of a row of its own.
  template <typename T>
  Typed<const T *> address(const Typed<T> &row, llvm::StringRef name) {
    return {global(row.constant, name)};
  }
  /// The address of an array of constants, null if there are none.
  template <typename T>
  Typed<const T *> table(llvm::ArrayRef<Typed<T>> rows, llvm::StringRef name) {
    if (rows.empty())
      return null<const T *>();
    auto *array = llvm::ArrayType::get(type<T>(), rows.size());
    auto elements = llvm::map_to_vector(
        rows, [](const Typed<T> &row) { return row.constant; });
    return {global(llvm::ConstantArray::get(array, elements), name)};
  }
  template <typename T>
  Typed<const T *> table(const llvm::SmallVectorImpl<Typed<T>> &rows,
                         llvm::StringRef name) {
    return table(llvm::ArrayRef<Typed<T>>(rows), name);
  }
  /// The address of a function of the code, null without a name.
  template <typename Function>
  Typed<Function> function(llvm::StringRef name) {
    return name.empty() ? null<Function>() : Typed<Function>{getFunction(name)};
  }

  /// Bytes of the arena.
  Typed<RepriseBuffer> place(int64_t offset, int64_t bytes) const {
    using B = Fields<RepriseBuffer>;
    return Row<RepriseBuffer>{*this, B::offset(offset), B::bytes(bytes)};
  }
  Typed<RepriseBuffer> buffer(rt::BufferOp op) const {
    return op ? place(op.getOffset(), getTypeBytes(op.getType())) : place(0, 0);
  }

private:
  llvm::GlobalVariable *global(llvm::Constant *value, llvm::StringRef name);
  llvm::Function *getFunction(llvm::StringRef name);

  llvm::Module &module;
  const Aliases &aliases;
  std::optional<int64_t> stage;
  llvm::StringMap<llvm::Constant *> strings;
};

/// The address of the tables that a GPU has beside those of the runtime.
Typed<const RepriseCudaModule *> writeDevice(DataWriter &data,
                                             mlir::ModuleOp source,
                                             const Tables &tables,
                                             const DeviceImage &image);

} // namespace reprise::target

#endif // REPRISE_LIB_TARGET_DATAWRITER_H
