# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=sh
# What the take-over scripts share; sourced after lib.sh.

# Names the serving process in $server; a take-over may be under way.
find_server() {
	server=$(server_of "$keeper")
}

# Errors of the block layer since the mark was set in the kernel's log.
io_errors() {
	dmesg 2>/dev/null | sed "1,/folioswap test mark $$/d" | grep -c "I/O error, dev ${node#/dev/}" || true
}

taken_over() {
	grep -c 'another server has taken over' "$work/log.$name"
}

verify_until_enough() {
	while [ ! -e "$work/enough" ]; do
		fio --name=verify --filename="$node" --size=384M --ioengine=libaio --direct=1 --iodepth=8 --rw=randrw \
			--bsrange=4k-1m --blockalign=4k --verify=crc32c --verify_fatal=1 --buffer_compress_percentage=50 \
			--refill_buffers --verify_state_save=0 >>"$work/fio.txt" 2>&1 || return
	done
}

# fio writes, reads and compares on $node, until verify_end.
verify_begin() {
	echo "folioswap test mark $$" >/dev/kmsg 2>/dev/null
	rm -f "$work/enough"
	verify_until_enough &
	fio_pid=$!
}

verify_goes_on() {
	! is_gone $fio_pid || fail "fio ended: $(tail -n 40 "$work/fio.txt")"
}

verify_end() {
	touch "$work/enough"
	wait_for 60 is_gone $fio_pid || fail "fio hangs"
	wait $fio_pid || fail "fio found errors: $(tail -n 40 "$work/fio.txt")"
	wait_for 10 find_server || fail "no server at the end"
	[ "$(io_errors)" = 0 ] || fail "I/O errors in the kernel's log"
}

# Were so many servers killed, and did another one take over after the last? One that is killed while it takes over
# leaves no line of its own.
all_replaced() {
	[ "$(grep -c 'killed by signal 9' "$work/log.$name")" = "$1" ] &&
		grep 'killed by signal 9\|another server has taken over' "$work/log.$name" | tail -n 1 | grep -q 'has taken over'
}
