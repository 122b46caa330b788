/* Preconditions of sim/ but for its replicas, each broken once. */
#include "violates.h"

#include "base/array.h"
#include "base/table.h"
#include "base/tree.h"
#include "config/config.h"
#include "config/sweep.h"
#include "cost/roofline.h"
#include "fit/calibrate/bench.h"
#include "fleet/routing.h"
#include "run/capacity.h"
#include "run/flight.h"
#include "run/token_ids.h"

static struct ifl_error error;

/* ---- base ---- */

VIOLATES(base, array_beyond, array_grow, "n_used <= n")
{
    char *array = NULL;
    array_grow(&array, 2, 1, 1);
}

static struct node scalar = {.kind = NODE_SCALAR};

VIOLATES(base, tree_key_in_list, tree_append, "parent->kind == (key ? NODE_MAP : NODE_LIST)")
{
    struct node list = {.kind = NODE_LIST};
    tree_append(&list, "key", &scalar, &error);
}

VIOLATES(base, tree_no_key_in_map, tree_append, "parent->kind == (key ? NODE_MAP : NODE_LIST)")
{
    struct node map = {.kind = NODE_MAP};
    tree_append(&map, NULL, &scalar, &error);
}

VIOLATES(base, tree_set_in_list, tree_set, "map->kind == NODE_MAP")
{
    struct node list = {.kind = NODE_LIST};
    tree_set(&list, "key", &scalar, &error);
}

static const struct table table = {.n_columns = 1, .n_rows = 1};

VIOLATES(base, table_name, table_name, "column < table->n_columns")
{
    table_name(&table, 1);
}

VIOLATES(base, table_cell, table_cell, "row < table->n_rows")
{
    table_cell(&table, 1, 0);
}

/* ---- config ---- */

VIOLATES(config, admits, serving_admit, "i <= MAX_MORE_ADMITS")
{
    const struct serving_config serving = {0};
    serving_admit(&serving, MAX_MORE_ADMITS + 1);
}

static struct study *quickstart(void)
{
    const struct study_options options = {.path = "configs/quickstart.yaml"};
    struct study *study = NULL;
    ifl_require(study_load(&options, &study, &error) == 0);
    return study;
}

VIOLATES(config, axis, study_axis, "axis < study_n_axes(study)")
{
    const struct study *study = quickstart();
    study_axis(study, study_n_axes(study));
}

VIOLATES(config, value, study_value, "point < study_n_points(study)")
{
    const struct study *study = quickstart();
    study_value(study, study_n_points(study), 0);
}

VIOLATES(config, point, study_read, "point < study->n_points")
{
    const struct study *study = quickstart();
    struct config config;
    study_read(study, study_n_points(study), &config, &error);
}

VIOLATES(config, swept, sweep_value, "axis < sweep->n")
{
    const struct node sweep = {.kind = NODE_MAP};
    sweep_value(&sweep, 0, 0);
}

/* ---- cost ---- */

static const struct model four_heads = {
    .layers = 1, .d_model = 8, .n_q_heads = 4, .n_kv_heads = 4, .d_head = 2, .d_ffn = 8};

VIOLATES(cost, uneven_ranks, roofline_rank_set, "can_share")
{
    const struct platform platform = {0};
    struct roofline_rank rank;
    const struct parallel three = model_tensor_parallel(3);
    roofline_rank_set(&rank, &four_heads, &platform, &three, 16);
}

VIOLATES(cost, ranks_without_a_line, roofline_step_s, "rank->allreduce.gb_per_s")
{
    const struct platform platform = {0};
    const struct ifl_step_totals totals = {0};
    struct roofline_rank rank;
    const struct parallel two = model_tensor_parallel(2);
    roofline_rank_set(&rank, &four_heads, &platform, &two, 16);
    roofline_step_s(&rank, &totals);
}

/* ---- fit ---- */

VIOLATES(fit, block, batch_block, "i < (uint32_t)batch->limits->n_blocks")
{
    const struct ifl_engine_options limits = {.n_blocks = 8};
    const struct batch batch = {.limits = &limits};
    batch_block(&batch, 8);
}

VIOLATES(fit, products_before_ceilings, bench_products, "CEILING_GEMM")
{
    struct bench bench = {.max_runs = 5};
    bench_products(&bench, &error);
}

VIOLATES(fit, rows_before_ceilings, bench_rows, "CEILING_COPY")
{
    struct bench bench = {.max_runs = 5};
    bench_rows(&bench, &error);
}

VIOLATES(fit, attention_before_ceilings, bench_attention, "CEILING_COPY")
{
    struct bench bench = {.max_runs = 5};
    bench_attention(&bench, &error);
}

/* ---- fleet ---- */

static struct replica replicas[2] = {{.fixed = {.number = 0}}, {.fixed = {.number = 1}}};
static struct routing routing = {.replicas = replicas, .n = 1};
static const struct replica stranger = {.fixed = {.number = 0}};

VIOLATES(fleet, load_of_a_stranger, routing_note_load, "&routing->replicas[replica->fixed.number]")
{
    routing_note_load(&routing, &stranger, 0);
}

