#include "cost/draft.h"

#include <math.h>
#include <stdlib.h>

#include "cost/kind.h"
#include "inflight/minmax.h"

struct drafting {
    struct cost base;
    struct cost *target, *pass; /* pass NULL: a look-up */
    int32_t passes, width;
    double pass_s, seq_s, step_s;
};

/* The n-th pass of a step, from 0. */
static void pass_totals(const struct drafting *drafting, const struct ifl_step_totals *step,
                        bool first, struct ifl_step_totals *pass)
{
    const int32_t n_seqs = step->n_draft_seqs, n_rows = n_seqs * drafting->width;
    *pass =
        (struct ifl_step_totals){.n_tokens = n_rows, .n_sampled = n_rows, .n_decode_seqs = n_seqs};
    if (step->n_decode_seqs > 0)
        pass->decode_context = step->decode_context * n_seqs / step->n_decode_seqs;
    if (!first)
        return;
    pass->n_tokens += step->n_prefill_tokens;
    pass->n_prefill_tokens = step->n_prefill_tokens;
    pass->n_prefill_seqs = step->n_prefill_seqs;
    pass->prefill_q_kv = step->prefill_q_kv;
    pass->prefill_q_q = step->prefill_q_q;
    pass->prefill_kv_64 = step->prefill_kv_64;
    pass->max_prefill_kv = step->max_prefill_kv;
}

static double passes_s(struct drafting *drafting, const struct ifl_step_totals *totals)
{
    struct ifl_step_totals pass;
    const int32_t n_own = drafting->passes > 0 ? drafting->passes : totals->max_drafts;
    const int32_t n = totals->n_draft_seqs > 0 ? n_own : totals->n_prefill_tokens > 0;
    double s = 0;
    if (n == 0)
        return 0;
    pass_totals(drafting, totals, true, &pass);
    s += drafting->pass->step_s(drafting->pass, &pass);
    if (n > 1) {
        pass_totals(drafting, totals, false, &pass);
        s += (n - 1) * drafting->pass->step_s(drafting->pass, &pass);
    }
    return s;
}

static double draft_s(struct drafting *drafting, const struct ifl_step_totals *totals)
{
    const bool drafts = totals->n_draft_seqs > 0;
    const double host_s = drafting->seq_s * totals->n_draft_seqs + (drafts ? drafting->step_s : 0);
    if (drafting->pass)
        return host_s + passes_s(drafting, totals);
    return host_s + (drafts ? drafting->pass_s : 0);
}

static double drafting_step_s(struct cost *cost, const struct ifl_step_totals *totals)
{
    struct drafting *drafting = (struct drafting *)cost;
    return drafting->target->step_s(drafting->target, totals) + draft_s(drafting, totals);
}

static double drafting_group_s(struct cost *cost, const struct ifl_step_totals *const *of, size_t n)
{
    struct drafting *drafting = (struct drafting *)cost;
    double longest_s = 0;
    for (size_t i = 0; i < n; i++)
        longest_s = fmax(longest_s, draft_s(drafting, of[i]));
    return drafting->target->group_s(drafting->target, of, n) + longest_s;
}

static int why_not(const struct cost *cost, const struct ifl_step_totals *totals,
                   struct ifl_error *error)
{
    return cost_why_not(((const struct drafting *)cost)->target, totals, error);
}

static void finish(struct cost *cost)
{
    struct drafting *drafting = (struct drafting *)cost;
    cost_destroy(drafting->target);
    cost_destroy(drafting->pass);
}

/* Layers of the target, with windows and states in proportion: none of a head without layers. */
static void cut_layers(const struct model *target, int32_t layers, struct model *head)
{
    model_stage(target, ifl_min(ifl_max(layers, 1), target->layers), head);
    head->layers = layers;
    head->window_layers = ifl_min(head->window_layers, layers);
    head->index_layers = ifl_min(head->index_layers, layers);
}

/* A layer of experts becomes a dense one of the columns that a token uses. */
static void make_dense(struct model *model)
{
    if (model->n_experts > 0) {
        const int64_t columns = (int64_t)model->d_ffn * model->experts_per_token *
                                model_expert_width(model) / model->d_model;
        model->d_ffn = (int32_t)columns + model->shared_experts * model->d_ffn_shared;
        model->plain_frac[MODEL_PART_MLP] = model->plain_frac[MODEL_PART_EXPERTS];
    }
    model->n_experts = model->experts_per_token = model->n_rank_experts = 0;
    model->shared_experts = model->first_dense_layers = model->d_ffn_dense = 0;
    model->bare_layers = model->d_expert = 0;
}

/* What a pass computes. Its time on the host is that of its layers and pass_s. */
static struct cost *create_pass(const struct draft_cost *draft, struct ifl_error *error)
{
    struct model model = *draft->model;
    struct platform platform = *draft->platform;
    struct parallel parallel = *draft->parallel;
    struct host_times *host = &platform.deployment.host;
    host->step_s = draft->pass_s;
    host->seq_s = host->floor_s = 0;
    if (draft->proposer == PROPOSER_HEAD) {
        cut_layers(draft->model, draft->layers, &model);
        model.vocab = ifl_max((int32_t)(model.vocab * draft->lm_head_frac), 1);
        make_dense(&model);
    }
    if (model.n_experts == 0) /* the groups of ranks share nothing of it */
        parallel.data = parallel.expert = 1;
    return cost_create_roofline(&model, &platform, &parallel, draft->block_tokens, error);
}

struct cost *cost_create_drafting(struct cost *target, const struct draft_cost *draft,
                                  struct ifl_error *error)
{
    struct drafting *drafting = calloc(1, sizeof *drafting);
    if (!drafting) {
        cost_destroy(target);
        ifl_fail_nomem(error);
        return NULL;
    }
    *drafting = (struct drafting){.base = {.step_s = drafting_step_s,
                                           .group_s = target->group_s ? drafting_group_s : NULL,
                                           .why_not = target->why_not ? why_not : NULL,
                                           .finish = finish},
                                  .target = target,
                                  .passes = draft->passes,
                                  .width = draft->width,
                                  .pass_s = draft->pass_s,
                                  .seq_s = draft->seq_s,
                                  .step_s = draft->step_s};
    if (draft->proposer != PROPOSER_LOOKUP)
        drafting->pass = create_pass(draft, error);
    if (draft->proposer == PROPOSER_LOOKUP || drafting->pass)
        return &drafting->base;
    cost_destroy(&drafting->base);
    return NULL;
}
