# Balances of requests.csv and steps.csv, in whole nanoseconds: prints a line for each that does not hold.
# token_ns: from the end of a step until clients have its tokens. Arrivals and departures go to the file `events`, as point, time and +1 or -1.
#
#     awk -F, -v events=FILE [-v token_ns=NUMBER] -f accounting.awk requests.csv steps.csv summary.csv

function ns(text, parts) {
    split(text, parts, ".")
    return parts[1] * 1000000000 + parts[2]
}

# When the step ended that gave the token, as a subscript: awk may round a number that it turns into text.
function given(at_ns) {
    return sprintf("%.0f", at_ns - token_ns)
}

function wrong(what) {
    print FILENAME ":" FNR ": " what
}

function holds(condition, what) {
    if (!condition)
        wrong(what)
}

function near(a, b, tolerance_frac) {
    return (a - b) ^ 2 <= (tolerance_frac * b) ^ 2
}

FNR == 1 {
    n_files++
    delete at
    for (i = 1; i <= NF; i++)
        at[$i] = i
    next
}

# ---- requests.csv ----

n_files == 1 && $at["status"] == "finished" {
    point = $1
    arrival = ns($at["arrival_s"])
    first = ns($at["first_token_s"])
    finish = ns($at["finish_s"])
    queue = ns($at["queue_s"])
    prefill = ns($at["prefill_s"])
    decode = ns($at["decode_s"])
    stalled = ns($at["stalled_s"])
    ttft = ns($at["ttft_s"])
    e2e = ns($at["e2e_s"])
    n_gaps = $at["output_tokens"] - 1

    holds(ttft == first - arrival, "ttft is not first token - arrival")
    holds(e2e == finish - arrival, "e2e is not finish - arrival")
    holds(queue == ns($at["first_scheduled_s"]) - arrival, "queue is not first scheduled - arrival")
    holds(queue + prefill + decode + stalled == e2e, "the parts do not make e2e")
    before = ttft - queue - prefill # the stall before the first token
    holds(before >= 0 && before <= stalled, "ttft is not queue + prefill + some of the stall")
    holds($at["preemptions"] > 0 || stalled == 0, "stalled, and never preempted")
    if (n_gaps > 0) {
        tpot = ns($at["tpot_s"])
        error = tpot * n_gaps - (finish - first)
        holds(error <= n_gaps && -error <= n_gaps, "tpot is not the mean gap")
        holds(ns($at["max_itl_s"]) >= tpot - 1, "the longest gap is below the mean gap")
    } else {
        holds($at["tpot_s"] == "" && $at["max_itl_s"] == "", "a gap of a single token")
    }
    holds(arrival >= last_arrival[point], "not sorted by arrival")

    last_arrival[point] = arrival
    if (!(point in begin))
        begin[point] = arrival
    starts[point] = starts[point] " " $at["first_scheduled_s"]
    tokens[point, given(first)] = tokens[point, given(finish)] = 1
    n[point]++
    sum_e2e[point] += e2e
    prompt[point] += $at["prompt_tokens"]
    output[point] += $at["output_tokens"]
    preempted[point] += $at["preemptions"]
    printf "%d %.0f 1\n%d %.0f -1\n", point, arrival, point, finish > events
}

# ---- steps.csv ----

n_files == 2 {
    point = $1
    start = ns($at["start_s"])
    holds(start >= free_at[point], "starts before the last step has ended")
    free_at[point] = start + ns($at["duration_s"])
    holds($at["kv_used_blocks"] <= $at["kv_total_blocks"], "more blocks than there are")
    holds($at["decode_tokens"] == $at["decode_seqs"], "a decode is not one token")
    prefilled[point] += $at["prefill_tokens"]
    decoded[point] += $at["decode_tokens"]
    stops[point] += $at["preempted"]
    began[point, $at["start_s"]] = 1
    ended[point, sprintf("%.0f", free_at[point])] = 1
    n_steps[point]++
}

# ---- summary.csv, a row a point ----

n_files == 3 {
    point = FNR - 2
    mean_e2e = sum_e2e[point] / n[point] / 1e9
    duration = (free_at[point] + token_ns - begin[point]) / 1e9
    holds($at["requests"] == n[point], "not all requests are finished")
    holds($at["steps"] == n_steps[point], "not as many steps as in steps.csv")
    holds($at["preemptions"] == preempted[point], "not as many preemptions as in requests.csv")
    holds($at["preemptions"] == stops[point], "not as many preemptions as in steps.csv")
    holds(near($at["duration_s"], duration, 1e-8), "the duration is not first arrival to last token")
    holds(near($at["mean_e2e_s"], mean_e2e, 1e-8), "mean_e2e_s is another")
    holds(near($at["request_throughput_rps"], n[point] / duration, 1e-8), "the throughput is another")
    holds(near($at["output_throughput_tok_per_s"], output[point] / duration, 1e-8),
          "the output throughput is another")
    if (preempted[point] == 0) {
        n_calm++
        holds(prefilled[point] == prompt[point], "prefill tokens are not the prompts")
        holds(decoded[point] + n[point] == output[point],
              "a first token each and the decodes are not the output")
    } else {
        n_tight++
        holds(prefilled[point] >= prompt[point], "less prefilled than prompts")
    }
    split(starts[point], start_s, " ")
    for (i in start_s)
        holds((point, start_s[i]) in began, "first scheduled at " start_s[i] ", in no step")
    # Little's law, the part that the integral must give
    printf "%d %.0f %.9g\n", point, sum_e2e[point],
           $at["request_throughput_rps"] * $at["mean_e2e_s"] * duration * 1e9 > predictions
}

END {
    for (token in tokens)
        holds(token in ended, "a first or last token at the end of no step")
    holds(n_calm > 0, "every point preempts")
    holds(n_tight > 0, "no point preempts")
}
