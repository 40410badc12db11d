# shellcheck shell=bash
#
# doctor_says.sh - mrcctl doctor on a host of a lab, and what it is to find; to be sourced behind e2e.sh

doctor_report=
# doctor HOST STATUS ARGUMENTS...: what it says goes to $doctor_report
doctor() {
	local host=$1 want=$2 status=0
	shift 2
	doctor_report=$LAB_DIR/log/doctor
	lab_exec "$host" "$MRCCTL" --runtime-dir "$LAB_DIR/host/$host" doctor "$@" >"$doctor_report" 2>&1 || status=$?
	[ "$status" = "$want" ] || lab_fail "doctor on $host ended with status $status, not $want"
}
doctor_found() { # ID SUBJECT SEEN: in the JSON of the last report; each as a regular expression
	jq -e --arg id "$1" --arg subject "$2" --arg seen "$3" \
		'.findings | any(.id == $id and (.subject | test($subject)) and (.seen | test($seen)))' "$doctor_report" >/dev/null
}
finds() { # ID SUBJECT SEEN; what was seen is told with why it matters and what to do
	doctor_found "$@" || lab_fail "doctor does not find $1 of $2: $3"
	jq -e --arg id "$1" 'all(.findings[] | select(.id == $id); all(.title, .seen, .why, .do; length > 0))' "$doctor_report" >/dev/null ||
		lab_fail "doctor does not say why $1 matters, or what to do: $(jq -c --arg id "$1" '.findings[] | select(.id == $id)' "$doctor_report")"
}
finds_not() { # ID
	! doctor_found "$1" . . || lab_fail "doctor finds $1 as well: $(jq -c ".findings[] | select(.id == \"$1\") | .seen" "$doctor_report")"
}
