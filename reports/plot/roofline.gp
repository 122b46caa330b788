# Where prefill and decode lie under the roofline of the data sheet.
call ARG1.'/style.gp' ARG2 ARG3 ARG4 ARG5
kind(name) = strcol(1) eq name ? $4 : NaN
roof = "with lines linecolor rgb '#404040' linewidth 1.4"
decode = "with linespoints pointtype filled_of(1) pointsize mark linecolor rgb colour_of(1)"
prefill = "with points pointtype filled_of(2) pointsize 1.2 * mark linecolor rgb colour_of(2)"
k = add_key(roof, 'data sheet')
k = add_key(decode, 'decode, by batch')
k = add_key(prefill, 'prefill')
set_page = page(1, 1, 5.8, 0, 0)

do for [format in formats] {
    eval open_page(format)
    eval panel(0)
    set xlabel label('arithmetic intensity (FLOP/byte)') offset 0,0.4
    set ylabel label('TFLOP/s of one GPU')
    eval read_span(value_in(3))
    eval log_axis('x')
    eval read_span(value_in(4))
    eval log_axis('y')
    eval "plot data using 3:(kind('roof')) ".roof.", data using 3:(kind('decode')) ".decode.", data using 3:(kind('prefill')) ".prefill
    eval legend('')
    eval close_page
}
