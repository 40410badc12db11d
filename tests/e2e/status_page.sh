#!/usr/bin/env bash
# The status page in a browser: it draws what happens, during a failure as well; it bears names that look like markup; and
# it tells when the daemon is away, and goes on when it is back. Its pictures are left in pictures/ of the build; with
# E2E_PICTURES=DIR there, and with more time on them.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"
browser=$(command -v chromium || command -v chromium-browser) || lab_skip "no browser is installed (Debian package chromium)"

# ---- a browser, asked over two pipes: messages are JSON, each with a zero byte at its end ----

browser_begin() { # HOST
	rm -rf "$LAB_DIR/browser" "$LAB_DIR/to-browser" "$LAB_DIR/from-browser"
	mkfifo "$LAB_DIR/to-browser" "$LAB_DIR/from-browser"
	# The read end is there before the browser is, so that neither waits for the other.
	exec 6<>"$LAB_DIR/to-browser" 7<>"$LAB_DIR/from-browser"
	session=
	lab_spawn browser "$1" bash -c 'exec "$@" 3<"$0/to-browser" 4>"$0/from-browser"' "$LAB_DIR" \
		"$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
		--disable-renderer-backgrounding --disable-backgrounding-occluded-windows --user-data-dir="$LAB_DIR/browser" --window-size=1280,800 --remote-debugging-pipe about:blank
}
# A page of our own: the one it begins with may be about to be replaced.
browser_page() { # URL
	ask Target.createTarget '{"url": "about:blank"}' || return
	ask Target.attachToTarget "$(jq -c '{targetId: .result.targetId, flatten: true}' <<<"$reply")" || return
	session=$(jq -r .result.sessionId <<<"$reply")
	ask Page.bringToFront '{}' || return # what is behind another is not always drawn
	ask Page.navigate "{\"url\": \"$1\"}"
}
browse() { # HOST URL: a browser that does not come up on a machine with much to do is begun once more
	local try
	for try in 1 2 3; do
		browser_begin "$1"
		browser_page "$2" && return
		lab_say "the browser did not answer, try $try: ${reply:-nothing}"
		lab_kill browser
		exec 6>&- 7<&-
	done
	lab_fail "no browser answers"
}

session='' asked=0
ask() { # METHOD PARAMETERS: the answer is in $reply; false: there is none, or it is a refusal
	local id=$((++asked))
	jq -cjn --argjson id "$id" --arg method "$1" --argjson params "$2" --arg session "$session" \
		'{id: $id, method: $method, params: $params} + if $session == "" then {} else {sessionId: $session} end' >&6
	printf '\0' >&6
	reply=
	# events come as well; they are not looked at
	until [ "$(jq -r '.id // empty' <<<"$reply")" = "$id" ]; do
		IFS= read -r -t $((30 * LAB_SLOWNESS)) -d '' reply <&7 || return
	done
	jq -e .result <<<"$reply" >/dev/null
}
tell() { ask "$@" || lab_fail "the browser does not do $1: ${reply:-no answer}"; }

# page EXPRESSION: what a script of ours in the page says
page() {
	tell Runtime.evaluate "$(jq -n --arg e "$1" '{expression: $e, returnByValue: true}')"
	jq -r '.result.result.value' <<<"$reply"
}
page_is() { [ "$(page "$1")" = true ]; }
shows() { lab_wait_for "the page to show: $1" "${3:-15}" page_is "$2"; } # WHAT EXPRESSION [SECONDS]

picture() { # NAME
	local dir=${E2E_PICTURES:-$MRC_BUILD/pictures}
	mkdir -p "$dir"
	# It is for people: where a browser draws nothing in time, the page has still said what it should.
	if ! ask Page.captureScreenshot '{"format": "png"}'; then
		lab_say "no picture of $1: the browser draws nothing"
		return
	fi
	jq -r .result.data <<<"$reply" | base64 -d >"$dir/status-page-$1.png"
}

