/* What most batching modules do in a plan: functions that combine calls of step.h. A module need
 * not use them. */
#ifndef INFLIGHT_BATCHING_H
#define INFLIGHT_BATCHING_H

#include "inflight/error.h"
#include "inflight/step.h"

/* Sequences of the widest group on the device before this plan; 1 if nothing runs. */
static inline int32_t ifl_widest_group(struct ifl_step *s)
{
    int32_t n = 1;
    if (!IFL_RARE(s->n_running_seqs != s->n_running_requests))
        return n;
    const struct ifl_requests running = ifl_running(s);
    for (size_t i = 0; i < running.n; i++)
        if (running.of[i]->state == IFL_RUNNING && running.of[i]->n_seqs > n)
            n = running.of[i]->n_seqs;
    return n;
}

/* The most that requests would take of a step, or what the step has. */
struct ifl_demand {
    int64_t n_seqs, n_tokens, n_blocks;
};

/* True if no number of *demand is above that of *most. */
static inline bool ifl_within(const struct ifl_demand *demand, const struct ifl_demand *most)
{
    return demand->n_seqs <= most->n_seqs && demand->n_tokens <= most->n_tokens &&
           demand->n_blocks <= most->n_blocks;
}

/* Adds to *demand, which the caller sets before, the demand of every waiting request, each with all
 * its missing tokens. Returns false as soon as `most` is exceeded; *demand is then incomplete. */
static inline bool ifl_add_waiting(struct ifl_step *s, struct ifl_demand *demand,
                                   const struct ifl_demand *most)
{
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    for (int32_t left = s->n_waiting;
         left > 0 && ifl_within(demand, most) && (r = ifl_next(s, IFL_IN_WAITING, &cursor));
         left--) {
        demand->n_seqs += r->n_seqs;
        demand->n_tokens += (int64_t)r->n_seqs * ifl_todo(r);
        demand->n_blocks += ifl_need(s, r, ifl_n_tokens(r));
    }
    return ifl_within(demand, most);
}

/* The refusal that each waiting request would get, or IFL_YES (`ask_for_all` in step.h). If it is a
 * refusal, the plan need not read the waiting list, and a list that is not read is not ranked. */
static inline enum ifl_verdict ifl_ask_for_all(struct ifl_step *s, int32_t *longest)
{
    return s->ops->ask_for_all(s, longest);
}

/* The most tokens that a step can give a running request: all that are to be computed before its
 * next token, and those guessed after it. */
static inline int32_t ifl_todo_and_drafts(struct ifl_step *s, const struct ifl_request *r)
{
    return ifl_todo(r) + ifl_drafts(s, r);
}

/* `schedule` of n tokens; those beyond its todo are guessed ones. */
static inline enum ifl_verdict ifl_schedule_all(struct ifl_step *s, const struct ifl_request *r,
                                                int32_t n)
{
    const int32_t n_draft = n - ifl_todo(r);
    return n_draft <= 0 ? ifl_schedule(s, r, n, 0)
                        : ifl_schedule_drafts(s, r, n - n_draft, n_draft, 0);
}

/* Gives a running request n tokens, at most its todo and its drafts, once a step. Gives none if n
 * <= 0, or if steps in flight compute all that there is to compute. While fewer than spare_blocks
 * blocks are free, or fewer than the n tokens need, the preempt module picks a victim. If it finds
 * no further victim, spare_blocks is ignored: free blocks for the n tokens are enough. Returns
 * false if the request was preempted itself or got no blocks. */
static inline bool ifl_give(struct ifl_step *s, const struct ifl_request *r, int32_t n,
                            int32_t spare_blocks)
{
    if (n <= 0 || ifl_todo(r) == 0)
        return r->state == IFL_RUNNING;
    while (r->state == IFL_RUNNING &&
           (s->n_free_blocks < spare_blocks || ifl_schedule_all(s, r, n) != IFL_YES))
        if (!ifl_make_room(s, r))
            return r->state == IFL_RUNNING && s->n_free_blocks < spare_blocks &&
                   ifl_schedule_all(s, r, n) == IFL_YES;
    return r->state == IFL_RUNNING;
}

/* True if a token in flight is the last that the request may have, of a model of max_model_tokens.
 */
static inline bool ifl_has_last(const struct ifl_request *r, int32_t max_model_tokens)
{
    const int32_t n_pending = ifl_n_pending(r);
    return ifl_n_out(r) + n_pending >= r->n_max_new ||
           ifl_n_tokens(r) + n_pending >= max_model_tokens;
}

