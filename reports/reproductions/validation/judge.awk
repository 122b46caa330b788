# Mean errors over the pairs of a validation_requests.csv from request FROM to before request TO, as a row:
# run, tuned or judged, pairs, relative errors of mean TTFT, TPOT, E2E, and |E2E error| of a request: median, mean, p90.
BEGIN { FS = "," }
function quantile(q, at, below) { # of the sorted `of`, linear in between
    at = 1 + q * (n - 1)
    below = int(at)
    return of[below] + (at - below) * (of[below < n ? below + 1 : n] - of[below])
}
NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
$1 + 0 >= from && (to == "" || $1 + 0 < to) {
    n++
    for (side = 0; side < 2; side++) {
        name = side ? "measured" : "simulated"
        ttft[side] += $at[name "_ttft_s"]
        e2e[side] += $at[name "_e2e_s"]
    }
    if ($at["simulated_tpot_s"] != "" && $at["measured_tpot_s"] != "") {
        tpot[0] += $at["simulated_tpot_s"]
        tpot[1] += $at["measured_tpot_s"]
    }
    error = $at["e2e_relative_error"]
    of[n] = error < 0 ? -error : error
    sum += of[n]
}
END {
    for (i = 2; i <= n; i++) { # insertion sort: a few hundred
        x = of[i]
        for (j = i - 1; j > 0 && of[j] > x; j--) of[j + 1] = of[j]
        of[j + 1] = x
    }
    printf "%s,%s,%d,%.4f,%.4f,%.4f,%.4f,%.4f,%.4f\n", run, part, n, ttft[0] / ttft[1] - 1,
        tpot[0] / tpot[1] - 1, e2e[0] / e2e[1] - 1, quantile(0.5), sum / n, quantile(0.9)
}
