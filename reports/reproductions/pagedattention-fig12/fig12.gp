# Mean normalized latency against the arrival rate. Marks show where the other systems should cross 0.5 s a token: the
# rate at which vLLM does here, divided by the factors of section 6.2. The fifth argument is the model.
call ARG1.'/style.gp' ARG2 ARG3 ARG4
eval read_series
eval read_rates
eval read_span(value_in(5))
sustained = out_dir.'/sustained.csv'
array system[5] = ['orca-max', 'orca-pow2', 'orca-oracle', 'vllm-paper', 'faster-transformer-padded']
here(i) = strcol(1) eq ARG5 && strcol(2) eq system[i]
at_most(i) = here(i) ? $3 * $4 / column(5) : NaN
at_least(i) = here(i) ? $3 * $4 / column(6) : NaN
crossing = 'with lines linecolor rgb "#808080" dashtype 3 linewidth 0.8'
not_left = "with points pointtype 2 pointsize 1.4 * mark linewidth 2 linecolor rgb"
k = add_key(crossing, 'sustained: 0.5 s a token')
k = add_key("with lines linecolor rgb '#404040' linewidth 5", 'section 6.2: crosses it here')
k = add_key(not_left." '#404040'", 'section 6.2: not further left')
set_page = page(1, 1, 5.6, n_keys, longest)

do for [format in formats] {
    eval open_page(format)
    eval panel(0)
    set xlabel 'arrival rate (requests/s)' offset 0,0.4
    set ylabel 'mean normalized latency (s/token)'
    eval log_axis('y')
    eval linear_axis('x', 0, rate_max * 1.04)
    eval 'plot 0.5 '.crossing.', '. \
         'for [i = 1:3:2] sustained using (at_least(i)):(0.5):(at_most(i) - at_least(i)):(0) with vectors nohead linecolor rgb colour_of(i) linewidth 5, '. \
         'sustained using (at_least(5)):(0.5) '.not_left.' colour_of(5), '. \
         lines_of(3, 5).', '.points_of(3, 5)
    eval legend(line_keys)
    eval close_page
}
