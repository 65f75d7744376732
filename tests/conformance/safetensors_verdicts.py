"""The reference libraries read fixtures/bad and fixtures/valid: each says what expected.tsv says.

    safetensors_verdicts.py [FIXTURES]

The last column of expected.tsv is the verdict of the reference: the safetensors library on whole
files, gguf's reader on GGUF files; nothing reads an index on its own. Files in bad that a reference
accepts are where gridscope is stricter on purpose; they are printed, and fixtures/bad/README.md has
a reason for each. Exit 77: the libraries are not installed.
"""
import csv
import pathlib
import re
import sys
import unittest

try:
    import gguf
    import safetensors
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

FIXTURES = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1
                        else pathlib.Path(__file__).parents[2] / "fixtures")


def verdict(path, kind):
    """accept, reject, or none where no reference looks at such a file."""
    if kind == "index":
        return "none"
    try:
        if kind == "gguf":
            gguf.GGUFReader(path)
        else:
            safetensors.deserialize(path.read_bytes())
    except Exception:  # each library raises what it likes, gguf even IndexError
        return "reject"
    return "accept"


def rows(directory):
    with open(FIXTURES / directory / "expected.tsv", newline="") as table:
        return list(csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE))


def mentioned():
    """The files for which README.md gives a reason."""
    return set(re.findall(r"`([\w.-]+\.(?:safetensors|gguf))`", (FIXTURES / "bad/README.md").read_text()))


class Verdicts(unittest.TestCase):
    maxDiff = None

    def compare(self, directory):
        listed = {row["file"]: row["reference"] for row in rows(directory)}
        found = {row["file"]: verdict(FIXTURES / directory / row["file"], row["kind"])
                 for row in rows(directory)}
        self.assertEqual(found, listed)

    def test_bad(self):
        self.compare("bad")

    def test_valid(self):
        self.compare("valid")

    def test_what_must_be_read_is_read_by_the_reference_too(self):
        refused = [row["file"] for row in rows("valid") if row["reference"] == "reject"]
        self.assertEqual(refused, [])

    def test_every_difference_has_a_reason(self):
        stricter = {row["file"] for row in rows("bad") if row["reference"] == "accept"}
        self.assertEqual(mentioned(), stricter)


def main():
    stricter = [row["file"] for row in rows("bad") if row["reference"] == "accept"]
    print(f"{len(stricter)} files are refused by gridscope alone:", *stricter, sep="\n  ", flush=True)
    unittest.main()


if __name__ == "__main__":
    main()
