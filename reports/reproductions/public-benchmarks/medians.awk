# Medians and mean magnitudes of the errors that count, by kind of number, for all runs and for groups of them. A duration
# counts as the throughput that it is the inverse of.
function class_of(metric) {
    return metric ~ /ttft/ ? "ttft" : metric ~ /tpot/ ? "tpot" : metric ~ /itl/ ? "itl" : metric ~ /e2e/ ? "e2e" : "throughput"
}
function add(group, class, error, key) {
    key = group SUBSEP class
    if (!(key in n)) order[++n_keys] = key
    of[key, ++n[key]] = error
}
function median(key, i, sorted) {
    for (i = 1; i <= n[key]; i++) sorted[i] = of[key, i]
    return median_of(sorted, n[key])
}
function magnitude(key, i, sum) {
    for (i = 1; i <= n[key]; i++) sum += of[key, i] < 0 ? -of[key, i] : of[key, i]
    return sum / n[key]
}
NR > 1 && $11 == "yes" && $10 != "" {
    class = class_of($7)
    error = $7 == "duration_s" ? 1 / (1 + $10) - 1 : $10
    gpu = $4
    sub(/-(vllm|trtllm|sglang).*/, "", gpu)
    add("all", class, error)
    add($6, class, error)
    add($5, class, error)
    add($2 ($2 == "vllm" ? ($3 ~ /^0\.[67]\./ ? " 0.6 and 0.7" : $3 ~ /^0\.20/ ? " 0.20" : $3 ~ /^0\.1[2-9]/ ? " 0.12 to 0.17" : " 0.8 to 0.11") : ""), class, error)
    add(gpu, class, error)
}
END {
    print "group,number,n,median,mean_magnitude"
    for (k = 1; k <= n_keys; k++) {
        split(order[k], part, SUBSEP)
        printf "%s,%s,%d,%.3f,%.3f\n", part[1], part[2], n[order[k]], median(order[k]), magnitude(order[k])
    }
}
