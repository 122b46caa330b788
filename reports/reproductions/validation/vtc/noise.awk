# The standard error of the measured contrast (second over first) of two recorded runs of one machine, from their
# validation_requests.csv in this order, as rows machine,first,second,quantity,standard error.
#
# A delete-one jackknife (Efron and Stein, 1981) over twentieths of the arrivals, which both runs share: each is left
# out of both once. Of tokens a second it leaves out what was served meanwhile, of end-to-end times the requests
# that arrived then.
BEGIN { FS = "," }
FNR == 1 { run++; for (i = 1; i <= NF; i++) at[$i] = i; next }
{
    i = ++n[run]
    arrival[run, i] = $at["arrival_s"]
    e2e[run, i] = $at["measured_e2e_s"]
    start[run, i] = $at["arrival_s"] + $at["measured_ttft_s"]
    finish[run, i] = $at["arrival_s"] + $at["measured_e2e_s"]
    n_tokens[run, i] = $at["prompt_tokens"] + $at["output_tokens"]
    if (arrival[run, i] > last) last = arrival[run, i]
}
# Tokens of request i that were served by t, as service.awk spreads them.
function served(r, i, t) {
    if (t <= start[r, i]) return 0
    return t >= finish[r, i] ? n_tokens[r, i] : n_tokens[r, i] * (t - start[r, i]) / (finish[r, i] - start[r, i])
}
function put(quantity, variance) {
    printf "%s,%s,%s,%s,%.4f\n", machine, first, second, quantity, sqrt(variance * 19 / 20)
}
END {
    for (r = 1; r <= 2; r++)
        for (i = 1; i <= n[r]; i++) {
            for (k = 0; k < 20; k++) {
                share = served(r, i, last * (k + 1) / 20) - served(r, i, last * k / 20)
                tokens[r, k] += share
                all_tokens[r] += share
            }
            k = arrival[r, i] < last ? int(20 * arrival[r, i] / last) : 19
            n_of[r, k]++
            waited[r, k] += e2e[r, i]
            all_waited[r] += e2e[r, i]
        }
    for (k = 0; k < 20; k++) {
        without = (all_tokens[2] - tokens[2, k]) / (all_tokens[1] - tokens[1, k])
        tokens_variance += (without - all_tokens[2] / all_tokens[1]) ^ 2
        without = (all_waited[2] - waited[2, k]) / (n[2] - n_of[2, k]) / (all_waited[1] - waited[1, k]) * (n[1] - n_of[1, k])
        e2e_variance += (without - all_waited[2] / n[2] / all_waited[1] * n[1]) ^ 2
    }
    put("tokens_per_s", tokens_variance)
    put("e2e_s", e2e_variance)
}
