# A whole tiny model and builds of it, as values and as files.
add_library(support_tiny_gemma STATIC tiny_gemma.cpp tiny_gemma_builds.cpp)
set_target_properties(support_tiny_gemma PROPERTIES CXX_EXTENSIONS OFF)
target_include_directories(support_tiny_gemma PUBLIC "${PROJECT_SOURCE_DIR}/tests")
target_link_libraries(support_tiny_gemma
  PUBLIC gridscope::quant support_checkpoints
  PRIVATE gridscope_options fmt::fmt)

add_executable(tiny_gemma tiny_gemma_main.cpp)
set_target_properties(tiny_gemma PROPERTIES CXX_EXTENSIONS OFF)
target_link_libraries(tiny_gemma PRIVATE gridscope_options support_tiny_gemma fmt::fmt)
