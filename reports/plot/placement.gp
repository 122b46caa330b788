# What placements carry against what they cost: the front as steps, the algorithm's placement and the chosen one.
# Columns: number, series, bill, rps, front, algorithm, chosen, meets, unit, target.
call ARG1.'/style.gp' ARG2 ARG3 ARG4 ARG5
eval read_series
unit = ''
target = 0.0
any_algorithm = 0
any_chosen = 0
stats data using (unit = strcol(9), target = $10, any_algorithm = any_algorithm || strcol(6) eq 'true', any_chosen = any_chosen || strcol(7) eq 'true', $1) name 'rows' nooutput
eval read_span(value_in(3))
bill_high = span_high
eval read_span(value_in(4))
rps_high = larger(span_high, target)
step = "with steps linewidth 1.4 linecolor rgb '#404040'"
dot = "with points pointtype 7 pointsize mark linecolor rgb '#404040'"
ring = "with points pointtype 6 pointsize 2 * mark linewidth ring_width linecolor rgb colour_of(2)"
star = "with points pointtype 13 pointsize 1.6 * mark linecolor rgb colour_of(1)"
line = "with lines linewidth 1.2 dashtype 2 linecolor rgb '#909090'"
k = add_key(dot, 'on the front')
if (any_algorithm) { k = add_key(ring, 'of the algorithm') }
if (any_chosen) { k = add_key(star, 'chosen') }
if (target > 0) { k = add_key(line, 'target') }
set_page = page(1, 1, 5.2, 0, 0)
if_true(i, y) = strcol(i) eq 'true' ? column(y) : NaN

do for [format in formats] {
    eval open_page(format)
    eval panel(0)
    set datafile missing NaN
    set xlabel unit offset 0,0.4
    set ylabel 'requests/s carried'
    eval linear_axis('x', 0, bill_high * 1.06)
    eval linear_axis('y', 0, rps_high * 1.08)
    eval 'plot (target > 0 ? target : NaN) '.line.', data using 3:(if_true(5, 4)) smooth unique '.step.', data using 3:(if_true(5, 4)) '.dot.', data using 3:(if_true(6, 4)) '.ring.', data using 3:(if_true(7, 4)) '.star
    eval legend('')
    eval close_page
}
