# Speed-ups over no guesses, a row for each batch and rate.
NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
{
    batch = $at["workload.arrivals.concurrency"]; rate = $at["serving.speculation.acceptance"]
    if (!((batch, rate) in seen)) { seen[batch, rate] = 1; order[++n] = batch "," rate }
    of[batch "," rate, $at["variant"]] = $at["output_throughput_tok_per_s"]
}
END {
    print "batch,rate,three,seven,adaptive,goodput"
    for (i = 1; i <= n; i++) {
        row = order[i]; base = of[row, "none"]
        printf "%s,%.3f,%.3f,%.3f,%.3f\n", row, of[row, "three"] / base, of[row, "seven"] / base, of[row, "adaptive"] / base, of[row, "goodput"] / base
    }
}
