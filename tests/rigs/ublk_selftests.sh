#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# ublk_selftests.sh [TEST...]: the kernel's own ublk selftests (tools/testing/selftests/ublk of the rig's kernel), whose
# server is folioswap here (kublk). Prints which pass, and which cannot apply and why.
# shellcheck source=tests/rigs/ublk_lib.sh
. "$(dirname "$0")/ublk_lib.sh"

tree=${FOLIOSWAP_KERNEL_TREE:-${FOLIOSWAP_RIG_CACHE:-$(dirname "$0")/../../build/rigs}/linux-source-7.3}
from=$tree/tools/testing/selftests/ublk
[ -d "$from" ] || skip "no selftests in $tree"
need_tools fio mkfs.ext4 lsblk

# NAME: why it cannot apply; empty: it does.
why_not() {
	case $1 in
	generic_02 | generic_12) echo "traces the kernel with bpftrace" ;;
	generic_03) echo "asks for the limits of zero copy" ;;
	generic_08 | generic_09) echo "registers buffers: zero copy" ;;
	generic_10) echo "makes a device smaller" ;;
	generic_13) echo "asks kublk for its list of features" ;;
	generic_17) echo "lets kublk die between two fetches of a recovery; our steps are in ublk_takeover" ;;
	recover_02 | stress_03 | stress_04) echo "zero copy" ;;
	stress_08 | stress_09) echo "batches and zero copy" ;;
	esac
}

# No udev in the guest: its nodes are the kernel's own, there when the command returns.
mkdir -p "$work/bin" "$work/tests"
printf '#!/bin/sh\n' >"$work/bin/udevadm"
chmod +x "$work/bin/udevadm"
export PATH=$work/bin:$PATH TMPDIR=$work
cp -r "$from/." "$work/tests"
install -m 0755 "$(dirname "$0")/kublk" "$work/tests/kublk"

passed=0 left=0
names=("$@")
[ $# -gt 0 ] || names=(generic_02 generic_03 generic_06 generic_07 generic_08 generic_09 generic_10 generic_12 generic_13
	generic_16 generic_17 recover_01 recover_02 recover_03 recover_04 stress_01 stress_02 stress_03 stress_04 stress_05
	stress_06 stress_07 stress_08 stress_09)
for name in "${names[@]}"; do
	why=$(why_not "$name")
	if [ -n "$why" ]; then
		say "$name: cannot apply: $why"
		left=$((left + 1))
		continue
	fi
	(cd "$work/tests" && timeout -s KILL 240 "./test_$name.sh") >"$work/output" 2>&1
	code=$?
	if [ $code != 0 ] || ! grep -q '\[PASS\]' "$work/output"; then
		cat "$work/output"
		fail "$name ended with $code"
	fi
	say "$name: passed"
	passed=$((passed + 1))
	check_no_ublk
done
say "$passed passed, $left cannot apply"
