# SPDX-License-Identifier: GPL-2.0-or-later
"""The swap devices that are compared. Both kinds have the same members; only one is switched on at a time.

  on(), off()   as swap before all other
  held()        bytes swapped, data, payload, stored, resident, at this moment
  measured()    what demo_report.py knows about a device, save its runs
"""
import contextlib
import json
import os
import stat
import time

from demo_machine import Failed, Skipped, disk_counts, read, run, say, swaps, write
from demo_report import zram_table_bytes

PRIORITY = "32767"  # the highest there is
UNSAFE_CODE = 3  # folioswap add: refused as unsafe
SETTLE_S = 3
ZRAM_CONTROL = "/sys/class/zram-control"
ZRAM_LEVELS = {"lz4": 1, "zstd": 3}  # what it takes if not told


class Device:
    node = None

    def __init__(self, undo, size_bytes):
        self.undo = undo
        self.size_bytes = size_bytes
        self.swapon_options = ()

    def on(self):
        with self.undo.signals.held_back():
            run("swapon", *self.swapon_options, "--priority", PRIORITY, self.node)
            self.undo.add(f"swapoff {self.node}", self.off)

    def off(self):
        if self.node in swaps():
            run("swapoff", self.node)

    def used_bytes(self):
        return swaps()[self.node][0]

    def written_bytes(self):
        return disk_counts(self.node)[1]


class Folioswap(Device):
    kind = "folioswap"
    told = []  # warnings, once each

    def __init__(self, undo, build, size_bytes, codec, frame, merge):
        super().__init__(undo, size_bytes)
        self.merge = merge
        self.command = os.path.join(build, "folioswap")
        self.codec, self.frame = codec, frame
        self.name = f"folioswap {codec} {frame}"
        self.swapon_options = ("--discard",)

    def create(self):
        with self.undo.signals.held_back():
            self.add()
        self.number = next(device["name"] for device in self.ask("list") if device["node"] == self.node)
        state = self.ask("stat", self.number)[0]
        # Of the empty device: what does not grow with size (map), setting (reserve) or contents (records).
        self.fixed_bytes = state["resident"] - state["map"] - state["ready"] - state["records"] - state.get("standby_mem", 0)
        self.unit_bytes = state["unit"]

    def add(self):
        command = [self.command, "add", str(self.size_bytes), "--codec", self.codec, "--frame", self.frame,
                   f"--swapon={PRIORITY}"] + ["--merge"] * self.merge
        code, self.node, messages = run(*command, codes=(0, UNSAFE_CODE))
        if code == UNSAFE_CODE:
            _, self.node, warnings = run(*command, "--allow-unsafe")
            self.warn("going on with --allow-unsafe; for the swap of a whole machine heed what folioswap says here:")
            messages = "\n".join([messages, warnings])
        self.undo.add(f"folioswap del {self.node}", run, self.command, "del", self.node)
        for line in messages.splitlines():
            self.warn(line)
        self.off()

    def warn(self, line):
        if line not in self.told:
            self.told.append(line)
            say(line)

    def ask(self, *words):
        return next(iter(json.loads(run(self.command, *words, "--json")[1]).values()))

    def held(self):
        """Once all that was written is compressed, or after a few seconds."""
        deadline = time.monotonic() + SETTLE_S
        while True:
            state = self.ask("stat", self.number)[0]
            if not state["staged"] or time.monotonic() > deadline:
                break
            time.sleep(0.1)
        return {"swapped": self.used_bytes()} | {key: state[key] for key in ("data", "payload", "stored", "resident")}

    def measured(self):
        return {"name": self.name, "kind": self.kind, "codec": self.codec, "frame": self.frame,
                "unit_bytes": self.unit_bytes, "disk_bytes": self.size_bytes, "fixed_bytes": self.fixed_bytes,
                "orders": self.ask("stat", "--orders", self.number)}


class Zram(Device):
    kind = "zram"

    def __init__(self, undo, size_bytes, codec):
        super().__init__(undo, size_bytes)
        self.codec = codec
        self.name = f"zram {codec}"

    def create(self):
        algorithm, _, level = self.codec.partition(":")
        with self.undo.signals.held_back():
            self.hot_add()
        self.write("comp_algorithm", algorithm, f"this kernel's zram has no {algorithm}")
        if level and int(level) != ZRAM_LEVELS.get(algorithm):
            self.write("algorithm_params", f"algo={algorithm} level={level}",
                       f"this kernel's zram cannot set a level of {algorithm}")
        self.write("disksize", str(self.size_bytes), f"this kernel's zram takes no {self.codec}")
        self.wait_for_node()
        run("mkswap", self.node)

    def hot_add(self):
        """A device of our own: those that are there may be somebody's."""
        if not os.path.isdir(ZRAM_CONTROL):
            with contextlib.suppress(Failed):
                run("modprobe", "zram")
                self.undo.add("removing the zram module", self.remove_module)
        try:
            number = read(f"{ZRAM_CONTROL}/hot_add").strip()
        except OSError as error:
            raise Skipped(f"this kernel has no zram ({error})") from error
        self.node, self.folder = f"/dev/zram{number}", f"/sys/block/zram{number}"
        self.undo.add(f"removing {self.node}", self.hot_remove, number)

    def remove_module(self):
        """It stays where somebody has found a use for it meanwhile."""
        with contextlib.suppress(Failed):
            run("modprobe", "-r", "zram")

    def hot_remove(self, number):
        """Whoever watches for new devices may hold it open for a moment."""
        for _ in range(50):
            try:
                return write(f"{ZRAM_CONTROL}/hot_remove", number)
            except OSError as error:
                last = error
                time.sleep(0.1)
        raise last

    def write(self, name, value, reason):
        try:
            write(f"{self.folder}/{name}", value)
        except OSError as error:
            raise Skipped(f"{reason} ({error.strerror})") from error

    def wait_for_node(self):
        """devtmpfs or udev makes it; a container's /dev has only what was there when it started."""
        for _ in range(40):
            if os.path.exists(self.node):
                return
            time.sleep(0.05)
        major, minor = map(int, read(f"{self.folder}/dev").split(":"))
        with self.undo.signals.held_back():
            try:
                os.mknod(self.node, stat.S_IFBLK | 0o600, os.makedev(major, minor))
            except OSError as error:
                raise Skipped(f"{self.node} does not appear and cannot be made ({error.strerror})") from error
            self.undo.add(f"removing the node {self.node}", os.unlink, self.node)

    def held(self):
        data, payload, stored = map(int, read(f"{self.folder}/mm_stat").split()[:3])
        return {"swapped": self.used_bytes(), "data": data, "payload": payload, "stored": stored,
                "resident": stored + zram_table_bytes(self.size_bytes)}

    def measured(self):
        return {"name": self.name, "kind": self.kind, "codec": self.codec, "frame": None, "unit_bytes": None,
                "disk_bytes": self.size_bytes, "fixed_bytes": zram_table_bytes(self.size_bytes), "orders": []}
