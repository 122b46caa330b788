# Where prefill and decode lie under the roofline of the data sheet.
out_dir = ARG2
load ARG1.'/style.gp'
data = out_dir.'/roofline.csv'
figure = out_dir.'/roofline.'

stats data using (strcol(1) eq 'roof' ? $3 : NaN) name 'x' nooutput
of(name) = strcol(1) eq name ? $4 : NaN

set xlabel 'arithmetic intensity (FLOP/byte)'
set ylabel 'TFLOP/s of one GPU'
set logscale xy
set xrange [x_min:x_max]
set key outside below center horizontal samplen 2.2 spacing 1.1 height 0.5 maxcols 3

do for [format in formats] {
    eval terminal_of(format, 8.8, 6.3)
    set output figure.format
    plot data using 3:(of('roof')) with lines linecolor rgb '#404040' linewidth 1.4 title 'data sheet', \
         data using 3:(of('decode')) with linespoints pointtype filled_of(1) pointsize mark linecolor rgb colour_of(1) title 'decode, by batch', \
         data using 3:(of('prefill')) with points pointtype filled_of(2) pointsize 1.2 * mark linecolor rgb colour_of(2) title 'prefill'
    unset output
}
