#!/bin/sh
# The results that `inflight list presets` says presets reproduce are those in the CSVs of the pages.
. "$(dirname "$0")/expect.sh"
pages=$INFLIGHT_DATA/reports/reproductions
validation=$pages/validation
succeeds "$inflight" list presets

# PRESET TEXT: the preset's reproduced results contain the text
says() {
    awk -v preset="$1" '/^[^ ]/ { mine = $1 == preset } mine && $1 == "reproduces"' logs/out >line
    grep -qF -- "$2" line || complain "$1 does not say: $2" "    but:$(cat line)"
}

# CSV ROW COLUMN [FORMAT [TIMES]]: the column of the one row that has the text ROW
cell() {
    awk -F, -v row="$2" -v column="$3" -v format="${4:-%s}" -v times="${5:-}" '
        NR == 1 { for (i = 1; i <= NF; i++) if ($i == column) at = i; next }
        index($0, row) { n++; value = times ? $at * times : $at }
        END { if (n == 1 && at) printf format, value; else printf "(%d rows %s)", n, row }' "$1"
}

# NAME PRESET: its bars in Figs 2 and 13 of Kwon et al.
bars() {
    a=$pages/pagedattention-fig13/fig13a.csv
    b=$pages/pagedattention-fig13/fig13b.csv
    shares=$pages/pagedattention-fig2/kv_shares.csv
    says "$2" "$(cell "$a" ",$1," simulated) and $(cell "$b" ",$1," simulated) requests"
    says "$2" "($(cell "$a" ",$1," paper), $(cell "$b" ",$1," paper)"
    says "$2" "$(cell "$shares" "$1 / inflight" kv_token_frac %.1f 100)% token states \
($(cell "$shares" "$1 / paper" kv_token_frac %.1f 100))"
}
bars 'Orca (Max)' orca-max
bars 'Orca (Pow2)' orca-pow2
bars 'Orca (Oracle)' orca-oracle
bars vLLM vllm-paper

# PRESET FOLDER/CSV KEY: how much more vLLM sustains, for three models
times_its_rate() {
    echo "$(cell "$pages/$2" "opt-13b$3" vllm_over), $(cell "$pages/$2" "opt-66b$3" vllm_over) and \
$(cell "$pages/$2" "opt-175b$3" vllm_over) times"
}
for preset in orca-max orca-oracle faster-transformer-padded; do
    says $preset "$(times_its_rate $preset pagedattention-fig12/sustained.csv ",$preset")"
    says $preset "$(cell "$pages/pagedattention-fig12/sustained.csv" "opt-13b,$preset" paper_high))"
done
says faster-transformer-padded "$(times_its_rate - pagedattention-fig12/endless-batches.csv ,)"

# FIGURE: the ends of the range in Fig. 15 of Kwon et al.
saved() {
    csv=$pages/pagedattention-fig15/$1.csv
    says vllm-paper "$(cell "$csv" 1,2, simulated_percent) to $(cell "$csv" 3,6, simulated_percent)%"
    says vllm-paper "($(cell "$csv" 1,2, paper_percent) to $(cell "$csv" 3,6, paper_percent))"
}
saved fig15a
saved fig15b

# throughput under overload beside the artifact's
for preset in s-lora vtc; do
    fairness=$pages/vtc-fairness/fairness.csv
    says $preset "$(cell "$fairness" "$preset," simulated_rps %.2f) requests/s \
($(cell "$fairness" "$preset," artifact_rps %.2f))"
done

# RUN COLUMN: a relative error of the service of the VTC artifact's clients, in per cent
of_clients() {
    echo "$(cell "$validation/vtc/service.csv" "$1,judged" "$2_error" %+.1f 100)%"
}
for run in fcfs:s-lora vtc:vtc lcf:vtc-lcf rpm:vtc-rpm; do
    says ${run#*:} "$(of_clients vtc-a10g-${run%:*} service_gap)"
done
says s-lora "$(of_clients vtc-a100-65000-fcfs service_gap) on an A100"
says vtc "$(of_clients vtc-a100-65000-vtc service_gap) on an A100"
says vtc-rpm "throughput $(of_clients vtc-a10g-rpm tokens_per_s)"

# RUN: the relative error of its mean end-to-end time, in per cent
recorded() {
    cell "$validation/errors.csv" "$1,judged" e2e_error %+.1f 100
}
says vllm-v1-2026-08-async "$(recorded llmservingsim-rtx-pro-6000)% on an RTX PRO 6000 and \
$(recorded llmservingsim-rtx-4090)% on an RTX 4090"
says vllm-v1-2025-05 "$(recorded blis-h100-llama-2-7b), $(recorded blis-h100-codellama-34b) and \
$(recorded blis-h100-codellama-34b-budget-64)% on an H100"
says vllm-v1-2025-05 "$(recorded llmd-a100-tp2-1rps) to $(recorded llmd-a100-tp2-0.5rps)% on two A100"

# CHUNK: the mean error of Sarathi's Yi-34B, in per cent
chunks() {
    echo "$(cell "$validation/batches/errors.csv" "sarathi-yi-34b-chunk-$1," error_mean %+.1f 100)% at $1"
}
says sarathi "$(chunks 512), $(chunks 1024), $(chunks 2048)"

# DistServe's curve with the server's own step times: where it is closest and furthest off up to 1.5 requests/s
says vllm-v0 "$(awk -F, '
    $1 != "fitted-lines" || $3 != 1 { next }
    $2 <= 1.5 { least = !n++ || $6 < least ? $6 : least; most = $6 > most ? $6 : most }
    $2 == 3 { at_3 = $6 }
    END { printf "%.1f to %.1f points above it up to 1.5 requests/s, %.1f at 3", least, most, at_3 }' \
    "$validation/distserve/attainment.csv")"
finish
