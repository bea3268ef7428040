# SPDX-License-Identifier: GPL-2.0-or-later
"""From what tools/bench_zram measured to figures and a table. Pure: reads and writes nothing.

A group is what was measured of one codec:

  codec     "lz4", "zstd:1"
  samples   of each device ("zram", "64K", "whole") a list with a dictionary for each round:
              passes: "first" (onto fresh memory), "write", "write_all", "read", "read_all" (all: as many streams as
                      CPUs), each with bytes, seconds, cpu_seconds
              data, stored, resident (bytes)
              idle, beside: reads, p50_us, p99_us, written_mib_s
"""
from statistics import median

MIB = 1 << 20
GIB = 1 << 30
ZRAM = "zram"


def mib_s(name):
    return lambda sample: sample["passes"][name]["bytes"] / MIB / sample["passes"][name]["seconds"]


def cpu_s_per_gib(*names):
    def of(sample):
        passes = [sample["passes"][name] for name in names]
        return sum(one["cpu_seconds"] for one in passes) / (passes[0]["bytes"] / GIB)

    return of


def first_over_second(sample):
    return mib_s("first")(sample) / mib_s("write")(sample)


def held(key):
    return lambda sample: sample["data"] / sample[key]


def p99_rise(sample):
    return sample["beside"]["p99_us"] / sample["idle"]["p99_us"]


class Row:
    """One figure. bars: of each codec the least (or, where less is better, the most) that folioswap / zram is to be, or
    that folioswap's own figure is to be (own); one number, or one of each frame."""

    def __init__(self, key, text, of, form="{:.0f}", bars=None, more_is_better=True, own=False, paired=True):
        self.key, self.text, self.of, self.form = key, text, of, form
        self.bars, self.more_is_better, self.own, self.paired = bars or {}, more_is_better, own, paired

    def bar(self, codec, frame):
        bar = self.bars.get(codec)
        return bar.get(frame) if isinstance(bar, dict) else bar

    def is_met(self, value, bar):
        return bar is None or (value >= bar if self.more_is_better else value <= bar)


def both(lz4, zstd):
    return {"lz4": lz4, "zstd:1": zstd}


ROWS = (
    Row("write", "write MiB/s, 1 stream", mib_s("write"), bars=both(1.2, 1.7)),
    Row("read", "read MiB/s, 1 stream", mib_s("read"), bars=both(1.1, 1.5)),
    Row("write_all", "write MiB/s, {} streams", mib_s("write_all"), bars=both(0.7, 1.1)),
    Row("read_all", "read MiB/s, {} streams", mib_s("read_all"), bars=both(0.9, 1.1)),
    Row("cpu_out", "CPU s per GiB out, 1 stream", cpu_s_per_gib("write"), "{:.2f}", more_is_better=False),
    Row("cpu_in", "CPU s per GiB in, 1 stream", cpu_s_per_gib("read"), "{:.2f}", more_is_better=False),
    Row("cpu_out_all", "CPU s per GiB out, {} streams", cpu_s_per_gib("write_all"), "{:.2f}", more_is_better=False),
    Row("cpu_in_all", "CPU s per GiB in, {} streams", cpu_s_per_gib("read_all"), "{:.2f}", more_is_better=False),
    Row("cpu_all", "CPU s per GiB out and in, {} streams", cpu_s_per_gib("write_all", "read_all"), "{:.2f}",
        bars=both(0.85, 0.65), more_is_better=False),
    Row("first", "first write pass MiB/s, 1 stream", mib_s("first")),
    Row("first_over_second", "  first pass / second", first_over_second, "{:.2f}", bars=both(0.9, 0.9), own=True),
    Row("ratio_stored", "ratio: stored", held("stored"), "{:.2f}",
        bars=both({"64K": 1.10, "whole": 1.15}, {"64K": 1.18, "whole": 1.24})),
    Row("ratio_resident", "ratio: resident", held("resident"), "{:.2f}"),
    Row("idle_p50", "read 4K p50 us, idle", lambda sample: sample["idle"]["p50_us"], more_is_better=False),
    Row("idle_p99", "read 4K p99 us, idle", lambda sample: sample["idle"]["p99_us"], more_is_better=False),
    Row("beside_p99", "read 4K p99 us, beside 2M writes", lambda sample: sample["beside"]["p99_us"],
        more_is_better=False),
    Row("p99_rise", "  beside / idle", p99_rise, "{:.2f}", bars=both(3, 3), more_is_better=False, own=True),
    Row("beside_written", "write MiB/s beside 4K reads", lambda sample: sample["beside"]["written_mib_s"]),
)


