# The service of the clients of a validation_requests.csv on both sides, as a row: run, part, then
# - the mean over the run of the gap in accumulated service;
# - the mean and the largest difference in service of a minute;
# - throughput and mean end-to-end time;
# each simulated, measured and as relative error.
#
# Service is x + 2 y for x input and y output tokens, spread evenly from the first token to the last; it is sampled
# 19 times, every twentieth of the arrivals. The gap is the service of the most served client minus that of the least
# served one. The difference is the largest over clients of min(most served, asked for) - served, in the minute around
# each sample, so that a client without waiting requests does not count (Sheng et al., OSDI 2024, section 5.1).
BEGIN { FS = ","; split("simulated measured", side, " ") }
NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
{
    n++
    known[client[n] = $at["client"]]
    cost[n] = $at["prompt_tokens"] + 2 * $at["output_tokens"]
    n_tokens += $at["prompt_tokens"] + $at["output_tokens"]
    arrival[n] = $at["arrival_s"]
    if (arrival[n] > last_arrival) last_arrival = arrival[n]
    for (s = 1; s <= 2; s++) {
        e2e[s] += $at[side[s] "_e2e_s"]
        first[s, n] = arrival[n] + $at[side[s] "_ttft_s"]
        finish[s, n] = arrival[n] + $at[side[s] "_e2e_s"]
        if (finish[s, n] > end[s]) end[s] = finish[s, n]
    }
}
# The service that request i had received by t, out of its cost.
function got(s, i, t) {
    if (t <= first[s, i]) return 0
    return t >= finish[s, i] ? cost[i] : cost[i] * (t - first[s, i]) / (finish[s, i] - first[s, i])
}
function look(s, t,    i, c, most, least, most_now, d) {
    split("", served); split("", now); split("", asked)
    for (i = 1; i <= n; i++) {
        served[client[i]] += got(s, i, t)
        now[client[i]] += (got(s, i, t + 30) - got(s, i, t - 30)) / 60
        if (arrival[i] >= t - 30 && arrival[i] <= t + 30) asked[client[i]] += cost[i] / 60
    }
    most = most_now = 0; least = 1e30; worst = -1e30
    for (c in known) {
        if (served[c] > most) most = served[c]
        if (served[c] < least) least = served[c]
        if (now[c] > most_now) most_now = now[c]
    }
    for (c in known) {
        d = most_now < asked[c] ? most_now - now[c] : asked[c] - now[c]
        if (d > worst) worst = d
    }
    gap[s] += (most - least) / 19
    difference[s] += worst / 19
    if (worst > largest[s]) largest[s] = worst
}
function put(values) { printf ",%.6g,%.6g,%.4f", values[1], values[2], values[1] / values[2] - 1 }
END {
    for (k = 1; k < 20; k++)
        for (s = 1; s <= 2; s++) look(s, last_arrival * k / 20)
    for (s = 1; s <= 2; s++) { throughput[s] = n_tokens / end[s]; e2e[s] /= n }
    printf "%s,%s", run, part
    put(gap); put(difference); put(largest); put(throughput); put(e2e)
    print ""
}
