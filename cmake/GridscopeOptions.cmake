# Language level, warnings and the settings that keep results the same on every CPU target.
# Linked as $<BUILD_INTERFACE:...>, so that none of it reaches users of the installed package.
add_library(gridscope_options INTERFACE)
target_compile_features(gridscope_options INTERFACE cxx_std_20)

# GCC and clang fuse a*b+c by default; a fused product rounds once, so sums would depend on the CPU.
target_compile_options(gridscope_options INTERFACE -ffp-contract=off)

target_compile_options(gridscope_options INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wold-style-cast
  -Wnon-virtual-dtor -Woverloaded-virtual -Wcast-align -Wimplicit-fallthrough
  -Wdouble-promotion -Wformat=2 -Wundef
  $<$<CXX_COMPILER_ID:GNU>:-Wduplicated-cond -Wduplicated-branches -Wlogical-op -Wuseless-cast
    -Wsuggest-override>)

# With optimization on, GCC 12 sees overlapping copies in "text" + std::string (its bug 105651).
target_compile_options(gridscope_options INTERFACE
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:-Wno-restrict>)

target_compile_definitions(gridscope_options INTERFACE GRIDSCOPE_VERSION="${PROJECT_VERSION}")
