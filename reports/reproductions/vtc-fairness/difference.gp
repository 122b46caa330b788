# Service of one client beyond that of another over time, and the bound.
call ARG1.'/style.gp' ARG2 ARG3 ARG4
array name[2] = ['FCFS', 'VTC']
array preset[2] = ['s-lora', 'vtc']
n = 2
set_page = page(1, 1, 5.2, 3, 12)
bound = 40000
bound_line = "with lines linecolor rgb '#808080' dashtype 2 linewidth 1"

do for [format in formats] {
    eval open_page(format)
    eval panel(0)
    set xlabel 'time (s)' offset 0,0.4
    set ylabel 'difference of service (1,000)'
    eval linear_axis('x', 0, 600)
    eval "plot for [i = 1:2] data using 2:(strcol(1) eq preset[i] ? $3 / 1000 : NaN) with linespoints pointtype filled_of(i) pointinterval 6 pointsize 0.8 * mark linecolor rgb colour_of(i) dashtype dash_of(i) linewidth 1.4, bound / 1000 ".bound_line.", -bound / 1000 ".bound_line
    eval legend("for [i = 1:2] NaN with linespoints pointtype filled_of(i) pointsize 0.8 * mark linecolor rgb colour_of(i) dashtype dash_of(i) linewidth 1.4 title name[i], NaN ".bound_line." title 'bound'")
    eval close_page
}
