#!/bin/sh
# Lists take a pattern, print the whole of a preset and fit a terminal; configurations are found by name.
. "$(dirname "$0")/expect.sh"

# patterns: a part of a name, or with * and ?
names() {
    succeeds "$inflight" list "$@" --names
    tr '\n' ' ' <logs/out
}
same "$(names presets vtc-w)" 'vtc-weighted ' 'a part'
same "$(names preset 'vtc-?rr')" 'vtc-drr ' 'a pattern'
same "$(names models yi)" 'yi-34b ' 'models'
same "$(names keys arrivals.rate)" 'workload.arrivals.rate_rps ' 'keys'
same "$(names formats llmserv)" 'llmservingsim-run llmservingsim ' 'formats'
same "$(names traces azure-code)" 'traces/data/azure-code-2023.csv.gz ' 'traces'
same "$(names figures kv_sh)" 'kv_shares ' 'figures'
same "$(names policies 'deadlin?')" 'deadline ' 'policies'
same "$(names configs quick)" 'quickstart ' 'configurations'
same "$(names presets | wc -w)" "$(find "$INFLIGHT_DATA/configs/serving" -name '*.yaml' | wc -l)" 'all presets'
refuses 'unknown preset sarathy, did you mean sarathi[?]' "$inflight" list presets sarathy
refuses 'unknown key qqqqqqqq, `inflight list keys` names all' "$inflight" list keys qqqqqqqq

# a preset whole: its own file, what it is with all it extends, and all that it leaves open. Laid over a
# configuration, the second part and the preset's name fly the same.
succeeds "$inflight" list preset edf
same "$(sed -n 1,5p logs/out | cut -d : -f 1 | tr -d ' \n')" aboutsystemversionsourcereproduces 'about'
printed 'extends: sarathi'
printed '    chunk_tokens: 512'
printed '# serving.order.relegate: false'
cat >config.yaml <<'END'
model: llama-2-7b
hardware: a100-80gb-sxm
workload: {trace: traces/data/sharegpt-8k-lengths.csv.gz, limit: 40, arrivals: {process: poisson, rate_rps: 3}}
output: {dir: out}
END
for preset in edf vllm-v1-async vtc; do
    succeeds "$inflight" list preset $preset
    grep -q '^---$' logs/out && sed '1,/^---$/d' logs/out >serving || sed -n '/^serving:/,$p' logs/out >serving
    cat config.yaml serving >resolved.yaml
    succeeds "$inflight" run config.yaml --set serving.preset=$preset --quiet
    cp out/requests.csv named.csv
    succeeds "$inflight" run resolved.yaml --quiet
    same_bytes named.csv out/requests.csv
done

# no list has an escape code in a file, nor has help
for topic in policies presets models hardware deployments configs traces formats keys figures; do
    succeeds "$inflight" list $topic
    ! grep -q "$(printf '\033')" logs/out || complain "list $topic in a file has escape codes"
done
succeeds "$inflight" help run
! grep -q "$(printf '\033')" logs/out || complain 'help in a file has escape codes'

# configurations by name: here first, then here with .yaml, then those that come with inflight
mkdir elsewhere
cd elsewhere || exit 1
mkdir logs
flies() {
    succeeds "$inflight" run "$1" --quiet --set workload.limit=5 --set sweep=null --set output.plots=false -o out
    same "$(sed -n 's/^model: //p' out/config.yaml)" "$2" "run $1 flies"
}
flies quickstart llama-2-7b
flies quickstart.yaml llama-2-7b
flies configs/quickstart llama-2-7b
flies configs/quickstart.yaml llama-2-7b
sed 's/llama-2-7b/opt-13b/' ../config.yaml | sed 's/output:.*/serving: {preset: vllm-v0}/' >quickstart.yaml
flies quickstart opt-13b
flies quickstart.yaml opt-13b
flies configs/quickstart llama-2-7b
sed 's/opt-13b/llama-3-8b/' quickstart.yaml >quickstart
flies quickstart llama-3-8b
flies quickstart.yaml opt-13b
rm quickstart quickstart.yaml
mkdir quickstart # a folder, such as one of results
flies quickstart llama-2-7b
refuses 'quikstart: cannot be opened: No such file or directory, did you mean quickstart[?]' "$inflight" run quikstart
refuses 'quikstart.yaml: *, did you mean quickstart[?]' "$inflight" capacity quikstart.yaml
refuses 'none.yaml: cannot be opened: No such file or directory, nor is it of `inflight list configs`' \
    "$inflight" run none.yaml
refuses 'did you mean quickstart' "$inflight" export --server vllm quckstart
cp ../config.yaml mine.yaml
refuses 'did you mean mine' "$inflight" run mina
cd .. || exit 1
# ---- a file with the columns that a list names is read ----
succeeds "$inflight" list traces
columns=$(awk '$1 == "requests" { getline; print $1; getline; print $1 }' logs/out | tr -d '\n')
printf '%s\n0,0,finished,0.5,179,135,0.03,1.6,0.001,0\n' "$columns" >ten.csv
succeeds "$inflight" trace stats ten.csv
printed 'requests           1'
finish
