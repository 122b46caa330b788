/* The keys of a live server: `live`. */
#include "config/key_fields.h"

static const struct ifl_param live_fields[] = {
    TEXT("host", live.host, "127.0.0.1",
         "address on which `inflight serve` listens; 0.0.0.0: all addresses of this machine"),
    INT("port", live.port, 8000, 0, 65535, "", "its port; 0: any free port, which is printed"),
    TEXT("api_key", live.api_key, "",
         "key that requests to /v1 must carry as `Authorization: Bearer KEY`; empty: no key is "
         "required"),
    TEXT("model_name", live.model_name, "",
         "name of the model for clients, if there is only one; empty: the last part of `model`"),
    REAL("speed", live.speed, 1, 1e-3, 1e6, "s/s",
         "simulated seconds per second of wall time, with executor sim"),
    CHOICE("metrics", live.metrics, "vllm|sglang|both", LIVE_METRICS_VLLM,
           "engine whose metric names /metrics uses"),
};

const struct key_table live_keys = {FIELDS(live)};

static const struct ifl_param live_limits_fields[] = {
    INT("body_kib", live.limits.body_kib, 4096, 1, 1048576, "KiB",
        "limit of a request's body; a longer one is answered with 413"),
    INT("header_kib", live.limits.header_kib, 64, 1, 1024, "KiB",
        "limit; longer headers are answered with 400"),
    INT("bodies_mib", live.limits.bodies_mib, 512, 1, 1048576, "MiB",
        "limit of all bodies being received together; a connection beyond it gets 503"),
    INT("unsent_kib", live.limits.unsent_kib, 1024, 1, 1048576, "KiB",
        "a client that leaves more of its answer unread is disconnected"),
    INT("connections", live.limits.connections, 4096, 1, 1000000, "connections",
        "limit; a further connection is answered with 503 and closed"),
    INT("in_flight", live.limits.in_flight, 16384, 1, 1000000, "requests",
        "limit; a further request is answered with 503; serving.max_queued_reqs is the scheduler's "
        "own limit"),
    INT("recorded", live.limits.recorded, 10000000, 1, 2000000000, "requests",
        "requests that a server takes until it is restarted; each needs about 150 bytes of memory"),
    INT("samples", live.limits.samples, 16, 1, 1024, "answers", "most answers to one request (n)"),
    INT("clients", live.limits.clients, 64, 1, 65536, "clients",
        "most client names (`user`) that fair schedulers distinguish"),
    REAL("idle_s", live.limits.idle_s, 60, 0.1, 86400, "s",
         "a connection without reads and writes for this long is closed"),
};

const struct key_table live_limits_keys = {FIELDS(live_limits)};

static const struct ifl_param live_answers_fields[] = {
    CHOICE(
        "law", live.answers.law, "limit|fixed|uniform|lognormal", LIVE_LOGNORMAL,
        "distribution of answer lengths not fixed by ignore_eos or min_tokens; limit: max_tokens"),
    REAL("mean_tokens", live.answers.mean_tokens, 256, 1, 1e9, "tokens",
         "fixed: the length; lognormal: the mean"),
    REAL("cv", live.answers.cv, 1, 0, 50, "", "lognormal: standard deviation / mean"),
    INT("min_tokens", live.answers.min_tokens, 1, 1, ANY, "tokens",
        "uniform, lognormal: shortest answer"),
    INT("max_tokens", live.answers.max_tokens, 8192, 1, ANY, "tokens",
        "uniform, lognormal: longest answer; the request's own limit holds, too"),
};

const struct key_table live_answers_keys = {FIELDS(live_answers)};

static const struct ifl_param live_chat_fields[] = {
    TEXT("begin", live.chat.begin, "",
         "with a tokenizer: text before the first message, such as <|begin_of_text|>"),
    TEXT("message", live.chat.message, "",
         "template of a message, with {role} and {content}; empty: ChatML's, if the tokenizer has "
         "<|im_start|>"),
    TEXT("turn", live.chat.turn, "", "with a message template: text before the answer"),
};

const struct key_table live_chat_keys = {FIELDS(live_chat)};

static const struct ifl_param live_faults_fields[] = {
    REAL("error_frac", live.faults.error_frac, 0, 0, 1, "of the requests",
         "fraction answered with 500, drawn by request number"),
    REAL("drop_frac", live.faults.drop_frac, 0, 0, 1, "of the requests",
         "fraction whose connection is closed at the second token"),
    REAL("start_s", live.faults.start_s, 0, 0, 86400, "s",
         "wall time after the start during which the server answers 503"),
    REAL("stall_every_s", live.faults.stall_every_s, 0, 0, 86400, "s",
         "wall time from one stall to the next; during a stall nothing is sent; 0: never"),
    REAL("stall_s", live.faults.stall_s, 1, 0, 3600, "s", "length of a stall"),
    INT("dead_replica", live.faults.dead_replica, -1, -1, ANY, "",
        "the number of a replica whose requests get no token from dead_from_s on; -1: none"),
    REAL("dead_from_s", live.faults.dead_from_s, 0, 0, A_BILLION, "s",
         "start of this fault, on the run's clock"),
};

const struct key_table live_faults_keys = {FIELDS(live_faults)};
