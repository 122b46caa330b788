# A recorded run with the part of each prompt that a cache held taken away, as far as another run of the same requests
# shows it: arguments validation_requests.csv of that one, then the recorded run. A first token that came in less than
# 0.8 of the simulated time leaves that share of the prompt to compute.
BEGIN { FS = OFS = "," }
FNR == 1 { split("", at); for (i = 1; i <= NF; i++) at[$i] = i }
NR == FNR {
    if (FNR > 1) {
        share = $at["measured_ttft_s"] / $at["simulated_ttft_s"]
        left[$at["request_id"]] = share < 0.8 ? share : 1
    }
    next
}
FNR > 1 { $at["prompt_tokens"] = int($at["prompt_tokens"] * left[$at["row"]]) }
{ print }
