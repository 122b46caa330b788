/* Client, id and outcome of a request: names without NUL characters, unique ids, and one of three
 * outcomes. */
#include "reading.h"

/* `text` of n bytes is refused at the line and column, with a message that contains `says`. */
static void expect_refusal(const char *format, const char *text, size_t n, int line, int column,
                           const char *says)
{
    struct ifl_trace trace;
    struct ifl_error error = {0};
    cr_expect_eq(read_bytes(text, n, format, &trace, &error), IFL_E_INPUT, "accepted: %s", text);
    cr_expect(strstr(error.text, says), "\"%s\" lacks \"%s\"", error.text, says);
    cr_expect(error.line == line && error.column == column, "%s: blamed at %d:%d, not %d:%d", says,
              error.line, error.column, line, column);
    cr_expect_str_eq(error.file, "text.csv");
}

#define refuses(format, text, line, column, says)                                                  \
    expect_refusal(format, text, sizeof text - 1, line, column, says)

/* "a" and "a\0b" are two clients; as texts they would be one. */
Test(identity, a_nul_in_a_cell_is_refused)
{
    refuses("auto", "prompt_tokens,output_tokens,client\n1,1,a\n1,1,a\0b\n", 3, 5,
            "client is \"a?b\", expected a text without NUL characters");
    refuses("auto", "prompt_tokens,output_tokens,session\n1,1,a\0\n", 2, 5, "session is \"a?\"");
    refuses("auto", "prompt_tokens,output_tokens,prefix_group,prefix_tokens\n1,1,\0g,1\n", 2, 5,
            "prefix_group is \"?g\"");
    refuses("auto", "num_prefill_tokens,num_decode_tokens,client\n1,1,\"a,\0\"\n", 2, 5,
            "client is \"a,?\"");
    refuses("auto", "Timestamp,Model,Request tokens,Response tokens\n0,gpt\0-4,1,1\n", 2, 3,
            "Model is \"gpt?-4\"");
    refuses("inflight", "prompt_tokens,output_tokens,client\0s\n1,1,a\n", 1, 29,
            "column \"client?s\" holds a NUL character");
    refuses("vidur", "num_prefill_tokens,num_decode_tokens\0\n1,1\n", 1, 20,
            "column \"num_decode_tokens?\" holds a NUL character");
}

Test(identity, a_nul_in_json_is_refused)
{
    refuses("mooncake",
            "{\"timestamp\":0,\"input_length\":1,\"output_length\":1,\"client\":\"a\\u0000b\"}\n",
            1, 0, "client is \"a\\u0000b\", expected a text on one line, without NUL");
    refuses("bailian",
            "{\"chat_id\":1,\"parent_chat_id\":-1,\"timestamp\":0,\"input_length\":1,"
            "\"output_length\":1,\"type\":\"a\\u0000\",\"hash_ids\":[]}\n",
            1, 0, "type is \"a\\u0000\", expected a text on one line, without NUL");
    refuses("vtc",
            "{\"config\":{},\"result\":{\"responses\":[{\"adapter_dir\":\"a\\u0000b\","
            "\"prompt_len\":1,\"output_len\":1,\"req_time\":0,\"first_token_latency\":1,"
            "\"request_latency\":2}]}}\n",
            1, 0, "adapter_dir is \"a\\u0000b\", expected a text on one line");
    refuses("vtc",
            "{\"config\":{},\"result\":{\"responses\":[{\"adapter_dir\":\"a\\nb\","
            "\"prompt_len\":1,\"output_len\":1,\"req_time\":0,\"first_token_latency\":1,"
            "\"request_latency\":2}]}}\n",
            1, 0, "adapter_dir is \"a\\nb\", expected a text on one line");
}

/* ---- ids ---- */

Test(identity, an_id_is_there_once)
{
    refuses("auto", "prompt_tokens,output_tokens,request_id\n1,1,7\n1,1,7\n", 3, 0,
            "request_id is 7 as on line 2, expected each id once");
    refuses("auto", "prompt_tokens,output_tokens,request_id\n1,1,9\n\n1,1,4\n1,1,5\n1,1,4\n1,1,9\n",
            6, 0, "request_id is 4 as on line 4");
    refuses("auto", "prompt_tokens,output_tokens,request_id\n1,1,1\n1,1,\n", 3, 0,
            "request_id is 1 as on line 2");
}

Test(identity, ids_may_come_in_any_order)
{
    struct ifl_trace trace =
        must_read("prompt_tokens,output_tokens,request_id\n1,1,9\n1,1,0\n1,1,\n1,1,4\n");
    expect_column(trace.request_id, 9, 0, 2, 4);
    ifl_trace_free(&trace);
}

/* Row 2 repeats the last, which repeats the first, by their ids; row 3 repeats none that is there.
 */
Test(identity, a_row_repeats_another_by_its_id)
{
    int64_t retry_of[] = {-1, -1, 4, 7, 9};
    uint64_t request_id[] = {9, 0, 2, 3, 4};
    struct ifl_trace trace = {.n = 5, .retry_of = retry_of, .request_id = request_id};
    struct ifl_error error;
    size_t *before;
    cr_assert_eq(ifl_trace_repeated(&trace, &before, &error), 0);
    cr_expect_arr_eq(before, ((size_t[]){5, 5, 4, 5, 0}), sizeof(size_t[5]));
    free(before);
    trace.request_id = NULL; /* ids are numbers of rows */
    cr_assert_eq(ifl_trace_repeated(&trace, &before, &error), 0);
    cr_expect_arr_eq(before, ((size_t[]){5, 5, 4, 5, 5}), sizeof(size_t[5]));
    free(before);
}

#define REQUESTS                                                                                   \
    "point,request_id,status,arrival_s,prompt_tokens,output_tokens,ttft_s,e2e_s,queue_s,"          \
    "preemptions\n"

/* Ids of rejected requests, which have no row in the trace, must be unique, too. */
Test(identity, a_run_has_each_request_once)
{
    refuses("requests", REQUESTS "0,3,finished,0,1,1,1,1,0,0\n0,3,finished,1,1,1,1,1,0,0\n", 3, 0,
            "request_id is 3 as on line 2");
    refuses("requests", REQUESTS "0,3,rejected,0,1,0,,,,0\n0,3,finished,1,1,1,1,1,0,0\n", 3, 0,
            "request_id is 3 as on line 2");
}

Test(identity, a_status_is_one_of_six)
{
    refuses("requests", REQUESTS "0,3,finised,0,1,1,1,1,0,0\n", 2, 5,
            "status is \"finised\", expected finished, rejected, failed, aborted, timed_out or "
            "shed; did you mean finished?");
    refuses("requests", REQUESTS "0,3,,0,1,1,1,1,0,0\n", 2, 5,
            "status is \"\", expected finished, rejected, failed, aborted, timed_out or shed");
    refuses("requests", REQUESTS "0,3,Finished,0,1,1,1,1,0,0\n", 2, 5, "did you mean finished?");
    refuses("requests", REQUESTS "0,3,ok,0,1,1,1,1,0,0\n", 2, 5,
            "expected finished, rejected, failed");
}
