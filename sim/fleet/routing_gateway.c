/* Decides which requests the router's gateway (gateway.h) holds back, and for how long. */
#include "fleet/routing.h"

#include <math.h>
#include <string.h>

#include "inflight/minmax.h"

#include "base/array.h"

/* ---- when it lets nothing pass ---- */

static bool is_stale(const struct routing *routing, int64_t now_ns)
{
    return routing->gateway.hold && news_age_ns(&routing->news, now_ns) > routing->gateway.stale_ns;
}

struct routing_fraction routing_as_written(double decimal)
{
    const int64_t billion = 1000000000, num = llround(decimal * 1e9);
    int64_t a = billion, b = num;
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    const int64_t part = num / a, whole = billion / a;
    return (struct routing_fraction){(double)part, (double)whole};
}

/* By how much the replicas of a pool, which have as many blocks each, are above 1 by the share of
 * blocks in use; those that are fuller by their queues add to `queues`, in queue_depth-ths. */
static double excess_of(const struct routing *routing, const struct routing_span *span,
                        double *queues)
{
    const struct routing_fraction kv_frac = routing->kv_frac;
    const double depth = routing->gateway.queue_depth;
    const double n_blocks = routing->loads[span->first].limits->n_blocks;
    const double full = n_blocks * kv_frac.num;
    double excess = 0;
    for (size_t i = span->first; i < span->first + span->n; i++) {
        const struct ifl_load *load = &routing->loads[i];
        const double in_use = (n_blocks - load->n_free_blocks) * kv_frac.den;
        if (in_use * depth > load->n_waiting * full)
            excess += in_use - full;
        else
            *queues += load->n_waiting - depth;
    }
    return excess / full;
}

/* A mean of 1 or more is a sum of what is above 1 of 0 or more. Sums of quotients would take thirds
 * that add up to 1 for less. Numerators are added up before they are divided; equal quotients are
 * equal as doubles, too, so that the sign is right where replicas are alike in blocks. */
bool routing_is_saturated(const struct routing *routing, int64_t now_ns)
{
    double queues = 0, blocks = 0;
    if (is_stale(routing, now_ns))
        return true;
    for (size_t s = 0; s < routing->n_open; s++)
        if (routing->open[s].n > 0)
            blocks += excess_of(routing, &routing->open[s], &queues);
    return queues / routing->gateway.queue_depth + blocks >= 0;
}

bool routing_is_too_late(const struct routing *routing, const struct arrival *a, size_t replica,
                         int64_t now_ns)
{
    ifl_assert(replica < routing->n);
    const double rate = routing->gateway.prefill_tokens_s;
    if (a->said.ttft_slo_ns == IFL_NEVER)
        return false;
    const double n_tokens = (double)routing->loads[replica].n_waiting_tokens + a->n_prompt;
    return ifl_s_from_ns(now_ns - a->sent_ns) + n_tokens / rate >
           ifl_s_from_ns(a->said.ttft_slo_ns);
}

/* ---- what it holds ---- */

static int class_of(const struct routing *routing, const struct arrival *a)
{
    return classes_of(&routing->gateway.classes, a->n_to_compute);
}

bool routing_is_full(const struct routing *routing, const struct arrival *arrival)
{
    const struct gateway *gateway = &routing->gateway;
    const bool by_priority = gateway->order == GATEWAY_BY_PRIORITY;
    size_t n = 0;
    if (gateway->max_held == 0)
        return false;
    for (size_t i = routing->first_held; i < routing->n_held; i++) {
        const struct arrival *held = &routing->held[i];
        n += class_of(routing, held) == class_of(routing, arrival) &&
             (!by_priority || held->said.priority == arrival->said.priority);
    }
    return n >= (size_t)gateway->max_held;
}

size_t routing_head(const struct routing *routing, int class_wanted)
{
    size_t i = routing->first_held;
    while (i < routing->n_held && class_of(routing, &routing->held[i]) < class_wanted)
        i++;
    return i < routing->n_held && class_of(routing, &routing->held[i]) == class_wanted
               ? i
               : routing->n_held;
}

int64_t routing_next_report_ns(const struct routing *routing, int64_t now_ns)
{
    const int64_t next_ns = news_next_ns(&routing->news);
    if (!routing_holds(routing) || !is_stale(routing, now_ns))
        return next_ns;
    return ifl_min(next_ns, news_next_report_ns(&routing->news, now_ns));
}

bool routing_hear_report(struct routing *routing, int64_t now_ns)
{
    const bool was_stale = routing->was_stale;
    routing->was_stale = is_stale(routing, now_ns);
    return news_hear(&routing->news, now_ns, routing->loads) || (was_stale && !routing->was_stale);
}

/* Whether it goes in front of one that was held before it. */
static bool comes_before(const struct routing *routing, const struct arrival *a,
                         const struct arrival *held)
{
    const int own = class_of(routing, a), its = class_of(routing, held);
    if (own != its)
        return own < its;
    switch (routing->gateway.order) {
    case GATEWAY_BY_PRIORITY:
        return a->said.priority < held->said.priority;
    case GATEWAY_LATEST:
        return a->at_ns > held->at_ns;
    case GATEWAY_SHORTEST:
        return a->n_to_compute < held->n_to_compute;
    default:
        return false;
    }
}

int routing_hold(struct routing *routing, const struct arrival *arrival, struct ifl_error *error)
{
    if (array_room(&routing->held, routing->n_held, &routing->cap_held, 16, sizeof *routing->held) <
        0)
        return ifl_fail_nomem(error);
    size_t at = routing->n_held++;
    for (; at > routing->first_held && comes_before(routing, arrival, &routing->held[at - 1]); at--)
        routing->held[at] = routing->held[at - 1];
    routing->held[at] = *arrival;
    return 0;
}

size_t routing_find_held(const struct routing *routing, uint64_t serial)
{
    size_t i = routing->first_held;
    while (i < routing->n_held && routing->held[i].serial != serial)
        i++;
    return i;
}

void routing_give_up_held(struct routing *routing, uint64_t serial, struct arrival *arrival)
{
    const size_t at = routing_find_held(routing, serial);
    ifl_assert(at < routing->n_held);
    *arrival = routing->held[at];
    routing->n_held--;
    memmove(routing->held + at, routing->held + at + 1,
            (routing->n_held - at) * sizeof *routing->held);
    const int left = class_of(routing, arrival);
    if (routing_head(routing, left) == routing->n_held)
        turns_forget(&routing->turns, left);
}

void routing_note_shed(struct routing *routing, const char *why)
{
    const struct refusal_count one = {
        .by = routing->router->policy, .why = why ? why : "it drops it", .n_rejected = 1};
    refusals_add(&routing->refusals, &one);
}
