# Each request of a validation, simulated against measured.
call ARG1.'/style.gp' ARG2 ARG3 ARG4 ARG5
data = out_dir.'/validation_requests.csv'
dot = "with points pointtype 7 pointsize 0.35 * mark linecolor rgb colour_of(1)"
k = add_key(dot, 'a request')
k = add_identity_keys(0)
set_page = page(wide ? 3 : 1, wide ? 1 : 3, wide ? 5.8 : 7.4, 0, 0)

# Columns of simulated and measured ttft, tpot and e2e. Only what is above 0 on both sides has a place
# on a logarithm; a panel without any keeps its axes.
array first[3] = [6, 8, 10]
array scale[3] = [1, 1000, 1]
array label[3] = ['TTFT (s)', 'TPOT (ms)', 'end to end (s)']
shown(c) = valid(c) && valid(c + 1) && column(c) > 0 && column(c + 1) > 0
seen(c, of) = shown(c) ? column(of) : NaN

do for [format in formats] {
    eval open_page(format)
    do for [p = 1:3] {
        eval panel(p - 1)
        c = first[p]
        eval read_span('(shown(c) ? ('.value_in(c).value_in(c + 1).'1) : 1), ')
        span_low = scale[p] * span_low
        span_high = scale[p] * span_high
        eval log_axis('x')
        eval log_axis('y')
        set xlabel 'measured '.label[p] offset 0,0.4
        if (p == 1 || !wide) { set ylabel 'simulated'.(wide ? '' : ' '.label[p]) }
        eval "plot data using (scale[p] * seen(first[p], first[p] + 1)):(scale[p] * column(first[p])) ".dot.", ".identity_lines
    }
    eval legend('')
    eval close_page
}
