/* The checking mode (serving.check_steady).
 *
 * In each plan every key that, according to the order, has not changed is computed again. Every
 * promised step is planned as well. The questions to modules within a plan and their answers are
 * recorded. No question may change what a module is shown. If a promised plan differs, the run ends
 * with the name of a module: of the one that gave another answer to the same question, or else of
 * the batching module, which asked another question.
 *
 * If several steps may be in flight, promises hold for all of them together: each step begins again
 * when it ends (rotation.c). The plan after such an end must therefore be that of the step that
 * ended, and any other plan before the next end must be empty. */
#include "replica/replica_parts.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/fingerprint.h"
#include "replica/rotation.h"
#include "replica/step_builder.h"

void replica_check(struct replica *replica, bool checks)
{
    replica->said.checks = checks;
}

void replica_check_finish(struct replica *replica)
{
    struct said_list *said = &replica->said;
    for (size_t i = 0; said->flown && i < replica->in_flight.depth; i++)
        free(said->flown[i].of);
    free(said->flown);
    free(said->now.of);
    free(said->before.of);
    free(said->made.of);
    free(said->repeats);
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
    struct said_plan *now = &replica->said.now;
    if (now->n == now->cap) {
        const size_t cap = now->cap ? 2 * now->cap : 256;
        ifl_require(array_grow(&now->of, now->n, cap, sizeof *now->of) == 0);
        now->cap = cap;
    }
    now->of[now->n++] = (struct said){module, question, answer};
}

/* ---- what modules may only read ---- */

/* Counts that steps change are brought up to date as a module reads them, and are left out. */
uint64_t replica_print_of(const struct replica *replica, const struct ifl_request *const *of,
                          size_t n)
{
    uint64_t print = fingerprint(FINGERPRINT_OF_NOTHING, &replica->view, sizeof replica->view);
    print = fingerprint(print, &replica->fixed.limits, sizeof replica->fixed.limits);
    for (size_t i = 0; i < n; i++)
        print = fingerprint(print, of[i], offsetof(struct ifl_request, stale));
    return print | 1;
}

void replica_compare_print(struct replica *replica, const struct module *module, uint64_t before,
                           const struct ifl_request *const *of, size_t n)
{
    if (replica_print_of(replica, of, n) != before)
        step_breach_by(replica, module->policy,
                       "it changes a request, the limits or the view, which it may only read");
}

/* ---- answers of the plan before ---- */

static void exchange(struct said_plan *a, struct said_plan *b)
{
    const struct said_plan was = *a;
    *a = *b;
    *b = was;
}

IFL_APART void replica_check_plan(struct replica *replica, int64_t now_ns, bool stands)
{
    struct said_list *said = &replica->said;
    if (!replica_overlaps(replica))
        exchange(&said->now, &said->before);
    said->now.n = 0;
    if (!stands || (said->turn == TURN_RESTS && now_ns > said->promise.until_ns))
        said->turn = TURN_OPEN;
}

static bool same_question(const struct said *a, const struct said *b)
{
    return a->module == b->module && a->question == b->question;
}

/* The first answer of the plan that differs from that of an earlier plan to the same question, as
 * long as the plans ask the same. */
static const struct said *first_other_answer(const struct said_plan *earlier,
                                             const struct said_plan *now)
{
    for (size_t i = 0; i < now->n && i < earlier->n; i++) {
        if (!same_question(&now->of[i], &earlier->of[i]))
            return NULL;
        if (now->of[i].answer != earlier->of[i].answer)
            return &now->of[i];
    }
    return NULL;
}

