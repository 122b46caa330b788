# Cost at capacity against P90 of TTFT and against P99 of the time between tokens: a point a deployment, and the
# front, where nothing is as good in both and better in one.
hollow_text = 'hollow: serves more'
call ARG1.'/style.gp' ARG2 ARG3 ARG4 ARG5
eval read_series
eval read_hollow
ring = "with points pointtype 6 pointsize 1.9 * mark linewidth ring_width linecolor rgb '#404040'"
front = "with lines linecolor rgb '#404040' dashtype 2 linewidth 1"
k = add_key(ring, 'on the front')
# Six markers: of more deployments each has its number, too.
if (n > 6) { do for [k = 1:n_keys] { if (key_series[k] > 0) { key_text[k] = sprintf('%d  %s', key_series[k], key_text[k]) } }; longest = longest + 4 }
number(dummy) = n > 6 ? sprintf('%d', $1) : ''
set_page = page(wide ? 2 : 1, wide ? 1 : 2, wide ? 5.2 : 4.6, n_keys, longest)
priced = ''
stats data using (priced = columnheader(5), 1) nooutput
cost_label = priced eq 'usd_per_million_output_tokens' ? 'USD per million output tokens' : 'GPU s per million output tokens'
array latency[2] = ['TTFT p90 (s)', 'TBT p99 (s)']
on_front(i) = strcol(7 + i) eq 'true' ? column(5 + i) : NaN

do for [format in formats] {
    eval open_page(format)
    # A line goes on over points that are not on the front.
    set datafile missing NaN
    do for [i = 1:2] {
        eval panel(i - 1)
        set xlabel label(latency[i]) offset 0,0.4
        set ylabel label(cost_label)
        eval read_span(value_in(5 + i))
        eval log_axis('x')
        eval read_span(value_in(5))
        eval linear_axis('y', 0, span_high * 1.06)
        eval 'plot data using (on_front(i)):5 smooth unique '.front.', data using (on_front(i)):5 '.ring.', '.points_where(5 + i, 'column(5)', '', 1).', data using '.(5 + i).":5:(number(0)) with labels left offset 0.7,0.35 textcolor rgb '#202020'"
    }
    eval legend(dot_keys)
    eval close_page
}
