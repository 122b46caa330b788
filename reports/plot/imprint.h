/* Title and source of a figure, written into the metadata of its files. */
#ifndef INFLIGHT_REPORTS_PLOT_IMPRINT_H
#define INFLIGHT_REPORTS_PLOT_IMPRINT_H

#include "inflight/error.h"

/* Makes out_dir/FIGURE.pdf, .svg and .png from FIGURE.tmp.pdf, .svg and .png and marks them. The
 * title is the figure's name; `source` is the subject and keywords (PDF) or the description (SVG,
 * PNG). A PDF gets the mark only if it has a plain cross-reference table, as cairo 1.16 writes. */
int imprint_all(const char *out_dir, const char *figure, const char *source,
                struct ifl_error *error);

/* As imprint_all, for FIGURE-tex.pdf and FIGURE.tex. The latter includes the former by its name
 * alone: LaTeX looks for it where it looks for other figures (\graphicspath). */
int imprint_latex(const char *out_dir, const char *figure, const char *source,
                  struct ifl_error *error);

#endif
