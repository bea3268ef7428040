#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The control socket: information that is right, settings that take, a compaction beside which others are answered, a
# stop that says who is in the way, and clients that do everything wrong.
. "$(dirname "$0")/lib.sh"

need_device
probe=$FOLIOSWAP_BUILD/control_probe
[ -x "$probe" ] || skip "no control_probe"

has() {
	grep -qw -- "$1" "$work/info" || fail "no '$1' in: $(cat "$work/info")"
}

info() {
	"$probe" "$name" info >"$work/info" || fail "no information"
}

start "$first_name" --size 256M --codec zstd:1 --frame 64K --slots 3 --io-threads 2 --compress-threads 1 --mem-limit 128M
info
has "name=$name"
has "node=$node"
has "transport=fuse"
has "keeper=$keeper"
has "server=$server"
has "size=268435456"
has "limit=134217728"
has "frame=65536"
has "slots=3"
has "io=2"
has "compress=1"
has "discard=1"
"$probe" "$name" image || fail "the image's descriptor"

"$probe" "$name" set-frame 16384 || fail "set-frame"
"$probe" "$name" set-limit 67108864 || fail "set-limit"
"$probe" "$name" set-limit 4096 && fail "a limit of one page was taken"
"$probe" "$name" set-frame 5000 && fail "a frame of 5000 bytes was taken"
# What is no size for this device, and what is none over FUSE.
for size in 0 4096 268431360 268435457 1073745920 9223372036854775808 18446744073709551615 536870912; do
	"$probe" "$name" set-size $size >"$work/size" && fail "a size of $size bytes was taken"
	grep -q ': ..*' "$work/size" || fail "no word about a size of $size bytes: $(cat "$work/size")"
done
grep -q "over FUSE" "$work/size" || fail "not why FUSE does not grow: $(cat "$work/size")"
info
has "size=268435456"
[ "$(blockdev --getsize64 "$node")" = 268435456 ] || fail "the device has grown"
has "frame=16384"
has "limit=67108864"

# Garbage for the compaction: write all, punch every other 64 KiB away.
head -c 32M /dev/urandom | dd of="$node" bs=1M iflag=fullblock oflag=direct 2>/dev/null || fail "write"
i=0
while [ $i -lt 256 ]; do
	blkdiscard -o $((i * 131072)) -l 65536 "$node" || fail "blkdiscard"
	i=$((i + 1))
done
"$probe" "$name" compact >"$work/compact" || fail "compact: $(cat "$work/compact")"
grep -q '^error=0 reports=[1-9]' "$work/compact" || fail "compact said: $(cat "$work/compact")"

"$probe" "$name" abuse || fail "abuse"
dd if="$node" of=/dev/null bs=1M count=32 iflag=direct 2>/dev/null || fail "the device does not read any more"

# Only root is heard, even when somebody opens the way to the socket.
if command -v setpriv >/dev/null; then
	chmod 755 /run/folioswap "/run/folioswap/$name"
	chmod 777 "/run/folioswap/$name/control"
	setpriv --reuid 65534 --regid 65534 --clear-groups "$probe" "$name" info >/dev/null 2>&1 && fail "nobody is heard"
	chmod 700 /run/folioswap "/run/folioswap/$name"
fi

# Held by somebody: refused with a reason. Let go: stopped, and the keeper takes down everything.
"$probe" "$node" hold 60 >"$work/held" &
holder=$!
wait_for 5 has_line "$work/held" || fail "cannot hold $node"
"$probe" "$name" stop >"$work/stop" && fail "a held device was stopped"
grep -q "$node is in use" "$work/stop" || fail "stop said: $(cat "$work/stop")"
kill "$holder"
wait "$holder" 2>/dev/null

# Open by somebody who does not ask to be alone: refused, with his name; afterwards it is as usable as before.
sh -c "exec 9<$node; exec sleep 60" &
holder=$!
sleep 0.2
"$probe" "$name" stop >"$work/stop" && fail "an open device was stopped"
grep -q "$node is in use (open by process $holder, sleep)" "$work/stop" || fail "stop said: $(cat "$work/stop")"
"$probe" "$node" hold 0 >/dev/null || fail "a refused stop keeps the device to itself"
dd if="$node" of=/dev/null bs=1M count=1 iflag=direct 2>/dev/null || fail "a device that refused to stop does not read"
kill "$holder"
wait "$holder" 2>/dev/null

"$probe" "$name" stop || fail "stop"
end_of "$keeper" 10
[ "$rc" = 0 ] || fail "the keeper ended with $rc"
check_gone "$name" "$keeper" "$server"
"$probe" "$name" info 2>/dev/null && fail "a stopped device answers"
exit 0
