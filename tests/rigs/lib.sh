# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2034
# What the rigs share, sourced by them: options, the job that a guest reads, one run of a machine, the verdict.
#
# Exit status of a rig: that of its script, or
#   123  the kernel complained on its console
#   124  killed after the timeout
#   125  the rig itself failed: no kernel, no boot, no status

set -u

rig=${0##*/}
rigs_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
source_dir=$(cd "$rigs_dir/../.." && pwd -P)
cache=${FOLIOSWAP_RIG_CACHE:-$source_dir/build/rigs}

complained=123 timed_out=124 broken=125

# What a sound kernel never says. "DEBUG:" is no "BUG:".
complaints='(^|[^[:upper:]])BUG[: ]|WARNING: |Oops|Kernel panic|general protection fault|Unable to handle kernel'
complaints+='|blocked for more than|soft lockup|LOCKUP|detected stall|self-detected|stalls on CPUs'
complaints+='|possible (recursive|circular|irq|deadlock)|turning off the locking|inconsistent lock state|invalid wait context'
complaints+='|suspicious RCU usage|held lock freed|non-static key|UBSAN:|corruption|Bad page'

die()
{
	echo "$rig: $*" >&2
	exit $broken
}

# The comment that the program begins with, without its first two lines.
usage()
{
	local program

	for program in "$0" $([ "$rig" = uml ] || echo "$rigs_dir/uml"); do
		sed -n '3,${/^#/!q; s/^# \{0,1\}//p}' "$program"
	done
}

# Sets what the options say; the script and its arguments are left in argv.
parse_options()
{
	memory=1G cpus=2 timeout=300 long_timeout='' flavour='' kernel='' results='' allowed=''
	append=() sysctls=() variables=() binds=()
	while [ $# -gt 0 ]; do
		case $1 in
		--mem | --cpus | --timeout | --long-timeout | --sysctl | --env | --bind | --results | --kernel | --allow | \
			--append)
			[ $# -ge 2 ] || die "$1 needs a value"
			take_option "$1" "$2"
			shift 2
			;;
		--debug) flavour=+debug; shift ;;
		--old) flavour=-6.1; shift ;;
		--help) usage; exit 0 ;;
		--) shift; break ;;
		-*) die "unknown option $1; see $0 --help" ;;
		*) break ;;
		esac
	done
	timeout=${long_timeout:-$timeout}
	[ $# -ge 1 ] || die "a script is missing; see $0 --help"
	{ [ -f "$1" ] && [ -x "$1" ]; } || die "$1: not an executable file"
	argv=("$(realpath "$1")" "${@:2}")
}

take_option()
{
	case $1 in
	--mem) [[ $2 =~ ^[1-9][0-9]*[MG]$ ]] || die "--mem $2: not a size such as 512M or 2G"; memory=$2 ;;
	--cpus) [[ $2 =~ ^[1-9][0-9]?$ ]] || die "--cpus $2: not a number of CPUs"; cpus=$2 ;;
	--timeout) [[ $2 =~ ^[1-9][0-9]*$ ]] || die "--timeout $2: not a number of seconds"; timeout=$2 ;;
	--long-timeout)
		[[ $2 =~ ^[1-9][0-9]*$ ]] || die "$1 $2: not a number of seconds"
		[ -z "${FOLIOSWAP_LONG-}" ] || long_timeout=$2
		;;
	--sysctl) [[ $2 =~ ^[a-z0-9_./-]+=.*$ ]] || die "--sysctl $2: not NAME=VALUE"; sysctls+=("$2") ;;
	--env) [[ $2 =~ ^[A-Za-z_][A-Za-z0-9_]*$ ]] || die "--env $2: not the name of a variable"; variables+=("$2") ;;
	--bind) [ -e "$2" ] || die "--bind $2: not there"; binds+=("$(realpath "$2")") ;;
	--results) mkdir -p "$2" || die "cannot make $2"; results=$(realpath "$2") ;;
	--kernel) [ -f "$2" ] || die "--kernel $2: no such file"; kernel=$(realpath "$2") ;;
	--allow) allowed=$2 ;;
	--append) append+=("$2") ;;
	esac
}

# choose_kernel NAME: builds it, unless one was given
choose_kernel()
{
	[ -n "$kernel" ] || kernel=$(setpriv --pdeathsig TERM "$rigs_dir/kernel" "$1$flavour") || exit $broken
}

# end_processes_of RUN-DIRECTORY: of a machine. Before 7.3 uml had helpers in a session of their own that outlived it,
# and kept its output open.
end_processes_of()
{
	local pid

	grep -alF -e "$1" /proc/[0-9]*/cmdline 2>/dev/null | cut -d / -f 3 | while read -r pid; do
		kill -KILL "$pid" 2>/dev/null
	done
}

