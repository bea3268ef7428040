#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Wrong input of every kind: one line that says what is wrong, the right exit code, nothing left behind.
. "$(dirname "$0")/cli_lib.sh"

cases=0

# CODE TEXT WORDS...
bad()
{
	wanted_code=$1
	text=$2
	shift 2
	run "$wanted_code" "$FS" "$@"
	one_line "$text"
	[ ! -s "$T/out" ] || fail "output although it failed: $*"
	nothing_left
	cases=$((cases + 1))
}

bad 2 "a verb is missing"
bad 2 "no verb 'frob'" frob
bad 2 "no verb ''" ""
bad 2 "no verb '--frob'" --frob
bad 2 "no verb 'frob'" help frob

bad 2 "a size is missing" add
bad 2 "a size is missing" add --swapon
bad 2 "is not a size" add ""
bad 2 "less than one unit" add 0
bad 2 "less than one unit" add 1
bad 2 "less than one unit" add 4096
bad 2 "multiple of 4K" add 1073741825
bad 2 "no sign" add -1
bad 2 "no sign" add -4G
bad 2 "is not a size" add -- -4G
bad 2 "is not a size" add +4G
bad 2 "is not a size" add "4G "
bad 2 "is not a size" add " 4G"
bad 2 "is not a size" add "4
G"
bad 2 "is not a size" add 4GB
bad 2 "is not a size" add 0x1000000
bad 2 "is not a size" add 1e9
bad 2 "is not a size" add nan
bad 2 "63 bits" add 9223372036854775808
bad 2 "63 bits" add 18446744073709551617
bad 2 "63 bits" add 8E
bad 2 "below 8T" add 16T
bad 2 "below 8T" add 64M --max-size 16T
bad 2 "share of RAM" add 0%
bad 2 "share of RAM" add 1001%
bad 2 "twice" add 64M 64M
bad 2 "twice" add 64M --size 64M
bad 2 "units are" add 64M --unit 3M
bad 2 "units are" add 64M --unit 0
bad 2 "larger than the unit" add 64M --frame 4M
bad 2 "larger than the unit" add 64M --unit 64K --frame 128K
bad 2 "power of two" add 64M --frame 3K
bad 2 "power of two" add 64M --frame 1
bad 2 "there are copy" add 64M --codec lzo-rle
bad 2 "there are copy" add 64M --codec zstd:23
bad 2 "there are copy" add 64M --codec zstd:
bad 2 "there are copy" add 64M --codec lz4:fast
bad 2 "there are auto, " add 64M --transport nbd
bad 2 "there are auto, " add 64M --transport UBLK
bad 2 "there are auto, " add 64M -t ""
bad 2 "none" add 64M --mem-limit 0
bad 2 "headroom" add 64M --mem-limit 1M
bad 2 "from 1 to 64" add 64M --slots 0
bad 2 "from 1 to 32" add 64M --threads 99
bad 2 "from 1 to 32" add 64M --compress-threads two
bad 2 "not less than the size" add 64M --max-size 32M
bad 2 "from 0 to 32767" add 64M --swapon=40000
bad 2 "takes no value" add 64M --no-discard=1
bad 2 "takes no value" add 64M --no-standby=1
bad 2 "needs a value" add 64M --codec
bad 2 "unknown" add 64M --frob
bad 2 "at most" add 64M --allow-unsafe --fault "$(printf '%0200d' 0)"
bad 2 "--fault" add 64M --allow-unsafe --fault frob

for verb in set compact upgrade; do
	bad 2 "one device is needed" $verb
	bad 2 "one device is needed" $verb 0 1
done
bad 2 "nothing to set" set 0
bad 2 "needs a value" set 0 --size
for name in 0 7 -- 00 ../0 256 "" . /dev/null /dev/loop77 "a b"; do
	[ "$name" = -- ] && continue
	bad 5 "list' shows" del "$name"
	bad 5 "list' shows" stat "$name"
	bad 5 "list' shows" list "$name"
	bad 5 "list' shows" compact "$name"
	bad 5 "list' shows" upgrade "$name"
	bad 5 "list' shows" set "$name" --codec lz4
	bad 5 "list' shows" set "$name" --size 1G
