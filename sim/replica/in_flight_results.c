/* The results of ended steps, a row for each request, for modules that ask for them. */
#include "replica/in_flight.h"
#include "replica/replica_parts.h"

/* Of one step with guesses. */
IFL_APART static struct ifl_result guessed(const struct replica *replica,
                                           const struct live_request *r, bool member)
{
    const struct ragged *ragged = &replica->here.cohort.ragged;
    if (!member)
        return (struct ifl_result){&r->pub, 1 + r->rare->n_step_draft, r->rare->n_step_emitted,
                                   r->rare->n_step_draft};
    const struct ragged_member *m = ragged_find(ragged, r);
    return (struct ifl_result){&r->pub, 1 + m->n_draft, ragged_emitted(ragged, m), m->n_draft};
}

/* Member by member: a struct that is put together elsewhere and copied as one waits for its parts
 * to be stored. */
static inline void put_result(struct ifl_result *result, const struct replica *replica,
                              const struct live_request *r, bool member, int32_t n_ticks)
{
    if (IFL_RARE(cohort_is_ragged(&replica->here.cohort))) {
        *result = guessed(replica, r, member);
        return;
    }
    result->request = &r->pub;
    result->n_new = n_ticks;
    result->n_sampled = n_ticks;
    result->n_draft = 0;
}

/* Lists the members that ticked and those that did so for the last time, in order of start. */
static size_t list_decodes(struct replica *replica, int32_t n_ticks)
{
    struct live_request *const *gone = replica->leaving.gone;
    struct live_request *const *end = gone + replica->leaving.n_decodes_gone;
    struct ifl_result *result = replica->in_flight.results;
    FOR_EACH_LIVE (r, &replica->here.cohort.members, AMONG_PEERS) {
        for (; gone < end && (*gone)->pub.start_serial < r->pub.start_serial; gone++)
            put_result(result++, replica, *gone, false, n_ticks);
        put_result(result++, replica, r, true, n_ticks);
    }
    for (; gone < end; gone++)
        put_result(result++, replica, *gone, false, n_ticks);
    return (size_t)(result - replica->in_flight.results);
}

size_t in_flight_list_results(struct replica *replica, int32_t n_steps)
{
    struct ifl_result *results = replica->in_flight.results;
    ifl_assert(replica->in_flight.results);
    size_t n = replica->in_flight.ticks ? list_decodes(replica, n_steps) : 0;
    for (size_t i = 0; i < replica->plan.n_planned; i++) {
        const struct planned *p = &replica->plan.planned[i];
        results[n++] = (struct ifl_result){&p->r->pub, p->n, p->samples};
    }
    return n;
}
