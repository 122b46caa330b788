# Texts of a figure that gnuplot has drawn as SVG, their boxes by the widths of Helvetica (Adobe's metrics, which Nimbus
# Sans and Arial share): prints those that leave the page, and those that come closer to another than a wide letter on its line. Slanted
# texts are left out.
function width_of(text,   i, sum) {
    for (i = 1; i <= length(text); i++)
        sum += substr(text, i, 1) in width ? width[substr(text, i, 1)] : 556
    return sum / 1000
}
BEGIN {
    split("i222 j222 l222 t278 f278 r333 c500 k500 s500 v500 x500 y500 z500 m833 w722 .278 :278 ;278 /278 -333 (333 )333", of, " ")
    for (i in of)
        width[substr(of[i], 1, 1)] = substr(of[i], 2)
    width[" "] = width[","] = 278
    split("A667 B667 C722 D722 E667 F611 G778 H722 K667 L556 M833 N722 O778 P667 Q778 R722 S667 T611 U722 V667", of, " ")
    for (i in of)
        width[substr(of[i], 1, 1)] = substr(of[i], 2)
}
/viewBox=/ {
    match($0, /viewBox="[^"]*"/)
    split(substr($0, RSTART + 9, RLENGTH - 10), page, " ")
}
/transform="translate\(/ {
    match($0, /translate\([^)]*\)/)
    split(substr($0, RSTART + 10, RLENGTH - 11), at, ",")
    turned = match($0, /rotate\([^)]*\)/) ? substr($0, RSTART + 7, RLENGTH - 8) + 0 : 0
    anchor = match($0, /text-anchor="[a-z]*"/) ? substr($0, RSTART + 13, RLENGTH - 14) : "start"
    size = match($0, /font-size="[0-9.]*"/) ? substr($0, RSTART + 11, RLENGTH - 12) + 0 : 13
}
/<text>/ {
    text = $0
    while (match(text, /font-size="[0-9.]*"/)) {
        size = substr(text, RSTART + 11, RLENGTH - 12) + 0
        text = substr(text, RSTART + RLENGTH)
    }
    text = $0
    gsub(/<[^>]*>/, "", text)
    gsub(/^[ \t]+|[ \t]+$/, "", text)
    gsub(/&amp;|&lt;/, "x", text)
    if (text == "" || (turned != 0 && turned != -90 && turned != 90))
        next
    n++
    said[n] = text
    long = width_of(text) * size
    begin = anchor == "middle" ? -long / 2 : anchor == "end" ? -long : 0
    # from the baseline capitals and digits rise by 0.72 of the size
    if (turned == 0) {
        left[n] = at[1] + begin; right[n] = left[n] + long
        top[n] = at[2] - 0.72 * size; bottom[n] = at[2]; gap_x[n] = 0.8 * size; gap_y[n] = 0
    } else {
        left[n] = at[1] - 0.72 * size; right[n] = at[1]
        bottom[n] = at[2] - begin; top[n] = bottom[n] - long; gap_x[n] = 0; gap_y[n] = 0.25 * size
    }
}
END {
    for (i = 1; i <= n; i++)
        if (left[i] < -1 || right[i] > page[3] + 1 || top[i] < -1 || bottom[i] > page[4] + 1)
            print said[i] " leaves the page"
    for (i = 1; i <= n; i++)
        for (j = i + 1; j <= n; j++)
            if (left[i] < right[j] + gap_x[j] && left[j] < right[i] + gap_x[i] && top[i] < bottom[j] + gap_y[j] && top[j] < bottom[i] + gap_y[i])
                print said[i] " touches " said[j]
    if (n == 0)
        print "no text"
}
