#include "fleet/news.h"

#include <stdlib.h>
#include <string.h>

#include "inflight/error.h"
#include "inflight/minmax.h"

void news_create(struct news *news, const struct news_options *options, uint32_t n)
{
    *news = (struct news){.options = *options, .n = n, .next_take_ns = IFL_NEVER, .heard_ns = -1};
    if (news_are_old(news))
        news->cap = (size_t)(options->delay_ns / options->interval_ns) + 2;
}

int news_open(struct news *news, const struct ifl_load *loads)
{
    const uint32_t n = news->n;
    if (!news_are_old(news) || news->live)
        return 0;
    news->live = malloc(n * sizeof *news->live);
    news->queue = calloc(news->cap, sizeof *news->queue);
    if (!news->live || !news->queue)
        return IFL_E_NOMEM;
    memcpy(news->live, loads, n * sizeof *loads);
    for (size_t i = 0; i < news->cap; i++)
        if (!(news->queue[i].of = malloc(n * sizeof *news->live)))
            return IFL_E_NOMEM;
    return 0;
}

void news_destroy(struct news *news)
{
    for (size_t i = 0; news->queue && i < news->cap; i++)
        free(news->queue[i].of);
    free(news->queue);
    free(news->live);
    *news = (struct news){0};
}

/* The first time to take loads from that time on, or behind it. */
static int64_t next_time(const struct news *news, int64_t from_ns, bool behind)
{
    const int64_t interval_ns = news->options.interval_ns, rest_ns = from_ns % interval_ns;
    if (rest_ns == 0 && !behind)
        return from_ns;
    return from_ns > IFL_LAST_NS - interval_ns ? IFL_NEVER : from_ns - rest_ns + interval_ns;
}

int64_t news_take_ns(const struct news *news, int64_t now_ns)
{
    ifl_assert(news_are_old(news));
    return next_time(news, now_ns, now_ns <= news->heard_ns);
}

void news_note(struct news *news, int64_t now_ns)
{
    ifl_assert(news_are_old(news));
    if (news->next_take_ns == IFL_NEVER)
        news->next_take_ns = news_take_ns(news, now_ns);
}

static int64_t next_arrival_ns(const struct news *news)
{
    return news->n_queued > 0 ? news->queue[news->first].taken_ns + news->options.delay_ns
                              : IFL_NEVER;
}

int64_t news_next_ns(const struct news *news)
{
    if (!news_are_old(news))
        return IFL_NEVER;
    const int64_t arrival_ns = next_arrival_ns(news);
    return ifl_min(news->next_take_ns, arrival_ns);
}

int64_t news_heard_of_ns(const struct news *news, int64_t now_ns)
{
    const int64_t since_ns = now_ns - news->options.delay_ns;
    return since_ns > 0 ? since_ns - since_ns % news->options.interval_ns : 0;
}

int64_t news_age_ns(const struct news *news, int64_t now_ns)
{
    return news_are_old(news) ? now_ns - news_heard_of_ns(news, now_ns) : 0;
}

int64_t news_next_report_ns(const struct news *news, int64_t now_ns)
{
    ifl_assert(news_are_old(news));
    const struct news_options *options = &news->options;
    return news_heard_of_ns(news, now_ns) + options->interval_ns + options->delay_ns;
}

static void take(struct news *news)
{
    ifl_assert(news->n_queued < news->cap);
    struct news_report *report = &news->queue[(news->first + news->n_queued++) % news->cap];
    report->taken_ns = news->next_take_ns;
    memcpy(report->of, news->live, news->n * sizeof *report->of);
    news->next_take_ns = IFL_NEVER;
}

void news_take_now(struct news *news, int64_t at_ns)
{
    news->next_take_ns = at_ns;
    take(news);
}

/* What was sent since the loads were taken is what the router has sent in all, less what it had
 * then. */
static void arrive(struct news *news, struct ifl_load *loads)
{
    const struct news_report *report = &news->queue[news->first];
    for (uint32_t i = 0; i < news->n; i++) {
        const uint64_t n_routed = loads[i].n_routed;
        loads[i] = report->of[i];
        loads[i].n_sent = n_routed - report->of[i].n_routed;
        loads[i].n_routed = n_routed;
        loads[i].taken_ns = report->taken_ns;
    }
    news->first = (news->first + 1) % news->cap;
    news->n_queued--;
}

bool news_hear(struct news *news, int64_t now_ns, struct ifl_load *loads)
{
    bool heard = false;
    if (!news_are_old(news))
        return false;
    for (int64_t at_ns; (at_ns = news_next_ns(news)) <= now_ns;) {
        if (news->next_take_ns == at_ns)
            take(news);
        if (next_arrival_ns(news) <= at_ns) {
            arrive(news, loads);
            heard = true;
        }
    }
    news->heard_ns = now_ns;
    return heard;
}
