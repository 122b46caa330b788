# Normalized latency of each series where no rate was swept: mean, and a line up to p99.
call ARG1.'/style.gp' ARG2 ARG3 ARG4 ARG5
eval read_series
eval read_span(value_in(5).value_in(7))
p99_line = "with lines linewidth 1.2 linecolor rgb '#909090'"
k = add_key("with points pointtype 7 pointsize mark linecolor rgb colour_of(1)", 'mean')
k = add_key(p99_line, 'up to p99')
eval read_hollow
# A name takes at most half the page, and as many lines as that needs.
most_letters = int((0.5 * page_cm - 0.4) / letter_cm)
lines = 1
do for [i = 1:n] { lines = larger(lines, lines_in(wrapped(name[i], most_letters))) }
left_cm = larger(1.35, 0.4 + letter_cm * smaller(longest, most_letters))
row_cm = larger(0.6, line_cm * lines + 0.15)
set_page = page(1, 1, bottom_cm + top_cm + row_cm * (n + 0.2), 0, 0)

do for [format in formats] {
    eval open_page(format)
    eval panel(0)
    set xlabel label('normalized latency (s/token)') offset 0,0.4
    eval log_axis('x')
    set ytics () noenhanced
    do for [i = 1:n] { set ytics add (tic_label(wrapped(name[i], most_letters)) i) }
    set yrange [n + 0.6:0.4]
    set grid noytics
    plot data using 5:1:5:7 with xerrorbars pointtype 7 pointsize 0 linewidth 1.2 linecolor rgb '#909090', \
         data using 5:(strcol(4) ne 'true' ? $1 : NaN) with points pointtype 7 pointsize 1.2 * mark linecolor rgb colour_of(1), \
         data using 5:(strcol(4) eq 'true' ? $1 : NaN) with points pointtype 7 pointsize 1.2 * mark linecolor rgb '#ffffff', \
         data using 5:(strcol(4) eq 'true' ? $1 : NaN) with points pointtype 6 pointsize 1.2 * mark linewidth ring_width linecolor rgb colour_of(1)
    eval legend('')
    eval close_page
}
