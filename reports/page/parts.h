/* The parts of a page that are the same for every run. The build makes them from the files next to
 * this one (embed.c). */
#ifndef INFLIGHT_REPORTS_PAGE_PARTS_H
#define INFLIGHT_REPORTS_PAGE_PARTS_H

extern const char page_style[], page_body[], page_script[];

#endif
