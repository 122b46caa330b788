# Mean errors over the pairs of a validation_requests.csv from request FROM to before request TO, as a row:
# run, tuned or judged, pairs, relative errors of mean TTFT, TPOT, E2E, and the median of |E2E error| a request.
BEGIN { FS = "," }
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
}
END {
    for (i = 2; i <= n; i++) { # insertion sort: a few hundred
        x = of[i]
        for (j = i - 1; j > 0 && of[j] > x; j--) of[j + 1] = of[j]
        of[j + 1] = x
    }
    median = n % 2 ? of[(n + 1) / 2] : (of[n / 2] + of[n / 2 + 1]) / 2
    printf "%s,%s,%d,%.4f,%.4f,%.4f,%.4f\n", run, part, n, ttft[0] / ttft[1] - 1,
        tpot[0] / tpot[1] - 1, e2e[0] / e2e[1] - 1, median
}
