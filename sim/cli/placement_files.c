#include "cli/placement_files.h"

#include <csv.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/data.h"
#include "base/new_file.h"
#include "cli/capacity_cells.h"
#include "cli/options.h"
#include "inflight/minmax.h"

enum { NAME_BYTES = 64 * MAX_PLACED_POOLS };

/* ---- flights ---- */

static int fly(const struct study *study, const struct capacity_options *shared,
               struct choices *choices, struct choice *choice, struct ifl_error *error)
{
    const double target = study_placement(study)->target_rps;
    const size_t n = study_n_replications(study);
    struct capacity_options options = *shared;
    struct capacity *flown = calloc(1, sizeof *flown);
    struct config *configs = calloc(n, sizeof *configs);
    size_t n_read = 0;
    int code = flown && configs ? 0 : ifl_fail_nomem(error);
    while (code == 0 && n_read < n)
        if ((code = placement_read(study, choice->parts, n_read, &configs[n_read], error)) == 0)
            n_read++;
    options.configs = configs;
    options.n_replications = n;
    if (code == 0)
        code = capacity_fly_at(&options, target > 0 ? target : choice->rps, flown, error);
    if (code == 0) {
        choice->flown = flown->trials[0];
        choice->flown_rps = flown->trials[0].rate_rps;
        memcpy(choices->objectives, flown->objectives, sizeof choices->objectives);
        choices->n_objectives = flown->n_objectives;
    }
    while (n_read > 0)
        config_finish(&configs[--n_read]);
    free(configs);
    free(flown);
    return code;
}

static bool misses(const struct choice *choice)
{
    return choice->flown_rps > 0 && choice->flown.margin > 0;
}

int placement_settle(const struct study *study, const struct capacity_options *options,
                     const struct capacity_row *rows, struct choices *choices,
                     struct ifl_error *error)
{
    enum { MOST_MORE = 16 };
    const struct placement *placement = study_placement(study);
    int code = choices_find(placement, rows, choices, error);
    for (size_t i = 0; i < choices->n && code == 0; i++)
        if (choices->of[i].by_algorithm || choices->of[i].chosen)
            code = fly(study, options, choices, &choices->of[i], error);
    for (int i = 0; i < MOST_MORE && code == 0 && placement->target_rps > 0; i++) {
        const struct choice *chosen = choices_chosen(choices);
        if (!chosen || !misses(chosen) || !choices_grow(placement, rows, choices, &code, error))
            break;
        code = fly(study, options, choices, choices_chosen(choices), error);
    }
    return code;
}

/* ---- candidates.csv and placements.csv ---- */

static void put_part_names(FILE *out, const struct placement *placement)
{
    for (size_t i = 0; i < placement->n_pools; i++)
        fprintf(out, "%s_replicas,%s_tensor,%s_pipeline,", placement->pools[i].name,
                placement->pools[i].name, placement->pools[i].name);
}

static void put_parts(FILE *out, const struct placement *placement, const struct placed *parts)
{
    for (size_t i = 0; i < placement->n_pools; i++)
        if (parts[i].count > 0)
            fprintf(out, "%d,%d,%d,", parts[i].count, parts[i].tensor, parts[i].pipeline);
        else
            fprintf(out, ",,,");
}

static bool is_best(const struct placement *placement, const struct capacity_row *rows, size_t i)
{
    const bool apart = placement->config.search == PLACEMENT_APART;
    for (size_t pool = 0; pool < (apart ? placement->n_pools : 1); pool++)
        if (choice_best(placement, rows, pool) == i)
            return true;
    return false;
}

static void put_candidate(FILE *out, const struct placement *placement,
                          const struct capacity_row *rows, size_t i)
{
    const struct capacity_row *row = &rows[i];
    const struct placed *parts = placement_at(placement, i);
    const int32_t n_gpus = placement_gpus(placement, parts);
    const double usd = placement_usd_per_hour(placement, parts);
    const bool known = row->error.code == 0;
    const double rps = known ? row->rps : (double)NAN;
    char why[1200] = "";
    put_parts(out, placement, parts);
    fprintf(out, "%s,", cell_status(&row->error, row->status));
    cell_real(out, rps);
    cell_real(out, row->low_rps);
    cell_real(out, row->high_rps);
    fprintf(out, "%zu,%d,", known ? row->n_trials : 0, n_gpus);
    cell_real(out, usd);
    cell_real(out, rps / n_gpus);
    cell_real(out, rps / usd);
    cell_text(out, row->binding);
    fprintf(out, "%s,", cell_flag(is_best(placement, rows, i)));
    if (!known) {
        error_print(&row->error, why, sizeof why);
        csv_fwrite(out, why, strlen(why));
    }
    fputc('\n', out);
}

