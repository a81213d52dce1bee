//===- CodeCache.h - Machine code, made once --------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TEST_PROGRAMS_CODECACHE_H
#define REPRISE_TEST_PROGRAMS_CODECACHE_H

#include "lib/Target/Tables.h"
#include "reprise/Codegen/CPU/Registers.h"
#include "llvm/ADT/StringMap.h"
#include <map>
#include <set>

namespace reprise::test {

/// Programs of many schedules, of which most kernels have been compiled before:
/// a function that is the same text is machine code once, under a name of its
/// own. What tables say is written for each program.
class CodeCache {
public:
  CodeCache(std::string cpu, codegen::Registers registers)
      : cpu(std::move(cpu)), registers(registers) {}

  /// Links the stages of a pipeline, a module of the phase rt that is consumed,
  /// with the archive of the runtime.
  llvm::LogicalResult link(mlir::ModuleOp stages, llvm::StringRef runtime,
                           llvm::StringRef output);

  size_t size() const { return codes.size(); }

private:
  /// A function, and others with its name, a dot and a suffix.
  struct Code {
    std::string name;   ///< that it was compiled with
    std::string symbol; ///< in the object
    target::ObjectFile object;
    /// What the tables read of the functions, which only return.
    mlir::OwningOpRef<mlir::ModuleOp> stubs;
  };

  llvm::LogicalResult take(mlir::ModuleOp stage);
  llvm::LogicalResult takeTiles(mlir::ModuleOp stage, bool isLowered,
                                const std::string &key);
  llvm::LogicalResult lower(mlir::ModuleOp stage);
  llvm::LogicalResult add(mlir::ModuleOp stage, llvm::StringRef name,
                          const std::string &text);
  llvm::LogicalResult compile(mlir::ModuleOp part, Code &code);
  void use(const Code &code, llvm::StringRef name, mlir::ModuleOp stage);

  std::string cpu;
  codegen::Registers registers;
  llvm::StringMap<Code> codes; ///< by texts
  /// Names of micro-kernels, by what they are for.
  std::map<std::string, std::vector<std::string>> tiles;
  /// Of the program that is linked.
  target::Aliases aliases;
  std::set<const Code *> used;
};

} // namespace reprise::test

#endif // REPRISE_TEST_PROGRAMS_CODECACHE_H
