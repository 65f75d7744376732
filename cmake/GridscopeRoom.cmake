# gridscope_room(NAME SOURCES ... PUBLIC ... PRIVATE ...)
#
# One static library per room: gridscope_NAME, alias gridscope::NAME. PUBLIC and PRIVATE name what it
# links; a room that is not linked here cannot be included, and tests/architecture holds the table.
function(gridscope_room name)
  cmake_parse_arguments(room "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(gridscope_${name} STATIC ${room_SOURCES})
  add_library(gridscope::${name} ALIAS gridscope_${name})
  set_target_properties(gridscope_${name} PROPERTIES EXPORT_NAME ${name} CXX_EXTENSIONS OFF
                                                     VERIFY_INTERFACE_HEADER_SETS ON)
  # Said here and not in gridscope_options alone, so that users of the installed headers get it too.
  target_compile_features(gridscope_${name} PUBLIC cxx_std_20)
  file(GLOB headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/gridscope/${name}/*.hpp")
  target_sources(gridscope_${name} PUBLIC FILE_SET HEADERS
    BASE_DIRS "${PROJECT_SOURCE_DIR}/include" FILES ${headers})
  target_link_libraries(gridscope_${name}
    PUBLIC ${room_PUBLIC}
    PRIVATE $<BUILD_INTERFACE:gridscope_options> ${room_PRIVATE})
  set_property(GLOBAL APPEND PROPERTY GRIDSCOPE_ROOMS gridscope_${name})
endfunction()

# gridscope_test(ROOM SOURCES ... LIBS ... [LABELS ...] [TIMEOUT seconds])
#
# One test executable per room, ROOM_test; each TEST becomes a ctest entry labelled with the room.
function(gridscope_test room)
  cmake_parse_arguments(test "" "TIMEOUT" "SOURCES;LIBS;LABELS" ${ARGN})
  if(NOT test_TIMEOUT)
    set(test_TIMEOUT 30)
  endif()
  if(NOT test_LABELS)
    set(test_LABELS fast)
  endif()
  set(target ${room}_test)
  add_executable(${target} ${test_SOURCES})
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_compile_definitions(${target} PRIVATE
    GRIDSCOPE_FIXTURES="${PROJECT_SOURCE_DIR}/fixtures"
    GRIDSCOPE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(${target} PRIVATE gridscope_options ${test_LIBS} GTest::gmock GTest::gtest_main)
  gridscope_discover_tests(${target} LABELS ${room} ${test_LABELS}
    PROPERTIES TIMEOUT ${test_TIMEOUT})
endfunction()

# gridscope_discover_tests(TARGET LABELS ... PROPERTIES ...)
#
# gtest_discover_tests flattens a list among its properties: of two labels the second would be taken
# for a property, and what follows for its value. So ctest reads the labels from a file of their own.
function(gridscope_discover_tests target)
  cmake_parse_arguments(test "" "" "LABELS;PROPERTIES" ${ARGN})
  gtest_discover_tests(${target} NO_PRETTY_VALUES DISCOVERY_TIMEOUT 60 TEST_LIST ${target}_tests
    PROPERTIES ${test_PROPERTIES})
  set(labels "${CMAKE_CURRENT_BINARY_DIR}/${target}_labels.cmake")
  list(REMOVE_DUPLICATES test_LABELS)
  file(WRITE "${labels}" "foreach(test IN LISTS ${target}_tests)
  set_tests_properties(\"\${test}\" PROPERTIES LABELS \"${test_LABELS}\")
endforeach()
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${labels}")
endfunction()
