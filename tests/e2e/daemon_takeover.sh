#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The server is killed again and again while it works: another one takes over, every byte is right, no request fails.
# FOLIOSWAP_KILLS says how often (25).
. "$(dirname "$0")/lib.sh"

need_device
need_tools fio

kills=${FOLIOSWAP_KILLS-25}

# Names the serving process in $server; waits for it, a take-over may be under way.
find_server() {
	server=$(server_of "$keeper")
}

random_ms() {
	od -An -N2 -tu2 /dev/urandom | awk -v most="$1" '{ printf "%.3f", $1 % most / 1000 }'
}

io_errors() {
	dmesg 2>/dev/null | grep -c "I/O error, dev ${node#/dev/}" || true
}

start "$first_name" --size 512M --codec lz4 --frame 64K --reserve 4M --mem-limit 1G
errors_before=$(io_errors)
verify_on() {
	while [ ! -e "$work/enough" ]; do
		fio --name=verify --filename="$node" --size=384M --ioengine=libaio --direct=1 --iodepth=8 --rw=randrw \
			--bsrange=4k-1m --blockalign=4k --verify=crc32c --verify_fatal=1 --buffer_compress_percentage=50 \
			--refill_buffers >>"$work/fio.txt" 2>&1 || return
	done
}
verify_on &
fio_pid=$!
done_kills=0
while [ $done_kills -lt "$kills" ]; do
	sleep "$(random_ms 500)"
	is_gone $fio_pid && fail "fio ended after $done_kills kills"
	wait_for 10 find_server || fail "no server after $done_kills kills"
	kill -KILL "$server"
	wait_for 10 is_gone "$server" || fail "a killed server does not end"
	done_kills=$((done_kills + 1))
done
touch "$work/enough"
wait_for 60 is_gone $fio_pid || fail "fio hangs"
wait $fio_pid || fail "fio found errors"
wait_for 10 find_server || fail "no server at the end"
all_taken() {
	[ "$(grep -c 'another server has taken over' "$work/log.$name")" = "$done_kills" ]
}
wait_for 10 all_taken ||
	fail "$done_kills kills, and $(grep -c 'another server has taken over' "$work/log.$name") servers took over"
[ "$(io_errors)" = "$errors_before" ] || fail "I/O errors in the kernel's log"
stop
