#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Wrong command lines: exit code 2, one line that names the option, and nothing is made.
. "$(dirname "$0")/lib.sh"

[ -x "$daemon" ] || skip "no $daemon"

# refuse WORD OPTION...: the one line must hold the word.
refuse() {
	word=$1
	shift
	"$daemon" "$@" >"$work/out" 2>"$work/err"
	rc=$?
	[ "$rc" = 2 ] || fail "exit code $rc, not 2: $*"
	[ "$(wc -l <"$work/err")" = 1 ] || fail "not one line for '$*': $(cat "$work/err")"
	grep -qF -- "$word" "$work/err" || fail "no '$word' in: $(cat "$work/err")"
	[ ! -s "$work/out" ] || fail "text on stdout for '$*'"
}

refuse --name
refuse --name --size 1G
refuse --size --name 250
refuse "'x'" --name x --size 1G
refuse "'-1'" --name -1 --size 1G
refuse "'256'" --name 256 --size 1G
refuse "'1G '" --name 250 --size '1G '
refuse "'1X'" --name 250 --size 1X
refuse "'99999999999T'" --name 250 --size 99999999999T
refuse "at least one unit" --name 250 --size 1M
refuse "multiple of 4K" --name 250 --size 10000001
refuse "largest size" --name 250 --size 1G --max-size 512M
refuse "unit must be" --name 250 --size 1G --unit 1M
refuse "more than 16M" --name 250 --size 1G --unit 32M
refuse "frame must be" --name 250 --size 1G --frame 3K
refuse "frame must be" --name 250 --size 1G --unit 64K --frame 128K
refuse "'zstd:99'" --name 250 --size 1G --codec zstd:99
refuse "'gzip'" --name 250 --size 1G --codec gzip
refuse "--slots" --name 250 --size 1G --slots 0
refuse "--slots" --name 250 --size 1G --slots 65
refuse "--io-threads" --name 250 --size 1G --io-threads 33
refuse "--compress-threads" --name 250 --size 1G --compress-threads two
refuse "memory limit" --name 250 --size 1G --mem-limit 1M
refuse "reserve" --name 250 --size 1G --reserve 8G --mem-limit 1G
refuse "'carrier-pigeon'" --name 250 --size 1G --transport carrier-pigeon
refuse "'delay=soon'" --name 250 --size 1G --fault delay=soon
refuse "'77'" --name 250 --size 1G --ready-fd 77
refuse "--sice" --name 250 --sice 1G
refuse "given twice" --name 250 --size 1G --size 2G
refuse "needs a value" --name 250 --size
refuse "'stray'" --name 250 --size 1G stray

"$daemon" --help | grep -q -- --mem-limit || fail "--help does not know --mem-limit"
"$daemon" --version | grep -qE '^folioswapd [0-9]' || fail "--version"

# The program that waits at the ready descriptor hears it, too.
"$daemon" --name 250 --size 1X --ready-fd 3 3>"$work/ready" 2>/dev/null
grep -q "^failed .*'1X'" "$work/ready" || fail "the ready descriptor got: $(cat "$work/ready")"
[ ! -e /run/folioswap/250 ] || fail "a directory was made"
