# What the K/V pool held, weighted by time, a bar a series: the shape of Fig. 2 of Kwon et al.
# (PagedAttention, SOSP 2023).
call ARG1.'/style.gp' ARG2 ARG3 ARG4
eval read_series
eval read_at_rate
# Names that are wider than a bar are slanted, their parts below each other.
cut(s) = strstrt(s, ' / ')
lines_of_name(s) = cut(s) ? s[1:cut(s) - 1]."\n".lines_of_name(s[cut(s) + 3:*]) : s
letters_of(s) = cut(s) ? larger(cut(s) - 1, letters_of(s[cut(s) + 3:*])) : strlen(s)
letters = 0
do for [i = 1:n] { letters = larger(letters, letters_of(name[i])) }
from(i) = i == 1 ? 0 : i == 2 ? column(4) : i == 3 ? column(4) + column(5) : column(4) + column(5) + column(6)
upto(i) = from(i) + column(3 + i)
bar_cm = (page_cm - left_cm - right_cm) / n
room = bar_cm > 1.0
slanted = letters > bar_cm * 6
bottom_cm = slanted ? 0.6 + 0.07 * letters : 0.95
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
    do for [i = 1:n] { set xtics add (lines_of_name(name[i]) i) }
    if (slanted) { set xtics rotate by 30 right }
    set grid noxtics
    plot for [i = 1:4] data using 1:(50 * (from(i) + upto(i))):($1 - 0.33):($1 + 0.33):(100 * from(i)):(100 * upto(i)) with boxxyerror fillstyle solid 1 border rgb '#404040' linewidth 0.5 fillcolor rgb share_colour[i], \
         for [i = 1:4] data using 1:(50 * (from(i) + upto(i))):(label_of(i)) with labels textcolor rgb share_ink[i]
    eval legend(share_keys)
    eval close_page
}
