/* News of a cluster: the replicas report their loads to the router at intervals, and the reports
 * arrive late.
 *
 * At each multiple of the interval the loads of all replicas are taken together, after the steps
 * that end at that time and before arrivals; the router has them a delay later. The router's own
 * count of what it has sent is always exact. */
#ifndef SIM_FLEET_NEWS_H
#define SIM_FLEET_NEWS_H

#include "inflight/fleet.h"
#include "inflight/time.h"

struct news_options {
    int64_t interval_ns; /* 0: loads are exact */
    int64_t delay_ns;
};

/* Loads that were taken together. */
struct news_report {
    int64_t taken_ns;
    struct ifl_load *of; /* [n] */
};

struct news {
    struct news_options options;
    uint32_t n;
    struct ifl_load *live;     /* [n] present loads; NULL: not open yet */
    struct news_report *queue; /* reports [first, first + n_queued), modulo cap, are on their way */
    size_t first, n_queued, cap;
    int64_t next_take_ns; /* IFL_NEVER: nothing has changed since the loads were last taken */
    int64_t heard_ns;     /* the router has received all news up to this time */
};

static inline bool news_are_old(const struct news *news)
{
    return news->options.interval_ns > 0;
}

/* Creates news of n loads, of which the router knows those at the start. Zeroed memory is valid for
 * news_destroy and means exact loads. */
void news_create(struct news *news, const struct news_options *options, uint32_t n);
/* Allocates memory for reports of all loads. If news are old, call it before any other function
 * except news_age_ns and news_heard_of_ns. Returns 0 or IFL_E_NOMEM. */
int news_open(struct news *news, const struct ifl_load *loads);
void news_destroy(struct news *news);

/* Call it when the load of a replica in `live` has changed at now_ns. */
void news_note(struct news *news, int64_t now_ns);
/* Returns the first time at which loads are taken that include a change at now_ns. */
int64_t news_take_ns(const struct news *news, int64_t now_ns);
/* Returns when loads are next taken or reach the router; IFL_NEVER: not before something changes.
 */
int64_t news_next_ns(const struct news *news);
/* Returns the age of the loads that the router knows at now_ns. Reports without changes are not
 * sent, but count. */
int64_t news_age_ns(const struct news *news, int64_t now_ns);
/* Returns when the loads were taken that the router knows at now_ns; 0: they are those of the
 * start. */
int64_t news_heard_of_ns(const struct news *news, int64_t now_ns);
/* Returns when the next report arrives, whether or not something has changed; news must be old. */
int64_t news_next_report_ns(const struct news *news, int64_t now_ns);
/* Takes the loads, which must be those at at_ns, as a report of that time. */
void news_take_now(struct news *news, int64_t at_ns);
/* Takes the reports that are due, and copies those that arrive by now_ns to `loads` [n]. Returns
 * true if one has arrived. */
bool news_hear(struct news *news, int64_t now_ns, struct ifl_load *loads);

#endif
