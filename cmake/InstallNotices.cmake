# Copies the licences of the shared libraries beside the programs: those of the
# packages that they are from. Run by `cmake --install`, with `libdir` and
# `docdir`; DESTDIR is where CPack collects files.

set(prefix $ENV{DESTDIR}${CMAKE_INSTALL_PREFIX})
file(GLOB copied ${prefix}/${libdir}/*.so.*)
foreach(library IN LISTS copied)
  if(IS_SYMLINK ${library})
    continue()
  endif()
  cmake_path(GET library FILENAME name)
  execute_process(COMMAND dpkg-query --search */${name}
    OUTPUT_VARIABLE found ERROR_QUIET)
  string(REGEX MATCH "^[^:,]+" package "${found}")
  set(notice /usr/share/doc/${package}/copyright)
  if(NOT package OR NOT EXISTS ${notice})
    message(FATAL_ERROR "no licence found of ${name}: no package has it")
  endif()
  file(INSTALL ${notice} DESTINATION ${prefix}/${docdir}/libraries RENAME ${package})
endforeach()
