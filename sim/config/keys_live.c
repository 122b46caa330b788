/* The keys of a live server: `live`. */
#include "config/key_fields.h"

static const struct ifl_param live_fields[] = {
    TEXT("host", live.host, "127.0.0.1",
         "the address that `inflight serve` listens at; 0.0.0.0: at all of this machine's"),
    INT("port", live.port, 8000, 0, 65535, "", "its port; 0: any free one, which is printed"),
    TEXT("api_key", live.api_key, "",
         "requests to /v1 must carry it as `Authorization: Bearer KEY`; empty: none is asked for"),
    TEXT("model_name", live.model_name, "",
         "what clients call the model, where there is one; empty: the last part of `model`"),
    REAL("speed", live.speed, 1, 1e-3, 1e6, "s/s",
         "simulated seconds per second: the clock of executor sim runs that much faster"),
    CHOICE("metrics", live.metrics, "vllm|sglang|both", LIVE_METRICS_VLLM,
           "whose names /metrics has"),
};

const struct key_table live_keys = {FIELDS(live)};

static const struct ifl_param live_limits_fields[] = {
    INT("body_kib", live.limits.body_kib, 4096, 1, 1048576, "KiB",
        "a longer body of a request is answered with 413"),
    INT("header_kib", live.limits.header_kib, 64, 1, 1024, "KiB",
        "longer headers are answered with 400"),
    INT("bodies_mib", live.limits.bodies_mib, 512, 1, 1048576, "MiB",
        "of all bodies that are being received; a connection that would go beyond gets 503"),
    INT("unsent_kib", live.limits.unsent_kib, 1024, 1, 1048576, "KiB",
        "a client that leaves more of its answer unread is disconnected"),
    INT("connections", live.limits.connections, 4096, 1, 1000000, "connections",
        "one more is answered with 503 and closed"),
    INT("in_flight", live.limits.in_flight, 16384, 1, 1000000, "requests",
        "one more is answered with 503; serving.max_queued_reqs is the scheduler's own limit"),
    INT("recorded", live.limits.recorded, 10000000, 1, 2000000000, "requests",
        "that a server takes until it is started anew; about 150 bytes of memory each"),
    INT("samples", live.limits.samples, 16, 1, 1024, "answers", "most of one request (n)"),
    INT("clients", live.limits.clients, 64, 1, 65536, "clients",
        "most names of clients (`user`) that fair schedulers tell apart"),
    REAL("idle_s", live.limits.idle_s, 60, 0.1, 86400, "s",
         "a connection on which nothing is read or written for so long is closed"),
};

const struct key_table live_limits_keys = {FIELDS(live_limits)};

static const struct ifl_param live_answers_fields[] = {
    CHOICE("law", live.answers.law, "limit|fixed|uniform|lognormal", LIVE_LOGNORMAL,
           "how long an answer is that neither ignore_eos nor min_tokens fixes; limit: max_tokens"),
    REAL("mean_tokens", live.answers.mean_tokens, 256, 1, 1e9, "tokens", "fixed, lognormal"),
    REAL("cv", live.answers.cv, 1, 0, 50, "", "lognormal: standard deviation / mean"),
    INT("min_tokens", live.answers.min_tokens, 1, 1, ANY, "tokens", "uniform, lognormal: at least"),
    INT("max_tokens", live.answers.max_tokens, 8192, 1, ANY, "tokens",
        "uniform, lognormal: at most, and never more than the request's own limit"),
};

const struct key_table live_answers_keys = {FIELDS(live_answers)};

static const struct ifl_param live_chat_fields[] = {
    TEXT("begin", live.chat.begin, "",
         "with a tokenizer: what stands before the first message, as <|begin_of_text|>"),
    TEXT("message", live.chat.message, "",
         "how a message is written, with {role} and {content} in it; empty: as ChatML has it, "
         "where the tokenizer has <|im_start|>"),
    TEXT("turn", live.chat.turn, "", "with a message of your own: what the answer follows"),
};

const struct key_table live_chat_keys = {FIELDS(live_chat)};

static const struct ifl_param live_faults_fields[] = {
    REAL("error_frac", live.faults.error_frac, 0, 0, 1, "of the requests",
         "are answered with 500, drawn by their numbers"),
    REAL("drop_frac", live.faults.drop_frac, 0, 0, 1, "of the requests",
         "lose their connection as the second token comes"),
    REAL("start_s", live.faults.start_s, 0, 0, 86400, "s",
         "of the clock on the wall from the start on, the server answers 503"),
    REAL("stall_every_s", live.faults.stall_every_s, 0, 0, 86400, "s",
         "of the clock on the wall: so often nothing is sent for stall_s; 0: never"),
    REAL("stall_s", live.faults.stall_s, 1, 0, 3600, "s", "the length of a stall"),
    INT("dead_replica", live.faults.dead_replica, -1, -1, ANY, "",
        "the number of a replica whose requests get no token from dead_from_s on; -1: none"),
    REAL("dead_from_s", live.faults.dead_from_s, 0, 0, A_BILLION, "s", "of the flight's clock"),
};

const struct key_table live_faults_keys = {FIELDS(live_faults)};
