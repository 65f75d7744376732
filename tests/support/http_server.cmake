# The loopback HTTP server: faults as data, optional TLS with a certificate made at run time.
find_package(OpenSSL REQUIRED)
add_library(support_http_server STATIC http_server.cpp http_server_stream.cpp)
set_target_properties(support_http_server PROPERTIES CXX_EXTENSIONS OFF)
target_include_directories(support_http_server PUBLIC "${PROJECT_SOURCE_DIR}/tests")
target_link_libraries(support_http_server
  PUBLIC Threads::Threads
  PRIVATE gridscope_options OpenSSL::SSL fmt::fmt)
