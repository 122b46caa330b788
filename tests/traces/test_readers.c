/* Every format on a few rows written by hand, with the values that stand in the file. */
#include "reading.h"

#include <stdio.h>
#include <unistd.h>

#define S IFL_NS_PER_S

Test(readers, azure)
{
    struct notebook notebook = {0};
    struct ifl_trace trace = must_load(FIXTURE("azure.csv"), &notebook);
    cr_assert_eq(trace.n, 3);
    cr_expect(trace.has_stamps);
    /* 2023-11-16 18:15:46.68059 to 2024-02-29 23:59:59.9999999: 105 days, 5:44:13.3194099 */
    expect_column(trace.arrival_ns, 0, 4314579100, (105 * 86400LL + 20653) * S + 319409900);
    expect_column(trace.n_prompt, 374, 396, 12);
    expect_column(trace.n_output, 44, 109, 3);
    expect_column(trace.request_id, 0, 1, 3);
    cr_expect_eq(notebook.n, 1);
    cr_expect(strstr(notebook.last, "1 of 4 records have no prompt or no output"), "%s",
              notebook.last);
    ifl_trace_free(&trace);
}

Test(readers, azure_2024_with_zones)
{
    struct notebook notebook = {0};
    struct ifl_trace trace = must_load(FIXTURE("azure-2024.csv"), &notebook);
    expect_column(trace.arrival_ns, 1800 * S + 1163000, 1800 * S, 0);
    cr_expect_null(trace.request_id);
    cr_expect_eq(notebook.n, 0);
    ifl_trace_free(&trace);
}

Test(readers, vidur)
{
    struct notebook notebook = {0};
    struct ifl_trace trace = must_load(FIXTURE("vidur.csv"), &notebook);
    cr_assert_eq(trace.n, 2);
    cr_expect(trace.has_stamps);
    expect_column(trace.arrival_ns, 500000000,
                  1000000); /* stamps of the file, not relative to the first */
    expect_column(trace.n_prompt, 100, 300);
    expect_column(trace.n_output, 10, 30);
    expect_column(trace.request_id, 0, 2);
    ifl_trace_free(&trace);
}

Test(readers, vidur_without_stamps)
{
    struct ifl_trace trace = must_read("num_prefill_tokens,num_decode_tokens\n7,8\n");
    cr_expect(!trace.has_stamps);
    expect_column(trace.arrival_ns, 0);
    expect_column(trace.n_prompt, 7);
    cr_expect_eq(trace.n_clients, 1);
    ifl_trace_free(&trace);
}

Test(readers, burstgpt)
{
    struct notebook notebook = {0};
    struct ifl_trace trace = must_load(FIXTURE("burstgpt.csv"), &notebook);
    cr_assert_eq(trace.n, 4);
    expect_column(trace.arrival_ns, 0, 40 * S, 113 * S + S / 4, 275 * S);
    expect_column(trace.n_prompt, 472, 1087, 417, 900);
    expect_column(trace.n_output, 18, 230, 276, 1);
    expect_column(trace.client, 0, 0, 1, 1);
    expect_column(trace.request_id, 0, 1, 2, 4);
    cr_assert_eq(trace.n_clients, 2);
    cr_expect_str_eq(trace.client_names[0], "ChatGPT");
    cr_expect_str_eq(trace.client_names[1], "GPT-4");
    cr_expect_null(trace.session);
    cr_expect(strstr(notebook.last, "1 of 5 requests failed"), "%s", notebook.last);
    ifl_trace_free(&trace);
}

Test(readers, burstgpt_with_sessions)
{
    struct notebook notebook = {0};
    struct ifl_trace trace = must_load(FIXTURE("burstgpt-sessions.csv"), &notebook);
    cr_assert_eq(trace.n, 4);
    expect_column(trace.session, 1, 0, 2, 1);
    expect_column(trace.arrival_ns, 0, 2 * S, 6 * S, 8 * S);
    ifl_trace_free(&trace);
}

Test(readers, mooncake)
{
    struct notebook notebook = {0};
    struct ifl_trace trace = must_load(FIXTURE("mooncake.jsonl"), &notebook);
    cr_assert_eq(trace.n, 3);
    expect_column(trace.arrival_ns, 1000000, 0, 3002000000);
    expect_column(trace.n_prompt, 1000, 513, 1);
    expect_column(trace.n_output, 10, 20, 5);
    cr_expect_eq(trace.hash_block_tokens, 512);
    expect_column(trace.hash_at, 0, 2, 4, 4);
    expect_column(trace.hash_id, 0, 1, 0, 18446744);
    ifl_trace_free(&trace);
}

