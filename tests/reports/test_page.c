/* The page: packed numbers, the sample of requests, and what it refuses. */
#include <math.h>

#include "inflight/page.h"
#include "page/pack.h"
#include "scratch.h"

static struct ifl_error error;

static char *packed(const double *value, size_t n, bool as_differences)
{
    struct pack pack = {0};
    for (size_t i = 0; i < n; i++)
        (as_differences ? pack_delta : pack_real)(&pack, value[i], 1);
    json_t *text = pack_take(&pack);
    cr_assert_not_null(text);
    char *copy = strdup(json_string_value(text));
    json_decref(text);
    return copy;
}

/* Examples that are published with the encoding: 16 is "gB" (Source Map Revision 3 Proposal), 0 to
 * -1 and 123 are those of the package `vlq`. */
Test(page, base64_vlq)
{
    static const double value[] = {0, 1, -1, 123, 16, -16, 511, 1 << 20};
    char *text = packed(value, sizeof value / sizeof *value, false);
    cr_expect_str_eq(text, "ACD2HgBhB+fggggC");
    free(text);
}

Test(page, differences_and_what_is_not_defined)
{
    static const double value[] = {5, 7, (double)NAN, 6};
    char *text = packed(value, 4, true);
    cr_expect_str_eq(text, "KE.D");
    free(text);
    static const double ends[] = {9e18, -9e18};
    text = packed(ends, 2, false);
    cr_expect_eq(strlen(text), 26, "64 bits are 13 letters: %s", text);
    free(text);
}

static int write_page(const struct scratch *scratch)
{
    const char *const dirs[] = {scratch->dir};
    const struct ifl_page_options options = {.n_runs = 1,
                                             .run_dirs = dirs,
                                             .out_path = scratch_path(scratch, "page.html"),
                                             .version = "test"};
    return ifl_page(&options, &error);
}

/* Points without steps, requests that never ran, replicas with pools of different sizes. */
Test(page, odd_reports)
{
    struct scratch scratch = scratch_make();
    scratch_write(&scratch, "summary.csv",
                  "rate_rps,requests,error\n1,2,\n2,,\"it \"\"<failed>\"\"\"\n");
    scratch_write(
        &scratch, "requests.csv",
        "point,request_id,replica,status,arrival_s,queue_s,ttft_s,e2e_s,prefill_s,stalled_s,"
        "max_itl_s,prompt_tokens,output_tokens,cached_tokens,preemptions\n"
        "0,7,0,finished,0.5,0.25,1,2,0.75,0,0.1,3,4,0,0\n"
        "0,8,0,shed,1,,,,,,,3,4,0,0\n");
    scratch_write(&scratch, "steps.csv",
                  "point,replica,step,start_s,duration_s,prefill_tokens,decode_tokens,prefill_seqs,"
                  "decode_seqs,waiting,swapped,preempted,kv_used_blocks,kv_total_blocks,"
                  "kv_token_slots,kv_pool_slots\n0,0,0,0,0,0,0,0,0,0,0,1,0,0,0,0\n");
    cr_assert_eq(write_page(&scratch), IFL_OK, "%s", error.text);
    char *text = scratch_read(&scratch, "page.html");
    cr_expect_not_null(strstr(text, "it \\\"\\u003cfailed>\\\""));
    cr_expect_not_null(strstr(text, "\"every\":1,\"n_all\":2"));
    cr_expect_not_null(strstr(text,
                              "\"statuses\":[\"finished\",\"rejected\",\"failed\",\"aborted\","
                              "\"timed_out\",\"shed\"]"));
    free(text);
    scratch_write(
        &scratch, "requests.csv",
        "point,request_id,replica,status,arrival_s,queue_s,ttft_s,e2e_s,prefill_s,stalled_s,"
        "max_itl_s,prompt_tokens,output_tokens,cached_tokens,preemptions\n"
        "0,8,0,gone,1,,,,,,,3,4,0,0\n");
    cr_expect_eq(write_page(&scratch), IFL_E_INPUT);
    cr_expect_str_eq(error.text, "status is \"gone\", expected a word such as finished");
    scratch_remove(&scratch);
}

Test(page, refusals)
{
    struct scratch scratch = scratch_make();
    cr_expect_eq(write_page(&scratch), IFL_E_INPUT);
    cr_expect_not_null(strstr(error.file, "summary.csv"));
    scratch_write(&scratch, "summary.csv", "rate_rps,finished\n1,2\n");
    cr_expect_eq(write_page(&scratch), IFL_E_INPUT);
    cr_expect_str_eq(error.text, "no column requests");
    scratch_write(&scratch, "summary.csv", "rate_rps,requests\n1,2\n");
    scratch_write(&scratch, "quantiles.csv", "point,quantile\n0,0\n");
    cr_expect_eq(write_page(&scratch), IFL_E_INPUT);
    cr_expect_str_eq(error.text, "no column ttft_s");
    cr_expect_null(scratch_read(&scratch, "page.html"), "no page after an error");
    scratch_remove(&scratch);
}
