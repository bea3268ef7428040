#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures, table and lines of tools/demo_report.py, from made-up measurements with figures worked out by hand."""
import copy
import json
import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools"))
import demo_report  # noqa: E402  (found by the line above)

GIB = 1 << 30
MIB = 1 << 20


def pageout(cluster, out_mb_s, in_mb_s, stored=100, **changes):
    return {"page_cluster": cluster, "out_mb_s": out_mb_s, "in_mb_s": in_mb_s, "cpu_s": 3.0, "written_bytes": GIB // 2,
            "major_faults": 10, "swapped": 300, "data": 320, "payload": 80, "stored": stored, "resident": 160} | changes


def seq_write(cluster, mb_s, cpu_s=2.0, faults=1000):
    return {"page_cluster": cluster, "mb_s": mb_s, "cpu_s": cpu_s, "written_bytes": 2 * GIB, "major_faults": faults}


def random(stored, p50, p99):
    return {"swapped": 200, "data": 250, "stored": stored, "fault_p50_us": p50, "fault_p99_us": p99}


def order(kind, number, requests, p50, p99):
    return {"kind": kind, "order": number, "size": None if number is None else 4096 << number, "requests": requests,
            "p50": p50, "p99": p99}


FOLIOSWAP = {
    "name": "folioswap lz4 64K", "kind": "folioswap", "codec": "lz4", "frame": "64K", "unit_bytes": 2 * MIB,
    "disk_bytes": GIB, "fixed_bytes": 24 * MIB,
    "pageouts": [pageout(3, 400, 100), pageout(5, 500, 300), pageout(3, 300, 140, stored=120), pageout(5, 450, 320)],
    "seq_writes": [seq_write(3, [90, 110]), seq_write(5, [200, 210], faults=100), seq_write(3, [100, 300], cpu_s=4.0)],
    "randoms": [random(100, 90.0, 900.0), random(80, 110.0, None)],
    "orders": [order("write", 0, 5000, 968, 7600), order("read", 3, 99, 5000, 6000), order("read", 0, 100, 356, 47600),
               order("read", None, 199, 400, 47600), order("discard", 9, 400, 5000, 3000000),
               order("close", 9, 400, 5000000, 6000000), order("write", 8, 200, 2900000, 1234567890)],
}
ZRAM = {
    "name": "zram lz4", "kind": "zram", "codec": "lz4", "frame": None, "unit_bytes": None, "disk_bytes": GIB,
    "fixed_bytes": 4 * MIB, "orders": [], "randoms": [random(125, 9.0, 40.0)],
    "pageouts": [pageout(3, 200, 500, stored=150), pageout(5, 210, 520, stored=150)],
    "seq_writes": [seq_write(3, [200, 200], cpu_s=8.0, faults=8000), seq_write(5, [202, 202], faults=8000)],
}


class Figures(unittest.TestCase):
    def setUp(self):
        self.ours = demo_report.figures(copy.deepcopy(FOLIOSWAP))
        self.zram = demo_report.figures(copy.deepcopy(ZRAM))

    def test_ratios_are_medians_of_ratios(self):
        self.assertAlmostEqual(self.ours["ratio_effective"], 3.0)  # 3, 3, 2.5, 3
        self.assertAlmostEqual(self.ours["dead_share"], 20 / 320)
        self.assertAlmostEqual(self.ours["ratio_payload"], 4.0)
        self.assertAlmostEqual(self.ours["ratio_stored"], 3.2)
        self.assertAlmostEqual(self.ours["ratio_resident"], 2.0)
        self.assertEqual(self.ours["resident_fixed_bytes"], 24 * MIB)

    def test_after_churn(self):
        self.assertAlmostEqual(self.ours["ratio_effective_after_churn"], 2.25)
        self.assertAlmostEqual(self.ours["dead_share_after_churn"], 0.2)
        self.assertEqual((self.ours["fault_p50_us"], self.ours["fault_p99_us"]), (100, 900))

    def test_speeds_are_medians_by_page_cluster(self):
        self.assertEqual(self.ours["out_mb_s"], 425)
        self.assertEqual(self.ours["in_mb_s"], 120)
        self.assertEqual(self.ours["in_mb_s_by_page_cluster"], {"3": 120, "5": 310})
        self.assertEqual(self.ours["seq_write_mb_s_by_page_cluster"], {"3": 105, "5": 205})
        self.assertEqual(self.ours["seq_write_mb_s"], 105)

    def test_cpu_is_per_gib_written(self):
        self.assertAlmostEqual(self.ours["cpu_s_per_gib"], 1.5)  # 2 s and 4 s for 2 GiB
        self.assertAlmostEqual(self.ours["cpu_s_per_gib_by_page_cluster"]["5"], 1.0)
        self.assertAlmostEqual(self.ours["cpu_s_per_gib_pageout"], 6.0)
        self.assertEqual(self.ours["major_faults"], 1000)
        self.assertEqual(self.ours["major_faults_by_page_cluster"], {"3": 1000, "5": 100})

    def test_latency_is_of_reads_and_writes_of_one_order(self):
        self.assertEqual(sorted((row["kind"], row["order"]) for row in self.ours["latency"]),
                         [("read", 0), ("read", 3), ("write", 0), ("write", 8)])
        self.assertEqual(self.ours["latency"][0], {"kind": "write", "order": 0, "size_bytes": 4096, "requests": 5000,
                                                   "p50_ns": 968, "p99_ns": 7600})
        self.assertEqual(self.zram["latency"], [])

    def test_more_swapped_than_data_is_no_dead_share(self):
        device = copy.deepcopy(FOLIOSWAP)
        device["pageouts"] = [pageout(3, 1, 1, data=299)]
        self.assertEqual(demo_report.figures(device)["dead_share"], 0)

    def test_what_is_not_known_is_none(self):
        device = copy.deepcopy(FOLIOSWAP)
        device["pageouts"] = [pageout(3, None, None, stored=0, written_bytes=0)]
        device["seq_writes"] = device["randoms"] = []
        figures = demo_report.figures(device)
        for key in ("ratio_effective", "ratio_stored", "out_mb_s", "in_mb_s", "cpu_s_per_gib_pageout", "cpu_s_per_gib",
                    "major_faults", "seq_write_mb_s", "fault_p50_us", "dead_share_after_churn"):
            self.assertIsNone(figures[key], key)
        self.assertIn("-", demo_report.table([figures]))

    def test_spread_is_that_of_like_runs(self):
        self.assertAlmostEqual(self.ours["spread"], (300 - 90) / 2 / 105)  # seq-write, page-cluster 3
        self.assertAlmostEqual(self.zram["spread"], 5 / 205)

    def test_json_takes_it(self):
        self.assertEqual(json.loads(json.dumps(self.ours)), self.ours)

    def test_zram_table(self):
        self.assertEqual(demo_report.zram_table_bytes(GIB), 4 * MIB)


