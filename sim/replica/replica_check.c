/* The checking mode (serving.check_steady). Every key that an order says stands is asked for again
 * in each plan, and every promised step is planned all the same. What modules are asked within a
 * plan, and what they answer, is written down. If a promised plan gets another answer to the same
 * question, the module that gave it is named; if it asks another question, the batching module
 * is. */
#include "replica/replica_parts.h"

#include <stdlib.h>

#include "base/array.h"

void replica_check(struct replica *replica, bool checks)
{
    replica->said.checks = checks;
}

void replica_check_finish(struct replica *replica)
{
    free(replica->said.of);
    free(replica->said.before);
}

/* ---- keys ---- */

static void check_key(void *context, struct live_request *r, int64_t key)
{
    struct replica *replica = context;
    const struct module *order = &replica->fixed.modules[IFL_ORDER];
    struct ifl_error error;
    replica_look_up(replica, r);
    const int64_t now = replica_rank(replica, r);
    if (now == key)
        return;
    ifl_fail(&error, IFL_E_POLICY,
             "order policy %s says that its keys stand (`keys`), and the key of request %zu was "
             "%lld and is %lld in step %llu at %.9f s",
             order->policy->name, r->row, (long long)key, (long long)now,
             (unsigned long long)replica->view.step, ifl_s_from_ns(replica->view.now_ns));
    plan_break(&replica->plan, &error);
}

IFL_APART static void check_keys(struct replica *replica)
{
    if (!replica->ranks.ranks_stale)
        waiting_each(&replica->here.waiting, check_key, replica);
    for (int which = 0; which < N_RANKED; which++)
        replica_each_standing(replica, &replica->ranks.by_rank[which], check_key);
}

void replica_check_keys(struct replica *replica)
{
    if (IFL_RARE(replica->said.checks))
        check_keys(replica);
}

/* ---- answers ---- */

void replica_say(struct replica *replica, const struct module *module, uint64_t question,
                 int64_t answer)
{
    ifl_assert(replica->said.checks);
    struct said_list *said = &replica->said;
    if (said->n == said->cap) {
        const size_t cap = said->cap ? 2 * said->cap : 256;
        ifl_require(array_grow(&said->of, said->n, cap, sizeof *said->of) == 0);
        ifl_require(array_grow(&said->before, said->n_before, cap, sizeof *said->before) == 0);
        said->cap = cap;
    }
    said->of[said->n++] = (struct said){module, question, answer};
}

IFL_APART void replica_forget_said(struct replica *replica)
{
    struct said_list *said = &replica->said;
    struct said *of = said->of;
    said->of = said->before;
    said->before = of;
    said->n_before = said->n;
    said->n = 0;
}

/* The first answer that differs from that of the plan before to the same question. */
static const struct said *first_other_answer(const struct said_list *said)
{
    for (size_t i = 0; i < said->n && i < said->n_before; i++) {
        const struct said *now = &said->of[i], *before = &said->before[i];
        if (now->module != before->module || now->question != before->question)
            return NULL;
        if (now->answer != before->answer)
            return now;
    }
    return NULL;
}

int replica_blame(const struct replica *replica, struct ifl_error *error)
{
    const struct said *other = first_other_answer(&replica->said);
    const double now_s = ifl_s_from_ns(replica->view.now_ns);
    if (!other)
        return ifl_fail(error, IFL_E_POLICY,
                        "batching policy %s promised to repeat its step and planned another at "
                        "%.9f s",
                        replica->fixed.modules[IFL_BATCHING].policy->name, now_s);
    return ifl_fail(error, IFL_E_POLICY,
                    "%s policy %s said that its answers stand (`steady`), and answered otherwise "
                    "at %.9f s",
                    module_kind_name(other->module->policy->kind), other->module->policy->name,
                    now_s);
}
