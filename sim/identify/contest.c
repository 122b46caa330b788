#include "identify/contest.h"

#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/data.h"
#include "config/other_preset.h"

/* One that is seen to lose more gains too little by a fit of its own. */
static const double least_seen = -1.5;
/* Two models with latencies that differ by less, as a loss in the scales of the residuals, do not
 * differ by the gain that a rival must have. If a rival explains a part rho of the standard
 * deviation, its gain in a latency is -log(1 - rho^2) / 2, and the least loss is half of rho^2. */
static const double least_apart = 0.3;
/* Latencies that differ by less, in nineteen of twenty requests, are of one model. */
static const double most_alike = 0.002;
/* What a request that one of two models cannot serve counts for, as in residual_of. */
static const double unserved = 20;

/* ---- flights ---- */

static int open_latencies(struct latencies *latencies, size_t n, struct ifl_error *error)
{
    latencies->n = n;
    for (int l = 0; l < CONTEST_COMPARED; l++)
        if (!(latencies->s[l] = malloc((n + 1) * sizeof(double))))
            return ifl_fail_nomem(error);
    return 0;
}

static void close_latencies(struct latencies *latencies)
{
    for (int l = 0; l < CONTEST_COMPARED; l++)
        free(latencies->s[l]);
}

static int fly(struct contest *contest, const struct config *config, const double value[],
               struct latencies *flown, struct ifl_error *error)
{
    struct residuals *residuals = &contest->quest->residuals;
    struct trial_setting setting = contest->quest->options->setting;
    setting.config = config;
    for (size_t k = 0; k < residuals->n_recordings; k++)
        if (trial_fly_fitted(&setting, &residuals->recordings[k], value, 0, &residuals->trials[k],
                             error) < 0)
            return error->code;
    for (size_t j = 0; j < flown->n; j++) {
        const struct fitted_row *row = &residuals->rows[j * RESIDUAL_SHIFTS];
        for (int l = 0; l < CONTEST_COMPARED; l++)
            flown->s[l][j] = residuals->trials[row->recording].of[l][row->row];
    }
    return 0;
}

/* ---- comparisons without levels ---- */

static void leave_level(double *r, size_t n)
{
    const double middle = n ? gsl_stats_median(r, 1, n) : 0;
    for (size_t i = 0; i < n; i++)
        r[i] -= middle;
}

/* The residuals that there are. */
static size_t take_residuals(struct contest *contest, const struct latencies *flown, enum latency l)
{
    size_t n = 0;
    for (size_t j = 0; j < flown->n; j++) {
        const double r =
            residual_of(&contest->quest->residuals, l, j * RESIDUAL_SHIFTS, flown->s[l][j]);
        if (!isnan(r))
            contest->r[n++] = r;
    }
    leave_level(contest->r, n);
    return n;
}

/* The negative logarithm of the likelihood of a request, in the mean. */
static double lost_without_levels(struct contest *contest, const struct latencies *flown,
                                  double scale[CONTEST_COMPARED])
{
    double sum = 0;
    for (enum latency l = TTFT; l <= TPOT; l++) {
        size_t n = take_residuals(contest, flown, l);
        scale[l] = robust_scale(contest->r, n);
        n = take_residuals(contest, flown, l); /* robust_scale has overwritten them */
        for (size_t i = 0; i < n; i++)
            sum += loss(contest->r[i] / scale[l]) + log(scale[l]);
    }
    return sum / (double)flown->n;
}

/* How far two models are apart, in the scales of what the base leaves. */
static double apart(struct contest *contest, const struct latencies *a, const struct latencies *b)
{
    double sum = 0;
    for (enum latency l = TTFT; l <= TPOT; l++) {
        size_t n = 0;
        for (size_t j = 0; j < a->n; j++) {
            const double by = log(a->s[l][j] / b->s[l][j]);
            const bool one = isfinite(a->s[l][j]) != isfinite(b->s[l][j]);
            if (one || isfinite(by))
                contest->r[n++] = one ? log(unserved) : by;
        }
        leave_level(contest->r, n);
        for (size_t i = 0; i < n; i++)
            sum += loss(contest->r[i] / contest->base_scale[l]);
    }
    return sum / (double)a->n;
}

/* True of models that the runs do not show apart. */
static bool is_one(const struct latencies *a, const struct latencies *b)
{
    size_t n_off = 0;
    for (size_t j = 0; j < a->n; j++)
        for (int l = 0; l < CONTEST_COMPARED; l++) {
            const bool neither = !isfinite(a->s[l][j]) && !isfinite(b->s[l][j]);
            const bool near = fabs(log(a->s[l][j] / b->s[l][j])) <= most_alike; /* NaN: not */
            n_off += !neither && !near;
        }
    return n_off <= a->n / 20;
}

static int fly_candidate(struct contest *contest, struct candidate *candidate,
                         struct ifl_error *error)
{
    double scale[CONTEST_COMPARED];
    const int rc = fly(contest, &candidate->config, candidate->value, &candidate->flown, error);
    if (rc == 0)
        candidate->seen =
            contest->base_lost - lost_without_levels(contest, &candidate->flown, scale);
    return rc;
}

