"""One weight of published size, its builds, and every figure of a grid check counted twice.

    grid_check_numpy.py GRIDSCOPE

The source has the shape of layer 0's q_proj of Gemma 4 26B-A4B: [4096, 2816] in bf16, 360,448
groups of 32, each exactly on a grid of a bf16 step. Its builds are a repack that copies levels and
steps, one by the published rule, an AWQ build that clips, and one that also folds a factor for each
column into the norm before. gridscope's report is held against grid_check_definitions, counts
exactly and sums to nine digits. Exit 77: the libraries are not installed.
"""
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
    import safetensors
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

import grid_check_definitions as definitions
from grid_check_definitions import GROUP, Build, bf16_bits, bf16_values

GRIDSCOPE = sys.argv.pop(1)
ROWS, COLUMNS = 4096, 2816
MODULE = "model.language_model.layers.0.self_attn.q_proj"
NORM = "model.language_model.layers.0.input_layernorm.weight"
TEXT = {"model_type": "gemma4_text", "hidden_size": COLUMNS, "num_hidden_layers": 1}
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)


# ---- the weight and its builds ------------------------------------------------------------------

def grouped(matrix):
    return matrix.reshape(len(matrix), -1, GROUP)


def make_source(random):
    """Levels, steps, and the stored numbers: every level times its step, rounded once."""
    weights = random.standard_normal((ROWS, COLUMNS), np.float32) * np.float32(0.02)
    weights = grouped(weights)
    steps = bf16_values(bf16_bits(np.abs(weights).max(-1) / np.float32(7.5)))
    levels = np.clip(np.rint(weights / steps[..., None]), -8, 7)
    levels.reshape(-1, GROUP)[:7] = 0                    # dead
    levels.reshape(-1, GROUP)[7:12] = np.resize([3, -3, 0], GROUP)  # of one magnitude: ambiguous
    levels = levels.astype(np.int8)
    values = bf16_bits(levels * steps[..., None])
    return levels.reshape(ROWS, COLUMNS), steps, values.reshape(ROWS, COLUMNS)


def repack_by_rule(source):
    """The step is the first of max/1 ... max/8 that explains a group to 2^-7 of its largest."""
    values = grouped(bf16_values(source))
    largest = np.abs(values).max(-1)
    steps = np.zeros_like(largest)
    for m in range(1, 9):
        step = np.where(largest > 0, largest / np.float32(m), 1)[..., None]
        error = np.abs(np.clip(np.rint(values / step), -8, 7) * step - values).max(-1)
        fits = (steps == 0) & (error <= largest * np.float32(2**-7))
        steps[fits] = step[..., 0][fits]
    assert (steps > 0).all()
    steps = bf16_values(bf16_bits(steps))
    levels = np.clip(np.rint(values / steps[..., None]), -8, 7).astype(np.int8)
    return Build(levels.reshape(ROWS, COLUMNS), steps)


def requantize(values, clip):
    """As AWQ: scale and zero point from the range of a group, shrunk by `clip`; F16 scales."""
    values = grouped(values)
    low, high = (np.minimum(values.min(-1), 0) * clip, np.maximum(values.max(-1), 0) * clip)
    scales = np.maximum((high - low) / 15, np.float32(1e-5)).astype(np.float16)
    wide = scales.astype(np.float32)
    zeros = np.clip(np.rint(-low / wide), 0, 15)
    codes = np.clip(np.rint(values / wide[..., None]) + zeros[..., None], 0, 15)
    return Build((codes - 8).astype(np.int8).reshape(ROWS, COLUMNS), scales,
                 (zeros - 8).astype(np.int8))


# ---- files --------------------------------------------------------------------------------------