# A folder of this run, removed at its end; those of rigs that were killed go now.
make_run_dir()
{
	local old

	mkdir -p "$cache" || die "cannot make $cache"
	cache=$(realpath "$cache")
	for old in "$cache"/run.*; do
		if [[ $old =~ /run\.([0-9]+)\. ]] && ! kill -0 "${BASH_REMATCH[1]}" 2>/dev/null; then
			end_processes_of "$old"
			rm -rf "$old"
		fi
	done
	run_dir=$(mktemp -d "$cache/run.$$.XXXXXX") || die "cannot make a folder in $cache"
	[[ $run_dir$rigs_dir != *[[:space:],]* ]] || die "$run_dir: a kernel takes no path with blanks or commas"
	machine_pid='' output_pid='' console_pid=''
	trap clean_up EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	[ -n "$results" ] || results=$run_dir/results
	{ mkdir -p "$results" && rm -f "$results/status"; } || die "cannot write in $results"
	mkfifo "$run_dir/output" "$run_dir/console" || die "cannot write in $run_dir"
}

end_machine()
{
	[ -z "$machine_pid" ] || kill -KILL "$machine_pid" 2>/dev/null
	machine_pid=''
	end_processes_of "$run_dir"
}

# shellcheck disable=SC2317
clean_up()
{
	local pid

	trap - EXIT
	end_machine
	for pid in $output_pid $console_pid; do
		kill "$pid" 2>/dev/null
	done
	wait
	rm -rf "$run_dir"
}

# write_job DEVICE COMMAND...: what takes the script's output in the guest; how to mount the results, without where
write_job()
{
	local name

	binds+=("$source_dir" "${argv[0]%/*}")
	if [ -n "${FOLIOSWAP_BUILD-}" ]; then
		FOLIOSWAP_BUILD=$(realpath -e "$FOLIOSWAP_BUILD") || die "FOLIOSWAP_BUILD is not a folder"
		binds+=("$FOLIOSWAP_BUILD")
	fi
	{
		printf 'output_device=%s\n' "${1@Q}"
		shift
		printf 'share_command=(%s)\n' "${*@Q}"
		printf 'rig=%s\n' "${rig@Q}"
		printf 'sysctls=(%s)\n' "${sysctls[*]@Q}"
		printf 'binds=(%s)\n' "${binds[*]@Q}"
		printf 'argv=(%s)\n' "${argv[*]@Q}"
		for name in FOLIOSWAP_BUILD FOLIOSWAP_LONG FOLIOSWAP_OPS "${variables[@]}"; do
			[ -z "${!name+set}" ] || printf 'export %s=%s\n' "$name" "${!name@Q}"
		done
	} >"$run_dir/job"
}

# run_machine COMMAND...: its descriptor 3 is the script's output, its standard output the kernel's console.
# Nobody outlives whoever started it, even when that one is killed.
run_machine()
{
	local status=0

	began=$SECONDS
	cat <"$run_dir/output" &
	output_pid=$!
	cat <"$run_dir/console" >"$results/console.log" &
	console_pid=$!
	setpriv --pdeathsig KILL timeout -s KILL "$timeout" setpriv --pdeathsig KILL "$@" \
		</dev/null 3>"$run_dir/output" >"$run_dir/console" 2>&1 &
	machine_pid=$!
	wait "$machine_pid" 2>/dev/null || status=$?
	end_machine
	wait "$output_pid" "$console_pid"
	output_pid='' console_pid=''
	return $status
}

# verdict STATUS OF THE MACHINE: exits
verdict()
{
	local status end="ended (exit $1)"

	[ "$1" != 137 ] || end="was killed"
	[[ $1 != 137 || $((SECONDS - began)) -lt $timeout ]] || end="was killed after $timeout s"
	sed -i 's/\r//g' "$results/console.log"
	status=$(cat "$results/status" 2>/dev/null)
	grep -E "$complaints" "$results/console.log" | grep -vE "${allowed:-^\$}" >"$run_dir/complaints"
	if [ -s "$run_dir/complaints" ]; then
		show_complaints
		echo "$rig: the kernel complained (status of the script: ${status:-none, the machine $end})" >&2
		exit $complained
	fi
	if [[ $status =~ ^[0-9]+$ ]]; then
		exit "$status"
	fi
	tail -n 20 "$results/console.log" | sed 's/^/  console: /' >&2
	echo "$rig: the machine $end without a status of ${argv[0]##*/}" >&2
	[[ $end != *after* ]] || exit $timed_out
	exit $broken
}

# What was said, and what surrounds the first of it: a call trace, as a rule.
show_complaints()
{
	local first

	first=$(grep -nFx -m 1 -e "$(head -n 1 "$run_dir/complaints")" "$results/console.log" | cut -d: -f1)
	tail -n "+$((first > 5 ? first - 5 : 1))" "$results/console.log" | head -n 45 | sed 's/^/  | /' >&2
	head -n 20 "$run_dir/complaints" | sed 's/^/  console: /' >&2
}