class Text(unittest.TestCase):
    def setUp(self):
        self.ours = demo_report.figures(copy.deepcopy(FOLIOSWAP))
        self.zram = demo_report.figures(copy.deepcopy(ZRAM))
        self.rows = {}
        for line in demo_report.table([self.ours, self.zram]).splitlines():
            self.rows[line[:42].strip()] = line[42:].split("  ")

    def cells(self, label):
        return [cell.strip() for cell in self.rows[label] if cell.strip()]

    def test_table(self):
        self.assertEqual(self.cells(""), ["folioswap lz4 64K", "zram lz4"])
        self.assertEqual(self.cells("effective ratio (swapped / stored)"), ["3.00", "2.00"])
        self.assertEqual(self.cells("dead share"), ["6.2%", "6.2%"])
        self.assertEqual(self.cells("fixed memory"), ["24.0M", "4.0M"])
        self.assertEqual(self.cells("seq-write MB/s, page-cluster 5"), ["205", "202"])
        self.assertEqual(self.cells("p50 / p99: write, order 8 (1M)"), ["2.90ms / 1.23s", "-"])
        self.assertEqual(self.cells("p50 / p99: read, order 0 (4K)"), ["356ns / 47.6us", "-"])

    def test_few_requests_have_no_row(self):
        self.assertNotIn("p50 / p99: read, order 3 (32K)", self.rows)

    def test_columns_are_aligned(self):
        lines = demo_report.table([self.ours, self.zram]).splitlines()
        self.assertEqual(len({len(line) for line in lines}), 1)

    def test_who_wins_where(self):
        ours, theirs = demo_report.wins(self.ours, self.zram)
        self.assertIn("effective ratio (swapped / stored) (3.00 against 2.00)", ours)
        self.assertIn("CPU s per GiB, seq-write, page-cluster 3 (1.50 against 4.00)", ours)
        self.assertIn("swap-in MB/s, page-cluster 3 (500 against 120)", theirs)
        self.assertIn("fixed memory (4.0M against 24.0M)", theirs)
        self.assertIn("4 KiB fault at random, p50 us (9.0 against 100.0)", theirs)
        # 205 against 202 is a tie; a payload ratio or a dead share is nobody's win.
        for phrase in ours + theirs:
            self.assertFalse(phrase.startswith(("seq-write MB/s, page-cluster 5", "ratio: payload", "dead share")))

    def test_comparisons_are_of_the_same_codec(self):
        other = demo_report.figures(copy.deepcopy(FOLIOSWAP) | {"codec": "zstd", "name": "folioswap zstd 64K"})
        lines = list(demo_report.comparisons([self.ours, other, self.zram]))
        self.assertEqual(len(lines), 3)
        self.assertIn("stored ratio 1.50x, seq-write 0.53x at page-cluster 3, 1.01x at page-cluster 5", lines[0])
        self.assertTrue(lines[1].strip().startswith("zram wins: "))
        self.assertEqual(list(demo_report.comparisons([self.ours, other])), [])

    def test_winning_nothing_is_said(self):
        lines = list(demo_report.comparison(self.zram, self.zram))
        self.assertEqual(lines[1:], ["  zram wins: nothing", "  folioswap wins: nothing"])

    def test_explanations_name_the_table_of_zram(self):
        text = "\n".join(demo_report.explanations([self.ours, self.zram]))
        self.assertIn("(4.0M), is not in mem_used_total", text)
        self.assertIn("+-100%", text)
        self.assertNotIn("mem_used_total; resident", "\n".join(demo_report.explanations([self.ours])))

    def test_units(self):
        for ns, text in ((0, "0ns"), (999, "999ns"), (1000, "1.00us"), (47600, "47.6us"), (999900, "1000us"),
                         (1234567, "1.23ms"), (5e9, "5.00s"), (1e12, "1000s")):
            self.assertEqual(demo_report.time_text(ns), text)
        for size, text in ((4096, "4K"), (1 << 20, "1M"), (1 << 24, "16M"), (1 << 30, "1G"), (100, "100")):
            self.assertEqual(demo_report.size_text(size), text)


if __name__ == "__main__":
    unittest.main()
