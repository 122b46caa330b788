/* Routing: which replica of a cluster gets a request that has arrived, or is held at the gateway.
 *
 * Code that changes a replica calls routing_note, which updates the load of this replica that the
 * router sees. Asking the router therefore needs no walk over queues. */
#ifndef SIM_FLEET_ROUTING_H
#define SIM_FLEET_ROUTING_H

#include <string.h>

#include "fleet/gateway.h"
#include "fleet/holders.h"
#include "fleet/least.h"
#include "fleet/news.h"
#include "fleet/pools.h"
#include "replica/replica.h"

/* The fleet as the router sees it. */
struct routing_fleet {
    struct ifl_fleet pub; /* first: the module holds a pointer to it */
    struct routing *routing;
};

struct routing_options {
    struct replica *replicas; /* [n] */
    uint32_t n;
    const struct fleet_pool *pools; /* [n_pools] of all replicas */
    size_t n_pools;
    const struct module *router; /* may be NULL if there is one replica, which then takes all
                                    requests */
    struct news_options news;
    struct gateway gateway;
    bool hands_over; /* a request may have two replicas */
    bool checks;     /* check that the router does not write to what it may only read */
    uint64_t seed;
};

/* Consecutive replicas: those of an open pool. */
struct routing_span {
    uint32_t first, n;
    unsigned roles; /* bits of enum ifl_role */
};

/* What the router reads of a replica: its load, its number of requests, or the contents of its
 * cache. */
enum routing_look { LOOKS_AT_LOAD, LOOKS_AT_COUNTS, LOOKS_AT_CACHE };

/* Simulates a replica up to the time at which the router sees its load. For counts this is needed
 * only if they may have changed by then; replica ROUTING_ALL: all replicas whose counts may have.
 * For a cache the time is that of the question, however old the news are. */
#define ROUTING_ALL UINT32_MAX
typedef int routing_bring_fn(void *context, uint32_t replica, enum routing_look look,
                             struct ifl_error *error);

/* A fraction of two whole numbers, held as doubles, so that sums and products up to 2^53 are exact.
 */
struct routing_fraction {
    double num, den;
};

struct routing {
    struct replica *replicas; /* [n], borrowed */
    uint32_t n;
    const struct fleet_pool *pools; /* [n_pools], borrowed */
    size_t n_pools;
    const struct module *router; /* NULL: one replica takes every request */
    uint64_t seed, n_routed;
    struct routing_span *open; /* [n_open] pools that can take the request that the router is asked
                                  about */
    size_t n_open;
    uint32_t n_open_of[4]; /* number of open replicas that have these roles (bits of enum
                              ifl_role); [0]: of all */
    bool hands_over, checks;
    bool was_stale; /* loads were too old when the gateway was last asked */
    struct routing_fleet fleet;
    struct ifl_load *loads; /* [n] as the router knows them */
    struct news news;
    struct gateway gateway;
    struct routing_fraction kv_frac; /* gateway.kv_frac as the decimal number that was written */
    routing_bring_fn *bring;         /* NULL: all replicas are simulated up to the present time */
    void *bring_context;
    uint32_t n_looks;            /* loads read for the request that was asked about last */
    bool looks_at_few;           /* few loads were read for the request before it */
    struct ifl_error *asked;     /* during a question: where the first error of `bring` goes */
    struct least first[N_LEAST]; /* each is kept up to date from its first use on */
    struct holders holders;      /* kept up to date from its first use on */
    struct live_request probe;   /* the request that is asked about, while it is at no replica */
    uint64_t note;               /* the router's value for the request that it is shown */
    struct arrival *held; /* [first_held, n_held): requests held at the gateway, by class and in
                             the order of asking */
    struct turns turns;   /* turns of the classes */
    size_t first_held, n_held, cap_held;
    struct refusals refusals; /* of requests that the router dropped */
    struct ifl_error breach;  /* the router's breach of its contract during a question; code 0:
                                 none */
};

