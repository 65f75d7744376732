#include "report/json_schema.hpp"

#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

namespace gridscope::test {
namespace {

using nlohmann::json;

bool has_type(const json& value, std::string_view type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  return false;
}

bool has_one_type(const json& value, const json& types) {
  if (types.is_string()) return has_type(value, types.get<std::string>());
  for (const json& type : types) {
    if (has_type(value, type.get<std::string>())) return true;
  }
  return false;
}

class Checker {
 public:
  explicit Checker(const json& root) : root_(root) {}

  void check(const json& schema, const json& value, const std::string& at) {
    for (const auto& [keyword, argument] : schema.items()) {
      if (!apply(keyword, argument, schema, value, at)) {
        complain(at, "schema keyword " + keyword + " is not known here");
      }
    }
  }

  std::vector<std::string> errors;

 private:
  void complain(const std::string& at, const std::string& what) {
    errors.push_back(at + ": " + what);
  }

  // False for a keyword that is not known.
  bool apply(const std::string& keyword, const json& argument, const json& schema,
             const json& value, const std::string& at) {
    static const std::set<std::string> kAnnotations = {"$schema", "$id", "$defs", "title",
                                                       "description"};
    if (kAnnotations.contains(keyword)) return true;
    return apply_to_any(keyword, argument, value, at) ||
           apply_to_number(keyword, argument, value, at) ||
           apply_to_object(keyword, argument, schema, value, at);
  }

  bool apply_to_any(const std::string& keyword, const json& argument, const json& value,
                    const std::string& at) {
    if (keyword == "$ref") {
      check(root_.at(json::json_pointer(argument.get<std::string>().substr(1))), value, at);
    } else if (keyword == "type") {
      if (!has_one_type(value, argument)) complain(at, "is no " + argument.dump());
    } else if (keyword == "const") {
      if (value != argument) complain(at, "is not " + argument.dump());
    } else if (keyword == "enum") {
      if (std::find(argument.begin(), argument.end(), value) == argument.end()) {
        complain(at, value.dump() + " is none of " + argument.dump());
      }
    } else if (keyword == "oneOf") {
      check_one_of(argument, value, at);
    } else {
      return false;
    }
    return true;
  }

  bool apply_to_number(const std::string& keyword, const json& argument, const json& value,
                       const std::string& at) {
    if (keyword == "minimum") {
      if (value.is_number() && value < argument) complain(at, "is below " + argument.dump());
    } else if (keyword == "maximum") {
      if (value.is_number() && value > argument) complain(at, "is above " + argument.dump());
    } else if (keyword == "maxItems") {
      if (value.is_array() && value.size() > argument) complain(at, "has too many elements");
    } else if (keyword == "minLength") {
      if (value.is_string() && value.get<std::string>().size() < argument)
        complain(at, "too short");
    } else {
      return false;
    }
    return true;
  }

  bool apply_to_object(const std::string& keyword, const json& argument, const json& schema,
                       const json& value, const std::string& at) {
    if (keyword == "required") {
      for (const json& name : argument) {
        if (value.is_object() && !value.contains(name.get<std::string>())) {
          complain(at, "lacks " + name.dump());
        }
      }
    } else if (keyword == "items") {
      for (std::size_t i = 0; value.is_array() && i < value.size(); ++i) {
        check(argument, value[i], at + '[' + std::to_string(i) + ']');
      }
    } else if (keyword == "properties" || keyword == "additionalProperties") {
      check_members(keyword, argument, schema, value, at);
    } else {
      return false;
    }
    return true;
  }

  void check_members(const std::string& keyword, const json& argument, const json& schema,
                     const json& value, const std::string& at) {
    if (!value.is_object()) return;
    const json known = schema.value("properties", json::object());
    for (const auto& [name, member] : value.items()) {
      const std::string place = at + '.' + name;
      const bool is_known = known.contains(name);
      if (keyword == "properties") {
        if (is_known) check(argument[name], member, place);
      } else if (!is_known && argument == false) {
        complain(place, "is not allowed");
      } else if (!is_known) {
        check(argument, member, place);
      }
    }
  }

  void check_one_of(const json& choices, const json& value, const std::string& at) {
    std::size_t fitting = 0;
    for (const json& choice : choices) {
      Checker inner(root_);
      inner.check(choice, value, at);
      if (inner.errors.empty()) ++fitting;
    }
    if (fitting != 1) complain(at, "fits " + std::to_string(fitting) + " choices of oneOf");
  }

  const json& root_;
};

}  // namespace

std::vector<std::string> schema_errors(const json& schema, const json& document) {
  Checker checker(schema);
  checker.check(schema, document, "$");
  return checker.errors;
}

}  // namespace gridscope::test
