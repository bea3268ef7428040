# SPDX-License-Identifier: GPL-2.0-or-later
"""From measured numbers to figures, and from figures to a table and lines of text. Pure: reads and writes nothing.

A device as measured is a dictionary:

  name, kind ("folioswap" or "zram"), codec, frame (None for zram), unit_bytes (None), disk_bytes
  fixed_bytes   resident memory that does not depend on what is stored
  pageouts      of each run: page_cluster, out_mb_s, in_mb_s, cpu_s, written_bytes, major_faults, and, with
                everything swapped out: swapped, data, payload, stored, resident (bytes)
  seq_writes    of each run: page_cluster, mb_s (of each pass that was measured), cpu_s, written_bytes, major_faults
  randoms       of each run, after pages were read, rewritten and freed at random: swapped, data, stored (bytes),
                fault_p50_us, fault_p99_us (of single reads that had to wait for the device)
  orders        of each kind and order of requests: kind, order, size, requests, p50, p99 (nanoseconds)
"""
from statistics import median

GIB = 1 << 30
ORDER_REQUESTS_MIN = 100  # fewer have no 99th percentile
ZRAM_TABLE_ENTRY_BYTES = 16
PAGE_BYTES = 4096
TIE = 0.02  # a difference below is nobody's win


def zram_table_bytes(disk_bytes):
    return disk_bytes // PAGE_BYTES * ZRAM_TABLE_ENTRY_BYTES


def ratio(over, under):
    return over / under if under else None


def median_of(values):
    known = [value for value in values if value is not None]
    return median(known) if known else None


def at(runs, page_cluster):
    return [run for run in runs if run["page_cluster"] == page_cluster]


def seq_mb_s(runs):
    return [mb_s for run in runs for mb_s in run["mb_s"]]


def dead_share(run):
    return ratio(max(run["data"] - run["swapped"], 0), run["data"])


def cpu_s_per_gib(runs):
    return median_of([ratio(run["cpu_s"], run["written_bytes"] / GIB) for run in runs])


def by_page_cluster(runs, figure):
    return {str(cluster): figure(at(runs, cluster)) for cluster in sorted({run["page_cluster"] for run in runs})}


def first(figures):
    return next(iter(figures.values()), None)


def spread(values):
    """Half of the distance between the extremes, as a share of the median."""
    values = [value for value in values if value is not None]
    return (max(values) - min(values)) / 2 / median(values) if len(values) > 1 and median(values) else 0.0


def largest_spread(device):
    groups = [[run["out_mb_s"] for run in device["pageouts"]]]
    for cluster in {run["page_cluster"] for run in device["pageouts"]}:
        groups.append([run["in_mb_s"] for run in at(device["pageouts"], cluster)])
    for cluster in {run["page_cluster"] for run in device["seq_writes"]}:
        groups.append(seq_mb_s(at(device["seq_writes"], cluster)))
    return max(spread(group) for group in groups)


def latency(orders):
    return [{"kind": row["kind"], "order": row["order"], "size_bytes": row["size"], "requests": row["requests"],
             "p50_ns": row["p50"], "p99_ns": row["p99"]}
            for row in orders if row["kind"] in ("read", "write") and row["order"] is not None and row["requests"]]