def write_model(directory, tensors, quantization=None):
    directory.mkdir()
    config = {"model_type": "gemma4", "text_config": TEXT}
    if quantization:
        config["quantization_config"] = quantization
    (directory / "config.json").write_text(json.dumps(config))
    # numpy has no bf16, so the writer is told the type of its bits; it takes addresses.
    tensors = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    specs = {name: safetensors.TensorSpec(
                 dtype=array.dtype.name.replace("uint16", "bfloat16"), shape=array.shape,
                 data_ptr=array.ctypes.data, data_len=array.nbytes)
             for name, array in tensors.items()}
    safetensors.serialize_file(specs, directory / "model.safetensors", {"format": "pt"})


def packed(codes, order=range(8)):
    """Eight 4-bit codes to an int32 along the last axis; `order`: the column of each nibble."""
    codes = codes.reshape(*codes.shape[:-1], -1, 8).astype(np.uint32)
    words = sum(codes[..., column] << 4 * nibble for nibble, column in enumerate(order))
    return words.astype(np.uint32).view(np.int32)


def write_compressed_tensors(directory, build, norm):
    weights = {"num_bits": 4, "type": "int", "symmetric": True, "strategy": "group",
               "group_size": GROUP}
    write_model(directory, {
        MODULE + ".weight_packed": packed(build.levels + 8),
        MODULE + ".weight_scale": bf16_bits(build.scales),
        MODULE + ".weight_shape": np.array([ROWS, COLUMNS], np.int64),
        NORM: norm,
    }, {"quant_method": "compressed-tensors", "format": "pack-quantized",
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}}, "ignore": []})


def write_awq(directory, build, norm):
    write_model(directory, {
        MODULE + ".qweight": packed((build.levels + 8).T, AWQ_ORDER),
        MODULE + ".qzeros": packed((build.zeros + 8).T, AWQ_ORDER),
        MODULE + ".scales": build.scales.T,
        NORM: norm,
    }, {"quant_method": "awq", "bits": 4, "group_size": GROUP, "zero_point": True,
        "version": "gemm"})


def write_world(root):
    """Writes all models below `root`; gives the source's numbers and the builds by name."""
    random = np.random.default_rng(20260930)
    levels, steps, source = make_source(random)
    norm = bf16_bits(random.uniform(0.5, 2.0, COLUMNS).astype(np.float32))
    factors = np.exp(random.normal(0, 0.15, COLUMNS)).astype(np.float32)
    values = bf16_values(source)
    builds = {"repack": Build(levels, steps), "rule": repack_by_rule(source),
              "awq": requantize(values, np.float32(0.85)),
              "awq-folded": requantize(values * factors, np.float32(0.95))}
    write_model(root / "source", {MODULE + ".weight": source, NORM: norm})
    for name in ("repack", "rule"):
        write_compressed_tensors(root / name, builds[name], norm)
    write_awq(root / "awq", builds["awq"], norm)
    write_awq(root / "awq-folded", builds["awq-folded"], bf16_bits(bf16_values(norm) / factors))
    return source, builds


def share(part, whole):
    """As a person reads it: some are never shown as none."""
    return "<0.01%" if 0 < part / whole < 0.00005 else f"{part / whole:.2%}"


# ---- the comparison -----------------------------------------------------------------------------

