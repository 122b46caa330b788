# Simulated times of trace.awk's batches beside the table: a row a batch and quantity, in ms. prompt: mean time to
# the first token; token: mean gap behind it; e2e: the whole batch. `tuned` holds "prompt/batch" of the batches with
# tokens that cost keys were tuned on.
BEGIN {
    FS = ","
    split("prompt token e2e", quantity, " ")
    split("ttft_s tpot_s e2e_s", column, " ")
}
FNR == 1 { file++; split("", at); for (i = 1; i <= NF; i++) at[$i] = i; next }
file == 1 {
    k = int($at["arrival_s"] / 1000)
    n[k]++
    for (q = 1; q <= 3; q++) sum[k, q] += $at[column[q]]
}
file == 2 && $1 == deployment {
    batch = $at["prompt_tokens"] "/" $at["batch_size"]
    for (q = 1; q <= 3; q++) {
        if (!((quantity[q] "_ms") in at) || $at[quantity[q] "_ms"] == "") continue
        simulated_ms = sum[row + 0, q] / n[row + 0] * 1000
        measured_ms = $at[quantity[q] "_ms"]
        part = quantity[q] == "token" && index(" " tuned " ", " " batch " ") ? "tuned" : "judged"
        printf "%s,%s,%d,%d,%d,%s,%.3f,%.3f,%.4f\n", deployment, part,
            $at["prompt_tokens"], $at["batch_size"], $at["output_tokens"], quantity[q], simulated_ms, measured_ms,
            simulated_ms / measured_ms - 1
    }
    row++
}
