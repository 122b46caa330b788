# sampled.csv, predicted.csv: the time of an expert in fp8 that a rank holds, in a layer, that steps of Qwen3-235B (split fit; 8 and 64
# sequences) lack beside the time of sampled tokens, by least squares of relative errors for each card; what it does to the others.
function sampling_ms(n_seqs) { return step_ms + seq_ms * n_seqs }
function judge(what, row, sampled, both) {
    sampled = (predicted[row] + sampling_ms(batch[row])) / measured[row] - 1
    both = sampled + us[hardware[row]] * held[row] / measured[row]
    before[what] += error[row] < 0 ? -error[row] : error[row]
    with_sampling[what] += sampled < 0 ? -sampled : sampled
    with_both[what] += both < 0 ? -both : both
    n[what]++
}
FNR == NR {
    if (FNR == 2) {
        step_ms = $1
        seq_ms = $2 / 1000
    }
    next
}
$1 ~ /^mle/ && $9 == "fp8" && $17 != "-" && $8 ~ /A22B|DeepSeek|Maverick/ {
    k++
    layers = $8 ~ /A22B/ ? 94 : $8 ~ /DeepSeek/ ? 58 : 24
    held[k] = layers * ($8 ~ /DeepSeek/ ? 256 : 128) / $7 / 1000 # ms of all layers for 1 us
    hardware[k] = $6
    split_of[k] = $2
    batch[k] = $12
    measured[k] = $15
    predicted[k] = $16
    error[k] = $17
    if ($2 == "fit" && $12 <= 64) {
        x = held[k] / $15
        sxy[$6] += x * (1 - ($16 + sampling_ms($12)) / $15)
        sxx[$6] += x * x
        points[$6]++
    }
}
END {
    print "hardware,expert_us,points"
    for (h in points) {
        us[h] = sxy[h] / sxx[h]
        printf "%s,%.2f,%d\n", h, us[h], points[h] | "sort"
    }
    close("sort")
    print "\nhardware,batch,split,points,magnitude,with_sampling,with_both"
    fflush()
    for (i = 1; i <= k; i++) judge(hardware[i] "," (batch[i] > 64 ? "256" : "8 and 64") "," split_of[i], i)
    for (w in n)
        printf "%s,%d,%.3f,%.3f,%.3f\n", w, n[w], before[w] / n[w], with_sampling[w] / n[w], with_both[w] / n[w] | "sort"
    close("sort")
}
