"""What a grid check counts, in numpy, straight from the definitions.

Written to be read beside them, not to be fast, and it shares nothing with gridscope. Groups are
those of the build; every product and difference that a count hangs on is exact in its type.
"""
import collections
import dataclasses
import math

import numpy as np

GROUP = 32
BLOCK_ROWS = 256  # of a matrix at once, for the sake of memory
# The middle of an interval is rounded. Numbers of so few bits are halfway, or farther off than this.
HALFWAY = 1e-12


def bf16_bits(values):
    """Round float32 numbers to the nearest bf16, ties to even."""
    bits = np.asarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def bf16_values(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


@dataclasses.dataclass
class Build:
    """(levels - zeros) * scales, levels in [-8, 7]; scales and zeros [rows, groups]."""
    levels: np.ndarray
    scales: np.ndarray
    zeros: np.ndarray | None = None

    def rows(self, part):
        zeros = None if self.zeros is None else self.zeros[part]
        return Build(self.levels[part], self.scales[part], zeros)

    def exact(self):
        """[rows, groups, GROUP]; 5 bits times 11 at the most, exact in float32."""
        levels = self.levels.reshape(len(self.levels), -1, GROUP).astype(np.float32)
        if self.zeros is not None:
            levels = levels - self.zeros[..., None].astype(np.float32)
        return levels * self.scales[..., None].astype(np.float32)


@dataclasses.dataclass
class Lattice:
    """The exact grid of each group: step 0 where there is none that is clear."""
    kinds: np.ndarray   # "on_grid", "ambiguous", "dead", "off_grid"
    levels: np.ndarray  # of each weight, signed
    steps: np.ndarray   # the middle of the feasible interval, signed
    low: np.ndarray     # its ends, magnitudes, and whether they belong to it
    high: np.ndarray
    with_low: np.ndarray
    with_high: np.ndarray

    def allows(self, step):
        above = (step > self.low) | (self.with_low & (step == self.low))
        return above & ((step < self.high) | (self.with_high & (step == self.high)))


def feasible(magnitudes, bits, top):
    """Levels for a largest level `top`, the interval of steps, and whether anything is left of it.

    A stored number v > 0 stands for all reals from the midpoint with the number before to the
    midpoint with the number after, both included when its last bit is 0. Divisions round, but equal
    fractions to equal doubles, and different ones of so few bits to different doubles.
    """
    levels = np.rint(magnitudes * top / magnitudes.max(-1, keepdims=True))
    live = magnitudes > 0
    divisor = np.where(levels > 0, levels, 1)
    before, after = (bf16_values(bits + step).astype(np.float64) for step in (-1, 1))
    low = np.where(live, (magnitudes + before) / 2 / divisor, 0)
    high = np.where(live, (magnitudes + after) / 2 / divisor, np.inf)
    lowest, highest = low.max(-1), high.min(-1)
    excluded = live & (bits % 2 == 1)
    with_low = ~(excluded & (low == lowest[..., None])).any(-1)
    with_high = ~(excluded & (high == highest[..., None])).any(-1)
    left = (lowest < highest) | ((lowest == highest) & with_low & with_high)
    left &= ~(live & (levels == 0)).any(-1)
    return levels, (lowest, highest, with_low, with_high), left


def lattice_of(source):
    """`source`: bf16 bits [rows, groups, GROUP], finite."""
    bits = (source & 0x7FFF).astype(np.int64)
    magnitudes = bf16_values(bits).astype(np.float64)
    dead = ~(magnitudes > 0).any(-1)
    magnitudes[dead], bits[dead] = 1.0, 0x3F80  # any number: such groups are left out at the end
    negative = source >> 15 == 1
    shape = source.shape[:-1]
    tops = np.zeros((*shape, 9), bool)
    levels_found, signs = np.zeros(source.shape), np.ones(shape)
    ends_found = [np.zeros(shape), np.zeros(shape), np.zeros(shape, bool), np.zeros(shape, bool)]
    for top in range(1, 9):
        levels, ends, left = feasible(magnitudes, bits, top)
        signed = np.where(negative, -levels, levels)
        positive = signed.max(-1) <= 7  # -8 is there, +8 is not
        left &= positive | (signed.min(-1) >= -7)
        tops[..., top] = left
        sign = np.where(positive, 1.0, -1.0)
        for into, value in zip((levels_found, signs, *ends_found),
                               (signed * sign[..., None], sign, *ends)):
            into[left] = value[left]
    low, high = ends_found[:2]
    return Lattice(kinds_of(levels_found, tops, dead), levels_found,
                   signs * (low + (high - low) / 2), *ends_found)


def kinds_of(levels, tops, dead):
    """`levels`: those of the highest feasible top; `tops`: which are feasible."""
    distinct = sum((np.abs(levels) == level).any(-1).astype(int) for level in range(1, 9))
    one_grid = np.count_nonzero(tops[..., 1:9], axis=-1) == 1
    kinds = np.where((distinct >= 3) & one_grid, "on_grid", "ambiguous")
    kinds[~tops.any(-1)] = "off_grid"
    kinds[dead] = "dead"
    return kinds


def top_levels(lattices):
    """Largest level, without its sign -> groups on the grid."""
    counts = collections.Counter()
    for lattice in lattices:
        levels = lattice.levels[lattice.kinds == "on_grid"]
        counts.update(str(int(level)) for level in np.abs(levels).max(-1))
    return dict(counts)


def count_moves(build, lattice, totals):
    """Levels between the exact product and the source's lattice point, over groups on the grid."""
    on = lattice.kinds == "on_grid"
    steps = lattice.steps[on][..., None]
    off = (build.exact()[on].astype(np.float64) - lattice.levels[on] * steps) / steps
    moves = np.sign(off) * np.ceil(np.abs(off) - 0.5 - HALFWAY)  # halfway: the smaller move
    for move, count in zip(*np.unique(moves.astype(int), return_counts=True)):
        if move != 0:
            totals["level_moves"][str(move)] += int(count)
    totals["lattice_weights"] += moves.size
    allowed = lattice.allows(np.abs(build.scales.astype(np.float64)))
    totals["steps_allowed"] += int((on & allowed).sum())
    totals["steps"] += int(on.sum())


def count_values(build, source, first_row, totals):
    rounded = bf16_values(bf16_bits(build.exact()))
    y, v = rounded.astype(np.float64), bf16_values(source).astype(np.float64)
    error, same = np.abs(y - v), y == v
    scales = np.abs(build.scales.astype(np.float64))[..., None]
    levels = build.levels
    counts = dict(
        weights=y.size, groups=scales.size, groups_identical=same.all(-1).sum(),
        values_identical=same.sum(), moved=(error / scales > 0.5).sum(),
        saturated_low=(levels == -8).sum(), saturated_high=(levels == 7).sum(),
        dead_groups=(y == 0).all(-1).sum(), source_dead_groups=(v == 0).all(-1).sum(),
        dead_in_both=((y == 0).all(-1) & (v == 0).all(-1)).sum(),
        zero_points_used=0 if build.zeros is None else (build.zeros != 0).sum())
    for name, count in counts.items():
        totals[name] += int(count)
    for name, terms in dict(abs_error=error, squared_error=error**2, squared_source=v**2,
                            squared_build=y**2, product=v * y).items():
        totals["sums"][name].append(math.fsum(terms.sum(-1).flat))
    if error.max() > totals["max_abs_error"]:
        row, column = divmod(int(error.reshape(-1).argmax()), levels.shape[1])
        totals["max_abs_error"] = float(error.max())
        totals["worst"] = {"row": first_row + row, "column": column}


def figures(totals):
    sums = {name: math.fsum(parts) for name, parts in totals["sums"].items()}
    weights = totals["weights"]
    none = sums["squared_error"] == 0
    return dict(
        moved_share=totals["moved"] / weights, max_abs_error=totals["max_abs_error"],
        mean_abs_error=sums["abs_error"] / weights, rmse=math.sqrt(sums["squared_error"] / weights),
        relative_rmse=math.sqrt(sums["squared_error"] / sums["squared_source"]),
        sqnr_db=None if none else 10 * math.log10(sums["squared_source"] / sums["squared_error"]),
        cosine=sums["product"] / math.sqrt(sums["squared_source"] * sums["squared_build"]), **sums)


def compare(source, build, lattices):
    """`source`: bf16 bits [rows, columns]. Gives the counts and the figures."""
    totals = collections.Counter(max_abs_error=-1.0, worst=None)
    totals["level_moves"], totals["sums"] = collections.Counter(), collections.defaultdict(list)
    for first, lattice in lattices.items():
        part = slice(first, first + BLOCK_ROWS)
        block = source[part].reshape(len(source[part]), -1, GROUP)
        count_values(build.rows(part), block, first, totals)
        count_moves(build.rows(part), lattice, totals)
    return dict(totals), figures(totals)


def lattices_of(source):
    """First row of each block -> its lattice."""
    grouped = source.reshape(len(source), -1, GROUP)
    return {first: lattice_of(grouped[first:first + BLOCK_ROWS])
            for first in range(0, len(source), BLOCK_ROWS)}
