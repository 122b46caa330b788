# The capacity of each deployment, a row each: a point, and a bar from one end of the 95% interval to the other.
hollow_text = 'hollow: at least'
call ARG1.'/style.gp' ARG2 ARG3 ARG4 ARG5
eval read_series
eval read_span(value_in(5).value_in(6).value_in(7))
bar = "with lines linewidth 1.2 linecolor rgb '#909090'"
stats data using (valid(6)) name 'interval' nooutput
k = add_key("with points pointtype 7 pointsize mark linecolor rgb colour_of(1)", 'capacity')
if (interval_max > 0) { k = add_key(bar, '95% interval') }
eval read_hollow
# Deployments without a capacity have no row.
rows = 0
array row_of[larger(n, 1)]
do for [i = 1:n] { rows = rows + (strlen(name[i]) > 0); row_of[i] = rows }
# A name takes at most half the page, and as many lines as that needs.
most_letters = int((0.5 * page_cm - 0.4) / letter_cm)
lines = 1
do for [i = 1:n] { lines = larger(lines, lines_in(wrapped(name[i], most_letters))) }
left_cm = larger(1.35, 0.4 + letter_cm * smaller(longest, most_letters))
row_cm = larger(0.6, line_cm * lines + 0.15)
set_page = page(1, 1, bottom_cm + top_cm + row_cm * (rows + 0.2), 0, 0)

do for [format in formats] {
    eval open_page(format)
    eval panel(0)
    set xlabel label('capacity (requests/s)') offset 0,0.4
    eval linear_axis('x', 0, span_high * 1.04)
    set ytics () noenhanced
    do for [i = 1:n] { if (strlen(name[i])) { set ytics add (tic_label(wrapped(name[i], most_letters)) row_of[i]) } }
    set yrange [rows + 0.6:0.4]
    set grid noytics
    plot data using 5:(row_of[int($1)]):6:7 with xerrorbars pointtype 7 pointsize 0 linewidth 1.2 linecolor rgb '#909090', \
         data using 5:(strcol(4) ne 'true' ? row_of[int($1)] : NaN) with points pointtype 7 pointsize 1.2 * mark linecolor rgb colour_of(1), \
         data using 5:(strcol(4) eq 'true' ? row_of[int($1)] : NaN) with points pointtype 7 pointsize 1.2 * mark linecolor rgb '#ffffff', \
         data using 5:(strcol(4) eq 'true' ? row_of[int($1)] : NaN) with points pointtype 6 pointsize 1.2 * mark linewidth ring_width linecolor rgb colour_of(1)
    eval legend('')
    eval close_page
}
