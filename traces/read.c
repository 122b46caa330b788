/* Reads a trace: finds the format, then calls its reader. */
#include "text/count.h"
#include "traces.h"

#include <csv.h>
#include <string.h>

#define N_FORMATS 16

enum shape { CSV, JSON_OBJECTS, JSON_LIST };

#define COMMA_NAME(column, kind, member, name, ...) "," name

static const struct ifl_trace_format formats[N_FORMATS + 1] = {
    {"azure", "Azure LLM inference traces 2023 and later (CSV)",
     "TIMESTAMP,ContextTokens,GeneratedTokens"},
    {"sharegpt",
     "ShareGPT (JSON list); the first two turns of each conversation, lengths counted by a "
     "tokenizer or estimated, no stamps",
     "conversations"},
    {"vidur", "lengths as Vidur and Sarathi-Serve process them (CSV); stamps in s optional",
     "num_prefill_tokens,num_decode_tokens[,arrived_at]"},
    {"burstgpt", "BurstGPT (CSV); failed requests are skipped",
     "Timestamp,Model,Request tokens,Response tokens[,Session ID]"},
    {"bailian", "Qwen-Bailian (JSON Lines); chats become sessions, 16-token hash blocks",
     "chat_id,parent_chat_id,timestamp,input_length,output_length,type,hash_ids"},
    {"mooncake", "Mooncake (JSON Lines); stamps in ms, 512-token hash blocks",
     "timestamp,input_length,output_length,hash_ids"},
    {"llmservingsim-run", "a real vLLM recorded by LLMServingSim (JSON Lines)",
     "input_toks,output_toks,arrival_time,queued_ts,scheduled_ts,first_token_ts,last_token_ts"},
    {"llmservingsim", "LLMServingSim (JSON Lines); stamps in ns",
     "input_toks,output_toks,arrival_time_ns"},
    {"requests", "requests.csv of a run of inflight, simulated or replayed (CSV)",
     "point,request_id,status,arrival_s,prompt_tokens,output_tokens,ttft_s,e2e_s,queue_s,"
     "preemptions"},
    {"bench", "recorded by vllm bench serve --save-detailed or SGLang's bench_serving (JSON)",
     "input_lens,output_lens,ttfts,itls[,start_times]"},
    {"aiperf", "recorded by AIPerf: profile_export.jsonl (JSON Lines)",
     "metadata.request_start_ns,metrics.{input_sequence_length,output_sequence_length,"
     "request_latency,time_to_first_token[,inter_chunk_latency]}"},
    {"guidellm", "recorded by GuideLLM: benchmarks.json (JSON)",
     "benchmarks[].requests.successful[].{prompt_tokens,output_tokens,request_start_time,"
     "request_latency,time_to_first_token_ms}"},
    {"blis", "vLLM spans recorded by inference-sim, BLIS (CSV)", "start,p,o,ttft,e2e,queue"},
    {"llm-d", "recorded by llm-d-benchmark (CSV)",
     "[qps,]prompt_tokens,generation_tokens,ttft,generation_time,launch_time"},
    {"vtc", "recorded by VTC's fairness benchmark; adapters are clients (JSON Lines)",
     "result.responses[].{adapter_dir,prompt_len,output_len,req_time,first_token_latency,"
     "request_latency}"},
    {"inflight", "inflight's own CSV",
     "[arrival_s,]prompt_tokens,output_tokens[,request_id" IFL_ATTRIBUTES(
         COMMA_NAME) ",token_ids]"},
    {NULL, NULL, NULL}};

/* The columns or keys that identify each format; the first match counts. Formats that have all keys
 * of another one stand before it: bailian before mooncake, recorded runs before the traces. */
static const struct {
    trace_reader_fn *read;
    enum shape shape;
    const char *telling[2];
} readers[N_FORMATS] = {
    {trace_read_azure, CSV, {"ContextTokens", "GeneratedTokens"}},
    {trace_read_sharegpt, JSON_LIST, {NULL, NULL}},
    {trace_read_vidur, CSV, {"num_prefill_tokens", "num_decode_tokens"}},
    {trace_read_burstgpt, CSV, {"Request tokens", "Response tokens"}},
    {trace_read_bailian, JSON_OBJECTS, {"chat_id", "input_length"}},
    {trace_read_mooncake, JSON_OBJECTS, {"input_length", "output_length"}},
    {trace_read_llmservingsim_run, JSON_OBJECTS, {"input_toks", "first_token_ts"}},
    {trace_read_llmservingsim, JSON_OBJECTS, {"input_toks", "output_toks"}},
    {trace_read_requests, CSV, {"status", "e2e_s"}},
    {trace_read_bench, JSON_OBJECTS, {"input_lens", "output_lens"}},
    {trace_read_aiperf, JSON_OBJECTS, {"metadata", "metrics"}},
    {trace_read_guidellm, JSON_OBJECTS, {"benchmarks", NULL}},
    {trace_read_blis, CSV, {"start", "queue"}},
    {trace_read_llmd, CSV, {"generation_time", "launch_time"}},
    {trace_read_vtc, JSON_OBJECTS, {"config", "result"}},
    {trace_read_inflight, CSV, {"prompt_tokens", "output_tokens"}},
};

const struct ifl_trace_format *ifl_trace_formats(void)
{
    return formats;
}

