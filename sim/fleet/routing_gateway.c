/* What a router's gateway (gateway.h) holds back, and for how long. */
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

static double saturation_of(const struct gateway *gateway, const struct ifl_load *load)
{
    const double n_blocks = load->limits->n_blocks;
    const double queue = (double)load->n_waiting / gateway->queue_depth;
    const double kv = (n_blocks - load->n_free_blocks) / n_blocks / gateway->kv_frac;
    return fmax(queue, kv);
}

bool routing_is_saturated(const struct routing *routing, int64_t now_ns)
{
    double sum = 0;
    if (is_stale(routing, now_ns))
        return true;
    for (size_t s = 0; s < routing->n_open; s++) {
        const struct routing_span span = routing->open[s];
        for (size_t i = span.first; i < span.first + span.n; i++)
            sum += saturation_of(&routing->gateway, &routing->loads[i]);
    }
    return sum >= routing->n_open_of[0];
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
