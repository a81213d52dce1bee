# How every room of the compiler is built: against libMLIR.so and libLLVM.so
# alone (an archive of either beside them would register its options twice),
# with run-time type information and without exceptions, as the packages are,
# and with assertions in our own code.

separate_arguments(REPRISE_LLVM_DEFINITIONS NATIVE_COMMAND "${LLVM_DEFINITIONS}")

# What whoever includes our headers needs, too.
add_library(RepriseLLVM INTERFACE)
target_compile_features(RepriseLLVM INTERFACE cxx_std_17)
target_compile_definitions(RepriseLLVM INTERFACE ${REPRISE_LLVM_DEFINITIONS})
target_include_directories(RepriseLLVM SYSTEM INTERFACE
  "$<BUILD_INTERFACE:${LLVM_INCLUDE_DIRS};${MLIR_INCLUDE_DIRS}>")
target_link_libraries(RepriseLLVM INTERFACE RepriseABI MLIR LLVM)
export_reprise_library(RepriseLLVM)

# And what is our own business.
add_library(RepriseOptions INTERFACE)
target_compile_options(RepriseOptions INTERFACE
  -fno-exceptions -Wall -Wextra -Wno-unused-parameter)

# Headers of MLIR and LLVM are most of what a file of ours has a compiler read.
# Many files share them, so they are read once. Our own headers are not among
# them: what is changed every day would have everything built again. Without,
# each file has to include all that it needs.
option(REPRISE_PRECOMPILED_HEADERS "Read the headers of MLIR once for all files"
  ${PROJECT_IS_TOP_LEVEL})
if(REPRISE_PRECOMPILED_HEADERS)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled.cpp CONTENT "")
  add_library(ReprisePrecompiled OBJECT ${PROJECT_BINARY_DIR}/precompiled.cpp)
  target_link_libraries(ReprisePrecompiled PRIVATE RepriseOptions RepriseLLVM)
  target_precompile_headers(ReprisePrecompiled PRIVATE
    <mlir/Dialect/Arith/IR/Arith.h>
    <mlir/Dialect/Func/IR/FuncOps.h>
    <mlir/Dialect/GPU/IR/GPUDialect.h>
    <mlir/Dialect/LLVMIR/LLVMDialect.h>
    <mlir/Dialect/Linalg/IR/Linalg.h>
    <mlir/Dialect/Math/IR/Math.h>
    <mlir/Dialect/MemRef/IR/MemRef.h>
    <mlir/Dialect/SCF/IR/SCF.h>
    <mlir/Dialect/Tensor/IR/Tensor.h>
    <mlir/Dialect/Vector/IR/VectorOps.h>
    <mlir/IR/BuiltinOps.h>
    <mlir/IR/DialectImplementation.h>
    <mlir/IR/ImplicitLocOpBuilder.h>
    <mlir/IR/PatternMatch.h>
    <mlir/IR/Remarks.h>
    <mlir/IR/TypeUtilities.h>
    <mlir/Parser/Parser.h>
    <mlir/Pass/PassManager.h>
    <llvm/ADT/MapVector.h>
    <llvm/ADT/StringExtras.h>
    <llvm/ADT/StringSet.h>
    <llvm/ADT/TypeSwitch.h>
    <llvm/Support/FileSystem.h>
    <llvm/Support/Format.h>
    <llvm/Support/JSON.h>
    <llvm/Support/MathExtras.h>
    <llvm/Support/MemoryBuffer.h>
    <llvm/Support/WithColor.h>)
  # Of the same bytes whenever it is made, so that ccache knows it again.
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    target_compile_options(ReprisePrecompiled PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endif()

# precompile_headers(<target>): it takes them, as the code of a library, which
# an executable may hold, too. It has RepriseOptions and RepriseLLVM.
function(precompile_headers name)
  if(REPRISE_PRECOMPILED_HEADERS)
    target_compile_options(${name} PRIVATE -fPIC)
    target_precompile_headers(${name} REUSE_FROM ReprisePrecompiled)
  endif()
endfunction()

# add_reprise_library(<name> [INTERNAL] <source>... [DEPENDS <IncGen>...]
#                     [LINK <library>...]), INTERNAL if others never link it
function(add_reprise_library name)
  cmake_parse_arguments(ARG "INTERNAL" "" "DEPENDS;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name}
    PRIVATE $<BUILD_INTERFACE:RepriseOptions>
    PUBLIC ${ARG_LINK} RepriseLLVM)
  precompile_headers(${name})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  if(NOT ARG_INTERNAL)
    export_reprise_library(${name})
  endif()
endfunction()

# add_reprise_tool(<name> <source>... [LINK <library>...])
function(add_reprise_tool name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE RepriseOptions ${ARG_LINK} RepriseLLVM)
  precompile_headers(${name})
endfunction()

# Passes.td of a room: declarations, and the page docs/generated/<room>-passes.md.
function(add_reprise_passes room)
  set(LLVM_TARGET_DEFINITIONS Passes.td)
  mlir_tablegen(Passes.h.inc -gen-pass-decls -name ${room})
  add_public_tablegen_target(Reprise${room}PassesIncGen)
  add_mlir_doc(Passes ${room}Passes ./ -gen-pass-doc)
endfunction()
