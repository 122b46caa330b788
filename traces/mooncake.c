/* Mooncake (FAST '25): stamps in milliseconds, lengths, and a hash id for each 512-token block of
 * the prompt. Equal leading ids are a shared prefix. https://github.com/kvcache-ai/Mooncake */
#include "traces.h"

static int check_hash_ids(const struct trace_record *record, struct ifl_error *error)
{
    const json_t *ids = json_object_get(record->value, "hash_ids");
    bool right = !ids || json_is_array(ids);
    for (size_t i = 0; right && i < json_array_size(ids); i++)
        right = json_is_integer(json_array_get(ids, i)) &&
                json_integer_value(json_array_get(ids, i)) >= 0;
    return right ? 0 : trace_record_fail(record, "hash_ids", "a list of whole numbers", error);
}

static int take_hash_ids(const struct trace_record *record, struct trace_rows *rows,
                         struct ifl_error *error)
{
    const json_t *ids = json_object_get(record->value, "hash_ids");
    const size_t n = json_array_size(ids);
    uint64_t *hash_id = trace_rows_hash_ids(rows, n, error);
    for (size_t i = 0; hash_id && i < n; i++)
        hash_id[i] = (uint64_t)json_integer_value(json_array_get(ids, i));
    return hash_id ? 0 : error->code;
}

int trace_record_add(const struct trace_record *record, struct trace_rows *rows, int64_t stamp_ns,
                     struct ifl_error *error)
{
    int32_t prompt = 0, output = 0;
    int rc = trace_record_tokens(record, "input_length", &prompt, error);
    if (rc == 0)
        rc = trace_record_tokens(record, "output_length", &output, error);
    if (rc == 0)
        rc = check_hash_ids(record, error);
    if (rc == 0)
        rc = trace_rows_add(rows, stamp_ns, prompt, output, error);
    if (rc <= 0)
        return rc;
    rc = take_hash_ids(record, rows, error);
    return rc < 0 ? rc : 1;
}

static int take_record(void *self, const struct trace_record *record, struct ifl_error *error)
{
    int64_t stamp_ns = 0;
    const int rc = trace_record_stamp(record, "timestamp", 1000000, &stamp_ns, error);
    return rc < 0 ? rc : trace_record_add(record, self, stamp_ns, error);
}

int trace_read_mooncake(struct trace_input *input, struct trace_rows *rows, struct ifl_error *error)
{
    const struct trace_json_reader reader = {take_record, rows, rows};
    const int rc = trace_jsonl_read(input, &reader, error);
    rows->trace->has_stamps = true;
    rows->trace->hash_block_tokens = 512;
    trace_rows_rebase(rows);
    return rc;
}
