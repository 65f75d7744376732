# A pair of models for a grid check of any size: as a library for benchmarks and as a command.
add_library(support_grid_pair STATIC grid_pair.cpp)
set_target_properties(support_grid_pair PROPERTIES CXX_EXTENSIONS OFF)
target_include_directories(support_grid_pair PUBLIC "${PROJECT_SOURCE_DIR}/tests")
target_link_libraries(support_grid_pair
  PRIVATE gridscope_options gridscope::quant support_checkpoints fmt::fmt)

add_executable(grid_pair grid_pair_main.cpp)
set_target_properties(grid_pair PROPERTIES CXX_EXTENSIONS OFF)
target_link_libraries(grid_pair PRIVATE gridscope_options support_grid_pair fmt::fmt)