done

bad 2 "a device is missing" del
bad 2 "takes no names" del --all 0
bad 2 "from 1 to" del 0 --timeout 0
bad 2 "from 1 to" del 0 --timeout -1
bad 2 "from 1 to" compact 0 --timeout 1m
bad 2 "from 1 to" upgrade 0 --timeout 0
bad 2 "needs a value" upgrade 0 --binary
bad 2 "no column 'FROG'" list -o FROG
bad 2 "no column ''" list -o ""
bad 2 "choose one" list --json --raw
bad 2 "exclude each other" stat --orders --mm-stat
bad 2 "--json goes with" stat --json --watch
bad 2 "--watch is missing" stat --count 3
bad 2 "from 1 to" stat --watch=0
bad 2 "needs a value" stat --openmetrics
bad 1 "cannot write" stat --openmetrics /nonexistent/folioswap.prom
bad 2 "takes no operands" doctor 0

# What only the system knows: a daemon that is not there, unsafe settings.
mkdir "$T/alone"
cp "$FS" "$T/alone/folioswap"
run 1 env PATH=/nonexistent "$T/alone/folioswap" add 64M --allow-unsafe
one_line "cannot run folioswapd"
nothing_left

echo 8192 > "$T/min_free"
mount --bind "$T/min_free" /proc/sys/vm/min_free_kbytes || fail "cannot cover the sysctl"
bad 3 "vm.min_free_kbytes" add 64M --transport fuse --swapon
umount /proc/sys/vm/min_free_kbytes

printf 'Filename Type Size Used Priority\n/dev/ublkb0\\040(deleted) partition 8 4 5\n' > "$T/swaps"
mount --bind "$T/swaps" /proc/swaps || fail "cannot cover /proc/swaps"
bad 3 "(deleted)" add 64M --swapon
run 1 "$FS" doctor
grep -q '^FAIL ghosts: ' "$T/out" || fail "doctor does not see the ghost"
umount /proc/swaps

# mkswap that fails, and one that is not there: the new device goes away again.
mkdir "$T/bin"
printf '#!/bin/sh\necho mkswap: no luck today >&2\nexit 1\n' > "$T/bin/mkswap"
chmod +x "$T/bin/mkswap"
run 1 env PATH="$T/bin:$PATH" "$FS" add 64M --allow-unsafe --swapon
grep -v ': warning: ' "$T/err" > "$T/lines"
[ "$(wc -l < "$T/lines")" = 1 ] || fail "not one line about mkswap"
grep -q 'no luck today' "$T/lines" || fail "not what mkswap said"
nothing_left
cases=$((cases + 1))

# Its output goes nowhere: nobody would know of the device.
for closed in out in+out; do
	code=0
	if [ $closed = out ]; then
		"$FS" add 64M --allow-unsafe >&- 2> "$T/err" || code=$?
	else
		"$FS" add 64M --allow-unsafe <&- >&- 2> "$T/err" || code=$?
	fi
	[ $code = 1 ] || fail "standard $closed closed: exit code $code"
	grep -q 'cannot print the device' "$T/err" || fail "standard $closed closed: not said"
	nothing_left
	cases=$((cases + 1))
done
"$FS" add 64M --allow-unsafe > /dev/full 2> "$T/err" && fail "a full disk is no failure"
nothing_left

# Everything closed: the pipe from the daemon must not become the daemon's standard output.
"$FS" add 64M --allow-unsafe <&- 2>&- > "$T/out" || fail "with stdin and stderr closed"
[ -b "$(cat "$T/out")" ] || fail "no node was printed"
run 0 "$FS" del --all
nothing_left

echo "$cases cases"
