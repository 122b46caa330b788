# predicted.csv: the time of a step and of a sequence that steps with sampled tokens lack under asynchronous scheduling, by least
# squares over half of the dense deployments of ML.ENERGY on H100 (split fit; 8 and 64 sequences); what they do to the others.
function judge(what, row, after) {
    after = (predicted[row] + a + b * batch[row]) / measured[row] - 1
    before_sum[what] += error[row] < 0 ? -error[row] : error[row]
    after_sum[what] += after < 0 ? -after : after
    n[what]++
}
$1 ~ /^mle/ && $17 != "-" {
    k++
    is_dense = $9 == "bf16" && $8 !~ /A22B|A3B|Llama-4|Nemotron/
    group[k] = (is_dense ? "dense" : $8 ~ /gpt-oss/ ? "gpt-oss (nothing sorted)" : "experts and states") " " $6 ($12 > 64 ? " 256" : "")
    split_of[k] = $2
    batch[k] = $12
    measured[k] = $15
    predicted[k] = $16
    error[k] = $17
    if (group[k] == "dense h100-sxm" && $2 == "fit") {
        x = $12
        y = $15 - $16
        points++
        sx += x
        sy += y
        sxx += x * x
        sxy += x * y
    }
}
END {
    b = (points * sxy - sx * sy) / (points * sxx - sx * sx)
    a = (sy - b * sx) / points
    printf "step_ms,seq_us,points\n%.2f,%.1f,%d\n\n", a, 1000 * b, points
    print "group,split,points,magnitude,with_it"
    fflush()
    for (i = 1; i <= k; i++) judge(group[i] "," split_of[i], i)
    for (w in n) printf "%s,%d,%.3f,%.3f\n", w, n[w], before_sum[w] / n[w], after_sum[w] / n[w] | "sort"
    close("sort")
}
