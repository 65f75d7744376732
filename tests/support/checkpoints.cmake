# Builders of tiny checkpoints; of gridscope they use the dtype table alone.
add_library(support_checkpoints STATIC checkpoints.cpp)
set_target_properties(support_checkpoints PROPERTIES CXX_EXTENSIONS OFF)
target_include_directories(support_checkpoints PUBLIC "${PROJECT_SOURCE_DIR}/tests")
target_link_libraries(support_checkpoints
  PUBLIC gridscope::core
  PRIVATE gridscope_options fmt::fmt)
