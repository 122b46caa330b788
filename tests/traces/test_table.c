/* Sorting and cutting move whole rows, hash ids included; a written trace is read back unchanged.
 */
#include "reading.h"

#include <stdio.h>

static const char hashed[] =
    "{\"timestamp\":30,\"input_length\":1,\"output_length\":10,\"hash_ids\":[7]}\n"
    "{\"timestamp\":10,\"input_length\":2,\"output_length\":20,\"hash_ids\":[8,9]}\n"
    "{\"timestamp\":30,\"input_length\":3,\"output_length\":30,\"hash_ids\":[]}\n"
    "{\"timestamp\":10,\"input_length\":4,\"output_length\":40,\"hash_ids\":[1,2,3]}\n"
    "{\"timestamp\":20,\"input_length\":5,\"output_length\":50,\"hash_ids\":[4]}\n";

static const char sorted[] =
    "arrival_s,prompt_tokens,output_tokens\n0,1,10\n1,2,20\n2,3,30\n3,4,40\n4,5,50\n";

Test(sort, stable_with_every_column)
{
    struct notebook notebook = {0};
    const struct ifl_notes notes = notes_into(&notebook);
    struct ifl_error error;
    struct ifl_trace trace = must_read(hashed);
    cr_assert_eq(ifl_trace_sort(&trace, &notes, &error), 0);
    expect_column(trace.n_prompt, 2, 4, 5, 1, 3);
    expect_column(trace.n_output, 20, 40, 50, 10, 30);
    expect_column(trace.request_id, 1, 3, 4, 0, 2);
    expect_column(trace.hash_at, 0, 2, 5, 6, 7, 7);
    expect_column(trace.hash_id, 8, 9, 1, 2, 3, 4, 7);
    cr_expect_str_eq(notebook.last, "3 of 5 stamps were out of order; sorted");
    ifl_trace_free(&trace);
}

Test(sort, says_nothing_of_a_sorted_trace)
{
    struct notebook notebook = {0};
    const struct ifl_notes notes = notes_into(&notebook);
    struct ifl_error error;
    struct ifl_trace trace = must_read(sorted);
    cr_assert_eq(ifl_trace_sort(&trace, &notes, &error), 0);
    cr_expect_eq(notebook.n, 0);
    ifl_trace_free(&trace);
}

/* ---- cutting ---- */

static struct ifl_trace cut(const char *text, struct ifl_trace_window window,
                            struct notebook *notebook)
{
    const struct ifl_notes notes = notes_into(notebook);
    struct ifl_error error;
    struct ifl_trace whole = must_read(text), trace;
    cr_assert_eq(ifl_trace_cut(&whole, &window, "t.csv", &notes, &trace, &error), 0, "%s",
                 error.text);
    ifl_trace_free(&whole);
    return trace;
}

Test(cut, nothing_asked_keeps_all)
{
    struct notebook notebook = {0};
    struct ifl_trace trace = cut(hashed, (struct ifl_trace_window){0}, &notebook);
    cr_expect_eq(trace.n, 5);
    expect_column(trace.request_id, 0, 1, 2, 3, 4);
    expect_column(trace.hash_id, 7, 8, 9, 1, 2, 3, 4);
    ifl_trace_free(&trace);
}

Test(cut, lengths)
{
    struct notebook notebook = {0};
    struct ifl_trace trace =
        cut(hashed, (struct ifl_trace_window){.min_prompt = 2, .min_output = 30, .max_total = 44},
            &notebook);
    cr_assert_eq(trace.n, 2);
    expect_column(trace.request_id, 2, 3);
    expect_column(trace.hash_at, 0, 0, 3);
    expect_column(trace.hash_id, 1, 2, 3);
    ifl_trace_free(&trace);
    trace = cut(sorted, (struct ifl_trace_window){.max_prompt = 3}, &notebook);
    expect_column(trace.n_prompt, 1, 2, 3);
    cr_expect_eq(trace.n, 3);
    ifl_trace_free(&trace);
}

Test(cut, half_open_window_then_skip_then_limit)
{
    struct notebook notebook = {0};
    struct ifl_trace trace =
        cut(sorted,
            (struct ifl_trace_window){
                .from_ns = IFL_NS_PER_S, .to_ns = 4 * IFL_NS_PER_S, .skip = 1, .limit = 1},
            &notebook);
    cr_assert_eq(trace.n, 1);
    expect_column(trace.request_id, 2);
    expect_column(trace.arrival_ns, 2 * IFL_NS_PER_S);
    cr_expect_eq(notebook.n, 0);
    ifl_trace_free(&trace);
}

Test(cut, says_when_the_limit_is_not_reached)
{
    struct notebook notebook = {0};
    struct ifl_trace trace =
        cut(sorted, (struct ifl_trace_window){.skip = 2, .limit = 9}, &notebook);
    cr_expect_eq(trace.n, 3);
    cr_expect_str_eq(notebook.last, "3 requests are there, fewer than the limit of 9");
    ifl_trace_free(&trace);
}

/* All 120 orders of five rows come up about equally often: chi-square over 12,000 seeds has 119
 * degrees of freedom, and is below 181 with a probability of 0.9998. */