Test(readers, bailian_sessions_are_trees_of_chats)
{
    struct notebook notebook = {0};
    struct ifl_trace trace = must_load(FIXTURE("bailian.jsonl"), &notebook);
    cr_assert_eq(trace.n, 5);
    expect_column(trace.arrival_ns, S, 1386000000, 9886000000, 14886000001, 0);
    expect_column(trace.session, 1, 2, 1, 1, 3);
    expect_column(trace.client, 0, 1, 0, 0, 2);
    cr_expect_str_eq(trace.client_names[2], "image");
    expect_column(trace.request_id, 0, 1, 2, 4, 5);
    cr_expect_eq(trace.hash_block_tokens, 16);
    expect_column(trace.hash_at, 0, 3, 4, 7, 11, 11);
    expect_column(trace.hash_id, 100, 101, 102, 200, 100, 101, 103, 100, 101, 103, 105);
    ifl_trace_free(&trace);
}

Test(readers, bailian_child_before_its_parent)
{
    struct ifl_trace trace =
        must_read("{\"chat_id\":3,\"parent_chat_id\":2,\"timestamp\":0,\"input_length\":1,"
                  "\"output_length\":1,\"type\":\"t\",\"hash_ids\":[]}\n"
                  "{\"chat_id\":1,\"parent_chat_id\":-1,\"timestamp\":1,\"input_length\":1,"
                  "\"output_length\":1,\"type\":\"t\",\"hash_ids\":[]}\n"
                  "{\"chat_id\":2,\"parent_chat_id\":1,\"timestamp\":2,\"input_length\":1,"
                  "\"output_length\":1,\"type\":\"t\",\"hash_ids\":[]}\n");
    expect_column(trace.session, 1, 1, 1);
    cr_expect_null(trace.hash_at);
    ifl_trace_free(&trace);
}

Test(readers, llmservingsim_is_exact_beyond_doubles)
{
    struct notebook notebook = {0};
    struct ifl_trace trace = must_load(FIXTURE("llmservingsim.jsonl"), &notebook);
    expect_column(trace.arrival_ns, 0, 9007199254740993 - 46926808);
    expect_column(trace.n_prompt, 5, 6);
    expect_column(trace.n_output, 3, 4);
    ifl_trace_free(&trace);
}

Test(readers, sharegpt_estimates_by_characters)
{
    struct notebook notebook = {0};
    struct ifl_trace trace = must_load(FIXTURE("sharegpt.json"), &notebook);
    cr_assert_eq(trace.n, 2);
    cr_expect(!trace.has_stamps);
    cr_expect(trace.lengths_estimated);
    expect_column(trace.n_prompt, 2, 2); /* 8 and 11 code points */
    expect_column(trace.n_output, 1, 2); /* 3 and 8, a NUL among them */
    expect_column(trace.request_id, 0, 2);
    cr_expect_eq(notebook.n, 2);
    ifl_trace_free(&trace);
}

Test(readers, inflight_with_every_column)
{
    struct notebook notebook = {0};
    struct ifl_trace trace = must_load(FIXTURE("inflight.csv"), &notebook);
    cr_assert_eq(trace.n, 4);
    expect_column(trace.arrival_ns, S / 2, 1, 1000000, 9000000000123456789);
    expect_column(trace.n_prompt, 10, 20, 30, 40);
    expect_column(trace.n_output, 20, 30, 40, 50);
    expect_column(trace.request_id, 77, 1, 2, 12345678901234567);
    expect_column(trace.client, 0, 1, 0, 2);
    cr_assert_eq(trace.n_clients, 3);
    cr_expect_str_eq(trace.client_names[1], "bob, jr");
    cr_expect_str_eq(trace.client_names[2], "");
    expect_column(trace.priority, -3, 0, 0, 5);
    expect_column(trace.ttft_slo_ns, 1500000000, IFL_NEVER, IFL_NEVER, IFL_NEVER);
    expect_column(trace.tpot_slo_ns, 50000000, IFL_NEVER, IFL_NEVER, 100000000);
    expect_column(trace.max_tokens, 64, 0, 0, 50);
    expect_column(trace.samples, 2, 1, 1, 1);
    expect_column(trace.session, 1, 0, 2, 1);
    expect_column(trace.think_ns, -1, -1, 2250000000, 0);
    expect_column(trace.prefix_group, 1, 0, 0, 1);
    expect_column(trace.prefix_tokens, 4, 0, 0, 40);
    ifl_trace_free(&trace);
}

/* Tokens of a common beginning of two prompts have the same ids, no other tokens do: an id stands
 * for all tokens up to its own. */
