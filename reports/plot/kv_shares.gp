# What the K/V pool held, weighted by time, a bar a series: the shape of Fig. 2 of Kwon et al.
# (PagedAttention, SOSP 2023).
call ARG1.'/style.gp' ARG2 ARG3 ARG4
eval read_series
eval read_at_rate
# Names that are wider than a bar are slanted, their parts below each other; upright where they would lie on
# each other or leave the page, in one line where the bars are too narrow for more.
cut(s) = strstrt(s, ' / ')
lines_of_name(s) = cut(s) ? s[1:cut(s) - 1]."\n".lines_of_name(s[cut(s) + 3:*]) : s
letters_of(s) = cut(s) ? larger(cut(s) - 1, letters_of(s[cut(s) + 3:*])) : strlen(s)
parts_of(s) = cut(s) ? 1 + parts_of(s[cut(s) + 3:*]) : 1
letters = 0
parts = 0
do for [i = 1:n] { letters = larger(letters, letters_of(name[i])); parts = larger(parts, parts_of(name[i])) }
from(i) = i == 1 ? 0 : i == 2 ? column(4) : i == 3 ? column(4) + column(5) : column(4) + column(5) + column(6)
upto(i) = from(i) + column(3 + i)
bar_cm = (page_cm - left_cm - right_cm) / n
room = bar_cm > 1.0
line_cm = 0.32
letter_cm = 0.13
slanted = letters > bar_cm * 6
upright = slanted && (parts * line_cm > 0.5 * bar_cm || letters * letter_cm * 0.87 > left_cm + 0.5 * bar_cm)
in_one_line = upright && parts * line_cm > bar_cm
bottom_cm = 0.55 + (in_one_line ? letter_cm * longest : upright ? letter_cm * letters : slanted ? 0.07 * letters : 0.35)
set_page = page(1, 1, 4.7 + bottom_cm, 4, 16)
# A share of less than 4% has no room for its number.
label_of(i) = column(3 + i) < 0.04 || !room ? '' : sprintf('%.1f', 100 * column(3 + i))

do for [format in formats] {
    eval open_page(format)
    eval panel(0)
    set ylabel 'K/V pool (%)'.at_rate
    set yrange [0:100]
    set xrange [0.4:n + 0.6]
    set xtics () noenhanced
    do for [i = 1:n] { set xtics add (tic_label(in_one_line ? name[i] : lines_of_name(name[i])) i) }
    if (slanted) { set xtics rotate by (upright ? 90 : 30) right }
    set grid noxtics
    plot for [i = 1:4] data using 1:(50 * (from(i) + upto(i))):($1 - 0.33):($1 + 0.33):(100 * from(i)):(100 * upto(i)) with boxxyerror fillstyle solid 1 border rgb '#404040' linewidth 0.5 fillcolor rgb share_colour[i], \
         for [i = 1:4] data using 1:(50 * (from(i) + upto(i))):(label_of(i)) with labels textcolor rgb share_ink[i]
    eval legend(share_keys)
    eval close_page
}
