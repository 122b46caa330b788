# One deployment of a table of measured batches as a requests.csv: trace.awk's requests with their batch's times.
BEGIN { FS = ","; OFS = ","; print "point,request_id,status,arrival_s,prompt_tokens,output_tokens,ttft_s,e2e_s,queue_s,preemptions" }
NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
$1 == deployment {
    prompt_s = "prompt_ms" in at ? $at["prompt_ms"] / 1000 : ""
    e2e_s = "e2e_ms" in at ? $at["e2e_ms"] / 1000 : prompt_s + ($at["output_tokens"] - 1) * $at["token_ms"] / 1000
    for (i = 0; i < $at["batch_size"]; i++)
        print 0, id++, "finished", 1000 * n, $at["prompt_tokens"], $at["output_tokens"], prompt_s, e2e_s, "", 0
    n++
}
