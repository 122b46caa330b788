/* Title and source of a figure, written into the metadata of its files. */
#ifndef INFLIGHT_REPORTS_PLOT_IMPRINT_H
#define INFLIGHT_REPORTS_PLOT_IMPRINT_H

#include "inflight/error.h"

/* Makes out_dir/FIGURE.pdf, .svg and .png of FIGURE.tmp.pdf, .svg and .png and marks them: the
 * figure's name is the title, `source` the subject and the keywords (PDF), the description (SVG,
 * PNG). A PDF whose cross-references are not a plain table, which cairo 1.16 writes, stays as it
 * is. */
int imprint_all(const char *out_dir, const char *figure, const char *source,
                struct ifl_error *error);

#endif