class GridCheck(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.source, cls.builds = write_world(cls.root)
        cls.lattices = definitions.lattices_of(cls.source)
        cls.report = json.loads(cls.gridscope("--format", "json"))
        cls.found = dict(zip(cls.builds, cls.report["builds"]))
        cls.expected = {name: definitions.compare(cls.source, build, cls.lattices)
                        for name, build in cls.builds.items()}

    @classmethod
    def gridscope(cls, *arguments):
        command = [GRIDSCOPE, "grid-check", "source", *cls.builds, *arguments]
        done = subprocess.run(command, cwd=cls.root, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def test_verdicts(self):
        found = {name: build["verdict"] for name, build in self.found.items()}
        self.assertEqual(found, {"repack": "exact", "rule": "same_grid", "awq": "levels_moved",
                                 "awq-folded": "smoothed"})

    def test_a_faithful_repack_moves_nothing(self):
        for name in ("repack", "rule"):
            totals = self.found[name]["totals"]
            self.assertEqual((totals["weights"], totals["groups"], totals["moved"]),
                             (11_534_336, 360_448, 0))

    def test_the_published_rule_rounds_some_steps_anew(self):
        totals = self.found["rule"]["totals"]
        self.assertLess(totals["groups_identical"], totals["groups"])

    def test_counts_are_those_of_numpy(self):
        for name, (counts, _) in self.expected.items():
            totals = self.found[name]["totals"]
            with self.subTest(build=name):
                steps = totals["scale_ratio"]
                self.assertEqual(steps.get("1", 0), counts.pop("steps_allowed"))
                self.assertEqual(sum(steps.values()), counts.pop("steps"))
                for excluded in ("sums", "max_abs_error"):
                    counts.pop(excluded)
                self.assertEqual({key: totals[key] for key in counts}, counts)
                self.assertEqual(totals["level_moves_beyond"], 0)

    def test_figures_are_those_of_numpy_to_nine_digits(self):
        for name, (_, figures) in self.expected.items():
            totals = self.found[name]["totals"]
            found = totals | totals["sums"]
            for key, figure in figures.items():
                with self.subTest(build=name, figure=key):
                    if figure is None:
                        self.assertIsNone(found[key])
                    else:
                        self.assertAlmostEqual(found[key], figure, delta=1e-9 * abs(figure))

    def test_the_grid_of_the_source_is_that_of_numpy(self):
        kinds = np.concatenate([lattice.kinds for lattice in self.lattices.values()])
        expected = {kind: int((kinds == kind).sum())
                    for kind in ("on_grid", "ambiguous", "dead", "off_grid")}
        expected |= {"groups": kinds.size, "group_size": GROUP, "non_finite": 0}
        expected["top_levels"] = definitions.top_levels(self.lattices.values())
        grid = self.report["source"]["grid"]
        self.assertEqual({key: grid[key] for key in expected}, expected)
        self.assertEqual((expected["dead"], expected["off_grid"]), (7, 0))
        self.assertGreaterEqual(expected["ambiguous"], 5)

    def test_tensor_is_described(self):
        for name, (dtype, form) in {"repack": ("BF16", "int4 g32"), "awq": ("F16", "int4")}.items():
            tensor, = self.found[name]["tensors"]
            self.assertEqual((tensor["name"], tensor["shape"]), (MODULE, [ROWS, COLUMNS]))
            self.assertEqual((tensor["scale_dtype"], tensor["group_size"]), (dtype, GROUP))
            self.assertIn(form, tensor["format"])

    def test_undoing_the_fold_brings_the_build_nearer(self):
        build = self.found["awq-folded"]
        after = build["smoothing"]["totals_after"]
        self.assertEqual(build["smoothing"]["norms"], 1)
        self.assertLess(after["moved"], build["totals"]["moved"] / 4)

    def test_text_has_every_figure_of_the_published_check(self):
        text = self.gridscope()
        heads = [line for line in text.splitlines()[1:] if line.strip()]
        for name, (counts, figures) in self.expected.items():
            line = next(line for line in heads if line.split()[0] == name)
            groups, weights = counts["groups"], counts["weights"]
            groups_identical, moved = counts["groups_identical"], counts["moved"]
            for figure in (f"{weights:,}", f"{groups:,}",
                           f"{groups_identical:,} ({share(groups_identical, groups)})",
                           share(counts["values_identical"], weights),
                           f"{moved:,} ({share(moved, weights)})",
                           f"{figures['max_abs_error']:.3g}", f"{figures['mean_abs_error']:.3g}"):
                self.assertIn(figure, line)
        for words in ("int4 g32 (I32 packed, BF16 scales)", "F16 scales)", MODULE):
            self.assertIn(words, text)

    def test_report_does_not_depend_on_jobs(self):
        reports = [self.gridscope("--format", "json", "--jobs", jobs) for jobs in ("1", "5")]
        for a, b in itertools.pairwise([*reports, json.dumps(self.report)]):
            self.assertEqual(json.loads(a), json.loads(b))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
