# The attainment of a sweep over rates beside the measured one: the percentage of requests that met the objectives of
# both first token and gaps, scaled as the row says. Arguments: summary.csv, requests.csv, measured.csv.
BEGIN { FS = "," }
FNR == 1 { file++; split("", at); for (i = 1; i <= NF; i++) at[$i] = i; next }
file == 1 { rate[FNR - 2] = $at["workload.arrivals.rate_rps"] }
file == 2 {
    r = rate[$at["point"]] + 0
    # the smallest scale of the objectives, 0.25 s and 0.1 s, that the request meets
    scale = $at["ttft_s"] / 0.25
    if ($at["tpot_s"] / 0.1 > scale) scale = $at["tpot_s"] / 0.1
    of[r, ++n[r]] = scale
}
file == 3 {
    r = $at["per_gpu_rate_rps"] + 0
    met = 0
    for (i = 1; i <= n[r]; i++) met += of[r, i] <= $at["slo_scale"]
    simulated = 100 * met / n[r]
    printf "%s,%s,%s,%.1f,%s,%+.1f\n", costs, r, $at["slo_scale"], simulated, $at["attainment_pct"], simulated - $at["attainment_pct"]
}
