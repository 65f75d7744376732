# Files of true size from header texts: as a library for tests and as a command for everything else.
add_library(support_sparse_checkpoint STATIC sparse_checkpoint.cpp)
set_target_properties(support_sparse_checkpoint PROPERTIES CXX_EXTENSIONS OFF)
target_include_directories(support_sparse_checkpoint PUBLIC "${PROJECT_SOURCE_DIR}/tests")
target_link_libraries(support_sparse_checkpoint
  PRIVATE gridscope_options nlohmann_json::nlohmann_json PkgConfig::libzstd fmt::fmt)

add_executable(sparse_checkpoint sparse_checkpoint_main.cpp)
set_target_properties(sparse_checkpoint PROPERTIES CXX_EXTENSIONS OFF)
target_link_libraries(sparse_checkpoint
  PRIVATE gridscope_options support_sparse_checkpoint fmt::fmt)
