/* Bad input: one line that names the place, what was found and what was expected. */
#include "reading.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

struct bad {
    const char *format, *text;
    int line, column;
    const char *says; /* part of the message */
};

static const struct bad bad[] = {
    /* headers */
    {"inflight", "arrival_s,promt_tokens,output_tokens\n0,1,1\n", 1, 11,
     "column \"promt_tokens\" is unknown; the nearest right name is prompt_tokens"},
    {"inflight", "arrival_s,prompt_tokens\n0,1\n", 1, 0, "column output_tokens is missing"},
    {"inflight", "prompt_tokens,output_tokens,prompt_tokens\n1,1,1\n", 1, 29, "is there twice"},
    {"inflight", "prompt_tokens,output_tokens,think_s\n1,1,1\n", 1, 0,
     "column think_s is there without column session"},
    {"inflight", "prompt_tokens,output_tokens,prefix_tokens\n1,1,1\n", 1, 0,
     "without column prefix_group"},
    {"azure", "TIMESTAMP,ContextTokens\n", 1, 0, "column GeneratedTokens is missing"},
    {"vidur", "num_prefill_tokens;num_decode_tokens\n1;2\n", 1, 0,
     "column num_prefill_tokens is missing"},
    {"auto", "a,b,c\n1,2,3\n", 1, 0, "expected one of: azure, sharegpt, vidur, burstgpt"},
    {"auto", "{\"a\": 1}\n", 1, 0, "the keys are those of no trace format"},
    {"parquet", "a\n", 0, 0, "unknown trace format \"parquet\", expected auto, azure"},
    /* numbers */
    {"inflight", "prompt_tokens,output_tokens\n5,6\n-4,1\n", 3, 1,
     "prompt_tokens is \"-4\", expected a whole number from 1 to 2147483647"},
    {"inflight", "prompt_tokens,output_tokens\n5,2147483648\n", 2, 3, "is \"2147483648\""},
    {"inflight", "prompt_tokens,output_tokens\n5,99999999999999999999\n", 2, 3, "output_tokens is"},
    {"inflight", "prompt_tokens,output_tokens\n5,nan\n", 2, 3, "output_tokens is \"nan\""},
    {"inflight", "prompt_tokens,output_tokens\n5,1.5\n", 2, 3, "output_tokens is \"1.5\""},
    {"inflight", "prompt_tokens,output_tokens\n5,\n", 2, 3, "output_tokens is \"\""},
    {"inflight", "prompt_tokens,output_tokens\n0,1\n", 2, 1, "prompt_tokens is \"0\""},
    {"inflight", "arrival_s,prompt_tokens,output_tokens\n-0.5,1,1\n", 2, 1,
     "arrival_s is \"-0.5\", expected seconds"},
    {"inflight", "arrival_s,prompt_tokens,output_tokens\nnan,1,1\n", 2, 1, "arrival_s is \"nan\""},
    {"inflight", "arrival_s,prompt_tokens,output_tokens\ninf,1,1\n", 2, 1, "arrival_s is \"inf\""},
    {"inflight", "arrival_s,prompt_tokens,output_tokens\n1e40,1,1\n", 2, 1, "is \"1e40\""},
    {"inflight", "arrival_s,prompt_tokens,output_tokens\n99999999999,1,1\n", 2, 1,
     "is \"99999999999\""},
    {"inflight", "client,prompt_tokens,output_tokens\n\"a,\"\"b\",x,1\n", 2, 9,
     "prompt_tokens is \"x\""},
    {"inflight", "prompt_tokens,output_tokens,samples\n1,1,0\n", 2, 5, "samples is \"0\""},
    {"inflight", "arrival_s,prompt_tokens,output_tokens,session,think_s\n0,1,1,a,\n,1,1,b,3\n", 3,
     1, "arrival_s is \"\", expected a stamp in a session's first row"},
    {"inflight", "prompt_tokens,output_tokens,session,think_s\n1,1,,3\n", 2, 6,
     "think_s is \"3\", expected none in a row without session"},
    {"inflight", "prompt_tokens,output_tokens,prefix_group,prefix_tokens\n4,1,g,5\n", 2, 7,
     "prefix_tokens is \"5\", expected at most prompt_tokens"},
    {"inflight", "prompt_tokens,output_tokens,token_ids\n3,1,1 2 3\n3,1,1 2\n", 3, 5,
     "token_ids is \"1 2\", expected as many numbers as prompt_tokens, or those of the answer as "
     "well"},
    {"inflight", "prompt_tokens,output_tokens,token_ids\n2147483647,1,1 2\n", 2, 14,
     "token_ids is \"1 2\", expected as many numbers as prompt_tokens, or those of the answer as "
     "well"},
    {"inflight", "prompt_tokens,output_tokens,token_ids\n2,1,1 -2\n", 2, 5,
     "token_ids is \"1 -2\", expected whole numbers below 2^31, a blank between two"},
    {"inflight", "prompt_tokens,output_tokens,token_ids\n2,1,\"[1, 2]\"\n", 2, 5,
     "token_ids is \"[1, 2]\", expected whole numbers"},
    {"inflight", "prompt_tokens,output_tokens,token_ids\n1,1,2147483648\n", 2, 5,
     "token_ids is \"2147483648\", expected whole numbers below 2^31"},
    {"inflight", "prompt_tokens,output_tokens,token_ids\n2,1,1  2\n", 2, 5,
     "token_ids is \"1  2\", expected whole numbers"},
    {"inflight", "prompt_tokens,output_tokens,token_ids\n1,1,\"1 \"\n", 2, 5,
     "token_ids is \"1 \", expected whole numbers"},
    {"inflight", "prompt_tokens,output_tokens,prefix_group,prefix_tokens,token_ids\n2,1,g,1,1 2\n",
     2, 9, "token_ids is \"1 2\", expected none in a row with prefix_tokens"},
    {"auto", "num_prefill_tokens,num_decode_tokens,priority\n1,1,high\n", 2, 5,
     "priority is \"high\", expected a whole number"},
    {"auto", "num_prefill_tokens,num_decode_tokens,client,client\n1,1,a,b\n", 1, 45,
     "column \"client\" is there twice"},
    {"mooncake", "{\"timestamp\":0,\"input_length\":1,\"output_length\":1,\"client\":[1]}\n", 1, 0,
     "client is [1], expected a text on one line or a whole number"},
    {"mooncake",
     "{\"timestamp\":0,\"input_length\":1,\"output_length\":1}\n"
     "{\"timestamp\":0,\"input_length\":1,\"output_length\":1,\"ttft_slo_s\":1}\n",
     2, 0, "ttft_slo_s is 1, expected it in the first record, too, or in none"},
    {"inflight", "prompt_tokens,output_tokens,prefix_group,prefix_tokens\n4,1,,2\n", 2, 6,
     "expected none in a row without prefix_group"},
    {"azure", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-02-29 00:00:00,1,1\n", 2, 1,
     "TIMESTAMP is \"2023-02-29 00:00:00\", expected YYYY-MM-DD"},
    {"azure", "TIMESTAMP,ContextTokens,GeneratedTokens\n12.5,1,1\n", 2, 1, "TIMESTAMP is \"12.5\""},
    {"azure", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-01-01 24:00:00,1,1\n", 2, 1,
     "TIMESTAMP is"},
    {"azure", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-01-01 00:00:00,-1,1\n", 2, 21,
     "ContextTokens is \"-1\""},
    {"vidur", "num_prefill_tokens,num_decode_tokens,arrived_at\n1,1,-1\n", 2, 5,
     "arrived_at is \"-1\""},
    {"burstgpt", "Timestamp,Model,Request tokens,Response tokens\n0,m,1,many\n", 2, 7,
     "Response tokens is \"many\""},
    /* rows and quotes */
    {"inflight", "prompt_tokens,output_tokens\n1,2\n1,2,3\n", 3, 0,
     "3 cells, expected 2 as in the header"},
    {"inflight", "prompt_tokens,output_tokens\n1\n", 2, 0, "1 cells, expected 2"},
    {"inflight", "prompt_tokens,output_tokens,client\n1,2,\"a\n3,4,b\n", 2, 0,
     "a quote is not closed"},
    {"inflight", "prompt_tokens,output_tokens,client\n1,2,a\"b\n", 2, 6, "a stray quote"},
    /* nothing there */
    {"auto", "", 0, 0, "the file is empty"},
    {"auto", "\n \n", 0, 0, "the file is empty"},
    {"auto", "prompt_tokens,output_tokens\n", 0, 0, "no request, expected at least one"},
    {"azure", "", 0, 0, "no request"},
    {"vidur", "num_prefill_tokens,num_decode_tokens\n1,0\n0,1\n", 0, 0,
     "no request is left: 2 of 2 records have no prompt"},
    {"sharegpt", "[]", 0, 0, "no request"},
    /* JSON */
    {"mooncake", "{\"timestamp\":0,\"input_length\":1,\"output_length\":1}\n{\"timestamp\":\n", 2,
     13, "not a JSON object"},
    {"mooncake", "{\"timestamp\":0,\"input_length\":1,\"output_length\":1}\n\n[1]\n", 3, 0,
     "a value that is no object"},
    {"mooncake", "{\"timestamp\":0,\"input_length\":-1,\"output_length\":1}\n", 1, 0,
     "input_length is -1, expected a whole number from 0 to 2147483647"},
    {"mooncake", "{\"timestamp\":0,\"input_length\":3000000000,\"output_length\":1}\n", 1, 0,
     "input_length is 3000000000"},
    {"mooncake", "{\"timestamp\":0,\"input_length\":1}\n", 1, 0, "output_length is missing"},
    {"mooncake", "{\"timestamp\":-1,\"input_length\":1,\"output_length\":1}\n", 1, 0,
     "timestamp is -1"},
    {"mooncake", "{\"timestamp\":99999999999999999,\"input_length\":1,\"output_length\":1}\n", 1, 0,
     "timestamp is 99999999999999999"},
    {"mooncake", "{\"timestamp\":NaN,\"input_length\":1,\"output_length\":1}\n", 1, 16,
     "not a JSON object"},
    {"mooncake", "{\"timestamp\":0,\"input_length\":1,\"output_length\":1,\"hash_ids\":[1,-2]}\n",
     1, 0, "hash_ids is [1,-2], expected a list of whole numbers"},
    {"mooncake", "{\"timestamp\":0,\"timestamp\":0}\n", 1, 26, "duplicate object key"},
    {"bailian",
     "{\"chat_id\":1,\"parent_chat_id\":-1,\"timestamp\":0,\"input_length\":1,"
     "\"output_length\":1,\"type\":3,\"hash_ids\":[]}\n",
     1, 0, "type is 3, expected a text"},
    {"llmservingsim", "{\"session_id\":0,\"sub_requests\":[]}\n", 1, 0, "sub_requests"},
    {"sharegpt", "[{\"conversations\":[]},\n {\"id\":1}]\n", 2, 0,
     "conversations is missing, expected a list of turns"},
    {"sharegpt", "[{\"conversations\":[]},\n {\"conversations\":[1,]}]\n", 2, 22,
     "not a JSON object"},
    {"sharegpt", "[{\"conversations\":[]}\n", 2, 1, "the file ends here, expected ',' or ']'"},
    {"sharegpt", "[{\"conversations\":[]}] x", 1, 24, "'x', expected the end of the file"},
    {"sharegpt", "{\"a\":1}", 1, 1, "'{', expected '['"},
    {"sharegpt", "[{\"conversations\":[{\"value\":1},{\"value\":2}]}]", 1, 0,
     "expected turns with a text"},
};