Test(readers, token_ids_are_what_prompts_share)
{
    enum { N_PROMPTS = 5, N_TOKENS = 4 };
    static const int64_t tokens[N_PROMPTS][N_TOKENS] = {
        {7, 8, 9, 9}, {7, 8, 0, 9}, {2147483647, 8, 9, 9}, {7, 8, 9}, {0, 0, 0, 0}};
    struct ifl_trace trace = must_read("prompt_tokens,output_tokens,token_ids\n"
                                       "4,1,7 8 9 9\n4,1,7 8 0 9\n4,1,2147483647 8 9 9\n"
                                       "3,1,7 8 9\n4,1,0 0 0 0\n5,1,\n");
    cr_expect_eq(trace.hash_block_tokens, 1);
    expect_column(trace.hash_at, 0, 4, 8, 12, 15, 19, 19);
    for (size_t a = 0; a < trace.hash_at[N_PROMPTS]; a++)
        for (size_t b = 0; b < trace.hash_at[N_PROMPTS]; b++) {
            const size_t row_a = a < 15 ? a / 4 : 4, row_b = b < 15 ? b / 4 : 4;
            const size_t n = a - trace.hash_at[row_a] + 1;
            const bool same = n == b - trace.hash_at[row_b] + 1 &&
                              memcmp(tokens[row_a], tokens[row_b], n * sizeof **tokens) == 0;
            cr_expect_eq(trace.hash_id[a] == trace.hash_id[b], same, "ids %zu and %zu", a, b);
        }
    ifl_trace_free(&trace);
}

Test(readers, clients_called_by_numbers_keep_them)
{
    struct ifl_trace trace = must_read("prompt_tokens,output_tokens,client\n1,1,5\n1,1,0\n1,1,\n");
    expect_column(trace.client, 5, 0, 0);
    cr_expect_eq(trace.n_clients, 6);
    cr_expect_null(trace.client_names);
    cr_expect(!trace.has_stamps);
    ifl_trace_free(&trace);
}

Test(readers, clients_called_by_huge_numbers_are_names)
{
    struct ifl_trace trace =
        must_read("prompt_tokens,output_tokens,client\n1,1,5\n1,1,4000000000\n");
    expect_column(trace.client, 0, 1);
    cr_expect_eq(trace.n_clients, 2);
    cr_expect_str_eq(trace.client_names[1], "4000000000");
    ifl_trace_free(&trace);
}

/* ---- common to all formats ---- */

Test(readers, line_ends_blank_lines_marks_and_spaces)
{
    static const char *const texts[] = {
        "prompt_tokens,output_tokens\n3,4\n5,6\n",
        "prompt_tokens,output_tokens\r\n3,4\r\n5,6",
        "prompt_tokens,output_tokens\r3,4\r5,6\r",
        "\xef\xbb\xbfprompt_tokens,output_tokens\n\n3,4\n  \n5,6\n\n",
        " prompt_tokens , output_tokens \n 3 ,4\n\"5\",+6\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct ifl_trace trace = must_read(texts[i]);
        cr_expect_eq(trace.n, 2, "text %zu", i);
        expect_column(trace.n_prompt, 3, 5);
        expect_column(trace.n_output, 4, 6);
        ifl_trace_free(&trace);
    }
}

Test(readers, lists_on_one_line_or_many)
{
    static const char *const texts[] = {
        "[{\"conversations\":[{\"value\":\"abcd\"},{\"value\":\"efgh\"}]}]",
        " \n[\n{\"conversations\":\n[{\"value\":\"abcd\"},\n{\"value\":\"efgh\"}]}\n]\n",
    };
    for (size_t i = 0; i < 2; i++) {
        struct ifl_trace trace = must_read(texts[i]);
        cr_expect_eq(trace.n, 1);
        expect_column(trace.n_prompt, 1);
        ifl_trace_free(&trace);
    }
}

Test(readers, decimal_seconds_round_once)
{
    static const struct {
        const char *text;
        int64_t ns;
    } cases[] = {{"0", 0},
                 {".5", 500000000},
                 {"1.", 1000000000},
                 {"0.1234567894", 123456789},
                 {"0.1234567895", 123456790},
                 {"0.9999999999", 1000000000},
                 {"1.5e-3", 1500000},
                 {"-2.5", -2500000000},
                 {"1700000000.000000001", 1700000000000000001}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t ns;
        cr_expect_eq(trace_seconds(cases[i].text, strlen(cases[i].text), &ns), TRACE_NUMBER, "%s",
                     cases[i].text);
        cr_expect_eq(ns, cases[i].ns, "%s gives %lld", cases[i].text, (long long)ns);
    }
}

/* More rows and longer lines than any first buffer holds. */
Test(readers, growth)
{
    enum { ROWS = 5000, LONG = 150000 };
    char path[] = "/tmp/inflight-growth-XXXXXX";
    FILE *file = fdopen(mkstemp(path), "w");
    fprintf(file, "prompt_tokens,output_tokens,client\n1,1,%0*d\n", LONG, 7);
    for (int i = 0; i < ROWS; i++)
        fprintf(file, "%d,%d,y\n", i + 1, 2 * i + 1);
    fclose(file);
    struct notebook notebook = {0};
    struct ifl_trace trace = must_load(path, &notebook);
    unlink(path);
    cr_assert_eq(trace.n, ROWS + 1);
    for (int i = 0; i < ROWS; i++)
        cr_assert(trace.n_prompt[i + 1] == i + 1 && trace.n_output[i + 1] == 2 * i + 1);
    cr_expect_eq(strlen(trace.client_names[0]), LONG);
    ifl_trace_free(&trace);
}
