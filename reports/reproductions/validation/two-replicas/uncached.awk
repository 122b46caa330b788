# A recorded run without the cached part of each prompt, as estimated from another run of the same requests. Arguments:
# validation_requests.csv of the other run, then the recorded run. If the first token took less than 0.8 of the
# simulated time, that ratio of the prompt is kept as computed.
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
