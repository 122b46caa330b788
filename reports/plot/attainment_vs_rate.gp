# Share of requests that meet every SLO against the arrival rate, bands where replications give an
# interval; the line across is 90%, where DistServe (Zhong et al., OSDI 2024) reads a system's goodput.
call ARG1.'/style.gp' ARG2 ARG3 ARG4 ARG5
eval read_series
eval read_rates
eval key_interval
k = add_key(goal_line, '90% of requests')
set_page = page(1, 1, 5.2, n_keys, longest)

do for [format in formats] {
    eval open_page(format)
    eval panel(0)
    set xlabel label(x_label) offset 0,0.4
    set ylabel label('SLO attainment (share of requests)')
    eval read_span(value_in(5).interval_in(5, 6))
    eval x_axis
    if (y_scale eq '' && !has_y_range) { set yrange [0:1.03] } else { eval y_axis('linear', 0, 1.03) }
    eval 'plot 0.9 '.goal_line.', '.bands_of(3, 5, 6).lines_of(3, 5).', '.points_of(3, 5)
    eval legend(line_keys)
    eval close_page
}
