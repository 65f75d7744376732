#!/usr/bin/env python3
"""Holds JSON reports against their schemas with the reference validator.

    validate_schema.py SCHEMA_DIRECTORY REPORT...

A report names its schema: "gridscope.inspection/1" is inspection-1.schema.json. The schemas
themselves are checked against the rules of draft 2020-12. Ends with 77 (skipped) where the
jsonschema package is not installed.
"""

import json
import pathlib
import sys

try:
    from jsonschema import Draft202012Validator
except ImportError:
    print("skipped: the Python package jsonschema is not installed")
    sys.exit(77)


def load(path):
    return json.loads(path.read_text(encoding="utf-8"))


def schema_path(directory, report):
    thing, version = report["schema"].removeprefix("gridscope.").split("/")
    return directory / f"{thing}-{version}.schema.json"


def errors_of(directory, path):
    report = load(path)
    validator = Draft202012Validator(load(schema_path(directory, report)))
    return [f"{path}: {error.json_path}: {error.message}" for error in validator.iter_errors(report)]


def main(arguments):
    if len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    directory, *reports = map(pathlib.Path, arguments)
    schemas = sorted(directory.glob("*.schema.json"))
    for schema in schemas:
        Draft202012Validator.check_schema(load(schema))
    errors = [error for report in reports for error in errors_of(directory, report)]
    for error in errors:
        print(error)
    print(f"{len(schemas)} schemas, {len(reports)} reports, {len(errors)} errors")
    return 1 if errors or not schemas else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