/* ---- a candidate ---- */

static int open_candidate(const struct contest *contest, struct candidate **candidate,
                          struct ifl_error *error)
{
    *candidate = calloc(1, sizeof **candidate);
    return *candidate ? open_latencies(&(*candidate)->flown, contest->base.n, error)
                      : ifl_fail_nomem(error);
}

static void drop(struct candidate *candidate)
{
    if (!candidate)
        return;
    if (!candidate->is_own)
        config_finish(&candidate->config);
    close_latencies(&candidate->flown);
    free(candidate);
}

static bool has_module(const struct config *config, enum ifl_kind kind, const char *name)
{
    const struct ifl_policy *policy = config->serving.modules[kind].policy;
    return policy && strcmp(policy->name, name) == 0;
}

/* True if the server computes prompts for another one, or gets them from it. */
static bool has_partner(const struct config *config)
{
    return has_module(config, IFL_BATCHING, "loading") || has_module(config, IFL_ADMIT, "reserved");
}

/* Speculation, K/V that is given up and tiers are features of a server, not of its scheduler. */
static bool is_alike_in_kind(const struct config *a, const struct config *b)
{
    return has_partner(a) == has_partner(b) && config_speculates(a) == config_speculates(b) &&
           config_gives_up_anywhere(a) == config_gives_up_anywhere(b) &&
           config_has_tiers(a) == config_has_tiers(b);
}

/* Blocks of the candidate that hold as many tokens as those of the base. */
static double same_tokens(const struct contest *contest, const struct config *config)
{
    const double tokens =
        contest->base_value[BLOCKS] * contest->base_config->serving.kv.block_tokens;
    return fmax(1, floor(tokens / config->serving.kv.block_tokens));
}

/* The base's numbers. A pool that is given has as many tokens as with the configuration, another is
 * as large as the preset makes it. A factor of prompts' kernels that was found may stand for a
 * wrong preset. */
static int place(const struct contest *contest, const struct config *config, double value[],
                 struct ifl_error *error)
{
    const struct quest *quest = contest->quest;
    struct machine *machine = malloc(sizeof *machine);
    struct ifl_limits limits;
    const int rc = machine ? quest_load_machine(config, quest->options->setting.profiles, machine,
                                                &limits, error)
                           : ifl_fail_nomem(error);
    free(machine);
    memcpy(value, contest->base_value, N_PARAMETERS * sizeof *value);
    value[PROMPT_FRAC] = quest->found->start[PROMPT_FRAC];
    if (quest->has_blocks)
        value[BLOCKS] = same_tokens(contest, config);
    else if (rc == 0)
        value[BLOCKS] = limits.n_blocks;
    return rc;
}

static int read_candidate(const struct contest *contest, const char *name,
                          struct candidate *candidate, struct ifl_error *error)
{
    const struct identify_options *options = contest->quest->options;
    const struct config *own = options->setting.config;
    struct config *config = &candidate->config;
    int rc = study_read_other_preset(options->study, name, config, error);
    if (rc < 0)
        return rc;
    snprintf(candidate->name, sizeof candidate->name, "%s", name);
    memcpy(config->serving.engine, own->serving.engine, sizeof config->serving.engine);
    candidate->is_first_come = has_module(config, IFL_ORDER, "fcfs");
    if (!is_alike_in_kind(config, own))
        return ifl_fail(error, IFL_E_INPUT, "another kind of server");
    return place(contest, config, candidate->value, error);
}

/* ---- the candidates ---- */

/* A list that has sglang says nothing more by sglang-lpm. */
static bool is_listed(const char *list, const char *name)
{
    for (size_t n; *list; list += n + (list[n] == ',')) {
        list += strspn(list, " ");
        n = strcspn(list, ",");
        if (strncmp(list, name, n) == 0 && (name[n] == '\0' || name[n] == '-'))
            return true;
    }
    return false;
}

static void list(struct candidate *kept, const char *name)
{
    const size_t at = strlen(kept->alike), room = sizeof kept->alike - at;
    if (!is_listed(kept->name, name) && !is_listed(kept->alike, name) && strlen(name) + 3 < room)
        snprintf(kept->alike + at, room, "%s%s", at ? ", " : "", name);
}

/* Of equals those that serve in the order of arrival are named, if there are any: a system's plain
 * name first. */
static void add_alike(struct candidate *kept, const struct candidate *candidate)
{
    char other[sizeof kept->name];
    if (kept->is_own || candidate->is_first_come < kept->is_first_come)
        return;
    snprintf(other, sizeof other, "%s", candidate->name);
    if (candidate->is_first_come > kept->is_first_come) {
        kept->is_first_come = true;
        kept->alike[0] = '\0';
        snprintf(kept->name, sizeof kept->name, "%s", other);
    } else if (strlen(other) < strlen(kept->name)) {
        snprintf(other, sizeof other, "%s", kept->name);
        snprintf(kept->name, sizeof kept->name, "%s", candidate->name);
    }
    list(kept, other);
}

