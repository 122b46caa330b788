# The keys of capacity.placement.given for one model, from given/constants.csv, as a list in YAML's flow style.
# -v model=opt-13b -v square_per_token=X (sum of squared prompt lengths / sum of lengths) -v decode_limit=0 (tokens of
# a batch of decodes in place of the K/V pool, as so many sequences of 850 tokens; 0: the pool)
#
# simdistserve/estimators/time_estimator.py, in milliseconds a stage: prompts (a + b sum(n) + c sum(n^2)) / pp + pp, decodes
# (a + b sum(context) + c seqs) / pp; on the first stage 2 + 1e-4 tokens more (base/worker.py, add_ray_overhead). Here all stages
# take the same part of the sum.
BEGIN { FS = ","; ray_ms = 2; ray_token_ms = 1e-4; mean_context = 850 }
$1 != model { next }
$4 == "prefill" { pa[$2] = $5; pb[$2] = $6 + $7 * square_per_token }
$4 ~ /^decoding/ { da[$2, $4] = $5; db[$2, $4] = $6; dc[$2, $4] = $7 }
$4 == "kv_tokens" { kv[$2, $3] = $5 }
END {
    printf "["
    for (tp = 1; tp <= 8; tp++) {
        if (!(tp in pa))
            continue
        for (pp = 1; pp <= 8; pp *= 2) {
            if (!((tp, pp) in kv))
                continue
            # the fit of the batch that fills the pool: fewer than 95 sequences a sub-queue, or more
            fit = kv[tp, pp] / pp / mean_context < 95 ? "decoding_smallbs" : "decoding_largebs"
            tokens = decode_limit ? 1e7 : kv[tp, pp]
            seqs = decode_limit ? int(decode_limit / mean_context) : 1024
            printf "%s{pool: prefill, tensor: %d, pipeline: %d, serving: {kv: {num_blocks: %d}}, cost: {step_s: %.7f, prefill_token_s: %.10f}}, ", \
                first++ ? ", " : "", tp, pp, kv[tp, pp] / 16, (pa[tp] + pp * pp + ray_ms) / 1e3, (pb[tp] + ray_token_ms) / 1e3
            printf "{pool: decode, tensor: %d, pipeline: %d, serving: {kv: {num_blocks: %d}, batching: {max_seqs: %d}}, cost: {step_s: %.7f, prefill_token_s: 0, decode_seq_s: %.10f, context_token_s: %.13f}}", \
                tp, pp, tokens / 16, seqs, (da[tp, fit] + ray_ms) / 1e3, dc[tp, fit] / 1e3, (db[tp, fit] + ray_token_ms) / 1e3
        }
    }
    print "]"
}
