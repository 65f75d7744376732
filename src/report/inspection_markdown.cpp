#include <fmt/format.h>

#include "gridscope/report/closing.hpp"
#include "gridscope/report/inspection_report.hpp"
#include "gridscope/report/inspection_view.hpp"
#include "gridscope/report/text_table.hpp"

namespace gridscope::report {

// Every line opens with a word of this report, never with a foreign one: what stands first on a
// line decides what Markdown makes of it.
std::string inspection_markdown(const analysis::Inspection& inspection) {
  std::string text = fmt::format("# Inspection of {}\n\n", markdown_text(model_title(inspection)));
  text += fmt::format("Stored as {}.\n\n", markdown_text(storage_summary(inspection)));
  text += render_markdown(row_table(inspection)) + '\n';
  if (!inspection.tensors.empty()) {
    text += "## Tensors\n\n" + render_markdown(tensor_table(inspection)) + '\n';
  }
  text += findings_markdown(inspection.findings);
  return text +
         fmt::format("Read: {}.\n", reads_summary(inspection.reads, inspection.read_seconds));
}

}  // namespace gridscope::report
