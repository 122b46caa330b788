# The study of all rows: a point for each row with a draft model, and one for each baseline.
function model_of(target) { return target ~ /70B/ ? "70b" : target ~ /8B-/ ? "8b" : "30b" }
BEGIN {
    FS = ","
    while ((getline line < constants) > 0) {
        split(line, of, ",")
        step_s[of[1]] = of[2]; pass_s[of[1]] = of[3]; branch_s[of[1]] = of[4]
    }
    name["8b"] = "llama-3-8b"; name["70b"] = "llama-3-70b"; name["30b"] = "qwen3-30b-a3b"
    tensor["8b"] = 1; tensor["70b"] = 4; tensor["30b"] = 4
    print "model: llama-3-8b\nhardware: h200-sxm"
    print "workload: {trace: " trace ", format: inflight, arrivals: {process: closed, concurrency: 1}}"
    print "serving: {preset: sglang-eagle, speculation: {lm_head_frac: 0.25}}"
    print "output: {requests: false}\nsweep:\n  variants:"
}
# As many guesses as held on average, with the least variance: all but the last surely.
function acceptance(length_of, n, text) {
    for (n = length_of - 1; n >= 1; n--) text = text "1,"
    return text sprintf("%.6f,0", n)
}
NR > 1 {
    model = model_of($1)
    machine = sprintf("model: %s, parallel: {tensor: %d}, workload: {arrivals: {concurrency: %d}}", name[model], tensor[model], $3)
    if ($7 ~ /^Wih/) {
        if (!seen[model $3]++) printf "    base-%s-%d: {%s, serving: {draft: none}}\n", model, $3, machine
        next
    }
    printf "    row-%d: {%s, serving: {draft: {policy: fixed, tokens: %d}, speculation: {acceptance: \"%s\", passes: %d, width: %d, step_s: %.9f, pass_s: %.9f}}}\n",
        NR, machine, $6 - 1, acceptance($9), $4, $5, step_s[model], pass_s[model] + ($5 > 1 ? branch_s[model] : 0)
}
