# SPDX-License-Identifier: GPL-2.0-or-later
"""The machine under the demo: programs, signals, settings, what /proc and /sys tell, and putting everything back."""
import contextlib
import os
import signal
import subprocess
import sys
import time

TICK_HZ = os.sysconf("SC_CLK_TCK")
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
RUN_TIMEOUT_S = 300
PROGRAM = "demo"  # of the messages; tools/bench_zram has another
STARTED = float(os.environ.get("DEMO_STARTED", time.time()))


class Failed(Exception):
    """One clear line for the user."""


class Skipped(Exception):
    """Why something is left out."""


class Stopped(BaseException):
    def __init__(self, number):
        super().__init__(number)
        self.number = number


def elapsed_s():
    return time.time() - STARTED


def say(text):
    print(f"{PROGRAM}: [{elapsed_s():4.0f} s] {text}", file=sys.stderr, flush=True)


class Signals:
    """Turns signals into Stopped, but never between making a thing and noting how to undo it."""

    def __init__(self):
        self.pending = self.depth = 0
        for number in STOP_SIGNALS:
            signal.signal(number, self.receive)

    def receive(self, number, _frame):
        if not self.pending:
            self.pending = number
            if not self.depth:
                raise Stopped(number)

    @contextlib.contextmanager
    def held_back(self):
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1
        if self.pending and not self.depth:
            raise Stopped(self.pending)


class Undo:
    """What was changed, undone last first. A step that fails is told of, and the others are done all the same."""

    def __init__(self, signals):
        self.signals = signals
        self.steps = []

    def add(self, what, function, *arguments):
        self.steps.append((what, function, arguments))

    def run(self):
        failures = 0
        with contextlib.suppress(Stopped), self.signals.held_back():
            while self.steps:
                what, function, arguments = self.steps.pop()
                try:
                    function(*arguments)
                except Exception as error:  # whatever it is, the next step is due
                    print(f"{PROGRAM}: {what} failed: {error}", file=sys.stderr, flush=True)
                    failures += 1
        return failures


def read(path):
    with open(path, encoding="ascii", errors="replace") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def run(*command, codes=(0,)):
    """Output of a program (code, stdout, stderr). In a session of its own: ctrl-C is for us to handle."""
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, start_new_session=True)
    except OSError as error:
        raise Failed(f"{command[0]}: {error.strerror}") from error
    try:
        out, errors = process.communicate(timeout=RUN_TIMEOUT_S)
    except subprocess.TimeoutExpired as error:
        kill_session(process)
        raise Failed(f"'{' '.join(command)}' does not end in {RUN_TIMEOUT_S} s") from error
    except BaseException:
        kill_session(process)
        raise
    if process.returncode not in codes:
        # Compilers and their drivers tell of errors wherever they like.
        reason = errors.strip() or "\n".join(out.strip().splitlines()[-40:]) or f"exit code {process.returncode}"
        raise Failed(f"'{' '.join(command)}' failed: {reason}")
    return process.returncode, out.strip(), errors.strip()


def kill_session(process):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def change(undo, path, value, restored):
    """Writes a setting, for as long as the demo runs."""
    with undo.signals.held_back():
        write(path, value)
        undo.add(f"setting {path} back to {restored}", write, path, restored)


def swaps():
    """/proc/swaps: path -> (used bytes, priority)."""
    found = {}
    for line in read("/proc/swaps").splitlines()[1:]:
        path, _, _, used_kib, priority = line.rsplit(None, 4)
        found[path.strip()] = (int(used_kib) << 10, int(priority))
    return found


def busy_s():
    """CPU time that was not idle, of all processors. Steal is another machine's."""
    user, nice, system, _idle, _iowait, irq, softirq = map(int, read("/proc/stat").split(None, 8)[1:8])
    return (user + nice + system + irq + softirq) / TICK_HZ


def busy_share(seconds):
    start_s, start = time.monotonic(), busy_s()
    time.sleep(seconds)
    return min((busy_s() - start) / (time.monotonic() - start_s) / os.cpu_count(), 1)


def disk_counts(node):
    """Bytes (read, written) of a block device since it was made."""
    fields = read(f"/sys/class/block/{os.path.basename(node)}/stat").split()
    return int(fields[2]) * 512, int(fields[6]) * 512


def available_bytes():
    for line in read("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    return 0


def describe():
    """What the figures were measured on."""
    names = {}
    for path, separator in (("/proc/cpuinfo", ":"), ("/proc/meminfo", ":"), ("/etc/os-release", "=")):
        with contextlib.suppress(OSError):
            for line in read(path).splitlines():
                key, _, value = line.partition(separator)
                names.setdefault(key.strip(), value.strip().strip('"'))
    return {"cpu": names.get("model name") or names.get("cpu") or os.uname().machine, "cpus": os.cpu_count(),
            "memory_bytes": int(names["MemTotal"].split()[0]) << 10, "system": names.get("PRETTY_NAME", ""),
            "architecture": os.uname().machine}


# ---- settings of the kernel that the demo needs ----

PAGE_CLUSTER = "/proc/sys/vm/page-cluster"
SWAPPINESS = "/proc/sys/vm/swappiness"
THP_ENABLED = "/sys/kernel/mm/transparent_hugepage/enabled"
ZSWAP_ENABLED = "/sys/module/zswap/parameters/enabled"


def prepare(undo):
    """Makes huge pages available on request and takes away what would swallow pages before they reach a device."""
    notes = []
    undo.add("setting vm.page-cluster back", write, PAGE_CLUSTER, read(PAGE_CLUSTER))
    try:
        if "[never]" in read(THP_ENABLED):
            change(undo, THP_ENABLED, "madvise", "never")
            notes.append("huge pages were off: madvise while the demo runs")
    except FileNotFoundError:
        notes.append("this kernel has no huge pages: folios are single pages, which is not what folioswap is for")
    with contextlib.suppress(FileNotFoundError):
        if read(ZSWAP_ENABLED).strip() == "Y":
            change(undo, ZSWAP_ENABLED, "N", "Y")
            notes.append("zswap stands before every swap device: off while the demo runs")
    if read(SWAPPINESS).strip() == "0":
        change(undo, SWAPPINESS, "60", "0")
        notes.append("vm.swappiness was 0: 60 while the demo runs")
    return notes
