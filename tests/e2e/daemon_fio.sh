#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Random reads and writes of 4 KiB to 1 MiB with check sums, by several jobs, for two codecs and frame sizes; then an
# ordered stop under I/O, which must end both.
. "$(dirname "$0")/lib.sh"

need_device
need_tools fio

verify() {
	start "$first_name" --size 512M --io-threads 2 "$@"
	fio --name=verify --filename="$node" --direct=1 --rw=randrw --bsrange=4k-1m --blockalign=4k --ioengine=libaio \
		--iodepth=8 --size=128m --numjobs=3 --offset_increment=128m --verify=crc32c --verify_fatal=1 \
		--buffer_compress_percentage=50 --group_reporting >"$work/fio" 2>&1 || fail "fio: $(cat "$work/fio")"
	stop
}

verify --codec lz4 --frame 64K
verify --codec zstd:1 --frame whole
verify --codec copy --unit 64K --frame 4K --slots 2

start "$first_name" --size 512M
fio --name=busy --filename="$node" --direct=1 --rw=randrw --bsrange=4k-1m --blockalign=4k --ioengine=libaio \
	--iodepth=16 --size=256m --time_based --runtime=60 >"$work/fio" 2>&1 &
load=$!
sleep 1
kill -TERM "$keeper"
end_of "$keeper" 25
[ "$rc" = 0 ] || fail "the stop under I/O ended with $rc"
wait_for 10 is_gone "$load" || { kill -KILL "$load"; fail "fio hangs on a device that is gone"; }
check_gone "$name" "$server"
