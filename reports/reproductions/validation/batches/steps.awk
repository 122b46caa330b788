# The steps of a run with the same contents as the rows of a table of measured steps, as join.awk's rows: prefill
# tokens, and decoding sequences in the column of the batch size.
BEGIN { FS = "," }
FNR == 1 { file++; split("", at); for (i = 1; i <= NF; i++) at[$i] = i; next }
file == 1 {
    held = $at["prefill_tokens"] "," $at["decode_seqs"]
    n[held]++
    sum_s[held] += $at["duration_s"]
}
file == 2 {
    held = $at["prefill_tokens"] "," $at["decode_seqs"]
    simulated_ms = sum_s[held] / n[held] * 1000
    printf "%s,judged,%s,,step,%.3f,%.3f,%.4f\n", $1, held, simulated_ms, $at["step_ms"], simulated_ms / $at["step_ms"] - 1
}