/* other: the answer that made the difference; NULL: none did. */
static int blame(const struct replica *replica, const struct said *other, struct ifl_error *error)
{
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

/* The first number of guesses that differs from that of the plan before for the same request, or
 * for all. The plan gives the same tokens with other guesses. */
static const struct said *first_other_guess(const struct said_list *said)
{
    size_t at = 0;
    for (size_t i = 0; i < said->now.n; i++) {
        const struct said *now = &said->now.of[i], *before = said->before.of;
        if (now->module->policy->kind != IFL_DRAFT)
            continue;
        while (at < said->before.n &&
               (before[at].module != now->module || before[at].question != now->question))
            at++;
        if (at < said->before.n && before[at].answer != now->answer)
            return now;
    }
    return NULL;
}

/* The same in any order. */
static uint64_t print_of_row(const struct live_request *r)
{
    return fingerprint(FINGERPRINT_OF_NOTHING, &r->row, sizeof r->row);
}

static uint64_t print_of_cohort(const struct replica *replica)
{
    uint64_t print = 0;
    FOR_EACH_LIVE (r, &replica->here.cohort.members, AMONG_PEERS)
        print += print_of_row(r);
    return print;
}

/* Those of the cohort that a plan passes over leave it only as the plan is settled. */
static uint64_t print_of_plan(const struct replica *replica)
{
    uint64_t print = 0;
    if (replica->plan.ready_all)
        return print_of_cohort(replica);
    for (size_t i = 0; i < replica->plan.n_planned; i++)
        if (replica->plan.planned[i].r)
            print += print_of_row(replica->plan.planned[i].r);
    return print;
}

/* The members that are left. All of them take part if a promise outlives an end, and in a promise
 * that the loop would use. */
static uint64_t print_of_promised(const struct replica *replica)
{
    const struct tested_promise *of = &replica->said.promise_of;
    const bool all_run = replica->here.running.n == of->n_running;
    return of->only_tested && all_run ? of->members : print_of_cohort(replica);
}

struct promised_step replica_promised_step(const struct replica *replica)
{
    const int32_t n_new = replica_growing_blocks(replica);
    const bool counts = replica->leaving.n_ended == 0 && !replica->said.promise_of.only_tested;
    return (struct promised_step){
        .padding = replica->plan.padding,
        .n_free_blocks = counts ? replica->kv.device.n_free - n_new : -1,
        .members = print_of_promised(replica),
        .promise = replica->plan.promise,
        .of = replica->said.promise_of,
    };
}

/* Member by member: the bytes between members are anything. */
static bool same_padding(const struct ifl_padding *a, const struct ifl_padding *b)
{
    return a->n_prefill_tokens == b->n_prefill_tokens && a->prefill_q_q == b->prefill_q_q &&
           a->n_decode_seqs == b->n_decode_seqs && a->decode_context == b->decode_context &&
           a->n_draft_tokens == b->n_draft_tokens;
}

/* Of several answers to the same question (an order names one request after another) the answer in
 * its turn. */
static bool is_answered_anew(const struct said_plan *earlier, const struct said_plan *now, size_t i)
{
    size_t n_before = 0;
    for (size_t k = 0; k < i; k++)
        n_before += same_question(&now->of[k], &now->of[i]);
    for (size_t k = 0; k < earlier->n; k++)
        if (same_question(&earlier->of[k], &now->of[i]) && n_before-- == 0)
            return earlier->of[k].answer != now->of[i].answer;
    return false;
}

/* True if a module without `steady`, which may do so, answers otherwise than in an earlier plan. */
static bool answers_anew(const struct said_plan *earlier, const struct said_plan *now)
{
    bool anew = false;
    for (size_t i = 0; i < now->n && !anew; i++)
        anew = !now->of[i].module->policy->steady && is_answered_anew(earlier, now, i);
    return anew;
}

/* As blame. Another plan is no breach if a module explains it that has promised nothing. */
static int judge(const struct replica *replica, const struct tested_promise *of,
                 const struct said *other, struct ifl_error *error)
{
    const struct said_list *said = &replica->said;
    const bool may = of->only_tested && (answers_anew(&said->before, &said->now) ||
                                         (of->goes_on && answers_anew(&said->made, &said->now)));
    return may ? 0 : blame(replica, other, error);
}

static void go_on_behind(struct replica *replica, const struct promised_step *promised)
{
    struct said_list *said = &replica->said;
    said->tested |= promised->of.promising;
    said->promise_of = promised->of;
    if (!promised->of.goes_on)
        exchange(&said->before, &said->made);
    said->promise_of.goes_on = true;
    plan_promise(&replica->plan, promised->promise);
    plan_use_promise(&replica->plan, 1);
}

int replica_check_promised(struct replica *replica, const struct promised_step *promised,
                           struct ifl_error *error)
{
    const struct tested_promise *of = &promised->of;
    const bool ticks =
        of->only_tested ? replica_only_decodes(replica) : replica_only_ticks(replica);
    const bool same = same_padding(&replica->plan.padding, &promised->padding) && ticks &&
                      print_of_plan(replica) == promised->members;
    const struct said *guess = first_other_guess(&replica->said);
    if (!same)
        return judge(replica, of, first_other_answer(&replica->said.before, &replica->said.now),
                     error);
    if (guess)
        return judge(replica, of, guess, error);
    if (promised->n_free_blocks >= 0 && replica->kv.device.n_free != promised->n_free_blocks)
        return blame(replica, NULL, error);
    go_on_behind(replica, promised);
    return 1;
}

/* ---- promises that are tested, also where the loop would not use them ---- */

static unsigned bit_of(const struct replica *replica, const struct module *module)
{
    return 1u << (module - replica->fixed.modules);
}

/* The batching module may change its own plan in a hook of steps. */
static bool batching_lacks(const struct replica *replica)
{
    const struct module *lacks = replica->said.lacks;
    return lacks && lacks->policy->kind == IFL_BATCHING;
}

/* Cuts the promise to what modules with `steady` say. Returns the modules that promise. */
static unsigned cut_by_steady(struct replica *replica, struct ifl_promise *promise)
{
    const struct listeners *on = &replica->on;
    unsigned promising = 1u << IFL_BATCHING;
    for (uint32_t i = 0; i < on->n_bounds && promise->n_steps > 0; i++) {
        const struct module *module = on->bounds[i].module;
        if (!(on->bounds[i].asked & replica->plan.step.asked))
            continue;
        if (module->policy->steady) {
            replica_cut_promise(replica, module, promise);
            promising |= bit_of(replica, module);
            continue;
        }
        promise->to_the_last = false;
        replica->said.lacks = batching_lacks(replica) ? replica->said.lacks : module;
    }
    return promise->n_steps > 0 ? promising : 0;
}

void replica_test_promise(struct replica *replica, struct ifl_promise made)
{
    struct said_list *said = &replica->said;
    const bool used = replica->plan.promise.n_steps > 0;
    said->promise_of = (struct tested_promise){.only_tested = !used};
    if (made.n_steps <= 0 || !replica_only_decodes(replica) || replica_voids(replica))
        return;
    said->promise_of.promising = cut_by_steady(replica, &made);
    said->promised |= said->promise_of.promising;
    said->used |= used ? said->promise_of.promising : 0;
    if (used || made.n_steps <= 0 || replica_overlaps(replica) || batching_lacks(replica))
        return;
    said->promise_of.n_running = replica->here.running.n - replica->leaving.n_ended;
    said->promise_of.members = print_of_plan(replica);
    replica_promise(replica, made);
}

const char *replica_why_untested(const struct replica *replica, char *text, size_t n_text)
{
    const struct module *lacks = replica->said.lacks;
    const bool overlaps = replica_overlaps(replica);
    if (lacks && (overlaps || batching_lacks(replica)))
        snprintf(text, n_text, "%s %s has no `steady`", module_kind_name(lacks->policy->kind),
                 lacks->policy->name);
    else if (overlaps && !replica->kv.device.tallied)
        snprintf(text, n_text,
                 "with several steps in flight, blocks have numbers (for a prefix "
                 "cache, work.csv, a timeline or an engine)");
    else
        snprintf(text, n_text, "something else happened before each promised step");
    return text;
}

/* ---- several steps in flight ---- */

/* An array as long as the steps in flight may be, for each of which a plan was made. */
static struct said_plan *said_of(struct replica *replica, size_t i)
{
    struct said_list *said = &replica->said;
    const struct in_flight *in_flight = &replica->in_flight;
    if (!said->flown)
        ifl_require((said->flown = calloc(in_flight->depth, sizeof *said->flown)) != NULL);
    return &said->flown[(in_flight->oldest + i) % in_flight->depth];
}

IFL_APART void replica_check_push(struct replica *replica)
{
    exchange(&replica->said.now, said_of(replica, replica->in_flight.n_flown - 1));
}

/* What the oldest step is when it begins again. */
static void expect_again(struct replica *replica)
{
    struct said_list *said = &replica->said;
    const struct flown *oldest = in_flight_at(&replica->in_flight, 0);
    if (said->cap_repeats < oldest->n_planned) {
        said->cap_repeats = 2 * oldest->n_planned;
        ifl_require(array_grow(&said->repeats, 0, said->cap_repeats, sizeof *said->repeats) == 0);
    }
    said->n_repeats = oldest->n_planned;
    for (size_t i = 0; i < oldest->n_planned; i++)
        said->repeats[i] = oldest->planned[i].r;
    said->promise = oldest->promise;
    said->step = oldest->desc.step;
    said->slot = oldest->slot;
}

/* Behind steps that end at the same time one plan is made for the requests of all: the second one
 * finds the promise of the first one open. */
IFL_APART void replica_check_pull(struct replica *replica, int64_t end_ns)
{
    struct said_list *said = &replica->said;
    const bool repeats = said->turn != TURN_REPEATS && rotation_repeats(replica, end_ns);
    exchange(&said->before, said_of(replica, 0));
    if (repeats)
        expect_again(replica);
    said->turn = repeats ? TURN_REPEATS : TURN_OPEN;
}

static bool plans_nothing(const struct plan *plan)
{
    const struct ifl_step *step = &plan->step;
    return step->n_tokens == 0 && step->n_started == 0 && step->n_preempted == 0 &&
           step->n_swapped_in == 0 && plan->n_rejected == 0;
}

static bool plans_again(const struct replica *replica)
{
    const struct said_list *said = &replica->said;
    const struct plan *plan = &replica->plan;
    if (!replica_only_ticks(replica) || plan->n_planned != said->n_repeats)
        return false;
    for (size_t i = 0; i < plan->n_planned; i++)
        if (plan->planned[i].r != said->repeats[i] || plan->planned[i].n != 1)
            return false;
    return true;
}

/* The promise goes on, shorter by the steps since; one without a bound stays so. */
static void go_on(struct replica *replica)
{
    struct ifl_promise promise = replica->said.promise;
    if (!rotation_is_unbounded(&promise))
        promise.n_steps -= (int32_t)(ifl_next_step(&replica->view) - replica->said.step);
    if (promise.n_steps > 0)
        plan_promise(&replica->plan, promise);
    replica->said.turn = TURN_RESTS;
}

IFL_APART void replica_check_turn(struct replica *replica)
{
    const struct said_list *said = &replica->said;
    struct ifl_error error;
    if (replica->plan.broken || said->turn == TURN_OPEN)
        return;
    const bool repeats = said->turn == TURN_REPEATS &&
                         (!replica->fixed.overlap.slots || said->slot == replica->view.slot);
    if (repeats ? plans_again(replica) : plans_nothing(&replica->plan)) {
        if (repeats) {
            replica->said.tested |= replica->said.used;
            go_on(replica);
        }
        return;
    }
    (void)blame(replica, repeats ? first_other_answer(&said->before, &said->now) : NULL, &error);
    plan_break(&replica->plan, &error);
}
