# SPDX-License-Identifier: Apache-2.0
# For tests/run scripts in sh: $build, which is argument 1, and its program $fusee; the folders $here, $lib and $top
# (tests/run, tests/run/lib, the repository); $tmp, removed at the end; and TAP lines.
#   check "what" COMMAND...   ok when the command succeeds; its output is shown when it fails
#   has "what" FILE PATTERN   ok when a line of FILE matches the extended regular expression
#   skip "what" "reason"
#   relay FILE                the TAP lines in FILE as results of this script
#   go_cache GO               exports GOCACHE: that Go's own, so that its library is compiled once for all tests
#   within SECONDS            a deadline on a quiet machine: that of this machine, in whole seconds
#   wait_until SECONDS COMMAND...  waits until the command succeeds, so many seconds of a quiet machine at most; fails then
#   becomes PID FILE          waits until the process has become that program (exec)
#   attached PID              waits until that recorder holds its events and no SIGINT kills it
#   cpu_ms PID                CPU time of the process, and of its children that it has waited for
#   runs PID MS               waits until the process has used so much more CPU time
#   record_cpu PID MS ...     fusee record -p PID ... (no -q) until the process has used so much CPU time under it; its
#                             exit status
#   pause SECONDS WHY         time in which nothing that is judged has to happen
#   finish                    the plan, and each failure again with its reason; exits with 1 if there is any
n=0
failed=0
here=$(cd "$(dirname "$0")" && pwd)
lib=$here/lib
top=$(cd "$here/../.." && pwd)
build=$(realpath -m "${1:-build}")
fusee=$build/fusee
tmp=$(mktemp -d "${TMPDIR:-/tmp}/fusee-test.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM

ok() {
	n=$((n + 1))
	echo "ok $n - $1"
}
not_ok() {
	n=$((n + 1))
	failed=1
	echo "not ok $n - $1"
	echo "# failed: $1" >>"$tmp/.failed"
}
# why the last check failed: all of the input now, its first and last lines again at the end
because() {
	sed 's/^/# /' >"$tmp/.why"
	cat "$tmp/.why"
	if [ "$(wc -l <"$tmp/.why")" -gt 5 ]; then
		{ head -n 1 "$tmp/.why"; tail -n 4 "$tmp/.why"; }
	else
		cat "$tmp/.why"
	fi | sed 's/^#/#   /' >>"$tmp/.failed"
}
skip() {
	n=$((n + 1))
	echo "ok $n - $1 # SKIP $2"
}
check() {
	what=$1
	shift
	if "$@" >"$tmp/.check" 2>&1; then
		ok "$what"
	else
		set -- "exit code $?:" "$@"
		not_ok "$what"
		{ echo "$*"; cat "$tmp/.check"; } | because
	fi
}
has() {
	if grep -Eq -- "$3" "$2"; then
		ok "$1"
	else
		not_ok "$1"
		{ echo "no line of $2 matches: $3"; cat "$2"; } | because
	fi
}
relay() {
	line=
	while read -r next; do
		case $next in
		"ok "*) ok "${next#ok * - }" ;;
		"not ok "*) not_ok "${next#not ok * - }" ;;
		"#"*) case $line in
			"not ok "*) echo "${next#"# "}" | because ; continue ;;
			*) echo "$next" ;;
			esac ;;
		esac
		line=$next
	done <"$1"
}
go_cache() {
	GOCACHE=$("$1" env GOCACHE 2>/dev/null)
	case $GOCACHE in
	/*) ;;
	*) GOCACHE=$tmp/go-cache ;;
	esac
	export GOCACHE
}
within() { awk -v s="$1" -v by="${FUSEE_CHECK_SLOWNESS:-1}" 'BEGIN { printf "%d\n", s * (by > 1 ? by : 1) + 0.5 }'; }
now_cs() { cut -d ' ' -f 1 /proc/uptime | tr -d .; }
wait_until() {
	deadline=$(($(now_cs) + $(within "$1") * 100))
	shift
	until "$@"; do
		[ "$(now_cs)" -lt "$deadline" ] || return 1
		sleep 0.02
	done
}
is_program() { [ "$(readlink "/proc/$1/exe")" = "$2" ]; }
becomes() { wait_until 20 is_program "$1" "$2"; }
is_attached() {
	[ ! -d "/proc/$1" ] || { find "/proc/$1/fd" -lname '*perf_event*' | grep -q . &&
		grep -Eq '^Sig(Blk|Cgt):.*[2367abef]$' "/proc/$1/status"; } 2> /dev/null
}
attached() { wait_until 60 is_attached "$1"; }
cpu_ms() {
	sed 's/.*) //' "/proc/$1/stat" 2> /dev/null | awk -v hz="$(getconf CLK_TCK)" '{ print int(($12 + $13 + $14 + $15) * 1000 / hz) }'
}
has_run() { now=$(cpu_ms "$1"); [ "${now:-0}" -ge "$2" ] || [ -z "$now" ]; }
runs() { wait_until 60 has_run "$1" $(($(cpu_ms "$1") + $2)); }
samples() { [ ! -d "/proc/$1" ] || grep -q ' Hz, unwinding' "$2"; }
record_cpu() {
	target=$1 ms=$2
	shift 2
	"$fusee" record -p "$target" "$@" 2> "$tmp/.said" &
	recorder=$!
	wait_until 60 samples $recorder "$tmp/.said" && runs "$target" "$ms"
	kill -INT $recorder 2> /dev/null
	wait $recorder
	code=$?
	cat "$tmp/.said" >&2
	return $code
}
pause() { sleep "$1"; }
finish() {
	echo "1..$n"
	cat "$tmp/.failed" 2>/dev/null
	exit $failed
}
