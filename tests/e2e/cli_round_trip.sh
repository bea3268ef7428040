#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# add, list, stat, set, compact, del: what each says is what the others see, and JSON is JSON.
. "$(dirname "$0")/cli_lib.sh"

U=--allow-unsafe
command -v python3 > /dev/null && python=1 || python=

# EXPRESSION over d, the parsed $T/out
json()
{
	[ -n "$python" ] || return 0
	python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); assert eval(sys.argv[2]), d' "$T/out" "$1" 2>> "$T/err" ||
		fail "not so: $1"
}

run 0 "$FS" list
[ ! -s "$T/out" ] || fail "devices before the first add"
run 0 "$FS" list --json
json 'd == {"devices": []}'

run 0 "$FS" add 256M $U --codec lz4:2 --unit 64K --frame 16K --mem-limit 128M --slots 3 --threads 1 --compress-threads 1 --reserve 4M --max-size 512M
no_error
node=$(cat "$T/out")
[ -b "$node" ] || fail "'$node' is no block device"
[ "$(blockdev --getsize64 "$node")" = 268435456 ] || fail "wrong size"

run 0 "$FS" list --json --output-all
json 'len(d["devices"]) == 1'
json 'd["devices"][0]["name"] == "0"'
json 'd["devices"][0]["node"] == "'"$node"'"'
json '(d["devices"][0]["size"], d["devices"][0]["max_size"], d["devices"][0]["limit"]) == (268435456, 536870912, 134217728)'
json '(d["devices"][0]["codec"], d["devices"][0]["unit"], d["devices"][0]["frame"]) == ("lz4:2", 65536, 16384)'
json '(d["devices"][0]["slots"], d["devices"][0]["threads"], d["devices"][0]["compress_threads"]) == (3, 1, 1)'
json 'd["devices"][0]["reserve"] == 4194304 and d["devices"][0]["swapped"] is None and d["devices"][0]["discard"] is True'
run 0 "$FS" list -rno NAME,NODE,SIZE -b "$node"
[ "$(cat "$T/out")" = "0 $node 268435456" ] || fail "raw line"
run 0 "$FS" list --noheadings -o +PAYLOAD 0
run 0 "$FS" stat
grep -q '^SLOTS  *3 ' "$T/out" || fail "no slots in the summary"

# 16 MiB of text that compresses, read back.
yes 'so much swapped, so little stored' | head -c 16777216 > "$T/data"
dd if="$T/data" of="$node" bs=1M oflag=direct conv=fsync status=none || fail "write"
dd if="$node" bs=1M count=16 iflag=direct status=none | cmp - "$T/data" || fail "other bytes came back"
run 0 "$FS" stat --json
json 'd["devices"][0]["data"] >= 16777216 and d["devices"][0]["write_bytes"] >= 16777216'
json 'd["devices"][0]["write_errors"] == 0 and d["devices"][0]["read_errors"] == 0'
run 0 "$FS" stat --orders --json
json 'sum(r["bytes"] for r in d["orders"] if r["kind"] == "write" and r["order"] is not None) == [r["bytes"] for r in d["orders"] if r["kind"] == "write" and r["order"] is None][0] >= 16777216'
json 'all(r["p50"] <= r["p90"] <= r["p99"] <= r["p999"] <= r["max"] for r in d["orders"] if r["kind"] != "close")'
run 0 "$FS" stat --orders 0
run 0 "$FS" stat --watch --count 1 0
grep -q '^   0 ' "$T/out" || fail "no line of the interval"

run 0 "$FS" stat --mm-stat 0
[ "$(wc -w < "$T/out")" = 9 ] || fail "mm_stat has nine fields"
run 0 "$FS" stat --io-stat 0
[ "$(wc -w < "$T/out")" = 4 ] || fail "io_stat has four fields"
run 0 "$FS" stat --openmetrics "$T/folioswap.prom"
[ "$(tail -n 1 "$T/folioswap.prom")" = "# EOF" ] || fail "no end of metrics"
grep -q '^folioswap_size_bytes{device="0"} 268435456$' "$T/folioswap.prom" || fail "no size in the metrics"
[ ! -e "$T/folioswap.prom.tmp" ] || fail "a temporary file is left"
run 0 "$FS" stat --openmetrics -
grep -q '^folioswap_requests_total{device="0",kind="write",order="[0-9]*"} [1-9]' "$T/out" || fail "no writes in the metrics"

