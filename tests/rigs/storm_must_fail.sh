#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# storm_must_fail.sh VARIANT: the storm with one of the things that keep it alive left out. It must not pass, or the
# storm that passes with them proves nothing. A machine that stands still is killed; that is what is expected.
#
#   unlocked    the daemon's memory may be swapped out, to the daemon; its server is killed on the way
#   no-reserve  no memory kept ahead
#   fuse        FUSE and a loop device that merges requests, with the kernel's own vm.min_free_kbytes
#
# A little more load than the storms have; with everything in its place it passes (the test storm_control).
set -u
rigs=$(dirname "$(realpath "$0")")
timeout=${FOLIOSWAP_STORM_TIMEOUT-180}
transport=ublk
[ "${1-}" != fuse ] || transport=fuse
output=$(mktemp) || exit 1
trap 'rm -f "$output"' EXIT

: "${FOLIOSWAP_STORM_MIB:=46}" "${FOLIOSWAP_STORM_SECONDS:=60}"
export FOLIOSWAP_STORM_MIB FOLIOSWAP_STORM_SECONDS
"$rigs/uml" --mem 192M --timeout "$timeout" --env FOLIOSWAP_STORM_SECONDS --env FOLIOSWAP_STORM_MIB \
	"$rigs/storm.sh" "$transport" "${1-}" >"$output" 2>&1
status=$?
if ! grep -q '^the storm begins' "$output"; then
	cat "$output"
	echo "FAILED: the storm did not even begin"
	exit 1
fi
case $status in
124) echo "$1: the machine stood still, and was killed after $timeout s" ;;
123) echo "$1: $(grep -m 1 'console: ' "$output")" ;;
1) echo "$1: $(grep -m 1 '^FAILED' "$output")" ;;
*)
	cat "$output"
	echo "FAILED: the storm passes without ($1; status $status)"
	exit 1
	;;
esac
