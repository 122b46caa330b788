/* The slot grid of the textbooks, from work.csv: a row is a slot, a column a step, a cell the
 * slot's work in that step. A request takes the lowest free slot when it first runs and keeps it
 * until its last token or a preemption; its next run begins another stay. Only the first steps are
 * shown. */
#include <math.h>

#include "inflight/minmax.h"
#include "plot/figures.h"

enum { MAX_STEPS = 96, MAX_SLOTS = 48, MAX_STAYS = 1024 };

enum { POINT, REPLICA, STEP, REQUEST, PREFILL, DECODE, PREEMPTIONS, N_COLUMNS };
static const char *const columns[N_COLUMNS] = {
    "point", "replica", "step", "request_id", "prefill_tokens", "decode_tokens", "preemptions"};

struct stay {
    double request_id, preemptions;
    int first, last, slot;                        /* slot MAX_SLOTS: no slot was free */
    double prefill[MAX_STEPS], decode[MAX_STEPS]; /* tokens */
};

struct grid {
    struct stay *stays;         /* [MAX_STAYS], in order of start */
    size_t n_stays, n_unplaced; /* without a slot */
    int n_steps;
    bool is_cut, has_replicas; /* steps behind the last shown, replicas behind the first */
};

static struct stay *find_stay(const struct grid *grid, double request_id, double preemptions)
{
    for (size_t i = grid->n_stays; i-- > 0;)
        if (grid->stays[i].request_id == request_id && grid->stays[i].preemptions == preemptions)
            return &grid->stays[i];
    return NULL;
}

static struct stay *begin_stay(struct grid *grid, const double *value)
{
    if (grid->n_stays == MAX_STAYS || value[STEP] >= MAX_STEPS)
        return NULL;
    struct stay *stay = &grid->stays[grid->n_stays++];
    *stay = (struct stay){
        .request_id = value[REQUEST], .preemptions = value[PREEMPTIONS], .first = (int)value[STEP]};
    return stay;
}

/* Takes rows of the first replica. A stay that runs beyond the last step shown keeps its slot. */
static int take_work(void *context, size_t series, size_t replication, const double *value,
                     struct ifl_error *error)
{
    (void)error;
    struct grid *grid = (struct grid *)context + series;
    if (replication > 0 || !(value[STEP] >= 0))
        return IFL_OK;
    grid->has_replicas |= value[REPLICA] != 0;
    grid->is_cut |= value[STEP] >= MAX_STEPS;
    if (value[REPLICA] != 0)
        return IFL_OK;
    struct stay *stay = find_stay(grid, value[REQUEST], value[PREEMPTIONS]);
    stay = stay ? stay : begin_stay(grid, value);
    if (!stay)
        return IFL_OK;
    stay->last = value[STEP] < MAX_STEPS ? (int)value[STEP] : MAX_STEPS - 1;
    if (value[STEP] < MAX_STEPS) {
        stay->prefill[stay->last] = value[PREFILL];
        stay->decode[stay->last] = value[DECODE];
    }
    grid->n_steps = ifl_max(grid->n_steps, stay->last + 1);
    return IFL_OK;
}

/* Stays come in the order of their first step. */
static int give_slots(struct grid *grid)
{
    int free_from[MAX_SLOTS] = {0}, n_slots = 0;
    for (size_t i = 0; i < grid->n_stays; i++) {
        struct stay *stay = &grid->stays[i];
        stay->slot = 0;
        while (stay->slot < MAX_SLOTS && free_from[stay->slot] > stay->first)
            stay->slot++;
        if (stay->slot == MAX_SLOTS) {
            grid->n_unplaced++;
            continue;
        }
        free_from[stay->slot] = stay->last + 1;
        n_slots = ifl_max(n_slots, stay->slot + 1);
    }
    return n_slots;
}

/* ---- a row a cell ---- */

static const struct stay *stay_at(const struct grid *grid, int slot, int step)
{
    for (size_t i = 0; i < grid->n_stays; i++) {
        const struct stay *stay = &grid->stays[i];
        if (stay->slot == slot && stay->first <= step && step <= stay->last)
            return stay;
    }
    return NULL;
}

