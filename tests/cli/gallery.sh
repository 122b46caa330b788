#!/bin/sh
# Every figure of the gallery, drawn again: its CSV is the one beside the picture, byte for byte. 77 is
# skipped: no gnuplot.
command -v gnuplot >/dev/null || exit 77
. "$(dirname "$0")/expect.sh"

succeeds sh "$INFLIGHT_DATA/reports/figures/remake" "$inflight" new
n=0
for kept in "$INFLIGHT_DATA"/reports/figures/*/*.png; do
    figure=$(basename "$(dirname "$kept")")/$(basename "$kept" .png)
    same_bytes "$INFLIGHT_DATA/reports/figures/$figure.csv" "new/$figure.csv"
    for extension in png pdf svg; do
        [ -s "new/$figure.$extension" ] || complain "new/$figure.$extension is missing"
    done
    n=$((n + 1))
done
# A change of a schedule or a cost changes figures: check the new ones, and commit them.
[ "$n_failures" -eq 0 ] || echo 'to draw them anew: sh reports/figures/remake build/inflight reports/figures'
# and every figure is in the gallery
same "$(ls new/*/*.png | wc -l | tr -d ' ')" "$n" 'figures'
finish
