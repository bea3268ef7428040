#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Folioswap on ublk beside zram, as block devices: tools/bench_zram with the options given. What it prints is left in
# the folder of the results, too. With --quick it is a test: that everything is measured, not how fast it is.
#
# The daemons have one CPU (--cpus 0-1 gives them both): in uml two threads of a process never run at once outside the
# kernel, for they share one stub process; the one that waits spins on its lock and takes a CPU from everybody else.
set -u
: "${FOLIOSWAP_BUILD:?is to be the directory of the built programs}"

tools=$(cd "$(dirname "$0")/../../tools" && pwd)
for need in /dev/ublk-control /sys/class/zram-control; do
	[ -e "$need" ] || {
		echo "skipped: no $need"
		exit 77
	}
done
command -v python3 >/dev/null || {
	echo "skipped: no python3"
	exit 77
}
"$tools/bench_zram" --transport ublk --cpus $(($(nproc) - 1)) "$@" >/tmp/report || exit 1
cat /tmp/report
[ -z "${RIG_RESULTS-}" ] || cp /tmp/report "$RIG_RESULTS/report"