Test(cut, shuffle_is_uniform)
{
    enum { SEEDS = 12000 };
    static int n_seen[5 * 5 * 5 * 5 * 5];
    struct ifl_error error;
    struct ifl_trace whole = must_read(sorted);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct ifl_trace_window window = {.shuffle = true, .shuffle_seed = seed};
        struct ifl_trace trace;
        cr_assert_eq(ifl_trace_cut(&whole, &window, "t.csv", NULL, &trace, &error), 0);
        int order = 0;
        for (size_t i = 0; i < 5; i++) {
            order = 5 * order + (int)trace.request_id[i];
            cr_assert_eq(trace.n_output[i], 10 * trace.n_prompt[i]);
        }
        n_seen[order]++;
        ifl_trace_free(&trace);
    }
    ifl_trace_free(&whole);
    int n_orders = 0;
    double chi_square = 0;
    for (size_t i = 0; i < sizeof n_seen / sizeof *n_seen; i++) {
        n_orders += n_seen[i] > 0;
        chi_square += n_seen[i] > 0 ? (n_seen[i] - 100.0) * (n_seen[i] - 100.0) / 100.0 : 0;
    }
    cr_expect_eq(n_orders, 120);
    cr_expect_lt(chi_square, 181.0);
}

static void expect_no_cut(const char *text, struct ifl_trace_window window, const char *says)
{
    struct ifl_error error;
    struct ifl_trace whole = must_read(text), trace;
    cr_expect_eq(ifl_trace_cut(&whole, &window, "t.csv", NULL, &trace, &error), IFL_E_INPUT);
    cr_expect_str_eq(error.text, says);
    cr_expect_str_eq(error.file, "t.csv");
    ifl_trace_free(&trace);
    ifl_trace_free(&whole);
}

Test(cut, an_empty_result_says_why)
{
    expect_no_cut(sorted, (struct ifl_trace_window){.min_prompt = 6},
                  "no request is left, the limits on lengths removed the last: of 5, lengths "
                  "removed 5, stamps 0, skip 0");
    expect_no_cut(sorted, (struct ifl_trace_window){.min_prompt = 3, .to_ns = IFL_NS_PER_S},
                  "no request is left, the window of stamps removed the last: of 5, lengths "
                  "removed 2, stamps 3, skip 0");
    expect_no_cut(sorted, (struct ifl_trace_window){.from_ns = IFL_NS_PER_S, .skip = 4},
                  "no request is left, skip removed the last: of 5, lengths removed 0, stamps 1, "
                  "skip 4");
    expect_no_cut("prompt_tokens,output_tokens\n1,1\n", (struct ifl_trace_window){.from_ns = 1},
                  "the trace has no stamps, expected some for a window of stamps");
}

/* ---- writing ---- */

static size_t write_text(const struct ifl_trace *trace, char *text, size_t size)
{
    struct ifl_error error;
    FILE *out = fmemopen(text, size, "w");
    cr_assert_eq(ifl_trace_write(trace, out, &error), 0);
    const long n = ftell(out);
    fclose(out);
    return (size_t)n;
}

Test(write, bytes)
{
    char text[512];
    struct ifl_trace trace = must_read("client,output_tokens,prompt_tokens,arrival_s\n"
                                       "\"x \"\"y\"\", z\",2,1,0.000000001\nw,4,3,12.5\n");
    text[write_text(&trace, text, sizeof text)] = '\0';
    cr_expect_str_eq(text, "arrival_s,prompt_tokens,output_tokens,client\n"
                           "0.000000001,1,2,\"x \"\"y\"\", z\"\n12.500000000,3,4,\"w\"\n");
    ifl_trace_free(&trace);
}

Test(write, reading_back_gives_the_same)
{
    char text[4096];
    struct notebook notebook = {0};
    struct ifl_trace a = must_load(FIXTURE("inflight.csv"), &notebook), b;
    struct ifl_error error;
    const size_t n = write_text(&a, text, sizeof text);
    cr_assert_eq(read_bytes(text, n, "inflight", &b, &error), 0, "%d:%d %s", error.line,
                 error.column, error.text);
    cr_assert(a.n == b.n && a.n_clients == b.n_clients && a.has_stamps == b.has_stamps);
#define expect_same(column) cr_expect_arr_eq(a.column, b.column, a.n * sizeof *a.column, #column)
    expect_same(arrival_ns);
    expect_same(n_prompt);
    expect_same(n_output);
    expect_same(request_id);
    expect_same(client);
    expect_same(priority);
    expect_same(ttft_slo_ns);
    expect_same(tpot_slo_ns);
    expect_same(max_tokens);
    expect_same(samples);
    expect_same(session);
    expect_same(think_ns);
    expect_same(prefix_group);
    expect_same(prefix_tokens);
#undef expect_same
    for (uint32_t i = 0; i < a.n_clients; i++)
        cr_expect_str_eq(a.client_names[i], b.client_names[i]);
    ifl_trace_free(&a);
    ifl_trace_free(&b);
}

Test(write, a_full_disk_is_an_error)
{
    struct ifl_error error = {0};
    struct ifl_trace trace = must_read(sorted);
    FILE *full = fopen("/dev/full", "w");
    cr_assert_not_null(full);
    cr_expect_eq(ifl_trace_write(&trace, full, &error), IFL_E_IO);
    cr_expect(strstr(error.text, "No space left"), "%s", error.text);
    fclose(full);
    ifl_trace_free(&trace);
}
