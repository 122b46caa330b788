# The look of every figure: one column of a paper, colours of Okabe and Ito that colour-blind readers
# tell apart, and a point type a series, so that a grey print reads too.
#
# Every script is called with two arguments: the folder of the scripts, and out_dir, the folder of the
# data and the figures. A path must not begin with a character that means a pipe to gnuplot.
if (out_dir[1:1] ne '/') { out_dir = './'.out_dir }

array colour[8] = ['#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#56B4E9', '#000000', '#8A7A00']
array filled[8] = [7, 5, 9, 13, 11, 15, 7, 5]
array hollow[8] = [6, 4, 8, 12, 10, 14, 6, 4]
array dashes[3] = [1, 2, 4]
colour_of(i) = colour[(i - 1) % 8 + 1]
filled_of(i) = filled[(i - 1) % 8 + 1]
hollow_of(i) = hollow[(i - 1) % 8 + 1]
dash_of(i) = dashes[int((i - 1) / 8) % 3 + 1]

# In columns of equal width below the panels.
legend_rows(n, columns) = int((n + columns - 1) / columns)

# The same figure on three kinds of paper: width and height in centimetres. `mark` is the size of a
# point, which the svg terminal cannot scale by itself.
formats = 'pdf svg png'
pdf = "set terminal pdfcairo size %gcm,%gcm font 'Helvetica,8' fontscale 0.61 linewidth 0.9 pointscale 0.45; mark = 1"
svg = "set terminal svg size %g,%g font 'Helvetica,13' linewidth 1.4 background '#ffffff'; mark = 0.6"
png = "set terminal pngcairo size %g,%g font 'Helvetica,8' fontscale 2.5 linewidth 2.6 pointscale 1.6; mark = 1"
terminal_of(format, width, height) = \
    format eq 'pdf' ? sprintf(pdf, width, height) : \
    format eq 'svg' ? sprintf(svg, width * 64, height * 64) : sprintf(png, width * 118, height * 118)

set encoding utf8
set datafile separator comma
set datafile columnheaders
axes_on = "set border 3 linewidth 0.8 linecolor '#404040';". \
          "set xtics nomirror out scale 0.6 textcolor '#202020' format '%g';". \
          "set ytics nomirror out scale 0.6 textcolor '#202020' format '%g';". \
          "set grid xtics ytics linetype 1 linewidth 0.4 linecolor '#d8d8d8'"
axes_off = 'unset border; unset tics; unset grid; unset logscale; unset xlabel; unset ylabel'
eval axes_on
set key noenhanced Left reverse