static int write_candidates(const char *dir, const struct placement *placement,
                            const struct capacity_row *rows, struct ifl_error *error)
{
    char path[IFL_PATH_BYTES];
    struct new_file file;
    snprintf(path, sizeof path, "%s/candidates.csv", dir);
    if (new_file_open(&file, path, error) < 0)
        return error->code;
    put_part_names(file.out, placement);
    fprintf(file.out, "status,capacity_rps,capacity_low_rps,capacity_high_rps,trials,gpus,"
                      "usd_per_hour,rps_per_gpu,rps_per_usd_per_hour,binding,best,error\n");
    for (size_t i = 0; i < placement->n; i++)
        put_candidate(file.out, placement, rows, i);
    return new_file_close(&file, 0, error);
}

static void put_choice(FILE *out, const struct study *study, const struct choices *choices,
                       const struct choice *choice)
{
    const bool flown = choice->flown_rps > 0;
    put_parts(out, study_placement(study), choice->parts);
    fprintf(out, "%d,", choice->n_gpus);
    cell_real(out, choice->usd_per_hour);
    cell_real(out, choice->rps);
    cell_real(out, choice->rps / choice->n_gpus);
    fprintf(out, "%s,%s,%s,%s,", cell_flag(choice->on_front), cell_flag(choice->by_algorithm),
            cell_flag(choice->grown), cell_flag(choice->chosen));
    cell_real(out, flown ? choice->flown_rps : (double)NAN);
    cell_objectives(out, study, "", choices->objectives, choices->n_objectives,
                    flown ? choice->flown.of : NULL);
    cell_real(out, flown ? choice->flown.margin : (double)NAN);
    fprintf(out, "%s\n", flown ? cell_flag(!misses(choice)) : "");
}

static int write_choices(const char *dir, const struct study *study, const struct choices *choices,
                         struct ifl_error *error)
{
    char path[IFL_PATH_BYTES];
    struct new_file file;
    snprintf(path, sizeof path, "%s/placements.csv", dir);
    if (new_file_open(&file, path, error) < 0)
        return error->code;
    put_part_names(file.out, study_placement(study));
    fprintf(file.out,
            "gpus,usd_per_hour,carried_rps,rps_per_gpu,front,algorithm,grown,chosen,flown_rps,");
    cell_objective_names(file.out, study, "");
    fprintf(file.out, "margin,meets\n");
    for (size_t i = 0; i < choices->n; i++)
        put_choice(file.out, study, choices, &choices->of[i]);
    return new_file_close(&file, 0, error);
}

int placement_write(const char *dir, const struct study *study, const struct capacity_row *rows,
                    const struct choices *choices, struct ifl_error *error)
{
    if (write_candidates(dir, study_placement(study), rows, error) < 0)
        return error->code;
    return write_choices(dir, study, choices, error);
}

/* ---- the table ---- */

static int print_name(FILE *out, const struct placement *placement, const struct placed *parts,
                      int width)
{
    char name[NAME_BYTES];
    placement_name(placement, parts, name, sizeof name);
    return fprintf(out, "%-*s", width, name);
}

static int widest(const struct placement *placement, const struct choices *choices)
{
    char name[NAME_BYTES];
    size_t most = strlen("candidate");
    for (size_t i = 0; i < placement->n; i++) {
        placement_name(placement, placement_at(placement, i), name, sizeof name);
        most = ifl_max(most, strlen(name));
    }
    for (size_t i = 0; i < choices->n; i++) {
        placement_name(placement, choices->of[i].parts, name, sizeof name);
        most = ifl_max(most, strlen(name));
    }
    return (int)most;
}

