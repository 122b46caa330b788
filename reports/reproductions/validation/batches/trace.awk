# The batches of one deployment of a measured table as a trace: a batch every 1,000 seconds, all of it at once.
BEGIN { FS = ","; print "arrival_s,prompt_tokens,output_tokens" }
NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
$1 == deployment {
    for (i = 0; i < $at["batch_size"]; i++)
        printf "%d,%d,%d\n", 1000 * n, $at["prompt_tokens"], $at["output_tokens"]
    n++
}
