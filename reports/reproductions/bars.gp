# A paper's numbers beside simulated ones, two bars each: rows of number, name, paper, simulated. The fifth
# argument is the label of the values, the optional sixth that of the names.
call ARG1.'/style.gp' ARG2 ARG3 ARG4
eval read_series
set_page = page(1, 1, 4.7, 2, 12)
array side[2] = ['the paper', 'inflight']
array side_colour[2] = ['#BBBBBB', '#0072B2']
centre(i) = column(1) + (i - 1.5) * 0.38

do for [format in formats] {
    eval open_page(format)
    eval panel(0)
    set ylabel ARG5
    if (ARGC >= 6) { set xlabel ARG6 }
    set yrange [0:*]
    set offsets 0, 0, graph 0.08, 0
    set xrange [0.4:n + 0.6]
    set xtics () noenhanced
    do for [i = 1:n] { set xtics add (name[i] i) }
    set grid noxtics
    plot for [i = 1:2] data using (centre(i)):(column(2 + i)):(0.36) with boxes fillstyle solid 1 noborder fillcolor rgb side_colour[i], \
         for [i = 1:2] data using (centre(i)):(column(2 + i)):(strcol(2 + i)) with labels font ',6' offset 0,0.5
    eval legend("for [i = 1:2] NaN with boxes fillstyle solid 1 noborder fillcolor rgb side_colour[i] title side[i]")
    eval close_page
}
