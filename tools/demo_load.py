# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs of swapload on the device that is switched on, and what they cost the machine."""
import contextlib
import json
import os
import re
import signal
import subprocess
import time

from demo_machine import PAGE_CLUSTER, Failed, busy_s, read, write

POLL_S = 0.02
RUN_TIMEOUT_S = 400
END_TIMEOUT_S = 60
RANDOM_OPERATIONS = 20000


class Load:
    def __init__(self, build, folder, signals):
        self.program = os.path.join(build, "swapload")
        self.folder = folder
        self.signals = signals
        self.cgroup = f"folioswap-demo-{os.getpid()}"
        self.held_path, self.go_path = os.path.join(folder, "held"), os.path.join(folder, "go")
        os.mkfifo(self.go_path)

    def has_workers(self):
        """Workers join their control group when the contents are captured: from then on CPU time is counted."""
        for name in os.listdir("/proc"):
            if name.isdigit():
                with contextlib.suppress(OSError):
                    if self.cgroup in read(f"/proc/{name}/cgroup"):
                        return True
        return False

    @contextlib.contextmanager
    def started(self, arguments):
        report, errors = os.path.join(self.folder, "report"), os.path.join(self.folder, "errors")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.held_path)
        process = None
        try:
            with self.signals.held_back(), open(report, "wb") as out, open(errors, "wb") as log:
                process = subprocess.Popen([self.program, *arguments, "--cgroup", self.cgroup, "--thp", "--json"],
                                           stdin=subprocess.DEVNULL, stdout=out, stderr=log, start_new_session=True)
            yield process
        finally:
            if process:
                end(process)

    def wait(self, process, condition):
        """Until it holds (True), or swapload has ended (False)."""
        deadline = time.monotonic() + RUN_TIMEOUT_S
        while process.poll() is None:
            if condition():
                return True
            if time.monotonic() > deadline:
                raise Failed(f"{self.program} does not come to an end in {RUN_TIMEOUT_S} s")
            time.sleep(POLL_S)
        return False

    def let_go(self, process):
        """The command of --hold-cmd waits for a line; it opens its end after it has said that it holds."""
        def opened():
            with contextlib.suppress(OSError):
                pipe = os.open(self.go_path, os.O_WRONLY | os.O_NONBLOCK)
                os.write(pipe, b"go\n")
                os.close(pipe)
                return True
            return False
        self.wait(process, opened)

    def report(self, process):
        process.wait()
        if process.returncode == 0:
            return json.loads(read(os.path.join(self.folder, "report")))
        errors = read(os.path.join(self.folder, "errors")).strip().splitlines()
        lines = [line for line in errors if "warning" not in line]
        # The first line tells the cause, others what became of it.
        raise Failed(f"the workload failed: {lines[0] if lines else f'code {process.returncode}'}")

    def run(self, device, page_cluster, arguments, hold=None):
        """Runs swapload; calls hold() with most in swap, whose time and CPU do not count. Returns its report, and
        what the run cost."""
        write(PAGE_CLUSTER, str(page_cluster))
        before = device.written_bytes()
        if hold:
            arguments = [*arguments, "--hold-cmd", f": >'{self.held_path}'; read -r line <'{self.go_path}'"]
        with self.started(arguments) as process:
            self.wait(process, self.has_workers)
            start = busy_s()
            if hold and self.wait(process, lambda: os.path.exists(self.held_path)):
                paused = busy_s()
                hold()
                start += busy_s() - paused
                self.let_go(process)
            self.wait(process, lambda: False)
            report, cpu_s = self.report(process), busy_s() - start
        return report, {"size_bytes": report["size_bytes"], "page_cluster": page_cluster, "cpu_s": cpu_s,
                        "written_bytes": device.written_bytes() - before, "major_faults": report["major_faults"]}

    def pageout(self, device, page_cluster, size_bytes):
        """Whole folios out, then back in order. Once: what came back is in single pages, and goes out again so."""
        held = {}
        report, cost = self.run(device, page_cluster, ["pageout", "--size", str(size_bytes), "--passes", "1"],
                                lambda: held.update(device.held()))
        return cost | held | {"workload_swapped": report["swap_held_kib"] << 10, "out_mb_s": report["out_mb_s"],
                              "in_mb_s": report["in_mb_s"], "sources": report["heap_sources"]}

    def seq_write(self, device, page_cluster, size_bytes, limit_bytes, passes):
        """Out and in at once. The first pass fills fresh memory: it does not count."""
        report, cost = self.run(device, page_cluster, ["seq-write", "--size", str(size_bytes), "--limit",
                                                       str(limit_bytes), "--passes", str(passes)])
        mb_s = [phase["mb_s"] for phase in report["passes"] if phase["phase"] == "write" and phase["pass"] > 1]
        return cost | {"mb_s": mb_s}

    def random(self, device, page_cluster, size_bytes, limit_bytes):
        """So many operations, not so many seconds: all devices are to hold what the same changes leave behind."""
        held = {}
        report, cost = self.run(device, page_cluster, ["random", "--size", str(size_bytes), "--limit", str(limit_bytes),
                                                       "--passes", "1", "--ops", str(RANDOM_OPERATIONS)],
                                lambda: held.update(device.held()))
        return cost | held | {key: report.get(key) for key in ("fault_p50_us", "fault_p99_us")}

    def warm_up(self, device, size_bytes):
        self.run(device, 3, ["pageout", "--size", str(size_bytes), "--passes", "1"])


def end(process):
    """Asks swapload to end, which removes its workers and control group."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def parse_size(text):
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)", text)
    if not match:
        raise ValueError(text)
    return int(float(match[1]) * (1 << (10 * " KMGT".index(match[2] or " "))))
