/* Client, priority and SLOs of a request, in every format with one record per request. */
#include "reading.h"

#define NAMES ",client,priority,ttft_slo_s,tpot_slo_s,max_tokens"
#define CELLS ",gold,-1,0.5,0.05,64"
#define NO_CELLS ",,,,,"
#define KEYS                                                                                       \
    ",\"client\":\"gold\",\"priority\":-1,\"ttft_slo_s\":0.5,\"tpot_slo_s\":0.05,\"max_tokens\":"  \
    "64"
#define AIPERF(keys)                                                                               \
    "{\"metadata\":{\"request_start_ns\":1},\"metrics\":{"                                         \
    "\"input_sequence_length\":{\"value\":3,\"unit\":\"tokens\"},"                                 \
    "\"output_sequence_length\":{\"value\":4,\"unit\":\"tokens\"},"                                \
    "\"request_latency\":{\"value\":9,\"unit\":\"ms\"},"                                           \
    "\"time_to_first_token\":{\"value\":2,\"unit\":\"ms\"}}" keys "}\n"
#define BAILIAN(keys)                                                                              \
    "{\"chat_id\":1,\"parent_chat_id\":-1,\"timestamp\":0,\"input_length\":3,\"output_length\":4," \
    "\"type\":\"text\",\"hash_ids\":[]" keys "}\n"
#define RUN(keys)                                                                                  \
    "{\"input_toks\":3,\"output_toks\":4,\"arrival_time\":1,\"queued_ts\":1,\"scheduled_ts\":1,"   \
    "\"first_token_ts\":2,\"last_token_ts\":3" keys "}\n"
#define CHAT(keys) "{\"conversations\":[{\"value\":\"abcd\"},{\"value\":\"efgh\"}]" keys "}"

static const struct {
    const char *format, *text;
} with_attributes[] = {
    {"inflight", "prompt_tokens,output_tokens" NAMES "\n3,4" CELLS "\n3,4" NO_CELLS "\n"},
    {"azure", "TIMESTAMP,ContextTokens,GeneratedTokens" NAMES "\n2023-11-16 18:17:03,3,4" CELLS
              "\n2023-11-16 18:17:04,3,4" NO_CELLS "\n"},
    {"vidur", "num_prefill_tokens,num_decode_tokens" NAMES "\n3,4" CELLS "\n3,4" NO_CELLS "\n"},
    {"burstgpt", "Timestamp,Model,Request tokens,Response tokens" NAMES "\n0,GPT-4,3,4" CELLS
                 "\n1,GPT-4,3,4" NO_CELLS "\n"},
    {"requests",
     "point,request_id,status,arrival_s,prompt_tokens,output_tokens,ttft_s,e2e_s,"
     "queue_s,preemptions,first_scheduled_s,finish_s" NAMES "\n0,0,finished,0,3,4,1,2,0,0,0,2" CELLS
     "\n0,1,finished,0,3,4,1,2,0,0,0,2" NO_CELLS "\n"},
    {"blis", "start,p,o,ttft,e2e,queue" NAMES "\n0,3,4,1,2,0" CELLS "\n0,3,4,1,2,0" NO_CELLS "\n"},
    {"llm-d", "prompt_tokens,generation_tokens,ttft,generation_time,launch_time" NAMES
              "\n3,4,1,2,0" CELLS "\n3,4,1,2,0" NO_CELLS "\n"},
    {"mooncake", "{\"timestamp\":0,\"input_length\":3,\"output_length\":4" KEYS "}\n"
                 "{\"timestamp\":0,\"input_length\":3,\"output_length\":4}\n"},
    {"bailian", BAILIAN(KEYS) BAILIAN("")},
    {"llmservingsim", "{\"input_toks\":3,\"output_toks\":4,\"arrival_time_ns\":1" KEYS "}\n"
                      "{\"input_toks\":3,\"output_toks\":4,\"arrival_time_ns\":1}\n"},
    {"llmservingsim-run", RUN(KEYS) RUN("")},
    {"aiperf", AIPERF(KEYS) AIPERF("")},
    {"sharegpt", "[" CHAT(KEYS) "," CHAT("") "]"},
};

Test(attributes, stand_beside_the_columns_of_every_format)
{
    for (size_t i = 0; i < sizeof with_attributes / sizeof *with_attributes; i++) {
        struct ifl_trace trace = must_read(with_attributes[i].text);
        cr_assert_eq(trace.n, 2, "%s", with_attributes[i].format);
        cr_assert(trace.client && trace.priority && trace.ttft_slo_ns && trace.max_tokens, "%s",
                  with_attributes[i].format);
        cr_assert_eq(trace.n_clients, 2, "%s", with_attributes[i].format);
        cr_expect_str_eq(trace.client_names[0], "gold", "%s", with_attributes[i].format);
        cr_expect_str_eq(trace.client_names[1], "", "%s", with_attributes[i].format);
        expect_column(trace.client, 0, 1);
        expect_column(trace.priority, -1, 0);
        expect_column(trace.ttft_slo_ns, 500000000, IFL_NEVER);
        expect_column(trace.tpot_slo_ns, 50000000, IFL_NEVER);
        expect_column(trace.max_tokens, 64, 0);
        ifl_trace_free(&trace);
    }
}

/* The formats not tested above list requests inside a record, or have only attributes of their own.
 */
Test(attributes, all_formats_are_tried)
{
    static const char *const lists[] = {"bench", "guidellm", "vtc"};
    size_t n = sizeof with_attributes / sizeof *with_attributes + sizeof lists / sizeof *lists;
    for (const struct ifl_trace_format *format = ifl_trace_formats(); format->name; format++)
        n--;
    cr_expect_eq(n, 0);
}

Test(attributes, one_is_enough_and_skipped_records_have_them_too)
{
    struct ifl_trace trace = must_read("num_prefill_tokens,priority,num_decode_tokens\n"
                                       "0,7,1\n3,5,4\n6,,1\n");
    cr_assert_eq(trace.n, 2);
    expect_column(trace.priority, 5, 0);
    cr_expect_null(trace.client);
    cr_expect_null(trace.ttft_slo_ns);
    ifl_trace_free(&trace);
}

Test(attributes, clients_by_number_in_json)
{
    struct ifl_trace trace =
        must_read("{\"timestamp\":0,\"input_length\":1,\"output_length\":1,\"client\":3}\n"
                  "{\"timestamp\":0,\"input_length\":1,\"output_length\":1,\"client\":null}\n");
    expect_column(trace.client, 3, 0);
    cr_expect_null(trace.client_names);
    ifl_trace_free(&trace);
}

Test(attributes, are_documented)
{
    char names[128] = "";
    for (size_t i = 0; i < TRACE_N_OF_ANY_FORMAT; i++) {
        strcat(names, i ? "," : "");
        strcat(names, trace_columns[TRACE_FIRST_ATTRIBUTE + i].name);
    }
    cr_expect_str_eq(names, ifl_trace_attributes());
}
