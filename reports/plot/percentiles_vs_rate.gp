# p50, p90 and p99 of the time to first token and of the time per output token against the arrival
# rate, a line a series, bands where replications give an interval.
call ARG1.'/style.gp' ARG2 ARG3 ARG4 ARG5
eval read_series
eval read_rates
eval key_interval
array metric[6] = ['TTFT p50 (s)', 'TTFT p90 (s)', 'TTFT p99 (s)', 'TPOT p50 (s)', 'TPOT p90 (s)', 'TPOT p99 (s)']
# Side by side on a wide page; one column stacks TTFT on the left and TPOT on the right.
place(i) = wide ? i - 1 : i < 4 ? 2 * (i - 1) : 2 * (i - 4) + 1
inner_bottom_cm = 0.5
set_page = page(wide ? 3 : 2, wide ? 2 : 3, wide ? 4.4 : 3.7, n_keys, longest)

do for [format in formats] {
    eval open_page(format)
    do for [i = 1:6] {
        eval panel(place(i))
        at_bottom = int(place(i) / page_columns) == page_rows - 1
        set ylabel label(metric[i])
        if (at_bottom) { set xlabel label(x_label) offset 0,0.4 }
        eval read_span(value_in(3 + 2 * i).interval_in(3 + 2 * i, 4 + 2 * i))
        eval x_axis
        eval y_axis('log', 0, span_high * 1.04)
        eval 'plot '.bands_of(3, 3 + 2 * i, 4 + 2 * i).lines_of(3, 3 + 2 * i).', '.points_of(3, 3 + 2 * i)
    }
    eval legend(line_keys)
    eval close_page
}
