#include <fmt/format.h>

#include "gridscope/report/closing.hpp"
#include "gridscope/report/inspection_report.hpp"
#include "gridscope/report/inspection_view.hpp"
#include "gridscope/report/text_table.hpp"

namespace gridscope::report {

std::string inspection_text(const analysis::Inspection& inspection) {
  std::string text = fmt::format("{}: {}\n\n", one_line(model_title(inspection)),
                                 one_line(storage_summary(inspection)));
  text += render_text(row_table(inspection)) + '\n';
  if (!inspection.tensors.empty()) text += render_text(tensor_table(inspection)) + '\n';
  text += findings_text(inspection.findings);
  return text +
         fmt::format("\nRead: {}\n", reads_summary(inspection.reads, inspection.read_seconds));
}

}  // namespace gridscope::report
