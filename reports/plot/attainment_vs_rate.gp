# Share of requests that meet every SLO against the arrival rate; the line across is 90%, where
# DistServe (Zhong et al., OSDI 2024) reads a system's goodput.
call ARG1.'/style.gp' ARG2 ARG3 ARG4
eval read_series
eval read_rates
set_page = page(1, 1, 5.2, n + any_hollow, larger(longest, hollow_letters))

do for [format in formats] {
    eval open_page(format)
    eval panel(0)
    set xlabel 'arrival rate (requests/s)' offset 0,0.4
    set ylabel 'SLO attainment (share of requests)'
    set xrange [0:rate_max * 1.04]
    set yrange [0:1.03]
    eval 'plot 0.9 with lines linecolor rgb "#808080" dashtype 3 linewidth 1, '.bands_of(3, 5, 6).lines_of(3, 5).', '.points_of(3, 5)
    eval legend(line_keys.hollow_key)
    eval close_page
}
