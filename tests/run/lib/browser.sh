# SPDX-License-Identifier: Apache-2.0
# For tests/run scripts in sh that look at a page in Chromium, after tap.sh:
#   begin_browser WHAT     skips WHAT and ends where there is no browser. Its modules are made once, in $build/browser.
#   profile NAME [COMMENT] $tmp/NAME.pb.gz of the stacks on standard input
#   browse SCRIPT          runs lib/SCRIPT over the current folder, and relays its results. SHOTS=DIR keeps screenshots.
begin_browser() {
	why=
	command -v node >/dev/null || why="no node"
	command -v "${CHROMIUM:-chromium}" >/dev/null || why="no chromium"
	modules=$build/browser
	mkdir -p "$modules"
	[ -n "$why" ] || flock "$modules" npm install --silent --no-audit --no-fund --prefer-offline --prefix "$modules" \
		playwright-core@1.49.1 axe-core@4.10.2 >"$tmp/npm.log" 2>&1 ||
		why="playwright-core and axe-core cannot be installed: $(tail -n 1 "$tmp/npm.log")"
	if [ -n "$why" ]; then
		skip "$1" "$why"
		finish
	fi
	SHOTS=${SHOTS:+$(realpath "$SHOTS")}
	cd "$tmp" || exit 1
}
profile() {
	python3 "$lib/mkpprof.py" "$1.pb.gz" ${2:+"$2"}
}
browse() {
	NODE_PATH=$modules/node_modules FUSEE=$fusee node "$lib/$1" "$tmp" $SHOTS >browser.tap 2>browser.err
	status=$?
	relay browser.tap
	has "the browser's checks came to their end" browser.tap '^1\.\.[0-9]+$'
	[ $status -le 1 ] || cat browser.err
}
