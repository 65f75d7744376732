#include "gridscope/report/inspection_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "gridscope/core/text.hpp"

namespace gridscope::report {
namespace {

using analysis::GroupBy;
using analysis::Inspection;
using analysis::InspectionRow;
using Align = TextTable::Align;

constexpr std::size_t kCommitDigits = 7;

// A decimal and a binary unit, used side by side.
struct SizeUnits {
  std::string_view decimal;
  std::string_view binary;
  double decimal_bytes;
  double binary_bytes;
};

// GB and GiB for what is a model by today's measure; a table of small ones would be all zeros.
const SizeUnits& units_for(std::uint64_t total_bytes) {
  static constexpr SizeUnits kGiga = {"GB", "GiB", 1e9, 1024.0 * 1024.0 * 1024.0};
  static constexpr SizeUnits kMega = {"MB", "MiB", 1e6, 1024.0 * 1024.0};
  constexpr std::uint64_t kSmall = 100'000'000;
  return total_bytes < kSmall ? kMega : kGiga;
}

std::string in_units(std::uint64_t bytes, double unit_bytes) {
  return fmt::format("{:.3f}", static_cast<double>(bytes) / unit_bytes);
}

// A reference may name the revision itself; it is not said twice.
bool shows_revision(const Inspection& inspection) {
  return !inspection.revision.empty() && inspection.revision != inspection.commit &&
         inspection.reference.find('@' + inspection.revision) == std::string::npos;
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

// "compressed-tensors pack-quantized"; "gptq_v2" and "gpt_oss_mxfp4", which say the method too.
std::string scheme_text(const analysis::QuantizationSummary& quantization) {
  if (quantization.format.empty()) return quantization.method;
  if (quantization.method.empty()) return quantization.format;
  const bool says_method =
      lower_case(quantization.format).find(lower_case(quantization.method)) != std::string::npos;
  return says_method ? quantization.format : quantization.method + ' ' + quantization.format;
}

// "int4"; "8-bit" where codes are no integers, or not all of them.
std::string bits_text(std::string_view scheme, std::uint32_t bits) {
  constexpr std::array<std::string_view, 5> kNoIntegers = {"fp", "float", "nf4", "mixed", "exl"};
  const std::string lower = lower_case(scheme);
  const bool is_integer = std::ranges::none_of(
      kNoIntegers, [&](std::string_view mark) { return lower.find(mark) != std::string::npos; });
  return is_integer ? fmt::format("int{}", bits) : fmt::format("{}-bit", bits);
}

std::string quantization_text(const analysis::QuantizationSummary& quantization) {
  std::string text = scheme_text(quantization);
  // A block type says it all, and "Q4_K" has neither one number of bits nor one group.
  if (quantization.method == "gguf") return text;
  const std::string bits = quantization.bits ? bits_text(text, *quantization.bits) : "";
  if (!bits.empty() && !text.ends_with(bits)) text += ' ' + bits;
  if (quantization.group_size) {
    text += *quantization.group_size < 0 ? std::string(", a group per row")
                                         : fmt::format(", group {}", *quantization.group_size);
  }
  if (quantization.symmetric) text += *quantization.symmetric ? ", symmetric" : ", asymmetric";
  return text;
}

std::string dtypes_text(const Inspection& inspection) {
  std::set<std::string_view> dtypes;
  for (const InspectionRow& row : inspection.parts) {
    for (const auto& [dtype, tensors] : row.dtypes) dtypes.insert(dtype);
  }
  return fmt::format("not quantized ({})", fmt::join(dtypes, ", "));
}

const std::vector<InspectionRow>& shown_rows(const Inspection& inspection) {
  switch (inspection.by) {
    case GroupBy::kPart:
      return inspection.parts;
    case GroupBy::kRole:
      return inspection.roles;
    case GroupBy::kDtype:
    case GroupBy::kLayer:
    case GroupBy::kFile:
      break;
  }
  return inspection.groups;
}

std::vector<std::string> row_cells(const InspectionRow& row, const SizeUnits& units) {
  const bool has_parameters = row.parameters > 0;
  return {row.title,
          in_units(row.bytes, units.decimal_bytes),
          in_units(row.bytes, units.binary_bytes),
          fmt::format("{:.1f}%", 100.0 * row.share),
          with_thousands(row.tensors),
          has_parameters ? with_thousands(row.parameters) : "-",
          row.bits_per_weight > 0.0 ? fmt::format("{:.2f}", row.bits_per_weight) : "-",
          row.stored_as};
}

InspectionRow total_row(const Inspection& inspection) {
  InspectionRow total;
  total.title = "total";
  total.tensors = inspection.tensor_count;
  total.bytes = inspection.tensor_bytes;
  total.share = inspection.tensor_bytes > 0 ? 1.0 : 0.0;
  total.parameters = inspection.parameters;
  // Where a part's parameters are not all known, those of the whole are not either.
  const bool all_known = std::ranges::none_of(inspection.parts, [](const InspectionRow& part) {
    return part.parameters > 0 && part.bits_per_weight == 0.0;
  });
  if (total.parameters > 0 && all_known) {
    total.bits_per_weight =
        8.0 * static_cast<double>(total.bytes) / static_cast<double>(total.parameters);
  }
  return total;
}

std::string shape_text(std::span<const std::uint64_t> shape) {
  return shape.empty() ? "scalar" : fmt::format("{}", fmt::join(shape, "x"));
}

}  // namespace

std::string model_title(const Inspection& inspection) {
  std::string title = inspection.reference;
  if (shows_revision(inspection)) title += " @ " + inspection.revision;
  if (!inspection.commit.empty()) {
    title += fmt::format(" (commit {})", inspection.commit.substr(0, kCommitDigits));
  }
  return title;
}

std::string storage_summary(const Inspection& inspection) {
  std::vector<std::string> words;
  if (!inspection.model_type.empty()) {
    words.push_back(inspection.model_type);
  } else if (!inspection.architectures.empty()) {
    words.push_back(inspection.architectures.front());
  }
  words.push_back(inspection.container);
  words.push_back(count_of(inspection.files, "file"));
  const SizeUnits& units = units_for(inspection.file_bytes);
  words.push_back(fmt::format("{} {} ({} {})", in_units(inspection.file_bytes, units.decimal_bytes),
                              units.decimal, in_units(inspection.file_bytes, units.binary_bytes),
                              units.binary));
  std::string text = fmt::format("{}", fmt::join(words, ", "));
  if (inspection.tensor_count == 0) return text;
  return text + "; " +
         (inspection.quantization ? quantization_text(*inspection.quantization)
                                  : dtypes_text(inspection));
}

TextTable row_table(const Inspection& inspection) {
  const SizeUnits& units = units_for(inspection.tensor_bytes);
  TextTable table{.columns = {{std::string(group_by_name(inspection.by))},
                              {std::string(units.decimal), Align::kRight},
                              {std::string(units.binary), Align::kRight},
                              {"share", Align::kRight},
                              {"tensors", Align::kRight},
                              {"parameters", Align::kRight},
                              {"bits/weight", Align::kRight},
                              {"stored as"}},
                  .rows = {}};
  for (const InspectionRow& row : shown_rows(inspection)) {
    table.rows.push_back(row_cells(row, units));
  }
  table.total = row_cells(total_row(inspection), units);
  return table;
}

TextTable tensor_table(const Inspection& inspection) {
  TextTable table{.columns = {{"tensor"},
                              {"dtype"},
                              {"shape"},
                              {"bytes", Align::kRight},
                              {"offset", Align::kRight},
                              {"part"},
                              {"role"},
                              {"file"}},
                  .rows = {}};
  for (const analysis::InspectionTensor& tensor : inspection.tensors) {
    table.rows.push_back({tensor.name, tensor.dtype, shape_text(tensor.shape),
                          with_thousands(tensor.bytes), with_thousands(tensor.offset), tensor.part,
                          tensor.role, tensor.file});
  }
  return table;
}

}  // namespace gridscope::report
