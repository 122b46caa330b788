# Each row's measured and simulated speed-up. t_base_s: the simulated step without guesses.
function model_of(target) { return target ~ /70B/ ? "70b" : target ~ /8B-/ ? "8b" : "30b" }
BEGIN {
    while ((getline line < summary) > 0) {
        n = split(line, of, ",")
        if (!column) { for (i = 1; i <= n; i++) if (of[i] == "output_throughput_tok_per_s") column = i }
        else rate[of[1]] = of[column]
    }
    print "model,target,benchmark,batch,steps,branches,draft_tokens,length,measured,simulated,error,t_base_s"
}
NR > 1 && $7 ~ /^Wih/ { base[$1 $2 $3] = $8; next }
NR > 1 {
    model = model_of($1)
    simulated_base = rate["base-" model "-" $3]
    simulated = rate["row-" NR] / simulated_base
    measured = $8 / base[$1 $2 $3]
    printf "%s,%s,%s,%d,%d,%d,%d,%.4f,%.4f,%.4f,%.4f,%.9f\n", model, $1, $2, $3, $4, $5, $6, $9, measured, simulated,
        simulated / measured - 1, $3 / simulated_base
}
