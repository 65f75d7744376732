# `find_package(gridscope)` gives gridscope::core ... gridscope::app; the command line goes to bin.
include(CMakePackageConfigHelpers)

# The command line's own room is of no use to others, and would ask them for CLI11.
get_property(rooms GLOBAL PROPERTY GRIDSCOPE_ROOMS)
list(REMOVE_ITEM rooms gridscope_cli)
install(TARGETS ${rooms} EXPORT gridscope FILE_SET HEADERS)
install(TARGETS gridscope RUNTIME)
install(EXPORT gridscope NAMESPACE gridscope:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/gridscope)

configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/gridscope-config.cmake.in"
  "${PROJECT_BINARY_DIR}/gridscope-config.cmake"
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/gridscope)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/gridscope-config-version.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/gridscope-config.cmake"
              "${PROJECT_BINARY_DIR}/gridscope-config-version.cmake"
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/gridscope)