Test(errors, every_bad_text_is_blamed_at_its_place)
{
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct ifl_trace trace;
        struct ifl_error error = {0};
        const int rc = read_text(bad[i].text, bad[i].format, &trace, &error);
        cr_expect_eq(rc, IFL_E_INPUT, "accepted: %s", bad[i].text);
        cr_expect_eq(error.code, IFL_E_INPUT);
        cr_expect(strstr(error.text, bad[i].says), "\"%s\" lacks \"%s\"", error.text, bad[i].says);
        cr_expect(error.line == bad[i].line && error.column == bad[i].column,
                  "%s: blamed at %d:%d, not %d:%d", bad[i].says, error.line, error.column,
                  bad[i].line, bad[i].column);
        cr_expect_null(strchr(error.text, '\n'), "more than one line: %s", error.text);
        if (strcmp(bad[i].format, "parquet") != 0)
            cr_expect_str_eq(error.file, "text.csv");
        cr_expect(trace.n == 0 && !trace.arrival_ns, "half a trace is left");
    }
}

/* ---- files ---- */

static struct ifl_error fail_to_read(const char *path)
{
    struct ifl_trace trace;
    struct ifl_error error = {0};
    cr_expect_eq(ifl_trace_read(&(struct ifl_trace_file){path, "auto", 0}, NULL, &trace, &error),
                 IFL_E_INPUT);
    cr_expect_str_eq(error.file, path);
    return error;
}

