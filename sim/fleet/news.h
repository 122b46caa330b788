/* News of a cluster: the replicas' reports reach the router at intervals, and late.
 *
 * At each multiple of the interval the loads of all replicas are taken together, after the steps
 * that end at that time and before arrivals; the router has them a delay later. What the router
 * itself has sent is exact at any time. */
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
    struct ifl_load *live;     /* [n] as they are; NULL: not open yet */
    struct news_report *queue; /* [first, first + n_queued) modulo cap: on their way */
    size_t first, n_queued, cap;
    int64_t next_take_ns; /* IFL_NEVER: nothing has changed since the loads were last taken */
    int64_t heard_ns;     /* news until then have been heard */
};

static inline bool news_are_old(const struct news *news)
{
    return news->options.interval_ns > 0;
}

/* Of n loads, which the router knows as of the start. Zeroed memory is valid for news_destroy and
 * stands for exact loads. */
void news_create(struct news *news, const struct news_options *options, uint32_t n);
/* Memory for reports of all loads together; where they are old, before any other function than
 * news_age_ns and news_heard_of_ns. 0, or IFL_E_NOMEM. */
int news_open(struct news *news, const struct ifl_load *loads);
void news_destroy(struct news *news);

/* The load of a replica has changed at now_ns; it is in `live`. */
void news_note(struct news *news, int64_t now_ns);
/* The first time at which loads are taken that a change at now_ns is in. */
int64_t news_take_ns(const struct news *news, int64_t now_ns);
/* When loads are next taken or heard; IFL_NEVER: not before something changes. */
int64_t news_next_ns(const struct news *news);
/* How old the loads are that the router knows at now_ns: reports that would say the same again are
 * left out, but count. */
int64_t news_age_ns(const struct news *news, int64_t now_ns);
/* When the loads were taken that the router knows at now_ns; 0: it knows those of the start. */
int64_t news_heard_of_ns(const struct news *news, int64_t now_ns);
/* When the next report comes, whether something has changed or not; news must be old. */
int64_t news_next_report_ns(const struct news *news, int64_t now_ns);
/* The loads are as they were at at_ns, and are taken then. */
void news_take_now(struct news *news, int64_t at_ns);
/* Takes what is to be taken, and lays what arrives by now_ns over `loads` [n]. True: something has
 * arrived. */
bool news_hear(struct news *news, int64_t now_ns, struct ifl_load *loads);

#endif