run 0 "$FS" set 0 --codec zstd:3 --frame whole --mem-limit none
run 0 "$FS" list --json -o CODEC,FRAME,LIMIT
json 'd["devices"][0] == {"codec": "zstd:3", "frame": 65536, "limit": None}'
run 0 "$FS" set "$node" --codec copy --mem-limit 64M --frame 4K
run 0 "$FS" list --json -o CODEC,FRAME,LIMIT
json 'd["devices"][0] == {"codec": "copy", "frame": 4096, "limit": 67108864}'
run 2 "$FS" set 0 --frame 128K
one_line "larger than the unit"
# SIZE TEXT CODE: refused, and the device has the size that it had.
no_size()
{
	run "${3-2}" "$FS" set 0 --size "$1"
	one_line "$2"
	[ "$(blockdev --getsize64 "$node")" = 268435456 ] || fail "the size was changed"
	run 0 "$FS" list -rnbo SIZE 0
	[ "$(cat "$T/out")" = 268435456 ] || fail "another size is listed"
}
no_size 128M "only grows"
no_size 0 "only grows"
no_size 268431360 "only grows"
no_size 513M "(512M, add's --max-size)"
no_size 8T "max-size"
no_size 268435457 "multiple of 4K"
no_size +1G "is not a size"
no_size 300MB "is not a size"
no_size "" "is not a size"
no_size 384M "over FUSE" 1
run 2 "$FS" set 0 --codec zstd:77
one_line "there are copy"
run 1 "$FS" set 0 --mem-limit 4K
one_line "limit"
run 0 "$FS" list --json -o CODEC,FRAME,LIMIT
json 'd["devices"][0] == {"codec": "copy", "frame": 4096, "limit": 67108864}'

run 0 "$FS" compact 0
run 0 "$FS" compact "$node" --timeout 30
dd if="$node" bs=1M count=16 iflag=direct status=none | cmp - "$T/data" || fail "other bytes after compact"
blkdiscard "$node" || fail "discard"
run 0 "$FS" stat --json
json 'd["devices"][0]["data"] == 0'

# What does not shrink: pages held so now, and ever.
raw_pages()
{
	run 0 "$FS" compact 0
	run 0 "$FS" stat --mm-stat 0
	[ "$(awk '{ print $8 " " $9 - '"$1"' }' "$T/out")" = "$2" ] || fail "raw pages are not $2 (beyond $1)"
}
run 0 "$FS" set 0 --codec lz4
run 0 "$FS" stat --mm-stat 0
before=$(awk '{ print $9 }' "$T/out")
head -c 4194304 /dev/urandom > "$T/noise"
for i in 1 2; do
	dd if="$T/noise" of="$node" bs=1M oflag=direct status=none || fail "write"
	raw_pages "$before" "1024 $((i * 1024))"
done
blkdiscard "$node" || fail "discard"
raw_pages "$before" "0 2048"

# A second one, by its node, beside the first.
run 0 "$FS" add --size 64M $U --no-discard
second=$(cat "$T/out")
[ "$second" != "$node" ] || fail "the same node twice"
run 0 "$FS" list -rno NAME
[ "$(cat "$T/out")" = "0
1" ] || fail "not two devices"
run 5 "$FS" del 1 7
one_line "no device '7'"
run 0 "$FS" list -rno NAME
[ "$(cat "$T/out")" = 0 ] || fail "1 was to go although 7 is not there"

# Open by somebody: busy, and still there.
exec 3< "$node"
run 4 "$FS" del 0
one_line "open by process"
exec 3<&-
if [ -n "$python" ]; then
	python3 -c 'import os, sys, time
fd = os.open(sys.argv[1], os.O_RDONLY | os.O_EXCL)
open(sys.argv[2], "w").close()
time.sleep(60)' "$node" "$T/held" &
	holder=$!
	while [ ! -e "$T/held" ]; do sleep 0.1; done
	run 4 "$FS" del 0
	one_line "open by process $holder, "
	kill "$holder"
	wait "$holder" 2> /dev/null
fi
run 0 "$FS" list -rno NAME 0
run 0 "$FS" del "$node"
nothing_left
run 0 "$FS" del --all
run 0 "$FS" --version
run 0 "$FS" --help
run 0 "$FS" help add
run 0 "$FS" doctor --help
timeout -s KILL 60 "$FS" doctor --json > "$T/out" 2> "$T/err"
json 'all(c["status"] in ("OK", "WARN", "FAIL") and c["check"] and (c["status"] == "OK") == (c["advice"] is None) for c in d["checks"])'
[ "$("$FS" --help > /dev/full 2> "$T/err"; echo $?)" = 1 ] || fail "a full disk went unnoticed"
