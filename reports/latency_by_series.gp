# Normalized latency of each series where no rate was swept: mean, and a whisker up to p99.
out_dir = ARG2
load ARG1.'/style.gp'
data = out_dir.'/latency_by_series.csv'
figure = out_dir.'/latency_by_series.'

stats data using 1 name 'series' nooutput
n = int(series_max)
array name[n]
stats data using (name[int($1)] = strcol(2), $4) name 'latency' nooutput
stats data using (strcol(6) eq 'true') name 'saturated' nooutput

set xlabel "normalized latency (s/token)\nmean, line to p99".(saturated_max > 0 ? '; hollow: saturated' : '')
set logscale x
set ytics () noenhanced
do for [i = 1:n] { set ytics add (name[i] i) }
set yrange [n + 0.6:0.4]
set grid noytics
unset key

do for [format in formats] {
    eval terminal_of(format, 8.8, 2.1 + 0.55 * n)
    set output figure.format
    plot data using 4:1:4:5 with xerrorbars pointtype 7 pointsize 0 linewidth 1.2 linecolor rgb '#909090', \
         for [i = 1:n] data using 4:(column(1) == i && strcol(6) eq 'false' ? $1 : NaN) with points pointtype 7 pointsize 1.2 * mark linecolor rgb colour_of(1), \
         for [i = 1:n] data using 4:(column(1) == i && strcol(6) eq 'true' ? $1 : NaN) with points pointtype 6 pointsize 1.2 * mark linecolor rgb colour_of(1)
    unset output
}
