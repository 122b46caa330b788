#!/bin/sh
# Theorem 4.4 of Sheng et al. (Fairness in Serving Large Language Models, OSDI 2024): under virtual token counters
# the service of two clients that both have requests waiting differs by at most 2 max(w_p L_input, w_q M) over any
# interval; w_p = 1 and w_q = 2 are what tokens read and written cost, L_input is the longest prompt and M the
# tokens of the largest batch.
. "$(dirname "$0")/expect.sh"

cat >config.yaml <<'E1'
workload: {trace: clients.csv}
serving:
  preset: vtc
  max_model_len: 2048
  batching: {decodes_between: 1}
cost: {model: linear, step_s: 0.02, prefill_token_s: 0.0001}
output: {dir: out, steps: true, work: true}
E1

# SEED: 400 requests of three clients, all present from the start; one client has more and longer answers
clients() {
    "$inflight" trace generate -n 400 --seed "$1" --prompt lognormal:120,1,4,900 \
        --output-tokens lognormal:90,1,2,700 -o lengths.csv >generated
    awk -F, -v OFS=, -v seed="$1" '
        BEGIN { srand(seed) }
        NR == 1 { print "arrival_s", $0, "client"; next }
        {
            client = int(4 * rand())
            print 0, $1, client == 3 ? 2 * $2 : $2, client == 3 ? 2 : client
        }' lengths.csv >clients.csv
}

# M: how far the service of two clients moved apart at most, while all three waited, as a share of the bound
share_of_bound() {
    awk -F, -v m="$1" '
        FNR == 1 { file++; for (i = 1; i <= NF; i++) at[$i] = i; next }
        file == 1 {
            client[FNR - 2] = $at["client"]
            longest = $at["prompt_tokens"] > longest ? $at["prompt_tokens"] : longest
            next
        }
        file == 2 {
            i = client[$at["request_id"]]
            last[i] = $at["first_scheduled_s"] > last[i] ? $at["first_scheduled_s"] : last[i]
            next
        }
        file == 3 { start_s[$at["step"]] = $at["start_s"]; next }
        start_s[$at["step"]] >= last[0] || start_s[$at["step"]] >= last[1] || start_s[$at["step"]] >= last[2] { exit }
        {
            served[client[$at["request_id"]]] += $at["prefill_tokens"] + 2
            for (i = 0; i < 3; i++) {
                gap = served[i] - served[(i + 1) % 3]
                least[i] = gap < least[i] ? gap : least[i]
                most[i] = gap > most[i] ? gap : most[i]
                n++
            }
        }
        END {
            for (i = 0; i < 3; i++)
                moved = most[i] - least[i] > moved ? most[i] - least[i] : moved
            bound = 2 * (longest > 2 * m ? longest : 2 * m)
            printf "%.3f\n", (n > 1000 ? moved / bound : 99)
        }' clients.csv out/requests.csv out/steps.csv out/work.csv
}

n_unfair=0
for seed in 1 2 3 4 5 6; do
    clients $seed
    for m in 2000 6000; do
        succeeds "$inflight" run config.yaml --quiet --set serving.kv.num_blocks=$m
        share=$(share_of_bound $m)
        [ "$(echo "$share" | cut -c1)" = 0 ] || complain "seed $seed, $m tokens: the bound is exceeded, $share of it"
    done
    # without counters it is not kept
    succeeds "$inflight" run config.yaml --quiet --set serving.preset=s-lora --set serving.kv.num_blocks=2000
    [ "$(share_of_bound 2000 | cut -c1)" = 0 ] || n_unfair=$((n_unfair + 1))
done
same "$n_unfair" 6 'workloads that first come, first served treats unfairly'
finish