/* True of one that is another's equal, which is noted. */
static bool is_known(struct contest *contest, const struct candidate *candidate)
{
    for (size_t i = 0; i < contest->n_kept; i++) {
        if (!is_one(&contest->kept[i]->flown, &candidate->flown))
            continue;
        add_alike(contest->kept[i], candidate);
        return true;
    }
    return false;
}

/* Takes the candidate. Of equals the first stays before the others; what was fitted stays. */
static void rank(struct contest *contest, struct candidate *candidate)
{
    size_t at = contest->n_kept;
    while (at > 0 && contest->kept[at - 1]->seen < candidate->seen &&
           !contest->kept[at - 1]->is_fitted && !contest->kept[at - 1]->is_own)
        at--;
    if (at == CONTEST_KEPT) {
        drop(candidate);
        return;
    }
    if (contest->n_kept == CONTEST_KEPT)
        drop(contest->kept[--contest->n_kept]);
    memmove(&contest->kept[at + 1], &contest->kept[at],
            (contest->n_kept - at) * sizeof(struct candidate *));
    contest->kept[at] = candidate;
    contest->n_kept++;
}

/* A preset that cannot be flown so, of a model that it has no room for say, is none. `found_pool`:
 * with the pool that was found, not with the preset's own. */
static int consider(struct contest *contest, const char *name, bool found_pool,
                    struct ifl_error *error)
{
    struct candidate *candidate;
    int rc = open_candidate(contest, &candidate, error);
    if (rc == 0)
        rc = read_candidate(contest, name, candidate, error);
    if (rc == 0 && found_pool)
        candidate->value[BLOCKS] = same_tokens(contest, &candidate->config);
    if (rc == 0)
        rc = fly_candidate(contest, candidate, error);
    if (rc == 0 && candidate->seen > least_seen && !is_known(contest, candidate) &&
        apart(contest, &contest->base, &candidate->flown) > least_apart)
        rank(contest, candidate);
    else
        drop(candidate);
    return contest_ends(rc) ? rc : 0;
}

/* The search may have ended in a pool that the configuration's own rule is far from, or early: what
 * candidates gain by a fit of the same kind counts. */
static int consider_own(struct contest *contest, struct ifl_error *error)
{
    struct candidate *own;
    int rc = open_candidate(contest, &own, error);
    if (rc == 0) {
        own->is_own = true;
        own->config = *contest->quest->options->setting.config;
        rc = place(contest, &own->config, own->value, error);
    }
    if (rc == 0)
        rc = fly_candidate(contest, own, error);
    if (rc == 0)
        rank(contest, own);
    else
        drop(own);
    return contest_ends(rc) ? rc : 0;
}

static int consider_all(struct contest *contest, struct ifl_error *error)
{
    const struct quest *quest = contest->quest;
    const bool has_found = !quest->has_blocks && quest->fit.is_free[BLOCKS];
    struct name_list names;
    int rc = data_names("serving", &names, error);
    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        rc = consider(contest, names.of[i], false, error);
        if (rc == 0 && has_found)
            rc = consider(contest, names.of[i], true, error);
    }
    name_list_free(&names);
    return contest_ends(rc) ? rc : 0; /* where there are no presets, none is tried */
}

static int take_base(struct contest *contest, const struct config *config, const double value[],
                     struct ifl_error *error)
{
    contest->base_config = config;
    contest->base_value = value;
    const int rc = fly(contest, config, value, &contest->base, error);
    if (rc == 0)
        contest->base_lost = lost_without_levels(contest, &contest->base, contest->base_scale);
    return rc;
}

void contest_free(struct contest *contest, const struct quest *quest)
{
    for (enum parameter p = 0; p < N_PARAMETERS; p++)
        contest->is_free[p] =
            !fit_is_profiled(p) && (quest->fit.is_free[p] || quest->found->of[p].state == AT_BOUND);
}

int contest_open(struct contest *contest, struct quest *quest, struct ifl_error *error)
{
    const size_t n = quest->residuals.n / RESIDUAL_SHIFTS;
    *contest = (struct contest){.quest = quest, .r = malloc((n + 1) * sizeof(double))};
    contest_free(contest, quest);
    int rc = contest->r ? open_latencies(&contest->base, n, error) : ifl_fail_nomem(error);
    if (rc == 0)
        rc = take_base(contest, quest->options->setting.config, quest->fit.value, error);
    if (rc == 0)
        rc = consider_own(contest, error);
    return rc == 0 ? consider_all(contest, error) : rc;
}

int contest_again(struct contest *contest, struct ifl_error *error)
{
    size_t n = 1;
    for (size_t i = 1; i < contest->n_kept; i++)
        if (contest->kept[i]->is_own)
            contest->kept[n++] = contest->kept[i];
        else
            drop(contest->kept[i]);
    contest->n_kept = n;
    struct candidate *best = contest->kept[0];
    int rc = take_base(contest, &best->config, best->value, error);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = fly_candidate(contest, contest->kept[i], error);
    return rc == 0 ? consider_all(contest, error) : rc;
}

void contest_close(struct contest *contest)
{
    for (size_t i = 0; i < contest->n_kept; i++)
        drop(contest->kept[i]);
    close_latencies(&contest->base);
    free(contest->r);
}
