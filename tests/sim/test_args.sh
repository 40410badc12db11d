#!/usr/bin/env bash
# mrc-sim's arguments: what is wrong is refused and said, what a run prints of itself runs it again.
#	test_args.sh MRC-SIM
set -euo pipefail
sim=$1
failed=0

fail() {
	echo "FAILED: $*"
	failed=1
}

# refused WORDS ARGUMENTS...: exits 2 and says WORDS
refused() {
	local words=$1 out status=0
	shift
	out=$("$sim" "$@" 2>&1) || status=$?
	[ "$status" = 2 ] || fail "'$*' exits $status"
	grep -qF -- "$words" <<<"$out" || fail "'$*' says: $out"
}

refused 'wants FROM-TO' --seeds 5
refused 'wants FROM-TO' --seeds 9-5
refused 'wants a number' --seed x
refused 'wants a number' --seed -1
refused 'above 0' --minutes 0
refused 'what is this' 17
refused 'only one of these' --seed 1 --minutes 1
refused "'color' is not an option" --set color=red
refused "'two' is not a number, for rails" --set rails=two
refused 'rails must be 1 to 16' --set rails=17
refused 'unknown kind of fault' --set fault_kinds=silence+boredom
refused 'see mrc-sim --help' --unknown

help=$("$sim" --help)
for word in --seed --seeds --minutes --set --trace --shrink --replay fault_kinds queue-full window; do
	grep -q -- "$word" <<<"$help" || fail "--help does not name $word"
done

# What it prints of itself, given back with --set to another seed's draw, is the same run.
first=$("$sim" --seed 12)
options=$(sed -n 's/^seed 12: //p' <<<"$first")
hash=$(sed -n 's/.*trace hash //p' <<<"$first")
again=$("$sim" --seed 12 --set "$options" | sed -n 's/.*trace hash //p')
[ -n "$hash" ] || fail 'no trace hash'
[ "$hash" = "$again" ] || fail "with all its options given seed 12 runs to $again, not to $hash"
other=$("$sim" --seed 13 | sed -n 's/.*trace hash //p')
[ "$hash" != "$other" ] || fail 'two seeds run alike'
lines=$("$sim" --seed 12 --trace | wc -l)
[ "$lines" -gt 400 ] || fail "--trace prints $lines lines"

exit "$failed"
