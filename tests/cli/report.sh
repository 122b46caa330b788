#!/bin/sh
# The page of a run: one file that needs nothing else, the same bytes again, and refusals. What it shows is looked at
# in a browser by tests/page.
. "$(dirname "$0")/expect.sh"

"$inflight" trace generate -n 50 --prompt fixed:100 --output-tokens fixed:10 --process poisson --rate 5 -o trace.csv
cat >config.yaml <<'END'
workload: {trace: trace.csv}
serving: {preset: vllm-v0, max_model_len: 2048, kv: {num_blocks: 500}}
cost: {model: linear, step_s: 0.01}
output: {dir: run, steps: true}
sweep: {serving.batching.max_seqs: [2, 8]}
END
succeeds "$inflight" run config.yaml --quiet
succeeds "$inflight" report run
printed run/report.html
cp run/report.html first.html
succeeds "$inflight" report run
same_bytes run/report.html first.html
succeeds "$inflight" report run -o there.html
same_bytes there.html first.html

# nothing from elsewhere: neither a script nor a style, a font or an image
grep -qE '<(script|img|iframe|link)[^>]*(src|href)=|@import|url\(' first.html && complain 'a page that needs another file'
# a text of a run ends no script
sed 's/^# inflight/# <\/script><!--<script> inflight/' run/config.yaml >config && mv config run/config.yaml
succeeds "$inflight" report run -o odd.html
same "$(grep -c '</script>' odd.html)" "$(grep -c '</script>' first.html)" 'ends of scripts'

# without the optional reports
mkdir bare
cp run/summary.csv bare/
succeeds "$inflight" report bare
succeeds "$inflight" report run bare -o both.html

# what is wrong
refuses 'usage: inflight report DIR' "$inflight" report
refuses 'nowhere/summary.csv: cannot open' "$inflight" report nowhere
refuses 'nowhere/summary.csv: cannot open' "$inflight" report run nowhere -o two.html
[ -e two.html ] && complain 'a page without one of its runs'
refuses 'unknown option --form, did you mean --from?' "$inflight" report run --form 3
refuses '--from soon: expected a number' "$inflight" report run --from soon
expect 1 'nowhere/page.html: cannot open it for writing' "$inflight" report run -o nowhere/page.html
awk -F, -v OFS=, 'NR == 3 { $5 = "many" } { print }' run/summary.csv >bare/summary.csv
refuses 'bare/summary.csv:3:5: failed is "many", expected a number' "$inflight" report bare
cp run/summary.csv bare/
sed '2s/^0,/0,x/' run/requests.csv >bare/requests.csv
refuses 'bare/requests.csv:2:2: request_id is "x' "$inflight" report bare
same "$(find . -name '*.tmp')" '' 'a page begun'
finish
