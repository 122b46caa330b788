# Where prefill and decode lie under the roofline of the data sheet.
call ARG1.'/style.gp' ARG2 ARG3 ARG4
stats data using (strcol(1) eq 'roof' ? $3 : NaN) name 'x' nooutput
kind(name) = strcol(1) eq name ? $4 : NaN
set_page = page(1, 1, 5.8, 3, 18)
roof = "with lines linecolor rgb '#404040' linewidth 1.4"
decode = "with linespoints pointtype filled_of(1) pointsize mark linecolor rgb colour_of(1)"
prefill = "with points pointtype filled_of(2) pointsize 1.2 * mark linecolor rgb colour_of(2)"

do for [format in formats] {
    eval open_page(format)
    eval panel(0)
    set xlabel 'arithmetic intensity (FLOP/byte)' offset 0,0.4
    set ylabel 'TFLOP/s of one GPU'
    set logscale xy
    set xrange [x_min:x_max]
    eval "plot data using 3:(kind('roof')) ".roof.", data using 3:(kind('decode')) ".decode.", data using 3:(kind('prefill')) ".prefill
    eval legend("NaN ".roof." title 'data sheet', NaN ".decode." title 'decode, by batch', NaN ".prefill." title 'prefill'")
    eval close_page
}
