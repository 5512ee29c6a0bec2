# SPDX-License-Identifier: Apache-2.0
# For tests/run scripts in sh: a temporary directory in $tmp, gone at the end, and TAP lines.
#   check "what" COMMAND...   ok when the command succeeds; its output is shown when it fails
#   has "what" FILE PATTERN   ok when a line of FILE matches the extended regular expression
#   skip "what" "reason"
#   becomes PID FILE          waits until the process has become that program (exec), 20 s at most
#   attached PID              waits until that recorder holds its events and no SIGINT kills it, 20 s at most
#   finish                    the plan; exits with 1 if something failed
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
		not_ok "$what"
		echo "# failed: $*"
		sed 's/^/# /' "$tmp/.check"
	fi
}
has() {
	if grep -Eq -- "$3" "$2"; then
		ok "$1"
	else
		not_ok "$1"
		echo "# no line of this matches: $3"
		sed 's/^/# /' "$2"
	fi
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
	exit $failed
}