text() { printf 'document.getElementById("%s").innerText.includes("%s")' "$1" "$2"; }

# ---- the test ----

e2e_hosts 4
e2e_stream_start
browse a http://127.0.0.1:9471/
shows "the daemon's name" 'document.getElementById("host").innerText === "a"'
shows "that it is live" "$(text link live)"
shows "four rails" 'document.querySelectorAll(".lane").length === 4'
shows "that all are in order" "$(text tiles '4 of 4')"
shows "rates of each rail" '[...document.querySelectorAll(".lane .sent")].filter(e => / Mb\/s$/.test(e.innerText)).length === 4'
shows "a drawn line" 'document.querySelector("svg .sent").getAttribute("d").split("L").length > 3'
[ -z "${E2E_PICTURES:-}" ] || sleep 12 # something to look at
picture healthy

lab_cut 1 b
shows "the lost carrier" '[...document.querySelectorAll(".lane")].some(e => e.innerText.includes("r1") && e.innerText.includes("no carrier"))'
shows "a rail less" "$(text tiles '3 of 4')"
shows "the event" "$(text events 'rail r1: carrier lost')"
shows "the path that left" "$(text paths ASSUMED_BAD) || $(text paths CONNECTING)"
shows "a mark of it in the drawing" 'document.querySelectorAll("svg rect.bad").length > 0'
[ -z "${E2E_PICTURES:-}" ] || sleep 6
picture cut
tell Emulation.setEmulatedMedia '{"features": [{"name": "prefers-color-scheme", "value": "dark"}]}'
picture dark
tell Emulation.setEmulatedMedia '{"features": []}'
lab_heal 1
shows "the rail back" "$(text tiles '4 of 4')"
[ -z "${E2E_PICTURES:-}" ] || sleep 4
picture healed

e2e_paths a 4
lab_spawn drill a "$MRCCTL" --runtime-dir "$LAB_DIR/host/a" drill r2 --silence 60s --yes --stream none
shows "the drill" '[...document.querySelectorAll(".lane")].some(e => e.innerText.includes("r2") && e.innerText.includes("drill: silence"))'
shows "when it began" "$(text events 'rail r2: a drill begins, silence for 60000 ms')"
shows "the path that was found out" "$(text paths ASSUMED_BAD) || $(text paths CONNECTING)"
shows "a mark of it in the drawing" 'document.querySelectorAll("svg rect.drill").length > 0'
[ -z "${E2E_PICTURES:-}" ] || sleep 6
picture drill
lab_kill drill INT
shows "its end" "$(text events 'rail r2: a drill ends')"
shows "the rail in order" "$(text tiles '4 of 4')"

# what is called like markup stays text, and the page's rules allow no script but its own
page 'take_events({missed: 0, next: since, events: [{kind: "x", wall_ns: 1, text: "<img src=x onerror=window.broken=1>"}]})' >/dev/null
shows "markup as text" 'document.querySelector("#events li").innerText.includes("<img")'
page 'const s = document.createElement("script"); s.textContent = "window.broken = 1"; document.body.append(s)' >/dev/null
page_is 'window.broken === undefined' || lab_fail "a script that is not the page's own was run"

# the daemon goes and comes back
e2e_stream_end
lab_mrcd_stop a
shows "that the daemon is away" "$(text link 'no answer for')"
picture away
lab_mrcd a
shows "that it is back" "$(text link live)"
shows "the events of its new life" '[...document.querySelectorAll("#events li")].filter(e => e.innerText.includes("mrcd: started")).length === 2'
# Another life numbers its events from 1: what we know of the old one says nothing. (However many it has by now.)
page_is '(since = 1, show({...last, boot_id: "another", events: {missed: 0, next: 9, events: []}}), since === 0)' ||
	lab_fail "the numbers of a life that is over are asked for"
tell Browser.close '{}'
lab_status browser 20
e2e_end