def figures(device):
    """The figures of one device; what there is no value for is None."""
    outs, seqs, randoms = device["pageouts"], device["seq_writes"], device["randoms"]

    def held(over, under):
        return median_of([ratio(run[over], run[under]) for run in outs])

    def after_churn(figure):
        return median_of([figure(run) for run in randoms])

    in_mb_s = by_page_cluster(outs, lambda runs: median_of([run["in_mb_s"] for run in runs]))
    seq_write_mb_s = by_page_cluster(seqs, lambda runs: median_of(seq_mb_s(runs)))
    cpu = by_page_cluster(seqs, cpu_s_per_gib)
    faults = by_page_cluster(seqs, lambda runs: median_of([run["major_faults"] for run in runs]))
    return {
        "name": device["name"], "kind": device["kind"], "codec": device["codec"], "frame": device["frame"],
        "unit_bytes": device["unit_bytes"], "disk_bytes": device["disk_bytes"],
        "ratio_effective": held("swapped", "stored"),
        "dead_share": median_of([dead_share(run) for run in outs]),
        "ratio_payload": held("data", "payload"), "ratio_stored": held("data", "stored"),
        "ratio_effective_after_churn": after_churn(lambda run: ratio(run["swapped"], run["stored"])),
        "dead_share_after_churn": after_churn(dead_share),
        "fault_p50_us": after_churn(lambda run: run["fault_p50_us"]),
        "fault_p99_us": after_churn(lambda run: run["fault_p99_us"]),
        "ratio_resident": held("data", "resident"), "resident_fixed_bytes": device["fixed_bytes"],
        "out_mb_s": median_of([run["out_mb_s"] for run in outs]),
        "in_mb_s": first(in_mb_s), "in_mb_s_by_page_cluster": in_mb_s,
        "seq_write_mb_s": first(seq_write_mb_s), "seq_write_mb_s_by_page_cluster": seq_write_mb_s,
        "cpu_s_per_gib": first(cpu), "cpu_s_per_gib_by_page_cluster": cpu,
        "cpu_s_per_gib_pageout": cpu_s_per_gib(outs),
        "major_faults": first(faults), "major_faults_by_page_cluster": faults,
        "latency": latency(device["orders"]),
        "spread": largest_spread(device), "runs": {"pageout": outs, "seq_write": seqs, "random": randoms},
    }


# ---- text ----

