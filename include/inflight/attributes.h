/* The columns of a trace with one number per request, one line per column. A column needs only its
 * line to be read, cut, sorted, written and freed, and to be a member of struct ifl_trace and, if
 * it is an attribute, of struct ifl_attributes.
 *
 *     X(COLUMN, KIND, member, "name in the CSV", least, absent, "what it says", "an empty cell")
 *
 * `absent` is the number of a row with an empty cell, and of all rows without the column. `least`
 * is the smallest number that a row may have. The texts are those of docs/formats.md. */
#ifndef INFLIGHT_ATTRIBUTES_H
#define INFLIGHT_ATTRIBUTES_H

#include "inflight/time.h"

/* The type of each kind of column. */
#define IFL_CELL_WHOLE int32_t   /* a whole number */
#define IFL_CELL_SECONDS int64_t /* nanoseconds; seconds from 0 on in a file */
#define IFL_CELL_CLIENT uint32_t /* dense numbers for names, which the trace keeps */
#define IFL_CELL_GROUP uint32_t  /* dense numbers from 1 for names; 0: in no group */
#define IFL_CELL_MODEL                                                                             \
    uint32_t /* dense numbers from 1 for names, which the trace keeps; 0: none                     \
              */
#define IFL_CELL_ADAPTER                                                                           \
    uint32_t                 /* dense numbers from 1 for names, which the trace keeps; 0: none */
#define IFL_CELL_ID uint64_t /* a whole number that no other row has */
#define IFL_CELL_ROW int64_t /* the id of another row */

/* Each format has its own names for these. */
#define IFL_BASIC_COLUMNS(X)                                                                       \
    X(ARRIVAL, SECONDS, arrival_ns, "arrival_s", 0, -1,                                            \
      "when the request arrives, in seconds; a trace may start at any time",                       \
      "no column: `workload.arrivals` must draw the arrivals")                                     \
    X(PROMPT, WHOLE, n_prompt, "prompt_tokens", 1, 0, "tokens of the prompt, 1 or more",           \
      "an error")                                                                                  \
    X(OUTPUT, WHOLE, n_output, "output_tokens", 1, 0,                                              \
      "tokens of the answer, 1 or more; policies never see it", "an error")                        \
    X(REQUEST_ID, ID, request_id, "request_id", 0, 0,                                              \
      "its name in the reports, a whole number that no other row has", "the row's number, from 0")

/* A record of any format may have these, if a record is a request. */
#define IFL_ATTRIBUTES_OF_ANY_FORMAT(X)                                                            \
    X(CLIENT, CLIENT, client, "client", 0, 0,                                                      \
      "the client that sent it, any word: fair schedulers share by client",                        \
      "all are one client's")                                                                      \
    X(PRIORITY, WHOLE, priority, "priority", INT32_MIN, 0,                                         \
      "a whole number, the lower the more urgent", "0")                                            \
    X(TTFT_SLO, SECONDS, ttft_slo_ns, "ttft_slo_s", 0, IFL_NEVER,                                  \
      "the longest time to its first token that is in time: counts for goodput, and orders by "    \
      "deadline read it",                                                                          \
      "`slo.ttft_s`")                                                                              \
    X(TPOT_SLO, SECONDS, tpot_slo_ns, "tpot_slo_s", 0, IFL_NEVER,                                  \
      "the same for the time per token behind the first", "`slo.tpot_s`")                          \
    X(MAX_TOKENS, WHOLE, max_tokens, "max_tokens", 1, 0,                                           \
      "the declared limit of the answer, which policies do see; at least `output_tokens`",         \
      "`output_tokens`")

/* Only inflight's own CSV has these. */
#define IFL_ATTRIBUTES_OF_OWN_FORMAT(X)                                                            \
    X(SAMPLES, WHOLE, samples, "samples", 1, 1,                                                    \
      "answers to the same prompt, which share its blocks", "1")                                   \
    X(MODEL, MODEL, model, "model", 1, 0,                                                          \
      "the model that it is for, as the configuration names it: only pools that serve the model "  \
      "get it",                                                                                    \
      "any model")                                                                                 \
    X(ADAPTER, ADAPTER, adapter, "adapter", 1, 0,                                                  \
      "the low-rank adapter that it is computed with, any word or number: "                        \
      "[Adapters](adapters.md)",                                                                   \
      "the base model alone")                                                                      \
    X(RETRY_OF, ROW, retry_of, "retry_of", 0, -1,                                                  \
      "the `request_id` of the row that this one repeats, in this file and no later: its prompt "  \
      "has the same tokens",                                                                       \
      "it is no retry")                                                                            \
    X(SESSION, GROUP, session, "session", 1, 0, "the conversation it is a turn of, any word",      \
      "none")                                                                                      \
    X(ABORT, SECONDS, abort_ns, "abort_s", 0, IFL_NEVER,                                           \
      "the client's patience: it leaves so many seconds after `arrival_s`, answered or not",       \
      "`workload.patience`")                                                                       \
    X(ABORT_TOKENS, WHOLE, abort_tokens, "abort_tokens", 1, 0,                                     \
      "the client leaves as it has so many tokens of the answer", "it stays")                      \
    X(DEADLINE, SECONDS, deadline_ns, "deadline_s", 0, IFL_NEVER,                                  \
      "the server gives the request up so many seconds after `arrival_s`",                         \
      "`workload.deadline_s`")                                                                     \
    X(ACCEPT, WHOLE, accept_percent, "accept_percent", 0, -1,                                      \
      "with speculation: how many of a hundred guessed tokens hold, 100 at most",                  \
      "`serving.speculation.acceptance`")                                                          \
    X(THINK, SECONDS, think_ns, "think_s", 0, -1,                                                  \
      "seconds from the end of the session's previous row to the arrival of this one",             \
      "it arrives at `arrival_s`; so does the first row of a session, which needs that stamp. "    \
      "A closed loop has no think times")                                                          \
    X(PREFIX_GROUP, GROUP, prefix_group, "prefix_group", 1, 0,                                     \
      "the group with which it shares a prefix, any word: see below", "nothing is shared")         \
    X(PREFIX_TOKENS, WHOLE, prefix_tokens, "prefix_tokens", 0, 0,                                  \
      "how many of its tokens it shares with the group: see below", "0")

#define IFL_ATTRIBUTES(X) IFL_ATTRIBUTES_OF_ANY_FORMAT(X) IFL_ATTRIBUTES_OF_OWN_FORMAT(X)
#define IFL_COLUMNS(X) IFL_BASIC_COLUMNS(X) IFL_ATTRIBUTES(X)

/* The columns of a row except its stamp, its lengths and its id. */
struct ifl_attributes {
#define IFL_ATTRIBUTE(column, kind, member, ...) IFL_CELL_##kind member;
    IFL_ATTRIBUTES(IFL_ATTRIBUTE)
#undef IFL_ATTRIBUTE
};

#endif
