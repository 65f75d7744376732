# Runs programs: the built command line, benchmarks' rivals.
add_library(support_process STATIC process.cpp)
set_target_properties(support_process PROPERTIES CXX_EXTENSIONS OFF)
target_include_directories(support_process PUBLIC "${PROJECT_SOURCE_DIR}/tests")
target_link_libraries(support_process PRIVATE gridscope_options)
