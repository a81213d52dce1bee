# Packages for utils/package, made by CPack of what cmake/Install.cmake installs:
# an archive of all components, and a Debian package each for programs and
# development. What differs between the two kinds is in PackageOptions.cmake.

set(CPACK_PACKAGE_NAME reprise)
set(CPACK_PACKAGE_VENDOR Reprise)
set(CPACK_PACKAGE_CONTACT "Reprise contributors <contributors@reprise.invalid>"
  CACHE STRING "Who answers for packages, as Debian wants it: Name <address>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_FILE_NAME reprise-${PROJECT_VERSION}-linux-x86_64)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_GENERATOR TGZ DEB)
set(CPACK_THREADS 0)
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/PackageOptions.cmake)

set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)

# libc6-dev has what reprisec links a training program with.
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_NAME reprise)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_DEPENDS libc6-dev)
set(CPACK_COMPONENT_PROGRAMS_DESCRIPTION "reprisec compiles the description of a
transformer into a program that trains it, and plans its memory to the byte.")

# What the CMake files of MLIR and LLVM ask for.
set(major ${LLVM_VERSION_MAJOR})
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME reprise-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
string(JOIN ", " CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
  libmlir-${major}-dev mlir-${major}-tools llvm-${major}-dev liblld-${major}-dev
  zlib1g-dev libzstd-dev libxml2-dev libcurl4-openssl-dev libedit-dev)
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "Headers, libraries and
find_package(Reprise) for programs that use the dialects, passes and planners.")

include(CPack)
cpack_add_component(programs)
cpack_add_component(development DEPENDS programs)
cpack_add_component(libraries)
