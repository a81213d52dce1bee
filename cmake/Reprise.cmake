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

# add_reprise_library(<name> [INTERNAL] <source>... [DEPENDS <IncGen>...]
#                     [LINK <library>...]), INTERNAL if others never link it
function(add_reprise_library name)
  cmake_parse_arguments(ARG "INTERNAL" "" "DEPENDS;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name}
    PRIVATE $<BUILD_INTERFACE:RepriseOptions>
    PUBLIC ${ARG_LINK} RepriseLLVM)
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
endfunction()

# Passes.td of a room: declarations, and the page docs/generated/<room>-passes.md.
function(add_reprise_passes room)
  set(LLVM_TARGET_DEFINITIONS Passes.td)
  mlir_tablegen(Passes.h.inc -gen-pass-decls -name ${room})
  add_public_tablegen_target(Reprise${room}PassesIncGen)
  add_mlir_doc(Passes ${room}Passes ./ -gen-pass-doc)
endfunction()
