/* The parts of a page that are the same for every run, which the build makes of the files beside
 * this one (embed.c). */
#ifndef INFLIGHT_REPORTS_PAGE_PARTS_H
#define INFLIGHT_REPORTS_PAGE_PARTS_H

extern const char page_style[], page_body[], page_script[];

#endif