static const char *state_of(const struct stay *stay, int step)
{
    if (!stay)
        return "idle";
    return stay->prefill[step] > 0 ? "prefill" : stay->decode[step] > 0 ? "decode" : "held";
}

static int write_cell(struct whole_file *file, const struct plot *plot, size_t series,
                      const struct stay *stay, int slot, int step, struct ifl_error *error)
{
    const struct series_point *point = &plot->set->points[plot->chosen[series]];
    const struct figure_number number = figure_series_number(point), x = figure_number(point->x),
                               slot_number = figure_number(slot + 1), at = figure_number(step),
                               request = figure_number(stay ? stay->request_id : (double)NAN);
    const char *cells[] = {number.text,
                           plot->set->names[series],
                           x.text,
                           figure_saturated(point),
                           slot_number.text,
                           at.text,
                           state_of(stay, step),
                           request.text,
                           stay && stay->first == step ? "true" : "false"};
    return figure_write_row(file, cells, sizeof cells / sizeof *cells, error);
}

static int write_grid(struct whole_file *file, const struct plot *plot, size_t series,
                      const struct grid *grid, int n_slots, struct ifl_error *error)
{
    int code = IFL_OK;
    for (int slot = 0; slot < n_slots; slot++)
        for (int step = 0; step < grid->n_steps && !code; step++)
            code = write_cell(file, plot, series, stay_at(grid, slot, step), slot, step, error);
    return code;
}

static void say_what_is_left_out(const struct plot *plot, const struct grid *grids)
{
    size_t n_unplaced = 0;
    bool is_cut = false, has_replicas = false;
    for (size_t i = 0; i < figure_n_curves(plot); i++) {
        n_unplaced += grids[i].n_unplaced;
        is_cut |= grids[i].is_cut;
        has_replicas |= grids[i].has_replicas;
    }
    if (is_cut)
        figure_say(plot, "steps 0 to %d alone", MAX_STEPS - 1);
    if (has_replicas)
        figure_say(plot, "replica 0 alone");
    if (n_unplaced)
        figure_say(plot, "%zu stays beyond slot %d", n_unplaced, MAX_SLOTS);
}

/* Every panel has as many slots as the widest, so that idle slots are visible. */
static int write_grids(struct whole_file *file, const struct plot *plot, struct grid *grids,
                       struct ifl_error *error)
{
    int n_slots = 0, n_steps = 0;
    for (size_t i = 0; i < figure_n_curves(plot); i++) {
        const int n = give_slots(&grids[i]);
        n_slots = ifl_max(n_slots, n);
        n_steps = ifl_max(n_steps, grids[i].n_steps);
    }
    say_what_is_left_out(plot, grids);
    int code = figure_write_head(file, plot, "slot,step,state,request_id,first", error);
    for (size_t i = 0; i < figure_n_curves(plot) && !code; i++)
        code = write_grid(file, plot, i, &grids[i], n_slots, error);
    return code || n_steps > 0 ? code : FIGURE_EMPTY;
}

int slot_grid_write(struct whole_file *file, const struct plot *plot, struct ifl_error *error)
{
    const size_t n = figure_n_curves(plot);
    struct grid *grids = calloc(n, sizeof *grids);
    struct stay *stays = malloc(n * MAX_STAYS * sizeof *stays);
    int code = grids && stays ? IFL_OK : ifl_fail_nomem(error);
    for (size_t i = 0; i < n && !code; i++)
        grids[i].stays = stays + i * MAX_STAYS;
    if (!code)
        code = figure_scan(plot, "work.csv", N_COLUMNS, columns, take_work, grids, error);
    if (!code)
        code = write_grids(file, plot, grids, error);
    free(stays);
    free(grids);
    return code;
}

const char *slot_grid_lacks(const struct plot *plot)
{
    return figure_has_file(plot, "work.csv") ? NULL : "no work.csv";
}
