# model::Checkpoint values built by hand.
add_library(support_checkpoint_values STATIC checkpoint_values.cpp)
set_target_properties(support_checkpoint_values PROPERTIES CXX_EXTENSIONS OFF)
target_include_directories(support_checkpoint_values PUBLIC "${PROJECT_SOURCE_DIR}/tests")
target_link_libraries(support_checkpoint_values
  PUBLIC gridscope::model
  PRIVATE gridscope_options)
