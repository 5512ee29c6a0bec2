# SPDX-License-Identifier: Apache-2.0
# For tests/run scripts in sh: a temporary directory in $tmp, removed at the end, and TAP lines.
#   check "what" COMMAND...   ok when the command succeeds; its output is shown when it fails
#   has "what" FILE PATTERN   ok when a line of FILE matches the extended regular expression
#   skip "what" "reason"
#   relay FILE                the TAP lines in FILE as results of this script
#   go_cache GO               exports GOCACHE: that Go's own, so that its library is compiled once for all tests
#   becomes PID FILE          waits until the process has become that program (exec), 20 s at most
#   attached PID              waits until that recorder holds its events and no SIGINT kills it, 20 s at most
#   finish                    the plan, and each failure again with its reason; exits with 1 if there is any
n=0
failed=0
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
becomes() {
	tries=400
	until [ "$(readlink "/proc/$1/exe")" = "$2" ] || [ $((tries -= 1)) = 0 ]; do
		sleep 0.05
	done
}
attached() {
	tries=400
	until { find "/proc/$1/fd" -lname '*perf_event*' | grep -q . &&
		grep -Eq '^Sig(Blk|Cgt):.*[2367abef]$' "/proc/$1/status"; } 2> /dev/null ||
		[ $((tries -= 1)) = 0 ]; do
		sleep 0.05
	done
}
finish() {
	echo "1..$n"
	cat "$tmp/.failed" 2>/dev/null
	exit $failed
}