/* Pointers of the options are borrowed. Zeroed memory is valid for routing_destroy. */
int routing_create(struct routing *routing, const struct routing_options *options,
                   struct ifl_error *error);
void routing_destroy(struct routing *routing);

/* From now on `bring` is called before the router sees a replica's load. NULL: it is not needed. */
static inline void routing_follow(struct routing *routing, routing_bring_fn *bring, void *context)
{
    routing->bring = bring;
    routing->bring_context = context;
}

/* close_all: no pool is open to the next request. open: opens one more pool; call it in order of
 * number. */
static inline void routing_close_all(struct routing *routing)
{
    routing->n_open = 0;
    memset(routing->n_open_of, 0, sizeof routing->n_open_of);
}
static inline void routing_open(struct routing *routing, size_t pool)
{
    ifl_assert(routing->n_open < routing->n_pools);
    const struct fleet_pool *of = &routing->pools[pool];
    const unsigned roles = fleet_pool_roles(of);
    routing->open[routing->n_open++] = (struct routing_span){of->first, of->n, roles};
    for (unsigned want = 0; want < 4; want++)
        routing->n_open_of[want] += (roles & want) == want ? of->n : 0;
}

/* Asks the router at now_ns and checks its answer: a replica that the request is sent to must be in
 * an open pool. The arrival keeps the router's value for the request. Returns 0 or the code of
 * `error`. */
int routing_ask(struct routing *routing, struct arrival *arrival, int64_t now_ns,
                struct ifl_route *route, struct ifl_error *error);
/* Returns in *decode the replica that continues r after `replica` has computed its prompt: as the
 * router says now, or has said before (*decode). The open pools must be those that can take the
 * request. */
int routing_pick_decode(struct routing *routing, const struct replica *replica,
                        const struct live_request *r, uint32_t *decode, struct ifl_error *error);
static inline bool routing_holds(const struct routing *routing)
{
    return routing->first_held < routing->n_held;
}
/* Adds the request to those held at the gateway, in its place. */
int routing_hold(struct routing *routing, const struct arrival *arrival, struct ifl_error *error);
/* Returns, as a fraction, the decimal number that a double is written as: the double of 0.8 is not
 * 4/5. */
struct routing_fraction routing_as_written(double decimal);
/* True if the gateway lets no request pass to the open pools at now_ns. */
bool routing_is_saturated(const struct routing *routing, int64_t now_ns);
static inline bool routing_saturated(const struct routing *routing, int64_t now_ns)
{
    return routing->gateway.hold && routing_is_saturated(routing, now_ns);
}
/* True if, by the gateway's estimate, a first token from that replica would be late. */
bool routing_is_too_late(const struct routing *routing, const struct arrival *arrival,
                         size_t replica, int64_t now_ns);
static inline bool routing_too_late(const struct routing *routing, const struct arrival *arrival,
                                    size_t replica, int64_t now_ns)
{
    return routing->gateway.prefill_tokens_s > 0 &&
           routing_is_too_late(routing, arrival, replica, now_ns);
}
/* True if the gateway holds as many requests of this one's class (and, by priority, of its
 * priority) as it may, so that it cannot hold this one. */
bool routing_is_full(const struct routing *routing, const struct arrival *arrival);
/* Returns the number of prompt tokens that no replica of the open pools has in its prefix cache, at
 * least 1; or a negative code. */
int32_t routing_to_compute(struct routing *routing, const struct arrival *arrival, int64_t now_ns,
                           struct ifl_error *error);
/* Returns the index of the first held request of a class; n_held: there is none. */
size_t routing_head(const struct routing *routing, int class_of);
/* Returns the index of a held request; n_held: no request with that serial is held. */
size_t routing_find_held(const struct routing *routing, uint64_t serial);
/* Takes a held request off the gateway, into *arrival. */
void routing_give_up_held(struct routing *routing, uint64_t serial, struct arrival *arrival);
/* Counts a request that the replica gets. */
void routing_count_taken(struct routing *routing, uint32_t replica);
/* Counts a routed request, once, whether or not it is handed over later. */
static inline void routing_note_sent(struct routing *routing, uint32_t replica)
{
    if (!routing->router)
        return;
    routing->n_routed++;
    routing_count_taken(routing, replica);
}
/* Counts a request, which routing_note_sent has counted already, at the replica that decodes it. */
static inline void routing_note_handed_over(struct routing *routing, uint32_t replica)
{
    if (routing->router)
        routing_count_taken(routing, replica);
}
/* Counts a request that waits in the replica's mailbox. Exact news include it from now on; with old
 * news, routing_note_sent counts it. */