const char *ifl_trace_attributes(void)
{
    static const char names[] = IFL_ATTRIBUTES_OF_ANY_FORMAT(COMMA_NAME);
    return names + 1; /* behind the first comma */
}

/* ---- which format ---- */

static void list_formats(char *out, size_t size)
{
    out[0] = '\0';
    for (size_t i = 0, at = 0; i < N_FORMATS && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%s", i ? ", " : "", formats[i].name);
}

static int find_format(const char *name, struct ifl_error *error)
{
    char names[256];
    for (int i = 0; i < N_FORMATS; i++)
        if (strcmp(name, formats[i].name) == 0)
            return i;
    list_formats(names, sizeof names);
    return ifl_fail(error, IFL_E_INPUT, "unknown trace format \"%s\", expected auto, %s", name,
                    names);
}

int ifl_trace_check_format(const char *name, struct ifl_error *error)
{
    const int which = strcmp(name, "auto") == 0 ? 0 : find_format(name, error);
    return which < 0 ? which : 0;
}

struct header {
    json_t *names; /* an object: a set */
    bool ended;
};

static void take_name(void *text, size_t n, void *context)
{
    struct header *header = context;
    (void)n;
    if (!header->ended)
        json_object_set_new_nocheck(header->names, text, json_true());
}

static void end_names(int terminator, void *context)
{
    (void)terminator;
    ((struct header *)context)->ended = true;
}

static json_t *split_names(const char *line, size_t n)
{
    struct csv_parser parser;
    struct header header = {json_object(), false};
    if (!header.names || csv_init(&parser, CSV_APPEND_NULL) != 0)
        return header.names;
    csv_parse(&parser, line, n, take_name, end_names, &header);
    csv_fini(&parser, take_name, end_names, &header);
    csv_free(&parser);
    return header.names;
}

static int match(enum shape shape, const json_t *names)
{
    for (int i = 0; i < N_FORMATS; i++) {
        bool fits = readers[i].shape == shape;
        for (int k = 0; k < 2 && readers[i].telling[k]; k++)
            fits = fits && json_object_get(names, readers[i].telling[k]);
        if (fits)
            return i;
    }
    return -1;
}

static int fail_sniff(const struct trace_input *input, const char *what, struct ifl_error *error)
{
    char names[256];
    list_formats(names, sizeof names);
    return ifl_fail_at(error, input->path, input->line + 1, 0,
                       "the %s are those of no trace format, expected one of: %s", what, names);
}

/* Only the first byte decides about a list, since a list may be one line as long as the file. */
static int sniff(struct trace_input *input, struct ifl_error *error)
{
    const char *line;
    char first;
    size_t n;
    int rc = trace_input_first(input, &first, error);
    if (rc == 0)
        return ifl_fail_at(error, input->path, 0, 0, "the file is empty, expected a trace");
    if (rc > 0 && first == '[')
        return match(JSON_LIST, NULL);
    if (rc > 0)
        rc = trace_input_peek(input, &line, &n, error);
    if (rc < 0)
        return rc;
    const enum shape shape = first == '{' ? JSON_OBJECTS : CSV;
    json_t *names = shape == JSON_OBJECTS ? trace_json_first(input, error) : split_names(line, n);
    if (!names)
        return shape == JSON_OBJECTS ? error->code : ifl_fail_nomem(error);
    rc = match(shape, names);
    json_decref(names);
    return rc >= 0 ? rc : fail_sniff(input, shape == CSV ? "columns" : "keys", error);
}

/* ---- reading ---- */

int trace_read_input(struct trace_input *input, const char *format, const struct ifl_notes *notes,
                     struct ifl_trace *trace, struct ifl_error *error)
{
    struct trace_rows rows = {.trace = trace, .notes = notes, .path = input->path};
    *trace = (struct ifl_trace){0};
    const int which =
        strcmp(format, "auto") == 0 ? sniff(input, error) : find_format(format, error);
    if (which < 0)
        return which;
    if (input->counter && readers[which].read != trace_read_sharegpt)
        return ifl_fail_at(error, input->path, 0, 0,
                           "a tokenizer is given, and a trace of the format %s has no texts, "
                           "expected sharegpt",
                           formats[which].name);
    int rc = trace_rows_begin(&rows, error);
    if (rc == 0)
        rc = readers[which].read(input, &rows, error);
    if (rc == 0)
        rc = trace_rows_end(&rows, error);
    for (int c = 0; c < TRACE_N_COLUMNS; c++)
        trace_names_free(&rows.names[c]);
    trace_ids_free(&rows.ids);
    trace_retries_free(&rows.retries);
    if (rc < 0)
        ifl_trace_free(trace);
    return rc;
}

int ifl_trace_read(const struct ifl_trace_file *file, const struct ifl_notes *notes,
                   struct ifl_trace *trace, struct ifl_error *error)
{
    struct trace_input input;
    *trace = (struct ifl_trace){0};
    int rc = trace_input_open(&input, file->path, error);
    if (rc == 0 && file->max_record_mib > 0)
        input.most_bytes = (size_t)file->max_record_mib << 20;
    if (rc == 0 && file->tokenizer)
        rc = text_counter_open(file, &input.counter, error);
    if (rc == 0)
        rc = trace_read_input(&input, file->format, notes, trace, error);
    text_counter_close(input.counter);
    trace_input_close(&input);
    if (rc == IFL_E_NOMEM)
        ifl_blame_file(error, file->path);
    return rc;
}
