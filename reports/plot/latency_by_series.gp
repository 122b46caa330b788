# Normalized latency of each series where no rate was swept: mean, and a line up to p99.
call ARG1.'/style.gp' ARG2 ARG3 ARG4
eval read_series
stats data using (strcol(4) eq 'true') name 'saturated' nooutput
eval read_span(value_in(5).value_in(7))
left_cm = larger(1.35, 0.4 + 0.14 * longest)
bottom_cm = 1.4
set_page = page(1, 1, bottom_cm + top_cm + 0.6 * (n + 0.2), 0, 0)

do for [format in formats] {
    eval open_page(format)
    eval panel(0)
    set xlabel "normalized latency (s/token)\nmean, line to p99".(saturated_max > 0 ? '; hollow: saturated' : '')
    eval log_axis('x')
    set ytics () noenhanced
    do for [i = 1:n] { set ytics add (tic_label(name[i]) i) }
    set yrange [n + 0.6:0.4]
    set grid noytics
    plot data using 5:1:5:7 with xerrorbars pointtype 7 pointsize 0 linewidth 1.2 linecolor rgb '#909090', \
         data using 5:(strcol(4) ne 'true' ? $1 : NaN) with points pointtype 7 pointsize 1.2 * mark linecolor rgb colour_of(1), \
         data using 5:(strcol(4) eq 'true' ? $1 : NaN) with points pointtype 7 pointsize 1.2 * mark linecolor rgb '#ffffff', \
         data using 5:(strcol(4) eq 'true' ? $1 : NaN) with points pointtype 6 pointsize 1.2 * mark linecolor rgb colour_of(1)
    eval close_page
}