def spread(values):
    return {"median": median(values), "min": min(values), "max": max(values)}


def figure(row, group):
    """The row's figure of each device, and of each frame how it compares: the median of the ratios round by round."""
    values = {name: [row.of(sample) for sample in samples] for name, samples in group["samples"].items()}
    against = {}
    for name, ours in values.items():
        if name == ZRAM:
            continue
        ratio = spread([our / their for our, their in zip(ours, values[ZRAM])])
        bar = row.bar(group["codec"], name)
        judged = spread(ours) if row.own else ratio
        against[name] = {"ratio": ratio, "bar": bar, "met": row.is_met(round(judged["median"], 2), bar)}
    return {"devices": {name: spread(each) for name, each in values.items()}, "against_zram": against}


def figures(group):
    return {row.key: figure(row, group) for row in ROWS}


# ---- text ----

def bar_text(row, codec, frames):
    bars = [row.bar(codec, frame) for frame in frames]
    if all(bar is None for bar in bars):
        return ""
    texts = ["-" if bar is None else f"{bar:g}" if bar in (1, 3) else f"{bar:.2f}" for bar in bars]
    text = texts[0] if len(set(texts)) == 1 else " / ".join(texts)
    return f"{'>=' if row.more_is_better else '<='} {text}{', itself' if row.own else ''}"


def device_cell(row, value):
    form = row.form.format
    return f"{form(value['median'])} ({form(value['min'])}-{form(value['max'])})"


def ratio_cell(against):
    return f"{against['ratio']['median']:.2f}{' ' if against['met'] else '*'}"


def table(group, streams):
    """Of one codec. A * is a bar that was missed."""
    codec, found = group["codec"], figures(group)
    frames = [name for name in group["samples"] if name != ZRAM]
    lines = [[f"{codec}: median (min-max)", ZRAM, *(f"folioswap {frame}" for frame in frames),
              *(f"{frame}/zram " for frame in frames), "bar"]]
    for row in ROWS:
        one = found[row.key]
        lines.append([row.text.format(streams), *(device_cell(row, one["devices"][name]) for name in [ZRAM, *frames]),
                      *(ratio_cell(one["against_zram"][frame]) for frame in frames), bar_text(row, codec, frames)])
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join([line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in
                                                             zip(line[1:-1], widths[1:-1])), line[-1]]).rstrip()
                     for line in lines)


def title(result):
    machine = result["machine"]
    return (f"{machine['cpu']}, {machine['cpus']} CPUs, {machine['memory_bytes'] / GIB:.1f} GiB, Linux "
            f"{result['kernel']}; folioswap {result['versions']['folioswap']}, lz4 {result['versions']['lz4']}, zstd "
            f"{result['versions']['zstd']}, zram with the kernel's\n"
            f"{result['rounds']} rounds of {result['size_bytes'] >> 20} MiB, direct requests of 2 MiB; "
            f"{result['pool_bytes'] >> 20} MiB of {contents_text(result)}{settings_text(result)}")


def settings_text(result):
    cpus = f"; daemons on CPU {result['cpus']} alone" if result["cpus"] else ""
    return f"{cpus}; with {result['add']}" if result["add"] else cpus


def contents_text(result):
    if result["content"] != "heap":
        return f"{result['content']} contents"
    sources = result["sources"].split()
    return f"{len(sources)} kinds of heaps: {', '.join(sources)}"


NOTES = (
    "folioswap / zram: median of the ratios of neighbouring passes, round by round. *: misses the bar.",
    "CPU: busy time of the whole machine during a pass and 0.25 s after it, so daemon and kernel count alike.",
    "stored: payload, allocator and index (zram: mem_used_total). resident: all of the daemon; zram's table too.",
)


def report(result):
    return "\n\n".join([title(result), *(table(group, result["streams"]) for group in result["groups"]),
                        "\n".join(NOTES)])