VIOLATES(fleet, tokens_of_a_stranger, routing_say_first_tokens, "&routing->replicas")
{
    routing_say_first_tokens(&routing, &stranger);
}

VIOLATES(fleet, end_at_a_stranger, routing_say_end, "&routing->replicas")
{
    routing_say_end(&routing, &stranger, NULL, 0);
}

VIOLATES(fleet, open_again, routing_open, "routing->n_open < routing->n_pools")
{
    struct routing none = {0};
    routing_open(&none, 0);
}

static int64_t one_key[1];
static uint32_t winners[2];
static struct least alone = {.of = {.n = 1, .n_leaves = 1, .key = one_key, .winner = winners}};

VIOLATES(fleet, least_of_a_stranger, least_note, "i < least->of.n")
{
    least_note(&alone, 1);
}

VIOLATES(fleet, least_beyond, tournament_first_of, "from <= to && to <= tournament->n")
{
    least_of(&alone, 0, 2);
}

VIOLATES(fleet, sent_beyond, routing_say_sent, "replica < routing->n")
{
    routing_say_sent(&routing, NULL, 1, 0);
}

VIOLATES(fleet, late_beyond, routing_is_too_late, "replica < routing->n")
{
    routing_is_too_late(&routing, NULL, 1, 0);
}

VIOLATES(fleet, report_of_exact_news, news_next_report_ns, "news_are_old(news)")
{
    news_next_report_ns(&(struct news){0}, 0);
}

/* ---- run ---- */

VIOLATES(run, two_without_router, flight_run, "flight->router || flight->n_replicas == 1")
{
    struct flight flight = {.replicas = replicas, .n_replicas = 2};
    flight_run(&flight, &error);
}

VIOLATES(run, numbers, flight_run, "are_numbered(flight)")
{
    struct flight flight = {.replicas = replicas + 1, .n_replicas = 1};
    flight_run(&flight, &error);
}

VIOLATES(run, pools, flight_run, "are_pooled(flight)")
{
    const struct fleet_pool gap = {.first = 1, .n = 1};
    struct flight flight = {.replicas = replicas, .n_replicas = 1, .pools = &gap, .n_pools = 1};
    flight_run(&flight, &error);
}

static int64_t falling_ns[2] = {2, 1};
static int32_t lengths[2] = {1, 1};
static const struct ifl_trace unsorted = {
    .n = 2, .arrival_ns = falling_ns, .n_prompt = lengths, .n_output = lengths};

VIOLATES(run, order_of_arrivals, workload_create, "ifl_ascends")
{
    struct workload workload;
    workload_create(&workload, &unsorted, 0, &error);
}

VIOLATES(run, concurrency, workload_create, "concurrency >= 0")
{
    static const struct ifl_trace empty;
    struct workload workload;
    workload_create(&workload, &empty, -1, &error);
}

VIOLATES(run, nothing_to_take, workload_take, "workload->next_ns != IFL_NEVER")
{
    static const struct ifl_trace empty;
    struct workload workload;
    struct arrival arrival;
    workload_create(&workload, &empty, 0, &error);
    workload_take(&workload, &arrival);
}

VIOLATES(run, front_end_of_requests_taken, workload_go_through, "workload->n_arrived == 0")
{
    static const struct front_end none;
    struct workload workload = {.n_arrived = 1};
    workload_go_through(&workload, &none, &error);
}

VIOLATES(run, row, workload_ended, "row < workload->trace->n")
{
    static const struct ifl_trace empty;
    struct workload workload;
    workload_create(&workload, &empty, 0, &error);
    workload_ended(&workload, 0, 0, 0, IFL_FINISHED, 0, &error);
}

static struct token_ids ids;
static const struct token_owner second = {.serial = 1, .n_seqs = 1};

VIOLATES(run, tokens_of_no_request, token_ids_get, "owner->serial < ids->n_requests")
{
    token_ids_create(&ids, 1, 10, 1);
    token_ids_get(&ids, &second, 0);
}

VIOLATES(run, tokens_to_forget, token_ids_forget, "serial < ids->n_requests")
{
    token_ids_create(&ids, 1, 10, 1);
    token_ids_forget(&ids, 1);
}

static struct config config;
static struct capacity capacity;

VIOLATES(run, search_without_threads, capacity_find, "options->n_threads >= 1")
{
    const struct capacity_options options = {.configs = &config, .n_replications = 1};
    capacity_find(&options, &capacity, &error);
}

VIOLATES(run, search_without_members, capacity_find, "options->members")
{
    const struct capacity_options options = {
        .configs = &config, .n_replications = 1, .n_threads = 1};
    config.cost.ensemble = 2;
    capacity_find(&options, &capacity, &error);
}

VIOLATES(run, gsl_aborts, capacity_find, "gsl_does_not_abort()")
{
    const struct capacity_options options = {
        .configs = &config, .n_replications = 1, .n_threads = 1};
    capacity_find(&options, &capacity, &error);
}
