# A Hub for tests, and the same as a program.
add_library(support_hub_server STATIC hub_server.cpp hub_server_parts.cpp)
set_target_properties(support_hub_server PROPERTIES CXX_EXTENSIONS OFF)
target_include_directories(support_hub_server PUBLIC "${PROJECT_SOURCE_DIR}/tests")
target_link_libraries(support_hub_server
  PUBLIC support_http_server
  PRIVATE gridscope_options OpenSSL::Crypto fmt::fmt nlohmann_json::nlohmann_json)

add_executable(test_hub hub_server_main.cpp)
set_target_properties(test_hub PROPERTIES CXX_EXTENSIONS OFF)
target_link_libraries(test_hub PRIVATE gridscope_options support_hub_server fmt::fmt)
