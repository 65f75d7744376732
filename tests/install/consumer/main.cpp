#include <cstdio>
#include <gridscope/app/inspect.hpp>
#include <gridscope/core/text.hpp>

int main(int argc, char** argv) {
  gridscope::NullObserver observer;
  const auto context = gridscope::app::Context::make({}, observer);
  if (argc != 2 || !context) return 2;
  const auto inspection = gridscope::app::inspect({.model = argv[1]}, **context);
  if (!inspection) {
    std::fprintf(stderr, "%s\n", gridscope::describe(inspection.error()).c_str());
    return 3;
  }
  std::puts(gridscope::count_of(inspection->tensor_count, "tensor").c_str());
}
