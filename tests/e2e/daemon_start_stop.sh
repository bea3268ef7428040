#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Fifty starts and stops leave nothing: no mount, loop device, process, directory, and queue and node as they were.
. "$(dirname "$0")/lib.sh"

need_device

queue_of() {
	cat "/sys/block/${1#/dev/}/queue/nomerges" "/sys/block/${1#/dev/}/queue/max_sectors_kb"
	stat -c '%a %u %g' "$1"
}

# The first one sets right what a killed daemon may have left on the number.
start "$first_name" --size 64M
stop
next=$(losetup -f)
before=$(queue_of "$next")
i=0
while [ $i -lt 50 ]; do
	start "$first_name" --size 1G --reserve 2M
	[ "$(stat -c '%a %u %g' "$node")" = "600 0 0" ] || fail "the node is $(stat -c '%a %u %g' "$node")"
	[ "$(cat "/sys/block/${node#/dev/}/loop/dio")" = 1 ] || fail "no direct I/O"
	[ "$(cat "/sys/block/${node#/dev/}/queue/nomerges")" = 2 ] || fail "nomerges is not 2"
	[ "$(cat "/sys/block/${node#/dev/}/queue/logical_block_size")" = 4096 ] || fail "blocks are not of 4096 bytes"
	[ "$(cat "/sys/block/${node#/dev/}/size")" = 2097152 ] || fail "the size is not 1 GiB"
	[ "$(cat "/run/folioswap/$name/pid")" = "$keeper" ] || fail "the pid file is wrong"
	stop
	i=$((i + 1))
done
[ "$node" != "$next" ] || [ "$(queue_of "$next")" = "$before" ] || fail "$next was [$before], is [$(queue_of "$next")]"

# The same name twice: the second is told so, the first lives on.
start "$first_name" --size 64M
"$daemon" --name "$first_name" --size 64M --allow-unsafe 2>"$work/err"
rc=$?
[ "$rc" = 4 ] || fail "a second device of the same name: exit code $rc, not 4"
grep -q "device $first_name exists" "$work/err" || fail "it said: $(cat "$work/err")"
dd if="$node" of=/dev/null bs=1M count=4 iflag=direct 2>/dev/null || fail "the first device does not read"
stop

# A mount namespace that is made meanwhile copies the mount. The copy neither keeps the device nor outlives it; what
# somebody there has open does not hang.
if unshare --mount true 2>/dev/null; then
	start "$first_name" --size 64M
	unshare --mount --propagation private sh -c "exec 8</run/folioswap/$name/mnt/swap; echo >$work/inside; exec sleep 60" &
	other=$!
	wait_for 5 has_line "$work/inside" || fail "no copy of the mount"
	stop
	grep -q " /run/folioswap/$name/" "/proc/$other/mountinfo" && fail "a copy of the mount is left"
	timeout -s KILL 10 dd if="/proc/$other/fd/8" of=/dev/null bs=4k count=1 2>/dev/null && fail "a dead file reads"
	[ "$?" -lt 128 ] || fail "a dead file hangs"
	kill "$other"
	wait "$other" 2>/dev/null
fi

# Whoever waits for the end of the output of the program that started the daemon does not wait for ever.
(
	"$daemon" --name "$first_name" --size 64M --allow-unsafe --ready-fd 3 3>"$work/ready.$first_name" 2>&1 &
	echo $! >"$work/keeper"
) | cat >"$work/log.pipe" &
reader=$!
wait_for 30 has_line "$work/ready.$first_name" || fail "not ready"
wait_for 5 has_line "$work/keeper" || fail "no process"
keeper=$(cat "$work/keeper")
keepers="$keepers $keeper"
wait_for 5 is_gone "$reader" || fail "the daemon keeps its caller's pipe"
is_gone "$keeper" && fail "the daemon ended with its caller's pipe"
kill -TERM "$keeper"
wait_for 20 is_gone "$keeper" || fail "no end"
check_gone "$first_name"
