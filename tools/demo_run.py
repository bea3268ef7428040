# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds, makes the devices, lets them take turns, takes everything down, prints. Started by tools/demo."""
import argparse
import datetime
import json
import os
import shutil
import signal
import sys
import tempfile
import textwrap

import demo_report
from demo_devices import PRIORITY, Folioswap, Zram
from demo_load import Load, parse_size
from demo_machine import (Failed, Signals, Skipped, Stopped, Undo, available_bytes, busy_share, describe, elapsed_s,
                          prepare, run, say, swaps)

TIME_LIMIT_S = 155  # under three minutes, with something in hand
ROUNDS_MAX = 3  # those beyond the first are left out when they would end later
SMALL_SIZE_MIN = 48 << 20
RUN_S = 2  # what a run takes besides moving bytes
PAGE_CLUSTERS = (3, 5)
PROGRAMS = ("folioswap", "folioswapd", "swapload")
BUSY_SHARE_MAX = 0.1
ELSEWHERE_MAX = 0.05


def size_option(text):
    try:
        return parse_size(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is no size: bytes, or a number with K, M, G") from None


class Parser(argparse.ArgumentParser):
    def error(self, message):
        print(f"demo: {message}; see tools/demo --help", file=sys.stderr)
        sys.exit(2)


def parse_options():
    parser = Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--codec", action="append", dest="codecs")
    parser.add_argument("--frame", action="append", dest="frames")
    parser.add_argument("--no-merge", action="store_false", dest="merge")
    parser.add_argument("--size", type=size_option)
    parser.add_argument("--limit", type=size_option)
    options = parser.parse_args()
    options.codecs = list(dict.fromkeys(options.codecs or ["lz4"]))
    options.frames = list(dict.fromkeys(options.frames or ["64K", "whole"]))
    options.fits_time = not (options.size or options.limit)
    options.size = options.size or ((64 if options.quick else 384) << 20)
    options.limit = options.limit or options.size // 2
    options.passes = 2 if options.quick else 3
    options.rounds = 1 if options.quick else ROUNDS_MAX
    if options.limit >= options.size:
        parser.error("--limit: must be below --size, or nothing is swapped out")
    if options.size < 16 << 20:
        parser.error("--size: at least 16M")
    return options


def build_programs():
    """Returns the directory of the programs, new ones unless FOLIOSWAP_BUILD names one."""
    folder = os.environ.get("FOLIOSWAP_BUILD")
    if not folder:
        say("building (build/release/)")
        run("cmake", "--preset", "release")
        run("cmake", "--build", "--preset", "release", "--parallel", str(os.cpu_count()), "--target", *PROGRAMS)
        folder = os.path.abspath("build/release")
    for name in PROGRAMS:
        if not os.access(os.path.join(folder, name), os.X_OK):
            raise Failed(f"there is no {os.path.join(folder, name)}: is FOLIOSWAP_BUILD the directory of the programs?")
    return folder


def check_memory(options):
    # The memory itself, its copy in the device, what it is compared with, the daemons.
    needed = 2 * options.size + (512 << 20)
    if available_bytes() < needed:
        raise Failed(f"{available_bytes() >> 20} MiB of memory are available, {needed >> 20} MiB are needed: end "
                     "some programs, or give --quick or a smaller --size")


class Demo:
    def __init__(self, options, signals, undo):
        self.options, self.signals, self.undo = options, signals, undo
        self.notes, self.devices, self.runs = [], [], {}
        self.limit_s = TIME_LIMIT_S * len(options.codecs)
        self.small_size = options.size  # of seq-write and random
        self.busy = 0.0

    def note(self, text):
        self.notes.append(text)
        say(text)

    def start(self):
        self.build = build_programs()
        check_memory(self.options)
        folder = tempfile.mkdtemp(prefix="folioswap-demo.")
        self.undo.add(f"removing {folder}", shutil.rmtree, folder)
        self.load = Load(self.build, folder, self.signals)
        for note in prepare(self.undo):
            self.note(note)
        for path, (_, priority) in swaps().items():
            if priority == int(PRIORITY):
                raise Failed(f"{path} is swap of the highest priority there is ({PRIORITY}) and would get a share of "
                             "the pages: give it a lower one, or switch it off for the time being")
            self.note(f"{path} is in use as swap (priority {priority}) and stays so; the demo's have {PRIORITY}")
        self.make_devices()

    def make_devices(self):
        # Room for what is swapped out, for what a device has not yet heard is free, and for the swap header.
        size_bytes = max(2 * self.options.size + self.options.size // 2, 256 << 20) >> 21 << 21
        for codec in self.options.codecs:
            for frame in self.options.frames:
                self.make(Folioswap(self.undo, self.build, size_bytes, codec, frame, self.options.merge))
            try:
                self.make(Zram(self.undo, size_bytes, codec))
            except Skipped as skipped:
                self.note(f"SKIPPED: zram {codec}: {skipped}")

    def make(self, device):
        device.create()
        say(f"{device.node} is {device.name}")
        self.devices.append(device)
        self.runs[device] = {"pageouts": [], "seq_writes": [], "randoms": []}

    def turn(self, device, what, function, *arguments):
        self.busy = max(self.busy, busy_share(0.2))
        say(f"{device.name}: {what}")
        device.on()
        try:
            return function(device, *arguments)
        finally:
            device.off()

    def pageouts(self, cluster):
        for device in self.devices:
            result = self.turn(device, f"pageout of whole folios, page-cluster {cluster}", self.load.pageout, cluster,
                               self.options.size)
            self.check_place(device, result)
            self.runs[device]["pageouts"].append(result)

    def check_place(self, device, result):
        """Swap that is switched on meanwhile, with the same priority, takes a share."""
        share = result["swapped"] / result["workload_swapped"]
        if not 1 - ELSEWHERE_MAX < share < 1 + ELSEWHERE_MAX:
            self.note(f"{device.name}: it held {share:.0%} of what the workload had in swap: somebody else swapped at "
                      "the same time, and these figures are not right")

    def small_limit(self):
        return self.options.limit * self.small_size // self.options.size

    def seq_writes(self, cluster):
        for device in self.devices:
            result = self.turn(device, f"seq-write, page-cluster {cluster}", self.load.seq_write, cluster,
                               self.small_size, self.small_limit(), self.options.passes)
            self.runs[device]["seq_writes"].append(result)

    def randoms(self, cluster):
        for device in self.devices:
            result = self.turn(device, "random", self.load.random, cluster, self.small_size, self.small_limit())
            self.runs[device]["randoms"].append(result)

    def moving_s(self):
        """What seq-write at all page-clusters is to take: each byte comes back as often as there are passes, somewhat
        slower than in pageout, which has shown how fast that is here."""
        return sum(self.small_size * (self.options.passes + 1) / 0.5e6 / run["in_mb_s"]
                   for runs in self.runs.values() for run in runs["pageouts"][:len(PAGE_CLUSTERS)])

    def fit(self, estimate_s):
        """Makes runs smaller where they would not end in time, for all devices alike. The last part is random."""
        left_s = self.limit_s - elapsed_s() - 2 * RUN_S * len(self.devices)
        was = self.small_size
        while self.options.fits_time and estimate_s > left_s and self.small_size > SMALL_SIZE_MIN:
            self.small_size //= 2
            estimate_s /= 2
        if self.small_size < was:
            self.note(f"from here on {self.small_size >> 20} MiB a run, not {self.options.size >> 20}, to end in time")

    def measure(self):
        """In turns, so that what disturbs one device disturbs the others. At least once; again as time permits."""
        for device in self.devices:
            self.turn(device, "warm-up", self.load.warm_up, self.options.size // 8)
        parts = [(run, cluster) for run in (self.pageouts, self.seq_writes) for cluster in PAGE_CLUSTERS]
        parts.append((self.randoms, PAGE_CLUSTERS[0]))
        took_s = {}
        for number in range(1, self.options.rounds + 1):
            for function, cluster in parts:
                if number > 1 and elapsed_s() + took_s[function, cluster] * 1.3 > self.limit_s:
                    continue
                if number == 1 and function == self.seq_writes:
                    self.fit(took_s.get((function, PAGE_CLUSTERS[0])) or self.moving_s())
                start_s = elapsed_s()
                function(cluster)
                took_s[function, cluster] = elapsed_s() - start_s

    def result(self):
        if self.busy > BUSY_SHARE_MAX:
            self.note(f"the machine was up to {self.busy:.0%} busy with something else: speeds and CPU times are "
                      "disturbed; run it again when it is quiet")
        sources = sorted({run["sources"] for runs in self.runs.values() for run in runs["pageouts"]})
        if len(sources) > 1:
            self.note(f"not all runs had memory of the same programs ({'; '.join(sources)}): ratios compare less well")
        devices = [demo_report.figures(device.measured() | self.runs[device]) for device in self.devices]
        workload = {"size_bytes": self.options.size, "limit_bytes": self.options.limit, "content": "heap", "thp": True,
                    "seed": 1, "page_clusters": list(PAGE_CLUSTERS), "quick": self.options.quick,
                    "merge": self.options.merge}
        versions = {name: run(os.path.join(self.build, name), "--version")[1].split()[-1] for name in PROGRAMS}
        return {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                "machine": describe(), "kernel": os.uname().release, "versions": versions, "workload": workload,
                "devices": devices, "notes": self.notes, "warnings": Folioswap.told}


def print_text(result):
    machine = result["machine"]
    print(f"{machine['cpu']}, {machine['cpus']} CPUs, {machine['memory_bytes'] / (1 << 30):.1f} GiB, "
          f"Linux {result['kernel']}; {result['workload']['size_bytes'] >> 20} MiB of real heaps\n")
    print(demo_report.table(result["devices"]) + "\n")
    lines = list(demo_report.explanations(result["devices"])) + list(demo_report.comparisons(result["devices"]))
    if result["workload"]["merge"]:
        lines.append("folioswap merges requests here (add --merge), which is right for swap of control groups; "
                     "--no-merge shows it without")
    for line in lines + [f"note: {note}" for note in result["notes"]]:
        print(textwrap.fill(line, 110, subsequent_indent="    ", break_on_hyphens=False))


def main():
    options = parse_options()
    signals = Signals()
    undo = Undo(signals)
    demo = Demo(options, signals, undo)
    result, stopped, code = None, 0, 0
    try:
        demo.start()
        demo.measure()
        result = demo.result()
    except (Failed, OSError) as error:
        print(f"demo: {error}", file=sys.stderr)
        code = 1
    except Stopped as stop:
        say("stopping, and putting everything back")
        stopped = stop.number
    finally:
        code = 1 if undo.run() else code
    if stopped or signals.pending:
        signal.signal(stopped or signals.pending, signal.SIG_DFL)
        os.kill(os.getpid(), stopped or signals.pending)
    if result:
        say(f"done; took {elapsed_s():.0f} s")
        print(json.dumps(result, indent=2)) if options.json else print_text(result)
    return code


if __name__ == "__main__":
    sys.exit(main())
