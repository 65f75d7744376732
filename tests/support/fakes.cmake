add_library(support_fakes STATIC fakes.cpp)
target_include_directories(support_fakes PUBLIC "${PROJECT_SOURCE_DIR}/tests")
target_link_libraries(support_fakes PUBLIC gridscope::core gridscope::io PRIVATE gridscope_options)
