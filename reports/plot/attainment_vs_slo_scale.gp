# Share of requests that would meet every SLO if all of them were so many times as long, at one rate; bands
# where replications give an interval.
call ARG1.'/style.gp' ARG2 ARG3 ARG4 ARG5
eval read_series
eval read_at_rate
eval read_hollow
stats data using (valid(7)) name 'interval' nooutput
any_interval = interval_max > 0
eval key_interval
k = add_key(goal_line, '90% of requests')
set_page = page(1, 1, 5.2, n_keys, longest)
stats data using ($6 > 0.001 && $6 < 0.999 ? $5 : NaN) name 'scale' nooutput

do for [format in formats] {
    eval open_page(format)
    eval panel(0)
    set xlabel label('SLO scale'.at_rate) offset 0,0.4
    set ylabel label('SLO attainment (share of requests)')
    set logscale x 2
    set xrange [(exists('scale_min') && scale_records > 0 ? smaller(4, 2 ** floor(log(scale_min) / log(2))) : 0.125):8]
    set yrange [0:1.03]
    eval 'plot 0.9 '.goal_line.', '.bands_of(5, 6, 7).lines_of(5, 6).', '.marks_of(5, 6, 12)
    eval legend(line_keys)
    eval close_page
}
