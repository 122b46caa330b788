#!/bin/sh
# Lists name all modules, presets and files; shipped traces have their published statistics; a converted
# trace is the same trace; and figures are drawn.
. "$(dirname "$0")/expect.sh"

# lists: the title of each kind, and every file of its folder
for topic in policies presets models hardware deployments traces keys; do
    succeeds "$inflight" list $topic
    cp logs/out $topic
done
listed() {
    grep -qE -- "$2" "$1" || complain "list $1 has no $2"
}
for kind in batching order admit preempt; do
    listed policies "^$kind\$"
done
for policy in static prefill-first mixed fcfs sjf prompt-fits reserve tail; do
    listed policies "^    $policy  *[^ ]"
done
each_file() {
    for file in "$INFLIGHT_DATA/$2"/*"$3"; do
        listed "$1" "$(basename "$file" "$4")(  .*|)\$"
    done
}
each_file presets configs/serving .yaml .yaml
each_file models configs/models .yaml .yaml
each_file hardware configs/hardware .yaml .yaml
each_file deployments configs/deployments .yaml .yaml
succeeds "$inflight" list deployments eager-2024
printed '  eager: true'
refuses 'unknown deployment vlm, did you mean vllm?' "$inflight" list deployments vlm
each_file traces traces/data .gz ''
for format in azure sharegpt vidur burstgpt mooncake bailian llmservingsim inflight \
    requests bench aiperf guidellm llmservingsim-run blis llm-d vtc; do
    listed traces "^    $format  *[^ ]"
done
for key in model workload.trace workload.arrivals.rate_rps serving.preset serving.kv.num_blocks \
    deployment.base deployment.host.step_s deployment.memory.workspace_gib cost.step_s slo.ttft_s output.dir serving.batching.max_seqs serving.preempt.fate; do
    listed keys "^$key  *[^ ]"
done

# statistics: counts, means and hit rates as published with the traces
data=$INFLIGHT_DATA/traces/data
succeeds "$inflight" trace stats "$data/azure-conv-2023.csv.gz"
printed 'requests           19366'
printed 'span               3501.72 s'
printed 'prompt             mean 1154.7  p50 1020 '
printed 'output             mean 211.1  p50 129 '
succeeds "$inflight" trace stats "$data/azure-code-2023.csv.gz"
printed 'requests           8819'
printed 'prompt             mean 2047.8  p50 1469  p90 5188  p99 7436  max 7437 '
printed 'output             mean 27.9  p50 13 '
succeeds "$inflight" trace stats "$data/mooncake-conversation.jsonl.gz"
printed 'requests           12031'
printed '105710 of 288500 seen before (36.6%)'
succeeds "$inflight" trace stats "$data/mooncake-synthetic.jsonl.gz"
printed 'requests           3993'
printed '(64.0%)'

# conversion keeps all data that its columns can hold
for trace in "$data"/azure-*.gz "$data"/sharegpt-*.gz "$data"/llmservingsim-*.gz; do
    succeeds "$inflight" trace convert "$trace" -o converted.csv
    succeeds "$inflight" trace stats "$trace"
    tail -n +2 logs/out >before
    succeeds "$inflight" trace stats converted.csv
    tail -n +2 logs/out >after
    same_bytes before after
    succeeds "$inflight" trace convert converted.csv
    same_bytes logs/out converted.csv
done
expect 0 'note: hash ids and token ids of prompts*left out' \
    "$inflight" trace convert "$data/mooncake-synthetic.jsonl.gz" -o converted.csv

# generation: as many as asked, the same ones from the same seed, and as long as asked
made="trace generate -n 5000 --process poisson --rate 4 --prompt uniform:100,300"
# shellcheck disable=SC2086 # words on purpose
succeeds "$inflight" $made --output-tokens fixed:7 --seed 3 -o three.csv
# shellcheck disable=SC2086
succeeds "$inflight" $made --output-tokens fixed:7 --seed 3
same_bytes logs/out three.csv
# shellcheck disable=SC2086
succeeds "$inflight" $made --output-tokens fixed:7 --seed 4
cmp -s logs/out three.csv && complain 'the seed changes nothing'
same "$(columns three.csv output_tokens | sort -u)" 7 'fixed:7'
same "$(columns three.csv arrival_s | wc -l | tr -d ' ')" 5000 'how many'
# five standard errors: 200 +- 5 x 58.0 / sqrt(5000), and 1250 s +- 5 x sqrt(5000) / 4
same "$(awk -F, '
    NR > 1 { sum += $2; least = NR == 2 || $2 < least ? $2 : least; most = $2 > most ? $2 : most }
    END { print least, most, (sum / 5000 - 200) ^ 2 < 4.1 ^ 2, ($1 - 1250) ^ 2 < 89 ^ 2 }' \
    three.csv)" '100 300 1 1' 'least, most, mean length and span'

# figures
succeeds "$inflight" run "$INFLIGHT_DATA/configs/quickstart.yaml" --quiet -o out \
    --set workload.limit=50 --set output.plots=false
mkdir empty
expect 1 'gnuplot not found: figures need it (on Debian, the package gnuplot-nox)' env PATH="$work/empty" "$inflight" plot out -o none
mkdir broken
for says in 'it said nothing' 'out of ink'; do
    printf '#!/bin/sh\ncat >/dev/null\n%s\nexit 3\n' "$([ "$says" = 'out of ink' ] && echo 'echo out of ink >&2')" >broken/gnuplot
    chmod +x broken/gnuplot
    expect 1 "gnuplot failed on *.gp: $says" env PATH="$work/broken:$PATH" "$inflight" plot out -o none
done
refuses 'nowhere/summary.csv: cannot open: No such file' "$inflight" plot nowhere
[ -e nowhere ] && complain 'plot makes the folder that it should read'
refuses 'empty/summary.csv: cannot open: No such file' "$inflight" plot empty
awk -F, -v OFS=, 'NR == 2 { for (i = 0; i < 65; i++) { $1 = "series " i; print } } NR == 1' \
    out/summary.csv >empty/summary.csv
cp out/config.yaml empty
refuses '65 series, at most 64 fit into a figure: sweep fewer keys at a time' "$inflight" plot empty
for cell in nan inf 1e999 fast; do
    awk -F, -v OFS=, -v cell=$cell 'NR == 3 { $11 = cell } { print }' out/summary.csv >empty/summary.csv
    refuses "empty/summary.csv:3:11: mean_ttft_s is \"$cell\", expected a number" "$inflight" plot empty
done
if command -v gnuplot >/dev/null; then
    succeeds "$inflight" plot out -o figures
    for figure in latency_vs_rate ttft_itl_cdf; do
        same "$(head -c 5 figures/$figure.pdf)" '%PDF-' $figure.pdf
        same "$(grep -c '</svg>' figures/$figure.svg)" 1 "$figure.svg, whole"
    done
    # files of 4 KiB at most: nothing is left of a figure that is larger; 25 is SIGXFSZ
    expect 1 'small/inner/kv_shares.*: cannot write: File too large' sh -c \
        'trap "" 25; ulimit -f 8; exec "$@"' - "$inflight" plot out -o small/inner -f kv_shares
    same "$(ls -A small/inner)" kv_shares.csv 'the files of a figure that finds no room'
fi

# lists without data are errors that name the searched folders
mkdir bare
for topic in presets models hardware deployments traces; do
    refuses 'here and none in /nonexistent; INFLIGHT_DATA may name' \
        sh -c 'cd bare && INFLIGHT_DATA=/nonexistent exec "$1" list "$2"' - "$inflight" $topic
done
finish
