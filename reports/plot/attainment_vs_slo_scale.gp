# Share of requests that would meet every SLO if all of them were so many times as long, at one rate.
call ARG1.'/style.gp' ARG2 ARG3 ARG4
eval read_series
eval read_at_rate
set_page = page(1, 1, 5.2, n, longest)
stats data using ($5 > 0.001 && $5 < 0.999 ? $4 : NaN) name 'scale' nooutput

do for [format in formats] {
    eval open_page(format)
    eval panel(0)
    set xlabel 'SLO scale'.at_rate offset 0,0.4
    set ylabel 'SLO attainment (share of requests)'
    set logscale x 2
    set xrange [(exists('scale_min') && scale_records > 0 ? 2 ** floor(log(scale_min) / log(2)) : 0.125):8]
    set yrange [0:1.03]
    eval 'plot 0.9 with lines linecolor rgb "#808080" dashtype 3 linewidth 1, '.lines_of(4, 5).', '.marks_of(4, 5, 12)
    eval legend(line_keys)
    eval close_page
}