def size_text(size):
    for unit, suffix in ((1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")):
        if size >= unit and size % (unit // 16) == 0:
            return f"{size / unit:g}{suffix}"
    return str(size)


def time_text(ns):
    for unit, suffix in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if ns >= unit:
            digits = 2 if ns < 10 * unit else 1 if ns < 100 * unit else 0
            return f"{ns / unit:.{digits}f}{suffix}"
    return f"{ns}ns"


def shown(form):
    return lambda value: "-" if value is None else form.format(value)


RATIO, SHARE, SPEED, SECONDS, COUNT, SHORT = map(shown, ("{:.2f}", "{:.1%}", "{:.0f}", "{:.2f}", "{:.0f}", "{:.1f}"))


def mib_text(value):
    return "-" if value is None else f"{value / (1 << 20):.1f}M"


# Label; key, or key and page-cluster; how it is written; which is better: more (1), less (-1), or neither (0).
FIGURE_ROWS = (
    ("effective ratio (swapped / stored)", "ratio_effective", None, RATIO, 1),
    ("  dead share", "dead_share", None, SHARE, 0),
    ("effective ratio after random churn", "ratio_effective_after_churn", None, RATIO, 1),
    ("  dead share after random churn", "dead_share_after_churn", None, SHARE, 0),
    ("ratio: payload", "ratio_payload", None, RATIO, 0),
    ("ratio: stored", "ratio_stored", None, RATIO, 1),
    ("ratio: resident", "ratio_resident", None, RATIO, 1),
    ("fixed memory", "resident_fixed_bytes", None, mib_text, -1),
    ("swap-out MB/s", "out_mb_s", None, SPEED, 1),
    ("swap-in MB/s, page-cluster {}", "in_mb_s_by_page_cluster", "each", SPEED, 1),
    ("seq-write MB/s, page-cluster {}", "seq_write_mb_s_by_page_cluster", "each", SPEED, 1),
    ("4 KiB fault at random, p50 us", "fault_p50_us", None, SHORT, -1),
    ("4 KiB fault at random, p99 us", "fault_p99_us", None, SHORT, -1),
    ("CPU s per GiB, pageout and back", "cpu_s_per_gib_pageout", None, SECONDS, -1),
    ("CPU s per GiB, seq-write, page-cluster {}", "cpu_s_per_gib_by_page_cluster", "each", SECONDS, -1),
    ("major faults, seq-write, page-cluster {}", "major_faults_by_page_cluster", "each", COUNT, -1),
)


def expand_rows(devices):
    """Rows of one value per device: (label, values, how written, which is better)."""
    for label, key, each, form, better in FIGURE_ROWS:
        if not each:
            yield label, [device[key] for device in devices], form, better
            continue
        for cluster in sorted({cluster for device in devices for cluster in device[key]}, key=int):
            yield label.format(cluster), [device[key].get(cluster) for device in devices], form, better


def latency_rows(devices):
    found = [{(row["kind"], row["order"]): row for row in device["latency"]} for device in devices]
    often = {key for rows in found for key, row in rows.items() if row["requests"] >= ORDER_REQUESTS_MIN}
    for kind, order in sorted(often, key=lambda key: (key[0] != "write", key[1])):
        cells = []
        for rows in found:
            row = rows.get((kind, order))
            few = not row or row["requests"] < ORDER_REQUESTS_MIN
            cells.append("-" if few else f"{time_text(row['p50_ns'])} / {time_text(row['p99_ns'])}")
        yield f"p50 / p99: {kind}, order {order} ({size_text(PAGE_BYTES << order)})", cells


def table(devices):
    rows = [("", [device["name"] for device in devices])]
    rows += [(label, [form(value) for value in values]) for label, values, form, _ in expand_rows(devices)]
    rows += list(latency_rows(devices))
    label_width = max(len(label) for label, _ in rows)
    widths = [max(len(cells[i]) for _, cells in rows) for i in range(len(devices))]
    return "\n".join("  ".join([label.ljust(label_width)] + [cell.rjust(width) for cell, width in zip(cells, widths)])
                     .rstrip() for label, cells in rows)


def wins(device, zram):
    """Which of the two is better where, as (folioswap's, zram's) lists of phrases 'what (its figure, the other's)'."""
    ours, theirs = [], []
    for label, (mine, other), form, better in expand_rows([device, zram]):
        if not better or mine is None or other is None or abs(mine - other) <= TIE * max(mine, other):
            continue
        we_win = (mine > other) == (better > 0)
        values = (form(mine), form(other)) if we_win else (form(other), form(mine))
        (ours if we_win else theirs).append(f"{label.strip()} ({values[0]} against {values[1]})")
    return ours, theirs


def times(value, other):
    return "-" if value is None or not other else f"{value / other:.2f}x"


def comparison(device, zram):
    """Lines about one folioswap device and the zram of the same codec."""
    seq, zram_seq = device["seq_write_mb_s_by_page_cluster"], zram["seq_write_mb_s_by_page_cluster"]
    speeds = ", ".join(f"{times(seq[cluster], zram_seq.get(cluster))} at page-cluster {cluster}" for cluster in seq)
    ours, theirs = wins(device, zram)
    yield (f"{device['name']} against {zram['name']}: stored ratio "
           f"{times(device['ratio_stored'], zram['ratio_stored'])}, seq-write {speeds}")
    yield f"  zram wins: {'; '.join(theirs) or 'nothing'}"
    yield f"  folioswap wins: {'; '.join(ours) or 'nothing'}"


def comparisons(devices):
    for zram in devices:
        for device in devices:
            if zram["kind"] == "zram" and device["kind"] == "folioswap" and device["codec"] == zram["codec"]:
                yield from comparison(device, zram)


def explanations(devices):
    """What one must know to read the table."""
    yield (f"Medians; the widest spread of a speed is +-{max(device['spread'] for device in devices):.0%}. Each run "
           "captures memory of real programs anew, which moves ratios by about 1 %.")
    yield ("stored: payload, allocator and index (zram: mem_used_total). resident: all memory of the daemon, its "
           "buffers and reserve too.")
    for zram in devices:
        if zram["kind"] == "zram":
            yield (f"{zram['name']}: its table, {ZRAM_TABLE_ENTRY_BYTES} bytes for each 4 KiB of disk size "
                   f"({mib_text(zram_table_bytes(zram['disk_bytes']))}), is not in mem_used_total; resident has it. "
                   "It keeps no latencies.")
    yield ("dead share: of what a device holds, the part that is no longer swapped out: zram hears of each page that "
           "is freed, a block device only of whole 2 MiB.")
    yield ("CPU: busy time of the whole machine while a run lasts, so that reclaim, daemon and kernel threads count "
           "alike on both sides, per GiB that went out and came back.")
    yield ("p50 / p99: of requests as they reach the daemon. A fault is more: the kernel's way to it and back. zram "
           "is asked page by page, without read-ahead: more faults, each shorter.")