static void print_candidate(FILE *out, const struct placement *placement,
                            const struct capacity_row *rows, size_t i, bool priced, int width)
{
    const struct capacity_row *row = &rows[i];
    const struct placed *parts = placement_at(placement, i);
    const int32_t n_gpus = placement_gpus(placement, parts);
    const double usd = placement_usd_per_hour(placement, parts);
    char interval[48] = "-";
    print_name(out, placement, parts, width);
    if (row->error.code) {
        capacity_print_failure(out, &row->error);
        return;
    }
    if (row->status != CAPACITY_FOUND)
        snprintf(interval, sizeof interval, "%s", capacity_status_names[row->status]);
    else if (!isnan(row->low_rps))
        snprintf(interval, sizeof interval, "[%.3g, %.3g]", row->low_rps, row->high_rps);
    cell_print_real(out, 8, 3, row->rps);
    fprintf(out, "  %-14s %5d", interval, n_gpus);
    cell_print_real(out, 8, 3, row->rps / n_gpus);
    if (priced) {
        cell_print_real(out, 8, 2, usd);
        cell_print_real(out, 8, 3, row->rps / usd);
    }
    if (*row->binding)
        fprintf(out, "  %s %s", is_best(placement, rows, i) ? "*" : " ", row->binding);
    fputc('\n', out);
}

static void print_choice(FILE *out, const struct placement *placement,
                         const struct choices *choices, const struct choice *choice, int width)
{
    print_name(out, placement, choice->parts, width);
    cell_print_real(out, 8, 3, choice->rps);
    fprintf(out, " %5d", choice->n_gpus);
    cell_print_real(out, 8, 3, choice->rps / choice->n_gpus);
    if (choices->priced)
        cell_print_real(out, 8, 2, choice->usd_per_hour);
    if (choice->flown_rps > 0) {
        fprintf(out, "  %s%s  flown at %.4g:", choice->by_algorithm ? "a" : " ",
                choice->chosen ? "$" : " ", choice->flown_rps);
        for (size_t k = 0; k < choices->n_objectives; k++)
            if (choices->objectives[k].offset != OBJECTIVE_FINISHED ||
                choice->flown.of[k].margin > 0)
                fprintf(out, " %s %.4g%s", objective_name(&choices->objectives[k]),
                        choice->flown.of[k].value.mean,
                        choice->flown.of[k].margin > 0 ? " (missed)" : "");
    }
    fputc('\n', out);
}

static void print_foot(FILE *out, const struct placement *placement, const struct choices *choices)
{
    bool grown = false;
    for (size_t i = 0; i < choices->n; i++)
        grown = grown || choices->of[i].grown;
    fprintf(out, "best (*) by req/s a %s; chosen ($)%s%s\n", choices->priced ? "dollar" : "GPU",
            placement->config.search == PLACEMENT_TOGETHER ? "" : "; the algorithm's (a)",
            grown
                ? "; as a whole, placements of the front missed the objectives: replicas were added"
                : "");
    if (placement->n_outside > 0)
        fprintf(out, "%zu more combinations are outside the nodes or the budget\n",
                placement->n_outside);
}

void placement_print(FILE *out, const struct study *study, const struct capacity_row *rows,
                     const struct choices *choices)
{
    const struct placement *placement = study_placement(study);
    const int width = widest(placement, choices);
    fprintf(out, "%-*s    req/s  95%% interval    GPUs    a GPU%s    binds\n", width, "candidate",
            choices->priced ? "    USD/h  a USD/h" : "");
    for (size_t i = 0; i < placement->n; i++)
        print_candidate(out, placement, rows, i, choices->priced, width);
    if (choices->n > 0)
        fprintf(out, "\n%-*s    req/s  GPUs    a GPU%s\n", width, "placement",
                choices->priced ? "    USD/h" : "");
    for (size_t i = 0; i < choices->n; i++)
        print_choice(out, placement, choices, &choices->of[i], width);
    print_foot(out, placement, choices);
}

/* ---- the figure ---- */