/* Gives one token, and those guessed after it, to each running request that decodes, in order of
 * start, each by ifl_give; none to those whose last token is in flight. The plan must not have
 * given them tokens before: a second `schedule` is a breach of the contract. */
static inline void ifl_decode_one_by_one(struct ifl_step *s, int32_t spare_blocks)
{
    const struct ifl_requests running = ifl_running(s);
    for (size_t i = 0; i < running.n; i++) {
        const struct ifl_request *r = running.of[i];
        if (r->state == IFL_RUNNING && ifl_decodes(r) && !ifl_has_last(r, s->max_model_tokens))
            ifl_give(s, r, 1 + ifl_drafts(s, r), spare_blocks);
    }
}

/* The batching module's verdict on a request that it could never start, for ifl_settled. `why` is
 * as in ifl_refuse. */
static inline enum ifl_verdict ifl_never(struct ifl_step *s, const struct ifl_request *r,
                                         const char *why)
{
    ifl_refuse(s, r, why);
    return IFL_NEVER_FITS;
}

/* Rejects a waiting or swapped request with more sequences than max_seqs; returns true if it
 * did. */
static inline bool ifl_dropped_as_too_wide(struct ifl_step *s, const struct ifl_request *r,
                                           int32_t max_seqs)
{
    if (!IFL_RARE(r->n_seqs > max_seqs))
        return false;
    (void)ifl_never(s, r, "the request has more sequences than max_seqs");
    ifl_reject(s, r);
    return true;
}

/* `verdict` is that of ifl_start or ifl_ask on r. Rejects r if it never fits. Returns false if r
 * must wait; then no request behind it may start, but running requests of the same list still have
 * their turn. In a walk over IFL_IN_WAITING | IFL_IN_SWAPPED, swapped requests behind r must not
 * start either, even if r waits for room in host memory that only their return would free. If an
 * admission depends on that room, bring swapped requests back first (ifl_return_swapped). */
static inline bool ifl_settled(struct ifl_step *s, const struct ifl_request *r,
                               enum ifl_verdict verdict)
{
    if (verdict == IFL_NEVER_FITS)
        ifl_reject(s, r);
    return verdict == IFL_YES || verdict == IFL_SKIP || verdict == IFL_NEVER_FITS;
}

/* True if this plan has preempted r by recompute, so that it waits again. */
static inline bool ifl_gave_way_now(const struct ifl_view *view, const struct ifl_step *s,
                                    const struct ifl_request *r)
{
    return r->state == IFL_WAITING && s->n_preempted > 0 && r->n_preempted > 0 &&
           r->queued_ns == view->now_ns;
}

/* Tokens that r had generated when the step that has just ended began, as a plan made at that time
 * knows them. */
static inline int32_t ifl_out_before(const struct ifl_view *view, const struct ifl_request *r)
{
    return ifl_n_out(r) - (ifl_last_end_ns(r) == view->now_ns);
}

/* Tokens that r has generated, as far as the plan can know them: a plan that is made ahead does not
 * know the token of the last step. */
static inline int32_t ifl_known_out(const struct ifl_view *view, const struct ifl_request *r)
{
    return view->limits->plans_ahead ? ifl_out_before(view, r) : ifl_n_out(r);
}

/* False if a token in flight is the last that the request may have. */
static inline bool ifl_may_go_on(const struct ifl_view *view, const struct ifl_request *r)
{
    return !ifl_has_last(r, view->limits->max_model_tokens);
}

/* Starts swapped requests with one token each, in rank order, until one of them must wait or
 * max_seqs sequences run. */
static inline void ifl_return_swapped(struct ifl_step *s, int32_t max_seqs)
{
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    while (s->n_running_seqs < max_seqs && (r = ifl_next(s, IFL_IN_SWAPPED, &cursor)))
        if (!ifl_settled(s, r, ifl_start(s, r, 1)))
            return;
}

/* Pads the prompts that this plan has started to the longest of them. */
static inline void ifl_pad_prompts(struct ifl_step *s)
{
    const struct ifl_requests started = ifl_started(s);
    struct ifl_padding padding = {0};
    int32_t longest = 0;
    for (size_t i = 0; i < started.n; i++)
        if (ifl_n_now(started.of[i]) > longest)
            longest = ifl_n_now(started.of[i]);
    for (size_t i = 0; i < started.n; i++) {
        const int64_t n = ifl_n_now(started.of[i]);
        padding.n_prefill_tokens += (int32_t)(longest - n);
        padding.prefill_q_q += (int64_t)longest * longest - n * n;
    }
    ifl_pad(s, padding);
}

#endif