void routing_note_mailed(struct routing *routing, uint32_t replica);
/* Counts a request that the router has dropped, for the note at the end of the run. */
void routing_note_shed(struct routing *routing, const char *why);
/* Old news of one replica, without a report of all: its load becomes the present one, since which
 * n_sent requests were sent there. */
void routing_hear_one(struct routing *routing, const struct replica *replica, uint32_t n_sent);
/* From now on old news come as reports of all replicas. Allocates their memory. Returns 0 or
 * IFL_E_NOMEM. */
static inline int routing_open_news(struct routing *routing)
{
    return news_open(&routing->news, routing->loads);
}
/* Call it after the replica has changed, at now_ns. */
void routing_note_load(struct routing *routing, const struct replica *replica, int64_t now_ns);
static inline void routing_note(struct routing *routing, const struct replica *replica,
                                int64_t now_ns)
{
    if (routing->router)
        routing_note_load(routing, replica, now_ns);
}
/* Returns when the next report reaches the router; IFL_NEVER: not before something changes, or
 * loads are exact. */
int64_t routing_next_report_ns(const struct routing *routing, int64_t now_ns);
static inline int64_t routing_next_news_ns(const struct routing *routing, int64_t now_ns)
{
    return news_are_old(&routing->news) ? routing_next_report_ns(routing, now_ns) : IFL_NEVER;
}
/* Delivers the reports that have arrived. Returns true if one has, or if the router's loads are no
 * longer too old. */
bool routing_hear_report(struct routing *routing, int64_t now_ns);
static inline bool routing_hear_news(struct routing *routing, int64_t now_ns)
{
    const bool heard = news_are_old(&routing->news) && routing_hear_report(routing, now_ns);
    for (int by = 0; heard && by < N_LEAST; by++)
        if (least_is_kept(&routing->first[by]))
            least_note_all(&routing->first[by]);
    return heard;
}

/* ---- the router's hooks, if it has them ---- */

void routing_say_sent(struct routing *routing, const struct arrival *arrival, uint32_t replica,
                      int64_t now_ns);
static inline void routing_tell_sent(struct routing *routing, const struct arrival *arrival,
                                     uint32_t replica, int64_t now_ns)
{
    if (routing->router)
        routing_say_sent(routing, arrival, replica, now_ns);
}
void routing_say_first_tokens(struct routing *routing, const struct replica *replica);
/* Calls the router's hook for each prompt that the step just ended completed for the first time. */
static inline void routing_tell_first_tokens(struct routing *routing, const struct replica *replica)
{
    if (routing->router)
        routing_say_first_tokens(routing, replica);
}
void routing_say_first_token(struct routing *routing, const struct replica *replica,
                             const struct live_request *r);
/* Calls the router's hook for a request that gets its first token without a step at this replica.
 */
static inline void routing_tell_first_token(struct routing *routing, const struct replica *replica,
                                            const struct live_request *r)
{
    if (routing->router)
        routing_say_first_token(routing, replica, r);
}
void routing_say_end(struct routing *routing, const struct replica *replica,
                     const struct live_request *r, int64_t now_ns);
/* Calls the router's hook for a request that has ended. now_ns is passed, since a client may leave
 * while its replica has no event. */
static inline void routing_tell_end(struct routing *routing, const struct replica *replica,
                                    const struct live_request *r, int64_t now_ns)
{
    if (routing->router)
        routing_say_end(routing, replica, r, now_ns);
}

#endif