int placement_draw(const char *dir, const struct study *study, const struct choices *choices,
                   struct ifl_error *error)
{
    const struct placement *placement = study_placement(study);
    char path[IFL_PATH_BYTES], script_dir[512], name[NAME_BYTES];
    struct new_file file;
    snprintf(path, sizeof path, "%s/placement_figure.csv", dir);
    if (new_file_open(&file, path, error) < 0)
        return error->code;
    fprintf(file.out, "number,series,bill,rps,front,algorithm,chosen,meets,unit,target_rps\n");
    for (size_t i = 0; i < choices->n; i++) {
        const struct choice *choice = &choices->of[i];
        placement_name(placement, choice->parts, name, sizeof name);
        fprintf(file.out, "%zu,", i + 1);
        cell_text(file.out, name);
        cell_real(file.out, choice->cost);
        cell_real(file.out, choice->rps);
        fprintf(file.out, "%s,%s,%s,%s,%s,%.9g\n", cell_flag(choice->on_front),
                cell_flag(choice->by_algorithm), cell_flag(choice->chosen),
                choice->flown_rps > 0 ? cell_flag(!misses(choice)) : "",
                choices->priced ? "USD an hour" : "GPUs", placement->target_rps);
    }
    if (new_file_close(&file, 0, error) < 0 || data_plot_scripts(script_dir, error) < 0)
        return error->code;
    const struct ifl_drawing drawing = {.out_dir = dir,
                                        .script_dir = script_dir,
                                        .columns = 1,
                                        .note = "",
                                        .source = "inflight " INFLIGHT_VERSION};
    return ifl_figure(&drawing, "placement", "placement_figure", error);
}

/* ---- no answer ---- */

/* Every candidate, or every one of a phase, failed or never met the objectives. */
static int fail_pool(const struct study *study, const struct capacity_row *rows,
                     struct ifl_error *error)
{
    const struct placement *placement = study_placement(study);
    const bool apart = placement->config.search == PLACEMENT_APART;
    for (size_t pool = 0; pool < (apart ? placement->n_pools : 1); pool++) {
        const struct ifl_error *first = NULL;
        bool any_flown = false, any_unbounded = false;
        if (choice_best(placement, rows, pool) != SIZE_MAX)
            continue;
        for (size_t i = placement->n; i-- > 0;)
            if (!apart || placement_at(placement, i)[pool].count > 0) {
                first = rows[i].error.code ? &rows[i].error : first;
                any_flown = any_flown || rows[i].error.code == 0;
                any_unbounded = any_unbounded ||
                                (rows[i].error.code == 0 && rows[i].status == CAPACITY_UNBOUNDED);
            }
        const char *of = apart ? " of pool " : "", *name = apart ? placement->pools[pool].name : "";
        if (!any_flown && first) {
            *error = *first;
            return error->code;
        }
        if (any_unbounded)
            return ifl_fail(error, IFL_E_STALLED,
                            "the trace is too short to find the capacity of a candidate%s%s, "
                            "expected more requests: the highest rate still meets the objectives",
                            of, name);
        return ifl_fail(error, IFL_E_STALLED,
                        "no candidate%s%s meets the objectives at %g requests/s or more, expected "
                        "one that does",
                        of, name, study_first(study)->capacity.min_rate_rps);
    }
    return ifl_fail(error, IFL_E_STALLED,
                    "no placement is within the budget: one replica of each pool takes more");
}

int placement_judge(const struct study *study, const struct capacity_row *rows,
                    const struct choices *choices, struct ifl_error *error)
{
    const struct placement *placement = study_placement(study);
    const struct choice *chosen = choices_chosen(choices), *near = NULL;
    char name[NAME_BYTES];
    for (size_t i = 0; i < choices->n; i++)
        if (!near || choices->of[i].rps > near->rps)
            near = &choices->of[i];
    if (!near)
        return fail_pool(study, rows, error);
    if (chosen && (placement->target_rps == 0 || !misses(chosen)))
        return 0;
    size_t worst = 0;
    for (size_t k = 0; chosen && k < choices->n_objectives; k++)
        if (chosen->flown.of[k].margin > chosen->flown.of[worst].margin)
            worst = k;
    placement_name(placement, chosen ? chosen->parts : near->parts, name, sizeof name);
    if (!chosen)
        return ifl_fail(error, IFL_E_STALLED,
                        "no placement within the budget carries %g requests/s; %s comes nearest "
                        "with %.4g",
                        placement->target_rps, name, near->rps);
    return ifl_fail(error, IFL_E_STALLED,
                    "no placement that was run as a whole meets the objectives at %g requests/s; "
                    "with the last one, %s, %s is %.4g, expected %s %g",
                    placement->target_rps, name, objective_name(&choices->objectives[worst]),
                    chosen->flown.of[worst].value.mean,
                    choices->objectives[worst].at_least ? "at least" : "at most",
                    choices->objectives[worst].limit);
}
