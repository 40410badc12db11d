# Lines of bench.sh, as one report: {machine, rows: [...], missed, markdown}.
def median: sort | if length == 0 then null elif length % 2 == 1 then .[length / 2 | floor]
	else (.[length / 2 - 1] + .[length / 2]) / 2 end;
def figure: if . == null then "-" elif . == 0 then "0" else
	(if fabs < 1 then 10000 elif fabs < 10 then 1000 elif fabs < 100 then 100 else 10 end) as $f
	| (. * $f | round / $f | tostring) end;
def holds($value; $sense; $aim): if $sense == "ge" then $value >= $aim elif $sense == "le" then $value <= $aim else null end;
def verdict: if .reached == null then "" elif .reached then "yes" else "**no**" end;
def wanted: if .sense == "ge" then "≥ \(.aim | figure)" elif .sense == "le" then "≤ \(.aim | figure)" else "" end;

.[0] as $machine
| $lines as $all
| [$all[] | select(.kind == "row")] as $rows
| [$rows[] | . as $row | {
	row: .row, title: .title, unit: .unit,
	# in the order in which they were first measured: 1, 4, 16, and not 1, 16, 4
	who: ([$all | to_entries[] | .value + {at: .key} | select(.kind == "sample" and .row == $row.row)]
		| group_by(.who) | sort_by(.[0].at) | map({
		who: .[0].who, median: (map(.value) | median), min: (map(.value) | min),
		max: (map(.value) | max), values: map({round, value})})),
	absent: [$all[] | select(.kind == "absent" and .row == $row.row) | {who, why}],
	lost: [$all[] | select(.kind == "lost" and .row == $row.row) | {who, round}],
	}
	| . as $made
	| .ratios = [$all[] | select(.kind == "ratio" and .row == $row.row) | . as $ratio
		| ([$made.who[] | select(.who == $ratio.who) | .values[]]) as $a
		| ([$made.who[] | select(.who == $ratio.other) | .values[]]) as $b
		| [$a[] | . as $x | $b[] | select(.round == $x.round and .value != 0) | $x.value / .value * $ratio.factor] as $each
		| select($each | length > 0)
		| {who: .who, other: .other, factor: .factor, sense: .sense, aim: .aim, ratio: ($each | median), min: ($each | min), max: ($each | max)}
		| .reached = (if .aim == null then null else holds(.ratio; .sense; .aim) end)]
	| .aims = [$all[] | select(.kind == "aim" and .row == $row.row) | . as $aim
		| ($made.who[] | select(.who == $aim.who)) as $a
		| {who: .who, of: .of, sense: .sense, aim: .aim, value: (if .of == "max" then $a.max else $a.median end)}
		| .reached = holds(.value; .sense; .aim)]
	] as $report
| [$report[] | (.ratios[], .aims[]) | select(.reached == false)] as $missed
| {
	machine: $machine, rows: $report, missed: ($missed | length),
	markdown: (
		["\($machine.processors) processors (\($machine.model)), kernel \($machine.kernel), \($machine.date), commit \($machine.commit); "
		 + "medians of \($machine.rounds) rounds of \($machine.seconds) s where a row says nothing else, in turn; in brackets smallest to largest.", ""]
		+ ["| what | measured | ratio | wanted | reached |", "|---|---|---|---|---|"]
		+ [$report[] | . as $row
			| (([.who[] | "\(.who) \(.median | figure) (\(.min | figure) to \(.max | figure))"] + [.absent[] | "\(.who): not measured, \(.why)"])
				| join("; ")) as $measured
			| ([.ratios[] | {text: ("\(.who) / \(if .factor != 1 then "(\(1 / .factor | figure) of \(.other))" else .other end): "
					+ "\(.ratio | figure) (\(.min | figure) to \(.max | figure))"), wanted: wanted, verdict: verdict}]
				+ [.aims[] | {text: "\(.who), \(.of): \(.value | figure) \($row.unit)", wanted: wanted, verdict: verdict}]) as $lines
			| if ($lines | length) == 0 then "| \(.title), \(.unit) | \($measured) | | | |"
			  else $lines | to_entries[]
				| if .key == 0 then "| \($row.title), \($row.unit) | \($measured) | \(.value.text) | \(.value.wanted) | \(.value.verdict) |"
				  else "| | | \(.value.text) | \(.value.wanted) | \(.value.verdict) |" end
			  end]
		| join("\n"))
}
