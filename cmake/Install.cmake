# What `cmake --install` copies, by component:
#
#   programs     reprisec and its friends, the runtime archive that reprisec
#                links, examples and pages; runs with libMLIR and libLLVM
#   development  headers, libraries and find_package(Reprise)
#   libraries    the shared libraries of others that the programs need, for
#                archives that run where LLVM 22 is not packaged; only by name
#
# utils/package makes archives and Debian packages of them.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(CMAKE_INSTALL_DOCDIR ${CMAKE_INSTALL_DATAROOTDIR}/doc/reprise)

# Of the programs. A runpath would not count for libraries of libraries.
file(RELATIVE_PATH REPRISE_LIBRARIES_BESIDE
  ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
set(CMAKE_INSTALL_RPATH "$ORIGIN/${REPRISE_LIBRARIES_BESIDE}")
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)

# export_reprise_library(RepriseFoo [<component>]): is Reprise::Foo, for those who
# add this project to theirs and for those who find it installed.
function(export_reprise_library name)
  string(REGEX REPLACE "^Reprise" "" short ${name})
  set_target_properties(${name} PROPERTIES EXPORT_NAME ${short})
  add_library(Reprise::${short} ALIAS ${name})
  set(component development ${ARGN})
  list(GET component -1 component)
  install(TARGETS ${name} EXPORT Reprise
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${component})
endfunction()

# install_reprise_tool(<name>)
function(install_reprise_tool name)
  target_link_options(${name} PRIVATE LINKER:--disable-new-dtags)
  install(TARGETS ${name} RUNTIME_DEPENDENCY_SET Reprise
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT programs)
endfunction()

# All else, once there are all targets.
function(install_reprise)
  set(config ${CMAKE_INSTALL_LIBDIR}/cmake/Reprise)
  install(DIRECTORY include/reprise ${PROJECT_BINARY_DIR}/include/reprise
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
    FILES_MATCHING PATTERN "*.h" PATTERN "*.def" PATTERN "*.td" PATTERN "*.h.inc"
    PATTERN CMakeFiles EXCLUDE)
  install(DIRECTORY python-free-frontend
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
    FILES_MATCHING PATTERN "*.h" PATTERN examples EXCLUDE)
  install(EXPORT Reprise NAMESPACE Reprise:: FILE RepriseTargets.cmake
    DESTINATION ${config} COMPONENT development)
  # Not where find_package looks when the build is in PATH.
  set(made ${PROJECT_BINARY_DIR}/package)
  configure_package_config_file(cmake/RepriseConfig.cmake.in ${made}/RepriseConfig.cmake
    INSTALL_DESTINATION ${config} PATH_VARS CMAKE_INSTALL_INCLUDEDIR)
  # Before 1.0.0, every minor version may differ.
  write_basic_package_version_file(${made}/RepriseConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
  install(FILES ${made}/RepriseConfig.cmake ${made}/RepriseConfigVersion.cmake
    DESTINATION ${config} COMPONENT development)

  install(DIRECTORY python-free-frontend/examples
    DESTINATION ${CMAKE_INSTALL_DATADIR}/reprise COMPONENT programs)
  install(FILES README.md LICENSE CHANGELOG.md
    DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT programs)
  # As Debian wants it.
  install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR}
    RENAME copyright COMPONENT programs)
  install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR}-dev
    RENAME copyright COMPONENT development)
  install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT programs
    FILES_MATCHING PATTERN "*.md" PATTERN "*.svg")

  # Any system that has a C++ program has these libraries, of its own kind.
  set(directories)
  foreach(library MLIR LLVM)
    get_target_property(file ${library} LOCATION)
    cmake_path(GET file PARENT_PATH directory)
    list(APPEND directories ${directory})
  endforeach()
  install(RUNTIME_DEPENDENCY_SET Reprise
    PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread|gcc_s|stdc\\+\\+)\\.so"
    DIRECTORIES ${directories}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libraries EXCLUDE_FROM_ALL)
  install(CODE "set(libdir ${CMAKE_INSTALL_LIBDIR})\nset(docdir ${CMAKE_INSTALL_DOCDIR})"
    COMPONENT libraries EXCLUDE_FROM_ALL)
  install(SCRIPT cmake/InstallNotices.cmake COMPONENT libraries EXCLUDE_FROM_ALL)
  configure_file(cmake/Archive.md.in ${made}/README.md @ONLY)
  install(FILES ${made}/README.md DESTINATION . COMPONENT libraries EXCLUDE_FROM_ALL)
endfunction()
