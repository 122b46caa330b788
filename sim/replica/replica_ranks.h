/* Ranked lists of running, prefilling and swapped requests, and whether the keys of the order may
 * have changed. */
#ifndef SIM_REPLICA_REPLICA_RANKS_H
#define SIM_REPLICA_REPLICA_RANKS_H

#include "replica/replica.h"

/* Zeroed rankings are valid for rankings_destroy. rankings_reserve makes room for n requests and
 * returns 0 or IFL_E_NOMEM. */
void rankings_create(struct rankings *ranks);
int rankings_reserve(struct rankings *ranks, size_t n);
void rankings_destroy(struct rankings *ranks);
/* Call it when a plan begins: no list is up to date for it. */
static inline void rankings_open(struct rankings *ranks)
{
    for (int which = 0; which < N_RANKED && ranks->asked_for_lists; which++)
        ranks->by_rank[which].taken = false;
    ranks->keys_asked = false;
}
/* Notes that some module, perhaps not the order, has read the plan. */
static inline void rankings_note_plan_read(struct rankings *ranks)
{
    ranks->keys_read_plan = true;
}

/* ---- keys ---- */

int64_t replica_rank(struct replica *replica, struct live_request *r);
void replica_rank_anew(struct replica *replica); /* all waiting requests */
/* Asks the order when its keys change, as it says now. */
void replica_hear_keys(struct replica *replica);
/* The same, for a plan: keys that moved are computed again. Once a plan: before the plan looks at a
 * ranked list, and before a request leaves such a list. */
void replica_ask_keys(struct replica *replica);
static inline void replica_settle_keys(struct replica *replica)
{
    if (!replica->ranks.keys_asked)
        replica_ask_keys(replica);
}
/* True if any key may differ from plan to plan. */
static inline bool replica_keys_move(const struct replica *replica)
{
    return replica->ranks.order_keys == IFL_KEYS_MOVE || replica->ranks.order_keys == IFL_KEYS_PLAN;
}
/* Call it when the plan has changed the step or a hit. A key may depend on the step, if a module
 * has read the step, and on n_computed of a waiting request, which shows its hit. */
static inline void replica_stir_keys(struct replica *replica)
{
    if (IFL_RARE(replica->ranks.order_keys == IFL_KEYS_MOVE))
        replica->ranks.ranks_stale |= replica->ranks.keys_read_plan || replica->kv.device.cached;
}
/* Call it after a hook has run within the plan: the hook may have changed what the keys of its
 * module depend on. */
static inline void replica_stir_keys_of(struct replica *replica, const struct module *module)
{
    const bool orders = module == &replica->fixed.modules[IFL_ORDER];
    replica->ranks.hook_ran |= orders;
    replica->ranks.ranks_stale |= orders && replica->ranks.order_keys == IFL_KEYS_MOVE;
}
/* ---- lists ---- */

/* The list is rebuilt when it is read next. */
static inline void replica_retake_ranking(struct replica *replica, enum ranked_list which)
{
    if (replica->ranks.asked_for_lists)
        replica->ranks.by_rank[which].taken = false;
}
/* Brings the list to the state that this plan sees. */
void replica_take_ranking(struct replica *replica, struct ranking *list);
static inline const struct ranking *replica_ranking(struct replica *replica, enum ranked_list which)
{
    if (!replica->ranks.by_rank[which].taken)
        replica_take_ranking(replica, &replica->ranks.by_rank[which]);
    return &replica->ranks.by_rank[which];
}
/* Call it when r joins or leaves the list, or if its key may have changed although r has not run.
 */
void replica_note(struct ranking *list, struct live_request *r);
static inline void replica_note_rank(struct replica *replica, enum ranked_list which,
                                     struct live_request *r)
{
    if (IFL_RARE(replica->ranks.asked_for_lists) && replica->ranks.by_rank[which].kept)
        replica_note(&replica->ranks.by_rank[which], r);
}
/* Call it when r leaves for good. */
void replica_forget(struct ranking *list, struct live_request *r);
static inline void replica_forget_rank(struct replica *replica, struct live_request *r)
{
    for (int which = 0; which < N_RANKED && replica->ranks.asked_for_lists; which++)
        if (replica->ranks.by_rank[which].kept)
            replica_forget(&replica->ranks.by_rank[which], r);
}
static inline bool replica_ranks_before(const struct ifl_request *a, int64_t key_a,
                                        const struct ifl_request *b, int64_t key_b)
{
    if (key_a != key_b)
        return key_a < key_b;
    return a->arrival_ns != b->arrival_ns ? a->arrival_ns < b->arrival_ns : a->serial < b->serial;
}

/* If the list is kept, calls `see` for each of its requests whose key stays the same in this plan,
 * with that key. */
void replica_each_standing(struct replica *replica, const struct ranking *list, key_fn *see);

#endif
