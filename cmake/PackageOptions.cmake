# Read by CPack for each kind of package.

if(CPACK_GENERATOR STREQUAL "DEB")
  # Debian has the libraries.
  set(CPACK_COMPONENTS_ALL programs development)
  set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
else()
  set(CPACK_COMPONENTS_ALL programs development libraries)
  set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
  set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
endif()