Test(errors, missing_file)
{
    const struct ifl_error error = fail_to_read(FIXTURE("nowhere.csv"));
    cr_expect_str_eq(error.text, "cannot open: No such file or directory");
}

Test(errors, directory)
{
    const struct ifl_error error = fail_to_read(FIXTURE(""));
    cr_expect_str_eq(error.text, "cannot read: Is a directory");
}

static struct ifl_error fail_to_read_bytes(const char *bytes, size_t n)
{
    char path[] = "/tmp/inflight-trace-XXXXXX";
    const int file = mkstemp(path);
    cr_assert_eq(write(file, bytes, n), (ssize_t)n);
    close(file);
    const struct ifl_error error = fail_to_read(path);
    unlink(path);
    return error;
}

Test(errors, empty_file)
{
    const struct ifl_error error = fail_to_read_bytes("", 0);
    cr_expect(strstr(error.text, "the file is empty"), "%s", error.text);
}

/* Any number of missing bytes is an error, even the last byte of the checksum. */
Test(errors, truncated_gzip)
{
    static char bytes[200000];
    FILE *file = fopen(SHIPPED("azure-code-2023.csv.gz"), "rb");
    const size_t n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    const size_t lengths[] = {11, 100, n / 2, n - 8, n - 1};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        const struct ifl_error error = fail_to_read_bytes(bytes, lengths[i]);
        cr_expect(strstr(error.text, "the gzip stream is cut short"), "%zu bytes: %s", lengths[i],
                  error.text);
    }
}

Test(errors, damaged_gzip)
{
    static char bytes[200000];
    FILE *file = fopen(SHIPPED("azure-code-2023.csv.gz"), "rb");
    const size_t n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    memset(bytes + n / 2, 0xff, 64);
    const struct ifl_error error = fail_to_read_bytes(bytes, n);
    cr_expect(strstr(error.text, "cannot decompress"), "%s", error.text);
}

Test(errors, formats_are_listed)
{
    size_t n = 0;
    for (const struct ifl_trace_format *f = ifl_trace_formats(); f->name; f++, n++)
        cr_expect(f->doc && f->columns);
    cr_expect_eq(n, 16);
}
