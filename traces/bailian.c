/* Qwen-Bailian: turns of chats. A turn names its parent and has a hash id for each 16-token block
 * of the prompt. A session is all turns with the same root; the file may have them in any order.
 * https://github.com/alibaba-edu/qwen-bailian-usagetraces-anon */
#include "traces.h"

/* Chats joined into trees: union-find over the ids that the file mentions (Tarjan, JACM 1975). */
struct bailian {
    struct trace_rows *rows;
    struct trace_names chats;
    uint32_t *parent; /* [cap_chats] by chat number; a root is its own */
    size_t n_chats, cap_chats;
};

static int number_chat(struct bailian *bailian, int64_t id, uint32_t *chat, struct ifl_error *error)
{
    char name[24];
    snprintf(name, sizeof name, "%lld", (long long)id);
    int rc = trace_names_number(&bailian->chats, name, chat, error);
    if (rc == 0 && *chat == bailian->n_chats) {
        rc = trace_reserve(&bailian->parent, &bailian->cap_chats, bailian->n_chats + 1,
                           sizeof *bailian->parent, error);
        if (rc == 0)
            bailian->parent[bailian->n_chats++] = *chat;
    }
    return rc;
}

static uint32_t find_root(struct bailian *bailian, uint32_t chat)
{
    uint32_t *parent = bailian->parent;
    for (; parent[chat] != chat; chat = parent[chat])
        parent[chat] = parent[parent[chat]];
    return chat;
}

/* Sets the row's session to its chat. number_sessions replaces it when all parents are known. */
static int take_chat(struct bailian *bailian, const struct trace_record *record,
                     struct ifl_error *error)
{
    const struct ifl_trace *trace = bailian->rows->trace;
    int64_t id, parent_id = -1;
    uint32_t chat = 0, parent = 0;
    int rc = trace_record_whole(record, "chat_id", 0, INT64_MAX, &id, error);
    if (rc == 0)
        rc = trace_record_whole(record, "parent_chat_id", -1, INT64_MAX, &parent_id, error);
    if (rc == 0)
        rc = number_chat(bailian, id, &chat, error);
    if (rc < 0)
        return rc;
    trace->session[trace->n - 1] = chat;
    if (parent_id < 0)
        return 0;
    rc = number_chat(bailian, parent_id, &parent, error);
    if (rc == 0)
        bailian->parent[find_root(bailian, chat)] = find_root(bailian, parent);
    return rc;
}

static int take_record(void *self, const struct trace_record *record, struct ifl_error *error)
{
    struct bailian *bailian = self;
    const char *type = trace_record_name(record, "type", error);
    int64_t stamp_ns = 0;
    int rc = type ? trace_record_stamp(record, "timestamp", IFL_NS_PER_S, &stamp_ns, error)
                  : error->code;
    if (rc == 0)
        rc = trace_record_add(record, bailian->rows, stamp_ns, error);
    if (rc <= 0)
        return rc;
    rc = trace_rows_name(bailian->rows, TRACE_CLIENT, type, error);
    return rc < 0 ? rc : take_chat(bailian, record, error);
}

/* Numbers the sessions from 1 in order of appearance. */
static int number_sessions(struct bailian *bailian, struct ifl_error *error)
{
    const struct ifl_trace *trace = bailian->rows->trace;
    uint32_t n_sessions = 0;
    uint32_t *session_of = calloc(bailian->n_chats + 1, sizeof *session_of);
    if (!session_of)
        return ifl_fail_nomem(error);
    for (size_t i = 0; i < trace->n; i++) {
        const uint32_t root = find_root(bailian, trace->session[i]);
        if (session_of[root] == 0)
            session_of[root] = ++n_sessions;
        trace->session[i] = session_of[root];
    }
    free(session_of);
    return 0;
}

int trace_read_bailian(struct trace_input *input, struct trace_rows *rows, struct ifl_error *error)
{
    struct bailian bailian = {.rows = rows};
    const struct trace_json_reader reader = {take_record, &bailian, rows};
    int rc = trace_rows_want(rows, TRACE_CLIENT, error);
    if (rc == 0)
        rc = trace_rows_want(rows, TRACE_SESSION, error);
    if (rc == 0)
        rc = trace_jsonl_read(input, &reader, error);
    if (rc == 0)
        rc = number_sessions(&bailian, error);
    trace_names_free(&bailian.chats);
    free(bailian.parent);
    rows->trace->has_stamps = true;
    rows->trace->hash_block_tokens = 16;
    trace_rows_rebase(rows);
    return rc;
}
